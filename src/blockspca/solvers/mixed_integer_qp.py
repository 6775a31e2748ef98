"""Sparse PCA as a mixed-integer quadratic program, by linear programs with HiGHS."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..status import Status
from ._eigenbasis_program import EigenbasisProgram
from ._highs import ExactProgram, affords_program, gap_wanted, value_to_beat
from .base import EXACT
from .template import SolverRun

SEGMENTS = 8  # chords to begin with; more are added where they matter
WORTHWHILE = 1e-3  # relative improvement that makes another relaxation worth its time


class MixedIntegerQP(ExactProgram):
    """max x'Ax  s.t.  ‖x‖₂ = 1, |x_j| ≤ z_j, Σ z_j = k, z ∈ {0, 1}^d.

    With λ the value of the best support so far, x'Ax is λ, plus (λ_i − λ)(v_i'x)² over
    the few eigenvalues above λ, less a convex quadratic. HiGHS has no such programs, so
    the convex part becomes tangents, with perspective x_j² ≤ t_j z_j, and the rest
    chords between breakpoints (`_eigenbasis_program.py`). Each mixed-integer linear
    program bounds all supports that have not been looked at; its solution is looked at,
    excluded, and made a point of tangents and breakpoints. When the bound meets the
    best value, that is optimal: there are finitely many supports.

    Exact within HiGHS's tolerance, for every symmetric A: HiGHS is trusted, and 1e-6 of
    the largest |A_ij| is added to its bound. Meant for some dozens of features and few
    eigenvalues above opt(k), as a check on the other exact solvers.

    Notes
    -----
    First the continuous relaxation is solved until it stops improving. Nodes are those
    of HiGHS. A limit or Ctrl-C returns the best support and the last bound.

    References
    ----------
    Dey, S. S., Molinaro, M. and Wang, G. (2022). Solving sparse principal component
    analysis with global support. Mathematical Programming.

    The chords are those of `L1IntegerProgram`, which names their source.

    Examples
    --------
    >>> from blockspca.solvers import MixedIntegerQP
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> solution = MixedIntegerQP().solve(A, 2)
    >>> solution.support, solution.status.value
    (array([0, 1]), 'optimal')
    """

    name = "mixed-integer QP"
    guarantee = EXACT

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        if run.takes_all():
            return
        scale = float(np.abs(A).max()) or 1.0
        reached = value_to_beat(A, k, run, scale)
        if reached is None:
            return
        eigenvalues, eigenvectors = np.linalg.eigh(A / scale)
        program = EigenbasisProgram(
            eigenvalues,
            eigenvectors,
            k,
            level=reached,
            reached=reached,
            segments=SEGMENTS,
            with_support=True,
        )
        program.refine(run.x)
        program.exclude(run.support)
        for integer in (False, True):
            if _bounded(program, run, scale, integer=integer):
                return


def _bounded(
    program: EigenbasisProgram, run: SolverRun, scale: float, *, integer: bool
) -> bool:
    """Lower the bound round by round; tell whether that ended the search.

    Relaxations end as well when they have stopped improving.
    """
    wanted = gap_wanted(program.reached, run.limits)
    before = np.inf
    while not run.must_stop() and affords_program(run):
        answer, bound = program.tighten(run, scale, integer=integer)
        if bound <= program.reached + wanted:
            return True
        if not answer.finished:
            if not run.must_stop():  # HiGHS may be a moment early
                run.stopped = Status.TIME_LIMIT
            return True
        if answer.x is None:  # nothing is known of this relaxation
            return False
        program.refine(answer.x[: program.d])
        if integer:
            support = program.support_of(answer.x)
            run.offer(support)
            program.exclude(support)
            program.reached = max(program.reached, run.objective / scale)
        elif bound > before - WORTHWHILE * abs(bound):
            return False
        before = bound
    return True
