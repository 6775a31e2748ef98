"""Joint bounds for several components, beside those of one component and of PCA.

For any components: by the features that they use together (`shared_support`). For
orthogonal ones, on the sum of their variances: by the entry dual with a sum of m
eigenvalues (`joint_entries`), in which every component has its own k, and by a branch
and bound for one component of what the others leave (`joint_split`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..covariance.covariance import Covariance
from ..limits import Budget
from ..numerics import cost as _cost
from ..result import Result
from .joint_entries import JointEntries, joint_entries
from .joint_split import JointSplit, joint_split
from .orthogonal import Orthogonalised
from .requests import is_disjoint
from .shared_support import SharedSupport, bound_shared
from .solving import shared_out
from .variance import ENTRIES, SHARED, SPLIT, as_strict_as, joint_upper_bound

JointProof = SharedSupport | JointEntries | JointSplit

NODES = 100  # of a branch and bound, up to 60 features
STEPS = 100  # of an ascent, as many as it takes
# More than this many seconds of a fit are for who asks for them: with `solve_shared`.
MOST_SECONDS = 5.0
SEARCH_NODES = 300  # of the search for one component of what the others leave
SEARCH_SHARE = 0.4  # of the time of sweeps that is for it: proofs take all there is
EVALUATIONS = 500  # of the entry dual's matrix, as many as it takes
TARGET_DIGITS = 24  # binary ones
EIGENVECTORS = 5.0  # times the eigenvalues, that all eigenvectors take


def are_orthogonal(scheme: Any) -> bool:
    """Tell whether the components of a scheme are orthogonal."""
    return is_disjoint(scheme) or isinstance(scheme, Orthogonalised)


def adds_plain(scheme: Any) -> bool:
    """Tell whether the joint problem of a scheme is about x_j'Ax_j, not adjusted."""
    return are_orthogonal(scheme) and getattr(scheme, "adds_variances", False)


def budget_of_sweeps(budget: Budget, scheme: Any) -> Budget:
    """Return what is left for sweeps, without the part of a joint search."""
    part = 1.0 - SEARCH_SHARE if are_orthogonal(scheme) else 1.0
    return Budget(shared_out(budget, 1, part))


def joint_claim(
    cov: Covariance,
    results: Sequence[Result],
    first: Result | None,
    scheme: Any,
    plain: float,
    budget: Budget,
    *,
    prove: bool,
) -> tuple[float, str, JointProof | None]:
    """Return the least joint bound, its name, and what it rests on.

    Parameters
    ----------
    first : Result or None
        After sweeps, the first component, certified for A. Who asks for sweeps asks for
        a good set: then a branch and bound says how good.
    plain : float
        The sum of the variances x_j'Ax_j.
    prove : bool
        Whether to take the time for more than closed forms.
    """
    proofs: dict[str, JointProof | None] = {}
    if prove:
        entries = None
        if are_orthogonal(scheme):
            entries = entries_proof(cov, results, plain, budget)
        if entries is not None:
            proofs[ENTRIES] = entries
            if first is not None:
                supports = [result.support for result in results]
                nodes = min(SEARCH_NODES, budget.nodes_left)
                proofs[SPLIT] = joint_split(cov, entries, supports, nodes, budget)
        # A branch and bound for shared features seldom comes below the other bound.
        nodes = NODES if entries is None else 1
        proofs[SHARED] = joint_proof(cov, results, budget, nodes)
    known = {
        name: proof.upper_bound for name, proof in proofs.items() if proof is not None
    }
    bound, name = joint_upper_bound(
        cov,
        first or results[0],
        [result.k for result in results],
        budget,
        known.pop(SHARED, math.inf),
        known,
        as_strict_as(first or results[0], results),
    )
    return bound, name, proofs.get(name)


def entries_proof(
    cov: Covariance, results: Sequence[Result], target: float, budget: Budget
) -> JointEntries | None:
    """Bound Σ x_j'Ax_j of orthogonal components; None if it is not worth its time.

    The way to a bound depends on the target. So that a set that was written and read
    again has the same one, only the first `TARGET_DIGITS` count.
    """
    m, d = len(results), cov.n_features
    k = max(result.k for result in results)
    seconds = EVALUATIONS * EIGENVECTORS * _cost.eigenvalues(d)
    if m < 2 or m >= d or k < 2 or not abs(target) > 0:
        return None
    if seconds > MOST_SECONDS or not budget.affords(seconds):
        return None
    mantissa, exponent = math.frexp(target)
    mantissa = math.ldexp(round(math.ldexp(mantissa, TARGET_DIGITS)), -TARGET_DIGITS)
    return joint_entries(cov, k, m, math.ldexp(mantissa, exponent), budget)


def joint_proof(
    cov: Covariance, results: Sequence[Result], budget: Budget, nodes: int = NODES
) -> SharedSupport | None:
    """Bound opt_m(Σ k_j), or return None where that is not worth its time.

    That is so for one component, and if an ascent of the dual takes more than
    `MOST_SECONDS` by its size, on any machine, or more than the time that is left.
    """
    m, d = len(results), cov.n_features
    k = min(d, sum(result.k for result in results))
    if m < 2 or k <= m or k >= d:
        return None
    n = min(cov.n_samples or d, d) if cov.has_columns else d
    step = _cost.product(n, d, n) + _cost.eigenvalues(n)
    if STEPS * step > MOST_SECONDS or not budget.affords(STEPS * step):
        return None
    start = np.unique(np.concatenate([result.support for result in results]))
    return bound_shared(cov, k, m, start[:k], budget, nodes)
