"""A closer bound for r components on one support: every column has a copy of P.

With A = C'C and columns c_i, F_r(S) = ⟨A_S, P⟩, where A_S = Σ_{i∈S} c_i c_i' and P is
the projection on r leading eigenvectors of A_S. For any X ⪰ 0, with g_i = X c_i,

    F_r(S) ≤ Σ_{i∈S} ( ⟨(c_i − g_i)(c_i − g_i)' − g_i g_i', P⟩ + 2 c_i'g_i ).     (1)

*Proof.* In the bracket is c_i'Pc_i + 2 c_i'g_i − ⟨g_i c_i' + c_i g_i', P⟩, of which the
sum is F_r(S) + 2 tr XA_S − 2 tr XA_S P. As P commutes with A_S, A_S − A_S P is positive
semidefinite, and so is X: the trace of their product is not negative. ∎

Now let n_i, t_i be any vectors and H_i = n_i n_i' − t_i t_i'. Write s(M) for the sum of
the r largest eigenvalues of M, without negative ones: ⟨M, P⟩ ≤ s(M). With

    x_i = s( (c_i − g_i)(c_i − g_i)' − g_i g_i' − H_i ) + 2 c_i'g_i,    y_i = s(−H_i),

each bracket is at most x_i + ⟨H_i, P⟩, and 0 ≤ y_i + ⟨H_i, P⟩ for i outside S. Hence

    F_r(S) ≤ Σ_i y_i + Σ_{i∈S} (x_i − y_i) + (r largest eigenvalues of Σ_i H_i),    (2)

of which the middle is at most the k largest x_i − y_i, none of them counted below 0.
Features that are in every S have the matrix of (1) among the H_i, and 2 c_i'g_i apart.
Columns without n_i and t_i have y_i = 0 and x_i ≤ ‖c_i − g_i‖² + 2 c_i'g_i
= ‖c_i‖² + ‖g_i‖²; others that are not even known, (1 + ‖X‖²) times the longest.

X = 0, t_i = 0 and n_i n_i' = κ_i z_i z_i' are the bound of `shared_dual`. There each
column may turn the space of P towards itself by a little. t_i charges it for leaving a
direction that P has anyway, and X charges all together for taking more variance in a
direction than A_S has there, which by (1) no projection on its eigenvectors does. Each
of the two lowers a gap by a third, and both by a half and more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.direction_dual.columns import HostColumns
from ..bounds.direction_dual.relaxation import rounding_of_sum
from ..numerics.linalg import symmetric_eigenvalues
from ..numerics.rounding import EPS, sum_above
from ..numerics.upper_eigenvalues import eigenvalue_ceiling, ky_fan_ceiling

_ENTRIES = 2**17  # of the columns that are made dense at once
_LARGEST = 1e50  # of the numbers of a point: squares of squares are in range


@dataclass(frozen=True)
class CopiesPoint:
    """X = UU', and n_i and t_i for some of the columns: any numbers prove a bound."""

    index: NDArray[np.intp]  #: (m,); to which columns the n_i and t_i belong, ascending
    N: FloatArray  #: (m, n); n_i
    T: FloatArray  #: (m, n); t_i
    U: FloatArray  #: (n, s)

    def is_for(self, n: int, p: int) -> bool:
        """Whether it is about p columns in n dimensions."""
        index, m = self.index, len(self.index)
        return (
            self.N.shape == self.T.shape == (m, n)
            and self.U.ndim == 2
            and len(self.U) == n
            and bool((np.diff(index) > 0).all())
            and (m == 0 or (int(index[0]) >= 0 and int(index[-1]) < p))
            and all(  # nor is any not a number
                float(np.abs(a).max(initial=0.0)) < _LARGEST
                for a in (self.N, self.T, self.U)
            )
        )


def proved_by_copies(
    columns: HostColumns,
    k: int,
    rank: int,
    point: CopiesPoint,
    inside: HostColumns,
    longest: float,
    margin: float = 1.0,
) -> float:
    """Return the bound (2), with so many margins for rounding.

    Parameters
    ----------
    columns, k
        Of which at most k are chosen, beside all those `inside`.
    longest : float
        ‖c‖² of columns that are not given, at the most.
    margin : float

    Notes
    -----
    With s columns of U, g = U(U'c) is computed to 4 (n + s + 8) eps ‖U‖² σ, σ the size
    of c, as is c − g with 1 + ‖U‖² in place of ‖U‖² (Frobenius norms). So the matrix of
    (1) and 2 c'g are off by 32 (n + s + 8) eps (1 + ‖U‖²)² σ², in the trace norm, by
    which s(M) is off at the most. The QR factorization of four vectors is exact for
    vectors that differ by 12 n eps of their lengths, and the rest is of order four: as
    much again, of the sum of the squared lengths.
    """
    n, p = columns.shape
    growth = 1 + float((point.U**2).sum())
    relative = 64 * (n + point.U.shape[1] + 16) * EPS
    lengths = (point.N**2).sum(axis=1) + (point.T**2).sum(axis=1)
    sizes = (growth * columns.sizes) ** 2
    sizes[point.index] += lengths
    off = margin * relative * sizes
    x, y = _above_without(columns, point.U), np.zeros(p)
    x[point.index], y[point.index] = _with_copies(columns, point, rank)
    total = point.N.T @ point.N - point.T.T @ point.T
    size, apart = float(lengths.sum()), 0.0
    if inside.shape[1]:
        C = inside.dense()
        G = point.U @ (point.U.T @ C)
        total += (C - G) @ (C - G).T - G @ G.T
        within = float(((growth * inside.sizes) ** 2).sum())
        apart = 2 * float((C * G).sum()) + margin * relative * within
        size += within
    norm = eigenvalue_ceiling(point.U.T @ point.U) + relative * growth  # of X
    unknown = np.full(k, longest * (1 + norm**2) * (1 + 8 * EPS))
    largest = np.sort(np.append(x - y + 2 * off, unknown))[p:]
    count = 2 * len(point.index) + 2 * inside.shape[1]
    rounding = rank * rounding_of_sum(n, count, size)
    leading = ky_fan_ceiling(total, rank) + margin * rounding
    return sum_above([*(y + off), *np.maximum(largest, 0.0), apart, leading])


def _above_without(columns: HostColumns, U: FloatArray) -> FloatArray:
    """Return ‖c_i‖² + ‖g_i‖²."""
    image = columns.project(U)
    return np.asarray(columns.norms + np.einsum("ij,ij->j", image, U.T @ U @ image))


def _with_copies(
    columns: HostColumns, point: CopiesPoint, rank: int
) -> tuple[FloatArray, FloatArray]:
    """Return x_i and y_i for the columns that have n_i and t_i."""
    m, n = point.N.shape
    x, y = np.empty(m), np.empty(m)
    step = max(1, _ENTRIES // n)
    for start in range(0, m, step):
        part = slice(start, start + step)
        C = columns.take(point.index[part]).dense().T
        G = (C @ point.U) @ point.U.T
        N, T = point.N[part], point.T[part]
        x[part] = _positive_sum([C - G, T], [G, N], rank)
        x[part] += 2 * np.einsum("ij,ij->i", C, G)
        y[part] = _positive_sum([T], [N], rank)
    return x, y


def _positive_sum(
    plus: list[FloatArray], minus: list[FloatArray], rank: int
) -> FloatArray:
    """Return s(Σ vv' − Σ ww') for the vectors in each row of the arrays."""
    V = np.stack([*plus, *minus], axis=2)
    signs = np.repeat([1.0, -1.0], [len(plus), len(minus)])
    R: FloatArray = np.asarray(np.linalg.qr(V, mode="r"))
    values = symmetric_eigenvalues((R * signs) @ R.transpose(0, 2, 1))
    return np.asarray(np.maximum(values[:, -min(rank, len(signs)) :], 0.0).sum(axis=1))
