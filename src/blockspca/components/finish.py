"""Close the gap that a relaxation leaves, on small problems, and check that again.

A scheme with conditions bounds its component by a problem without them. Where the two
do not meet, a search of all sets under the conditions decides, and its claim takes the
place of the last step of the certificate: that no such vector is above the bound.
`bs.verify` sees the problem only and leaves the claim open; `Components.verify`
searches again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..certificate import Certificate, StepClaim
from ..certify.claims import left_to_components
from ..certify.verification import Verification, VerificationError
from ..covariance.covariance import Covariance
from ..limits import Deadline, Limits
from ..numerics.blas import single_threaded
from ..numerics.linalg import vector_on
from ..result import Result
from ..search.reference import NodeCapReached, Undecided
from ..status import SEARCH_GAP, Status, is_optimal_gap, is_search_over
from .conditions import best_orthogonal
from .conditions_search import Better, Conditions, ConstrainedSearch
from .earlier import with_claim_checked
from .rewrite import with_bound, with_component
from .scheme import BaseScheme

LARGEST = 200  # features: the search holds some matrices of this order
MAX_NODES = 20_000  # of a search in NumPy: some seconds
SECONDS = 60.0  # for a search that is made again


def finished(
    result: Result,
    problem: Covariance,
    conditions: Conditions,
    limits: Limits,
    deadline: Deadline,
) -> Result:
    """Return the result with a bound for vectors under the conditions, if found.

    The component changes where the search comes upon a better one.
    """
    certificate = result.certificate
    left = MAX_NODES
    if limits.nodes is not None:
        left = min(left, limits.nodes - result.nodes)
    if result.status is Status.INTERRUPTED or certificate is None:
        return result
    done = is_search_over(result.objective, result.upper_bound, limits.gap)
    if done or problem.n_features > LARGEST or left < 1:
        return result
    search = _Search(problem, conditions, certificate)
    while True:
        tau = result.objective + SEARCH_GAP / 2 * abs(result.objective)
        try:
            nodes = search.run(result.k, tau, left, deadline)
        except Better as better:
            support = better.support
            x = vector_on(support, search.best_on(support)[0], problem.n_features)
            improved = with_component(result, x, problem, reconsider=True)
            if not improved.objective > result.objective:
                return result
            result = improved
            continue
        except (Undecided, NodeCapReached):
            return result
        return _with_claim(result, tau, nodes)


@dataclass
class _Search:
    """A search of all sets under the conditions, with the bounds for smaller k."""

    problem: Covariance
    conditions: Conditions
    certificate: Certificate

    def __post_init__(self) -> None:
        self.A = np.array(self.problem.submatrix(slice(None)))

    def run(self, k: int, tau: float, max_nodes: int, deadline: Deadline) -> int:
        """Prove that no such vector is above τ; the nodes that took."""
        upper = np.full(k, np.inf)
        for step in self.certificate.steps:
            if step.k < k:
                upper[step.k] = step.upper_bound
        error, conditions = self.problem.entry_error, self.conditions
        with single_threaded():
            return ConstrainedSearch(
                self.A, conditions, k, tau, upper, error, max_nodes, deadline
            ).run()

    def best_on(self, support: NDArray[np.intp]) -> tuple[FloatArray, float]:
        """Return the best loadings on a set, and their variance."""
        within = self.A[np.ix_(support, support)]
        found = best_orthogonal(within, self.conditions.W[support])
        assert found is not None
        return found


def _with_claim(result: Result, tau: float, nodes: int) -> Result:
    assert result.certificate is not None
    status = result.status
    if is_optimal_gap(result.objective, tau):
        status = Status.OPTIMAL
    claim = StepClaim(
        k=result.k,
        upper_bound=tau,
        bound_name=BoundName.CONDITIONS,
        statistics={"nodes": nodes},
    )
    result = with_bound(result, status, *result.certificate.steps[:-1], claim)
    return replace(result, nodes=result.nodes + nodes)


def check_finished(
    check: Verification,
    result: Result,
    problem: Covariance,
    cov: Covariance,
    given: Sequence[Result],
    scheme: BaseScheme,
    max_nodes: int = MAX_NODES,
    time_limit: float = SECONDS,
) -> Verification:
    """Search again where the last claim is one under conditions."""
    certificate = result.certificate
    if certificate is None or certificate.bound_name != BoundName.CONDITIONS:
        return check
    claim = certificate.steps[-1]
    if problem.n_features > LARGEST:
        return check
    conditions = scheme.conditions(cov, given)
    if conditions is None:
        return check
    search = _Search(problem, conditions, certificate)
    try:
        search.run(claim.k, claim.upper_bound, max_nodes, Deadline(time_limit))
    except Better as better:
        support = better.support
        variance = search.best_on(support)[1]
        # Entries computed from the data in another form may err by more than they did
        # where the claim was made; as in `SearchedClaims`.
        doubt = 4 * claim.k * problem.entry_error
        if doubt > 0 and variance - claim.upper_bound <= doubt:
            return check
        raise VerificationError(
            f"k = {claim.k}: features {support.tolist()} exceed the claimed "
            f"bound {claim.upper_bound:.17g} under the conditions of the scheme."
        ) from None
    except (Undecided, NodeCapReached):
        return check
    open_ = left_to_components(claim)
    return with_claim_checked(check, claim, open_, "a search of all sets")
