"""Joint bounds for several components, beside those of one component and of PCA.

For any components: by the features that they use together (`shared_support`). For
orthogonal ones, on the sum of their variances: by the entry dual with a sum of m
eigenvalues (`joint_entries`), in which every component has its own k, and by a branch
and bound for one component of what the others leave (`joint_split`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..limits import Budget
from ..numerics import cost as _cost
from ..result import Result
from .in_turn import shared_out
from .joint_entries import JointEntries, joint_entries
from .joint_split import JointSplit, joint_split
from .requests import asked_of
from .scheme import BaseScheme
from .shared_heuristic import SharedSet
from .shared_result import SharedSupport
from .shared_search import SEARCH_UP_TO
from .shared_support import bound_shared
from .variance import as_strict_as, joint_upper_bound

JointProof = SharedSupport | JointEntries | JointSplit

NODES = 101  # of a branch and bound: a root and pairs
WORTH = 0.5  # of the joint gap, that it must be able to close
# Of an ascent, and of its seconds by its size, on any machine: more is for who asks for
# it, with `solve_shared`. What these steps leave to gain is a small part of a joint gap
# (snp500: 8.28 % after 64 steps, 8.26 % after all).
STEPS, ASCENT_SECONDS = 64, 1.0
FEWEST_STEPS = 16  # of which an ascent is worth its beginning
MOST_SECONDS = 5.0  # of the entry dual
SEEN = 1e-4  # of a joint gap: nobody reads less, and a search for less may take minutes
SEARCH_NODES = 300  # of the search for one component of what the others leave
SEARCH_SHARE = 0.4  # of the time of sweeps that is for it: proofs take all there is
EVALUATIONS = 500  # of the entry dual's matrix, as many as it takes
TARGET_DIGITS = 24  # binary ones
EIGENVECTORS = 5.0  # times the eigenvalues, that all eigenvectors take


def are_orthogonal(scheme: BaseScheme) -> bool:
    """Tell whether the components of a scheme are orthogonal."""
    return scheme.disjoint or scheme.orthogonal


def adds_plain(scheme: BaseScheme) -> bool:
    """Tell whether the joint problem of a scheme is about x_j'Ax_j, not adjusted."""
    return are_orthogonal(scheme) and scheme.adds_variances


def budget_of_sweeps(budget: Budget, scheme: BaseScheme) -> Budget:
    """Return what is left for sweeps, without the part of a joint search."""
    # Only for these there is a joint search.
    part = 1.0 - SEARCH_SHARE if adds_plain(scheme) else 1.0
    return Budget(shared_out(budget, 1, part))


def joint_claim(
    cov: Covariance,
    results: Sequence[Result],
    first: Result | None,
    scheme: BaseScheme,
    variances: tuple[float, float],
    budget: Budget,
    sparsities: Sequence[int] = (),
    *,
    prove: bool,
) -> tuple[float, BoundName, JointProof | None]:
    """Return the least joint bound, its name, and what it rests on.

    Parameters
    ----------
    first : Result or None
        After sweeps, the first component, certified for A. Who asks for sweeps asks for
        a good set: then a branch and bound says how good.
    variances : (float, float)
        The sum of the variances x_j'Ax_j, and that which the bound is about.
    sparsities : sequence of int
        As asked for, which the bound is for; those of the results by default.
    prove : bool
        Whether to take the time for more than closed forms. Not taken if no nodes are
        left of a limit.
    """
    (plain, total), ks = variances, asked_of(results, sparsities)
    prove = prove and budget.nodes_left > 0
    orthogonal: dict[BoundName, JointEntries | JointSplit] = {}
    entries: JointEntries | None = None
    shared: SharedSupport | None = None

    def least() -> tuple[float, BoundName]:
        alone = first or results[0]
        strict = as_strict_as(alone, results)
        by_features = math.inf if shared is None else shared.upper_bound
        known = {name: proof.upper_bound for name, proof in orthogonal.items()}
        return joint_upper_bound(cov, alone, ks, budget, by_features, known, strict)

    if prove and are_orthogonal(scheme):
        entries = entries_proof(cov, ks, plain, budget)
    if entries is not None:
        orthogonal[BoundName.ENTRY_DUAL] = entries
    bound, name = least()
    # A bound on plain variances is far above adjusted ones, searched or not.
    is_searched = first is not None and adds_plain(scheme)
    if entries is not None and is_searched and bound - total > SEEN * abs(total):
        supports = [result.support for result in results]
        split = joint_split(cov, entries, supports, SEARCH_NODES, budget)
        if split is not None:
            orthogonal[BoundName.SPLIT_ENTRY_DUAL] = split
            bound, name = least()
    if prove and budget.nodes_left > 0:
        between = (total, bound)
        shared = joint_proof(cov, results, budget, between, first is not None, ks)
        if shared is not None and shared.upper_bound < bound:
            bound, name = least()
    proof = shared if name is BoundName.SHARED_SUPPORT else orthogonal.get(name)
    return bound, name, proof


def entries_proof(
    cov: Covariance, sparsities: Sequence[int], target: float, budget: Budget
) -> JointEntries | None:
    """Bound Σ x_j'Ax_j of orthogonal components; None if it is not worth its time.

    The way to a bound depends on the target. So that a set that was written and read
    again has the same one, only the first `TARGET_DIGITS` count.
    """
    m, d, k = len(sparsities), cov.n_features, max(sparsities)
    seconds = EVALUATIONS * EIGENVECTORS * _cost.eigenvalues(d)
    if m < 2 or m >= d or k < 2 or not abs(target) > 0:
        return None
    if seconds > MOST_SECONDS or not budget.affords(seconds):
        return None
    mantissa, exponent = math.frexp(target)
    # An ascent to a target that differs in its last bits ends at another point;
    # components that are equal up to rounding are to have the same bound.
    mantissa = math.ldexp(round(math.ldexp(mantissa, TARGET_DIGITS)), -TARGET_DIGITS)
    return joint_entries(cov, k, m, math.ldexp(mantissa, exponent), budget)


def joint_proof(
    cov: Covariance,
    results: Sequence[Result],
    budget: Budget,
    between: tuple[float, float],
    is_swept: bool = False,
    sparsities: Sequence[int] = (),
) -> SharedSupport | None:
    """Bound opt_m(Σ k_j), or return None where that is not worth its time.

    That is so for one component, and if an ascent of the dual takes too long by its
    size, on any machine, or more than the time that is left.

    Parameters
    ----------
    between : (float, float)
        What the components have together, and the least joint bound that is known.
    is_swept : bool
        Whether a good set was asked for, and not one component after the other.
    sparsities : sequence of int
        As in `joint_claim`.

    Notes
    -----
    What the features of the components have as one set, F, is at most opt_m(Σ k_j). So
    nothing is gained if the bound that is known is below F; and a branch and bound,
    which ends at F at the best, is made only if that can close a good part of the gap.
    Without sweeps the root must be below the known bound, too: a hundred nodes
    seldom make up for it (normIonosphere, two components of five features: 0.76 of 0.77
    s of processor time, for nothing; of 18 problems with 13 to 54 features one gained,
    1.5 of 39 %).
    """
    m, d = len(results), cov.n_features
    k = min(d, sum(asked_of(results, sparsities)))
    if m < 2 or k <= m or k >= d:
        return None
    n = min(cov.n_samples or d, d) if cov.has_columns else d
    step = _cost.product(n, d, n) + _cost.eigenvalues(n)
    steps = min(STEPS, int(ASCENT_SECONDS / step))
    if steps < FEWEST_STEPS or not budget.affords(steps * step):
        return None
    start = np.unique(np.concatenate([result.support for result in results]))[:k]
    total, known = between
    # What is reached is above the bound that there is: no bound of this kind can be
    # below it.
    if len(start) >= m and SharedSet.of(cov, start, m).objective >= known:
        return None
    nodes = min(NODES, budget.nodes_left) if d <= SEARCH_UP_TO else 1

    def most_nodes(root: SharedSupport) -> int:
        best = min(known, root.upper_bound)
        behind = root.upper_bound >= known and not is_swept
        worth = not behind and best - root.objective > WORTH * (best - total)
        return nodes if worth else 1

    return bound_shared(cov, k, m, start, budget, steps, most_nodes)
