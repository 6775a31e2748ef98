"""The bounds on opt(1), opt(2), …, each with the search behind it, rounding included.

What is recorded for k is at least opt(k) of the true A: a search in floating point
proves a little less than it says, by an amount that is known beforehand (`schur_tree`),
and entries made from data are known to ± `entry_error` only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..bounds.smaller_k import bound_from_smaller_k
from ..covariance.covariance import Covariance
from ..search.schur_tree import extent, rounding_allowance
from ..status import SEARCH_GAP, is_within_gap
from .adaptive_screening import AdaptiveScreening

# In units of the largest entry: squares below the normal range err by 2⁻¹⁰⁷⁴ each, so
# that norms, and hence eigenvalues, err by far less than this.
_UNDERFLOW = 1e-150


class Chain:
    """The best bound for each k; all values are in units of `candidates.unit`.

    Parameters
    ----------
    values : list of float
        λ of the incumbent of each k, kept up to date by others.

    Attributes
    ----------
    upper : list of float
        upper[k] ≥ opt(k).
    names : list of BoundName
    proofs : dict
        (τ, bound of k − 1, survivors) of the search behind upper[k], if there is one.
    duals : dict
        The point of the entry dual behind upper[k], if there is one.
    """

    def __init__(
        self, cov: Covariance, candidates: AdaptiveScreening, values: list[float]
    ) -> None:
        self.candidates, self.values = candidates, values
        self.entry_error = cov.entry_error / candidates.unit
        self.is_psd = cov.known_psd
        self.upper = [np.inf] * len(values)
        self.names = [BoundName.NONE] * len(values)
        self.proofs: dict[int, tuple[float, float, NDArray[np.int64]]] = {}
        self.duals: dict[int, str] = {}

    def input_allowance(self, k: int) -> float:
        """What the entries of A, and squares of them that underflow, may be off by."""
        underflow = k * _UNDERFLOW if self.candidates.strongest > 0 else 0.0
        return 2 * k * self.entry_error + underflow

    def allowance(self, k: int, level: float) -> float:
        """What a bound of about `level`, over all features, sets aside for rounding."""
        candidates = self.candidates
        lowest, strongest = candidates.lowest, candidates.strongest
        rounding = rounding_allowance(k, level, lowest, strongest)
        return rounding + self.input_allowance(k)

    def add_cheap_bounds(self, k: int) -> None:
        """Bound k by what needs no search."""
        for bound, name in self.candidates.bounds(k, self.upper[k - 1]):
            allowance = self.allowance(k, bound) if k > 1 else self.entry_error
            self.lower_to(k, bound + allowance, name)
        self.bound_by_smaller_k(k)

    def bound_by_smaller_k(self, k: int) -> None:
        """Bound k by what is known of smaller ones, wherever the chain broke off."""
        lowest = self.candidates.lowest - self.entry_error
        value = bound_from_smaller_k(k, self.upper, lowest, is_psd=self.is_psd)
        self.lower_to(k, value, BoundName.SMALLER_K)

    def lower_to(
        self, k: int, value: float, name: BoundName, dual: str | None = None
    ) -> None:
        """Record a bound that needs no search, if it is the best so far."""
        if value < self.upper[k]:
            self.proofs.pop(k, None)
            self.duals.pop(k, None)
            if dual is not None:
                self.duals[k] = dual
            self.upper[k], self.names[k] = value, name

    def record_bound(
        self,
        k: int,
        tau: float,
        survivors: NDArray[np.int64],
        name: BoundName,
        searched: FloatArray | None = None,
    ) -> None:
        """Record that no k-set exceeds τ, by a search of a matrix if there was one."""
        value = tau + self.input_allowance(k)
        if searched is not None:
            value += rounding_allowance(k, tau, *extent(searched))
        if value < self.upper[k]:
            # The bound itself comes last: Ctrl-C may strike between the lines.
            self.proofs[k] = (tau, self.upper[k - 1], survivors)
            self.duals.pop(k, None)
            self.names[k] = name
            self.upper[k] = value

    def is_proved(self, k: int, gap: float) -> bool:
        """Whether the bound is within the gap of the incumbent."""
        # A little less than what searches aim at, which is judged by x'Ax as it is
        # handed out, not by λ.
        value, bound = self.values[k], self.upper[k]
        if bound == np.inf:
            return False
        return is_within_gap(value, max(bound, value), max(0.99 * SEARCH_GAP, gap))

    def target(self, k: int, gap: float) -> float:
        """The τ to prove for a gap.

        A little below the gap: where opt(k) = opt(k − 1), the allowances of one k
        after the other must fit under it.  Never below the bound of k − 1, under
        which the chain says nothing.
        """
        value = self.values[k]
        above = 0.5 * SEARCH_GAP * abs(value)
        if gap > 0:
            wanted = 0.999 * gap * abs(value) - self.allowance(k, value)
            above = max(wanted, above)
        tau = value + above
        return tau if k == 1 else max(tau, self.upper[k - 1])

    def is_hopeless(self, k: int, tau: float) -> bool:
        """Whether a search at τ could not improve the bound of k."""
        bound = self.upper[k]
        return bound < np.inf and tau + rounding_allowance(k, tau, tau, 0.0) >= bound
