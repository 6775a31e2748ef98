"""A second implementation of the depth-first proof, in NumPy, to check the first.

Slow and short on purpose. The mathematics is that of `schur_tree.py`: after choosing P,
the rest of the problem is sparse PCA on B = A + A_·P (τI − A_PP)⁻¹ A_P· at the same τ.

Rounding. Eliminating a feature t turns B_ij into B_ij + B_it B_tj / (τ − B_tt), with
three roundings of the term and one of the sum. Along a set S of k features these are
the steps of an LDL' factorization of M = τI − A_SS, so what is computed is exact for a
matrix A + E. As long as the factorization of M + E succeeds its terms add up to its
diagonal, and by Cauchy and Schwarz, to first order in u = eps/2,

    |E_ij| ≤ (k + 3) u sqrt(M_ii M_jj),      |E_ii| ≤ (k + 3) u M_ii + (k − 1) u |τ|,

the last because the diagonal of B moves from A_ii up to τ at most. Let λ(S) > τ and x
its unit eigenvector. Then x'Ex ≤ (k + 3) k u w + (k − 1) u |τ| with w = Σ x_i² M_ii,
where w ≤ max M_ii, and also w = τ − Σ x_i² A_ii < λ(S) − Σ x_i² A_ii =
Σ_{i≠j} x_i A_ij x_j ≤ (k − 1) max |A_ij|: a diagonal entry of −1e9 costs nothing.
`search_rounding` is this δ with 1.2 u in the place of u, for the terms of second order.

A search at τ − δ that closes every node proves λ(S) ≤ τ for all S, if the tests that
close nodes are exact for the B that was computed: they round upwards (`rounding.py`),
or are a Cholesky factorization with Rump's margin. Bounds on opt(q) are for A, not
A + E, and are used with δ added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..limits import Deadline
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..numerics.rounding import (
    EPS,
    increased,
    larger_root_above,
    product_below,
    root_above,
    squared,
    sums_above,
)
from ..numerics.upper_eigenvalues import is_below
from ..proof_settings import DEFAULT_SETTINGS
from .spectral import Fixing, spectral_fixing

# From this k on, and up to so many features, the search begins with three eigenvectors.
SPECTRAL_FROM = DEFAULT_SETTINGS.spectral_from
SPECTRAL_SIZE = DEFAULT_SETTINGS.spectral_up_to[-1]
NOTHING = np.empty(0, dtype=np.int64)
# Nodes after which a search counts as long, and those that the other order then has: it
# is far better, or no better.
LONG, MUCH_BETTER = 1000, 100
FEW = 20  # sets above τ − δ that are looked at, to tell whether one is above τ


class Refuted(Exception):
    """A set with an eigenvalue above τ exists, so the claim is false.

    `excess` is by how much, about.
    """

    def __init__(self, excess: float = math.inf) -> None:
        super().__init__(excess)
        self.excess = excess


class Undecided(Exception):
    """A set comes so close to τ that rounding hides on which side it is."""


class _ProvedByRival(Exception):
    """A search in the other order has closed all of its nodes."""


class NodeCapReached(Exception):
    """The proof is larger than the number of nodes that was allowed."""


def search_rounding(A: FloatArray, k: int, tau: float) -> float:
    """Return δ: a search of A at τ − δ proves that no k-set exceeds τ."""
    off = np.abs(A)
    np.fill_diagonal(off, 0.0)
    weight = min(
        max(float(tau - np.diagonal(A).min()), 0.0),
        (k - 1) * float(off.max(initial=0.0)),
    )
    return 0.6 * EPS * (k * (k + 3) * weight + (k - 1) * abs(tau))


def prove_none_above(
    A: FloatArray,
    k: int,
    tau: float,
    upper: FloatArray,
    max_nodes: int,
    deadline: Deadline | None = None,
    groups: GroupLimits | None = None,
    included: NDArray[np.int64] = NOTHING,
) -> int:
    """Prove that no k-set S has λmax(A_SS) > τ; return the number of nodes it took.

    Parameters
    ----------
    A : array of shape (n, n)
        The survivors of screening, in units in which squares neither overflow nor
        vanish.
    upper : array of shape (k,)
        upper[q] ≥ opt(q) for q = 1, …, k − 1; upper[0] is not used.
    groups : GroupLimits, optional
        Only sets that keep them count, also in `upper`.
    included : array of int
        Only sets that have all of these count.

    Raises
    ------
    Refuted
        If such a set is found.
    Undecided
        If a set is found whose eigenvalue is so near τ that it may be on either side.
    NodeCapReached
        If `max_nodes` nodes did not suffice, or the deadline passed.
    """
    rounding = search_rounding(A, k, tau)
    search = _Search(A, k, tau, rounding, upper, max_nodes, deadline, groups)
    kept, forced = np.arange(len(A), dtype=np.int64), included
    if k >= SPECTRAL_FROM:
        kept, forced = _tightened(A, k, search.tau)
        forced = np.union1d(forced, included)
    if len(kept) < k or not np.isin(included, kept).all():
        return 1
    if len(forced) > k or not search.allows(forced):
        return 1
    # Those that are forced may come up to τ alone, or be a set: then all are searched.
    everything = np.arange(len(A), dtype=np.int64)
    for chosen, among in ((forced, kept), (included, everything)):
        if len(chosen) == k and not len(included):
            continue
        if len(chosen) == k:  # sets without these do not count
            chosen, among = chosen[1:], chosen
        rest = search.open_to(chosen, np.setdiff1d(among, chosen))
        reduced = eliminated(A, chosen, rest, search.tau)
        if reduced is not None:
            return search.close(reduced, rest, chosen)
    search.decide_any(included, np.setdiff1d(everything, included))
    return 1


class Order(Enum):
    """In which order the features of a node are branched on, strongest first."""

    BY_BOUND = "by the 2×2 bound of the sets that they are in"
    BY_VARIANCE = "by their diagonal entries"


@dataclass
class _Search:
    """One depth-first search, at τ − δ."""

    A: FloatArray
    k: int
    claimed: float  #: τ
    rounding: float  #: δ
    upper: FloatArray
    max_nodes: int
    deadline: Deadline | None
    groups: GroupLimits | None = None
    nodes: int = 0
    order: Order = Order.BY_BOUND
    #: The same in the other order, tried once this search turns out to be long.
    rival: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.tau = float(np.nextafter(self.claimed - self.rounding, -np.inf))
        self.upper = increased(self.upper + self.rounding)

    def close(
        self, B: FloatArray, features: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> int:
        """Close the sets that hold `chosen`; return the nodes, a rival's included."""
        rival = copy(self)
        rival.order, rival.max_nodes = Order.BY_VARIANCE, MUCH_BETTER
        self.rival = lambda: rival.visit(B, features, chosen)
        with suppress(_ProvedByRival):
            self.visit(B, features, chosen)
        return self.nodes + rival.nodes

    def allows(self, chosen: NDArray[np.int64]) -> bool:
        """Tell whether a set keeps the limits of groups."""
        return self.groups is None or self.groups.allows(chosen)

    def open_to(
        self, chosen: NDArray[np.int64], features: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The features that may still be added to a set."""
        if self.groups is None:
            return features
        return features[~self.groups.closed_to(chosen)[features]]

    def refuse(
        self,
        diagonal: FloatArray,
        features: NDArray[np.int64],
        chosen: NDArray[np.int64],
    ) -> None:
        """Raise if a chosen set exceeds τ with one more feature."""
        if (diagonal <= self.tau).all():
            return
        above = features[~(diagonal <= self.tau)]
        for i in above[:FEW]:
            support = np.append(chosen, i)
            self._refute(support)
        raise Undecided

    def _refute(self, support: NDArray[np.int64]) -> None:
        """Raise if a set exceeds τ for sure."""
        within = self.A[np.ix_(support, support)]
        if reaches(within, self.claimed):
            reached = rayleigh(within, leading_eigenvector(within))
            raise Refuted(reached - self.claimed)

    def decide_any(
        self, included: NDArray[np.int64], others: NDArray[np.int64]
    ) -> None:
        """Raise unless no set counts, where all that do come up to τ − δ."""
        missing = self.k - len(included)
        order = np.arange(len(others))
        added = order[:missing]
        if self.groups is not None:
            added = self.groups.after(included, others).first(order, missing)
        if len(added) < missing:
            return
        support = np.append(included, others[added])
        self._refute(support)
        raise Undecided

    def visit(
        self, B: FloatArray, features: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> None:
        """Close the sets that hold `chosen` and others of `features`, the rows of B."""
        if self.groups is not None:
            still = ~self.groups.closed_to(chosen)[features]
            B, features = B[np.ix_(still, still)], features[still]
            if len(B) < self.k - len(chosen):
                return
        self.nodes += 1
        if self.nodes > self.max_nodes or (
            self.deadline is not None and self.deadline.passed()
        ):
            raise NodeCapReached
        if self.nodes == LONG and self.rival is not None:
            # Most trees are short in the order of the bounds; of those that are not,
            # some are in the other (Reddit2000, k = 18: over 20,000 nodes, and 40).
            with suppress(NodeCapReached, Undecided):
                self.rival()
                raise _ProvedByRival
        tau, m = self.tau, self.k - len(chosen)
        self.refuse(np.diagonal(B), features, chosen)
        if m == 1:
            return
        # opt_B(q) ≤ upper[chosen + q] wherever that is at most τ
        known = np.where(self.upper <= tau, self.upper, np.inf)[len(chosen) :]
        order = opened(B, m, tau, known[m - 1], self.order)
        if order is None:
            return
        B, features = B[np.ix_(order, order)], features[order]
        first, rest = suffix_bounds(B, m, known)
        for t in range(len(B) - m + 1):
            if first[t] <= tau:
                continue
            column, pivot = B[t + 1 :, t], tau - B[t, t]
            if not pivot > 0:
                raise Undecided
            gains = column**2 / pivot
            with_t = np.append(chosen, features[t])
            raised, later = np.diagonal(B)[t + 1 :] + gains, features[t + 1 :]
            if self.groups is not None:
                still = ~self.groups.closed_to(with_t)[later]
                raised, later = raised[still], later[still]
            self.refuse(raised, later, with_t)
            if m == 2:
                continue
            # four roundings a term and the additions, of terms that are not negative
            most = np.sort(gains)[-(m - 1) :].sum() * (1 + (m + 4) * EPS)
            if increased(rest[t] + most) <= tau:
                continue
            child = B[t + 1 :, t + 1 :] + np.outer(column, column) / pivot
            self.visit(child, features[t + 1 :], with_t)


def reaches(A: FloatArray, tau: float) -> bool:
    """Tell whether λmax(A) > τ for sure.

    The quotient x'Ax / x'x of any x is at most λmax. It is computed from 2n products
    and sums for every one of its terms.
    """
    x = leading_eigenvector(A)
    size = np.abs(x)
    error = (2 * len(A) + 8) * EPS * float(size @ np.abs(A) @ size / (x @ x))
    return rayleigh(A, x) - error > tau


def _tightened(
    A: FloatArray, k: int, tau: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the leading eigenvectors exclude and force; see `spectral.py`."""
    fixing = Fixing.nothing_known(len(A))
    for p in (1, 2, 3):
        if len(A) <= SPECTRAL_SIZE:
            fixing = spectral_fixing(A, k, tau, p)
        if len(fixing.candidates) < k:
            break
    return fixing.candidates, fixing.fixed_in


def eliminated(
    A: FloatArray, chosen: NDArray[np.int64], rest: NDArray[np.int64], tau: float
) -> FloatArray | None:
    """B after choosing features, one after the other; None if they reach τ alone."""
    order = np.concatenate([chosen, rest])
    B = A[np.ix_(order, order)]
    for _ in range(len(chosen)):
        pivot = tau - B[0, 0]
        if not pivot > 0:
            return None
        column = B[1:, 0]
        B = B[1:, 1:] + np.outer(column, column) / pivot
    return B


def squared_norms(B: FloatArray, q: int) -> FloatArray:
    """Return r_q(i)², the sum of the q largest B_ij² over j ≠ i, for every i."""
    squares = squared(B)
    np.fill_diagonal(squares, 0.0)
    if q < len(B):
        squares = np.partition(squares, len(B) - q, axis=1)[:, len(B) - q :]
    return squares.sum(axis=1)


def peel(
    B: FloatArray, m: int, tau: float, bound: float
) -> tuple[NDArray[np.intp], FloatArray]:
    """Drop what is in no m-set above τ, given bound ≥ opt_B(m − 1).

    Returns the rows of B that are left, and a bound for each to order them by.
    """
    left = np.arange(len(B))
    while len(B) >= m:
        norms = sums_above(squared_norms(B, m - 1), m - 1)
        diagonal = np.diagonal(B)
        if bound == np.inf:
            return left, diagonal + np.sqrt(norms)
        keep = ~(norms <= product_below(tau - diagonal, tau - bound))
        if keep.all():
            return left, larger_root_above(diagonal, norms, bound)
        B, left = B[np.ix_(keep, keep)], left[keep]
    return left, np.diagonal(B)


def opened(
    B: FloatArray, m: int, tau: float, bound: float, by: Order = Order.BY_BOUND
) -> NDArray[np.intp] | None:
    """Return the rows of B that are left, strongest first; None if no m-set is.

    Given bound ≥ opt_B(m − 1).
    """
    left, strength = peel(B, m, tau, bound)
    if by is Order.BY_VARIANCE:
        strength = np.diagonal(B)[left]
    order = left[np.argsort(-strength, kind="stable")]
    if len(order) < m or is_below(B[np.ix_(order, order)], tau):
        return None
    return order


def suffix_bounds(
    B: FloatArray, m: int, known: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bound m-sets by their first member t, and (m − 1)-sets among those after t.

    B has at least m ≥ 2 rows.
    """
    n = len(B)
    squares = squared(B)
    squares[np.tri(n, dtype=bool)] = 0.0  # of each row, those after t
    squares = np.sort(squares, axis=1)[:, ::-1][:, : m - 1]
    # Lists: a number of an array takes longer to fetch than what is done with it.
    norms = sums_above(np.cumsum(squares, axis=1), m - 1).tolist()
    diagonal, least = np.diagonal(B).tolist(), known.tolist()
    # table[q] ≥ opt_B(q) over the features so far, −inf while they are fewer than q
    table = [-math.inf] * m
    first, rest = np.empty(n), np.empty(n)
    for t in range(n - 1, -1, -1):
        alone, coupling, before = diagonal[t], norms[t], table[m - 1]
        first[t], rest[t] = root_above(alone, coupling[m - 2], before), before
        for q in range(min(m - 1, n - t), 0, -1):
            value = alone
            if q > 1:
                value = root_above(alone, coupling[q - 2], table[q - 1])
            if value > least[q]:
                value = least[q]
            if value > table[q]:
                table[q] = value
    return first, rest
