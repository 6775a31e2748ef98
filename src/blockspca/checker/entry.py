"""Rule "entry": a bound for one k, by a weight w_i ≥ 0 for every feature.

Let M_ii = Ã_ii + (k − 1) w_i² and |Ã_ij − M_ij| ≤ w_i w_j for i ≠ j. A unit vector x
with at most k entries that are not 0 has x'Ãx ≤ x'Mx, as Σ_{i≠j} w_i w_j |x_i x_j| =
(Σ w_i |x_i|)² − Σ w_i² x_i² ≤ (k − 1) Σ w_i² x_i² by Cauchy's inequality. And for any
v > 0 and any features G, 2|M_ij x_i x_j| ≤ |M_ij| (x_i² v_j/v_i + x_j² v_i/v_j) for the
pairs that are not within G; so x'Mx ≤ U follows from

    M_jj + Σ_{i≠j} |M_ij| v_i/v_j ≤ U, j not in G,   UI − M_GG − Diag(δ) ⪰ 0,
    δ_i = Σ_{j not in G} |M_ij| v_j/v_i.

*Beside G* (`rest_of_rows`), in float64 for both arithmetics: |M_ij| is at most what
bounds |Ã_ij| from above less w_i w_j from below, or 0. All terms are positive, and sums
are rounded up by `above`. As v is in 2^±100, what underflows is below TINY.

*Within G in float64* (`float_point_holds`): B_ij is Ã_ij within `error`; w_i w_j, its
multiple by a share (an integer of 15 bits over a power of two) and the difference are
rounded once each, so M̂_ij is off by at most error + 4u (|B_ij| + w_i w_j) ≤ ε. x has k
entries: this costs kε, and so does a factor's (`positive.py`). The diagonal is rounded
up. *In integers* (`integer_matrix`) weights are rounded first, which any weights may
be, and nothing after.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import numpy as np

from .fields import ProofError
from .positive import is_nonnegative_by_factor
from .proof_file import Entry
from .screening import BLOCK, TINY, UNIT, UpperBounds, above, below

SHARE_BITS = 14
LARGEST_WEIGHT = 2.0**20  # beside the root of the largest |A_ij|, or its neighbour
LOWEST = -8  # times |U|: a smaller Ã_ii may be raised, and does not cost digits then


def weights_in(given: list[float], shift: int, factor: float = 1.0) -> np.ndarray:
    """Return about √(factor · 2^−shift) times the weights."""
    root = float(np.sqrt(factor * 2.0 ** -(shift % 2)))
    with np.errstate(over="ignore"):
        found = np.ldexp(np.array(given) * root, -(shift // 2))
    if not found.max(initial=0.0) <= LARGEST_WEIGHT:
        raise ProofError("a weight is out of all proportion to the data")
    return np.asarray(found)


def rest_of_rows(
    bounds: UpperBounds, k: int, upper: float, w: np.ndarray, given: Entry
) -> np.ndarray:
    """Show the rows beside G to be at most U; return δ of G, rounded up."""
    d = len(w)
    dense = np.array(given.dense, dtype=int)
    if len(dense) == d:
        return np.zeros(d)
    v = np.array(given.scaling)
    inside = np.zeros(d, dtype=bool)
    inside[dense] = True
    diagonal, paid = bounds.diagonal, above((k - 1) * w * w)
    room = upper - diagonal - paid
    room -= 4 * UNIT * (abs(upper) + np.abs(diagonal) + paid) + TINY
    columns = np.flatnonzero(has_entries(bounds, w))
    rows = np.flatnonzero(~inside[columns])  # positions in `columns`
    entries, added = bounds.entries(columns), np.zeros(d)
    sums = np.zeros(d)
    height = max(1, BLOCK // max(1, len(columns)))
    for start in range(0, len(rows), height):
        part = rows[start : start + height]
        names = columns[part]
        M = entries(part, len(columns))
        M -= below(w[names][:, None] * w[columns])
        np.maximum(M, 0.0, out=M)
        M[np.arange(len(part)), part] = 0.0
        sums[names] = (M @ v[columns]) / v[names]
        added[columns] += (v[names] @ M) / v[columns]
    fits = above(sums, d) <= room
    if not (fits | inside).all():
        j = int(np.flatnonzero(~(fits | inside))[0])
        raise ProofError(f"k = {k}: the row of feature {j} is not shown to be below U")
    return np.asarray(above(added[dense], d))


def has_entries(bounds: UpperBounds, w: np.ndarray) -> np.ndarray:
    """Say which features may have an |Ã_ij| above w_i w_j, by Cauchy's inequality."""
    everyone = np.ones(len(w), dtype=bool)
    if bounds.roots is None or not w.min() > 0:
        return everyone
    with np.errstate(over="ignore", invalid="ignore"):  # then a feature stays
        steepest = above(np.max(bounds.roots / w))
        most = above(bounds.roots * steepest + bounds.error * above(1 / w.min()))
    return np.asarray(everyone & ~(most <= w))


def shares_within(given: Entry) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of pairs of G, 0 beside the core, and which pairs have one."""
    size, m = len(given.dense), len(given.core)
    at = np.searchsorted(given.dense, given.core)
    shares = np.zeros((size, size), dtype=np.int64)
    rows, columns = np.triu_indices(m, 1)
    shares[at[rows], at[columns]] = given.shares
    in_core = np.zeros((size, size), dtype=bool)
    in_core[np.ix_(at, at)] = True
    return shares + shares.T, in_core


def float_point_holds(
    B: np.ndarray,
    error: float,
    k: int,
    upper: float,
    w: np.ndarray,
    added: np.ndarray,
    given: Entry,
) -> bool:
    """Show UI − M_GG − Diag(δ) ⪰ 0; B is Ã_GG within `error`, its diagonal from above.

    `w` and `added`, δ, are of the features G.
    """
    if not len(B):
        return True
    shares, in_core = shares_within(given)
    product = np.outer(w, w)
    M = np.copysign(np.maximum(np.abs(B) - product, 0.0), B)
    M = np.where(in_core, B - shares * 2.0**-SHARE_BITS * product, M)
    sizes = np.abs(B) + product
    np.fill_diagonal(sizes, 0.0)
    entry = error + 4 * UNIT * float(sizes.max()) + TINY
    paid = above((k - 1) * w * w) + added
    own = np.maximum(np.diagonal(B), LOWEST * abs(upper))
    np.fill_diagonal(M, own + paid + 4 * UNIT * (np.abs(own) + paid))
    margin = 2.0**-32 * abs(upper)  # half of the room that writers leave
    lost = 1.01 * k * entry + margin
    level = upper - lost
    # `level` and the difference with a diagonal entry are rounded twice each.
    level -= 8 * UNIT * (abs(upper) + lost + float(np.abs(np.diagonal(M)).max()))
    return is_nonnegative_by_factor(level * np.eye(len(M)) - M, k, margin)


def whole_weights(w: np.ndarray) -> tuple[list[int], int]:
    """Return integers m_i and t, m_i 2^−t being about w_i: what floats hold exactly."""
    size = int(np.frexp(w.max())[1])
    t = max(50 - size, 30)
    t = min(t, 400)
    return [int(m) for m in np.rint(np.ldexp(w, t))], t


def integer_matrix(
    entry: Callable[[int, int], int],
    unit_bits: int,
    k: int,
    upper: int,
    m: list[int],
    t: int,
    added: np.ndarray,
    given: Entry,
) -> list[list[int]]:
    """Return (UI − M_GG − Diag(δ)) · 2^(2t + 14), in integers.

    Ã_ij and U are `entry(i, j)` and `upper` times 2^−unit_bits; the weights are m_i
    2^−t.
    """
    shift = 2 * t + SHARE_BITS - unit_bits
    shares, in_core = (part.tolist() for part in shares_within(given))
    X: list[list[int]] = []
    for a, i in enumerate(given.dense):
        row = [X[b][a] for b in range(a)]
        own = max(entry(i, i), LOWEST * abs(upper))
        paid = ((k - 1) * m[i] ** 2) << SHARE_BITS
        more = ceil(Fraction(float(added[a])) * 2 ** (2 * t + SHARE_BITS))
        row.append(((upper - own) << shift) - paid - more)
        for b in range(a + 1, len(given.dense)):
            j = given.dense[b]
            value = entry(i, j) << shift
            if in_core[a][b]:
                row.append(shares[a][b] * m[i] * m[j] - value)
            else:
                left = max(abs(value) - (m[i] * m[j] << SHARE_BITS), 0)
                row.append(-left if value > 0 else left)
        X.append(row)
    return X
