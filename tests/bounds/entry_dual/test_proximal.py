"""Proximal steps of the entry dual: slopes, threads, and bounds against brute force."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from blockspca._kernels import entry_shares
from blockspca.bounds.entry_dual import proximal
from blockspca.bounds.entry_dual.ascent import Ascent, Point
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.matrix import DualMatrix
from blockspca.bounds.entry_dual.pairs import Pairs
from blockspca.bounds.entry_dual.proximal import Proximal, is_worthwhile
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.blas import single_threaded
from blockspca.numerics.threads import allowed_threads


def problem(d: int, m: int, k: int = 8) -> tuple[DualMatrix, Point]:
    """Correlations of d features, of which the first m are the core; a start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, d)) + rng.normal(size=(40, 1))
    A = np.corrcoef(X, rowvar=False)
    rows, columns = np.triu_indices(d, 1)
    beside = columns >= m
    pairs = Pairs(rows[beside], columns[beside], A[rows, columns][beside])
    core, prices = np.arange(m), np.full(d, k - 1.0)
    matrix = DualMatrix(
        np.diagonal(A).copy(), prices, core, A[:m, :m].copy(), pairs, np.zeros(d)
    )
    w = np.sqrt(rng.uniform(0.3, 0.6, size=d))
    product = w[:m, None] * w[:m]
    V = np.clip(A[:m, :m] / product, -1, 1) * 0.8
    np.fill_diagonal(V, 0.0)
    return matrix, Point(w, V)


def test_kernels_equal_their_python_source() -> None:
    rng = np.random.default_rng(0)
    single = np.float32
    X, A, V = (rng.normal(size=(3, 7)).astype(single) for _ in range(3))
    V = np.clip(V, -1, 1)
    w = rng.uniform(0.5, 1, size=7).astype(single)
    both = np.stack([w, 1 / w])
    found = []
    for compiled in (True, False):
        rows, shares = entry_shares.moved_rows, entry_shares.moved_shares
        if not compiled:
            rows, shares = rows.py_func, shares.py_func
        out, slopes, sums = X.copy(), np.zeros_like(X), np.zeros((2, 7), single)
        rows(out, A, V, both, 2, single(0.3), slopes, sums)
        moved = X.copy()
        shares(moved, V, both, 2, single(0.3))
        found.append((out, slopes, sums, moved))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    for function in (entry_shares.moved_rows, entry_shares.moved_shares):
        assert len(function.signatures) == 1


@pytest.mark.parametrize("core", [40, 25])
def test_the_slope_is_that_of_what_is_maximised(core: int) -> None:
    """With features beside the core as well, whose pairs are clipped."""
    matrix, start = problem(40, core)
    ascent = Proximal(matrix, start, 5.0)
    rng = np.random.default_rng(1)
    Y, along = rng.normal(size=(2, 40, 4))
    Y /= np.linalg.norm(Y)
    along -= np.vdot(along, Y) * Y
    along /= np.linalg.norm(along)
    V = start.shares.astype(np.float32)
    beside = matrix.beside_core(start.weights)
    assert (beside is None) == (core == 40)

    def at(Y: np.ndarray) -> tuple:
        return ascent._at(Y / np.linalg.norm(Y), start.weights, V, beside)

    _, slope, delta = at(Y)
    assert np.abs(delta).max() > 0
    step = 1e-3
    difference = (at(Y + step * along)[0] - at(Y - step * along)[0]) / (2 * step)
    assert difference == pytest.approx(float(np.vdot(slope, along)), rel=3e-3)


def test_steps_get_further_than_smoothed_ones() -> None:
    """From one start, in as many steps: 200 correlations."""
    matrix, start = problem(200, 200, k=20)
    smoothed = Ascent(matrix, start, 1.0).run(40, Deadline(None))
    found = Proximal(matrix, start, 1.0).run(40, Deadline(None))
    assert found.value < smoothed.value
    assert np.abs(found.shares).max() <= 1
    assert found.presence.sum() == pytest.approx(1)


def test_threads_change_nothing() -> None:
    """Stripes have one size, and are added up in one order."""
    found = []
    for threads in (1, 2):
        matrix, start = problem(600, 560, k=20)
        with allowed_threads(threads), single_threaded():
            found.append(Proximal(matrix, start, 1.0).run(8, Deadline(None)))
    assert found[0].value == found[1].value
    assert np.array_equal(found[0].weights, found[1].weights)
    assert np.array_equal(found[0].shares, found[1].shares)


def test_small_cores_and_late_kernels_are_left_to_the_ascent(monkeypatch) -> None:
    assert is_worthwhile(problem(100, 100)[0], Deadline(None))
    assert not is_worthwhile(problem(100, proximal._SMALL)[0], Deadline(None))
    monkeypatch.setattr(proximal, "load", lambda name, seconds: False)
    assert not is_worthwhile(problem(100, 100)[0], Deadline(1.0))


@pytest.mark.parametrize("seed", range(24))
def test_no_set_is_above_the_bound(seed: int, monkeypatch) -> None:
    """Where all is done by proximal steps: the zoo, every k, against brute force."""
    monkeypatch.setattr(proximal, "_SMALL", 0)
    one = zoo.problem(seed)
    known = zoo.Reference(one.exact)
    for k in range(2, one.d + 1):
        found = entry_bound(
            one.cov, k, known.best[k], time_limit=60.0, iterations=12, nodes=5
        )
        assert found.value >= known.reached[k], (one.kind, k)
        assert found.value < np.inf or found.record is None


def test_a_search_by_proximal_steps_finds_the_optimum(monkeypatch) -> None:
    monkeypatch.setattr(proximal, "_SMALL", 0)
    A = zoo.correlation(12, np.random.default_rng(3))
    one = zoo.from_matrix(A)
    known = zoo.Reference(one.exact)
    for k in (3, 5, 8):
        found = entry_bound(one.cov, k, known.best[k], time_limit=60.0, nodes=500)
        assert found.value == pytest.approx(known.reached[k], rel=1e-6)
        assert found.value >= known.reached[k]


def test_what_is_found_is_checked_from_its_record() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 150)) + rng.normal(size=(30, 1))
    cov = Covariance.from_data(X, scale=True)
    found = entry_bound(cov, 12, range(12), time_limit=60.0, iterations=40)
    again = checked_value(cov, 12, found.record)
    assert again <= found.value
    assert again == pytest.approx(found.value, rel=1e-6)
