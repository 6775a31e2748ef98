"""The bound with a copy of the projection for each column, against brute force."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad

import blockspca as bs
from blockspca.bounds.direction_dual.columns import DenseColumns
from blockspca.components import shared_descent
from blockspca.components.shared_copies import CopiesPoint, proved_by_copies
from blockspca.components.shared_descent import CopiesDescent
from blockspca.components.shared_dual import DualPoint, begin, proved_at
from blockspca.limits import Deadline

NONE = np.empty(0, np.intp)


def columns_of(seed: int, n: int, d: int) -> np.ndarray:
    """Factors, twins, ties, orthogonal, of very different lengths, and zeros."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, d))
    kinds = (
        lambda: C + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)),
        lambda: np.repeat(C[:, : (d + 1) // 2], 2, axis=1)[:, :d],
        lambda: np.sign(C),
        lambda: np.eye(n, d) * 2 + np.eye(n, d, 1),
        lambda: C * 10.0 ** rng.integers(-4, 4, d),
        lambda: C * (np.arange(d) < 4),
        lambda: C[:, :1] @ rng.normal(size=(1, d)),
    )
    return kinds[seed % len(kinds)]()


def leading_sum(C: np.ndarray, r: int) -> float:
    return float(np.linalg.eigvalsh(C @ C.T)[-r:].sum())


def exhaustive(C: np.ndarray, k: int, r: int, inside: Any = ()) -> float:
    """F_r of the best set of those inside and at most k others."""
    others = np.setdiff1d(np.arange(C.shape[1]), inside)
    return max(
        leading_sum(C[:, [*inside, *s]], r)
        for s in combinations(others, min(k, len(others)))
    )


def random_point(rng: np.random.Generator, C: np.ndarray, kind: int) -> CopiesPoint:
    """Points far from the best, and some near: n_i about c_i, U about eigenvectors."""
    n, d = C.shape
    index = np.flatnonzero(rng.random(d) < (0.7 if kind % 2 else 1.1))
    size = np.sqrt((C**2).sum(axis=0).max())
    N = C.T[index] * rng.random((len(index), 1))
    T = C.T[index] * rng.random((len(index), 1)) * (kind % 3 > 0)
    if kind % 4 == 1:
        N = N + 0.5 * size * rng.normal(size=N.shape)
        T = T + 0.5 * size * rng.normal(size=T.shape)
    U = np.linalg.eigh(C @ C.T)[1][:, -2:] * rng.random(min(2, n))
    if kind % 5 == 2:
        U = rng.normal(size=(n, 3))
    return CopiesPoint(index, N, T, U * (kind % 7 > 0))


@pytest.mark.parametrize("seed", range(28))
@pytest.mark.parametrize(("n", "d"), [(5, 8), (3, 7), (9, 6), (1, 6)])
def test_no_point_proves_too_little(seed: int, n: int, d: int) -> None:
    C = columns_of(seed, n, d)
    rng = np.random.default_rng(seed)
    for kind in range(12):
        r, k = int(rng.integers(1, 4)), int(rng.integers(1, d))
        inside = np.arange(d - 2, d) if kind % 4 == 3 else NONE
        rest = np.delete(C, inside, axis=1)
        point = random_point(rng, rest, kind)
        within = DenseColumns(C[:, inside])
        found = proved_by_copies(DenseColumns(rest), k, r, point, within, 0.0)
        assert found >= exhaustive(C, k, r, inside)
        # Columns that are not given count as the longest of them might.
        order = np.argsort(-(rest**2).sum(axis=0))
        few = DenseColumns(rest[:, order[:3]])
        longest = float((rest[:, order[3]] ** 2).sum()) * (1 + 1e-14)
        kept = point.index < 3
        few_point = CopiesPoint(
            point.index[kept], point.N[kept], point.T[kept], point.U
        )
        found = proved_by_copies(few, k, r, few_point, within, longest)
        assert found >= exhaustive(C, k, r, inside)


@pytest.mark.parametrize("seed", range(7))
def test_to_know_less_of_a_column_proves_no_more(seed: int) -> None:
    """Zeros for n_i and t_i, no copies at all, and not even the columns."""
    C = np.sign(columns_of(seed, 5, 8))
    U = np.random.default_rng(seed).normal(size=(5, 2)) / 3
    none, zeros = DenseColumns(C[:, :0]), np.zeros((8, 5))
    exact = CopiesPoint(np.arange(8), zeros, zeros, U)
    without = CopiesPoint(NONE, zeros[:0], zeros[:0], U)
    longest = float((C**2).sum(axis=0).max())
    for k in (1, 3, 8):
        bounds = [
            proved_by_copies(DenseColumns(C), k, 2, exact, none, 0.0),
            proved_by_copies(DenseColumns(C), k, 2, without, none, 0.0),
            proved_by_copies(none, k, 2, without, none, longest),
        ]
        assert bounds[0] <= bounds[1] * (1 + 1e-12)
        assert bounds[1] <= bounds[2] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(7))
def test_it_is_exact_where_the_set_is_known(seed: int) -> None:
    """H_i = c_i c_i' for all, and every X on the leading eigenvectors."""
    C, r = columns_of(seed, 5, 8), 2
    exact = leading_sum(C, r)
    all_of_them, none = DenseColumns(C), DenseColumns(C[:, :0])
    values, V = np.linalg.eigh(C @ C.T)
    assert exact == pytest.approx(values[-r:].sum())
    nothing = CopiesPoint(NONE, np.empty((0, 5)), np.empty((0, 5)), np.zeros((5, 1)))
    as_it_is = CopiesPoint(np.arange(8), C.T, 0 * C.T, np.zeros((5, 1)))
    # X = P/4 takes half of the leading eigenvalues away, which must remain the largest.
    share = min(0.5, 1 - values[-r - 1] / max(values[-r], 1e-300)) * 0.99
    turned = replace(nothing, U=V[:, -r:] * np.sqrt(max(share, 0.0) / 2))
    assert proved_by_copies(all_of_them, 8, r, as_it_is, none, 0.0) == pytest.approx(
        exact, rel=1e-11
    )
    for point in (nothing, turned):
        found = proved_by_copies(none, 1, r, point, all_of_them, 0.0)
        assert exact <= found == pytest.approx(exact, rel=1e-11)


def dual_point(C: np.ndarray, k: int, r: int) -> DualPoint:
    leading = np.linalg.eigh(C @ C.T)[1][:, ::-1][:, :r]
    forms = np.sort(((leading.T @ C) ** 2).sum(axis=0))[::-1]
    return DualPoint(np.inf, float(forms[k - 1]) * 0.9, begin(leading, 0.7))


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize(
    ("n", "d", "k", "r"), [(6, 10, 4, 2), (8, 9, 3, 3), (4, 9, 5, 1)]
)
def test_the_descent_lowers_the_bound(
    seed: int, n: int, d: int, k: int, r: int
) -> None:
    C = columns_of(seed, n, d)
    columns, none = DenseColumns(C), DenseColumns(C[:, :0])
    start = dual_point(C, k, r)
    before = proved_at(columns, k, r, start, np.zeros((n, n)), 0.0, 0)
    descent = CopiesDescent(columns, k, r, start, none)
    descent.run(-np.inf, Deadline(None))
    assert descent.best is not None
    after = proved_by_copies(columns, k, r, descent.best, none, 0.0)
    best = exhaustive(C, k, r)
    # Where the dual is exact, the temperature has moved it by a little.
    assert best <= after <= before * (1 + 1e-5)
    if before > 1.02 * best:
        assert after - best < 0.8 * (before - best)
    # What comes with a step is what is proved, where all columns have their n_i.
    if len(descent.index) == d:
        assert descent.value == pytest.approx(after, rel=1e-6)


def test_derivatives() -> None:
    rng = np.random.default_rng(0)
    C = columns_of(0, 6, 12)
    inside = DenseColumns(C[:, 10:])
    descent = CopiesDescent(DenseColumns(C[:, :10]), 3, 2, dual_point(C, 3, 2), inside)
    descent._target, descent._deadline = -np.inf, Deadline(None)
    at = descent._at + 0.1 * rng.normal(size=descent._at.shape)
    value, gradient = descent._smoothed(at, 0.1)
    assert value >= descent.value
    error = check_grad(
        lambda v: descent._smoothed(v, 0.1)[0],
        lambda v: descent._smoothed(v, 0.1)[1],
        at,
    )
    assert error < 1e-5 * float(np.linalg.norm(gradient))


def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 90))
    for j in range(4):
        X[:, 15 * j : 15 * j + 20] += (2 - 0.3 * j) * rng.normal(size=(20, 1))
    return X


@pytest.fixture(scope="module")
def found() -> bs.components.shared_support.SharedSupport:
    return bs.solve_shared(bs.Covariance.from_data(data()), 20, 3)


def test_a_claim_is_checked(found: Any) -> None:
    cov = bs.Covariance.from_data(data())
    again = pickle.loads(pickle.dumps(found))
    assert again.verify(cov).complete
    claim = again.certificate
    point = claim.dual.point
    assert isinstance(point, CopiesPoint)
    outside = point.index.copy()
    outside[-1] = 10_000
    for change in (
        {"N": point.N * 0.7},
        {"T": point.T * 2},
        {"U": point.U * 3},
        {"U": np.full_like(point.U, np.nan)},
        {"N": np.full_like(point.N, 1e200)},
        {"N": point.N[:, 1:]},
        {"index": point.index[::-1]},
        {"index": np.repeat(point.index[:1], len(point.index))},
        {"index": outside},
        {"index": point.index - 5},
        {"index": point.index[1:]},
    ):
        worse = replace(claim, dual=replace(claim.dual, point=replace(point, **change)))
        with pytest.raises(bs.VerificationError, match="above the claimed"):
            replace(again, certificate=worse).verify(cov)


def test_it_is_closer_than_the_dual_alone(
    found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cov = bs.Covariance.from_data(data())
    monkeypatch.setattr(shared_descent, "MOST_ENTRIES", 0)
    alone = bs.solve_shared(cov, 20, 3)
    assert isinstance(alone.certificate.dual.point, DualPoint)
    assert alone.verify(cov).complete
    assert found.gap < 0.7 * alone.gap


def test_limits_and_interruptions(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cov = bs.Covariance.from_data(data())
    asked = bs.solve_shared(cov, 20, 3, limits=bs.Limits(gap=2 * found.gap))
    assert asked.status is bs.Status.GAP_LIMIT
    assert found.gap < asked.gap <= 2 * found.gap
    little = bs.solve_shared(cov, 20, 3, limits=bs.Limits(memory=200_000))
    assert isinstance(little.certificate.dual.point, DualPoint)
    keep, steps = CopiesDescent._keep, []

    def stopped(self: CopiesDescent, *arguments: Any) -> None:
        keep(self, *arguments)
        steps.append(self.value)
        if len(steps) == 60:
            raise KeyboardInterrupt

    monkeypatch.setattr(CopiesDescent, "_keep", stopped)
    with pytest.warns(UserWarning, match="interrupted"):
        stopped_at = bs.solve_shared(cov, 20, 3)
    assert stopped_at.status is bs.Status.INTERRUPTED
    assert found.gap < stopped_at.gap < little.gap
    assert stopped_at.verify(cov).complete
