"""What must hold for every registered solver, those added later included."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockspca as bs
from blockspca.guarantee import EXACT
from blockspca.solvers import SOLVERS, Limits, Solver
from conftest import brute_force
from strategies import KINDS, problems, symmetric_matrix


def installed(name: str) -> bool:
    """Tell whether the optional package that a solver wraps, if any, is there."""
    module = getattr(SOLVERS[name], "required_module", None)
    return module is None or importlib.util.find_spec(module) is not None


def exact(name: str) -> bool:
    return installed(name) and SOLVERS[name].guarantee is EXACT


EVERY = pytest.mark.parametrize("name", sorted(filter(installed, SOLVERS)))
WITH_HIGHS = ("l1-integer-program", "mixed-integer-qp")


def kinds_for(name: str) -> tuple[str, ...]:
    if SOLVERS[name].requires_psd:
        return ("psd", "rank one", "duplicated", "zero rows", "zero")
    return KINDS


@EVERY
def test_contract(name):
    solver = SOLVERS[name]()
    assert isinstance(solver, Solver)
    assert isinstance(solver.name, str)
    for k in (1, 2, 5):
        factors = [solver.guarantee.factor(k, d) for d in range(k, 20)]
        errors = [solver.guarantee.error(k, d) for d in range(k, 20)]
        assert min(factors) >= 1
        assert min(errors) >= 0
        assert factors == sorted(factors)
        assert errors == sorted(errors)


@EVERY
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_feasible_bounded_and_as_good_as_promised(name, data):
    largest = 6 if name in WITH_HIGHS else 9  # a program of 9 takes up to a second
    A, k = data.draw(problems(max_features=largest, kinds=kinds_for(name)))
    solver = SOLVERS[name]()
    solution = solver.solve(A, k, limits=Limits())
    x = solution.x
    optimum = brute_force(A, k)
    slack = 1e-9 * max(1.0, np.abs(A).max())
    assert x.shape == (len(A),)
    assert np.linalg.norm(x) == pytest.approx(1)
    assert 1 <= np.count_nonzero(x) <= k
    assert x[np.argmax(np.abs(x) >= np.abs(x).max() * (1 - 1e-9))] > 0
    objective = x @ A @ x
    on_support = np.flatnonzero(x)
    best = np.linalg.eigvalsh(A[np.ix_(on_support, on_support)])[-1]
    assert objective == pytest.approx(best, abs=slack)
    assert objective <= optimum + slack
    assert solution.upper_bound >= optimum - slack
    if solution.status is bs.Status.OPTIMAL:
        assert objective == pytest.approx(optimum, abs=slack)
    guarantee = solver.guarantee
    psd = np.linalg.eigvalsh(A)[0] >= -slack
    if psd or not guarantee.assumes_psd:
        factor = guarantee.factor(k, len(A))
        promised = -math.inf if math.isinf(factor) else optimum / factor
        assert objective >= promised - guarantee.error(k, len(A)) - slack


@EVERY
@pytest.mark.parametrize("seed", range(2))
def test_permutation_sign_and_scale(name, seed):
    rng = np.random.default_rng(seed)
    A = symmetric_matrix("psd", 7, rng)
    order = rng.permutation(7)
    signs = rng.choice([-1.0, 1.0], size=7)
    changed = 8.0 * (A * np.outer(signs, signs))[np.ix_(order, order)]
    first = SOLVERS[name]().solve(A, 3, limits=Limits()).x
    second = SOLVERS[name]().solve(changed, 3, limits=Limits()).x
    assert second @ changed @ second == pytest.approx(8.0 * (first @ A @ first))


@EVERY
def test_deterministic_for_a_given_rng(name):
    A = symmetric_matrix("psd", 9, np.random.default_rng(0))
    runs = [
        SOLVERS[name]().solve(A, 3, limits=Limits(), rng=np.random.default_rng(7)).x
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*runs)


@EVERY
def test_degenerate_input(name):
    solve = SOLVERS[name]().solve
    for A, k in [
        (np.array([[2.0]]), 1),
        (np.zeros((4, 4)), 2),
        (np.ones((4, 4)), 4),
        (np.cov(np.random.default_rng(0).normal(size=(30, 5)).T), 5),
        (np.cov(np.random.default_rng(0).normal(size=(30, 5)).T), 6),
        (np.cov(np.random.default_rng(0).normal(size=(30, 5)).T), 9),
        (np.outer([3.0, 2.0, 1.0], [3.0, 2.0, 1.0]), 2),
        (np.diag([1.0, 2.0, 3.0]), 2),
        (np.eye(5), 3),
    ]:
        x = solve(A, k, limits=Limits()).x
        optimum = brute_force(A, min(k, len(A)))
        assert x @ A @ x == pytest.approx(optimum, rel=1e-12, abs=1e-12)


@EVERY
def test_on_blocks_and_on_the_full_matrix(name):
    """From `solve`: one vector form, at k ≥ d too, indefinite where it may be."""
    rng = np.random.default_rng(3)
    A = 0.05 * symmetric_matrix("psd", 10, rng)
    A[:5, :5] += symmetric_matrix("rank one", 5, rng)
    A[5:, 5:] += symmetric_matrix("psd", 5, rng)
    matrices = [A]
    if not SOLVERS[name].requires_psd:
        matrices.append(A - 0.5 * np.trace(A) / 10 * np.eye(10))
    epsilon = float(np.abs(A[:5, 5:]).max())
    for matrix in matrices:
        for threshold in (bs.FixedThreshold(0.0), bs.FixedThreshold(epsilon)):
            for k in (1, 3, 7, 10):  # 7 is more than a block has
                result = bs.solve(
                    matrix,
                    k,
                    solver=SOLVERS[name](),
                    threshold=threshold,
                    certify=False,
                )
                x = result.x
                optimum = brute_force(matrix, k)
                assert np.linalg.norm(x) == pytest.approx(1)
                assert 1 <= np.count_nonzero(x) <= k
                assert x[np.argmax(np.abs(x))] > 0
                assert result.objective == pytest.approx(x @ matrix @ x)
                assert result.objective <= optimum + 1e-9
                assert result.upper_bound >= optimum - 1e-9


@EVERY
def test_a_short_limit_leaves_a_vector(name):
    """A solver that ignores the limit would take years for 300 choose 20."""
    X = np.random.default_rng(0).normal(size=(100, 300))
    A = np.cov(X.T)
    SOLVERS[name]().solve(A[:5, :5], 2, limits=Limits())  # compile what needs it
    solution = SOLVERS[name]().solve(A, 20, limits=Limits(time=0.2))
    assert 1 <= np.count_nonzero(solution.x) <= 20
    assert solution.x @ A @ solution.x <= solution.upper_bound * (1 + 1e-12)


@EVERY
def test_input_is_not_written_to(name):
    A = symmetric_matrix("psd", 8, np.random.default_rng(0))
    before = A.copy()
    A.flags.writeable = False
    SOLVERS[name]().solve(A, 3, limits=Limits())
    np.testing.assert_array_equal(A, before)


@EVERY
@pytest.mark.data
def test_pitprops(name, load):
    A = load("pitprops")
    for k in (2, 5, 9):
        x = SOLVERS[name]().solve(A, k, limits=Limits()).x
        optimum = brute_force(A, k)
        assert 0.9 * optimum <= x @ A @ x <= optimum + 1e-9


@pytest.mark.parametrize("name", sorted(n for n in SOLVERS if exact(n)))
@pytest.mark.parametrize("exponent", [-300, -200, -160, 160, 200, 300])
def test_exact_at_scales_whose_squares_are_out_of_range(name, exponent):
    """The heuristics only promise to be given such a matrix in another unit."""
    A = symmetric_matrix("psd", 7, np.random.default_rng(5))
    scale = 10.0**exponent
    for k in (2, 3):
        optimum = brute_force(A, k)
        solution = SOLVERS[name]().solve(A * scale, k, limits=Limits())
        assert solution.status is bs.Status.OPTIMAL
        assert solution.x @ A @ solution.x == pytest.approx(optimum, rel=1e-9)
        assert optimum * (1 - 1e-14) <= solution.upper_bound / scale
        assert solution.upper_bound / scale <= optimum * (1 + 2e-6)
