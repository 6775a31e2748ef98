"""Components that are orthogonal and sparse at once, with a bound on the best one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_positive
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..covariance.derived import (
    corrected,
    correction_error,
    projection_term,
    restricted,
)
from ..numerics.rounding import EPS
from ..result import Result
from ..status import Status
from .conditions import ascend, search_constrained, supports_of_rows
from .conditions_search import Conditions
from .finish import finished
from .rewrite import with_component
from .scheme import PROJECTION, NoComponent, SolveOne
from .schemes import (
    _Deflation,
    orthonormal_basis,
    row_space,
    used_features,
)

PROOF_SHARE = 0.8  # of the component's time; the rest is for the search
# Bounds that are for orthogonal vectors only, and not for all of B
FOR_ORTHOGONAL = (BoundName.EARLIER_COMPONENT, BoundName.CONDITIONS)
ROWS = 4  # of A, to whose supports ascents are made as well


class Conditioned(_Deflation):
    """A scheme whose next component keeps conditions W'x = 0.

    Its problem, without them, bounds the component, which ascents and swaps under them
    find; where the two do not meet, `finish` may go on.
    """

    @abstractmethod
    def normals(self, cov: Covariance, components: FloatArray) -> FloatArray:
        """Return an orthonormal basis of W for these components, (d, m)."""

    @abstractmethod
    def conditions(self, cov: Covariance, earlier: Sequence[Result]) -> Conditions:
        """W, and how well it is known."""

    @abstractmethod
    def _none_found(self, k: int, m: int, d: int) -> NoComponent:
        """Say that there seems to be no such vector after m components."""

    def _refuse_broken(
        self, cov: Covariance, earlier: Sequence[Result], result: Result
    ) -> None:
        """Raise ValueError if rounding has broken the conditions."""

    def _further_starts(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> list[NDArray[np.intp]]:
        """Supports to start from besides that of the problem without conditions."""
        return []

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        if not earlier:
            return solve_one(cov, k)
        problem = self.problem(cov, earlier)
        relaxed = solve_one(problem, k, share=PROOF_SHARE)
        starts = [relaxed.support, *self._further_starts(cov, earlier, k, solve_one)]
        conditions = self.conditions(cov, earlier)
        # The relaxation's own component need not be orthogonal; only its bound is used
        # as it is.
        x = _best_under(cov, row_space(conditions.W.T), k, starts, solve_one)
        if x is None:
            raise self._none_found(k, len(earlier), cov.n_features)
        result = with_component(relaxed, x, problem, reconsider=True)
        limits, deadline = solve_one.limits, solve_one.deadline
        result = finished(result, problem, conditions, limits, deadline)
        self._refuse_broken(cov, earlier, result)
        return result


@dataclass(frozen=True)
class Orthogonalised(Conditioned):
    """x_j maximises x'Ax over k-sparse unit vectors orthogonal to x_1, …, x_{j−1}.

    Gram–Schmidt that keeps sparsity: the loadings of component j are chosen, on their
    k features, orthogonal to the earlier components, which may share features with it.
    What is guaranteed: orthogonality to rounding, at most k nonzeros, and an upper
    bound on what any such vector reaches.

    Parameters
    ----------
    penalty : float
        M below, in units of the first component's variance. A larger one brings the
        bound closer to the optimum, in proportion to 1/M, until the largest entries of
        B spoil the precision of its proof.

    Notes
    -----
    With Q an orthonormal basis of the earlier components, P = I − QQ' and M > 0, let
    B = PAP − M QQ'. A vector with Q'x = 0 has x'Bx = x'Ax, so the k-sparse optimum of B
    is an upper bound for orthogonal components. Component j is certified for B: the
    bound is proved there, and the component found has the same objective on B and on A.
    Its status is optimal if the two meet, which they always do if the optimum of B has
    no feature in common with the earlier components; otherwise a search of all sets
    under the conditions follows, for up to 200 features (`finish`), and where that does
    not end it is feasible, with the gap that remains. If an earlier component's bound
    is smaller, it is taken: it holds for the orthogonal vectors, though not for B. The
    component itself is found by a search over supports, each with its best orthogonal
    loadings.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[4, 3, 0, 1], [3, 4, 0, 1], [0, 0, 3, 2], [1, 1, 2, 3]]
    >>> found = bs.solve_components(A, 3, 2, scheme=bs.Orthogonalised())
    >>> [support.tolist() for support in found.supports]
    [[0, 1, 3], [0, 2, 3]]
    >>> bool(abs(found.components[0] @ found.components[1]) < 1e-12)
    True
    """

    adds_variances: ClassVar[bool] = True
    orthogonal = True
    penalty: float = 100.0

    def __post_init__(self) -> None:
        penalty = check_positive(self.penalty, "penalty")
        object.__setattr__(self, "penalty", penalty)

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        if not earlier:
            return cov
        basis, right = self._correction(cov, earlier)
        origin = f"{basis.shape[1]} direction(s) penalised"
        return corrected(cov, basis, right, psd=False, origin=origin)

    def _correction(
        self, cov: Covariance, earlier: Sequence[Result]
    ) -> tuple[FloatArray, FloatArray]:
        """Q and R with B = A − (Q R' + R Q')."""
        basis = orthonormal_basis(earlier)
        weight = penalty_of(self, earlier)
        return basis, projection_term(cov, basis) + basis * (weight / 2)

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """Rounding: who is orthogonal to j − 1 vectors is so to the first i − 1.

        *Proof.* Let x be k-sparse and orthogonal to all earlier components. Its
        objective is x'Ax, in the problem of component i as in that of j. A bound for A
        (i = 1), or for orthogonal vectors (`FOR_ORTHOGONAL`), holds for x. A bound
        for B_i = A − (QR' + RQ') as computed is one for x'Ax − 2 (Q'x)'(R'x), and
        ‖Q'x‖ ≤ ‖Q − VW‖ for every W, V being the components before i. A matrix in
        memory is rounded to entries that are off by e, and |x'Ex| ≤ k e.
        """
        certificate = earlier[i].certificate
        name = earlier[i].bound_name if certificate is None else certificate.bound_name
        if i == 0 or name in FOR_ORTHOGONAL:
            return 0.0
        basis, right = self._correction(cov, earlier[:i])
        used = used_features(earlier[:i])
        loadings = np.array([result.x[used] for result in earlier[:i]]).T
        weights = np.linalg.lstsq(loadings, basis[used], rcond=None)[0]
        apart = np.abs(basis[used] - loadings @ weights)
        size = np.abs(basis[used]) + np.abs(loadings) @ np.abs(weights)
        apart += (i + 2) * EPS * size  # the rounding of this difference
        sizes = np.abs(basis).max(axis=0) * np.abs(right).max(axis=0)
        largest = cov.max_abs() + 2 * float(sizes.sum())
        across = float(np.linalg.norm(apart)) * float(np.linalg.norm(right))
        return 2 * across + k * correction_error(basis.shape[1], largest)

    def normals(self, cov: Covariance, components: FloatArray) -> FloatArray:
        """Return an orthonormal basis of what x is to be orthogonal to, (d, m)."""
        return row_space(components)

    def conditions(self, cov: Covariance, earlier: Sequence[Result]) -> Conditions:
        """V'x = 0, V the earlier components as they are stored."""
        return Conditions(np.array([result.x for result in earlier]).T, 0.0)

    def _further_starts(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> list[NDArray[np.intp]]:
        """Features of their own, which make any component orthogonal."""
        free = np.setdiff1d(
            np.arange(cov.n_features, dtype=np.intp), used_features(earlier)
        )
        if not len(free):
            return []
        size = min(k, len(free))
        apart = solve_one(restricted(cov, free), size, certify=False, share=0.5)
        if apart.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # of the call, not of this start alone
        return [free[apart.support]]

    def _none_found(self, k: int, m: int, d: int) -> NoComponent:
        return NoComponent(
            f"no vector with k = {k} nonzeros orthogonal to the {m} earlier "
            f"component(s) was found among {d} features; pass a larger k, fewer "
            f"components, or {PROJECTION}.",
            PROJECTION,
        )


def penalty_of(scheme: Orthogonalised, earlier: Sequence[Result]) -> float:
    """M, the penalty in units of A."""
    return scheme.penalty * abs(earlier[0].objective)


def _best_under(
    cov: Covariance,
    normals: FloatArray,
    k: int,
    starts: Sequence[NDArray[np.intp]],
    solve_one: SolveOne,
) -> FloatArray | None:
    """Return the best vector with W'x = 0 that ascents come to, or None."""
    deadline = solve_one.deadline
    starts = list(starts)
    if solve_one.start is not None:
        starts.append(np.flatnonzero(solve_one.start))
    further = supports_of_rows(cov, normals, k, ROWS) if not deadline.passed() else []
    found = search_constrained(cov, normals, k, [*starts, *further], deadline)
    if found is not None:
        found = ascend(cov, normals, k, found.support, deadline, thoroughly=True)
    return None if found is None else found.vector(cov.n_features)
