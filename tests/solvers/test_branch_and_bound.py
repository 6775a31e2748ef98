"""Branch and bound: exact, its bound valid whenever it stops, the published optima."""

from __future__ import annotations

import csv
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from blockspca import Covariance, Status
from blockspca.solvers import BranchAndBound, Exhaustive, Limits, MixedIntegerSDP
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
    assert solution.status is Status.OPTIMAL
    assert solution.x @ A @ solution.x == pytest.approx(optimum, abs=slack)
    assert optimum * (1 - 1e-14) - slack / 100 <= solution.upper_bound
    assert solution.upper_bound <= optimum + slack


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


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="needs signals"
)
def test_interrupted_it_returns_what_it_has():
    A = noise(60, 80)
    BranchAndBound().solve(A[:5, :5], 2, limits=Limits())
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        start = time.perf_counter()
        solution = BranchAndBound().solve(A, 20, limits=Limits(time=30))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert time.perf_counter() - start < 20
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
    from blockspca._kernels import branch_and_bound as kernels

    for kernel in (kernels.explore, kernels.dive, kernels.factorise, kernels.insert):
        assert len(kernel.signatures) == 1
    A = noise(60, 20)
    compiled = BranchAndBound().solve(A, 5, limits=Limits())
    monkeypatch.setattr(kernels, "explore", kernels.explore.py_func)
    monkeypatch.setattr(kernels, "dive", kernels.dive.py_func)
    monkeypatch.setattr(kernels, "factorise", kernels.factorise.py_func)
    monkeypatch.setattr(kernels, "insert", kernels.insert.py_func)
    interpreted = BranchAndBound().solve(A, 5, limits=Limits())
    assert compiled.nodes == interpreted.nodes > 5
    np.testing.assert_array_equal(compiled.x, interpreted.x)


def test_ctrl_c_while_it_looks_for_a_start_ends_the_search(monkeypatch):
    from blockspca.solvers import Chan, Solution

    cov = Covariance.from_data(np.random.default_rng(0).normal(size=(5, 1600)))

    def stopped(self, cov, k, *, limits):
        return Solution(np.eye(1600)[0], status=Status.INTERRUPTED)

    monkeypatch.setattr(Chan, "solve_covariance", stopped)
    solution = BranchAndBound().solve_covariance(cov, 3, limits=Limits())
    assert solution.status is Status.INTERRUPTED
    assert np.flatnonzero(solution.x).tolist() == [0]
