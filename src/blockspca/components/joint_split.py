"""A joint bound for orthogonal components: what they share is split off, then a search.

**Theorem.** Let x_1, …, x_m be orthonormal with at most k nonzeros each. For every
symmetric A and every matrix B

    Σ_j x_j'Ax_j ≤ m opt(k; A − BB') + ‖B‖_F²,

opt(k; ·) being the largest x'( · )x over unit vectors of k nonzeros.

*Proof.* x_j'(A − BB')x_j ≤ opt(k; A − BB') for each j, and Σ_j x_j'BB'x_j ≤ tr BB', as
BB' is positive semidefinite and the x_j are orthonormal. ∎

From a point of the entry dual (`joint_entries`) with matrix M and λ_1 ≥ … ≥ λ_d, take
BB' = Σ_l max(λ_l − λ_m, 0) q_l q_l'. As x'(A − BB')x ≤ x'(M − BB')x ≤ λ_m, the bound
is no worse than Σ_{l ≤ m} λ_l; and a single component of A − BB' can be bounded better
than by an eigenvalue: by a branch and bound (`bounds.entry_dual.search`). If that gets
to its end, other B give less (`joint_balance`), and are harder to search: what is best
without any proof, and BB' half way to it, are tried as well.

**Rounding.** Entries of B are integers of at most 24 digits in units of a power of two,
and there are at most 16 columns: products have 48 digits, sums of them 52, so that BB'
and the squares of B are computed exactly, in any order. A, made symmetric, minus BB' is
rounded by at most eps (|A_ij| + |(BB')_ij|) an entry; that and the error of the entries
of A cost k times their largest for each vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.entry_dual.bound import entry_bound
from ..bounds.entry_dual.check import checked_value, dense_problem, searched_again
from ..bounds.entry_dual.log import SearchRecord
from ..bounds.entry_dual.record import EntryRecord
from ..covariance.covariance import Covariance
from ..limits import Budget, Deadline
from ..numerics.rounding import EPS, power_of_two, sum_above
from ..numerics.upper_eigenvalues import AGREED
from .joint_balance import balanced, sparse_vectors
from .joint_entries import JointEntries

DIGITS = 2.0**22  # of an entry of B, beside a power of two
MOST_COLUMNS = 16  # of B
_LEAST_UNIT = 2.0**-537  # of which the square is the least number
MOST_SECONDS = 30.0  # of it, where there is no limit
SHARES = (0.5, 1.0)  # of the B that is best without a proof, beside the first


@dataclass(frozen=True)
class JointSplit:
    """A proved bound on the variances of m orthogonal components of k features each."""

    upper_bound: float
    k: int
    n_components: int
    directions: FloatArray  #: (d, p). B.
    record: EntryRecord | SearchRecord  #: proves opt(k; A − BB')

    def proved(
        self,
        cov: Covariance,
        max_nodes: int | None = None,
        time_limit: float | None = None,
    ) -> float | None:
        """Compute the bound again, from B, the record and A alone; infinite if none.

        None if a search needs more nodes or seconds.

        Raises
        ------
        ValueError
            If B or the record is not what the theorem asks for.
        """
        B, k, m = self.directions, self.k, self.n_components
        if B.ndim != 2 or len(B) != cov.n_features or B.shape[1] > MOST_COLUMNS:
            raise ValueError(f"directions of shape {B.shape} split nothing off.")
        if not _is_exact(B):
            raise ValueError("the directions are not integers of 24 digits in units.")
        problem, error = _without(cov, B)
        if isinstance(self.record, SearchRecord):
            # Read anew: a text is checked throughout, and its log is at its beginning.
            record = SearchRecord.from_text(self.record.to_text(), cov.n_features)
            nodes = 1 + 2 * len(record.log.splits)
            if max_nodes is not None and nodes > max_nodes:
                return None
            deadline = Deadline(time_limit)
            value = searched_again(problem, k, record, deadline)
            if deadline.passed():  # the search may have ended before its log
                return None
        else:
            value = checked_value(problem, k, self.record)
        return _joined(value, error, B, k, m)


def joint_split(
    cov: Covariance,
    entries: JointEntries,
    supports: list[NDArray[np.intp]],
    nodes: int,
    budget: Budget,
) -> JointSplit | None:
    """Improve a bound of the entry dual; None if there is no time, or m is too large.

    Parameters
    ----------
    entries : JointEntries
        The point that B is taken from.
    supports : list of arrays of int
        Of components, from which vectors with much of A − BB' are sought.
    nodes : int
        Of the search, for each B that is tried, of those that are left.
    """
    k, m = entries.k, entries.n_components
    if m > MOST_COLUMNS:
        return None
    within = budget.within(MOST_SECONDS)
    split = _Split(cov, k, m, supports, nodes, within, budget)
    first = _directions(cov, entries)
    # Two more B follow, each with a third.
    best = split.searched(first, (within.seconds or 0.0) / 3)
    # Those that are tried below have the columns of two.
    if best is None or 2 * m > MOST_COLUMNS:
        return best
    least = balanced(split.A, first, split.components(), k, within)
    for share in SHARES:
        parts = [np.sqrt(1 - share) * first, np.sqrt(share) * least]
        remaining = within.remaining()
        assert remaining is not None
        found = split.searched(np.hstack(parts), remaining * share)
        if found is None or not found.upper_bound < best.upper_bound:
            break  # further on the way it is harder still
        best = found
    return best


@dataclass(frozen=True)
class _Split:
    """Searches for one component of A − BB', for any B."""

    cov: Covariance
    k: int
    m: int
    supports: list[NDArray[np.intp]]
    nodes: int
    deadline: Deadline
    budget: Budget  # what it counts nodes for

    @property
    def A(self) -> FloatArray:
        A = self.cov.submatrix(slice(None))
        return np.asarray((A + A.T) / 2)  # of data, entries are computed twice

    def components(self) -> FloatArray:
        """Return the leading eigenvector of A on each support, as rows."""
        rows = np.zeros((len(self.supports), self.cov.n_features))
        for row, support in zip(rows, self.supports, strict=True):
            row[support] = np.linalg.eigh(self.cov.submatrix(support))[1][:, -1]
        return rows

    def searched(self, B: FloatArray, seconds: float) -> JointSplit | None:
        """Return the bound that a search proves with B; None without time or nodes.

        Nor is there one where A − BB' is zero, as of rank one: nothing is to be found.
        """
        nodes = min(self.nodes, self.budget.nodes_left)
        if seconds <= 0 or self.deadline.passed() or not nodes:
            return None
        k, m, B = self.k, self.m, _rounded(B)
        problem, error = _without(self.cov, B)
        left = problem.submatrix(slice(None))
        if not left.any():
            return None
        start = np.flatnonzero(sparse_vectors(left, self.components(), k)[0])
        found = entry_bound(problem, k, start, time_limit=seconds, nodes=nodes)
        self.budget.nodes += found.nodes
        if found.interrupted:
            raise KeyboardInterrupt  # of the call, not of this search alone
        if found.record is None:
            return None
        value = _joined(found.value, error, B, k, m)
        return JointSplit(value + AGREED * abs(value), k, m, B, found.record)


def _directions(cov: Covariance, entries: JointEntries) -> FloatArray:
    """B of the point that a bound rests on."""
    record, m = entries.record, entries.n_components
    everything = np.arange(cov.n_features, dtype=np.intp)
    w = record.weights_in(record.unit)
    M = dense_problem(cov, everything, record.unit)
    M -= record.shares_as_floats * np.outer(w, w)
    M[np.diag_indices(len(M))] += (entries.k - 1) * w * w
    values, Q = np.linalg.eigh(M)
    above = values[-m:] - values[-m]
    return np.asarray(Q[:, -m:] * np.sqrt(above * record.unit))


def _rounded(B: FloatArray) -> FloatArray:
    """B as integers of at most 23 digits in units, or a power of two."""
    unit = power_of_two(float(np.abs(B).max(initial=0.0))) / DIGITS
    return np.asarray(np.rint(B / unit) * unit)


def _is_exact(B: FloatArray) -> bool:
    """Tell whether sums of products of entries of B are without rounding.

    The largest may have been rounded up to a power of two: units are half as large. A
    product of two units must be in range, 2⁻¹⁰⁷⁴ or more.
    """
    if not np.isfinite(B).all() or B.shape[1] > MOST_COLUMNS:
        return False
    # Half of the unit of `_rounded`, as rounding may have carried the largest entry to
    # the next power of two.
    unit = power_of_two(float(np.abs(B).max(initial=0.0))) / DIGITS / 2
    if B.any() and unit < _LEAST_UNIT:
        return False
    return bool((np.rint(B / unit) == B / unit).all())


def _without(cov: Covariance, B: FloatArray) -> tuple[Covariance, float]:
    """Return A − BB', and how far an entry may be from it."""
    A = cov.submatrix(slice(None))
    A = (A + A.T) / 2  # of data, entries are computed twice
    product = B @ B.T
    error = EPS * float((np.abs(A) + np.abs(product)).max()) + 2 * cov.entry_error
    return Covariance.from_matrix(A - product), error


def _joined(value: float, error: float, B: FloatArray, k: int, m: int) -> float:
    """m (opt + k e) + ‖B‖², rounded upwards."""
    squares = (B * B).ravel()  # exact, by the digits of B
    once = sum_above([value, k * error])
    return sum_above([*([once] * m), *squares])
