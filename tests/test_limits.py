"""Limits are promises: on time by a clock of the test's own, on nodes by counting."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import blockspca as bs
from blockspca import limits
from blockspca.bounds import best as best_bound
from blockspca.bounds.direction_dual import ascent as dual_ascent
from blockspca.bounds.direction_dual import problem as dual_problem
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.certify import path as certified_path
from blockspca.heuristics import truncated_power as large_k
from blockspca.limits import (
    DEFAULT_LIMITS,
    Budget,
    Deadline,
    LimitReached,
    Limits,
    StepLimitReached,
    as_limits,
    stopped_clocks,
)
from blockspca.numerics import cost as _cost
from blockspca.numerics import upper_eigenvalues as eigenvalues
from blockspca.status import Status


@dataclass
class Clock:
    """A clock that stands still unless it is told to go on."""

    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now

    def after(self, seconds: float, function: Callable[..., Any]) -> Any:
        """Return the function, each call of which takes so long."""

        def slow(*arguments: Any, **named: Any) -> Any:
            self.now += seconds
            return function(*arguments, **named)

        return slow


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    fake = SimpleNamespace(perf_counter=clock.perf_counter)
    for module in (limits, certified_path, dual_ascent):
        monkeypatch.setattr(module, "time", fake)
    return clock


def data(n: int, d: int, seed: int = 0) -> bs.Covariance:
    return bs.Covariance.from_data(np.random.default_rng(seed).normal(size=(n, d)))


# -- the clock ------------------------------------------------------------------------


def test_a_deadline_tells_what_it_affords(clock: Clock) -> None:
    deadline = Deadline(10.0)
    assert deadline.affords(10.0)
    assert not deadline.affords(10.1)
    clock.now = 9.0
    assert deadline.affords_step()  # of unknown length
    deadline.step_took(2.0)
    assert not deadline.affords_step()
    for _ in range(3):  # a long step is forgotten after a few short ones
        deadline.step_took(0.1)
    assert deadline.affords_step()
    clock.now = 10.0
    assert deadline.passed()
    assert not deadline.affords_step()
    assert Deadline(None).affords(np.inf)


def test_a_budget_says_which_limit_ends_a_run(clock: Clock) -> None:
    budget = Budget(bs.Limits(time=10.0, nodes=5, gap=0.1, memory=800))
    budget.check()
    assert budget.max_entries == 100
    assert budget.share(0.5, 3.0) == 3.0
    budget.nodes, clock.now = 3, 4.0
    assert budget.left() == bs.Limits(time=6.0, nodes=2, gap=0.1, memory=800)
    assert budget.share(0.5, 9.0) == 3.0
    budget.nodes = 7
    assert budget.nodes_left == 0
    assert budget.left().nodes == 1  # whoever comes next looks at one node at least
    with pytest.raises(LimitReached) as reached:
        budget.check()
    assert reached.value.status is bs.Status.NODE_LIMIT
    clock.now = 10.0
    assert budget.stop_reason() is bs.Status.TIME_LIMIT
    assert Budget().left() == bs.Limits()
    assert Budget().share(0.5, 9.0) == 9.0


def test_a_step_has_half_of_the_time_and_the_last_one_all(clock: Clock) -> None:
    budget = Budget(bs.Limits(time=8.0))
    budget.start_step(last=False)
    clock.now = 3.9
    budget.check()
    clock.now = 4.0
    with pytest.raises(StepLimitReached):
        budget.check()
    budget.start_step(last=True)
    clock.now = 7.9
    budget.check()
    with pytest.raises(LimitReached):
        Budget(bs.Limits(time=0.0)).wait_for(lambda *names, seconds: False, "kernel")


def test_power_steps_end_within_a_product_of_the_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cov = data(30, 80)
    products = []
    matvec = clock.after(1.0, cov.matvec)
    monkeypatch.setattr(cov, "matvec", lambda x: products.append(1) or matvec(x))
    for seconds in (1.0, 5.0, 20.0):
        products.clear()
        found = large_k.truncated_power(cov, 9, limits=bs.Limits(time=seconds))
        assert len(products) <= seconds + 1
        assert found.status is bs.Status.TIME_LIMIT
        assert 1 <= np.count_nonzero(found.x) <= 9


def test_the_dual_ends_within_a_step_of_the_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cov = data(8, 14)
    steps = []
    relax = clock.after(1.0, dual_ascent.relax)

    def counted(*arguments: Any) -> Any:
        steps.append(1)
        return relax(*arguments)

    monkeypatch.setattr(dual_ascent, "relax", counted)
    for seconds in (3.0, 10.0, 40.0):
        steps.clear()
        bound = dual_bound(cov, 4, target=0.0, time_limit=seconds, nodes=10_000)
        assert 1 <= len(steps) <= seconds + 1
        assert bound.value >= np.diagonal(cov.submatrix(slice(None))).max()


def test_the_path_ends_within_a_slice_of_the_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of the tree take a second each: no more of them than seconds."""
    from blockspca.search.schur_tree import ProofTree

    slices = []
    advance = clock.after(1.0, ProofTree.advance)

    def counted(tree: ProofTree, nodes: int) -> int:
        slices.append(1)
        return advance(tree, nodes)

    monkeypatch.setattr(ProofTree, "advance", counted)
    cov = bs.Covariance.from_matrix(
        np.cov(np.random.default_rng(1).normal(size=(90, 99)))
    )
    for seconds in (2.0, 7.0):
        slices.clear()
        steps = certified_path.certified_path(cov, 14, limits=bs.Limits(time=seconds))
        assert len(slices) <= seconds + 2
        assert steps[14].status is bs.Status.TIME_LIMIT
        assert len(steps) == 14
        for step in steps.values():
            assert step.objective <= step.upper_bound < np.inf


def test_steps_that_were_not_reached_take_no_time_each(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blockspca.certify.incumbents import Incumbents

    started = []
    start = clock.after(0.3, Incumbents.start)

    def counted(self: Incumbents, k: int) -> None:
        started.append(k)
        start(self, k)

    monkeypatch.setattr(Incumbents, "start", counted)
    steps = certified_path.certified_path(
        data(60, 300), 120, limits=bs.Limits(time=1.0)
    )
    assert len(started) < 10  # not 120
    assert len(steps) == 120
    objectives = [step.objective for step in steps.values()]
    assert (np.diff(objectives) >= -1e-9).all()
    assert objectives[-1] > 1.2 * objectives[-2]  # the last is worth an eigenvector
    for k, step in steps.items():
        assert len(step.support) == k
        assert np.linalg.norm(step.loadings) == pytest.approx(1)
        assert np.isfinite(step.upper_bound)


# -- what cannot be stopped -----------------------------------------------------------


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds, by the cost model, of the factorizations that were begun."""
    seconds: list[float] = []

    def spy(module: Any, name: str, cost: Callable[[np.ndarray], float]) -> None:
        original = getattr(module, name)

        def counted(matrix: np.ndarray, *arguments: Any, **named: Any) -> Any:
            seconds.append(cost(matrix))
            return original(matrix, *arguments, **named)

        monkeypatch.setattr(module, name, counted)

    spy(np.linalg, "qr", lambda C: _cost.qr(*C.shape))
    spy(np.linalg, "cholesky", lambda A: _cost.cholesky(len(A)))
    spy(np.linalg, "eigvalsh", lambda A: _cost.eigenvalues(A.shape[-1]))
    spy(np.linalg, "eigh", lambda A: _cost.eigenvalues(A.shape[-1]))
    spy(scipy.linalg, "cholesky", lambda A: _cost.cholesky(len(A)))
    spy(eigenvalues, "leading_eigenpairs", lambda A: _cost.eigenvalues(len(A)))
    return seconds


def test_no_factorization_begins_that_the_time_left_does_not_suffice_for(
    begun: list[float],
) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((6000, 5000), density=0.002, random_state=rng, format="csr")
    cov = bs.Covariance.from_data(X)
    assert _cost.qr(6000, 5000) > 30  # what a dual with all columns would begin with
    for k in (30, 60):
        result = bs.solve(cov, k, limits=bs.Limits(time=0.3))
        assert max(begun, default=0.0) <= 0.3
        assert result.objective <= result.upper_bound < np.inf
        assert np.count_nonzero(result.x) <= k


def test_an_indefinite_matrix_is_not_shifted_without_the_time_for_it(
    begun: list[float],
) -> None:
    A = np.random.default_rng(0).normal(size=(1500, 1500))
    A += A.T
    assert eigenvalues.psd_shift(A, Deadline(0.02)) == np.inf
    assert begun == []
    bound = best_bound.best_bound(
        bs.Covariance.from_matrix(A), 30, range(30), target=0.0, time_limit=0.3
    )
    assert max(begun, default=0.0) <= 0.3
    assert bound.name in ("none", "soft threshold", "entry dual")


def test_the_dual_does_without_short_columns_if_all_take_too_long() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 400)) * np.where(np.arange(400) < 20, 3.0, 0.1)
    cov = bs.Covariance.from_data(X)
    everything = dual_problem.make_problem(cov, 5, None, short=True)
    costs = dual_problem._Costs.of(cov, np.arange(400), sparse=False)
    some = dual_problem.make_problem(
        cov, 5, None, short=True, deadline=Deadline(0.5 * costs.seconds)
    )
    with pytest.raises(dual_problem.NotAffordable):
        dual_problem.make_problem(cov, 5, None, deadline=Deadline(0.0))
    assert dual_bound(cov, 5, time_limit=0.0).cut_short
    assert everything is not None
    assert some is not None
    assert everything.columns.shape[1] == 400
    assert some.columns.shape[1] == 20
    assert some.min_multiplier > 0 == everything.min_multiplier


def test_the_dual_keeps_to_the_memory() -> None:
    cov = data(300, 400)
    needed = 8 * 6 * 300 * 300
    assert np.isinf(dual_bound(cov, 5, memory=needed // 2).value)
    assert np.isfinite(dual_bound(cov, 5, memory=20 * needed).value)


# -- the whole ------------------------------------------------------------------------


@pytest.mark.parametrize("k", [6, 40])
@pytest.mark.parametrize("kind", ["dense", "sparse", "matrix"])
def test_a_short_limit_leaves_a_vector_and_a_bound(kind: str, k: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 700))
    cov = bs.Covariance.from_data(X)
    if kind == "sparse":
        X = sp.random_array((2000, 6000), density=0.004, random_state=rng, format="csr")
        cov = bs.Covariance.from_data(X)
    elif kind == "matrix":
        cov = bs.Covariance.from_matrix(np.cov(X.T))
    result = bs.solve(cov, k, limits=bs.Limits(time=0.4), n_jobs=1)
    assert result.objective <= result.upper_bound < np.inf


@pytest.mark.parametrize("nodes", [1, 20, 100])
def test_nodes_are_those_of_every_search_and_keep_to_the_limit(nodes: int) -> None:
    X = np.random.default_rng(3).normal(size=(40, 60))
    for cov in (bs.Covariance.from_data(X), bs.Covariance.from_matrix(np.cov(X.T))):
        for k in (7, 35):
            found = bs.solve(cov, k, limits=bs.Limits(nodes=nodes))
            # A slice more: 256 nodes of a tree, 2000 sets that grow, 12 of the dual.
            assert found.nodes <= nodes + 2000
            in_blocks = bs.solve(cov, k, limits=bs.Limits(nodes=nodes), certify=False)
            steps = sum(s.statistics["nodes"] for s in found.certificate.steps)
            # The chain is walked twice where the duals come in between.
            assert found.nodes >= steps
            assert k > 30 or found.nodes >= in_blocks.nodes + steps


def test_a_path_counts_the_nodes_up_to_each_k() -> None:
    X = np.random.default_rng(3).normal(size=(40, 30))
    path = bs.solve_path(np.cov(X.T), 6)
    nodes = [path[k].nodes for k in range(1, 7)]
    own = [step.statistics["nodes"] for step in path[6].certificate.steps]
    assert nodes == np.cumsum(own).tolist()
    assert nodes[-1] > nodes[0]


# -- the default ---------------------------------------------------------------------


def test_who_gives_none_has_the_default_and_a_gap_leaves_it():
    assert as_limits(None) == DEFAULT_LIMITS
    both = (DEFAULT_LIMITS.time, DEFAULT_LIMITS.nodes)
    kept = as_limits(Limits(gap=0.01))
    assert (kept.gap, kept.time, kept.nodes) == (0.01, *both)
    assert as_limits(Limits(memory=10**6)).time == DEFAULT_LIMITS.time
    for asked in (Limits(), Limits(time=3), Limits(nodes=5, gap=0.1)):
        assert as_limits(asked) == asked


_HARD = np.corrcoef(np.random.default_rng(0).normal(size=(60, 400)).T)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bs.solve(_HARD, 25),
        lambda: bs.solve(_HARD, 35),
        lambda: bs.solve(_HARD, 25, constraints=bs.Constraints(exclude=[3])),
        lambda: bs.solve_path(_HARD, 28)[28],
        lambda: bs.solve_components(_HARD, 25, 3)[2],
        lambda: bs.solve_shared(_HARD, 25, 3),
        lambda: bs.solve(_HARD, 25, limits=Limits(gap=1e-4)),
    ],
)
def test_no_call_goes_on_for_ever_by_default(monkeypatch, call):
    """Without a word `solve` went on until the proof was finished, for days."""
    short = Limits(time=0.5, nodes=10**9)
    monkeypatch.setattr("blockspca.limits.DEFAULT_LIMITS", short)
    bs.solve(_HARD, 5, limits=Limits(nodes=10))  # compiled
    started = time.perf_counter()
    found = call()
    assert time.perf_counter() - started < 5.0
    assert found.status is Status.TIME_LIMIT
    assert 0 < found.objective < found.upper_bound < np.inf


def test_beside_a_limit_on_nodes_time_decides_nothing_but_the_end():
    A = _HARD[:60, :60]
    long = bs.solve(A, 8, limits=Limits(time=1000, nodes=300))
    none = bs.solve(A, 8, limits=Limits(nodes=300))
    assert long.nodes == none.nodes
    assert long.certificate.to_json() == none.certificate.to_json()


def test_reading_and_compiling_take_no_time_of_a_call_with_nodes():
    whole = Budget(Limits(time=10, nodes=10))
    with whole.ending() as inside, whole.reading() as reading:
        assert inside.limits == Limits(nodes=10)
        assert reading.remaining() is None
        with stopped_clocks():  # which it is already
            time.sleep(0.2)
    assert whole.elapsed() >= 0.2
    assert whole.used() == pytest.approx(whole.elapsed() - 0.2, abs=0.05)
    alone = Budget(Limits(time=10))
    with alone.ending() as same, alone.reading() as same_again:
        assert same is alone is same_again


def test_work_of_a_call_ends_with_it():
    whole = Budget(Limits(time=0.0, nodes=10))
    with whole.ending() as inside:
        assert inside.stop_reason() is Status.TIME_LIMIT
        assert Deadline(None).passed()
        assert inside.of_a_call().time == 0.0
    assert not Deadline(None).passed()


def test_what_ends_in_another_process_knows_the_time_of_the_call():
    whole = Budget(Limits(time=10, nodes=10))
    with whole.ending() as inside:
        assert inside.remaining() is None
        assert 9 < inside.ends_in() <= 10
        assert Deadline(1.0).ends_in() <= 1
    assert Deadline(None).ends_in() is None
    assert Deadline(2.0).ends_in() <= 2
