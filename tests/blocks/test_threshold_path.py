"""The spanning forest gives the connected components at every threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import blockspca as bs
from blockspca._kernels import forest
from blockspca.blocks import threshold_path as path_module
from blockspca.limits import Deadline
from strategies import KINDS, symmetric_matrix


def components(A: np.ndarray, epsilon: float) -> list[list[int]]:
    """Blocks by scipy, of the 0/1 matrix (scipy drops small entries of others)."""
    graph = csr_array((np.abs(A) > epsilon).astype(np.int8))
    _, label = connected_components(graph, directed=False)
    groups = [np.flatnonzero(label == g).tolist() for g in np.unique(label)]
    return sorted(groups)


def sparse_components(A: np.ndarray):
    """`components` for a sparse matrix, whose entries are listed once."""
    i, j = np.nonzero(np.triu(A, 1))
    sizes = np.abs(A[i, j])

    def blocks(_: np.ndarray, epsilon: float) -> list[list[int]]:
        keep = sizes > epsilon
        graph = csr_array((np.ones(keep.sum()), (i[keep], j[keep])), shape=A.shape)
        _, label = connected_components(graph, directed=False)
        order = np.argsort(label, kind="stable")
        cuts = np.cumsum(np.bincount(label))[:-1]
        return sorted(group.tolist() for group in np.split(order, cuts))

    return blocks


def assert_every_threshold(A: np.ndarray, path: bs.ThresholdPath, thresholds) -> None:
    for epsilon in thresholds:
        blocks = [block.tolist() for block in path.blocks(epsilon)]
        assert blocks == components(A, epsilon)
        assert path.n_blocks(epsilon) == len(blocks)
        assert path.largest_block(epsilon) == max(map(len, blocks))
        label = path.labels(epsilon)
        between = label[:, None] != label
        largest = np.abs(A)[between].max() if between.any() else 0.0
        assert path.largest_ignored(epsilon) == largest


@given(kind=st.sampled_from(KINDS), d=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=150)
def test_partition_at_every_distinct_entry(kind, d, seed):
    A = symmetric_matrix(kind, d, np.random.default_rng(seed))
    entries = np.unique(np.abs(A))
    between = (entries[1:] + entries[:-1]) / 2
    assert_every_threshold(A, bs.threshold_path(A), [0.0, *entries, *between])


@given(size=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_threshold_for_is_the_smallest(size, seed):
    A = symmetric_matrix("integer", 10, np.random.default_rng(seed))
    path = bs.threshold_path(A)
    epsilon = path.threshold_for(size)
    assert path.largest_block(epsilon) <= size
    if epsilon > 0:
        assert path.largest_block(np.nextafter(epsilon, 0)) > size


def test_entries_below_1e_8_count():
    A = np.diag(np.ones(4)) * 1e-9
    A[0, 3] = A[3, 0] = 1e-12
    assert [b.tolist() for b in bs.partition(A, 0.0)] == [[0, 3], [1], [2]]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_does_not_matter(scale):
    A = symmetric_matrix("psd", 9, np.random.default_rng(3))
    path, scaled = bs.threshold_path(A), bs.threshold_path(A * scale)
    np.testing.assert_array_equal(path.edges, scaled.edges)


@pytest.mark.parametrize("lookahead", [2, 5, 64])
def test_rows_on_demand_equal_the_matrix_in_memory(monkeypatch, lookahead):
    monkeypatch.setattr(path_module, "LOOKAHEAD", lookahead)
    monkeypatch.setattr(path_module, "CACHE_BYTES", 8 * 70 * 2 * lookahead)
    X = np.random.default_rng(1).normal(size=(20, 70))
    from_data = bs.threshold_path(bs.Covariance.from_data(X))
    from_matrix = bs.threshold_path(np.cov(X.T))
    np.testing.assert_allclose(from_data.weights, from_matrix.weights, rtol=1e-12)
    sparse = bs.threshold_path(csr_array(np.cov(X.T)))
    np.testing.assert_array_equal(sparse.weights, from_matrix.weights)


def test_read_only_and_memory_mapped_input(tmp_path):
    A = symmetric_matrix("psd", 6, np.random.default_rng(0))
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        bs.threshold_path(mapped).weights, bs.threshold_path(A).weights
    )


def test_kernels_equal_their_python_source(monkeypatch):
    d = forest.CHUNK + 9
    A = symmetric_matrix("integer", d, np.random.default_rng(2))
    grown, absorbed = [], []
    kernels = [(k, k.py_func) for k in (forest.grow_forest, forest.absorb)]
    parts = {name: getattr(forest, name).py_func for name in ("_compare", "_update")}
    for plain in (False, True):
        if plain:  # the compiled parts cannot be called from Python
            for name, function in [*parts.items(), ("absorb", kernels[1][1])]:
                monkeypatch.setattr(forest, name, function)
        grow, absorb = (pair[plain] for pair in kernels)
        order_and_weights = np.zeros((2, d), dtype=np.int64)
        grown.append([*forest.no_edges(d), *order_and_weights])
        grow(A.view(np.int64), *grown[-1])
        state = forest.no_edges(d)
        following = absorb(A[0].view(np.int64), 0, *state)
        absorbed.append([*state, following])
    for compiled, plain in [*zip(*grown, strict=True), *zip(*absorbed, strict=True)]:
        np.testing.assert_array_equal(compiled, plain)
    for kernel, _ in kernels:
        assert len(kernel.signatures) == 1


@pytest.mark.data
@pytest.mark.parametrize("name", ["CovColon", "Eisen2Cov", "pitprops", "Reddit2000"])
def test_real_matrices(load, name):
    A = load(name)
    path = bs.threshold_path(A)
    check_blocks = components if len(A) < 1000 else sparse_components(A)
    for epsilon in [0.0, *path.distinct_thresholds()]:
        blocks = [block.tolist() for block in path.blocks(epsilon)]
        assert blocks == check_blocks(A, epsilon)


@pytest.mark.data
def test_real_data_on_demand(load):
    X = load("alon_colon")
    path = bs.threshold_path(bs.Covariance.from_data(X))
    A = np.cov(X.T)
    # thresholds between the edges, where rounding of A does not decide
    middle = (path.weights[1:] + path.weights[:-1]) / 2
    for epsilon in middle[::40]:
        blocks = [block.tolist() for block in path.blocks(epsilon)]
        assert blocks == components(A, epsilon)


def test_a_large_matrix_is_read_with_a_look_at_the_clock(monkeypatch):
    A = np.random.default_rng(4).normal(size=(90, 90))
    A += A.T
    whole = bs.threshold_path(A)
    monkeypatch.setattr(path_module, "CHECKED_FROM", 0)
    checked = bs.threshold_path(A, deadline=Deadline(1000))
    np.testing.assert_array_equal(checked.weights, whole.weights)
    np.testing.assert_array_equal(checked.edges, whole.edges)
    with pytest.raises(TimeoutError):
        bs.threshold_path(A, deadline=Deadline(0.0))


def test_rows_ahead_are_fewer_where_each_takes_long(monkeypatch):
    monkeypatch.setattr(path_module, "BATCH_SECONDS", 1e-7)
    X = np.random.default_rng(5).normal(size=(50, 40))
    cov = bs.Covariance.from_data(X)
    asked, rows = [], cov.rows
    monkeypatch.setattr(cov, "rows", lambda at: asked.append(len(at)) or rows(at))
    timed = bs.threshold_path(cov, deadline=Deadline(1000))
    assert max(asked) == 1
    np.testing.assert_allclose(timed.weights, bs.threshold_path(cov).weights)
    assert max(asked) > 1
