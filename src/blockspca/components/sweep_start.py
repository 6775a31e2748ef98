"""Sets of components to begin sweeps from, found together and not in turn.

The best k features of one component may be those that two others need. With fewer
features a component is content with the core of its group, so sets of disjoint
components are found for some smaller k as well; then every component in turn takes, up
to its own k, what is best for it while the others stay, for schemes whose components
fulfil linear conditions. The set with the largest total is kept. Then it is varied,
again and again: components are rotated among themselves and cut to their k largest
loadings, or some features of one are exchanged at random, or leading eigenvectors are
rotated; what ascents make of that is kept if the total rises. Nothing is proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..limits import Deadline
from ..numerics.linalg import largest_entries
from ..result import Result
from ..status import Status
from .conditions import MOST_DENSE, ascend, search_constrained, supports_of_rows
from .orthogonal import Conditioned
from .scheme import BaseScheme, SolveOne
from .sweeps import total, unproved

# Of k, for the sets to begin with, the best first: on snp500, four orthogonal
# components of 35 features reach 0.1124 of the trace from 0.9, 0.1153 from 0.7.
SHARES = (0.7, 1.0, 0.55)
ROWS = 6  # of PAP, to whose supports ascents are made in each round
ROUNDS = 12
GAIN = 1e-9  # of the total, without which rounds end
# How often the best set is varied. A trial costs about m k³, and there are fewer where
# all would cost more than so much. With 40, two components of 20 features of
# normIonosphere reach 12.57, and 12.46 with starts that do not build on each other.
TRIALS, WORK = 40, 1_000_000
ANGLES = (0.1, 0.3, 0.6)  # of rotations, about
EXCHANGED = 4  # one in so many features of a component is exchanged


def begun_together(
    cov: Covariance, results: list[Result], scheme: BaseScheme, solve_one: SolveOne
) -> list[Result]:
    """Return the results, or with other components if those have a larger total."""
    if not isinstance(scheme, Conditioned):
        return results
    rows = np.array([result.x for result in results])
    ks = [result.k for result in results]
    found = _Search(cov, ks, scheme, solve_one).found(rows)
    if np.array_equal(found, rows):
        return results
    # Sweeps prove every component again: here only x counts.
    begun = [unproved(r, x, cov) for r, x in zip(results, found, strict=True)]
    raised = total(cov, begun, scheme) > total(cov, results, scheme)
    return begun if raised else results


@dataclass(frozen=True)
class _Search:
    """Looks for components with a large total, as rows of (m, d) arrays."""

    cov: Covariance
    sparsities: Sequence[int]
    scheme: Conditioned
    solve_one: SolveOne

    @property
    def deadline(self) -> Deadline:
        return self.solve_one.deadline

    def found(self, components: FloatArray) -> FloatArray:
        """Return components with at least the total of the given ones."""
        best = self.raised(components)
        for share in SHARES:
            if self.deadline.passed():
                break
            begun = self.apart([max(1, math.ceil(share * k)) for k in self.sparsities])
            if begun is not None:
                trial = self.raised(begun)
                if self.total(trial) > self.total(best):
                    best = trial
        return self.varied(best)

    def total(self, components: FloatArray) -> float:
        return sum(float(x @ self.cov.matvec(x)) for x in components)

    def varied(self, best: FloatArray) -> FloatArray:
        """Return components that no trial improves, or as many as there are."""
        rng = np.random.default_rng(0)
        m, d = best.shape
        if m < 2 or d > MOST_DENSE:
            return best
        leading = np.linalg.eigh(self.cov.submatrix(slice(None)))[1][:, ::-1][:, :m].T
        reached = self.total(best)
        for trial in range(min(TRIALS, WORK // (m * max(self.sparsities) ** 3))):
            if self.deadline.passed():
                break
            vectors = _variation(best, leading, trial, rng)
            supports = map(largest_entries, vectors, self.sparsities)
            begun = self.near(list(supports), self.sparsities)
            if begun is None:
                continue
            begun = self.raised(begun, 0)
            total = self.total(begun)
            if total > reached + GAIN * abs(reached):
                best, reached = begun, total
        return best

    def apart(self, sparsities: Sequence[int]) -> FloatArray | None:
        """Return components near disjoint ones that fulfil the conditions, or None."""
        free = np.arange(self.cov.n_features, dtype=np.intp)
        starts: list[NDArray[np.intp]] = []
        for k in sparsities:
            if len(free) == 0:
                return None
            part = restricted(self.cov, free)
            found = self.solve_one(part, min(k, len(free)), certify=False)
            if found.status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # of the call, not of this start alone
            starts.append(free[found.support])
            free = np.setdiff1d(free, starts[-1])
        return self.near(starts, sparsities)

    def near(
        self, supports: Sequence[NDArray[np.intp]], sparsities: Sequence[int]
    ) -> FloatArray | None:
        """Return components near the supports that fulfil the conditions, or None."""
        cov, found = self.cov, np.zeros((0, self.cov.n_features))
        for support, k in zip(supports, sparsities, strict=True):
            normals = self.scheme.normals(cov, found)
            near = ascend(cov, normals, k, support, self.deadline)
            if near is None:
                return None
            found = np.vstack([found, near.vector(cov.n_features)])
        return found

    def raised(self, components: FloatArray, rows: int = ROWS) -> FloatArray:
        """Return components of which none is improved by an ascent while others stay.

        Ascents are made from so many rows of PAP as well.
        """
        cov, components = self.cov, components.copy()
        before = self.total(components)
        for _ in range(ROUNDS):
            for j, k in enumerate(self.sparsities):
                if self.deadline.passed():
                    return components
                normals = self.scheme.normals(cov, np.delete(components, j, axis=0))
                starts = [np.flatnonzero(components[j])]
                if rows:
                    starts += supports_of_rows(cov, normals, k, rows)
                found = search_constrained(cov, normals, k, starts, self.deadline)
                now = float(components[j] @ cov.matvec(components[j]))
                if found is not None and found.objective > now:
                    components[j] = found.vector(cov.n_features)
            after = self.total(components)
            if not after > before + GAIN * abs(before):
                break
            before = after
        return components


def _variation(
    best: FloatArray, leading: FloatArray, trial: int, rng: np.random.Generator
) -> FloatArray:
    """Return m vectors whose largest entries are supports to begin with."""
    m = len(best)
    if trial % 3 == 2:
        return np.asarray(np.linalg.qr(rng.normal(size=(m, m)))[0] @ leading)
    if trial % 3 == 1:
        # By turns: a few features are exchanged, components are turned among
        # themselves, or all begins anew in the space of PCA.
        varied = best.copy()
        row = varied[int(rng.integers(m))]
        own, free = np.flatnonzero(row), np.flatnonzero(row == 0)
        count = min(max(1, len(own) // EXCHANGED), len(free))
        row[rng.permutation(own)[:count]] = 0.0
        row[rng.permutation(free)[:count]] = 1.0
        return varied
    turn = rng.choice(ANGLES) * rng.normal(size=(m, m))
    return np.asarray(np.linalg.qr(np.eye(m) + turn - turn.T)[0] @ best)
