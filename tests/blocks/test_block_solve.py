"""Algorithm 3 in practice: parallel runs, skipped blocks, failures, limits, Ctrl-C."""

from __future__ import annotations

import functools
import time
import warnings

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

import blockspca as bs
from blockspca.blocks.block_solve import checked_support
from blockspca.result import BlockStatus
from blockspca.solvers import Exhaustive, Greedy, Solution, SolverError
from strategies import problems

# The framework of the paper, without the proof on the original matrix.
solve = functools.partial(bs.solve, certify=False)


def blocks_of(*sizes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    blocks = []
    for size in sizes:
        # one common factor, so that every block's bound is above every variance
        X = rng.normal(size=(50, size)) + 2 * rng.normal(size=(50, 1))
        blocks.append(X.T @ X / 50)
    return block_diag(*blocks)


class Recorder:
    """Greedy, which notes the blocks it was given; fails on those of some sizes."""

    name = "recorder"
    guarantee = Greedy.guarantee
    requires_psd = False

    def __init__(self, fail_on: tuple[int, ...] = (), interrupt_on: int = 0) -> None:
        self.fail_on = fail_on
        self.interrupt_on = interrupt_on
        self.calls: list[int] = []

    def solve(self, A, k, *, limits, incumbent=None, rng=None) -> Solution:
        self.calls.append(len(A))
        if len(A) in self.fail_on:
            raise RuntimeError("no luck")
        if len(A) == self.interrupt_on:
            raise KeyboardInterrupt
        return Greedy().solve(A, k, limits=limits)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_answer_does_not_depend_on_n_jobs(backend):
    A = blocks_of(*range(3, 12), seed=4)
    solver = bs.solvers.TruncatedPower()
    alone = solve(A, 3, solver=solver, threshold=0.0, n_jobs=1)
    with joblib.parallel_config(backend=backend):
        for n_jobs in (2, 4):
            result = solve(A, 3, solver=solver, threshold=0.0, n_jobs=n_jobs)
            np.testing.assert_array_equal(result.x, alone.x)
            assert result.objective == alone.objective
            assert result.upper_bound == alone.upper_bound
            assert result.blocks.statuses == alone.blocks.statuses
            assert result.nodes == alone.nodes


def test_a_function_is_a_solver_also_in_parallel():
    A = blocks_of(4, 5, 6, 7)

    def two_largest_variances(A, k):
        x = np.zeros(len(A))
        x[np.argsort(-np.diag(A))[:k]] = 1.0
        return x

    alone = solve(A, 2, solver=two_largest_variances, threshold=0.0)
    together = solve(A, 2, solver=two_largest_variances, threshold=0.0, n_jobs=2)
    assert alone.solver == "two_largest_variances"
    assert together.objective == alone.objective


def test_blocks_that_cannot_win_are_skipped():
    A = block_diag(100 * blocks_of(5), blocks_of(4), blocks_of(6), blocks_of(7))
    solver = Recorder()
    result = solve(A, 2, solver=solver, threshold=0.0)
    assert result.blocks.statuses[0] is BlockStatus.FEASIBLE
    assert result.blocks.count(BlockStatus.SKIPPED) == 3
    assert solver.calls == [5]
    skipped = [b for b in result.blocks if b.status is BlockStatus.SKIPPED]
    assert all(b.upper_bound <= result.objective for b in skipped)


def test_pca_case_when_k_is_at_least_the_block_size():
    A = blocks_of(3, 4)
    solver = Recorder()
    result = solve(A, 4, solver=solver, threshold=0.0)
    assert solver.calls == []
    largest = max(np.linalg.eigvalsh(A[:3, :3])[-1], np.linalg.eigvalsh(A[3:, 3:])[-1])
    assert result.objective == pytest.approx(largest)
    assert result.status is bs.Status.OPTIMAL


def test_a_failing_solver_names_the_block_and_keeps_the_others():
    A = block_diag(blocks_of(5), blocks_of(6), blocks_of(7))
    with pytest.warns(UserWarning, match=r"'recorder' failed on block 1 .*6 features"):
        result = solve(A, 2, solver=Recorder(fail_on=(6,)), threshold=0.0)
    assert result.blocks.statuses[1] is BlockStatus.FAILED
    assert "RuntimeError: no luck" in result.blocks[1].message
    assert "block 1" in result.message
    assert np.isfinite(result.upper_bound)
    healthy = [b for b in result.blocks if b.status is BlockStatus.FEASIBLE]
    assert len(healthy) >= 1
    assert result.objective == max(b.objective for b in healthy)


def test_a_solver_that_fails_everywhere_is_an_error():
    A = blocks_of(5, 6, 2)
    with pytest.raises(SolverError, match="solved no block"):
        solve(A, 3, solver=Recorder(fail_on=(5, 6)), threshold=0.0)


def test_a_bound_below_the_objective_is_refused():
    class Boaster(Recorder):
        def solve(self, A, k, **kwargs) -> Solution:
            return Solution(super().solve(A, k, **kwargs).x, upper_bound=0.0)

    with pytest.raises(SolverError, match="claims the upper bound 0, below its"):
        solve(blocks_of(5), 2, solver=Boaster(), threshold=0.0)


def test_other_blocks_count_even_if_the_solver_never_succeeds():
    A = blocks_of(2, 3, 5)
    with pytest.raises(SolverError, match=r"block 2.*solved no block"):
        solve(A, 3, solver=Recorder(fail_on=(5,)), threshold=0.0)


def test_earlier_thresholds_count_if_the_solver_fails_at_a_later_one():
    class TwoThresholds:
        def search(self, cov, k, path, solve_at):
            first = solve_at(0.5)
            solve_at(0.0)
            return first, ()

    A = blocks_of(4, 5)
    A[0, 8] = A[8, 0] = 0.4  # one block of 9 at ε = 0
    with pytest.warns(UserWarning, match=r"block 0 at ε = 0 .*The others count"):
        result = solve(A, 2, solver=Recorder(fail_on=(9,)), threshold=TwoThresholds())
    assert result.threshold == 0.5
    assert result.guarantee is not None


def test_a_solver_may_write_to_its_matrix():
    def careless(A, k):
        x = Greedy().solve(A, k, limits=bs.Limits()).x
        A[:] = 0
        return x

    A = blocks_of(5, 6)
    assert solve(A, 2, solver=careless, threshold=0.0).objective == pytest.approx(
        solve(A, 2, solver=Greedy(), threshold=0.0).objective
    )


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (np.ones(5), "a Solution is needed"),
        (Solution(np.eye(5)[0], status="done"), "'done' is not a valid Status"),
        (Solution(np.eye(5)[0], nodes=None), "raised TypeError"),
        (Solution(np.eye(5)[0], upper_bound=np.nan), "claims the upper bound nan"),
    ],
)
def test_solutions_that_make_no_sense(returned, words):
    class Odd(Recorder):
        def solve(self, A, k, **kwargs):
            return returned

    with pytest.raises(SolverError, match=rf"'recorder' failed on block 0.*{words}"):
        solve(blocks_of(5), 2, solver=Odd(), threshold=0.0)


def test_a_solver_that_cannot_be_sent_to_a_worker():
    import threading

    solver = Recorder()
    solver.lock = threading.Lock()
    A = blocks_of(5, 6, 7)
    with pytest.warns(UserWarning, match="could not be run with n_jobs = 2"):
        solve(A, 2, solver=solver, threshold=0.0, n_jobs=2)
    assert solve(A, 2, solver=solver, threshold=0.0).objective > 0


def test_a_solver_that_exits_has_failed():
    def leave(A, k):
        raise SystemExit(1)

    with pytest.raises(SolverError, match="raised SystemExit"):
        solve(blocks_of(5), 2, solver=leave, threshold=0.0)


def test_interrupt_between_two_thresholds():
    class Interrupted:
        def search(self, cov, k, path, solve_at):
            solve_at(0.5)
            raise KeyboardInterrupt

    result = solve(blocks_of(4, 5), 2, threshold=Interrupted())
    assert result.status is bs.Status.INTERRUPTED
    assert [visit.epsilon for visit in result.visits] == [0.5]


def test_no_promise_when_stopped():
    A = blocks_of(9, 10)
    free = solve(A, 3, solver=Exhaustive(), threshold=0.0)
    assert free.guarantee is not None
    for limits in (bs.Limits(nodes=1), bs.Limits(memory=1000)):
        stopped = solve(A, 3, solver=Exhaustive(), threshold=0.0, limits=limits)
        assert stopped.guarantee is None


def test_optimal_bounds_have_room_for_rounding():
    M = np.array(
        [
            [-38940250.78586797, 48761480.159246266],
            [48761480.159246266, -61059749.21413104],
        ]
    )
    result = solve(M, 2)
    exact = 9.99586e-07  # in 60 digits
    assert result.upper_bound >= exact
    assert result.upper_bound - exact < 1e-5


def test_duplicated_features_in_sparse_data():
    import scipy.sparse as sp

    for seed in range(6):
        column = np.random.default_rng(seed).random((20, 1)) * 0.7
        cov = bs.Covariance.from_data(sp.csr_array(np.tile(column, (1, 60))))
        assert solve(cov, 3).objective > 0


@pytest.mark.parametrize("scale", [1e-305, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("solver", [Greedy(), bs.solvers.TruncatedPower()])
def test_extreme_scales(scale, solver):
    A = blocks_of(6, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = solve(A, 3, solver=solver)
        scaled = solve(A * scale, 3, solver=solver)
    assert scaled.support.tolist() == plain.support.tolist()
    assert scaled.objective / scale == pytest.approx(plain.objective)
    assert len(scaled.visits) == len(plain.visits)
    noise = bs.estimate_noise(A, n_subsets=5)
    assert bs.estimate_noise(A * scale, n_subsets=5) / scale == pytest.approx(noise)


def test_results_are_values_that_do_not_change():
    result = solve(blocks_of(4, 5), 2)
    assert result != solve(blocks_of(4, 5), 2)  # identity, not elementwise comparison
    with pytest.raises(ValueError, match="read-only"):
        result.x[0] = 9


def test_interrupt_returns_the_incumbent():
    A = blocks_of(5, 6, 7, 8)
    A[11:18, 11:18] *= 3  # the block that interrupts is tried in the first batch
    solver = Recorder(interrupt_on=7)
    result = solve(A, 2, solver=solver, threshold=0.0)
    assert result.status is bs.Status.INTERRUPTED
    assert BlockStatus.INTERRUPTED in result.blocks.statuses
    assert result.objective >= np.diag(A).max()
    assert result.upper_bound >= solve(A, 2, threshold=0.0).objective
    at_once = solve(blocks_of(7), 2, solver=solver, threshold=0.0)
    assert at_once.status is bs.Status.INTERRUPTED
    assert len(at_once.support) == 1


@pytest.mark.parametrize("solver", [Exhaustive(), bs.solvers.TruncatedPower()])
def test_interrupt_inside_our_solvers(solver, monkeypatch):
    from blockspca.solvers import exhaustive

    A = blocks_of(12)
    calls = {"n": 0}
    original = exhaustive.symmetric_eigenvalues

    def interrupted(*args, **kwargs):
        calls["n"] += 1
        if calls["n"] == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr("blockspca.solvers.exhaustive.WORK_AT_ONCE", 10 * 3**3)
    monkeypatch.setattr(exhaustive, "symmetric_eigenvalues", interrupted)
    monkeypatch.setattr(
        "blockspca.solvers.truncated_power.power_iteration",
        lambda *args, **options: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    result = solve(A, 3, solver=solver, threshold=0.0)
    assert result.status is bs.Status.INTERRUPTED
    assert np.isfinite(result.upper_bound)


def test_interrupt_before_the_first_block(monkeypatch):
    def interrupted(cov, deadline, memory):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.blocks.framework.threshold_path", interrupted)
    result = solve(np.diag([1.0, 3.0, 2.0]), 2)
    assert result.status is bs.Status.INTERRUPTED
    assert result.support.tolist() == [1]
    assert result.upper_bound == pytest.approx(3.0)  # the largest eigenvalue


def test_time_limit_before_the_first_block():
    X = np.random.default_rng(0).normal(size=(5, 400))
    cov = bs.Covariance.from_data(X)
    result = solve(cov, 2, limits=bs.Limits(time=0.0))
    assert result.status is bs.Status.TIME_LIMIT
    assert result.support.tolist() == [np.argmax(cov.diagonal())]


def test_time_limit():
    A = blocks_of(60)
    limits = bs.Limits(time=0.3)
    result = solve(A, 10, solver=Exhaustive(), threshold=0.0, limits=limits)
    assert result.status is bs.Status.TIME_LIMIT
    assert result.upper_bound > result.objective


def test_time_limit_between_blocks():
    A = blocks_of(*range(5, 15))

    def slow(A, k):
        time.sleep(0.05)
        return np.eye(len(A))[0]

    result = solve(A, 3, solver=slow, threshold=0.0, limits=bs.Limits(time=0.12))
    assert result.status is bs.Status.TIME_LIMIT
    assert BlockStatus.TIME_LIMIT in result.blocks.statuses


@pytest.mark.parametrize("nodes", [1, 100, 1000])
def test_node_limit(nodes):
    A = blocks_of(14, 15)
    limits = bs.Limits(nodes=nodes)
    result = solve(A, 5, solver=Exhaustive(), threshold=0.0, limits=limits)
    assert result.status is bs.Status.NODE_LIMIT
    assert result.nodes <= nodes
    searched = solve(A, 5, solver=Exhaustive(), limits=limits)
    assert searched.nodes <= nodes + 1


def test_nodes_are_not_wasted():
    A = blocks_of(14, 5)
    needed = solve(A, 5, solver=Exhaustive(), threshold=0.0).nodes
    limits = bs.Limits(nodes=needed + 1)
    result = solve(A, 5, solver=Exhaustive(), threshold=0.0, limits=limits)
    assert result.status is bs.Status.OPTIMAL


def test_the_wanted_gap_stops_the_search():
    A = blocks_of(14, 15)
    A += 20 * np.eye(len(A))  # which makes every gap small
    every = solve(A, 5, solver=Exhaustive(), threshold=0.0)
    loose = solve(A, 5, solver=Exhaustive(), threshold=0.0, limits=bs.Limits(gap=0.99))
    assert loose.status is bs.Status.GAP_LIMIT
    assert loose.nodes < every.nodes
    assert loose.upper_bound >= every.objective


def test_memory_limit_leaves_out_the_blocks_that_do_not_fit():
    A = blocks_of(40, 4)
    result = solve(A, 2, threshold=0.0, limits=bs.Limits(memory=10_000))
    assert result.status is bs.Status.MEMORY_LIMIT
    assert result.blocks.statuses == (BlockStatus.MEMORY_LIMIT, BlockStatus.FEASIBLE)
    assert "limits.memory" in result.blocks[0].message


def test_gap_limit():
    A = block_diag([[2.0, 1.0], [1.0, 2.0]], [[2.9]])
    A[0, 2] = A[2, 0] = 0.3
    threshold = bs.FixedThreshold(0.5)
    loose = solve(A, 2, threshold=threshold, limits=bs.Limits(gap=0.1))
    tight = solve(A, 2, threshold=threshold, limits=bs.Limits(gap=0.01))
    assert loose.status is bs.Status.GAP_LIMIT
    assert loose.gap <= 0.1
    assert tight.status is bs.Status.FEASIBLE


@given(problems(max_features=7), st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_permutation_sign_and_scale(problem, fraction):
    A, k = problem
    rng = np.random.default_rng(0)
    order = rng.permutation(len(A))
    signs = rng.choice([-1.0, 1.0], size=len(A))
    epsilon = fraction * np.abs(A).max()
    changed = 4.0 * (A * np.outer(signs, signs))[np.ix_(order, order)]
    first = solve(A, k, solver=Exhaustive(), threshold=epsilon)
    second = solve(changed, k, solver=Exhaustive(), threshold=4.0 * epsilon)
    assert second.objective == pytest.approx(4.0 * first.objective, abs=1e-9)
    assert second.upper_bound == pytest.approx(4.0 * first.upper_bound, abs=1e-9)


def test_pairwise_covariance_may_be_indefinite_and_is_solved():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 10))
    X[rng.random(X.shape) < 0.3] = np.nan
    cov = bs.Covariance.from_data(X, missing="pairwise")
    assert np.linalg.eigvalsh(cov.rows(slice(None)))[0] < 0
    result = solve(cov, 3, solver=Exhaustive(), threshold=0.0)
    assert result.status is bs.Status.OPTIMAL


def test_progress_is_reported():
    seen = []
    solve(blocks_of(4, 5), 2, threshold=0.0, progress=seen.append)
    assert [event.done for event in seen] == [1, 2]
    assert seen[-1].total == 2
    solve(blocks_of(4, 5), 2, threshold=0.0, progress=True)


def test_result_speaks():
    A = blocks_of(4, 5)
    names = [f"f{i}" for i in range(9)]
    cov = bs.Covariance.from_matrix(A, feature_names=names)
    result = solve(cov, 2, solver=Exhaustive(), threshold=0.0)
    assert result.features == list(result.loadings)
    assert set(result.features) == {names[i] for i in result.support}
    assert next(iter(result.loadings.values())) == max(result.x)
    text = str(result)
    assert "optimal" in text
    assert result.features[0] in text
    assert repr(result.blocks) == "Blocks(2 blocks, largest 5)"
    assert sum(b.size for b in result.blocks) == 9


def test_status_values_are_stable():
    assert [s.value for s in bs.Status] == [
        "optimal",
        "gap_limit",
        "time_limit",
        "node_limit",
        "memory_limit",
        "interrupted",
        "feasible",
    ]
    assert str(bs.Status.OPTIMAL) == "optimal"
    assert {s.value for s in bs.Status} < {s.value for s in BlockStatus}


def test_checked_support_accepts_what_is_right():
    assert checked_support([0, -2, 0, 1], 4, 2).tolist() == [1, 3]


def test_no_warning_in_an_ordinary_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = solve(blocks_of(4, 5), 2)
    assert result.message == ""
    assert result.objective <= result.upper_bound < np.inf


def test_no_worker_is_started_that_would_begin_after_the_end(monkeypatch):
    def refused(*arguments, **named):
        raise AssertionError("a worker was started")

    monkeypatch.setattr(joblib, "Parallel", refused)
    A = np.diag(np.arange(1.0, 13.0))
    for i in range(0, 12, 3):
        A[i : i + 3, i : i + 3] += 0.5
    for jobs in (1, 2):
        found = bs.solve(
            A,
            2,
            threshold=0.1,
            certify=False,
            n_jobs=jobs,
            limits=bs.Limits(time=1),
        )
        assert found.objective == pytest.approx(12.5, rel=0.05)


@pytest.mark.parametrize("tiny", [1e-20, 1e-300])
def test_entries_between_blocks_count_also_where_they_are_less_than_an_ulp(tiny):
    """λmax = 1 + tiny, for which the next number above 1 is the least bound."""
    A = np.array([[1.0, tiny], [tiny, 1.0]])
    found = bs.solve(A, 2, threshold=0.5, certify=False)
    assert 1.0 < found.upper_bound < 1.0 + 1e-15
    assert found.status is bs.Status.OPTIMAL
    alone = bs.solve(np.eye(2), 2, threshold=0.5, certify=False)
    assert alone.upper_bound == 1.0
