"""n_jobs limits every thread: of the scan, of the dual, of a proof, of BLAS."""

from __future__ import annotations

import concurrent.futures
import gc
import importlib
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.bounds.entry_dual import pairs as pairs_module
from blockspca.bounds.entry_dual import proximal
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.limits import Budget
from blockspca.model_selection.choose_each_k import choose_each_k
from blockspca.numerics import threads as _threads
from blockspca.numerics.blas import all_threads, single_threaded
from blockspca.search import schur_tree

SOURCE = Path(bs.__file__).parent
JOBLIB = "numerics.threads"  # the only module that calls joblib.Parallel


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


def makers_of(pattern: str) -> set[str]:
    """The modules in whose text something of this kind is called."""
    called = re.compile(rf"\b(?:{pattern})\(")
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in SOURCE.rglob("*.py")
        if called.search(path.read_text(encoding="utf-8"))
    }


class Pool(NamedTuple):
    """A pool that was made."""

    module: str
    threads: int


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    """The pools that were made, by whatever module."""
    made: list[Pool] = []

    def spy_in(name: str) -> type[concurrent.futures.ThreadPoolExecutor]:
        class Spy(concurrent.futures.ThreadPoolExecutor):
            def __init__(self, max_workers: int, **named: Any) -> None:
                made.append(Pool(name, max_workers))
                super().__init__(max_workers, **named)

        return Spy

    class SpyOfJoblib(joblib.Parallel):
        def __init__(self, n_jobs: int | None = None, **named: Any) -> None:
            made.append(Pool(JOBLIB, joblib.effective_n_jobs(n_jobs)))
            super().__init__(n_jobs, **named)

    for name in makers_of("ThreadPoolExecutor"):
        module = importlib.import_module(f"blockspca.{name}")
        monkeypatch.setattr(module, "ThreadPoolExecutor", spy_in(name))
    monkeypatch.setattr(joblib, "Parallel", SpyOfJoblib)
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


def test_one_job_is_one_thread(blas: Library, pools: list[Pool]) -> None:
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
    blas: Library, pools: list[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DualSettings, "batch_size", lambda self, n: 2)
    for cov, k in problems():
        bs.solve(cov, k, limits=LIMITS, n_jobs=2)
    assert {pool.threads for pool in pools} == {2}
    pools.clear()
    for cov, k in problems():
        bs.solve(cov, k, limits=LIMITS)
    assert max(pool.threads for pool in pools) == 8


def test_a_call_within_a_call_has_no_more_than_that(blas: Library) -> None:
    with _threads.allowed_threads(2):
        with _threads.allowed_threads(None):
            assert _threads.scan_threads() == _threads.most_blas_threads() == 2
        with _threads.allowed_threads(5):
            assert _threads.most_blas_threads() == 2
        assert blas.num_threads == 2
    assert blas.num_threads == 8


def test_the_estimator_keeps_to_it(blas: Library, pools: list[Pool]) -> None:
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


# -- of every kind of pool -----------------------------------------------------------

WIDE = np.random.default_rng(0).normal(size=(30, 1200))  # enough for scans in threads
TALL = np.random.default_rng(1).normal(size=(60, 8))
TALL[:, :3] += 3 * np.random.default_rng(2).normal(size=(60, 1))


def scans(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bs.solve(bs.Covariance.from_data(WIDE), 3, certify=False, n_jobs=jobs)


def forms_sparse_data(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cov = bs.Covariance.from_data(sp.csr_array(TALL))
    with _threads.allowed_threads(jobs):
        cov.formed(Budget(), None)


def ascends(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DualSettings, "batch_size", lambda self, n: 2)
    cov = bs.Covariance.from_data(WIDE[:, :60])
    with _threads.allowed_threads(jobs):
        dual_bound(cov, 4, target=0.0, nodes=20, time_limit=60.0)


def lists_pairs(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "_TILE", 10)
    cov = bs.Covariance.from_data(WIDE[:, :80])
    with _threads.allowed_threads(jobs):
        pairs_module.strong_pairs(cov, np.full(80, 0.5))


def takes_proximal_steps(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proximal, "_STRIPE", 10)
    monkeypatch.setattr(proximal, "_SMALL", 0)
    A = np.corrcoef(WIDE[:, :40].T)
    with _threads.allowed_threads(jobs):
        entry_bound(
            bs.Covariance.from_matrix(A), 5, range(5), time_limit=60.0, iterations=8
        )


def searches_branches(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schur_tree, "_SERIAL_NODES", 2)
    monkeypatch.setattr(schur_tree, "_FIRST_ENTRIES", 1)
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(45, 40)))
    bs.solve_path(cov, 6, n_jobs=jobs)


def proves_side_by_side(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(60, 80))
    X[:, :32] += 3 * np.random.default_rng(1).normal(size=(60, 1))
    cov = bs.Covariance.from_data(X, scale=True)
    bs.solve(cov, 32, limits=600, n_jobs=jobs)


def permutes(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bs.choose_k(TALL, 4, n_permutations=2, n_jobs=jobs)


MAKERS: dict[str, Callable[[int, pytest.MonkeyPatch], None]] = {
    "scan.passes": scans,
    "covariance.formed": forms_sparse_data,
    "bounds.direction_dual.search": ascends,
    "bounds.entry_dual.pairs": lists_pairs,
    "bounds.entry_dual.proximal": takes_proximal_steps,
    "search.schur_tree": searches_branches,
    "certify.side_by_side": proves_side_by_side,
    JOBLIB: permutes,
}


def test_no_kind_of_pool_is_forgotten() -> None:
    """A module that makes one has a call in the table, and joblib is called once."""
    pooling = r"\w*PoolExecutor|ThreadPool|(?:multiprocessing|mp)\.Pool|Parallel"
    assert makers_of(pooling) == set(MAKERS)
    assert makers_of("Parallel") == {JOBLIB}


@pytest.mark.parametrize("module", MAKERS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_pool_keeps_to_the_number(
    module: str,
    jobs: int,
    blas: Library,
    pools: list[Pool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    MAKERS[module](jobs, monkeypatch)
    assert max((pool.threads for pool in pools), default=1) <= jobs
    if jobs > 1:
        assert module in {pool.module for pool in pools}
    assert blas.num_threads == blas.most == 8


# -- of several items at a time ------------------------------------------------------


def allowed_here(item: int) -> list[int]:
    asked = (_threads.scan_threads, _threads.proof_threads, _threads.blas_threads)
    return [item, *(number() for number in asked)]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_each_of_several_items_has_one_thread(backend: str) -> None:
    with joblib.parallel_config(backend=backend):
        found = list(_threads.parallel_map(allowed_here, range(6), 2))
    assert found == [[item, 1, 1, 1] for item in range(6)]


def test_items_one_at_a_time_have_what_the_call_has(blas: Library) -> None:
    for jobs, threads in ((None, 8), (1, 1)):
        with _threads.allowed_threads(jobs):
            found = list(_threads.parallel_map(allowed_here, range(3), jobs))
        assert found == [[item, *3 * [threads]] for item in range(3)]
    # A single item is not one of several.
    with _threads.allowed_threads(2):
        assert list(_threads.parallel_map(allowed_here, [0], 2)) == [[0, 2, 2, 2]]


def test_what_is_done_is_told_in_the_thread_of_the_caller() -> None:
    for jobs in (1, 2):
        told: list[tuple[int, int]] = []

        def tell(done: int, told: list[tuple[int, int]] = told) -> None:
            told.append((done, threading.get_ident()))

        how: dict[str, Any] = {"in_threads": True, "tell": tell}
        found = _threads.parallel_map(abs, [-1, 2, -3], jobs, **how)
        assert list(found) == [1, 2, 3]
        assert told == [(done, threading.get_ident()) for done in (1, 2, 3)]


def test_no_thread_gives_blas_back_while_another_works(blas: Library) -> None:
    """Two calls with n_jobs=1 overlap: the first to end is not the last."""
    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with _threads.allowed_threads(1):
            entered.set()
            left.wait(10.0)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(10.0)
    with _threads.allowed_threads(1):
        left.set()
        thread.join(10.0)
        assert blas.num_threads == 1
        with all_threads(), single_threaded():
            assert blas.num_threads == 1
    assert blas.num_threads == blas.most == 8


def test_any_thread_may_limit_blas() -> None:
    """threadpoolctl has only the first thread obeyed that sets a number."""
    before = _threads.blas_threads()
    with _threads.blas_limited_to(before + 1):
        pass

    def limited() -> tuple[int, int]:
        with _threads.blas_limited_to(before + 2):
            inside = _threads.blas_threads()
        return inside, _threads.blas_threads()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(limited).result() == (before + 2, before)
        with _threads.blas_limited_to(before + 1):
            assert _threads.blas_threads() == before + 1
    assert _threads.blas_threads() == before


def test_what_others_set_meanwhile_stays(blas: Library) -> None:
    """Somebody else's limit that ends within ours was taken for what there was."""
    blas.set_num_threads(1)  # another thread is in a context of threadpoolctl
    with _threads.blas_limited_to(1):
        blas.set_num_threads(8)  # and leaves it
        with _threads.blas_limited_to(2):
            assert blas.num_threads == 2
    assert blas.num_threads == 8


def test_an_end_that_comes_late_changes_nothing_else(blas: Library) -> None:
    """Ctrl-C may cut the end of a context, which then ends when it is collected."""
    outer, inner = _threads.allowed_threads(2), _threads.blas_limited_to(1)
    outer.__enter__()
    inner.__enter__()
    assert blas.num_threads == 1
    outer.__exit__(None, None, None)
    assert blas.num_threads == 8
    with _threads.allowed_threads(4):
        del inner
        gc.collect()
        assert blas.num_threads == 4
        assert _threads.thread_count() == 4
    assert blas.num_threads == 8
    late = _threads.allowed_threads(2)
    late.__enter__()
    with _threads.allowed_threads(1):
        late.__exit__(None, None, None)
        assert _threads.thread_count() == 1
    # The number that the late one left is not that of an outer call for good.
    assert _threads._allowed.get(None) in (None, (2, 2))
    _threads._allowed.set(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_does_not_wait_for_threads_that_it_does_not_have() -> None:
    inside, done = threading.Event(), threading.Event()

    def limited() -> None:
        with _threads._lock:
            inside.set()
            done.wait()

    other = threading.Thread(target=limited)
    other.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        with _threads.blas_limited_to(1):
            os._exit(int(bool(_threads._asked.keys() - {threading.get_ident()})))
    done.set()
    other.join()
    assert os.waitpid(child, 0)[1] == 0


def test_an_interrupt_at_any_line_gives_blas_back(blas: Library) -> None:
    """Also one in the middle of giving it back, after which it would stay so."""
    lines = 0

    def interrupted_at(line: int) -> bool:
        nonlocal lines
        lines = 0

        def trace(frame: Any, event: str, _: object) -> Any:
            nonlocal lines
            if frame.f_code.co_filename != _threads.__file__:
                return None
            # Python itself looks for Ctrl-C not before a lock is let go.
            source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if event == "line" and source.strip() != "with _lock:":
                lines += 1
                if lines == line:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with _threads.blas_limited_to(2), _threads.blas_limited_to(1):
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    for line in range(1, 1000):
        ended = not interrupted_at(line)
        assert blas.num_threads == 8, line
        assert not _threads._asked, line
        if ended:
            break
    assert 30 < line == lines + 1


def test_resamples_in_threads_have_one_thread_each(
    blas: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    original = bs.Covariance.from_data

    def counted(*arguments: Any, **named: Any) -> bs.Covariance:
        seen.append(max(blas.num_threads, _threads.scan_threads()))
        return original(*arguments, **named)

    monkeypatch.setattr(bs.Covariance, "from_data", counted)
    for jobs in (1, 2):
        bs.stability(TALL, 2, n_resamples=6, n_jobs=jobs)
    whole, resamples = seen[::7], [*seen[1:7], *seen[8:]]
    assert whole == [1, 2]
    assert resamples == [1] * 12


@pytest.mark.parametrize(
    "call",
    [
        lambda jobs: bs.choose_k(WIDE, 3, n_permutations=2, n_jobs=jobs),
        lambda jobs: bs.choose_k(bs.Covariance.from_data(WIDE), 3, n_jobs=jobs),
        lambda jobs: bs.permutation_reference(
            WIDE, 3, n_permutations=2, n_jobs=jobs
        ).reference.tolist(),
        lambda jobs: bs.cross_validate(
            WIDE, 3, n_folds=2, n_jobs=jobs
        ).held_out.tolist(),
        lambda jobs: bs.choose_n_components(
            WIDE, 2, 2, n_permutations=3, significance=0.3, n_jobs=jobs
        ).reference.tolist(),
        lambda jobs: (
            choose_each_k(
                bs.Covariance.from_data(WIDE),
                WIDE,
                1,
                bs.ResidualDeflation(),
                how={"scale": False, "missing": "raise"},
                budget=Budget(bs.Limits(time=30)),
                n_jobs=jobs,
            ).ks
        ),
    ],
    ids=["k", "k of a matrix", "reference", "folds", "components", "each k"],
)
def test_a_choice_keeps_to_it_and_does_not_depend_on_it(
    call: Callable[[int], Any],
    blas: Library,
    pools: list[Pool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with joblib.parallel_config(backend="threading"):  # so that the spies see it
        one = call(1)
        assert pools == []
        two = call(2)
    assert {pool.threads for pool in pools} <= {1, 2}
    assert blas.num_threads == blas.most == 8
    assert repr(one) == repr(two)
