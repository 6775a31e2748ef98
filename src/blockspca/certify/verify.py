"""Check every claim of a certificate against the matrix, without compiled code.

No kernel, no scan, no incumbent of the solve is used. What the certificate says is
computed again, step by step, and compared; searches run again in plain Python.
The formulas of the named bounds and of the spectral argument are the same code, and so
is the direction dual's search (whose sums over sparse columns are a kernel).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._validation import FloatArray, check_positive, check_positive_integer
from ..covariance import Covariance, as_covariance
from ..limits import Deadline
from ..result import Result, Status
from .best_bound import FEW_NODES
from .bounds import best_threshold_bound, largest_eigenvalue_bound
from .certificate import Certificate, StepClaim
from .connected import connected_parts
from .dual_bound import dual_bound
from .eigenvalues import psd_shift
from .plain_proof import NodeCapReached, Refuted, prove_none_above
from .proof_tree import rounding_allowance

AGREEMENT = 1e-9  # relative, of a recomputed objective or norm
ROUNDING = 1e-12  # relative, of sums over a row
OPTIMAL_TOLERANCE = 1e-9  # relative to the objective or the largest entry
MAX_NODES = 20_000
TIME_LIMIT = 60.0
COMFORTABLE_SIZE = 100
DUAL_SECONDS = 60.0
DUAL_AGREEMENT = 1e-3
MOST_DENSE = 5000  # features of a matrix that is held as a whole
ENTRIES_AT_ONCE = 2**23


class VerificationError(Exception):
    """A claim of a certificate does not hold, or was not made properly."""


@dataclass(frozen=True)
class Verification:
    """What was checked.

    Attributes
    ----------
    upper_bound : float
        The bound that this check has established by itself; infinite if it is not
        complete.
    complete : bool
        False if a proof was larger than the node cap and was not run again.
    checks : tuple of str
        One sentence a check.
    unchecked : tuple of str
        What was left out, and why.
    """

    upper_bound: float
    checks: tuple[str, ...] = field(repr=False)
    unchecked: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.unchecked

    def __str__(self) -> str:
        lines = [*self.checks, *(f"not checked: {text}" for text in self.unchecked)]
        return "\n".join(lines)


def verify(
    claim: Result | Certificate,
    cov: Covariance | Any,
    *,
    max_nodes: int = MAX_NODES,
    time_limit: float = TIME_LIMIT,
) -> Verification:
    """Recompute every claim about a component; raise if one does not hold.

    Parameters
    ----------
    claim : Result or Certificate
        A result is checked together with its certificate: the two must agree.
    cov : Covariance or symmetric matrix
        The matrix of the problem: the original one, or `Components.problem(j, cov)` for
        a later one of several components, which `Components.verify` passes by itself.
    max_nodes : int
        Searches are run again in a plain implementation, up to this many nodes for
        each k; fewer if it has more than 100 features, as a node then takes longer. A
        larger search is listed in `unchecked`.
    time_limit : float
        Seconds for all searches together; those it does not suffice for are listed in
        `unchecked` too. The plain search is some hundred times slower than the proof.

    Returns
    -------
    Verification

    Raises
    ------
    VerificationError
        Naming the claim that failed.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> bs.verify(bs.solve(A, k=2), A).complete
    True
    """
    certificate = _certificate_of(claim)
    cov = as_covariance(cov)
    if certificate.component > 1 and not cov.is_derived:
        raise ValueError(
            f"cov is a matrix as it was given, but this is component "
            f"{certificate.component} of several, certified for what "
            f"{certificate.scheme} leaves of it; call Components.verify(cov), or pass "
            f"Components.problem({certificate.component - 1}, cov)."
        )
    max_nodes = check_positive_integer(max_nodes, "max_nodes")
    deadline = Deadline(check_positive(time_limit, "time_limit"))
    checker = _Checker(cov, certificate, max_nodes, deadline)
    checker.component()
    for step in certificate.steps:
        checker.step(step)
    checker.conclusion()
    return Verification(
        upper_bound=np.inf if checker.unchecked else float(checker.upper[-1]),
        checks=tuple(checker.checks),
        unchecked=tuple(checker.unchecked),
    )


def _certificate_of(claim: Result | Certificate) -> Certificate:
    if not isinstance(claim, (Result, Certificate)):
        raise TypeError(
            f"claim is of type {type(claim).__name__}; pass a Result or a Certificate "
            "(of several components, call their own verify method)."
        )
    if isinstance(claim, Certificate):
        try:
            claim.check()
        except ValueError as error:
            raise VerificationError(str(error)) from None
        return claim
    certificate = claim.certificate
    if certificate is None:
        raise VerificationError(
            "the result has no certificate: it was solved with certify=False, or was "
            "stopped while its blocks were solved."
        )
    _require(
        certificate.k == claim.k
        and certificate.n_features == claim.n_features
        and certificate.objective == claim.objective
        and certificate.upper_bound == claim.upper_bound
        and certificate.status is claim.status
        and list(certificate.support) == claim.support.tolist()
        and np.array_equal(claim.x[claim.support], certificate.loadings),
        "the result and its certificate do not say the same",
    )
    return _certificate_of(certificate)


def _require(condition: bool | np.bool_, otherwise: str) -> None:
    if not condition:
        raise VerificationError(otherwise + ".")


class _Checker:
    """The checks of one certificate; `upper` are the bounds established so far."""

    def __init__(
        self,
        cov: Covariance,
        certificate: Certificate,
        max_nodes: int,
        deadline: Deadline,
    ) -> None:
        _require(
            cov.n_features == certificate.n_features,
            f"the certificate is for {certificate.n_features} features, the matrix "
            f"has {cov.n_features}",
        )
        self.cov = cov
        self.certificate = certificate
        self.max_nodes = max_nodes
        self.deadline = deadline
        self.diagonal = cov.diagonal()
        self.largest = cov.max_abs()
        # A power of two: exact to divide by, and squares neither overflow nor vanish.
        self.unit = 2.0 ** np.floor(np.log2(self.largest)) if self.largest > 0 else 1.0
        support = np.array(certificate.support)
        _require(
            support.min() >= 0 and support.max() < cov.n_features,
            "the component uses features that the matrix does not have",
        )
        loadings = np.array(certificate.loadings)
        self.objective = float(loadings @ cov.submatrix(support) @ loadings)
        self.spread = max(self.objective, self.largest)
        # bounds established so far; inf for a k that the certificate leaves out
        self.upper = np.full(certificate.k + 1, np.inf)
        self.checks: list[str] = []
        self.unchecked: list[str] = []

    @cached_property
    def tops(self) -> FloatArray:
        """Of every row; a pass over the matrix that not every bound needs."""
        return _row_tops(self.cov, self.certificate.k - 1)

    def component(self) -> None:
        """Feasibility and objective."""
        certificate = self.certificate
        support, x = np.array(certificate.support), np.array(certificate.loadings)
        _require(
            len(support) <= certificate.k and np.isfinite(x).all(),
            f"the component has {len(support)} nonzeros for k = {certificate.k}",
        )
        _require(
            abs(np.linalg.norm(x) - 1) <= AGREEMENT,
            f"the component has norm {np.linalg.norm(x):.12g}, not 1",
        )
        objective = self.objective
        _require(
            abs(objective - certificate.objective) <= AGREEMENT * self.spread,
            f"the objective is {objective:.12g}, not {certificate.objective:.12g}",
        )
        self.checks.append(
            f"component: {len(support)} of {self.cov.n_features} features, unit norm, "
            f"objective {objective:.12g}"
        )

    def step(self, claim: StepClaim) -> None:
        """One bound of the chain: opt(k) ≤ claim.upper_bound."""
        k = claim.k
        _require(
            np.isfinite(claim.upper_bound) or claim.bound_name == "none",
            f"k = {k}: the bound {claim.upper_bound} is not a finite number",
        )
        _require(
            k < self.certificate.k
            or claim.upper_bound >= self.objective - AGREEMENT * self.spread,
            f"k = {k}: the bound {claim.upper_bound:.12g} is below the objective",
        )
        check: Callable[[StepClaim], str] | None = {
            "proof tree": self._searched,
            "growth": self._searched,
            "screening": self._searched,
            "nested 2×2": self._nested,
            "row sums": self._row_sums,
            "variances": self._variances,
            "largest eigenvalue": self._largest_eigenvalue,
            "soft threshold": self._soft_threshold,
            "direction dual": self._direction_dual,
            "none": self._nothing,
        }.get(claim.bound_name)
        if check is None:
            raise VerificationError(f"k = {k}: unknown bound {claim.bound_name!r}.")
        words = check(claim)
        self.upper[k] = claim.upper_bound
        self.checks.append(f"k = {k}: {words}")

    def conclusion(self) -> None:
        """The upper bound and the status follow from the last step."""
        certificate = self.certificate
        _require(
            certificate.upper_bound >= self.upper[-1],
            f"the upper bound {certificate.upper_bound:.12g} is below the proved "
            f"{self.upper[-1]:.12g}",
        )
        excess = max(self.upper[-1], certificate.upper_bound) - self.objective
        allowed = OPTIMAL_TOLERANCE * self.spread
        _require(
            certificate.tolerance <= allowed * (1 + AGREEMENT),
            f"the tolerance {certificate.tolerance:.3g} is wider than {allowed:.3g}",
        )
        if certificate.status is Status.OPTIMAL:
            _require(
                excess <= allowed * (1 + AGREEMENT),
                f"the status is optimal, but the bound exceeds the objective by "
                f"{excess:.3g}",
            )
        self.checks.append(
            f"status {certificate.status}: upper bound {certificate.upper_bound:.12g}"
        )

    def _allowance(self, k: int) -> float:
        """What rounding in the proof and in this check may amount to."""
        return rounding_allowance(k) * self.largest + 2 * k * self.cov.entry_error

    def _at_least(self, claim: StepClaim, bound: float) -> None:
        slack = ROUNDING * self.spread
        _require(
            claim.upper_bound >= bound - slack,
            f"k = {claim.k}: {claim.bound_name} gives {bound:.12g}, above the claimed "
            f"{claim.upper_bound:.12g}",
        )

    def _variances(self, claim: StepClaim) -> str:
        bound = float(np.sort(self.diagonal)[-claim.k :].sum())
        if claim.k > 1 and not self.cov.known_psd:
            _require(
                self.cov.n_features <= MOST_DENSE,
                f"k = {claim.k}: a sum of variances bounds only what is known to be "
                "positive semidefinite",
            )
            # δ is of the size of rounding if A is, and then adds next to nothing.
            shift = psd_shift(self.cov.submatrix(slice(None)))
            bound += (claim.k - 1) * max(0.0, shift - AGREEMENT * self.spread)
        self._at_least(claim, bound)
        return f"at most {claim.upper_bound:.12g}, by the largest variances"

    def _row_sums(self, claim: StepClaim) -> str:
        sums = self.diagonal + self.tops[:, : claim.k - 1].sum(axis=1)
        self._at_least(claim, float(sums.max()))
        return f"at most {claim.upper_bound:.12g}, by row sums"

    def _nested(self, claim: StepClaim) -> str:
        previous = self.upper[claim.k - 1]
        _require(np.isfinite(previous), f"k = {claim.k}: no bound for {claim.k - 1}")
        scaled = self.tops[:, : claim.k - 1] / self.unit
        norms = self.unit * np.sqrt((scaled**2).sum(axis=1))
        half = (self.diagonal - previous) / 2
        bounds = (self.diagonal + previous) / 2 + np.hypot(half, norms)
        self._at_least(claim, float(bounds.max()))
        return f"at most {claim.upper_bound:.12g}, by k = {claim.k - 1} and row norms"

    def _largest_eigenvalue(self, claim: StepClaim) -> str:
        bound = largest_eigenvalue_bound(self.cov) + claim.k * self.cov.entry_error
        self._at_least(claim, bound)
        return f"at most {claim.upper_bound:.12g}, the largest eigenvalue"

    def _soft_threshold(self, claim: StepClaim) -> str:
        bound, epsilon = best_threshold_bound(self.cov.submatrix(slice(None)), claim.k)
        self._at_least(claim, bound + claim.k * self.cov.entry_error)
        return f"at most {claim.upper_bound:.12g}, by thresholding at {epsilon:.6g}"

    def _direction_dual(self, claim: StepClaim) -> str:
        """Search again, from the component, until the claimed value is reached."""
        error = claim.k * self.cov.entry_error
        target = claim.upper_bound - error
        left = self.deadline.remaining()
        seconds = DUAL_SECONDS if left is None else min(left, DUAL_SECONDS)
        dual = dual_bound(
            self.cov,
            claim.k,
            start=self.certificate.support,
            target=target,
            time_limit=seconds,
            nodes=FEW_NODES + 2 * int(claim.statistics.get("nodes", 0)),
        )
        if dual.interrupted:
            raise KeyboardInterrupt
        if dual.value <= target:
            return f"at most {claim.upper_bound:.12g}, by the direction dual"
        # The ascent depends a little on where it starts; more than that is no accident.
        # Of a smaller k the component it started from is not known.
        ended = not dual.cut_short and claim.k == self.certificate.k
        _require(
            not ended or dual.value - target <= DUAL_AGREEMENT * self.spread,
            f"k = {claim.k}: the direction dual gives {dual.value + error:.12g}, above "
            f"the claimed {claim.upper_bound:.12g}",
        )
        self.unchecked.append(
            f"k = {claim.k}: the direction dual reached {dual.value + error:.12g} in "
            f"{seconds:.3g} s, not {claim.upper_bound:.12g}"
        )
        return "the direction dual was not reached again"

    def _nothing(self, claim: StepClaim) -> str:
        _require(
            claim.upper_bound == np.inf, f"k = {claim.k}: a bound without a reason"
        )
        return "no bound is claimed"

    def _searched(self, claim: StepClaim) -> str:
        k, tau = claim.k, claim.tau
        if tau is None or claim.upper_previous is None:
            raise VerificationError(f"k = {k}: the proof does not say what it proves.")
        previous = self.upper[k - 1]
        # A proof at τ that relied on a bound too small by s is a proof at τ + s.
        short = max(0.0, previous - claim.upper_previous) if k > 1 else 0.0
        _require(
            short <= ROUNDING * self.spread,
            f"k = {k}: the proof uses {claim.upper_previous:.12g} for k = {k - 1}, "
            f"where {previous:.12g} is proved",
        )
        _require(
            k == 1 or tau >= claim.upper_previous - ROUNDING * self.spread,
            f"k = {k}: the proof is for {tau:.12g}, below what k = {k - 1} may reach, "
            f"{claim.upper_previous:.12g}, where it says nothing",
        )
        self._at_least(claim, tau + short + self._allowance(k))
        survivors = np.array(claim.survivors, dtype=np.intp)
        outside = self._screened(k, tau, claim.upper_previous, survivors)
        return f"{outside}; {self._tree(claim, tau)}"

    def _screened(
        self, k: int, tau: float, previous: float, survivors: np.ndarray
    ) -> str:
        """Peel from all features; whatever is left must be among the survivors."""
        if k == 1:
            left = np.flatnonzero(self.diagonal > tau)
        else:
            norms = ((self.tops[:, : k - 1] / self.unit) ** 2).sum(axis=1)
            left = np.flatnonzero(self._may_stay(norms, self.diagonal, tau, previous))
            while not np.isin(left, survivors).all():
                norms = self._norms_within(left, k - 1)
                stay = self._may_stay(norms, self.diagonal[left], tau, previous)
                if stay.all():
                    break
                left = left[stay]
        missing = np.setdiff1d(left, survivors)
        if len(left) >= k:  # fewer than k features hold no k-set
            _require(
                len(missing) == 0,
                f"k = {k}: feature {missing[:1]} passes the screening inequality but "
                "is not among the survivors",
            )
        dropped = self.cov.n_features - len(survivors)
        return f"features in no set above {tau:.12g}: {dropped}"

    def _may_stay(
        self, norms: FloatArray, diagonal: FloatArray, tau: float, previous: float
    ) -> np.ndarray:
        margin = max(tau - previous, 0.0) / self.unit
        # Features within rounding of the inequality are decided by the certificate.
        # Written so that nothing is dropped for not being a number.
        fails = norms * (1 - ROUNDING) <= margin * ((tau - diagonal) / self.unit)
        return ~fails

    def _norms_within(self, features: np.ndarray, q: int) -> FloatArray:
        step = max(1, ENTRIES_AT_ONCE // len(features))
        norms = np.empty(len(features))
        for start in range(0, len(features), step):
            rows = features[start : start + step]
            squares = (self.cov.submatrix(rows, features) / self.unit) ** 2
            squares[np.arange(len(rows)), np.arange(start, start + len(rows))] = 0.0
            if q < len(features):
                squares = np.partition(squares, len(features) - q, axis=1)
                squares = squares[:, len(features) - q :]
            norms[start : start + step] = squares.sum(axis=1)
        return norms

    def _tree(self, claim: StepClaim, tau: float) -> str:
        k = claim.k
        if len(claim.survivors) < k:
            return f"features left: {len(claim.survivors)}, fewer than {k}"
        within = self.cov.submatrix(np.array(claim.survivors))
        unit = self.largest or 1.0
        share = min(1.0, (COMFORTABLE_SIZE / len(within)) ** 2)
        cap = max(1, int(self.max_nodes * share))
        upper = self.upper[:k] / unit
        within = within / unit
        nodes = 0
        try:
            for part in connected_parts(within, k, tau / unit, float(upper[k - 1])):
                nodes += prove_none_above(
                    within[np.ix_(part, part)],
                    k,
                    tau / unit,
                    upper,
                    cap - nodes,
                    self.deadline,
                )
        except Refuted:
            raise VerificationError(
                f"k = {k}: a set with an eigenvalue above {tau:.12g} exists."
            ) from None
        except NodeCapReached:
            self.unchecked.append(
                f"k = {k}: the search of {len(within)} features needs more than "
                f"{cap} nodes or {self.deadline.seconds:g} s; raise max_nodes = "
                f"{self.max_nodes} and time_limit"
            )
            return "the rest was not searched again"
        return f"a search of the others ({len(within)}) found none; nodes: {nodes}"


def _row_tops(cov: Covariance, width: int) -> FloatArray:
    """Return the `width` largest |A_ij|, j ≠ i, of every row, descending."""
    d = cov.n_features
    width = min(width, d - 1)
    tops = np.empty((d, width))
    if width < 1:
        return tops
    step = max(1, ENTRIES_AT_ONCE // d)
    for start in range(0, d, step):
        rows = np.abs(cov.rows(slice(start, start + step)))
        index = np.arange(len(rows))
        rows[index, start + index] = -1.0  # the diagonal does not count
        best = np.partition(rows, d - width, axis=1)[:, d - width :]
        tops[start : start + step] = np.sort(best, axis=1)[:, ::-1]
    return tops
