"""The path over k: a mapping of results with bounds, a table, a choice of k."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import blockspca as bs
import zoo


@pytest.fixture(scope="module")
def A() -> np.ndarray:
    return zoo.graded(12)


@pytest.fixture(scope="module")
def path(A) -> bs.SparsityPath:
    return bs.solve_path(A, 12)


def test_it_is_a_mapping_over_k(path, A, brute_force):
    assert list(path) == list(range(1, 13))
    assert len(path) == 12
    assert "12 of 12 proved" in repr(path)
    for k, result in path.items():
        assert result.k == k
        assert result.objective == pytest.approx(brute_force(A, k), rel=1e-9)
        assert result.status is bs.Status.OPTIMAL
    assert (np.diff(path.objectives) >= -1e-12).all()
    assert (path.upper_bounds >= path.objectives).all()
    for several in (slice(2, 4), [2, 3], (2, 3)):
        with pytest.raises(TypeError, match=r"path\[.*pass one k at a time"):
            path[several]
    with pytest.raises(KeyError, match="k = 13 is not on the path, 1 to 12"):
        path[13]


def test_smallest_k(path):
    assert path.ceiling == pytest.approx(path[12].objective)
    for fraction in (0.0, 0.5, 0.9, 0.999):
        k = path.smallest_k(fraction)
        assert path[k].objective >= fraction * path.ceiling
        assert k == 1 or path[k - 1].objective < fraction * path.ceiling
    with pytest.raises(ValueError, match="above 1"):
        path.smallest_k(90)


def test_smallest_k_that_is_not_reached(A):
    with pytest.raises(ValueError, match=r"k = 2 has 0\.\d+ of the ceiling.*k_max"):
        bs.solve_path(A, 2).smallest_k(0.99)


def test_ceiling_of_a_large_matrix():
    X = np.random.default_rng(0).normal(size=(30, 1500))
    cov = bs.Covariance.from_data(X)
    path = bs.SparsityPath({1: bs.solve(cov, 1, certify=False)}, cov)
    expected = np.linalg.eigvalsh(cov.gram(np.ones(1500)))[-1]
    assert path.ceiling == pytest.approx(expected)


def test_to_frame(path):
    frame = path.to_frame()
    assert frame.index.tolist() == list(range(1, 13))
    assert (frame["status"] == "optimal").all()
    assert len(frame.loc[3, "features"]) == 3


def test_bad_k_max(A):
    with pytest.raises(ValueError, match="k_max = 13 is outside"):
        bs.solve_path(A, 13)


def test_results_are_made_once_and_keep(path):
    assert path[3] is path[3]
    again = pickle.loads(pickle.dumps(path))
    assert list(again) == list(path)
    for k in (1, 7, 12):
        assert again[k].objective == path[k].objective
        assert again[k].certificate == path[k].certificate
        assert [step.k for step in path[k].certificate.steps] == list(range(1, k + 1))


def test_a_look_at_a_path_makes_no_results():
    """Each result has a vector and a chain of claims; of a long path they stay lazy."""
    path = bs.solve_path(np.cov(np.random.default_rng(0).normal(size=(12, 40))), 5)
    assert repr(path) == "SparsityPath(k = 1..5, 5 of 5 proved)"
    assert path._results._made == {}
    other = type(path)(dict(path), path._cov)  # of results that exist
    assert repr(other) == repr(path)
