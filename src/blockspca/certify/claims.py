"""The bounds of a certificate, each computed again and rounded upwards.

A claim opt(k) ≤ U holds here only if U is at least a bound that is proved, rounding
included: there is no tolerance. The rounding is that of the numbers at hand, never of
the largest entry of A, which no component may use. With `entry_error` = e, the entries
of A are known to ± e only (A made from data), and |x'(A − Ã)x| ≤ e ‖x‖₁² ≤ k e.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import (
    ObviousBounds,
    best_threshold_bound,
    largest_eigenvalue_bound,
)
from ..bounds.direction_dual.search import dual_bound
from ..bounds.entry_dual.check import checked_value, read_record, searched_again
from ..bounds.entry_dual.log import SearchRecord
from ..bounds.entry_dual.pairs import OutOfTime
from ..certificate import BoundName, StepClaim
from ..constraints import GroupLimits
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..limits import Deadline
from ..numerics.blas import single_threaded
from ..numerics.rounding import (
    EPS,
    TINY,
    larger_root_above,
    norms_above,
    power_of_two,
    product_below,
    squared,
    sum_above,
)
from ..numerics.upper_eigenvalues import psd_shift
from ..proof_settings import ProofSettings
from ..search.limited import keep_limits, row_tops
from ..search.parts import connected_parts
from ..search.reference import NodeCapReached, Refuted, Undecided, prove_none_above
from .verification import VerificationError, require

COMFORTABLE_SIZE = 100
DUAL_SECONDS = 60.0
# A bound that comes out of a search or of LAPACK may differ a little where it is
# computed again. A claim that is below it by less than this share is not refuted, and
# not confirmed either: it is listed as unchecked.
DUAL_AGREEMENT = 1e-3
LAPACK_AGREEMENT = 1e-11
# By how much two statements of one certificate may differ. No bound relies on it.
CONSISTENT = 1e-9
MOST_DENSE = 5000  # features of a matrix that is held as a whole


class BoundChecks:
    """Check one step after the other; `upper` are the bounds established so far.

    Parameters
    ----------
    cov : Covariance
    k : int
        The largest one.
    support : sequence of int
        The component, from which the direction dual starts.
    max_nodes : int
    deadline : Deadline
        For all searches together.
    groups : GroupLimits, optional
        The claims are about sets that keep them. Subsets of such sets do, too, so that
        each argument holds for them; bounds on all sets hold anyway.
    """

    def __init__(
        self,
        cov: Covariance,
        k: int,
        support: tuple[int, ...],
        max_nodes: int,
        deadline: Deadline,
        groups: GroupLimits | None = None,
    ) -> None:
        self.cov, self.k, self.support = cov, k, support
        self.groups = groups
        self.max_nodes, self.deadline = max_nodes, deadline
        self.diagonal = cov.diagonal()
        self.error = cov.entry_error
        # inf for a k that the certificate leaves out
        self.upper = np.full(k + 1, np.inf)
        self.unchecked: list[str] = []

    @cached_property
    def tops(self) -> FloatArray:
        """Of every row; a pass over the matrix that not every bound needs."""
        return row_tops(self.cov, self.k - 1, self.groups)

    @cached_property
    def unit(self) -> float:
        """A power of two: exact to divide by, and squares of entries do not vanish."""
        return power_of_two(float(self.tops.max(initial=0.0)))

    @cached_property
    def by_name(self) -> dict[str, Callable[[StepClaim], str]]:
        """The check of every bound that a certificate may name."""
        return {
            BoundName.PROOF_TREE: self._searched,
            BoundName.GROWTH: self._searched,
            BoundName.SCREENING: self._searched,
            BoundName.NESTED: self._nested,
            BoundName.ROW_SUMS: self._row_sums,
            BoundName.VARIANCES: self._variances,
            BoundName.SMALLER_K: self._smaller_k,
            BoundName.LARGEST_EIGENVALUE: self._largest_eigenvalue,
            BoundName.TARGET: self._target,
            BoundName.SOFT_THRESHOLD: self._soft_threshold,
            BoundName.DIRECTION_DUAL: self._direction_dual,
            BoundName.ENTRY_DUAL: self._entry_dual,
            BoundName.EARLIER_COMPONENT: self._earlier_component,
            BoundName.CONDITIONS: self._conditions,
            BoundName.NONE: self._nothing,
        }

    def check(self, claim: StepClaim) -> str:
        """Return in words why opt(k) ≤ claim.upper_bound; raise if it is not proved."""
        check = self.by_name.get(claim.bound_name)
        if check is None:
            raise VerificationError(
                f"k = {claim.k}: unknown bound {claim.bound_name!r}."
            )
        words = check(claim)
        self.upper[claim.k] = claim.upper_bound
        return words

    def _at_least(self, claim: StepClaim, bound: float) -> None:
        require(
            claim.upper_bound >= bound,
            f"k = {claim.k}: {claim.bound_name} gives {bound:.17g}, above the claimed "
            f"{claim.upper_bound:.17g}",
        )

    def _agrees(self, claim: StepClaim, bound: float, agreement: float) -> bool:
        """Tell whether a bound confirms the claim; raise if the two contradict."""
        if claim.upper_bound >= bound:
            return True
        require(
            bound - claim.upper_bound <= agreement * abs(bound),
            f"k = {claim.k}: the {claim.bound_name} gives {bound:.17g}, above the "
            f"claimed {claim.upper_bound:.17g}",
        )
        return False

    # -- bounds in closed form -----------------------------------------------------

    def _variances(self, claim: StepClaim) -> str:
        """λ(S) ≤ tr(A_SS) if A is PSD; if A + δI is, λ(S) ≤ tr(A_SS) + (k − 1) δ."""
        k = claim.k
        terms = np.sort(self.diagonal)[-k:].tolist()
        if k > 1 and not self.cov.known_psd:
            require(
                self.cov.n_features <= MOST_DENSE,
                f"k = {k}: a sum of variances bounds only what is known to be "
                "positive semidefinite",
            )
            shift = psd_shift(self.cov.submatrix(slice(None)))
            terms.append(math.nextafter((k - 1) * shift, math.inf))
        bound = terms[0] if k == 1 else sum_above(terms)
        if self.error > 0:
            # The error is a bound with far more room than the rounding of this sum.
            # Certificates of version 1 leave it out for k = 1.
            bound += k * self.error
            return self._computed(claim, bound, "by the largest variances")
        self._at_least(claim, bound)
        return f"at most {claim.upper_bound:.12g}, by the largest variances"

    def _row_sums(self, claim: StepClaim) -> str:
        """Gershgorin: λ(S) ≤ A_ii + Σ of the k − 1 largest |A_ij|, for some i."""
        tops = self.tops[:, : claim.k - 1]
        sums = self.diagonal + tops.sum(axis=1)
        rounding = (claim.k + 1) * EPS * (np.abs(self.diagonal) + tops.sum(axis=1))
        extra = claim.k * self.error
        close = np.flatnonzero(~(sums + 2 * rounding + extra <= claim.upper_bound))
        for i in close[np.argsort(-sums[close], kind="stable")]:
            self._at_least(claim, sum_above([self.diagonal[i], *tops[i]]) + extra)
        return f"at most {claim.upper_bound:.12g}, by row sums"

    def _nested(self, claim: StepClaim) -> str:
        """λ(S) ≤ λmax [[A_ii, r], [r, opt(k − 1)]], r the norm of k − 1 entries."""
        previous = float(self.upper[claim.k - 1])
        require(math.isfinite(previous), f"k = {claim.k}: no bound for {claim.k - 1}")
        bounds = larger_root_above(
            (self.diagonal + self.error) / self.unit,
            self._top_norms(claim.k - 1),
            previous / self.unit,
        )
        self._at_least(claim, float(bounds.max()) * self.unit)
        return f"at most {claim.upper_bound:.12g}, by k = {claim.k - 1} and row norms"

    def _top_norms(self, q: int) -> FloatArray:
        squares = squared(self.tops[:, :q] / self.unit)
        return norms_above(squares.sum(axis=1), q, self.error / self.unit)

    def _smaller_k(self, claim: StepClaim) -> str:
        """λ(S) ≤ a + r (opt(m) − a), r = (k − 1)/(m − 1); if A is PSD, (k/m) opt(m)."""
        k, bound = claim.k, claim.upper_bound
        least = Fraction(float(self.diagonal.min())) - Fraction(self.error)
        for m in range(k - 1, 0, -1):
            if not math.isfinite(self.upper[m]):
                continue
            known = Fraction(float(self.upper[m]))
            by_pairs = m > 1 and least + Fraction(k - 1, m - 1) * (known - least)
            by_directions = self.cov.known_psd and Fraction(k, m) * known
            for value in (by_pairs, by_directions):
                if value is not False and value <= Fraction(bound):
                    return f"at most {bound:.12g}, by subsets of {m} features"
        raise VerificationError(
            f"k = {k}: no bound of a smaller k entails the claimed {bound:.17g}."
        )

    def _nothing(self, claim: StepClaim) -> str:
        require(claim.upper_bound == np.inf, f"k = {claim.k}: a bound without a reason")
        return "no bound is claimed"

    def _earlier_component(self, claim: StepClaim) -> str:
        """Of the matrix alone this says nothing: `Components.verify` checks it."""
        self.unchecked.append(rests_on_earlier(claim))
        return f"at most {claim.upper_bound:.12g} if the earlier component is bounded"

    def _conditions(self, claim: StepClaim) -> str:
        """Of the matrix alone this says nothing: `Components.verify` checks it."""
        self.unchecked.append(left_to_components(claim))
        return f"at most {claim.upper_bound:.12g} under the conditions of the scheme"

    # -- bounds by LAPACK and by the dual, which bring their own rounding ----------

    def _largest_eigenvalue(self, claim: StepClaim) -> str:
        with single_threaded():
            bound = largest_eigenvalue_bound(self.cov) + claim.k * self.error
        return self._computed(claim, bound, "the largest eigenvalue")

    def _target(self, claim: StepClaim) -> str:
        dominant = self.cov.dominant
        if dominant is None:
            raise VerificationError(
                f"k = {claim.k}: a bound of the target, for what is no contrast with a "
                "positive semidefinite background"
            )
        with single_threaded():
            bound, _ = ObviousBounds(dominant, np.inf).least(claim.k)
        return self._computed(claim, bound, "as the target is")

    def _soft_threshold(self, claim: StepClaim) -> str:
        with single_threaded():
            matrix = self.cov.submatrix(slice(None))
            bound, epsilon = best_threshold_bound(matrix, claim.k)
        bound += claim.k * self.error
        return self._computed(claim, bound, f"by thresholding at {epsilon:.6g}")

    def _computed(self, claim: StepClaim, bound: float, by: str) -> str:
        if self._agrees(claim, bound, LAPACK_AGREEMENT):
            return f"at most {claim.upper_bound:.12g}, {by}"
        self.unchecked.append(
            f"k = {claim.k}: {claim.bound_name}: {bound:.17g} here, which is above the "
            f"claimed {claim.upper_bound:.17g} by rounding"
        )
        return f"{claim.bound_name}: agrees up to rounding only"

    def _direction_dual(self, claim: StepClaim) -> str:
        """Search again, from the component, until the claimed value is reached."""
        error = claim.k * self.error
        target = claim.upper_bound - error
        left = self.deadline.remaining()
        seconds = DUAL_SECONDS if left is None else min(left, DUAL_SECONDS)
        dual = dual_bound(
            self.cov,
            claim.k,
            start=self.support,
            target=target,
            time_limit=seconds,
            nodes=ProofSettings.few_nodes + 2 * int(claim.statistics.get("nodes", 0)),
        )
        if dual.interrupted:
            raise KeyboardInterrupt
        # The ascent depends a little on where it starts; more than that is no accident.
        # Of a smaller k the component it started from is not known.
        ended = not dual.cut_short and claim.k == self.k
        agreement = DUAL_AGREEMENT if ended else math.inf
        if self._agrees(claim, dual.value + error, agreement):
            return f"at most {claim.upper_bound:.12g}, by the direction dual"
        self.unchecked.append(
            f"k = {claim.k}: the direction dual reached {dual.value + error:.12g} in "
            f"{seconds:.3g} s, not {claim.upper_bound:.12g}"
        )
        return "the direction dual was not reached again"

    def _entry_dual(self, claim: StepClaim) -> str:
        """λmax of the matrix that the certificate's point gives, or its search."""
        require(
            claim.dual is not None, f"k = {claim.k}: the entry dual is not written down"
        )
        try:
            record = read_record(claim.dual or "", self.cov.n_features)
            with single_threaded():
                if isinstance(record, SearchRecord):
                    bound = searched_again(self.cov, claim.k, record, self.deadline)
                else:
                    bound = checked_value(self.cov, claim.k, record, self.deadline)
        except ValueError as error:
            raise VerificationError(f"k = {claim.k}: {error}") from None
        except OutOfTime:
            self.unchecked.append(
                f"k = {claim.k}: the entry dual's pass over the matrix needs more "
                f"than {self.deadline.seconds:g} s; raise time_limit"
            )
            return "the entry dual was not computed again"
        if bound == math.inf:
            self.unchecked.append(f"k = {claim.k}: the entry dual's search is another")
            return "the entry dual's search could not be repeated"
        return self._computed(claim, bound, "by the entry dual")

    # -- bounds by a search --------------------------------------------------------

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
            self._at_least(claim, largest)
            return f"at most {bound:.12g}, the largest variance"
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
            below = np.sqrt(norms) / share - 2 * math.sqrt(k) * self.error / self.unit
            room = (tau - self.diagonal[left] + self.error) / self.unit
            room = room * ((tau - previous) / self.unit) * (1 + 8 * EPS)
            stay = (below > 0) & (below**2 > room * share + TINY)
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
                keep_limits(squares, here, self._among(features))
            if q < len(features):
                squares = np.partition(squares, len(features) - q, axis=1)
                squares = squares[:, len(features) - q :]
            norms[start : start + step] = squares.sum(axis=1)
        return norms_above(norms, q, self.error / self.unit)

    def _among(self, features: NDArray[np.intp]) -> GroupLimits:
        """The limits of groups for some of the features."""
        assert self.groups is not None
        return GroupLimits(self.groups.label[features], self.groups.room)

    def _tree(self, claim: StepClaim, left: NDArray[np.intp]) -> str:
        """Search the features that are left for a k-set above the claimed bound."""
        k, bound = claim.k, claim.upper_bound
        if len(left) < k:
            return f"features left: {len(left)}, fewer than {k}"
        within = self.cov.submatrix(left)
        off = np.abs(within)
        np.fill_diagonal(off, 0.0)
        unit = power_of_two(float(off.max()) or abs(bound))
        share = min(1.0, (COMFORTABLE_SIZE / len(within)) ** 2)
        cap = max(1, int(self.max_nodes * share))
        # λ(S) of these entries is within k e of the true one, that of fewer likewise.
        error = k * self.error / unit
        tau = bound / unit - error
        upper = self.upper[:k] / unit + error
        within = within / unit
        nodes = 0
        try:
            for part in connected_parts(within, k, tau, float(upper[k - 1])):
                nodes += prove_none_above(
                    within[np.ix_(part, part)],
                    k,
                    tau,
                    upper,
                    cap - nodes,
                    self.deadline,
                    None if self.groups is None else self._among(left[part]),
                )
        except Refuted:
            raise VerificationError(
                f"k = {k}: a set with an eigenvalue above {bound:.12g} exists."
            ) from None
        except Undecided:
            self.unchecked.append(
                f"k = {k}: a set comes so near the bound {bound:.17g} that rounding "
                "hides on which side it is"
            )
            return "the rest was not decided"
        except NodeCapReached:
            self.unchecked.append(
                f"k = {k}: the search of {len(within)} features needs more than "
                f"{cap} nodes or {self.deadline.seconds:g} s; raise max_nodes = "
                f"{self.max_nodes} and time_limit"
            )
            return "the rest was not searched again"
        return f"a search of the others ({len(within)}) found none; nodes: {nodes}"


def rests_on_earlier(claim: StepClaim) -> str:
    """Say what a claim by an earlier component needs."""
    return (
        f"k = {claim.k}: the bound {claim.upper_bound:.17g} rests on that of component "
        f"{claim.statistics.get('component')}; Components.verify checks it"
    )


def left_to_components(claim: StepClaim) -> str:
    """Say what a claim under the conditions of a scheme needs."""
    return (
        f"k = {claim.k}: the bound {claim.upper_bound:.17g} is for vectors that fulfil "
        "the conditions of the scheme; Components.verify checks it"
    )
