"""A component is bounded by the earlier ones: what they rule out, it cannot reach.

Let F_j be the unit vectors that component j may be, k_j-sparse and as the scheme wants
them, and A_j the matrix that they are judged by. If F_j ⊆ F_i and x'A_j x ≤ x'A_i x + m
for all x in F_j, then

    max x'A_j x over F_j  ≤  max x'A_i x over F_i  +  m  ≤  U_i + m.

k_i ≥ k_j is needed for F_j ⊆ F_i; the rest is what a scheme's `margin` says, with its
proof: m is a matter of rounding, or None where there is no such theorem.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..bound_names import BoundName
from ..certificate import StepClaim
from ..certify.claims import rests_on_earlier
from ..certify.verification import Verification, require
from ..covariance.covariance import Covariance
from ..numerics.rounding import sum_above
from ..result import Result
from ..status import Status, status_of_gap
from .rewrite import with_bound
from .scheme import BaseScheme

CLAIMED = 2.0  # margins in a claim, so that another BLAS confirms it; one is needed


def with_earlier_bound(
    result: Result, cov: Covariance, earlier: Sequence[Result], scheme: BaseScheme
) -> Result:
    """Return the result with the bound of an earlier component, if that is less.

    What is optimal stays as it is: its certificate needs no other.
    """
    if result.status is Status.OPTIMAL:
        return result
    found = [
        (bound, i)
        for i in range(len(earlier))
        if earlier[i].upper_bound < result.upper_bound
        and (bound := _bound(cov, earlier, i, result.k, scheme, CLAIMED)) is not None
    ]
    bound, source = min(found, default=(float("inf"), -1))
    if bound >= result.upper_bound:
        return result
    bound = max(bound, result.objective)
    wanted = None if result.certificate is None else result.certificate.gap
    # An interruption stays one: it also says that no more components follow.
    status = status_of_gap(
        result.objective, bound, wanted, result.status, keep_interrupt=True
    )
    step = StepClaim(
        k=result.k,
        upper_bound=bound,
        bound_name=BoundName.EARLIER_COMPONENT,
        statistics={"component": source + 1},
    )
    return with_bound(result, status, step)


def check_earlier_bound(
    check: Verification,
    cov: Covariance,
    results: Sequence[Result],
    index: int,
    scheme: BaseScheme,
    checks: Sequence[Verification],
) -> Verification:
    """Check a bound that `verify` left to the earlier components, by their checks.

    Parameters
    ----------
    check : Verification
        What `verify` said of component `index`.
    checks : sequence of Verification
        Of the components before it.
    """
    certificate = results[index].certificate
    if certificate is None or certificate.bound_name != BoundName.EARLIER_COMPONENT:
        return check
    claim = certificate.steps[-1]
    i = int(claim.statistics.get("component", 0)) - 1
    require(
        0 <= i < index,
        f"component {index + 1}: its bound rests on component {i + 1}, which is not an "
        "earlier one",
    )
    bound = _bound(cov, results[:index], i, claim.k, scheme, 1.0)
    require(
        bound is not None,
        f"component {index + 1}: its bound does not follow from that of component "
        f"{i + 1}",
    )
    assert bound is not None
    require(
        claim.upper_bound >= bound,
        f"component {index + 1}: the bound of component {i + 1} gives {bound:.17g}, "
        f"above the claimed {claim.upper_bound:.17g}",
    )
    if not checks[i].complete:
        return check
    return with_claim_checked(
        check, claim, rests_on_earlier(claim), f"component {i + 1}"
    )


def with_claim_checked(
    check: Verification, claim: StepClaim, left_open: str, by: str
) -> Verification:
    """Return the check with a claim that it had left open, and what has checked it."""
    left = tuple(said for said in check.unchecked if said != left_open)
    said = f"k = {claim.k}: at most {claim.upper_bound:.12g}, by {by}"
    return Verification(
        upper_bound=check.upper_bound if left else claim.upper_bound,
        checks=(*check.checks, said),
        unchecked=left,
    )


def _bound(
    cov: Covariance,
    earlier: Sequence[Result],
    i: int,
    k: int,
    scheme: BaseScheme,
    margins: float,
) -> float | None:
    """U_i and so many margins, or None if component i bounds nothing of k features."""
    if earlier[i].k < k:
        return None
    rounding = scheme.margin(cov, earlier, i, k)
    if rounding is None:
        return None
    upper = earlier[i].upper_bound
    return upper if rounding == 0 else sum_above([upper, margins * rounding])
