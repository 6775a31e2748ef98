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
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..bounds.closed_form import (
    ObviousBounds,
    above_target,
    best_threshold_bound,
    largest_eigenvalue_bound,
)
from ..bounds.compositions import Compositions, parts_above
from ..bounds.direction_dual.search import dual_bound
from ..bounds.entry_dual.check import checked_value, read_record, searched_again
from ..bounds.entry_dual.log import SearchRecord
from ..bounds.entry_dual.pairs import OutOfTime
from ..certificate import StepClaim, TargetClaim
from ..covariance.covariance import Covariance
from ..numerics.blas import single_threaded
from ..numerics.rounding import EPS, larger_root_above, power_of_two, sum_above
from ..numerics.upper_eigenvalues import psd_shift
from ..proof_settings import ProofSettings
from ..search.reference import NodeCapReached, Undecided, prove_none_above
from .compositions import ComposedProblem, least_bound, level_of
from .searched_claims import SearchedClaims
from .verification import VerificationError, require

# As `ProofSettings.single_k_seconds`: what a search had is enough to find it again.
DUAL_SECONDS = 60.0
# A bound that comes out of a search or of LAPACK may differ a little where it is
# computed again. A claim that is below it by less than this share is not refuted, and
# not confirmed either: it is listed as unchecked.
DUAL_AGREEMENT = 1e-3
LAPACK_AGREEMENT = 1e-11  # some d eps of the thousands of features that are dense here
MOST_DENSE = 5000  # features of a matrix that is held as a whole

Read = TypeVar("Read")


class BoundChecks(SearchedClaims):
    """Check one step after the other; `upper` are the bounds established so far.

    Parameters
    ----------
    k : int
        The largest one.
    support : sequence of int
        The component, from which the direction dual starts.
    deadline : Deadline
        For all searches together.
    groups : GroupLimits, optional
        The claims are about sets that keep them. Subsets of such sets do, too, so that
        each argument holds for them; bounds on all sets hold anyway.
    """

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
            BoundName.COMPOSITIONS: self._compositions,
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

    def _agrees(self, claim: StepClaim, bound: float, agreement: float) -> bool:
        """Tell whether a bound confirms the claim; raise if the two contradict."""
        if claim.upper_bound >= bound:
            return True
        require(
            bound - claim.upper_bound <= agreement * abs(bound) + self._doubt(claim.k),
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
        return self._at_least(claim, bound, "by the largest variances")

    def _row_sums(self, claim: StepClaim) -> str:
        """Gershgorin: λ(S) ≤ A_ii + Σ of the k − 1 largest |A_ij|, for some i."""
        tops = self.tops[:, : claim.k - 1]
        sums = self.diagonal + tops.sum(axis=1)
        rounding = (claim.k + 1) * EPS * (np.abs(self.diagonal) + tops.sum(axis=1))
        extra = claim.k * self.error
        close = np.flatnonzero(~(sums + 2 * rounding + extra <= claim.upper_bound))
        largest = max(
            (sum_above([self.diagonal[i], *tops[i]]) for i in close), default=-np.inf
        )
        return self._at_least(claim, largest + extra, "by row sums")

    def _nested(self, claim: StepClaim) -> str:
        """λ(S) ≤ λmax [[A_ii, r], [r, opt(k − 1)]], r the norm of k − 1 entries."""
        previous = float(self.upper[claim.k - 1])
        require(math.isfinite(previous), f"k = {claim.k}: no bound for {claim.k - 1}")
        bounds = larger_root_above(
            (self.diagonal + self.error) / self.unit,
            self._top_norms(claim.k - 1),
            previous / self.unit,
        )
        bound = float(bounds.max()) * self.unit
        return self._at_least(claim, bound, f"by k = {claim.k - 1} and row norms")

    def _smaller_k(self, claim: StepClaim) -> str:
        """λ(S) ≤ a + r (opt(m) − a), r = (k − 1)/(m − 1); if A is PSD, (k/m) opt(m)."""
        k, bound, values = claim.k, claim.upper_bound, list[Fraction]()
        least = Fraction(float(self.diagonal.min())) - Fraction(self.error)
        for m in range(k - 1, 0, -1):
            if not math.isfinite(self.upper[m]):
                continue
            known = Fraction(float(self.upper[m]))
            if m > 1:
                values.append(least + Fraction(k - 1, m - 1) * (known - least))
            if self.cov.known_psd:
                values.append(Fraction(k, m) * known)
            if values and min(values) <= Fraction(bound):
                return f"at most {bound:.12g}, by subsets of {m} features"
        # The diagonal, too, may have been computed from the data in another form.
        if not values or min(values) > Fraction(bound) + Fraction(self._doubt(k)):
            raise VerificationError(
                f"k = {k}: no bound of a smaller k entails the claimed {bound:.17g}."
            )
        value = math.nextafter(float(min(values)), math.inf)
        return self._at_least(claim, value, "by subsets")

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
        """The target's optimum and excess (`covariance.dominance`)."""
        dominance, k = self.cov.dominance, claim.k
        if dominance is None:
            raise VerificationError(
                f"k = {k}: a bound of the target, for what is no contrast with a "
                "background of which it is known how far from semidefinite it is"
            )
        if claim.target is None:
            with single_threaded():
                bound, _ = ObviousBounds(dominance.matrix, np.inf).least(k)
        else:
            bound = self._optimum_of_target(claim.target, k, dominance.matrix)
        bound = above_target(bound, dominance)
        require(math.isfinite(bound), f"k = {k}: the target itself has no bound")
        return self._computed(claim, bound, "as the target is")

    def _optimum_of_target(
        self, claim: TargetClaim, k: int, target: Covariance
    ) -> float:
        """Check the steps about the target, as those about the matrix itself."""
        steps = [step.k for step in claim.steps]
        require(
            bool(steps) and steps == list(range(max(steps[0], 1), k + 1)),
            f"k = {k}: the steps about the target do not lead up to it",
        )
        require(
            0 < len(claim.support) <= k,
            f"k = {k}: the target has a component of {len(claim.support)} features",
        )
        bounds = BoundChecks(
            target, k, claim.support, self.max_nodes, self.deadline, self.groups
        )
        for step in claim.steps:
            bounds.check(step)
        self.unchecked += [f"target: {said}" for said in bounds.unchecked]
        return float(bounds.upper[k])

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
        """Search again, from the component, until the claimed value is reached.

        A part may have none of its features, and then a support is looked for.
        """
        error = claim.k * self.error
        target = claim.upper_bound - error
        left = self.deadline.remaining()
        seconds = DUAL_SECONDS if left is None else min(left, DUAL_SECONDS)
        dual = dual_bound(
            self.cov,
            claim.k,
            start=self.support or None,
            target=target,
            time_limit=seconds,
            nodes=ProofSettings.few_nodes + 2 * int(claim.statistics.get("nodes", 0)),
        )
        if dual.interrupted:
            raise KeyboardInterrupt
        # The ascent depends a little on where it starts; more than that is no accident.
        # Of a smaller k, or such a part, the component it started from is not known.
        is_known = claim.k == self.k and len(self.support) > 0
        ended = is_known and not dual.cut_short
        agreement = DUAL_AGREEMENT if ended else math.inf
        if self._agrees(claim, dual.value + error, agreement):
            return f"at most {claim.upper_bound:.12g}, by the direction dual"
        self.unchecked.append(
            f"k = {claim.k}: the direction dual reached {dual.value + error:.12g} in "
            f"{seconds:.3g} s, not {claim.upper_bound:.12g}"
        )
        return "the direction dual was not reached again"

    def _read(self, k: int, what: str, compute: Callable[[], Read]) -> Read | None:
        """What is computed from A and a record; None if there is no time for it."""
        try:
            return compute()
        except ValueError as error:
            raise VerificationError(f"k = {k}: {error}") from None
        except OutOfTime:
            self.unchecked.append(
                f"k = {k}: {what} needs more than {self.deadline.seconds:g} s; raise "
                "time_limit"
            )
            return None

    def _entry_dual(self, claim: StepClaim) -> str:
        """λmax of the matrix that the certificate's point gives, or its search."""
        require(
            claim.dual is not None, f"k = {claim.k}: the entry dual is not written down"
        )

        def value() -> float:
            record = read_record(claim.dual or "", self.cov.n_features)
            with single_threaded():
                if isinstance(record, SearchRecord):
                    return searched_again(self.cov, claim.k, record, self.deadline)
                return checked_value(self.cov, claim.k, record, self.deadline)

        bound = self._read(claim.k, "the entry dual's pass over the matrix", value)
        if bound is None:
            return "the entry dual was not computed again"
        if bound == math.inf:
            self.unchecked.append(f"k = {claim.k}: the entry dual's search is another")
            return "the entry dual's search could not be repeated"
        return self._computed(claim, bound, "by the entry dual")

    def _compositions(self, claim: StepClaim) -> str:
        """Count again what parts can give, and search what that leaves."""
        k, unit = claim.k, power_of_two(abs(claim.upper_bound))

        def level_and_parts() -> tuple[float, list[NDArray[np.intp]]]:
            level = level_of(claim.dual)
            return level, parts_above(self.cov, level, self.deadline)

        found = self._read(k, "the pass over the matrix for its parts", level_and_parts)
        if found is None:
            return "the compositions were not counted again"
        level, parts = found
        require(
            Compositions.is_affordable(self.cov, k, parts),
            f"k = {k}: the parts at {level:.6g} are too many, or too large, to count",
        )
        with single_threaded():
            table = Compositions(self.cov, k, parts, level, unit)
            return self._count(claim, table, sum(map(len, parts)))

    def _count(self, claim: StepClaim, table: Compositions, size: int) -> str:
        """Search the compositions above the claim, of so many features in parts."""
        if table.in_full(float(table.upper[claim.k])) <= claim.upper_bound:
            return f"at most {claim.upper_bound:.12g}, by compositions"
        error = math.nextafter(claim.k * self.error, math.inf)
        tau = -sum_above([-claim.upper_bound, error]) / table.unit
        searched: list[int] = []

        def search(cap: int) -> int:
            def refute(
                problem: ComposedProblem, q: int, tau: float, upper: FloatArray
            ) -> float:
                nodes = prove_none_above(
                    problem.matrix,
                    q,
                    tau,
                    upper,
                    cap - sum(searched),
                    self.deadline,
                    problem.groups,
                    problem.fixed_in,
                )
                searched.append(nodes)
                return 0.0

            if not table.upper[1] <= tau:
                raise Undecided  # one feature alone comes up to it
            # Each takes a node: beyond these the cap is too low, and raising it helps.
            most = max(cap, 2 * ProofSettings.most_compositions)
            bound = least_bound(table, tau, most, refute, self.deadline)
            if not bound <= tau:
                raise NodeCapReached
            return sum(searched)

        words = self._none_above(claim, search, size, table.unit)
        return f"compositions searched: {len(searched)}; {words}"


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
