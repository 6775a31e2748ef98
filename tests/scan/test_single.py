"""The pass in single precision: its lists are those of double, or safe bounds.

Adversarial data have entries that differ by less than single precision tells apart.
"""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
import blockspca.scan.passes as passes_module
import blockspca.scan.single as single_module
from blockspca import Covariance
from blockspca._kernels import single_tops
from blockspca.scan.lists import Scan, scan
from blockspca.scan.single import settle, single_error


@pytest.fixture(params=[0, 2, 8])
def in_single(monkeypatch, request):
    """Every dense scan in single precision, in small tiles."""
    monkeypatch.setattr(passes_module, "SINGLE_FROM", 0)
    monkeypatch.setattr(single_module, "TILE_SIZE", 7)
    monkeypatch.setattr(single_module, "SPARE", request.param)


def assert_safe(found: Scan, A: np.ndarray) -> None:
    """No entry exceeds what the lists say of it by more than the rounding stated."""
    sizes = np.abs(A)
    np.fill_diagonal(sizes, -1.0)
    ordered = -np.sort(-sizes, axis=1)[:, : found.width]
    slack = found.rounding + 1e-15 * np.abs(A).max()
    for i, row in enumerate(sizes):
        listed = found.indices[i][found.indices[i] >= 0]
        assert len(set(listed.tolist())) == len(listed)
        assert i not in listed
        assert (found.values[i] >= ordered[i] - slack).all()
        others = np.delete(row, [i, *listed])
        assert others.max(initial=0.0) <= found.values[i, -1] + slack
        assert (np.diff(found.values[i]) <= 0).all()


def factor_scan(C: np.ndarray, width: int) -> tuple[Scan, np.ndarray]:
    """The scan of A = C'C, and A in extended precision."""
    cov = Covariance.from_data(C * np.sqrt(len(C)), center=False, ddof=0)
    wide = cov.columns(np.arange(C.shape[1])).astype(np.longdouble)
    return scan(cov, width), (wide.T @ wide).astype(float)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lists_equal_those_of_double(in_single, monkeypatch, scale, seed) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 60)) * np.exp(rng.normal(size=60))
    X[:, 5] = 3.0  # a constant
    options = {"scale": scale, "constant": "ignore"}
    found = scan(Covariance.from_data(X, **options), 6)
    some = np.array([3, 5, 8, 20, 21, 40, 59])
    part = scan(Covariance.from_data(X, **options), 3, features=some)
    monkeypatch.setattr(passes_module, "SINGLE_FROM", 10**9)
    cov = Covariance.from_data(X, **options)
    for one, other in ((found, scan(cov, 6)), (part, scan(cov, 3, features=some))):
        close = 2 * single_error(20) * one.diagonal.max()
        assert (one.values <= other.values + close).all()
        assert (one.values >= other.values - one.rounding).all()
        assert one.rounding == other.rounding
    A = cov.submatrix(slice(None))
    assert_safe(found, A)
    assert_safe(part, A[np.ix_(some, some)])
    assert (found.indices[5] == -1).all()


@pytest.mark.parametrize("seed", range(6))
def test_entries_within_the_rounding_of_the_last_place(in_single, seed) -> None:
    """Unit vectors whose products with the first ones differ by 1e-9 and less."""
    rng = np.random.default_rng(seed)
    n, d = 11, 50
    base = np.linalg.qr(rng.normal(size=(n, n)))[0]
    cosines = 0.7 + 1e-9 * rng.normal(size=d) * 10.0 ** -rng.integers(0, 6, d)
    C = base[:, [0]] * cosines
    rest = base[:, 1:] @ rng.normal(size=(n - 1, d))
    C = C + rest * np.sqrt(1 - cosines**2) / np.linalg.norm(rest, axis=0)
    C[:, 0] = base[:, 0]
    C *= 2.0 ** rng.integers(-40, 40)
    found, A = factor_scan(C, 4)
    assert_safe(found, A)


@pytest.mark.parametrize("seed", range(4))
def test_entries_that_are_zero_in_single_precision_only(in_single, seed) -> None:
    """Lists that are not full there are computed again."""
    rng = np.random.default_rng(seed)
    n, d = 12, 30
    C = np.zeros((n, d))
    C[:2, :3] = rng.normal(size=(2, 3))
    C[2 + np.arange(d - 3) % 10, np.arange(3, d)] = 1.0
    C[:2, 3:] = 2.0**-160 * rng.normal(size=(2, d - 3))  # lost beside the ones
    found, A = factor_scan(C, 8)
    assert_safe(found, A)
    assert (found.indices[0] >= 0).sum() == 8


def test_norms_that_differ_by_more_than_single_precision_holds(in_single) -> None:
    rng = np.random.default_rng(0)
    C = rng.normal(size=(9, 40)) * 10.0 ** rng.integers(-60, 1, 40)
    found, A = factor_scan(C, 5)
    assert_safe(found, A)


@pytest.mark.parametrize("n", [1, 3, 17, 100, 1000])
def test_the_error_bound_holds(n) -> None:
    """Against products in extended precision, numbers that round the worst way."""
    rng = np.random.default_rng(n)
    for scale in (1.0, 2.0**-20):
        C = (1 + 2.0**-24 * (1 + rng.random((n, 30)))) * rng.choice([-1, 1], (n, 30))
        C = np.abs(C) * scale
        C /= np.linalg.norm(C, axis=0) * (1 + 1e-12)
        low = C.astype(np.float32)
        wide = C.astype(np.longdouble)
        error = np.abs((low.T @ low) - (wide.T @ wide)).max()
        assert error <= single_error(n)


def test_what_may_be_missing_raises_the_last_places() -> None:
    values = np.array([[0.5, 0.9, 0.7], [0.3, 0.0, 0.4]])
    indices = np.array([[4, 5, 6], [7, -1, 8]], dtype=np.int32)
    settle(values, indices, np.array([0.6, 0.6]))
    assert values.tolist() == [[0.9, 0.7, 0.6], [0.4, 0.3, 0.0]]
    assert indices.tolist() == [[5, 6, 4], [8, 7, -1]]


@pytest.mark.parametrize("sides", [1, 2, 3])
def test_the_kernels_equal_their_python_source(sides) -> None:
    rng = np.random.default_rng(0)
    tile = rng.normal(size=(5, 70)).astype(np.float32)
    rows = np.arange(5, dtype=np.int32)
    columns = np.arange(5, 75, dtype=np.int32)
    lists = []
    for function in (single_tops.add_tile, _by_numpy):
        values = np.zeros((75, 3), dtype=np.float32)
        indices = np.full((75, 3), -1, dtype=np.int32)
        scratch = np.empty(70, dtype=np.int32)
        bits = values.view(np.int32)
        function(tile.view(np.int32), rows, columns, bits, indices, scratch, sides)
        lists.append((values, indices))
    np.testing.assert_array_equal(lists[0][0], lists[1][0])
    np.testing.assert_array_equal(lists[0][1], lists[1][1])
    C = rng.normal(size=(6, 7))
    listed = np.array([[1, -1], [5, 0], [3, 4], [2, 1], [0, 2], [4, -1]], np.int32)
    for function in (
        single_tops.listed_entries,
        single_tops.listed_entries.py_func,
    ):
        values = np.full((6, 2), 9.0)
        function(1, 6, C, listed, values)
        expected = np.abs(np.einsum("is,ips->ip", C, C[listed]))
        expected[listed < 0] = 0.0
        expected[0] = 9.0
        np.testing.assert_allclose(values, expected, rtol=1e-14)


def _by_numpy(tile, rows, columns, bits, indices, scratch, sides) -> None:
    """What `add_tile` does: the largest of each list, by sorting."""
    values = bits.view(np.float32)
    sizes = np.abs(tile.view(np.float32))
    for own, other, block in ((rows, columns, sizes), (columns, rows, sizes.T)):
        if sides & (1 if own is rows else 2):
            order = np.argsort(-block, axis=1, kind="stable")[:, :3]
            values[own] = np.take_along_axis(block, order, axis=1)
            indices[own] = other[order]


def test_a_path_from_single_precision_is_proved_and_verified(in_single) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 120))
    X[:, :6] += 1.5 * rng.normal(size=(15, 1))
    cov = Covariance.from_data(X, scale=True)
    path = bs.solve_path(cov, 4)
    assert all(result.status is bs.Status.OPTIMAL for result in path.values())
    assert bs.verify(path[4], cov).complete


def test_a_limit_on_memory_goes_back_to_double(monkeypatch) -> None:
    """Single precision takes copies of the data."""
    monkeypatch.setattr(passes_module, "SINGLE_FROM", 0)
    made: list[bool] = []
    monkeypatch.setattr(
        single_module.SingleTiles, "pass_over", lambda self: made.append(True)
    )
    X = np.random.default_rng(0).normal(size=(200, 300))
    scan(Covariance.from_data(X), 5, memory=10**6)
    assert not made
    scan(Covariance.from_data(X), 5, memory=10**8)
    assert made
