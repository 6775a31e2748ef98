"""Bounds from how many features a set takes from each part of a matrix.

Where A falls into parts that are weakly coupled, and k features fill more than one of
them, relaxations mix sets that take more than k features with sets that take fewer.
Counting the features of each part does not.

**Theorem.**  Let P_1, …, P_m be parts of the features, S a set with s_g of them in P_g,
a_g(s) ≥ opt(s) within P_g, and c_gh ≥ ‖A_{S_g S_h}‖₂.  Then λ(S) ≤ λmax(M), where
M_gg = a_g(s_g) and M_gh = c_gh for the g, h with s_g, s_h > 0.

*Proof.*  Let x be a unit vector on S, x_g its part in P_g and y_g = ‖x_g‖.  Then
x'Ax = Σ x_g'Ax_g + Σ_{g≠h} x_g'Ax_h ≤ Σ a_g y_g² + Σ_{g≠h} c_gh y_g y_h = y'My.  ∎

As ‖B‖₂² ≤ ‖B‖₁ ‖B‖_∞, c_gh² = r_gh(s_h) r_hg(s_g) will do, where r_gh(s) is the largest
sum of s entries |A_ij| with one i in P_g and different j in P_h.  Parts may be unions
of others, so that, adding one after the other,

    u_g(r) = max over s of λmax [[a_g(s), c], [c, u_{g+1}(r − s)]]

bounds opt(r) among all parts from P_g on, for every r at once.  With it most of the
compositions (s_1, …, s_m) of k are ruled out after the first few numbers.

Within a part, a_g(s) is the least of λmax, of the largest row sum of s entries, and of
t + (the s largest v_i²), which holds for any v if A_gg ⪯ vv' + tI: v is taken from the
leading eigenvector, and t from a Cholesky factorization.

**Rounding.**  All of it is rounded upwards (`numerics/rounding.py`): sums of up to k
entries by (k + 4) eps, products by 4 eps, and λmax of M, whose entries outside the
diagonal are not negative and may be raised, by `eigenvalue_ceiling`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.linalg import leading_eigenpairs
from ..numerics.rounding import (
    EPS,
    TINY,
    frobenius_norm,
    in_units,
    larger_root_above,
    root_above,
    sum_above,
)
from ..numerics.upper_eigenvalues import eigenvalue_ceiling
from .entry_dual.pairs import OutOfTime, Pairs, seconds_of_pass, strong_pairs

# Tables of couplings grow with the square of the parts; blocks that a k fills are few.
_MOST_PARTS = 40
_MOST_ENTRIES = 2**23  # between the features of parts and all
_COPIES = 6  # of these entries that are held at once, and of k more for each feature
_LARGEST = 1e140  # of entries, in units: sums of them have products in range
_MOST_ROOTS = 2 * 10**4  # of arrays
_ROOT_SECONDS = 5e-5  # for one of them
_LARGEST_PART = 1500  # features whose eigenvalues are computed


@dataclass(frozen=True)
class Composition:
    """How many features come from each part, and a bound on all such sets."""

    counts: tuple[int, ...]
    bound: float


@dataclass(frozen=True)
class Above:
    """What is above some τ, in preorder: in the order of the counts."""

    beginnings: tuple[tuple[int, ...], ...]
    compositions: tuple[Composition, ...]

    def largest_first(self) -> list[Composition]:
        """The compositions, those with the largest bound first."""
        return sorted(self.compositions, key=lambda c: (-c.bound, c.counts))


def parts_above(
    cov: Covariance, level: float, deadline: Deadline | None = None
) -> list[NDArray[np.intp]]:
    """Return the connected parts of |A_ij| > level with two features or more.

    Features beside them have no entry above the level with one another.

    Raises
    ------
    OutOfTime
        If the deadline passes during the pass over A.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> A = np.eye(5) + 0.5 * np.eye(5)[[1, 0, 3, 2, 4]]
    >>> [part.tolist() for part in parts_above(Covariance.from_matrix(A), 0.4)]
    [[0, 1], [2, 3]]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    d = cov.n_features
    pairs: Pairs = strong_pairs(cov, np.full(d, np.sqrt(level)), deadline)
    ones = np.ones(len(pairs), dtype=np.int8)
    graph = coo_array((ones, (pairs.rows, pairs.columns)), shape=(d, d)).tocsr()
    count, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels, minlength=count)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.cumsum(sizes)[:-1])
    return [np.sort(groups[g]) for g in np.flatnonzero(sizes > 1)]


class Compositions:
    """Bounds on all sets of at most k features by what they take from each part.

    All numbers are in units of `unit`, and about the entries as they are stored: what
    these may be off by is for the caller to add.

    Parameters
    ----------
    parts : list of arrays
        Disjoint. What is in none of them is one more part, the last.
    level : float
        At least |A_ij| between features that are in none of them.
    unit : float
        A power of two.
    """

    def __init__(
        self,
        cov: Covariance,
        k: int,
        parts: list[NDArray[np.intp]],
        level: float,
        unit: float,
    ) -> None:
        self.cov, self.k, self.unit = cov, k, unit
        inside = np.concatenate([np.empty(0, np.intp), *parts])
        others = np.setdiff1d(np.arange(cov.n_features), inside)
        self.parts = [*parts, others] if len(others) else list(parts)
        self._has_rest = len(others) > 0
        self.sizes = [len(part) for part in self.parts]
        # No |A_ij| of features that are in none is above it: the level is compared with
        # products of roots, and A_ij with the root of A_ii A_jj.
        self.weakest = (level * (1 + 16 * EPS) + cov.entry_error) / unit
        #: t and v with A ⪯ vv' + tI, of each part but the last
        self.points: list[list[tuple[float, FloatArray]]] = []
        self.within: list[FloatArray] = []  # a_g(s) of each part
        sizes = self._sizes()
        largest = float(in_units(cov.diagonal(), unit).max())
        if not max(largest, *(part.max() for part in sizes)) <= _LARGEST:
            self.after = [np.full(k + 1, np.inf)]  # no bound
            return
        self.within = [self._bounds_within(g) for g in range(len(self.parts))]
        self._sum_up(sizes)
        self.after = self._suffix_bounds()

    @property
    def upper(self) -> FloatArray:
        """upper[q] ≥ opt(q) for q = 1, …, k; not a number that is used for q = 0."""
        return self.after[0]

    def in_full(self, value: float) -> float:
        """A bound on k features for the entries themselves, from one in units."""
        error = math.nextafter(self.k * self.cov.entry_error, math.inf)
        return sum_above([value * self.unit, error])

    @staticmethod
    def is_affordable(
        cov: Covariance,
        k: int,
        parts: list[NDArray[np.intp]],
        memory: int | None = None,
    ) -> bool:
        """Tell whether so many bytes, and time, suffice for the tables."""
        features, m = sum(map(len, parts)), len(parts) + 1
        entries = _COPIES * features * (cov.n_features + k) + 4 * m * m * (k + 1)
        return (
            0 < len(parts) <= _MOST_PARTS
            and features * cov.n_features <= _MOST_ENTRIES
            and max(map(len, parts)) <= _LARGEST_PART
            and k * len(parts) <= _MOST_ROOTS
            and (memory is None or 8 * entries <= memory)
        )

    # -- tables --------------------------------------------------------------------

    def _bounds_within(self, g: int) -> FloatArray:
        """a_g(s) for s = 0, …, k; −∞ for 0, and for more than there are."""
        features, k = self.parts[g], self.k
        most = min(k, len(features))
        bounds = np.full(k + 1, -np.inf)
        if self._has_rest and g == len(self.parts) - 1:
            own = float(in_units(self.cov.diagonal()[features], self.unit).max())
            sums = np.arange(most) * self.weakest
            bounds[1 : most + 1] = own + sums + 4 * EPS * (abs(own) + sums)
            return bounds
        A = self.block(features)
        largest, point = eigenvalue_ceiling(A), _leading(A)
        self.points.append([(largest, np.zeros(len(A))), point])
        bounds[1 : most + 1] = np.minimum(
            _row_sums(A, most), np.minimum(_with_squares(*point, most), largest)
        )
        return bounds

    def block(self, features: NDArray[np.intp]) -> FloatArray:
        """The entries among some features, in units."""
        return in_units(self.cov.submatrix(features), self.unit)

    @cached_property
    def _places(self) -> list[slice]:
        """Where the features of each part are, among those of all that are strong."""
        sizes = self.sizes[:-1] if self._has_rest else self.sizes
        ends = np.cumsum([0, *sizes]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def _sizes(self) -> list[FloatArray]:
        """|A_ij| for the features i of strong parts, by the part of j; 0 for i = j."""
        strong = np.concatenate(self.parts[: len(self._places)])
        sizes = [
            in_units(np.abs(self.cov.submatrix(strong, part)), self.unit)
            for part in self.parts
        ]
        for part, place in zip(sizes, self._places, strict=False):
            np.fill_diagonal(part[place], 0.0)
        return sizes

    def _sum_up(self, sizes: list[FloatArray]) -> None:
        """r_gh for all g and h, and from a feature of P_h to all parts after P_g."""
        m, k, places = len(self.parts), self.k, self._places
        rows = [[np.zeros(k + 1) for _ in range(m)] for _ in range(m)]
        for g, place in enumerate(places):
            for h in range(m):
                if h != g:
                    rows[g][h] = _largest_sums(sizes[h][place], k)
            if self._has_rest:
                rows[m - 1][g] = _largest_sums(sizes[m - 1][place].T, k)
        self.rows = rows
        # the largest entries of each row in all parts after P_g
        largest = np.zeros((len(sizes[0]), 0))
        self.beyond: list[list[FloatArray]] = [[] for _ in range(m)]
        for g in range(m - 1, -1, -1):
            if g < m - 1:
                self.beyond[g] = [
                    _sums_above(largest[place], k) for place in places[: g + 1]
                ]
            merged = np.concatenate([largest, sizes[g]], axis=1)
            largest = -np.sort(-merged, axis=1)[:, :k]

    @cached_property
    def _back(self) -> list[list[FloatArray]]:
        """For each g and h ≤ g, r from a feature of any part after P_g to P_h."""
        m = len(self.parts)
        return [
            [
                np.max([self.rows[i][h] for i in range(g + 1, m)], axis=0)
                for h in range(g + 1)
            ]
            for g in range(m - 1)
        ]

    def _suffix_bounds(self) -> list[FloatArray]:
        """u_g(r) for every part g and r = 0, …, k."""
        k, m = self.k, len(self.parts)
        nothing = np.full(k + 1, -np.inf)
        after = [nothing] * (m + 1)
        for g in range(m - 1, -1, -1):
            a, later = self.within[g], after[g + 1]
            here = np.maximum(a, later)  # all from P_g, or none
            for q in range(1, k):
                if g == m - 1 or later[q] == -np.inf:
                    continue
                most = min(k - q, self.sizes[g])
                s = np.arange(1, most + 1)
                coupling = _product(self.beyond[g][g][q], self._back[g][g][s])
                values = larger_root_above(a[s], coupling, float(later[q]))
                here[q + s] = np.maximum(here[q + s], values)
            after[g] = here
        return after

    # -- compositions --------------------------------------------------------------

    def above(
        self, tau: float, most: int, total: int, deadline: Deadline
    ) -> Above | None:
        """Return all beginnings and compositions of `total` with a bound above τ.

        None if there are more than `most` of the latter, or many more of the former, or
        it is late.
        """
        begun: list[tuple[int, ...]] = []
        ended: list[Composition] = []
        search = self._search((), -np.inf, total, tau)
        for steps, step in enumerate(search):
            # Beginnings that lead to nothing take time as well: where they are many, so
            # will be the compositions.
            if deadline.passed() or steps >= 16 * most:
                return None
            if isinstance(step, Composition):
                ended.append(step)
            else:
                begun.append(step)
            if len(ended) > most:
                return None
        return Above(tuple(begun), tuple(ended))

    def _search(
        self, begun: tuple[int, ...], known: float, left: int, tau: float
    ) -> Iterator[Composition | tuple[int, ...]]:
        """Yield what a beginning leads to: longer ones, and compositions at the end.

        `known` bounds the sets that end there, and `left` features are to come.
        """
        g = len(begun)
        room = sum(self.sizes[g + 1 :])
        for s in range(max(0, left - room), min(left, self.sizes[g]) + 1):
            counts, q = (*begun, s), left - s
            here = self._joined(begun, known, s)
            bound = self._continued(counts, here, q)
            if bound > tau and np.count_nonzero(counts) > 2:
                here = min(here, eigenvalue_ceiling(self._matrix(counts)))
                bound = self._continued(counts, here, q)
            if bound <= tau:
                continue
            yield counts
            if q:
                yield from self._search(counts, here, q, tau)
            else:
                rest = (0,) * (len(self.parts) - g - 1)
                yield Composition((*counts, *rest), bound)

    def _joined(self, begun: tuple[int, ...], known: float, s: int) -> float:
        """Bound sets that begin so, with s features of the next part."""
        g = len(begun)
        own = float(self.within[g][s])
        active = [h for h, count in enumerate(begun) if count]
        if not (s and active):
            return own if s else known
        most = max(float(self.rows[h][g][s]) for h in active)
        return root_above(known, self._coupling(most, self.rows[g], begun), own)

    def _continued(self, counts: tuple[int, ...], known: float, q: int) -> float:
        """Bound sets that begin so, with q features of later parts."""
        if not q:
            return known
        g = len(counts) - 1
        later = float(self.after[g + 1][q])
        active = [h for h, count in enumerate(counts) if count]
        if not active:
            return later
        most = max(float(self.beyond[g][h][q]) for h in active)
        return root_above(known, self._coupling(most, self._back[g], counts), later)

    @staticmethod
    def _coupling(
        most: float, sums: list[FloatArray], counts: tuple[int, ...]
    ) -> float:
        """The product of the largest sum from some parts and of those back to them."""
        back = [float(sums[h][s]) for h, s in enumerate(counts) if s]
        return float(_product(most, sum(back) * (1 + (len(back) + 2) * EPS)))

    def _matrix(self, counts: tuple[int, ...]) -> FloatArray:
        """M, for the parts that have a count."""
        active = [g for g, count in enumerate(counts) if count]
        M = np.zeros((len(active), len(active)))
        for i, g in enumerate(active):
            M[i, i] = self.within[g][counts[g]]
            for j, h in enumerate(active[:i]):
                square = _product(
                    self.rows[g][h][counts[h]], self.rows[h][g][counts[g]]
                )
                M[i, j] = M[j, i] = np.sqrt(square) * (1 + 4 * EPS)
        return M


def best_level(
    cov: Covariance,
    k: int,
    base: float,
    unit: float,
    deadline: Deadline,
    memory: int | None = None,
) -> tuple[float, Compositions] | None:
    """Return the level with the least bound for k, of some below `base`, if any."""
    best: tuple[float, Compositions] | None = None
    seen = None
    for halvings in range(1, 6):
        level = base / 2**halvings
        if not (level > 0 and deadline.affords(2 * seconds_of_pass(cov))):
            break
        try:
            parts = parts_above(cov, level, deadline)
        except OutOfTime:
            break
        if len(parts) == 1 and len(parts[0]) > k:
            break  # all that is strong has grown together
        sizes = [part.tolist() for part in parts]
        if sizes == seen or not Compositions.is_affordable(cov, k, parts, memory):
            continue
        seen = sizes
        largest = max(map(len, parts))
        seconds = 2 * _cost.eigenvalues(largest) + _ROOT_SECONDS * k * len(parts)
        seconds += _cost.passes(40, sum(map(len, parts)) * cov.n_features)
        if not deadline.affords(seconds):
            break
        found = Compositions(cov, k, parts, level, unit)
        if best is None or found.upper[k] < best[1].upper[k]:
            best = level, found
    return best


def _row_sums(A: FloatArray, most: int) -> FloatArray:
    """A_ii and the s − 1 largest |A_ij| of a row, the largest such sum, s = 1, ….

    Terms are as large as |A_ii| and the sum together, s roundings of which count.
    """
    sizes = np.abs(A)
    np.fill_diagonal(sizes, 0.0)
    sums = np.cumsum(-np.sort(-sizes, axis=1), axis=1)[:, :most]
    sums = np.concatenate([np.zeros((len(A), 1)), sums], axis=1)[:, :most]
    own = np.diagonal(A)[:, None]
    slack = (most + 4) * EPS * (np.abs(own) + sums)
    bounds: FloatArray = (own + sums + slack).max(axis=0)
    return bounds


def _leading(A: FloatArray) -> tuple[float, FloatArray]:
    """t and v with A ⪯ vv' + tI.

    Of vv' and of the difference each entry is rounded once, by eps/2 of itself.
    """
    values, vectors = leading_eigenpairs(A, 2)
    v = vectors[:, -1] * np.sqrt(max(float(values[-1] - values[0]), 0.0))
    rounding = 2 * EPS * (frobenius_norm(A) + float(v @ v))
    return eigenvalue_ceiling(A - np.outer(v, v)) + rounding, v


def _with_squares(t: float, v: FloatArray, most: int) -> FloatArray:
    """t + the s largest v_i², s = 1, …."""
    sums = np.cumsum(-np.sort(-v * v)[:most]) * (1 + (most + 4) * EPS)
    bounds: FloatArray = t + sums + 4 * EPS * (abs(t) + sums)
    return bounds


def _largest_sums(sizes: FloatArray, k: int) -> FloatArray:
    """The largest sum of s entries of a row, s = 0, …, k, rounded upwards."""
    n = sizes.shape[1]
    if n > k:
        sizes = np.partition(sizes, n - k, axis=1)[:, n - k :]
    return _sums_above(-np.sort(-sizes, axis=1), k)


def _sums_above(largest: FloatArray, k: int) -> FloatArray:
    """The largest sum of the first s entries of a row, s = 0, …, k."""
    sums = np.zeros(k + 1)
    n = min(k, largest.shape[1])
    if n:
        sums[1 : n + 1] = np.cumsum(largest[:, :n], axis=1).max(axis=0)
        sums[n + 1 :] = sums[n]
    return sums * (1 + (k + 4) * EPS)


def _product(a: FloatArray | float, b: FloatArray | float) -> FloatArray:
    """The product of two that are not negative, rounded upwards."""
    product = np.asarray(a * b) * (1 + 4 * EPS)
    vanished = (product < TINY) & (np.asarray(a) > 0) & (np.asarray(b) > 0)
    return np.where(vanished, TINY, product)
