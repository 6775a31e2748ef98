"""Selection frequencies."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.certificate import restated
from blockspca.inspection.stability import wilson


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    X[:, :3] += 3 * rng.normal(size=(60, 1))
    return X


@pytest.mark.parametrize("method", ["bootstrap", "subsample"])
def test_a_factor_is_found_again(X: np.ndarray, method: str) -> None:
    found = bs.stability(X, 3, n_resamples=12, method=method)  # type: ignore[arg-type]
    assert found.n_resamples == 12
    assert found.proved == 1.0
    np.testing.assert_array_equal(found.frequency[:3], 1.0)
    assert found.stable().tolist() == [0, 1, 2]
    assert found.overlap == pytest.approx(1.0)
    assert "resamples" in str(found)


def test_the_same_for_any_number_of_jobs_and_for_sparse_data(X: np.ndarray) -> None:
    one = bs.stability(X, 4, n_resamples=8, rng=3)
    two = bs.stability(X, 4, n_resamples=8, rng=3, n_jobs=2)
    sparse = bs.stability(sp.csr_array(X), 4, n_resamples=8, rng=3)
    np.testing.assert_array_equal(one.frequency, two.frequency)
    np.testing.assert_array_equal(one.frequency, sparse.frequency)
    assert one.frequency.sum() == pytest.approx(4.0)


def test_progress_constraints_and_components(X: np.ndarray) -> None:
    told: list[tuple[int, int]] = []
    found = bs.stability(
        X,
        2,
        n_resamples=5,
        n_components=2,
        constraints=bs.Constraints(exclude=[0]),
        progress=lambda done, total: told.append((done, total)),
    )
    assert found.frequency[0] == 0
    assert told == [(i, 5) for i in range(1, 6)]
    assert found.frequency.sum() == pytest.approx(4.0)


def test_a_k_for_each_component(X: np.ndarray) -> None:
    found = bs.stability(X, [4, 2], n_resamples=5, n_components=2)
    assert found.k == (4, 2)
    assert all(len(support) <= 6 for support in found.supports)
    assert "k = 4, 2;" in str(found)
    with pytest.raises(ValueError, match=r"k has 2 value\(s\) for n_components = 3"):
        bs.stability(X, [4, 2], n_resamples=5, n_components=3)


def test_no_time_is_an_error_and_so_are_few_samples(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match="did not suffice"):
        bs.stability(X, 2, n_resamples=3, limits=bs.Limits(time=0))
    with pytest.raises(ValueError, match="at least 4"):
        bs.stability(X[:3], 2)
    with pytest.raises(ValueError, match="is not known"):
        bs.stability(X, 2, method="jackknife")  # type: ignore[arg-type]


def test_wilson_by_its_definition() -> None:
    """The ends are the shares p at which the count is 1.96 deviations from m p."""
    counts, m = np.array([0, 3, 20]), 20
    low, high = wilson(counts, m)
    assert low[0] == 0
    assert high[2] == 1
    for p in (low[1], high[1]):
        deviation = np.sqrt(m * p * (1 - p))
        assert abs(counts[1] - m * p) == pytest.approx(1.959963984540054 * deviation)


def test_an_interrupted_resample_ends_all(monkeypatch):
    """Its unfinished set was counted, and the others went on."""
    module = importlib.import_module("blockspca.inspection.stability")
    whole, calls = module.solve_components, []

    def interrupted(cov, k, n_components, **options):
        calls.append(k)
        found = whole(cov, k, n_components, **options)
        if len(calls) < 3:
            return found
        last = restated(found.results[0], status=bs.Status.INTERRUPTED)
        return replace(found, results=(last,))

    monkeypatch.setattr(module, "solve_components", interrupted)
    X = np.random.default_rng(0).normal(size=(20, 6))
    with pytest.warns(UserWarning, match="interrupted: 2 of 10 resamples") as said:
        found = bs.stability(X, 2, n_resamples=10)
    assert len(calls) == 3
    assert len(said) == 1
    assert found.interrupted
    assert found.n_resamples == 2
    with pytest.raises(KeyboardInterrupt):  # nothing is known
        bs.stability(X, 2, n_resamples=10)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nodes_are_for_all_resamples_together(monkeypatch, n_jobs):
    """Each had the full limit."""
    module = importlib.import_module("blockspca.inspection.stability")
    whole, used = module.solve_components, []

    def counted(*arguments, **options):
        assert options["limits"].nodes <= 5
        found = whole(*arguments, **options)
        used.append(sum(result.nodes for result in found.results))
        return found

    monkeypatch.setattr(module, "solve_components", counted)
    X = np.random.default_rng(0).normal(size=(30, 20))
    limits = bs.Limits(nodes=50)
    found = bs.stability(X, 6, n_resamples=10, limits=limits, n_jobs=n_jobs)
    assert sum(used[:-n_jobs]) < 50  # a search looks at its limit between slices
    assert found.n_resamples == len(used) < 10


def test_the_k_that_was_used_is_kept(X: np.ndarray) -> None:
    """A share was kept as 0, and an array was an error after all resamples."""
    assert bs.stability(X, 0.5, n_resamples=2).k == 5
    found = bs.stability(X, np.array([4, 2]), n_resamples=2, n_components=2)
    assert found.k == (4, 2)
    assert bs.stability(X, np.int64(3), n_resamples=2).k == 3


@pytest.mark.parametrize("k", ["a", 99, None, np.array([[1, 2]])])
def test_k_is_checked_before_any_resample(monkeypatch, X, k) -> None:
    module = importlib.import_module("blockspca.inspection.stability")
    monkeypatch.setattr(module, "_in_time", None)
    with pytest.raises((TypeError, ValueError), match="k"):
        bs.stability(X, k)
