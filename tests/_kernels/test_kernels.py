"""The compiled kernels equal their Python sources and have one signature each."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from blockspca._kernels import columntops, rowtops, screen, selection
from blockspca._kernels import schur_tree as proof
from blockspca._kernels.tree_layout import STATISTICS
from blockspca.certify.path import certified_path
from blockspca.covariance.covariance import Covariance
from blockspca.scan import passes, tiles
from blockspca.scan.lists import scan
from blockspca.search.schur_tree import ProofTree, _outcome


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every compiled function by its Python source."""
    for module in (proof, selection, rowtops, screen):
        for name, function in inspect.getmembers(module):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)


def matrix(seed: int, d: int = 30) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((d + 4, d))
    return np.cov(X.T)


def summary(A: np.ndarray, k: int) -> list[Any]:
    steps = certified_path(Covariance.from_matrix(A), k)
    return [
        (step.support.tolist(), step.nodes, step.survivors.tolist(), step.upper_bound)
        for step in steps.values()
    ]


@pytest.mark.parametrize("seed", [0, 1])
def test_path_equals_its_python_source(
    seed: int, request: pytest.FixtureRequest
) -> None:
    A = matrix(seed, 16)
    compiled = summary(A, 4)
    request.getfixturevalue("interpreted")
    interpreted = summary(A, 4)
    for one, other in zip(compiled, interpreted, strict=True):
        assert one[:3] == other[:3]
        assert one[3] == pytest.approx(other[3], rel=1e-12)


def test_one_signature_each() -> None:
    for d in (5, 40):
        certified_path(Covariance.from_matrix(matrix(3, d)), 4)
    A = np.asfortranarray(matrix(4, 20))
    A.flags.writeable = False
    certified_path(Covariance.from_matrix(A), 4)
    certified_path(Covariance.from_data(np.random.default_rng(0).random((9, 12))), 4)
    kernels = (proof.explore, rowtops.add_rows, columntops.add_columns, screen.screen)
    for function in kernels:
        assert len(function.signatures) == 1


@pytest.mark.parametrize("tile_size", [3, 7, 100])
def test_row_tops_equal_a_sort(tile_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a matrix, whose rows are read, and of data, of which tiles are made."""
    made: list[int] = []
    pass_over = tiles.Tiles.pass_over

    def spy(self: tiles.Tiles) -> None:
        made.append(self.size)
        pass_over(self)

    monkeypatch.setattr(passes, "TILE_SIZE", tile_size)
    monkeypatch.setattr(tiles.Tiles, "pass_over", spy)
    X = np.random.default_rng(5).standard_normal((30, 23))
    X[:, 3] = 0.0
    A = np.cov(X.T)
    off_diagonal = np.abs(A)
    np.fill_diagonal(off_diagonal, 0)
    some = np.array([2, 3, 9, 11, 20])
    block = off_diagonal[np.ix_(some, some)]
    for cov in (Covariance.from_matrix(A), Covariance.from_data(X)):
        found = scan(cov, 6)
        np.testing.assert_allclose(
            found.values, -np.sort(-off_diagonal, axis=1)[:, :6], atol=1e-14
        )
        for i in range(23):
            at = found.indices[i][found.indices[i] >= 0]
            np.testing.assert_allclose(
                found.values[i, : len(at)], off_diagonal[i, at], atol=1e-14
            )
        assert found.max_abs == pytest.approx(np.abs(A).max(), rel=1e-14)
        part = scan(cov, 2, features=some)
        np.testing.assert_allclose(
            part.values, -np.sort(-block, axis=1)[:, :2], atol=1e-14
        )
    assert made == [min(tile_size, 23), min(tile_size, 5)]


def tree(A: np.ndarray, k: int, factor: float) -> ProofTree:
    """A search with τ = factor · opt(k) and the exact chain below."""
    steps = certified_path(Covariance.from_matrix(A), k)
    upper = np.full(k + 1, np.inf)
    for q in range(1, k):
        upper[q] = steps[q].upper_bound
    return ProofTree(A, k, steps[k].objective * factor, upper, 10**6)


@pytest.mark.parametrize("slice_size", [1, 2, 7])
def test_a_search_in_slices_is_the_same_search(slice_size: int) -> None:
    A = matrix(6, 25)
    whole, sliced, branched = (tree(A, 5, 1 + 1e-9) for _ in range(3))
    assert whole.advance(10**6) == proof.FINISHED
    for _ in range(10**5):
        if sliced.advance(slice_size) != proof.PAUSED:
            break
    np.testing.assert_array_equal(sliced.state[STATISTICS], whole.state[STATISTICS])
    branched.advance(0)
    total = 0
    for t in branched.open_branches():
        part = branched.branch(t)
        assert part.advance(10**6) == proof.FINISHED
        total += part.nodes
    assert total == whole.nodes


def test_a_set_above_tau_is_found() -> None:
    search = tree(matrix(7, 25), 4, 1 - 1e-9)
    assert search.advance(10**6) == proof.FOUND
    found = search.found
    block = search.matrix[np.ix_(found, found)]
    assert np.linalg.eigvalsh(block)[-1] > search.tau


def test_too_little_memory_is_said() -> None:
    search = tree(matrix(8, 25), 5, 1 + 1e-9)
    search.max_entries = 10
    search._blocks = np.empty(10)
    assert search.advance(10**6) == proof.NEEDS_MEMORY
    assert search.out_of_memory


def test_nothing_is_dropped_where_the_chain_says_nothing():
    """With τ below what k − 1 features may reach, the peeling inequality is void."""
    A = np.diag([1.0, 1.0, 0.1, 0.1])
    A[0, 1] = A[1, 0] = 0.5
    for previous in (1.3, np.inf):
        upper = np.array([-np.inf, 1.0, previous, np.inf])
        tree = ProofTree(A, 3, 1.2, upper, 10**6)
        assert _outcome(tree, tree.advance(1000)).counterexample is not None


def test_a_feature_at_tau_by_itself_hides_none():
    """τ − B_pp = 0: what it is coupled to is found, what it is not stays."""
    A = np.diag([2.0, 1.9, 1.9, 1.9])
    A[1:, 1:] += 0.3 - 0.3 * np.eye(3)  # 1, 2, 3 reach 2.5, with 0 or without
    upper = np.array([-np.inf, 2.0, np.inf, np.inf, np.inf])
    tree = ProofTree(A, 4, 2.0, upper, 10**6)
    found = _outcome(tree, tree.advance(1000)).counterexample
    assert found is not None
    assert np.linalg.eigvalsh(A[np.ix_(found, found)])[-1] > 2.0
