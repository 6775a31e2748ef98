"""Verifies a result by the checker's rules, on any `Covariance`.

`CovarianceMatrix` lets the rules read any `Covariance`. So results for views, and for
data that no proof file can name, have the same check as all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..call import Run, one_call
from ..checker.arithmetic import Floats
from ..checker.check import RecordChecker
from ..checker.reading import ProofError
from ..checker.records import Sets
from ..covariance import Covariance, as_covariance
from ..limits import Limits
from ..linalg.rounding import UNIT
from .evidence import renumbered

if TYPE_CHECKING:
    from ..result import Result

OBJECTIVE_ERROR = 1e-9  # relative tolerance for an objective, computed in float64


class VerificationError(Exception):
    """A claim of a result does not hold, or its evidence does not show it."""


class CovarianceMatrix:
    """A `Covariance` as the checker's rules see a matrix."""

    def __init__(self, cov: Covariance, run: Run) -> None:
        self._cov, self._run = cov, run
        self.size = cov.n_features
        self.is_psd = cov.known_psd
        self.error = cov.entry_error
        self.diagonal = np.asarray(cov.diagonal())

    def block(self, features: np.ndarray) -> np.ndarray:
        """Return entries on some features."""
        return np.asarray(self._cov.submatrix(features))

    def lists(
        self, features: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the largest |A_ij| of each row, their positions, and their error."""
        width = min(width, len(features) - 1)
        if width < 1:
            return np.zeros((len(features), 0)), np.zeros((len(features), 0), int), 0.0
        whole = len(features) == self.size
        lists = self._cov.lists(width, self._run, None if whole else features)
        return lists.values, lists.indices, lists.error


@dataclass(frozen=True)
class Verification:
    """The outcome of `verify`.

    Attributes
    ----------
    claims : tuple of str
        The claims that hold.
    unchecked : tuple of str
        Claims without evidence.
    steps : tuple of str
        A sentence about each record.
    arithmetic : str
        The arithmetic that decided comparisons.
    """

    claims: tuple[str, ...]
    unchecked: tuple[str, ...]
    steps: tuple[str, ...]
    arithmetic: str = Floats.name

    @property
    def holds(self) -> bool:
        """Whether every claim was checked and holds."""
        return not self.unchecked

    def __str__(self) -> str:
        lines = [f"holds: {claim}" for claim in self.claims]
        lines += [f"not checked: {claim}" for claim in self.unchecked]
        return "\n".join([*lines, f"Decided in {self.arithmetic}."])


def matrix_of(result: Result, data: Any) -> Covariance:
    """Return the covariance of data, with the options that the result's matrix had."""
    cov, wanted = as_covariance(data), result.identity
    own = cov.identity
    if cov is data or wanted is None or own is None or wanted.weighted:
        return cov
    options = wanted.center, wanted.scale, wanted.ddof
    if own.kind != wanted.kind or options == (own.center, own.scale, own.ddof):
        return cov
    center, scale, ddof = options
    return Covariance.from_data(data, center=center, scale=scale, ddof=ddof)


def verify(
    result: Result, cov: Covariance | Any, *, n_jobs: Any = None
) -> Verification:
    """Check a result: its vector, its objective, and the evidence of its bound.

    Of the search it uses only the records, see docs/proof-format.md.

    Parameters
    ----------
    result : Result
    cov : Covariance, symmetric matrix or data
        The matrix of the result, or the data that it was made from.
    n_jobs : int, optional
        Cores for the scan of the rows.

    Returns
    -------
    Verification

    Raises
    ------
    VerificationError
        If a claim does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance import Covariance
    >>> from blockspca.proof.evidence import Variance
    >>> from blockspca.proof.verify import verify
    >>> from blockspca.result import Bound, Result
    >>> cov = Covariance.from_matrix(np.diag([2.0, 1.0]))
    >>> bound = Bound(2.0, "variances", (Variance(1, 2.0),))
    >>> result = Result(np.array([1.0, 0.0]), np.array([0]), 2.0, bound, k=1)
    >>> print(verify(result, cov))
    holds: x is a unit vector on at most 1 of 2 features
    holds: its objective is 2
    holds: no component has a larger objective than 2
    Decided in float64 with derived margins.
    """
    cov = matrix_of(result, cov)
    claims = [_vector(result, cov), _objective(result, cov)]
    bound, sets = result.bound, result.sets
    sentence = f"no component has a larger objective than {bound.value:.10g}"
    if not bound.evidence:
        return Verification(tuple(claims), (sentence,), ())
    kept = np.setdiff1d(np.arange(cov.n_features), sets.without)
    place = np.full(cov.n_features, -1)
    place[kept] = np.arange(len(kept))
    if sets.without:
        cov = cov.subset(kept)
    sets = Sets(
        (),
        tuple(place[list(sets.include)].tolist()),
        tuple(
            (most, tuple(i for i in place[list(features)].tolist() if i >= 0))
            for most, features in sets.groups
        ),
    )
    evidence = renumbered(bound.evidence, place.tolist())
    with one_call(Limits(), n_jobs, False) as run:
        try:
            checker = RecordChecker(CovarianceMatrix(cov, run), sets, evidence)
            steps = checker.run()
        except ProofError as error:
            raise VerificationError(
                f"upper_bound = {bound.value!r} is not shown: {error}"
            ) from None
    if not bound.value >= checker.upper.get(result.k, np.inf):
        raise VerificationError(
            f"upper_bound = {bound.value!r} is less than its evidence shows"
        )
    sentences = tuple(
        f"opt({s.record.k}) <= {s.record.upper:.10g}: {s.sentence}" for s in steps
    )
    return Verification((*claims, sentence), (), sentences)


def _vector(result: Result, cov: Covariance) -> str:
    x, support, sets = result.x, set(result.support.tolist()), result.sets
    features = set(np.flatnonzero(x).tolist())
    allowed = (
        len(x) == cov.n_features
        and features <= support <= set(range(len(x)))
        and len(support) <= result.k
        and not support & set(sets.without)
        and set(sets.include) <= support
        and all(len(support & set(group)) <= most for most, group in sets.groups)
    )
    if not allowed:
        raise VerificationError(
            "x has features that it cannot have, or misses some that it must have"
        )
    if not abs(float(x @ x) - 1) <= 1e-9:
        raise VerificationError(f"x has length {float(x @ x) ** 0.5!r} and must have 1")
    return f"x is a unit vector on at most {result.k} of {len(x)} features"


def _objective(result: Result, cov: Covariance) -> str:
    if not np.isfinite(result.objective):
        raise VerificationError(f"objective = {result.objective!r} must be finite")
    support = np.unique(result.support)
    x = result.x[support]
    A = np.asarray(cov.submatrix(support))
    form, size = float(x @ A @ x), float(np.abs(x) @ np.abs(A) @ np.abs(x))
    # The sums here and those of the claim err by at most γ_{2k} of their terms each.
    room = OBJECTIVE_ERROR * abs(form) + 8 * (len(x) + 1) * UNIT * size
    room += 2 * cov.entry_error * float(np.abs(x).sum()) ** 2
    if not result.objective <= form + room:
        raise VerificationError(
            f"objective = {result.objective!r} must be at most {form!r}"
        )
    return f"its objective is {result.objective:.10g}"
