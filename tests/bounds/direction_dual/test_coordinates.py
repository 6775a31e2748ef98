"""Columns of the direction dual in coordinates of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca.bounds.direction_dual import coordinates as dual_view
from blockspca.bounds.direction_dual import density as density_module
from blockspca.bounds.direction_dual import search as dual_bound_module
from blockspca.bounds.direction_dual.ascent import Ascent
from blockspca.bounds.direction_dual.columns import DenseColumns, SparseColumns
from blockspca.bounds.direction_dual.coordinates import compact
from blockspca.bounds.direction_dual.density import Side
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.covariance.covariance import Covariance
from dual_problems import Optimum, proved_of_three


@pytest.mark.parametrize("smallest", [pytest.param(0, marks=pytest.mark.slow), 150])
def test_columns_in_coordinates_of_their_own_prove_the_same(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, smallest: int
) -> None:
    """As where few columns are left, with and without steps within a space."""
    monkeypatch.setattr(dual_view, "is_large", lambda n: True)
    monkeypatch.setattr(density_module, "_SMALL", smallest)
    monkeypatch.setattr(dual_view, "_SMALLER", 1.0)
    shapes = []

    class Spy(Ascent):
        def decide(self, tau: float) -> int:
            if self.view.basis is not None:
                shapes.append((len(self.view.sides), *self.view.basis.shape))
            return super().decide(tau)

    monkeypatch.setattr(dual_bound_module, "Ascent", Spy)
    assert proved_of_three(brute_force, range(12), (20, 12)) >= 11
    assert {n for _, n, _ in shapes} == {12}  # by a factorization of 20 samples
    assert any(sides and m < n for sides, n, m in shapes)


@pytest.mark.parametrize("sparse", [False, True])
def test_coordinates_of_their_own_keep_what_they_say(sparse: bool) -> None:
    """(c'y)² ≤ (r'u)² + 3e s² with u = V'y, and the like for sides, in long doubles."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((40, 9)) * rng.gamma(1.0, size=9)
        columns: DenseColumns | SparseColumns = DenseColumns(C)
        if sparse:
            Y = sp.random_array((40, 9), density=0.3, format="csc", rng=rng)
            means = Y.mean(axis=0) * 1.01
            C = Y.toarray() - means
            columns = SparseColumns(Y, means, (C**2).sum(axis=0))
        sides = [Side(*np.linalg.qr(rng.standard_normal((40, 2)))[0].T)]
        seen = compact(columns, 4, sides, 3)
        assert seen.basis is not None
        assert seen.columns.shape == (11, 9)
        assert (seen.inside.tolist(), len(seen.undecided)) == ([0, 1, 2, 3], 5)
        assert 0 < seen.error < 1e-11
        sizes = np.sort(columns.sizes)[-3:]
        assert seen.lost == pytest.approx(3 * seen.error * (sizes**2).sum())
        R = seen.columns.dense().astype(np.longdouble)
        for y in rng.standard_normal((50, 40)).astype(np.longdouble):
            y = y / np.sqrt(y @ y)
            u = seen.basis.T.astype(np.longdouble) @ y
            assert u @ u <= 1 + seen.error
            before, after = (C.T.astype(np.longdouble) @ y) ** 2, (R.T @ u) ** 2
            assert (np.abs(before - after) <= 3 * seen.error * columns.sizes**2).all()
            (old,), (new,) = sides, seen.sides
            product = (old.a @ y) * (old.b @ y)
            assert abs(product - (new.a @ u) * (new.b @ u)) <= 3 * seen.error
        C[:, 0] *= 1e-300  # of a column that is nearly nothing
        assert np.isfinite(compact(DenseColumns(C), 4, sides, 3).error)


def test_coordinates_that_are_off_cost_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a factorization loses is measured, and paid for."""
    cov = Covariance.from_data(np.diag(np.arange(1.0, 10.0)), center=False)
    optimum = float(cov.diagonal().max())
    assert dual_bound(cov, 1).value <= 1.0005 * optimum
    monkeypatch.setattr(dual_view, "is_large", lambda n: True)
    monkeypatch.setattr(dual_view, "_SMALLER", 2.0)
    factorize = np.linalg.qr

    def sloppy(A: np.ndarray, **named: str) -> Any:
        if named:
            return factorize(A, **named)
        Q, R = factorize(A)
        return Q, R * (1 - 1e-3)

    monkeypatch.setattr(dual_view.np.linalg, "qr", sloppy)
    assert dual_bound(cov, 1).value >= optimum
