"""Good sets of k features for r components: alternating ascent, rounding, exchanges.

For A = C'C, F_r(S) = max Σ_{i∈S} ‖Y'c_i‖² over Y with r orthonormal columns. For a set
the best Y is that of its leading eigenvectors U, Y = CU Λ^{−1/2}; for Y the best set is
the k largest ‖Y'c_i‖² = Σ_l (A_i u_l)² / λ_l: neither step lowers the sum. An
indefinite A is shifted by its least variance and more, which changes no order of sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics.linalg import leading_eigenpairs
from ..numerics.rounding import TINY
from .shared_problem import SharedProblem

GAIN = 1e-12  # of the objective: less is rounding
MOST_STEPS = 100
EXCHANGED = 6  # features tried on either side of an exchange
EXCHANGE_UP_TO = 60  # features of a set: an exchange costs the cube of them


@dataclass(frozen=True)
class SharedSet:
    """A set S, the r leading eigenpairs of A_SS, and F_r(S)."""

    support: NDArray[np.intp]
    values: FloatArray
    vectors: FloatArray

    @property
    def objective(self) -> float:
        return float(self.values.sum())

    @classmethod
    def of(cls, cov: Covariance, support: NDArray[np.intp], r: int) -> SharedSet:
        support = np.sort(support)
        within = cov.submatrix(support)
        vectors = leading_eigenpairs(within, r)[1][:, ::-1]
        # u'Au, which is what is claimed: LAPACK's value may be above it.
        values = np.einsum("ij,ij->j", vectors, within @ vectors)
        return cls(support, values, vectors)

    def scores(self, cov: Covariance, shift: float) -> FloatArray:
        """Return ‖Y'c_i‖² of every feature, for A + shift I."""
        total = np.zeros(cov.n_features)
        for value, vector in zip(self.values, self.vectors.T, strict=True):
            x = np.zeros(cov.n_features)
            x[self.support] = vector
            image = cov.matvec(x) + shift * x
            # divided first: of numbers beyond 1e154 there is no square
            total += (image / np.sqrt(max(float(value) + shift, TINY))) ** 2
        return total


class SharedHeuristic:
    """Looks for sets of a problem: with its features, and within limits on groups."""

    def __init__(self, shared: SharedProblem) -> None:
        cov, self.k, self.r = shared.cov, shared.k, shared.r
        self.cov, self.include, self.limits = cov, shared.include, shared.limits
        self.shift = 0.0
        if not cov.known_psd:  # at least 0 on the diagonal, which suffices in practice
            self.shift = max(0.0, -float(cov.diagonal().min())) + cov.max_abs()

    def best_of(
        self,
        starts: Iterable[NDArray[np.intp]],
        deadline: Deadline,
        exchange: bool = True,
    ) -> SharedSet:
        """Return the best set that ascents lead to; the first start if time is up."""
        best: SharedSet | None = None
        for start in starts:
            if best is not None and deadline.passed():
                break
            begun = SharedSet.of(self.cov, start, self.r)
            found = self.ascend(begun, deadline, exchange)
            if best is None or found.objective > best.objective:
                best = found
        assert best is not None
        return best

    def starts(self) -> list[NDArray[np.intp]]:
        """The largest variances, and what goes with the largest of all."""
        diagonal = self.cov.diagonal()
        strongest = int(np.argmax(diagonal))
        row = np.abs(np.asarray(self.cov.submatrix(np.array([strongest]), slice(None))))
        return [self.top(diagonal), self.top(row[0])]

    def top(self, scores: FloatArray) -> NDArray[np.intp]:
        """Return the k largest scores, with the features that must be there.

        Under limits on groups, those of the largest sum: a feature is passed over if
        there is no more room in its group.
        """
        scores = np.array(scores, dtype=np.float64)
        scores[self.include] = np.inf
        order = np.argsort(-scores, kind="stable")
        if self.limits is not None:
            return np.sort(self.limits.first(order, self.k)).astype(np.intp)
        return np.sort(order[: self.k])

    def ascend(
        self, now: SharedSet, deadline: Deadline, exchange: bool = True
    ) -> SharedSet:
        for _ in range(MOST_STEPS):
            if deadline.passed():
                break
            scores = now.scores(self.cov, self.shift)
            trial = SharedSet.of(self.cov, self.top(scores), self.r)
            if not trial.objective > now.objective + GAIN * abs(now.objective):
                if not exchange or len(now.support) > EXCHANGE_UP_TO:
                    break
                trial = self._exchanged(now, scores, deadline)
            if not trial.objective > now.objective + GAIN * abs(now.objective):
                break
            now = trial
        return now

    def _exchanged(
        self, now: SharedSet, scores: FloatArray, deadline: Deadline
    ) -> SharedSet:
        """Return the best set that differs in one feature, or the set itself."""
        best = now
        inside = np.setdiff1d(now.support, self.include)
        outside = np.setdiff1d(np.arange(self.cov.n_features), now.support)
        weakest = inside[np.argsort(scores[inside], kind="stable")[:EXCHANGED]]
        strongest = outside[np.argsort(-scores[outside], kind="stable")[:EXCHANGED]]
        for out in weakest:
            rest = now.support[now.support != out]
            for new in strongest:
                if deadline.passed():
                    return best
                if self.limits is not None and not self.limits.allows(
                    np.append(rest, new)
                ):
                    continue
                trial = SharedSet.of(self.cov, np.append(rest, new), self.r)
                if trial.objective > best.objective:
                    best = trial
        return best
