"""The program in the eigenbasis: no support that is better is cut off."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca.limits import Deadline
from blockspca.numerics.linalg import on_support
from blockspca.solvers._eigenbasis_program import EigenbasisProgram
from conftest import brute_force
from strategies import problems, symmetric_matrix

SLACK = 1e-6


def scaled(A: np.ndarray) -> np.ndarray:
    return A / (np.abs(A).max() or 1.0)


def chord_error(program: EigenbasisProgram) -> float:
    """What the chords add at the most: Σ (λ_i − λ) h²/4."""
    widest = np.array([float(np.diff(own).max()) for own in program.breakpoints])
    return float(program.weights @ widest**2) / 4


def program_for(A, k, *, level, reached, with_support, segments=2):
    return EigenbasisProgram(
        *np.linalg.eigh(A),
        k,
        level=level,
        reached=reached,
        segments=segments,
        with_support=with_support,
    )


@given(
    problem=problems(max_features=6),
    place=st.floats(0, 1),
    share=st.sampled_from([0.5, 0.9, 1.0]),
    with_support=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_the_bound_holds_for_every_level_and_every_value_reached(
    problem, place, share, with_support
):
    A, k = scaled(problem[0]), problem[1]
    optimum = brute_force(A, k)
    eigenvalues = np.linalg.eigvalsh(A)
    level = eigenvalues[0] + place * (eigenvalues[-1] - eigenvalues[0])
    reached = optimum - (1 - share) * abs(optimum)
    program = program_for(A, k, level=level, reached=reached, with_support=with_support)
    for integer in (False, True):
        answer = program.maximise(Deadline(None), integer=integer)
        assert max(answer.bound, reached) >= optimum - SLACK
        if answer.x is not None:
            program.refine(answer.x[: len(A)])


@pytest.mark.parametrize("kind", ["psd", "indefinite", "duplicated"])
def test_with_all_supports_but_one_excluded_that_one_is_bounded(kind):
    """Each support by itself: the program must not cut off any of them."""
    A = scaled(symmetric_matrix(kind, 6, np.random.default_rng(3)))
    supports = list(itertools.combinations(range(6), 3))
    lowest = min(on_support(A, S)[1] for S in supports)
    level = float(np.median([on_support(A, S)[1] for S in supports]))
    for kept in supports[::4]:
        program = program_for(
            A, 3, level=level, reached=lowest, with_support=True, segments=4
        )
        for other in supports:
            if other != kept:
                program.exclude(np.array(other))
        answer = program.maximise(Deadline(None))
        _, value = on_support(A, kept)
        assert answer.bound >= value - SLACK
        assert program.support_of(answer.x).tolist() == list(kept)


def test_a_support_with_room_left_is_not_excluded():
    A = scaled(symmetric_matrix("psd", 5, np.random.default_rng(1)))
    program = program_for(A, 3, level=0.5, reached=0.0, with_support=True)
    program.exclude(np.array([0]))
    assert program.excluded == []


def test_chords_are_above_by_what_is_said():
    """With d = k nothing is sparse: what is left is the error of chords, tangents."""
    A = scaled(symmetric_matrix("psd", 4, np.random.default_rng(0)))
    values = np.linalg.eigvalsh(A)
    top, level = float(values[-1]), float(values[-3])  # two have chords
    for segments in (1, 3):
        program = program_for(
            A, 4, level=level, reached=level, with_support=False, segments=segments
        )
        expected = sum(
            weight * (0.25 / segments**2) * (program.theta[i] ** 2)
            for weight, i in zip(program.weights, program.above, strict=True)
        )
        assert chord_error(program) == pytest.approx(expected, rel=1e-4)
        for _ in range(5):
            answer = program.maximise(Deadline(None))
            program.refine(answer.x[:4])
        assert top - SLACK <= answer.bound <= top + chord_error(program) + 1e-3


def test_a_single_eigenvalue_above_the_level_starts_at_the_root():
    """x'Ax ≥ r = λ asks for w g² ≥ q (1 − g²), g the first factor."""
    A = np.diag([1.0, 0.4, 0.3])
    program = program_for(A, 2, level=0.7, reached=0.7, with_support=True)
    assert program.breakpoints[0][0] == pytest.approx(math.sqrt(0.3 / 0.6), abs=1e-5)
    none = program_for(A, 2, level=1.0, reached=1.0, with_support=True)
    assert none.breakpoints == []
    assert none.maximise(Deadline(None)).bound <= 1.0 + SLACK


def test_refining_twice_changes_nothing():
    A = scaled(symmetric_matrix("psd", 5, np.random.default_rng(2)))
    program = program_for(A, 2, level=0.1, reached=0.1, with_support=False)
    x = on_support(A, [1, 3])[0]
    program.refine(x)
    counts = [len(own) for own in program.factor_tangents.points]
    sizes = [len(own) for own in program.breakpoints]
    program.refine(x)
    assert [len(own) for own in program.factor_tangents.points] == counts
    assert [len(own) for own in program.breakpoints] == sizes
