"""Branch and bound: exact, its bound valid whenever it stops, the published optima."""

from __future__ import annotations

import csv
import itertools
import math
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from blockspca import Covariance, Status
from blockspca.numerics.linalg import rayleigh
from blockspca.solvers import BranchAndBound, Exhaustive, Limits, MixedIntegerSDP
from blockspca.solvers._spectrum import Spectrum
from blockspca.solvers.branch_and_bound import _Search
from blockspca.status import status_of_gap
from conftest import brute_force
from strategies import KINDS, problems, symmetric_matrix


def noise(n: int, d: int, seed: int = 0) -> np.ndarray:
    """A covariance without structure, the hardest kind."""
    return np.cov(np.random.default_rng(seed).normal(size=(n, d)).T)


@given(problems(max_features=11))
@settings(deadline=None, max_examples=150)
def test_exact_with_a_tight_bound(problem):
    A, k = problem
    optimum = brute_force(A, k)
    slack = 1e-9 * abs(optimum) + 1e-12 * np.abs(A).max()
    solution = BranchAndBound().solve(A, k, limits=Limits())
    if abs(optimum) > 1e-4 * np.abs(A).max():  # rounding is no share of 0
        assert solution.status is Status.OPTIMAL
    assert solution.x @ A @ solution.x == pytest.approx(optimum, abs=slack)
    assert optimum <= solution.upper_bound <= optimum + slack


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 4])
def test_three_exact_solvers_agree(kind, k):
    A = symmetric_matrix(kind, 9, np.random.default_rng(k))
    solutions = [
        solver.solve(A, k, limits=Limits())
        for solver in (Exhaustive(), BranchAndBound(), MixedIntegerSDP())
    ]
    values = [s.x @ A @ s.x for s in solutions]
    assert all(s.status is Status.OPTIMAL for s in solutions)
    np.testing.assert_allclose(values, values[0], atol=1e-9 * np.abs(A).max())


@pytest.mark.parametrize("indefinite", [False, True])
def test_larger_problems_against_enumeration(indefinite):
    A = noise(12, 22)
    if indefinite:
        A -= 0.7 * np.eye(22)
    for k in (4, 7):
        exact = Exhaustive().solve(A, k, limits=Limits()).upper_bound
        solution = BranchAndBound(eigen_size=8).solve(A, k, limits=Limits())
        assert solution.status is Status.OPTIMAL
        assert solution.upper_bound == pytest.approx(exact, rel=1e-9)


def test_the_bound_holds_at_every_node_limit():
    A = noise(60, 40)
    full = BranchAndBound().solve(A, 8, limits=Limits())
    assert full.status is Status.OPTIMAL
    assert full.nodes > 100
    optimum = full.x @ A @ full.x
    previous = np.inf
    for nodes in (1, 2, 3, 5, 10, 20, 50, 100):
        solution = BranchAndBound().solve(A, 8, limits=Limits(nodes=nodes))
        assert solution.status is Status.NODE_LIMIT
        assert solution.nodes <= nodes
        assert optimum <= solution.upper_bound <= previous * (1 + 1e-12)
        previous = solution.upper_bound


def test_gap_limit():
    A = noise(60, 40)
    exact = BranchAndBound().solve(A, 8, limits=Limits())
    loose = BranchAndBound().solve(A, 8, limits=Limits(gap=0.05))
    assert loose.status is Status.GAP_LIMIT
    assert loose.nodes < exact.nodes
    objective = loose.x @ A @ loose.x
    assert exact.upper_bound * (1 - 1e-9) <= loose.upper_bound <= 1.05 * objective


def test_an_incumbent_prunes():
    A = noise(60, 40)
    alone = BranchAndBound().solve(A, 8, limits=Limits())
    optimum = alone.x @ A @ alone.x
    beaten = BranchAndBound().solve(A, 8, limits=Limits(), incumbent=1.1 * optimum)
    assert beaten.status is Status.FEASIBLE
    assert beaten.nodes < alone.nodes
    assert beaten.upper_bound == pytest.approx(1.1 * optimum)
    helped = BranchAndBound().solve(A, 8, limits=Limits(), incumbent=0.9 * optimum)
    assert helped.status is Status.OPTIMAL
    assert helped.upper_bound == pytest.approx(optimum)


def test_memory_limit():
    solution = BranchAndBound().solve(noise(30, 60), 12, limits=Limits(memory=200))
    assert solution.status is Status.MEMORY_LIMIT
    assert solution.upper_bound > solution.x @ noise(30, 60) @ solution.x


@pytest.mark.parametrize("way", ["matrix", "data"])
def test_optimal_means_the_same_as_in_the_framework(monkeypatch, way):
    """1e-9 of the objective, at optima near zero too."""
    monkeypatch.setattr("blockspca.solvers.branch_and_bound.DENSE_SIZE", 5)
    if way == "matrix":
        A = noise(12, 14)
        A -= (brute_force(A, 4) - 1e-9) * np.eye(14)
        solve = BranchAndBound().solve
    else:
        cov = Covariance.from_data(np.random.default_rng(2).normal(size=(8, 14)))
        A = cov.rows(slice(None))
        solve = BranchAndBound().solve_covariance
    problem = A if way == "matrix" else cov
    for limits in (Limits(), Limits(gap=1e-3), Limits(gap=0.2), Limits(nodes=1)):
        solution = solve(problem, 4, limits=limits)
        used = np.flatnonzero(solution.x)
        # As the solver has it: near zero the last bits decide.
        value = rayleigh(A[np.ix_(used, used)], solution.x[used])
        stopped = None if limits.nodes is None else Status.NODE_LIMIT
        expected = status_of_gap(value, solution.upper_bound, limits.gap, stopped)
        assert solution.status is expected
        assert solution.upper_bound >= brute_force(A, 4)
    for bound in (1.0, 1 + 5e-10, 1 + 5e-9, 1.3, math.inf):
        for stopped in (None, Status.TIME_LIMIT):
            for limits in (Limits(), Limits(gap=0.2)):
                given = (1.0, bound, limits.gap, stopped)
                kept = status_of_gap(*given, keep_interrupt=True)
                assert kept is status_of_gap(*given)


def test_supports_within_the_tolerance_stay_below_the_bound():
    """Nodes are dropped at half the tolerance, so that rounding has the other half."""
    A = noise(60, 20)
    search = _Search(A, 5, Limits(), -math.inf, 20)
    search.prepare()
    reached, least = search.objective, 1e-10 * search.objective
    assert search.tau == pytest.approx(reached + least / 2, rel=1e-14)
    assert search.proved == pytest.approx(reached + least, rel=1e-14)
    loose = _Search(A, 5, Limits(gap=0.1), -math.inf, 20)
    loose.prepare()
    assert loose.proved == pytest.approx(1.1 * reached, rel=1e-9)
    assert loose.proved - loose.tau == pytest.approx(least / 2, rel=1e-3)


def test_the_bound_is_less_sharp_where_rounding_may_be_larger():
    """Factors of 1000 features are tested: the bound is right, and not that sharp."""
    A = 1e-3 * np.eye(1000)
    A[:5, :5] += 1.0
    for eigen_size, least, most in ((64, 0.0, 1e-9), (1000, 1e-9, 1e-8)):
        solution = BranchAndBound(eigen_size).solve(A, 5, limits=Limits())
        assert solution.status is Status.OPTIMAL
        assert least <= solution.upper_bound / 5.001 - 1 <= most


def test_a_support_that_only_the_kernel_finds_better_ends_the_search(monkeypatch):
    """Found again and again, it once kept the search going for ever."""
    A = noise(60, 16)
    optimum = brute_force(A, 4)
    offer = _Search.offer

    def once(self, support, trusted=False):
        if len(self.support) == 0:
            offer(self, np.arange(4))

    monkeypatch.setattr(_Search, "offer", once)
    solution = BranchAndBound().solve(A, 4, limits=Limits(time=20))
    assert solution.status is Status.FEASIBLE
    assert np.flatnonzero(solution.x).tolist() == [0, 1, 2, 3]
    assert solution.upper_bound >= optimum


def test_within_rounding_such_a_support_costs_no_more_than_rounding(monkeypatch):
    A = noise(60, 16)
    optimum = brute_force(A, 4)
    offer = _Search.offer

    def low(self, support, trusted=False):  # by a little more than is dropped
        before = self.objective
        offer(self, support)
        if before < self.objective > optimum * (1 - 1e-12):
            self.objective = max(before, optimum * (1 - 1.5e-10))

    monkeypatch.setattr(_Search, "offer", low)
    solution = BranchAndBound().solve(A, 4, limits=Limits(time=20))
    assert solution.status is Status.OPTIMAL
    assert optimum <= solution.upper_bound <= optimum * (1 + 1e-9)


def test_the_value_of_a_leaf_does_not_come_from_lanczos(monkeypatch):
    monkeypatch.setattr("blockspca.numerics.linalg.LARGE", 2)
    monkeypatch.setattr(
        "blockspca.numerics.linalg._by_lanczos", lambda A: np.linalg.eigh(A)[1][:, 0]
    )
    A = noise(60, 16)
    solution = BranchAndBound().solve(A, 4, limits=Limits(time=20))
    assert solution.status is Status.OPTIMAL
    assert solution.upper_bound == pytest.approx(brute_force(A, 4), rel=1e-9)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="needs signals"
)
def test_interrupted_it_returns_what_it_has():
    A = noise(60, 80)
    BranchAndBound().solve(A[:5, :5], 2, limits=Limits())
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        solution = BranchAndBound().solve(A, 20, limits=Limits(time=30))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert solution.status is Status.INTERRUPTED
    assert solution.upper_bound >= solution.x @ A @ solution.x


@pytest.mark.parametrize("sparse", [False, True])
def test_from_data(monkeypatch, sparse):
    monkeypatch.setattr("blockspca.solvers.branch_and_bound.DENSE_SIZE", 5)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(8, 40)) * rng.uniform(0.2, 2, size=40)
    if sparse:
        X = sp.csr_array(X * (rng.random(X.shape) < 0.5))
    cov = Covariance.from_data(X)
    A = cov.rows(slice(None))
    for k in (1, 2, 5, 40):
        expected = BranchAndBound().solve(A, k, limits=Limits())
        solution = BranchAndBound().solve_covariance(cov, k, limits=Limits())
        assert solution.status is Status.OPTIMAL
        assert solution.upper_bound == pytest.approx(expected.upper_bound, rel=1e-9)
        assert solution.x @ A @ solution.x == pytest.approx(
            expected.x @ A @ expected.x, rel=1e-9
        )
        optimum = float(expected.x @ A @ expected.x)
        beaten = BranchAndBound().solve_covariance(
            cov, k, limits=Limits(), incumbent=1.5 * optimum
        )
        assert beaten.upper_bound >= optimum
        if beaten.status is Status.OPTIMAL:  # proved by a bound that needs no search
            assert beaten.upper_bound == pytest.approx(optimum, rel=1e-9)
        else:
            assert beaten.status is Status.FEASIBLE


@pytest.mark.parametrize("scale", [1e-160, 1e-140, 1e150, 1e160])
@pytest.mark.parametrize("sparse", [False, True])
def test_from_data_at_scales_whose_squares_are_out_of_range(monkeypatch, scale, sparse):
    monkeypatch.setattr("blockspca.solvers.branch_and_bound.DENSE_SIZE", 5)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(8, 30)) * rng.uniform(0.2, 2, size=30)
    A = np.cov(X.T)
    X *= math.sqrt(scale)
    cov = Covariance.from_data(sp.csr_array(X) if sparse else X)
    for k in (2, 4):
        expected = BranchAndBound().solve(A, k, limits=Limits())
        solution = BranchAndBound().solve_covariance(
            cov, k, limits=Limits(), incumbent=0.5 * expected.upper_bound * scale
        )
        assert solution.status is Status.OPTIMAL
        assert solution.x @ A @ solution.x == pytest.approx(
            expected.x @ A @ expected.x, rel=1e-9
        )
        assert solution.upper_bound / scale == pytest.approx(
            expected.upper_bound, rel=1e-9
        )


def test_a_sparse_matrix_with_an_empty_diagonal_has_a_unit_too(monkeypatch):
    monkeypatch.setattr("blockspca.solvers.branch_and_bound.DENSE_SIZE", 5)
    A = np.random.default_rng(1).normal(size=(12, 12))
    A = np.triu(A, 1) + np.triu(A, 1).T
    cov = Covariance.from_matrix(sp.csr_array(A * 1e-160))
    solution = BranchAndBound().solve_covariance(cov, 3, limits=Limits())
    assert solution.status is Status.OPTIMAL
    assert solution.upper_bound * 1e160 == pytest.approx(brute_force(A, 3), rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_nothing_is_optimal_whose_bound_overflows(k):
    A = np.full((6, 6), 1e308)
    solution = BranchAndBound().solve(A, k, limits=Limits())
    assert math.isinf(solution.upper_bound)
    assert solution.status is Status.FEASIBLE
    assert np.count_nonzero(solution.x) == k


def test_a_pair_is_not_skipped_by_rounding():
    """Gershgorin's sum, rounded to nearest, may be below the larger eigenvalue."""
    from blockspca._kernels.opening import best_pair

    pair = np.array([0, 1], dtype=np.int64)
    A = np.array([[1.0, 1e-17], [1e-17, 1.0]])
    assert best_pair(A, 0, 2, 1.0, pair) > 1.0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("which", [-1, -2, 0, "random"])
def test_the_spectrum_of_data_holds_for_any_direction(which, sparse):
    """The second eigenvector is one too, and once was taken for the first."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(6, 9)) * rng.uniform(0.3, 2, size=9)
    cov = Covariance.from_data(sp.csr_array(X) if sparse else X)
    gram = cov.gram(np.ones(9))
    values, vectors = np.linalg.eigh(gram)
    u = rng.normal(size=6) if which == "random" else vectors[:, which]
    u /= np.linalg.norm(u)
    left = np.array([0, 1, 3, 4, 5, 7, 8])
    A = cov.submatrix(left)
    share = 1 - math.sqrt(values[-2] / values[-1])
    for part in (0.0, share, 1.0):
        spectrum = Spectrum.without(cov, left, gram, u, part)
        assert spectrum.defect >= -np.linalg.eigvalsh(A)[0]
        for k in (1, 2, 4):
            for S in itertools.combinations(range(len(left)), k):
                bound = spectrum.low + spectrum.span * spectrum.weights[list(S)].sum()
                assert bound >= np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
    if which == -1:  # and is the split into λ₂ and the rest if u is what it should be
        spectrum = Spectrum.of_data(cov, left)
        assert spectrum.low == pytest.approx(values[-2], rel=1e-9)
        v = np.linalg.eigh(cov.rows(slice(None)))[1][left, -1]
        np.testing.assert_allclose(
            spectrum.span * spectrum.weights,
            (values[-1] - values[-2]) * v**2,
            atol=1e-12,
        )


def test_from_data_with_the_wrong_eigenvectors(monkeypatch):
    """Pruned by the split along any direction, the optimum is still found."""
    monkeypatch.setattr("blockspca.solvers.branch_and_bound.DENSE_SIZE", 5)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 14)) @ np.diag(rng.uniform(0.5, 1.5, size=14))
    cov = Covariance.from_data(X)
    A = cov.rows(slice(None))

    def wrong(cov, left):
        gram = cov.gram(np.ones(cov.n_features))
        vectors = np.linalg.eigh(gram)[1]
        return Spectrum.without(cov, left, gram, vectors[:, -2], 1.0)

    monkeypatch.setattr(Spectrum, "of_data", wrong)
    for k in (3, 4):
        solution = BranchAndBound().solve_covariance(cov, k, limits=Limits())
        assert solution.status is Status.OPTIMAL
        assert solution.upper_bound == pytest.approx(brute_force(A, k), rel=1e-9)


def published(oracle_dir, name: str) -> list[tuple[int, float]]:
    with open(oracle_dir / "proved_optima.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    return [(int(row["k"]), float(row["objective"])) for row in rows]


@pytest.mark.data
@pytest.mark.parametrize("name", ["pitprops", "Eisen1Cov", "CovColon"])
def test_published_optima(load, oracle_dir, name):
    A = load(name)
    for k, optimum in published(oracle_dir, name):
        solution = BranchAndBound().solve(A, k, limits=Limits(time=60))
        assert solution.status is Status.OPTIMAL
        assert solution.x @ A @ solution.x == pytest.approx(optimum, rel=1e-9)
        assert solution.upper_bound == pytest.approx(optimum, rel=1e-9)


@pytest.mark.data
def test_pitprops_at_every_k(load):
    A = load("pitprops")
    for k in range(1, 14):
        solution = BranchAndBound().solve(A, k, limits=Limits())
        assert solution.status is Status.OPTIMAL
        assert solution.upper_bound == pytest.approx(brute_force(A, k), rel=1e-9)


@pytest.mark.data
def test_published_optima_from_data(load, oracle_dir):
    cov = Covariance.from_data(load("Leukemia"))
    for k, optimum in published(oracle_dir, "Leukemia"):
        if k in (3, 5):
            solution = BranchAndBound().solve_covariance(cov, k, limits=Limits(time=60))
            assert solution.status is Status.OPTIMAL
            assert solution.upper_bound == pytest.approx(optimum, rel=1e-9)


def test_kernel_equals_its_python_function(monkeypatch):
    from blockspca._kernels import branch_and_bound as module

    kernels = {n: f for n, f in vars(module).items() if hasattr(f, "py_func")}
    for name in ("explore", "first_support"):
        assert len(kernels[name].signatures) == 1
    # the others have none if those were read from the cache
    assert all(len(kernel.signatures) <= 1 for kernel in kernels.values())
    definite = noise(60, 20)
    problems = [(definite, 5), (definite - 0.7 * np.eye(20), 4)]
    compiled = [BranchAndBound().solve(A, k, limits=Limits()) for A, k in problems]
    for name, kernel in kernels.items():
        monkeypatch.setattr(module, name, kernel.py_func)
    for (A, k), expected in zip(problems, compiled, strict=True):
        interpreted = BranchAndBound().solve(A, k, limits=Limits())
        assert expected.nodes == interpreted.nodes > 5
        np.testing.assert_array_equal(expected.x, interpreted.x)
        assert expected.upper_bound == pytest.approx(interpreted.upper_bound, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_row_sums_are_rounded_up(kind):
    from blockspca._kernels.opening import row_sums

    A = symmetric_matrix(kind, 30, np.random.default_rng(1))
    for k in (1, 2, 7, 29):
        sums = np.empty(30)
        largest = max(row_sums(A, k, 0, 10, sums), row_sums(A, k, 10, 30, sums))
        off = np.sort(np.abs(A - np.diag(np.diagonal(A))), axis=1)[:, 30 - k + 1 :]
        exact = [math.fsum([A[i, i], *off[i]]) for i in range(30)]
        assert largest == np.abs(A).max()
        assert (sums >= exact).all()
        np.testing.assert_allclose(sums, exact, atol=1e-12 * largest)


def test_an_easy_proof_needs_no_more_than_one_pass(monkeypatch):
    """Rows, swaps, eigenvalues and many starts are for what the first nodes leave."""
    monkeypatch.setattr(_Search, "find_start", None)
    monkeypatch.setattr(_Search, "look_harder", None)
    A = 0.01 * noise(60, 300)
    A[:5, :5] += 1.0
    solution = BranchAndBound().solve(A, 5, limits=Limits())
    assert solution.status is Status.OPTIMAL
    assert np.flatnonzero(solution.x).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_without_any_time_there_is_still_an_answer(seconds):
    A = noise(60, 40)
    solution = BranchAndBound().solve(A, 8, limits=Limits(time=seconds))
    assert solution.status is Status.TIME_LIMIT
    assert solution.upper_bound >= solution.x @ A @ solution.x
    assert np.count_nonzero(solution.x) <= 8


def test_ctrl_c_while_it_looks_for_a_start_ends_the_search(monkeypatch):
    from blockspca.solvers import Chan, Solution

    cov = Covariance.from_data(np.random.default_rng(0).normal(size=(5, 1600)))

    def stopped(self, cov, k, *, limits):
        return Solution(np.eye(1600)[0], status=Status.INTERRUPTED)

    monkeypatch.setattr(Chan, "solve_covariance", stopped)
    solution = BranchAndBound().solve_covariance(cov, 3, limits=Limits())
    assert solution.status is Status.INTERRUPTED
    assert np.flatnonzero(solution.x).tolist() == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_in_closed_form(kind, monkeypatch):
    """k = 2 needs no search, and its bound is rounded up."""
    monkeypatch.setattr("blockspca.solvers._reduction.ENTRIES_AT_ONCE", 50)
    A = symmetric_matrix(kind, 12, np.random.default_rng(2))
    optimum = brute_force(A, 2)
    slack = 1e-13 * np.abs(A).max()
    solution = BranchAndBound().solve(A, 2, limits=Limits())
    assert (solution.status, solution.nodes) == (Status.OPTIMAL, 0)
    assert solution.x @ A @ solution.x == pytest.approx(optimum, abs=slack)
    assert optimum - slack / 100 <= solution.upper_bound <= optimum + slack
    stopped = BranchAndBound().solve(A, 2, limits=Limits(time=0.0))
    assert stopped.status is Status.TIME_LIMIT
    assert stopped.upper_bound >= optimum


def test_best_pair_equals_its_python_function(monkeypatch):
    from blockspca._kernels import opening
    from blockspca._kernels.opening import best_pair, row_sums

    # only compiled code may call the compiled helper
    monkeypatch.setattr(opening, "insert_value", opening.insert_value.py_func)
    A = noise(60, 20)
    for kernel in (best_pair, row_sums):
        assert len(kernel.signatures) == 1
    pairs, sums = np.zeros((2, 2), dtype=np.int64), np.empty((2, 20))
    values = [
        function(A, 0, 20, -np.inf, pair)
        for function, pair in zip((best_pair, best_pair.py_func), pairs, strict=True)
    ]
    assert values[0] == values[1]
    np.testing.assert_array_equal(pairs[0], pairs[1])
    assert row_sums(A, 5, 0, 20, sums[0]) == row_sums.py_func(A, 5, 0, 20, sums[1])
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-15)


def test_one_feature_beside_covariances_1e290_times_as_large():
    """In units of these the variance has no digits, or few."""
    A = np.array([[6.7e-52, 6e270, 0.0], [6e270, 0.0, 8e-31], [0.0, 8e-31, 1.2e-271]])
    for found in (
        BranchAndBound().solve(A, 1),
        BranchAndBound().solve_covariance(Covariance.from_matrix(A), 1),
    ):
        assert found.status is Status.OPTIMAL
        assert found.upper_bound == A[0, 0]
        np.testing.assert_array_equal(found.x, [1.0, 0.0, 0.0])
