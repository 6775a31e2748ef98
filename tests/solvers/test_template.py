"""The template: checked input, one clock, Ctrl-C anywhere, one rule for the status."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import blockspca as bs
from blockspca.solvers import (
    SOLVERS,
    BaseSolver,
    Greedy,
    Limits,
    LocalSearch,
    Solver,
    SolverRun,
    TruncatedPower,
)
from strategies import symmetric_matrix

A = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 1.9], [0.0, 1.9, 2.0]])


class Scripted(BaseSolver):
    """Does what it is told, one step after another."""

    name = "scripted"
    _positive_integers = ("n_steps",)

    def __init__(self, *steps, n_steps=1):
        self.steps, self.n_steps = steps, n_steps

    def _solve(self, A, k, run):
        for step in self.steps:
            if step is KeyboardInterrupt:
                raise step
            step(run)
            run.nodes += 1
            if run.must_stop():
                return


def offer(*support):
    return lambda run: run.offer(support)


def keep(*support):
    return lambda run: run.keep(support)


def tighten(bound):
    return lambda run: run.tighten(bound)


def solved(*steps, k=2, limits=None, **options):
    return Scripted(*steps).solve(A, k, limits=limits or Limits(), **options)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_of_the_library_uses_the_template(name):
    assert issubclass(SOLVERS[name], BaseSolver)
    assert isinstance(SOLVERS[name](), Solver)
    assert "solve" not in vars(SOLVERS[name])


def test_the_best_offer_wins_and_the_last_one_kept():
    best = solved(offer(0, 1), offer(2, 1), offer(0, 2))
    assert np.flatnonzero(best.x).tolist() == [1, 2]
    assert best.nodes == 3
    kept = solved(offer(1, 2), keep(0))
    assert np.flatnonzero(kept.x).tolist() == [0]
    after = solved(keep(0), offer(1, 2))
    assert np.flatnonzero(after.x).tolist() == [1, 2]


def test_an_offer_as_good_as_what_is_kept_does_not_replace_it():
    solution = Scripted(keep(0), offer(1)).solve(np.eye(2), 1, limits=Limits())
    assert np.flatnonzero(solution.x).tolist() == [0]


def test_nothing_found_leaves_the_largest_variances():
    for steps in ((), (KeyboardInterrupt,)):
        solution = solved(*steps, k=1)
        np.testing.assert_array_equal(solution.x, [1, 0, 0])
        assert solution.upper_bound == math.inf


@pytest.mark.parametrize(
    ("bound", "gap", "status"),
    [
        (3.9, None, bs.Status.OPTIMAL),
        (3.9 * (1 + 5e-7), None, bs.Status.OPTIMAL),
        (3.9 * (1 + 5e-6), None, bs.Status.FEASIBLE),
        (3.9 * (1 + 5e-6), 1e-5, bs.Status.GAP_LIMIT),
        (4.0, 0.01, bs.Status.FEASIBLE),
        (math.inf, 0.5, bs.Status.FEASIBLE),
    ],
)
def test_the_status_is_what_the_bound_entitles_to(bound, gap, status):
    solution = solved(offer(1, 2), tighten(bound), limits=Limits(gap=gap))
    assert solution.status is status
    assert solution.upper_bound >= solution.x @ A @ solution.x


def test_a_limit_is_named_unless_the_bound_says_more():
    limits = Limits(nodes=1)
    stopped = solved(offer(0, 1), offer(1, 2), limits=limits)
    assert (stopped.status, stopped.nodes) == (bs.Status.NODE_LIMIT, 1)
    assert solved(offer(0, 1), limits=Limits(time=0.0)).status is bs.Status.TIME_LIMIT
    proved = Scripted(lambda run: (run.offer((1, 2)), run.tighten(3.9)))
    assert proved.solve(A, 2, limits=limits).status is bs.Status.OPTIMAL


def test_an_interrupt_keeps_what_was_found_and_stays_an_interrupt():
    solution = solved(offer(1, 2), tighten(3.9), KeyboardInterrupt, offer(0, 1))
    assert solution.status is bs.Status.INTERRUPTED
    assert np.flatnonzero(solution.x).tolist() == [1, 2]
    assert solution.upper_bound == pytest.approx(3.9)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("branch-and-bound", TruncatedPower),
        ("mixed-integer-sdp", LocalSearch),
        ("local-search", Greedy),
    ],
)
def test_an_interrupt_of_a_solver_inside_another_ends_both(monkeypatch, name, asked):
    def interrupted(self, A, k, run):
        raise KeyboardInterrupt

    monkeypatch.setattr(asked, "_solve", interrupted)
    noise = np.cov(np.random.default_rng(0).normal(size=(60, 60)).T)
    solution = SOLVERS[name]().solve(noise, 12, limits=Limits(time=30))
    assert solution.status is bs.Status.INTERRUPTED
    assert 1 <= np.count_nonzero(solution.x) <= 12
    assert solution.upper_bound >= solution.x @ noise @ solution.x


def test_bounds_only_fall():
    assert solved(offer(1, 2), tighten(5.0), tighten(6.0)).upper_bound == 5.0
    assert solved(offer(1, 2), tighten(1.0)).upper_bound == pytest.approx(3.9)


def test_vectors_are_completed_by_what_they_correlate_with():
    for matrix in (A, bs.Covariance.from_matrix(A)):
        run = SolverRun(matrix, 2, Limits())
        run.offer_vector(np.zeros(3))
        assert run.objective == -math.inf
        run.offer_vector(np.array([0.0, 1.0, 0.0]))
        assert np.flatnonzero(run.x).tolist() == [1, 2]
        assert run.objective == pytest.approx(3.9)


def test_offers_never_lower_the_objective():
    rng = np.random.default_rng(0)
    B = symmetric_matrix("indefinite", 8, rng)
    run = SolverRun(B, 3, Limits())
    run.offer_variances()
    for _ in range(50):
        before = run.objective
        run.offer_vector(rng.normal(size=8))
        assert run.objective >= before
        assert run.x @ B @ run.x == pytest.approx(run.objective)


def test_k_is_at_most_d():
    solution = Scripted(lambda run: run.keep(range(run.k))).solve(A, 9, limits=Limits())
    assert np.count_nonzero(solution.x) <= 3


@pytest.mark.parametrize(
    ("matrix", "k", "error", "message"),
    [
        (np.ones((2, 3)), 1, ValueError, r"shape \(2, 3\)"),
        (np.ones(3), 1, ValueError, "square"),
        (A, 0, ValueError, "k = 0"),
        (A, 1.5, TypeError, "k = 1.5"),
    ],
)
def test_what_makes_no_sense_is_refused(matrix, k, error, message):
    with pytest.raises(error, match=message):
        Scripted().solve(matrix, k, limits=Limits())


def test_parameters_are_checked_when_used_not_when_stored():
    solver = Scripted(n_steps=0)
    with pytest.raises(ValueError, match="n_steps = 0"):
        solver.solve(A, 1, limits=Limits())


def test_the_same_generator_where_none_is_given():
    drawn = [SolverRun(A, 1, Limits()).rng.normal() for _ in range(2)]
    assert drawn[0] == drawn[1]
    given = np.random.default_rng(5)
    assert SolverRun(A, 1, Limits(), rng=given).rng is given


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_can_be_pickled_as_joblib_does(name):
    assert type(pickle.loads(pickle.dumps(SOLVERS[name]()))) is SOLVERS[name]
