"""A problem with all that is known about it, and what may be said of it.

The comparisons are exact, up to the long doubles of `zoo.Reference`: a bound that is an
ulp too low is wrong. Data are the exception, as their covariance is rounded itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import blockspca as bs
from blockspca.search.schur_tree import extent, rounding_allowance
from zoo import EPS, Problem, Reference, rayleigh_below

OPTIMAL_GAP = 1.01e-6  # the largest that "optimal" may have, with some rounding


@dataclass(frozen=True)
class Wrong:
    """A statement that does not hold."""

    prover: str
    k: int
    text: str


@dataclass
class Case:
    """A problem with what is known about it and the random choices of its judges.

    Attributes
    ----------
    problem : Problem
    truth : Reference
        Of the problem: of data, in long doubles.
    unit : float
        A power of two near max |A_ij|.
    A : array of shape (d, d)
        The float64 matrix in units of `unit`, as the path hands it to its provers.
    matrix : Reference
        Of A.
    rng : Generator
    """

    problem: Problem
    truth: Reference
    unit: float
    A: np.ndarray
    matrix: Reference
    rng: np.random.Generator

    @classmethod
    def of(cls, problem: Problem, seed: int) -> Case:
        truth = Reference(problem.exact)
        A = problem.A / truth.unit
        matrix = Reference(A) if problem.from_data else truth.in_units()
        rng = np.random.default_rng([seed, 1])
        return cls(problem, truth, truth.unit, A, matrix, rng)

    def some_k(self) -> int:
        return int(self.rng.integers(1, self.problem.d + 1))

    def data_error(self, k: int) -> float:
        """How far apart the covariance in long doubles and in float64 may be."""
        if not self.problem.from_data:
            return 0.0
        return 4 * k * (self.problem.cov.entry_error + 8 * EPS * self.truth.scale(k))

    def floor(self, k: int) -> float:
        """What rounding may amount to where nothing is said about it."""
        scale = max(self.truth.scale(k), self.truth.scale(1))
        return 32 * (k + 1) ** 2 * EPS * scale + 4 * self.data_error(k)

    def upper(self, k: int) -> np.ndarray:
        """Return upper[q] ≥ opt(q) for q < k, tight, as the chain has them."""
        upper = np.full(k + 1, np.inf)
        for q in range(1, k):
            # LAPACK, which the reference comes from, errs by eps times the largest
            # entry, also where no good set has it.
            scale = max(self.matrix.scale(q), float(np.abs(self.A).max()))
            upper[q] = self.matrix.reached[q] + 8 * EPS * q * scale
        return upper

    def levels(self, k: int) -> list[float]:
        """Return some τ ≤ opt(k): at it, within ulps of it, and well below."""
        top = self.matrix.reached[k]
        size = max(abs(top), self.matrix.scale(k))
        steps = int(self.rng.integers(1, 9))
        below = top - size * 10.0 ** -self.rng.uniform(0.1, 14)
        found = [top, top - steps * float(np.spacing(abs(top))), below]
        return [*found, 1 / self.unit] if top * self.unit > 1.0 else found

    def searched(self, k: int) -> Iterator[tuple[float, np.ndarray]]:
        """Yield τ and upper for searches that must come upon a set.

        They rely on τ ≥ upper[k − 1], and an allowance is added to τ before it is
        called a bound.
        """
        upper = self.upper(k)
        top = self.matrix.reached[k]
        allowance = rounding_allowance(k, top, *extent(self.A))
        for level in self.levels(k)[1:]:
            tau = max(level - allowance, upper[k - 1] if k > 1 else -np.inf)
            if self.matrix.reached[k] > tau + allowance:
                yield tau, upper


def solution(
    case: Case, name: str, k: int, result: object, floor: float | None = None
) -> Iterator[Wrong]:
    """Compare a Result (or all that has its attributes) with the optimum."""
    x, objective = np.asarray(result.x), float(result.objective)  # type: ignore[attr-defined]
    upper, status = float(result.upper_bound), result.status  # type: ignore[attr-defined]
    floor = case.floor(k) if floor is None else floor
    used = np.flatnonzero(x)
    if len(used) > k or not np.isin(used, result.support).all():  # type: ignore[attr-defined]
        yield Wrong(name, k, f"x has {len(used)} nonzeros")
    if abs(np.linalg.norm(x) - 1) > 16 * (k + 1) * EPS:
        yield Wrong(name, k, f"the norm of x is {np.linalg.norm(x)!r}")
    exact = case.problem.exact[np.ix_(used, used)]
    value = float(rayleigh_below(exact, x[used]))
    size = float(np.abs(exact * x[used] * x[used][:, None]).sum())
    if abs(value - objective) > 16 * (k + 1) * EPS * size + case.data_error(k):
        yield Wrong(name, k, f"the objective is {value!r}, not {objective!r}")
    yield from bound(case, name, k, upper)
    if status is bs.Status.OPTIMAL:
        allowed = OPTIMAL_GAP * abs(objective) + floor
        reached = case.truth.reached[k]
        if reached - objective > allowed:
            yield Wrong(name, k, f"optimal is {reached!r}, not {objective!r}")
        if upper - objective > allowed:
            gap = (upper - objective) / max(abs(objective), 1e-300)
            yield Wrong(name, k, f"optimal with a gap of {gap:.3g}")


def bound(case: Case, name: str, k: int, upper: float) -> Iterator[Wrong]:
    """Compare an upper bound on opt(k) of the problem with the optimum."""
    reached = case.truth.reached[k] - case.data_error(k)
    if not upper >= reached:
        yield Wrong(name, k, f"the bound is {upper!r}, and {reached!r} is reached")
