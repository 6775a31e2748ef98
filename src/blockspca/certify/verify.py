"""Check every claim of a certificate against the matrix, without compiled code.

No kernel, no scan, no incumbent of the solve is used. What the certificate says is
computed again, step by step, and compared; searches run again in plain Python.
The formulas of the named bounds and of the spectral argument are the same code, and so
is the direction dual's search (whose sums over sparse columns are a kernel,
as are those of A from sparse data with more samples than features).

Bounds are compared without tolerance (`claims.py`), the objective with what its own
rounding may amount to, and "optimal" is what `status.is_optimal_gap` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import check_positive, check_positive_integer
from ..bound_names import BoundName
from ..certificate import Certificate, StepClaim
from ..covariance.covariance import Covariance, as_covariance
from ..covariance.derived import DerivedCovariance, restricted
from ..limits import Deadline
from ..numerics.rounding import EPS, rounding_of_forms
from ..result import Result, refuse_contradiction
from ..status import OPTIMAL_GAP, STATUS_ULPS, Status, is_within_gap
from .claims import BoundChecks
from .part_checks import PartChecks
from .replay import Replay, replayed_result
from .verification import Verification, VerificationError, require

__all__ = ["Verification", "VerificationError", "verify"]

# A search in NumPy takes ten to thirty seconds for as many nodes of 40 to 100 features,
# for which `solve` takes 0.3; a longer proof is listed as unchecked, or replayed.
MAX_NODES = 20_000
TIME_LIMIT = 60.0  # seconds; a check that takes longer is asked for


def verify(
    claim: Result | Certificate,
    cov: Covariance | Any,
    *,
    max_nodes: int = MAX_NODES,
    time_limit: float = TIME_LIMIT,
    data: Any = None,
) -> Verification:
    """Recompute every claim about a component; raise if one does not hold.

    Parameters
    ----------
    claim : Result or Certificate
        A result is checked together with its certificate: the two must agree, and x
        must be zero outside the support.
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
    data : array, sparse matrix or DataFrame, optional
        The data that `cov` was made from. With them, or with a matrix, the proof of a
        result that has one (`solve(…, proof=True)`) is replayed by the independent
        checker, instead of searching again. Where that does not show the bound, by
        rounding, the search is run after all, and `checks` says so.

    Constraints are part of a certificate: that the component keeps them is checked, and
    the bound is one for all vectors that do.

    Returns
    -------
    Verification

    Raises
    ------
    VerificationError
        Naming the claim that failed.

    Notes
    -----
    A bound is accepted if it is at least one that is proved here, rounding included. A
    claim that is true but within rounding of false may end up in `unchecked`.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    >>> bs.verify(bs.solve(A, k=2), A).complete
    True
    """
    certificate = _certificate_of(claim)
    cov = as_covariance(cov).formed()
    if certificate.scheme and not cov.is_derived:
        raise ValueError(
            f"cov is a matrix as it was given, but this is component "
            f"{certificate.component} of several, certified for what "
            f"{certificate.scheme} leaves of it; call Components.verify(cov), or pass "
            f"Components.problem({certificate.component - 1}, cov)."
        )
    cov, certificate = _among_the_kept(cov, certificate)
    max_nodes = check_positive_integer(max_nodes, "max_nodes")
    deadline = Deadline(check_positive(time_limit, "time_limit"))
    checker = _Checker(cov, certificate, max_nodes, deadline)
    checker.component()
    replay = Replay()
    if isinstance(claim, Result) and not cov.is_derived:
        replay = replayed_result(claim, cov, data)
    if replay.message:
        checker.checks.append(replay.message)
    if replay.first is not None:
        checker.replayed(replay.first)
    elif certificate.constraints is None:
        for step in certificate.steps:
            checker.step(step)
    else:
        checker.parts()
    return checker.verification()


def verify_replayed(
    claim: Result,
    cov: Covariance,
    bound: float,
    smaller: int = 0,
    *,
    max_nodes: int = MAX_NODES,
    time_limit: float = TIME_LIMIT,
) -> Verification:
    """As `verify`, where a proof of the bound has been replayed, which holds.

    Without constraints, what is claimed of k up to `smaller` is checked as well.
    """
    cov, certificate = _among_the_kept(cov, _certificate_of(claim))
    checker = _Checker(cov, certificate, max_nodes, Deadline(time_limit))
    checker.component()
    if certificate.constraints is None:
        for step in certificate.steps[:-1]:
            if step.k <= smaller:
                checker.step(step)
    checker.replayed(bound)
    return checker.verification()


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
    _check_vector(claim)
    try:
        refuse_contradiction(claim)
    except ValueError as error:
        raise VerificationError(str(error)) from None
    return _certificate_of(certificate)


def _among_the_kept(
    cov: Covariance, certificate: Certificate
) -> tuple[Covariance, Certificate]:
    """Look at the features that are left, if the others were cut off.

    The optimum is the same (`covariance.derived.masked`), and it is these features that
    the claims were made about: a point of the entry dual has a weight for each.
    """
    if not isinstance(cov, DerivedCovariance) or cov.cut_from is None:
        return cov, certificate
    whole, keep = cov.cut_from
    said = set(certificate.support).union(*(s.features() for s in certificate.steps))
    is_about_all = certificate.constraints is not None or certificate.k > len(keep)
    if is_about_all or certificate.n_features != cov.n_features:
        return cov, certificate
    if not said <= set(keep.tolist()):
        return cov, certificate
    numbers = np.zeros(cov.n_features, dtype=np.intp)
    numbers[keep] = np.arange(len(keep))
    return restricted(whole, keep), replace(
        certificate,
        n_features=len(keep),
        support=tuple(numbers[list(certificate.support)].tolist()),
        steps=tuple(step.renumbered(numbers) for step in certificate.steps),
    )


def _check_vector(result: Result) -> None:
    """x has length d and is zero outside the support, which the certificate shares."""
    x = np.asarray(result.x)
    require(
        x.shape == (result.n_features,),
        f"x has shape {x.shape} for {result.n_features} features",
    )
    outside = np.setdiff1d(np.flatnonzero(x), result.support)
    require(
        len(outside) == 0,
        f"x is not zero at {len(outside)} feature(s) outside the support, the first "
        f"{outside[:1]}",
    )


class _Checker:
    """The checks of one certificate."""

    def __init__(
        self,
        cov: Covariance,
        certificate: Certificate,
        max_nodes: int,
        deadline: Deadline,
    ) -> None:
        require(
            cov.n_features == certificate.n_features,
            f"the certificate is for {certificate.n_features} features, the matrix "
            f"has {cov.n_features}",
        )
        self.cov = cov
        self.certificate = certificate
        self.bounds = BoundChecks(
            cov, certificate.k, certificate.support, max_nodes, deadline
        )
        self.checks: list[str] = []
        self.objective, self.rounding = self._recomputed()

    def _recomputed(self) -> tuple[float, float]:
        """Return x'Ax / x'x, and by how much the solver's may differ by rounding."""
        support = np.array(self.certificate.support)
        x = np.array(self.certificate.loadings)
        within = self.cov.submatrix(support)
        size = float(x @ x)
        require(
            np.isfinite(size) and size > 0, "the component has no direction: x'x = 0"
        )
        forms = rounding_of_forms(x[None], within, self.cov.entry_error, EPS)
        return float(x @ within @ x) / size, float(forms[0, 0]) / size

    def component(self) -> None:
        """Feasibility and objective."""
        certificate = self.certificate
        support, x = np.array(certificate.support), np.array(certificate.loadings)
        require(
            len(support) <= certificate.k,
            f"the component has {len(support)} nonzeros for k = {certificate.k}",
        )
        norm = float(np.linalg.norm(x))
        require(
            abs(norm - 1) <= (8 * len(x) + 64) * EPS,
            f"the component has norm {norm:.17g}, not 1",
        )
        require(
            abs(self.objective - certificate.objective) <= self.rounding,
            f"the objective is {self.objective:.17g}, not {certificate.objective:.17g}",
        )
        self.checks.append(
            f"component: {len(support)} of {self.cov.n_features} features, unit norm, "
            f"objective {self.objective:.12g}"
        )

    def step(self, claim: StepClaim) -> None:
        """One bound of the chain: opt(k) ≤ claim.upper_bound."""
        k = claim.k
        require(
            np.isfinite(claim.upper_bound) or claim.bound_name == BoundName.NONE,
            f"k = {k}: the bound {claim.upper_bound} is not a finite number",
        )
        require(
            k < self.certificate.k
            or claim.upper_bound >= self.objective - self.rounding,
            f"k = {k}: the bound {claim.upper_bound:.12g} is below the objective",
        )
        self.checks.append(f"k = {k}: {self.bounds.check(claim)}")

    def replayed(self, bound: float) -> None:
        """The proof of the last step was replayed; check that the rules are kept."""
        if self.certificate.constraints is not None:
            parts = PartChecks(self.certificate, self.bounds)
            parts.component()
            self.checks += parts.checks
        self.bounds.upper[-1] = bound
        self.checks.append(
            f"k = {self.certificate.k}: at most {bound:.12g}, by the proof, replayed; "
            "what else the certificate says of smaller k was not looked at"
        )

    def parts(self) -> None:
        """The rules are kept, and the bounds of all parts bound the whole."""
        parts = PartChecks(self.certificate, self.bounds)
        parts.component()
        bound = parts.bound()
        require(
            bound >= self.objective - self.rounding
            or self.certificate.upper_bound >= self.objective - self.rounding,
            f"the bound {bound:.12g} is below the objective",
        )
        self.bounds.upper[-1] = bound
        self.bounds.unchecked += parts.unchecked
        self.checks += parts.checks

    def conclusion(self) -> None:
        """The upper bound and the status follow from the last step."""
        certificate = self.certificate
        proved = float(self.bounds.upper[-1])
        upper_bound, objective = certificate.upper_bound, certificate.objective
        require(
            upper_bound >= proved,
            f"the upper bound {upper_bound:.12g} is below the proved {proved:.12g}",
        )
        allowed = OPTIMAL_GAP * abs(objective)
        # Version 1 meant a tolerance relative to the largest entry; its status is held
        # to the present meaning all the same, by `Certificate.check`.
        require(
            certificate.version == 1
            or certificate.tolerance <= allowed * (1 + 4 * EPS),
            f"the tolerance {certificate.tolerance:.3g} is wider than {allowed:.3g}",
        )
        if certificate.status is Status.GAP_LIMIT:
            self._gap(objective, max(upper_bound, objective))
        self.checks.append(
            f"status {certificate.status}: upper bound {upper_bound:.12g}"
        )

    def verification(self) -> Verification:
        """What was found, once the conclusion is checked."""
        self.conclusion()
        self.cov.check_unchanged()
        unchecked = tuple(self.bounds.unchecked)
        return Verification(
            upper_bound=np.inf if unchecked else float(self.bounds.upper[-1]),
            checks=tuple(self.checks),
            unchecked=unchecked,
        )

    def _gap(self, objective: float, upper_bound: float) -> None:
        """The gap that was asked for is reached."""
        gap = self.certificate.gap
        if gap is None:
            self.bounds.unchecked.append(
                "status gap_limit: a certificate of version 1 does not say which gap "
                "was asked for"
            )
            return
        require(
            is_within_gap(objective, upper_bound, gap + STATUS_ULPS * EPS),
            f"the status is gap_limit at {gap:.6g}, but the bound exceeds the "
            f"objective by {upper_bound - objective:.3g}",
        )
