"""Bounds of a certificate that rest on a search: screening, and a tree of what is left.

No rounding is tolerated, as in `claims.py`, which has all other bounds and says what
`entry_error` means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..certificate import StepClaim
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..limits import Deadline
from ..numerics.rounding import (
    EPS,
    TINY,
    in_units,
    norms_above,
    power_of_two,
    product_below,
    squared,
)
from ..search.limited import keep_limits, row_tops
from ..search.parts import connected_parts
from ..search.reference import NodeCapReached, Refuted, Undecided, prove_none_above
from .verification import VerificationError, require

# Survivors up to which a search in NumPy opens all the nodes that it may: one of n
# features costs n², so that with more of them it may open fewer in the same time.
COMFORTABLE_SIZE = 100
# By how much two statements of one certificate may differ. No bound relies on it.
CONSISTENT = 1e-9


@dataclass(eq=False)
class SearchedClaims:
    """What is known of a matrix, and the check of claims that a search has proved.

    `BoundChecks` says what the parameters are.
    """

    cov: Covariance
    k: int
    support: tuple[int, ...]
    max_nodes: int
    deadline: Deadline
    groups: GroupLimits | None = None
    #: What a claim's entries may differ by from those here, if it is not `entry_error`.
    doubted: float | None = None

    def __post_init__(self) -> None:
        self.diagonal = self.cov.diagonal()
        self.error = self.cov.entry_error
        self.between = self.error if self.doubted is None else self.doubted
        # inf for a k that the certificate leaves out
        self.upper = np.full(self.k + 1, np.inf)
        self.unchecked: list[str] = []

    @cached_property
    def tops(self) -> FloatArray:
        """Of every row; a pass over the matrix that not every bound needs."""
        return row_tops(self.cov, self.k - 1, self.groups)

    @cached_property
    def unit(self) -> float:
        """That of the prover, which tells which squares vanish, for it and here."""
        return power_of_two(
            max(abs(float(self.diagonal.max())), float(self.tops.max(initial=0.0)))
        )

    def _doubt(self, k: int) -> float:
        """By how much a true claim may be below what is proved here, by rounding.

        Entries that were computed from the same data in another form differ from those
        here by the errors of both.
        """
        return 4 * k * self.between

    def _at_least(self, claim: StepClaim, bound: float, by: str) -> str:
        """Return in words that the claim is at least a bound; raise if it is not."""
        if claim.upper_bound < bound <= claim.upper_bound + self._doubt(claim.k):
            self.unchecked.append(
                f"k = {claim.k}: {claim.bound_name}: {bound:.17g} here, which is above "
                f"the claimed {claim.upper_bound:.17g} by rounding of the data"
            )
            return f"{claim.bound_name}: agrees up to rounding of the data only"
        require(
            claim.upper_bound >= bound,
            f"k = {claim.k}: {claim.bound_name} gives {bound:.17g}, above the claimed "
            f"{claim.upper_bound:.17g}",
        )
        return f"at most {claim.upper_bound:.12g}, {by}"

    def _top_norms(self, q: int) -> FloatArray:
        squares = squared(self.tops[:, :q] / self.unit)
        return norms_above(squares.sum(axis=1), q, self.error / self.unit)

    def _searched(self, claim: StepClaim) -> str:
        """No k-set exceeds U: peel at (τ, opt(k − 1)), and search what is left.

        τ ≤ U and the bound of k − 1 are what the prover used; any such pair will do,
        as long as it is at least what has been established here.
        """
        k, bound, tau = claim.k, claim.upper_bound, claim.tau
        if tau is None or claim.upper_previous is None:
            raise VerificationError(f"k = {k}: the proof does not say what it proves.")
        require(
            tau <= bound,
            f"k = {k}: the proof is for {tau:.17g}, above the claimed {bound:.17g}",
        )
        if k == 1:
            largest = float(self.diagonal.max()) + self.error
            return self._at_least(claim, largest, "the largest variance")
        previous = float(self.upper[k - 1])
        used = claim.upper_previous
        require(
            previous - used <= CONSISTENT * abs(used),
            f"k = {k}: the proof uses {used:.17g} for k = {k - 1}, where "
            f"{previous:.17g} is proved",
        )
        previous = max(previous, used)
        require(
            bound >= previous,
            f"k = {k}: the bound {bound:.17g} is below what k = {k - 1} may reach, "
            f"{previous:.17g}, where the proof says nothing",
        )
        survivors = np.array(claim.survivors, dtype=np.intp)
        left = self._screened(k, max(tau, previous), previous, survivors)
        dropped = self.cov.n_features - len(left)
        return f"features in no set above {bound:.12g}: {dropped}; " + self._tree(
            claim, left
        )

    def _screened(
        self, k: int, tau: float, previous: float, survivors: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Peel from all features until what is left is among the survivors.

        A feature within rounding of the inequality stays, and is searched. One that
        the certificate leaves out although it satisfies the inequality is refuted.
        """
        stay = self._may_stay(self._top_norms(k - 1), self.diagonal, tau, previous)
        left = np.flatnonzero(stay)
        while len(left) >= k and not np.isin(left, survivors).all():
            norms = self._norms_within(left, k - 1)
            stay = self._may_stay(norms, self.diagonal[left], tau, previous)
            if stay.all():
                break
            left = left[stay]
        if len(left) >= k and not np.isin(left, survivors).all():
            self._refuse_missing(k, tau, previous, left, survivors)
        return left

    def _may_stay(
        self, norms: FloatArray, diagonal: FloatArray, tau: float, previous: float
    ) -> NDArray[np.bool_]:
        """Not r² ≤ (τ − A_ii)(τ − previous), with r² rounded up, the rest down.

        Written so that nothing is dropped for not being a number.
        """
        above = (tau - diagonal - self.error) / self.unit
        room = product_below(above, (tau - previous) / self.unit)
        return ~((norms <= room) & (above >= 0))

    def _refuse_missing(
        self,
        k: int,
        tau: float,
        previous: float,
        left: NDArray[np.intp],
        survivors: NDArray[np.intp],
    ) -> None:
        """Raise if a feature stays even where rounding is held against it."""
        while True:
            # norms are above the exact ones by this share, and by the error twice
            share = 1 + (2 * k + 16) * EPS
            norms = self._norms_within(left, k - 1)
            below = np.sqrt(norms) / share - 2 * math.sqrt(k) * self.between / self.unit
            room = (tau - self.diagonal[left] + self.between) / self.unit
            room = room * ((tau - previous) / self.unit) * (1 + 8 * EPS)
            # and by TINY for each square that underflows
            stay = (below > 0) & (below**2 > room * share + k * TINY)
            if stay.all() or stay.sum() < k:
                break
            left = left[stay]
        missing = np.setdiff1d(left[stay], survivors)
        require(
            stay.sum() < k or len(missing) == 0,
            f"k = {k}: feature {missing[:1]} passes the screening inequality but is "
            "not among the survivors",
        )

    def _norms_within(self, features: NDArray[np.intp], q: int) -> FloatArray:
        """r_q(i)² over the features, rounded upwards, in squares of `unit`."""
        step = max(1, ENTRIES_AT_ONCE // len(features))
        norms = np.empty(len(features))
        for start in range(0, len(features), step):
            rows = features[start : start + step]
            squares = squared(self.cov.submatrix(rows, features) / self.unit)
            here = np.arange(start, start + len(rows))
            squares[np.arange(len(rows)), here] = 0.0
            if self.groups is not None:
                keep_limits(squares, here, self.groups.among(features))
            if q < len(features):
                squares = np.partition(squares, len(features) - q, axis=1)
                squares = squares[:, len(features) - q :]
            norms[start : start + step] = squares.sum(axis=1)
        return norms_above(norms, q, self.error / self.unit)

    def _tree(self, claim: StepClaim, left: NDArray[np.intp]) -> str:
        """Search the features that are left for a k-set above the claimed bound."""
        k, bound = claim.k, claim.upper_bound
        if len(left) < k:
            return f"features left: {len(left)}, fewer than {k}"
        within = self.cov.submatrix(left)
        off = np.abs(within)
        np.fill_diagonal(off, 0.0)
        unit = power_of_two(float(off.max()) or abs(bound))
        # λ(S) of these entries is within k e of the true one, that of fewer likewise.
        error = k * self.error / unit
        tau = bound / unit - error
        upper = self.upper[:k] / unit + error
        within = in_units(within, unit)

        def search(cap: int) -> int:
            nodes = 0
            for part in connected_parts(within, k, tau, float(upper[k - 1])):
                nodes += prove_none_above(
                    within[np.ix_(part, part)],
                    k,
                    tau,
                    upper,
                    cap - nodes,
                    self.deadline,
                    self.groups and self.groups.among(left[part]),
                )
            return nodes

        return self._none_above(claim, search, len(within), unit)

    def _none_above(
        self, claim: StepClaim, search: Callable[[int], int], size: int, unit: float
    ) -> str:
        """Search `size` features for a set above the claim, with at most `cap` nodes.

        `search` takes the cap, and returns the nodes of a search that has found none.
        It is at a τ of k e below the claim: a set above that by 2 k e or less may be
        below the claim.
        """
        k, bound = claim.k, claim.upper_bound
        share = min(1.0, (COMFORTABLE_SIZE / size) ** 2)
        cap = max(1, int(self.max_nodes * share))
        near = (
            f"k = {k}: a set comes so near the bound {bound:.17g} that rounding hides "
            "on which side it is"
        )
        try:
            nodes = search(cap)
        except Refuted as refuted:
            if self.between > 0 and refuted.excess * unit <= self._doubt(k):
                self.unchecked.append(near)
                return "the rest was not decided"
            raise VerificationError(
                f"k = {k}: a set with an eigenvalue above {bound:.12g} exists."
            ) from None
        except Undecided:
            self.unchecked.append(near)
            return "the rest was not decided"
        except NodeCapReached:
            self.unchecked.append(
                f"k = {k}: the search of {size} features needs more than "
                f"{cap} nodes or {self.deadline.seconds:g} s; raise max_nodes = "
                f"{self.max_nodes} and time_limit"
            )
            return "the rest was not searched again"
        return f"a search of the others ({size}) found none; nodes: {nodes}"
