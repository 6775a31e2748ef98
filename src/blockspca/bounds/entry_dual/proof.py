"""The entry dual's bound, proved in floating point from weights, core and shares.

**Theorem.**  Let w ≥ 0 and U be symmetric with a zero diagonal and |U_ij| ≤ w_i w_j.
Then for every symmetric A

    opt(k) ≤ λmax(M),        M = A − U + (k − 1) Diag(w_i²).

*Proof.*  For ‖x‖₂ = 1 with support S, |S| ≤ k,

    x'Ux ≤ Σ_{i≠j} w_i w_j |x_i x_j| = (Σ_S w_i |x_i|)² − Σ w_i² x_i²
         ≤ (k − 1) Σ w_i² x_i²,

by Cauchy and Schwarz, so that x'Ax = x'(A − U)x + x'Ux ≤ x'Mx ≤ λmax(M).  ∎

Equal weights √ε are the l1 relaxation of d'Aspremont et al. (2007), with the price
(k − 1) ε.  For S ⪰ 0, |S_ij| ≤ w_i w_j with w_i² = S_ii: that is the inequality
x'Sx ≤ k Σ S_ii x_i².  As ε + |S_ij| ≤ √(ε + S_ii) √(ε + S_jj), this bound is at least
as good as any sum of both.  Its dual is max ⟨A, X⟩, tr X = 1, X ⪰ 0, k Diag(X) ⪰ |X|.

**Many features.**  M is dense in the core and sparse beside it.  Split the features
into K, which holds the core, and the rest R.  For any v > 0,
2 |M_ij x_i x_j| ≤ |M_ij| (x_i² v_j/v_i + x_j² v_i/v_j), so that

    λmax(M) ≤ max( λmax(M_KK + Diag(δ)),  max_{j∈R} M_jj + Σ_{i≠j} |M_ji| v_i/v_j ),
    δ_i = Σ_{j∈R} |M_ij| v_j/v_i.

v is taken from the leading eigenvector on K and follows from it on R: if
v_j = max(floor, Σ |M_ji| v_i / (t − M_jj)), the rows of R are at most t.  Where that
does not settle, K gets more features.

**Rounding.**  All is in multiples of a power of four near |t|.  Write M̂ for what is
computed and let U_ij = A_ij − M̂_ij for i ≠ j; |U_ij| exceeds w_i w_j by the rounding of
V_ij w_i w_j (2u, V being exact), of the subtraction and of w_i w_j itself, together at
most 2 eps (|A_ij| + w_i w_j); for a pair that is set to zero by less.  As for an error
of the entries that costs k times the largest such amount.  M̂_ii errs by at most 3 eps
(|A_ii| + (k − 1) w_i²) =: e_i, which is added to it.  A_ii may be raised at will, as
that raises opt(k) if anything: very negative ones are, before all this, and so do not
matter for the size of anything.  Sums of q positive terms err by (q + 2) eps of
themselves.  Entries of A known to ± e cost k e.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics import cost as _cost
from ...numerics.linalg import lanczos
from ...numerics.rounding import EPS, TINY
from ...numerics.upper_eigenvalues import eigenvalue_ceiling
from .pairs import Pairs

_ROUNDS = 60  # of the iteration for v
_SETTLED = 1e-6  # relative change of v that ends it
_FLOOR = 1e-6  # of v, beside its largest entry
_HALF = 0.5  # of t − M_ii, that features of R may add to one of K
_GROWTHS = 6  # times that K is enlarged
_MOST_DENSE = 3000  # features of K: 72 MB, and a factor of it takes 0.2 s
_ABOVE = 1e-8  # relative: t beside the estimate of λmax
_LOST = 1e-5  # relative: what the split into K and the rest may cost
_BY_LANCZOS = 200  # order from which an estimate of λmax saves time


@dataclass(frozen=True)
class Priced:
    """M̂ in units: the diagonal, the dense core, and the pairs beside it.

    `rounding` is what its λmax has to be raised by, errors of entries aside.
    """

    diagonal: FloatArray
    core: NDArray[np.intp]
    block: FloatArray  # a zero diagonal
    pairs: Pairs
    rounding: float

    @property
    def order(self) -> int:
        return len(self.diagonal)


def priced_matrix(
    diagonal: FloatArray,
    k: int,
    prices: FloatArray,
    weights: FloatArray,
    core: NDArray[np.intp],
    shares: FloatArray,
    block: FloatArray,
    pairs: Pairs,
) -> Priced:
    """Return M̂ of a point, from A in the same units; see the head of this file.

    Parameters
    ----------
    diagonal : array of shape (d,)
    prices : array of shape (d,)
        What w_i² is multiplied by: k − 1, or g_i of a node (`node.py`).
    weights, core, shares
        The point.
    block : array of shape (m, m)
        A between features of the core.
    pairs : Pairs
        All others with |A_ij| > w_i w_j, and perhaps more.
    """
    paid = prices * weights**2
    errors = 3 * EPS * (np.abs(diagonal) + paid)
    within = weights[core]
    product = within[:, None] * within
    M = block - shares * product
    np.fill_diagonal(M, 0.0)
    off = np.abs(block) + product
    np.fill_diagonal(off, 0.0)
    largest = float(off.max(initial=0.0))
    between = weights[pairs.rows] * weights[pairs.columns]
    left = np.abs(pairs.values) - between
    open_ = left > 0
    size = np.abs(pairs.values) + between
    largest = max(largest, float(size.max(initial=0.0)))
    kept = Pairs(
        pairs.rows[open_],
        pairs.columns[open_],
        np.copysign(left[open_], pairs.values[open_]),
    )
    # Pairs that are not listed have |A_ij| ≤ w_i w_j, up to what is at hand there.
    largest = max(largest, 2 * float(np.max(weights, initial=0.0)) ** 2)
    # TINY is more than k entries can lose by underflow, where nothing else is at hand.
    rounding = 2 * k * EPS * largest + k * TINY
    return Priced(diagonal + paid + errors, core, M, kept, rounding)


def dense_features(
    M: Priced, presence: FloatArray, estimate: float
) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
    """Choose K; return it with v and the rows of the rest, for `bound_beside`.

    Parameters
    ----------
    presence : array of shape (d,)
        Squares of the leading eigenvector, or of a few: where v comes from, and which
        features K begins with. The bound holds for any.
    estimate : float
        Of λmax(M).
    """
    inside = np.zeros(M.order, dtype=bool)
    inside[M.core] = True
    v = np.sqrt(np.maximum(presence, 0.0))
    v = np.maximum(v, _FLOOR * (float(v.max(initial=0.0)) or 1.0))
    t = estimate + _ABOVE * abs(estimate)
    grown, rows = grown_from(M, inside, v, t)
    for _ in range(_GROWTHS):
        room = _MOST_DENSE - int(inside.sum())
        wanted = _wanted(grown, rows, t - M.diagonal, inside, t)
        if not len(wanted) or room <= 0:
            break
        inside[wanted[:room]] = True
        grown, rows = grown_from(M, inside, v, t)
    return inside, grown, rows


def bound_beside(
    M: Priced,
    inside: NDArray[np.bool_],
    grown: FloatArray,
    rows: FloatArray,
    deadline: Deadline | None = None,
) -> float:
    """Bound λmax(M) by K, v and the rows of the rest; infinite if there is no time."""
    order = np.flatnonzero(inside)
    late = deadline is not None and not deadline.affords(_cost.cholesky(len(order)))
    if late:
        return np.inf
    within, added = within_dense(M, order, grown)
    rest = rows[~inside]
    highest = float(rest.max(initial=-np.inf))
    if len(order):
        within[np.diag_indices(len(order))] += added
        highest = max(highest, eigenvalue_ceiling(within, _estimated(within)))
    return highest + M.rounding


def _wanted(
    v: FloatArray,
    rows: FloatArray,
    room: FloatArray,
    inside: NDArray[np.bool_],
    t: float,
) -> NDArray[np.intp]:
    """Features that K needs: those with rows above t, and those that cost the most.

    As Σ_i δ_i v_i² = Σ_{j∈R} v_j² (t − M_jj), that is what the bound may lose.
    """
    rest = np.flatnonzero(~inside)
    high = ~(rows[rest] <= t)
    cost = v[rest] ** 2 * np.maximum(room[rest], 0.0)
    cost[high] = np.inf
    order = rest[np.argsort(-cost, kind="stable")]
    allowed = _LOST * abs(t) * float((v[inside] ** 2).sum() if inside.any() else 1.0)
    left = np.cumsum(np.sort(cost))[::-1]  # what all from here on cost
    return order[: int(np.count_nonzero(~(left <= allowed)))]


def grown_from(
    M: Priced, inside: NDArray[np.bool_], v: FloatArray, t: float
) -> tuple[FloatArray, FloatArray]:
    """Follow v from K to the rest; return it and M_jj + Σ |M_ji| v_i/v_j of the rest.

    A row whose iteration does not settle is above t, or infinite.
    """
    pairs = M.pairs
    touches = ~(inside[pairs.rows] & inside[pairs.columns])
    i, j = pairs.rows[touches], pairs.columns[touches]
    size = np.abs(pairs.values[touches])
    room = t - M.diagonal
    least = np.where(inside, v, _FLOOR * float(v.max(initial=0.0)))
    shrunk = np.where(inside, _HALF, 1.0) * np.maximum(room, 0.0)

    def sums(v: FloatArray) -> FloatArray:
        """Σ over neighbours; of a feature of K, over those of the rest alone."""
        at_i = np.bincount(i, size * v[j] * ~(inside[i] & inside[j]), M.order)
        at_j = np.bincount(j, size * v[i] * ~(inside[i] & inside[j]), M.order)
        return np.asarray(at_i + at_j, dtype=np.float64)

    grown = least.copy()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(_ROUNDS):
            # A little more than needed, so that the rows end up below t.
            after = np.maximum(least, (1 + 4 * _SETTLED) * sums(grown) / shrunk)
            after = np.where(np.isfinite(after), after, 1e100)
            change = float(np.max(after / grown, initial=0.0)) - 1.0
            grown = np.maximum(after, grown)
            if change <= _SETTLED:
                break
        counts = np.bincount(i, minlength=M.order) + np.bincount(j, minlength=M.order)
        total = sums(grown) / grown * (1 + (counts + 4) * EPS)
        rows = M.diagonal + total
        rows += 2 * EPS * (np.abs(M.diagonal) + total)
    return grown, np.where(np.isfinite(rows), rows, np.inf)


def within_dense(
    M: Priced, order: NDArray[np.intp], v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M_KK and δ, for K in ascending order."""
    d, n = M.order, len(order)
    place = np.full(d, -1)
    place[order] = np.arange(n)
    within = np.zeros((n, n))
    at_core = place[M.core]
    within[np.ix_(at_core, at_core)] = M.block
    a, b = place[M.pairs.rows], place[M.pairs.columns]
    both = (a >= 0) & (b >= 0)
    within[a[both], b[both]] = within[b[both], a[both]] = M.pairs.values[both]
    within[np.diag_indices(n)] = M.diagonal[order]
    added = np.zeros(n)
    counts = np.zeros(n)
    for here, feature, other, away in (
        (a, M.pairs.rows, M.pairs.columns, b),
        (b, M.pairs.columns, M.pairs.rows, a),
    ):
        crosses = (here >= 0) & (away < 0)
        ratio = v[other[crosses]] / v[feature[crosses]]
        terms = np.abs(M.pairs.values[crosses]) * ratio
        added += np.bincount(here[crosses], terms, n)
        counts += np.bincount(here[crosses], minlength=n)
    added *= 1 + (counts + 6) * EPS
    # and the sum with the diagonal errs by u of itself
    return within, added + EPS * (np.abs(M.diagonal[order]) + added)


def _estimated(B: FloatArray) -> float | None:
    """An estimate of λmax, where it costs less than eigenvalues; None if not."""
    if len(B) < _BY_LANCZOS:
        return None
    size = float(np.abs(B).max())
    if size == 0 or not np.isfinite(size):
        return None
    start = np.random.default_rng(0).normal(size=len(B))
    found = lanczos(B / size, start, tolerance=1e-12)
    return None if found is None else float(found[0][0]) * size
