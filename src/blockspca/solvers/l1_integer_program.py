"""The ℓ1 relaxation bounded by an integer program (Dey, Mazumder & Wang 2022)."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ..heuristics.swap import swapped
from ..numerics.linalg import leading_eigenvector
from ..status import Status
from ._eigenbasis_program import EigenbasisProgram
from ._highs import affords_program, gap_wanted, value_to_beat
from .convex_relaxation import ConvexRelaxation
from .template import BaseSolver, SolverRun

GAP = 1e-4  # of a program: the chords are no better than that
WORTHWHILE = 1e-3  # relative improvement that makes another round worth its time


class L1IntegerProgram(BaseSolver):
    """An upper bound from  max x'Ax  s.t.  ‖x‖₂ ≤ 1, ‖x‖₁ ≤ √k,  and x rounded.

    Unit vectors with k nonzeros have ‖x‖₁ ≤ √k, so this relaxation bounds opt(k) from
    above. It is not convex. With A = Σ λ_i v_i v_i' and λ = λ_{r+1}, the squares
    (v_i'x)² of the r leading terms are replaced by chords, N between 0 and the largest
    value; the rest is convex, and becomes tangents (`_eigenbasis_program.py`). HiGHS
    solves the mixed-integer linear program, tangents and breakpoints are added at the
    solution, and so on until the bound stops improving.

    For positive semidefinite A the ℓ1 relaxation itself is at most
    (1 + √(k/(k + 1)))² opt(k) (Dey et al.), less than 4 opt(k). The bound of
    the integer program, solved to the end with all tangents, is at most

        max(4 opt(k), 2 opt(k) + λ_{r+1}) + Σ_{i≤r} (λ_i − λ_{r+1}) θ_i² / (4N²) .

    Guarantee for x: objective ≥ OPT / min(k, d/k) for positive semidefinite A, as two
    of the supports tried are those of `ConvexRelaxation`: one contains the largest
    A_ii, the other has the k largest entries of the leading eigenvector.

    Parameters
    ----------
    rank : int
        r; integer variables are for the r largest eigenvalues only. More make the bound
        tighter, and the program much harder.
    segments : int
        N. Four and eight came to the same bound on pitprops, as breakpoints are added.

    Notes
    -----
    *Proof of the factor.* Let ‖x‖₂ = c ≤ 1 and ‖x‖₁ ≤ √k. Cut x, ordered by |x_j|, into
    blocks x_1, x_2, … of k entries. No entry of a block exceeds the mean of the block
    before, so ‖x_b‖₂ ≤ ‖x_{b−1}‖₁ / √k, and Σ ‖x_b‖₂ ≤ c + 1. Each x_b is k-sparse and
    x'Ax = ‖Σ A^{1/2} x_b‖², hence x'Ax ≤ (1 + c)² opt(k). The program maximises at most
    λ(1 − c²) + x'Ax, the chords aside, which is at most λ(1 − c²) + (1 + c)² opt(k):
    the largest for c = 1 if λ ≤ 2 opt(k), and at most λ + 2 opt(k) otherwise. ∎

    **HiGHS is trusted**, as in the other integer programs here: it has a feasibility
    tolerance of 1e-6, and 1e-6 of the largest |A_ij| is added to its bound. The bound
    holds for indefinite A, and whenever HiGHS is stopped. Nodes are those of HiGHS.

    It is tighter than the relaxation it is named after: |v_i'x| ≤ θ_i, the largest
    value for k-sparse x, and only x with x'Ax above the best objective are of interest.
    The solutions x are cut to k entries and improved by swaps.

    References
    ----------
    Dey, S. S., Mazumder, R. and Wang, G. (2022). Using ℓ1-relaxation and integer
    programming to obtain dual bounds for sparse PCA. Operations Research 70.

    Examples
    --------
    >>> from blockspca.solvers import L1IntegerProgram
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> solution = L1IntegerProgram().solve(A, 2)
    >>> solution.support, bool(3 <= solution.upper_bound < 3.1)
    (array([0, 1]), True)
    """

    name = "ℓ1 integer program"
    guarantee = ConvexRelaxation.guarantee
    _positive_integers = ("rank", "segments")

    def __init__(self, rank: int = 3, segments: int = 4) -> None:
        self.rank = rank
        self.segments = segments

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        d = len(A)
        if run.takes_all():
            return
        scale = float(np.abs(A).max()) or 1.0
        scaled = A / scale
        run.offer_vector(leading_eigenvector(scaled))
        reached = value_to_beat(A, k, run, scale)
        if reached is None:
            return
        eigenvalues, eigenvectors = np.linalg.eigh(scaled)
        program = EigenbasisProgram(
            eigenvalues,
            eigenvectors,
            k,
            level=float(eigenvalues[-1 - min(self.rank, d - 1)]),
            reached=reached,
            segments=self.segments,
            with_support=False,
        )
        program.refine(run.x)
        before = np.inf
        while not run.must_stop() and affords_program(run):
            answer, bound = program.tighten(run, scale, gap=GAP)
            if answer.x is not None:
                x = answer.x[:d]
                run.offer_vector(x)
                support, _, _ = swapped(scaled, run.support, stop=run.time_is_up)
                run.offer(support)
                program.refine(x)
            program.reached = max(program.reached, run.objective / scale)
            wanted = gap_wanted(program.reached, run.limits)
            if not answer.finished and not run.must_stop():
                run.stopped = Status.TIME_LIMIT  # HiGHS may be a moment early
            if run.stopped is not None or bound <= program.reached + wanted:
                return
            if bound > before - WORTHWHILE * abs(bound):
                return
            before = bound
