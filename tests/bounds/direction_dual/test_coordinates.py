"""Columns of the direction dual in coordinates of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca.bounds.direction_dual import coordinates as coordinates_module
from blockspca.bounds.direction_dual import search as dual_bound_module
from blockspca.bounds.direction_dual.ascent import Ascent
from blockspca.bounds.direction_dual.columns import DenseColumns, SparseColumns
from blockspca.bounds.direction_dual.coordinates import reduced
from blockspca.bounds.direction_dual.density import Sector
from blockspca.bounds.direction_dual.node import Fixed
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.covariance.covariance import Covariance
from dual_problems import Optimum, proved_of_three


@pytest.mark.parametrize("smallest", [pytest.param(0, marks=pytest.mark.slow), 150])
def test_columns_in_coordinates_of_their_own_prove_the_same(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, smallest: int
) -> None:
    """As where few columns are left, with and without steps within a space."""
    monkeypatch.setattr(DualSettings, "reduces", lambda self, n, count: count <= n)
    settings = DualSettings(dense_order=smallest)
    shapes = []

    class Spy(Ascent):
        def fix_variables(self, tau: float) -> Fixed | None:
            seen = self.coordinates
            if seen.basis is not None:
                shapes.append((len(seen.sectors), *seen.basis.shape))
            return super().fix_variables(tau)

    monkeypatch.setattr(dual_bound_module, "Ascent", Spy)
    assert proved_of_three(brute_force, range(4), (20, 12), settings=settings) >= 3
    assert {n for _, n, _ in shapes} == {12}  # by a factorization of 20 samples
    assert any(sectors and m < n for sectors, n, m in shapes)


@pytest.mark.parametrize("sparse", [False, True])
def test_coordinates_of_their_own_keep_what_they_say(sparse: bool) -> None:
    """(c'y)² ≤ (r'u)² + 3e s² with u = V'y, and so for sectors, in long doubles."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((40, 9)) * rng.gamma(1.0, size=9)
        columns: DenseColumns | SparseColumns = DenseColumns(C)
        if sparse:
            Y = sp.random_array((40, 9), density=0.3, format="csc", random_state=rng)
            means = Y.mean(axis=0) * 1.01
            C = Y.toarray() - means
            columns = SparseColumns(Y, means, (C**2).sum(axis=0))
        sectors = [Sector(*np.linalg.qr(rng.standard_normal((40, 2)))[0].T)]
        seen = reduced(columns, 4, sectors, 3)
        assert seen.basis is not None
        assert seen.columns is not None
        assert seen.columns.shape == (11, 9)
        assert seen.fixed_in is not None
        assert seen.free.tolist() == [4, 5, 6, 7, 8]
        np.testing.assert_array_equal(
            seen.fixed_in.dense(), seen.columns.dense()[:, :4]
        )
        errors = 3 * seen.error * columns.sizes**2
        np.testing.assert_allclose(seen.column_error, errors[4:])
        assert 0 < seen.error < 1e-11
        sizes = np.sort(columns.sizes)[-3:]
        assert seen.bound_error == pytest.approx(3 * seen.error * (sizes**2).sum())
        R = seen.columns.dense().astype(np.longdouble)
        for y in rng.standard_normal((50, 40)).astype(np.longdouble):
            y = y / np.sqrt(y @ y)
            u = seen.basis.T.astype(np.longdouble) @ y
            assert u @ u <= 1 + seen.error
            before, after = (C.T.astype(np.longdouble) @ y) ** 2, (R.T @ u) ** 2
            assert (np.abs(before - after) <= 3 * seen.error * columns.sizes**2).all()
            (old,), (new,) = sectors, seen.sectors
            product = (old.a @ y) * (old.b @ y)
            assert abs(product - (new.a @ u) * (new.b @ u)) <= 3 * seen.error
        C[:, 0] *= 1e-300  # of a column that is nearly nothing
        assert np.isfinite(reduced(DenseColumns(C), 4, sectors, 3).error)


def test_coordinates_that_are_off_cost_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a factorization loses is measured, and paid for."""
    cov = Covariance.from_data(np.diag(np.arange(1.0, 10.0)), center=False)
    optimum = float(cov.diagonal().max())
    assert dual_bound(cov, 1).value <= 1.0005 * optimum
    monkeypatch.setattr(DualSettings, "reduces", lambda self, n, count: True)
    factorize = np.linalg.qr

    def sloppy(A: np.ndarray, **named: str) -> Any:
        if named:  # of the columns themselves
            return factorize(A, **named)
        Q, R = factorize(A)
        return Q, R * (1 - 1e-3)

    monkeypatch.setattr(coordinates_module.np.linalg, "qr", sloppy)
    assert dual_bound(cov, 1).value >= optimum
