"""Branch and cut over supports with HiGHS: exact, and independent of the others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import largest_eigenvalue_bound, row_sum_bound
from ..numerics.linalg import leading_eigenvector, symmetric_eigenvalues
from ..status import Status
from ._highs import TOLERANCE, ExactProgram, gap_wanted, minimise, start_locally
from .base import EXACT, SolverError
from .template import SolverRun

ROOT_ROUNDS = 60
WORTHWHILE = 1e-4  # relative improvement that makes another root round worth its time
SHARES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # of λ, for the weight p of a cut


class MixedIntegerSDP(ExactProgram):
    """max w over z ∈ {0, 1}^d, Σ z_i = k, with cuts w ≤ λmax(A − P) + Σ P_ii z_i.

    For the support S of z the optimum of sparse PCA is that of max ⟨A, X⟩, tr X = 1,
    0 ⪯ X ⪯ Diag(z), whose dual is min over P ⪰ 0 of λmax(A − P) + Σ P_ii z_i: every P
    gives a cut that holds for all z. Where a solution z of HiGHS has the support S and
    the loadings x, with λ = λmax(A_SS) and a = A_FS x the pull on the other features,
    the closed form P = p uu' + δ Diag(1_F), u = (x, a/p), makes it tight at S.

    Exact within HiGHS's tolerance: 1e-6 relative, which the upper bound includes. Meant
    for some dozens of features, as a check on the other exact solvers.

    Notes
    -----
    Li & Xie's own cut, λmax(A_SS) + Σ_{i∉S} A_ii z_i, is not used: `swap_cut` is of the
    same form with other coefficients, which hold for indefinite A too, and the cuts
    from P above come from the relaxation with X ⪯ Diag(z).

    First the cuts of the continuous relaxation are added until it stops improving, then
    integer programs are solved, each with the cuts of the solution before, until the
    bound meets the best objective. Nodes are those of HiGHS. A time limit or Ctrl-C
    returns the best support and the last bound.

    References
    ----------
    Li, Y. and Xie, W. (2020). Exact and approximation algorithms for sparse PCA.
    arXiv:2008.12438.

    Examples
    --------
    >>> from blockspca.solvers import MixedIntegerSDP
    >>> MixedIntegerSDP().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).support
    array([0, 1])
    """

    name = "mixed-integer SDP"
    guarantee = EXACT

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        if run.takes_all():
            return
        run.offer([int(np.argmax(run.variances))])
        run.tighten(row_sum_bound(A, k))
        _BranchAndCut(A, k, run).search()


class _BranchAndCut:
    """The loop of programs and cuts for one matrix."""

    def __init__(self, A: FloatArray, k: int, run: SolverRun) -> None:
        self.original, self.k, self.run = A, k, run
        largest = float(np.abs(A).max())
        # The tolerances of HiGHS are absolute.
        self.scale = largest if largest > 0 else 1.0
        self.A = A / self.scale
        #: w ≤ constant + coefficients · z, in units of the scale of A
        self.cuts: list[tuple[float, FloatArray]] = []

    @property
    def reached(self) -> float:
        return max(self.run.objective, self.run.incumbent)

    def add_cut(self, P: FloatArray) -> None:
        constant = largest_eigenvalue_bound(self.A - P)
        self.cuts.append((constant, np.diagonal(P).copy()))

    def search(self) -> None:
        d, run = len(self.A), self.run
        start_locally(self.original, self.k, run)
        self.add_cut(np.zeros((d, d)))
        lowest = float(symmetric_eigenvalues(self.A)[0])
        # P has to be semidefinite, in spite of rounding.
        shift = max(0.0, -lowest) + 1e-12 * d
        self.add_cut(self.A + shift * np.eye(d))
        for _ in range(ROOT_ROUNDS):
            before = run.upper_bound
            z = self.program(integer=False)
            if z is None or self.done():
                return
            self.cut_off(z)
            if before - run.upper_bound < WORTHWHILE * abs(run.upper_bound):
                break
        while True:
            z = self.program(integer=True)
            if z is None or self.done():
                return
            chosen = np.round(z)
            run.offer(np.flatnonzero(chosen))
            self.cut_off(chosen)

    def done(self) -> bool:
        wanted = gap_wanted(self.reached / self.scale, self.run.limits)
        return self.run.upper_bound <= self.reached + self.scale * wanted

    def program(self, integer: bool) -> FloatArray | None:
        """Solve max w subject to the cuts; None if a limit is reached."""
        from scipy.optimize import Bounds, LinearConstraint

        d, run = len(self.A), self.run
        if run.must_stop():
            return None
        constants, coefficients = (
            np.array(part) for part in zip(*self.cuts, strict=True)
        )
        rows = np.column_stack([-coefficients, np.ones_like(constants)])
        answer = minimise(
            np.append(np.zeros(d), -1.0),
            integrality=np.append(np.full(d, float(integer)), 0.0),
            bounds=Bounds(
                np.append(np.zeros(d), -np.inf), np.append(np.ones(d), np.inf)
            ),
            constraints=[
                LinearConstraint(rows, -np.inf, constants),
                LinearConstraint(np.append(np.ones(d), 0.0)[None], self.k, self.k),
            ],
            deadline=run.deadline,
        )
        if answer.bound == math.inf:  # the program has points, whatever the cuts
            raise SolverError("HiGHS says that there is no set of k features.")
        run.nodes += answer.nodes
        # HiGHS minimises −w; half of the gap is allowed for the error of its bound.
        run.tighten(self.scale * (TOLERANCE / 2 - answer.bound))
        if answer.x is None or not answer.finished:
            run.stopped = Status.TIME_LIMIT
            return None
        clipped: FloatArray = np.clip(answer.x[:d], 0.0, 1.0)
        return clipped

    def cut_off(self, z: FloatArray) -> None:
        """Add the cuts that are lowest at z: rank-one ones, and a tight one at S."""
        root = np.sqrt(z)
        x = root * leading_eigenvector(root[:, None] * self.A * root)
        pull = self.A @ x
        value = max(float(x @ pull), 1e-9)
        outside = z < 0.5
        candidates = []
        for share in SHARES:
            p = share * value
            u = np.where(outside, pull / p, pull / value)
            # Which p is best depends on z. To try one, with and without less weight
            # outside, takes eigenvalues instead of another program.
            for vector in (u, pull / value):
                P = p * np.outer(vector, vector)
                top = float(symmetric_eigenvalues(self.A - P)[-1])
                candidates.append((top + float(np.diagonal(P) @ z), P))
        self.add_cut(min(candidates, key=lambda c: c[0])[1])
        if np.all((z == 0) | (z == 1)):
            self.cuts.append(swap_cut(self.A, ~outside, self.k))
            tight = tight_multiplier(self.A, ~outside, self.k)
            if tight is not None:
                self.add_cut(tight)


def swap_cut(
    A: FloatArray, inside: NDArray[np.bool_], k: int
) -> tuple[float, FloatArray]:
    """Return the cut w ≤ λ + Σ_{i∉S} g_i z_i, where λ = λmax(A_SS).

    A feature i adds to a value of at least λ no more than λmax [[λ, c_i], [c_i, A_ii]]
    does, c_i² being the sum of the k − 1 largest A_ij²: that less λ is g_i.
    """
    value = largest_eigenvalue_bound(A[np.ix_(inside, inside)])
    squares = A**2
    np.fill_diagonal(squares, 0.0)
    coupling = np.sort(squares, axis=1)[:, len(A) - k + 1 :].sum(axis=1)
    half = (np.diagonal(A) - value) / 2
    gains = half + np.sqrt(half**2 + coupling) + 1e-12
    return value, np.where(inside, 0.0, gains)


def tight_multiplier(
    A: FloatArray, inside: NDArray[np.bool_], k: int
) -> FloatArray | None:
    """Return P = p uu' + δ Diag(1_F), u = (x, a/p), whose cut equals λmax(A_SS) at S.

    p must stay below the gap of the two largest eigenvalues of A_SS, and δ ≥ 0 is the
    least that keeps λmax(A − P) = λ − p. Of some p, the one with the lowest bound over
    all z is taken. None if the gap is zero, where no such P exists.
    """
    S, F = np.flatnonzero(inside), np.flatnonzero(~inside)
    eigenvalues, vectors = np.linalg.eigh(A[np.ix_(S, S)])
    value = float(eigenvalues[-1])
    gap = value - float(eigenvalues[-2]) if len(S) > 1 else abs(value)
    if gap <= 1e-6:
        return None
    coupling = A[np.ix_(F, S)] @ vectors
    pull, others = coupling[:, -1], coupling[:, :-1]
    best, lowest = None, math.inf
    for share in SHARES[:-1]:
        p = share * gap
        room = value - p - eigenvalues[:-1]
        rest = A[np.ix_(F, F)] - np.outer(pull, pull) / p + (others / room) @ others.T
        delta = max(0.0, float(symmetric_eigenvalues(rest)[-1]) - (value - p))
        coefficients = np.concatenate([p * vectors[:, -1] ** 2, pull**2 / p + delta])
        total = value - p + float(np.sort(coefficients)[-k:].sum())
        if total < lowest:
            u = np.zeros(len(A))
            u[S], u[F] = vectors[:, -1], pull / p
            lowest, best = total, p * np.outer(u, u)
            best[F, F] += delta
    return best
