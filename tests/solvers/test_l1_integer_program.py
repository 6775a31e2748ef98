"""The bound from the ℓ1 relaxation: it holds, with its factor; limits and Ctrl-C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from blockspca import Status
from blockspca.limits import Deadline
from blockspca.solvers import L1IntegerProgram, Limits
from blockspca.solvers import l1_integer_program as module
from blockspca.solvers._eigenbasis_program import EigenbasisProgram
from conftest import brute_force
from strategies import problems, symmetric_matrix


def bound_of_the_relaxation(A, k, rank, segments) -> tuple[float, float]:
    """The program as in the paper, solved to the end; and what chords add."""
    eigenvalues, eigenvectors = np.linalg.eigh(A)
    level = float(eigenvalues[-1 - rank])
    program = EigenbasisProgram(
        eigenvalues,
        eigenvectors,
        k,
        level=level,
        reached=-1e3,  # nothing is cut off: the relaxation itself
        segments=segments,
        with_support=False,
    )
    widest = np.array([float(np.diff(own).max()) for own in program.breakpoints])
    error = float(program.weights @ widest**2) / 4
    for _ in range(4):
        answer = program.maximise(Deadline(None))
        program.refine(answer.x[: len(A)])
    return answer.bound, error


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rank", [1, 2])
def test_the_factor_of_the_relaxation(seed, rank):
    A = symmetric_matrix("psd", 6, np.random.default_rng(seed))
    A /= np.abs(A).max()
    level = np.linalg.eigvalsh(A)[-1 - rank]
    for k in (1, 3):
        optimum = brute_force(A, k)
        bound, error = bound_of_the_relaxation(A, k, rank, segments=3)
        promised = max(4 * optimum, 2 * optimum + level)
        assert optimum - 1e-6 <= bound <= promised + error + 1e-2


@pytest.mark.parametrize("k", [1, 4, 9])
def test_blocks_of_a_vector_carry_the_factor(k):
    """x'Ax ≤ (1 + c)² opt(k) for ‖x‖₂ = c ≤ 1, ‖x‖₁ ≤ √k: the step of the proof."""
    rng = np.random.default_rng(k)
    worst = 0.0
    for _ in range(200):
        x = rng.standard_t(2, size=12) * rng.random()
        x *= min(1 / np.linalg.norm(x), np.sqrt(k) / np.abs(x).sum())
        c = np.linalg.norm(x)
        blocks = np.sort(np.abs(x))[::-1]
        total = sum(np.linalg.norm(blocks[i : i + k]) for i in range(0, 12, k))
        worst = max(worst, total / (1 + c))
    assert worst <= 1 + 1e-12
    assert worst > 0.5


@given(problems(max_features=7))
@settings(deadline=None, max_examples=30)
def test_the_bound_holds(problem):
    A, k = problem
    solution = L1IntegerProgram(rank=2, segments=3).solve(A, k)
    optimum = brute_force(A, k)
    assert solution.upper_bound >= optimum - 1e-12 * max(1.0, np.abs(A).max())
    assert solution.x @ A @ solution.x <= optimum + 1e-9 * max(1.0, np.abs(A).max())


def test_more_eigenvalues_and_segments_make_it_tighter():
    A = symmetric_matrix("psd", 8, np.random.default_rng(6))
    coarse = L1IntegerProgram(rank=1, segments=1).solve(A, 3).upper_bound
    fine = L1IntegerProgram(rank=2, segments=4).solve(A, 3).upper_bound
    assert brute_force(A, 3) <= fine < coarse


def test_stopped_early_the_bound_still_holds():
    A = symmetric_matrix("psd", 12, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    for limits, status in (
        (Limits(nodes=1), Status.NODE_LIMIT),
        (Limits(time=0.0), Status.TIME_LIMIT),
        (Limits(memory=1000), Status.MEMORY_LIMIT),
        (Limits(gap=0.9), Status.GAP_LIMIT),
    ):
        solution = L1IntegerProgram().solve(A, 4, limits=limits)
        assert solution.status is status
        assert solution.upper_bound >= optimum


def test_an_interrupt_keeps_support_and_bound(monkeypatch):
    A = symmetric_matrix("psd", 9, np.random.default_rng(1))

    def interrupted(self, *given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.EigenbasisProgram, "maximise", interrupted)
    solution = L1IntegerProgram().solve(A, 3)
    assert solution.status is Status.INTERRUPTED
    assert brute_force(A, 3) <= solution.upper_bound < np.inf
    assert np.count_nonzero(solution.x) == 3


@pytest.mark.parametrize(("argument", "value"), [("rank", 0), ("segments", 1.5)])
def test_bad_parameters_are_named(argument, value):
    with pytest.raises((TypeError, ValueError), match=argument):
        L1IntegerProgram(**{argument: value}).solve(np.eye(3), 2)


@pytest.mark.data
def test_pitprops(load):
    A = load("pitprops")
    optimum = brute_force(A, 5)
    solution = L1IntegerProgram().solve(A, 5)
    assert optimum <= solution.upper_bound <= 1.04 * optimum
    assert solution.x @ A @ solution.x == pytest.approx(optimum)
