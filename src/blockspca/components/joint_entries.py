"""A joint bound for orthogonal components: the entry dual with a Ky Fan sum.

**Theorem.** Let x_1, …, x_m be orthonormal with at most k nonzeros each, w ≥ 0, and U
symmetric with a zero diagonal and |U_ij| ≤ w_i w_j. Then for every symmetric A

    Σ_j x_j'Ax_j ≤ λ_1(M) + … + λ_m(M),        M = A − U + (k − 1) Diag(w_i²).

*Proof.* x_j'Ax_j ≤ x_j'Mx_j for each of them (`bounds.entry_dual.proof`), and the sum
of x_j'Mx_j over orthonormal vectors is at most that of the m largest eigenvalues of M,
by Ky Fan. ∎

Every component has its own k here, where opt_m(Σ k_j) lets all share their features.
The dual is max ⟨A, Y⟩ over 0 ⪯ Y ⪯ I, tr Y = m, with Σ_ij |Y_ij| v_i v_j ≤
k Σ Y_ii v_i² for all v ≥ 0: where the projection onto the m leading eigenvectors
fulfils that, the bound is the Ky Fan sum of A.

**Rounding.** M̂ and what is to be added for its entries are those of
`bounds.entry_dual.proof`, where they are allowances for one vector: for the values of m
vectors m times as much. Entries of A known to ± e cost k e for each vector. The bound
is for vectors that are exactly orthonormal; what is found is so up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.entry_dual.ascent import Ascent, Point
from ..bounds.entry_dual.check import dense_problem
from ..bounds.entry_dual.matrix import DualMatrix, Slope
from ..bounds.entry_dual.pairs import Pairs
from ..bounds.entry_dual.proof import priced_matrix
from ..bounds.entry_dual.record import EntryRecord
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics.blas import single_threaded
from ..numerics.rounding import EPS, power_of_four
from ..numerics.upper_eigenvalues import AGREED, ky_fan_ceiling
from .smoothed import smoothed_sum

# Of the target, the smoothing of one ascent after the other. A sharp function from the
# beginning stays where it is: three components of 10 features of normLung end at 13.74
# with the first of 0.0015, and at 13.69 with these.
SMOOTHINGS = (0.01, 0.003, 0.001, 0.0003)
STEPS = 300  # of each of them, at the most
# Less is asked of steps than where the gap is the dual's own: the target is the sum of
# components, which the bound does not come near where their k or supports differ.
PATIENCE = 0.03
THRESHOLDS = 16  # that are tried for the start, evenly up to the largest entry
START = 0.9  # of the best: from less the ascent gets further (`entry_dual.bound`)


@dataclass(frozen=True)
class JointEntries:
    """A proved bound on the variances of m orthogonal components of k features each."""

    upper_bound: float
    k: int
    n_components: int
    record: EntryRecord  #: the weights and the shares of U that prove it

    def proved(self, cov: Covariance) -> float:
        """Compute the bound again, from the record and A alone.

        Raises
        ------
        ValueError
            If the record does not fulfil what the theorem asks for.
        """
        self.record.check()
        if len(self.record.weights) != cov.n_features:
            raise ValueError("the record of a joint bound is for other features.")
        return proved_value(cov, self.k, self.n_components, self.record)


class KyFanMatrix(DualMatrix):
    """M with every feature in the core, and the smoothed sum of its m largest λ.

    With the weights p_l of the sum (`smoothed`), the density of the slope is
    Σ p_l q_l q_l', of trace m.
    """

    single_from = 2**62  # never: all eigenvalues count

    def __init__(self, A: FloatArray, k: int, m: int) -> None:
        d = len(A)
        nothing: NDArray[np.intp] = np.empty(0, np.intp)
        pairs = Pairs(nothing, nothing, np.empty(0))
        prices, everything = np.full(d, k - 1.0), np.arange(d, dtype=np.intp)
        diagonal = np.diagonal(A).copy()
        super().__init__(diagonal, prices, everything, A, pairs, np.zeros(d))
        self.rank = m

    def slope(self, w: FloatArray, V: FloatArray, mu: float) -> Slope:
        M = self.within_core(w, V)
        M[np.diag_indices(self.order)] = self.diagonal + self.prices * w * w
        values, Q = np.linalg.eigh(M)
        value, p = smoothed_sum(values, self.rank, mu)
        P = (Q * p) @ Q.T
        presence = np.diagonal(P).copy()
        of_weights = self.prices * presence * w - (P * V) @ w
        P *= w
        P *= -w[:, None]
        np.fill_diagonal(P, 0.0)
        largest = float(values[-self.rank :].sum())
        return Slope(value, largest, 2 * of_weights, P, presence)


def joint_entries(
    cov: Covariance, k: int, m: int, target: float, deadline: Deadline
) -> JointEntries:
    """Bound Σ x_j'Ax_j over m orthonormal vectors with at most k nonzeros each.

    Parameters
    ----------
    cov : Covariance
        All entries of A are formed.
    target : float
        What components reach in the sum, not 0: there is nothing to be gained below.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> from blockspca.limits import Deadline
    >>> A = np.kron(np.diag([3.0, 2.0]), np.ones((2, 2)))  # 6 and 4 by two features
    >>> bound = joint_entries(Covariance.from_matrix(A), 2, 2, 10.0, Deadline(None))
    >>> round(bound.upper_bound, 6)
    10.0
    """
    d = cov.n_features
    unit = power_of_four(abs(target) / m)
    A = dense_problem(cov, np.arange(d, dtype=np.intp), unit)
    matrix = KyFanMatrix(A, k, m)
    with single_threaded():
        ascent = KyFanAscent(
            matrix, _first(matrix, A), target / unit, patience=PATIENCE
        )
        best = ascent.run(STEPS, deadline)
    everything = np.arange(d, dtype=np.intp)
    record = EntryRecord.of(best.weights, unit, everything, best.shares)
    bound = proved_value(cov, k, m, record)
    return JointEntries(bound + AGREED * abs(bound), k, m, record)


def _first(matrix: KyFanMatrix, A: FloatArray) -> Point:
    """Return the point to begin with: near the best of a few soft thresholds."""
    d = matrix.order
    off = np.abs(A)
    np.fill_diagonal(off, 0.0)
    largest = float(off.max(initial=0.0))

    def at(epsilon: float) -> Point:
        V = np.clip(A / epsilon, -1.0, 1.0)
        np.fill_diagonal(V, 0.0)
        return Point(np.full(d, np.sqrt(epsilon)), V)

    if largest == 0:
        return Point(np.zeros(d), np.zeros((d, d)))
    tried = largest * np.arange(1, THRESHOLDS + 1) / THRESHOLDS
    mu = SMOOTHINGS[-1] * largest
    sums = []
    for epsilon in tried:
        point = at(float(epsilon))
        sums.append(matrix.slope(point.weights, point.shares, mu).largest)
    return at(START * float(tried[int(np.argmin(sums))]))


class KyFanAscent(Ascent):
    """An ascent with less and less smoothing, each until steps gain next to nothing."""

    def run(self, steps: int, deadline: Deadline) -> Point:
        point = self.best
        for smoothing in SMOOTHINGS:
            if self.best.value <= self.target or not deadline.affords_step():
                break
            mu = smoothing * abs(self.target)
            point = self._smoothed(point, mu, steps, deadline)[1]
        return self.best


def proved_value(cov: Covariance, k: int, m: int, record: EntryRecord) -> float:
    """Return the bound that a point proves; see the head of this file."""
    everything = np.arange(cov.n_features, dtype=np.intp)
    unit = record.unit
    A = dense_problem(cov, everything, unit)
    w = record.weights_in(unit)
    nothing: NDArray[np.intp] = np.empty(0, np.intp)
    priced = priced_matrix(
        np.diagonal(A).copy(),
        k,
        np.full(len(A), k - 1.0),
        w,
        everything,
        record.shares_as_floats,
        A,
        Pairs(nothing, nothing, np.empty(0)),
    )
    M = priced.block
    M[np.diag_indices(len(M))] = priced.diagonal
    value = ky_fan_ceiling((M + M.T) / 2, m) + m * priced.rounding
    value, error = value * unit, m * k * cov.entry_error
    return float(value + error + 8 * EPS * (abs(value) + error))
