"""n_jobs limits every thread: of the scan, of the dual, of a proof, of BLAS."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bounds.direction_dual import search as dual_bound_module
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.numerics import threads as _threads
from blockspca.numerics.blas import all_threads, single_threaded
from blockspca.scan import passes as _scan_passes
from blockspca.search import schur_tree as proof_tree


class Library:
    """A BLAS with as many threads as it is told to have."""

    def __init__(self, threads: int) -> None:
        self.num_threads = threads
        self.most = 0

    def set_num_threads(self, threads: int) -> None:
        self.num_threads = threads
        self.most = max(self.most, threads)


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Library:
    """A BLAS with eight threads, on a machine with eight cores."""
    library = Library(8)
    monkeypatch.setattr(_threads, "_found", lambda: ([library], 8))
    monkeypatch.setattr(
        _threads.os, "sched_getaffinity", lambda pid: range(8), raising=False
    )
    return library


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads the pools that were made may use."""
    made: list[int] = []

    class Spy(concurrent.futures.ThreadPoolExecutor):
        def __init__(self, max_workers: int, **named: Any) -> None:
            made.append(max_workers)
            super().__init__(max_workers, **named)

    for module in (_scan_passes, dual_bound_module, proof_tree):
        monkeypatch.setattr(module, "ThreadPoolExecutor", Spy)
    return made


def problems() -> list[tuple[bs.Covariance, int]]:
    rng = np.random.default_rng(0)
    sparse = sp.random_array((90, 1500), density=0.02, random_state=rng, format="csr")
    dense = rng.normal(size=(160, 300)) * np.linspace(2, 0.5, 300)
    return [
        (bs.Covariance.from_data(sparse), 4),
        (bs.Covariance.from_data(dense), 40),
        (bs.Covariance.from_matrix(np.cov(dense[:, :60].T)), 5),
    ]


LIMITS = bs.Limits(nodes=40, gap=0.2)


def test_one_job_is_one_thread(blas: Library, pools: list[int]) -> None:
    for cov, k in problems():
        bs.solve(cov, k, limits=LIMITS, n_jobs=1)
        bs.solve_path(cov, 4, limits=LIMITS, n_jobs=1)
        bs.solve_components(cov, 3, 2, limits=LIMITS, n_jobs=1)
    assert pools == []
    # Set to one when a call begins, and given back at its end.
    assert blas.num_threads == blas.most == 8
    seen = []
    with _threads.allowed_threads(1):
        seen.append(blas.num_threads)
        with single_threaded(), all_threads():
            seen.append(blas.num_threads)
        seen.append(_threads.scan_threads())
        seen.append(_threads.thread_count())
    assert seen == [1, 1, 1, 1]


def test_blas_has_no_more_threads_at_any_time(
    blas: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    for name in ("matvec", "submatrix", "rows", "columns"):
        original = getattr(bs.Covariance, name)

        def counted(*arguments: Any, original: Any = original, **named: Any) -> Any:
            seen.append(blas.num_threads)
            return original(*arguments, **named)

        monkeypatch.setattr(bs.Covariance, name, counted)
    for jobs in (1, 2):
        seen.clear()
        for cov, k in problems():
            bs.solve(cov, k, limits=LIMITS, n_jobs=jobs)
        assert seen
        assert max(seen) <= jobs


def test_two_jobs_are_two_threads_and_none_is_all(
    blas: Library, pools: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DualSettings, "batch_size", lambda self, n: 2)
    for cov, k in problems():
        bs.solve(cov, k, limits=LIMITS, n_jobs=2)
    assert set(pools) == {2}
    pools.clear()
    for cov, k in problems():
        bs.solve(cov, k, limits=LIMITS)
    assert max(pools) == 8


def test_a_call_within_a_call_has_no_more_than_that(blas: Library) -> None:
    with _threads.allowed_threads(2):
        with _threads.allowed_threads(None):
            assert _threads.scan_threads() == _threads.most_blas_threads() == 2
        with _threads.allowed_threads(5):
            assert _threads.most_blas_threads() == 2
        assert blas.num_threads == 2
    assert blas.num_threads == 8


def test_the_estimator_keeps_to_it(blas: Library, pools: list[int]) -> None:
    X = np.random.default_rng(0).normal(size=(30, 1200))
    bs.SparsePCA(n_components=2, k=3, n_jobs=1, limits=LIMITS).fit(X)
    assert pools == []


@pytest.mark.parametrize("jobs", [2, -1])
def test_the_answer_does_not_depend_on_it(jobs: int) -> None:
    for cov, k in problems():
        one = bs.solve(cov, k, limits=LIMITS, n_jobs=1)
        other = bs.solve(cov, k, limits=LIMITS, n_jobs=jobs)
        default = bs.solve(cov, k, limits=LIMITS)
        for found in (other, default):
            assert found.support.tolist() == one.support.tolist()
            assert found.objective == pytest.approx(one.objective, rel=1e-12)
            assert found.upper_bound == pytest.approx(one.upper_bound, rel=1e-9)
            assert found.status is one.status
