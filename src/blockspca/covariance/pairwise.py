"""Covariances of data with gaps: each entry from the samples that have both features.

With M the mask of observed entries, X with its gaps filled by zeros, and N = M'M the
counts of common samples,

    A_ij = (X'X − (X'M)(M'X)/N)_ij / (N_ij − ddof),

the means being those over the common samples. A may be indefinite.

**Rounding.** The stored x are fl(fl(x₀ − a) − b). Shifts change no centred product, so
that only the rounding e counts, |e| ≤ u |x₀ − a| + u |x| ≤ u (2 |x| + |b|) (1 + u) for
each number. Let P be the samples that i and j share, N of them, and

    r_ij = sqrt(Σ_P x_i²) + √N |b_i|,    t_ij = r_ij r_ji / ((N_ij − ddof) s_i s_j),

with s the scales, 1 without. Adding a zero rounds nothing, so that whatever the order
in which BLAS adds, a sum over all samples takes N − 1 roundings. In units of
u r_ij r_ji: N for x_i'x_j; 2 (N − 1) + 2 for the two sums, their product and the
quotient, as |Σ_P x_i| ≤ √N r_ij; 1 for the difference; 4 for e of both; and 3 for the
divisor and the scales: 3N + 8. A standard deviation comes from A_jj, by the same
arithmetic, and errs by half of that: (3 N_jj + 8) t_jj / 2, at |A_ij| ≤ t_ij. Hence

    |computed A_ij − A_ij| ≤ eps t_ij (3 N_ij + 16 + w_i + w_j),    w_j = (3 N_jj + 16)
                                                                         t_jj / 2,

with w = 0 without scales. As eps = 2u, half of this is room for terms of second order
and for the rounding of t itself. Underflow adds τ/2 for each product, over the scales.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._validation import FloatArray, describe
from .ingest import Preparation, refuse_out_of_range
from .rounding import EPS, SMALLEST, column_exponents
from .sources import ENTRIES_AT_ONCE, Indices, Source

# Below this share of the largest variance `rough_error` is used as it is: a proof for k
# allows for 2k times it, 2e-10 for k = 100, and needs a gap of 1e-9.
_SMALL_ENOUGH = 1e-12


class PairwiseSource(Source):
    """Each A_ij from the samples where both i and j are observed; see the module.

    `rest` are the |b_j|, the second shifts of the columns.
    """

    made_from = "data with gaps"
    no_factor = "a pairwise-complete covariance has no factor"

    def __init__(
        self,
        X: FloatArray,
        observed: FloatArray,
        ddof: int,
        center: bool,
        rest: FloatArray,
    ) -> None:
        self.X, self.observed = X, observed
        self.ddof, self.center = ddof, center
        self.scale: FloatArray | None = None
        self.n_features = X.shape[1]
        self.rest = np.abs(rest)

    def counts(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        return self.observed[:, rows].T @ self.observed[:, columns]

    def diagonal(self) -> FloatArray:
        counts = self.observed.sum(axis=0)
        total = np.einsum("ij,ij->j", self.X, self.X)
        if self.center:
            total -= self.X.sum(axis=0) ** 2 / counts
        variance = total / (counts - self.ddof)
        return variance if self.scale is None else variance / self.scale**2

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        Xr, Xc = self.X[:, rows], self.X[:, columns]
        counts = self.counts(rows, columns)
        product = Xr.T @ Xc
        if self.center:
            product -= (
                (Xr.T @ self.observed[:, columns])
                * (self.observed[:, rows].T @ Xc)
                / counts
            )
        product /= counts - self.ddof
        if self.scale is not None:
            product /= self.scale[rows][:, None]
            product /= self.scale[columns]
        return product

    def entry_error(self) -> float:
        """Bound |computed A_ij − A_ij|; see the module."""
        return self._error

    @cached_property
    def _error(self) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the caller
            rough = self.rough_error()
            largest = float(self.diagonal().max())
            if not np.isfinite(rough) or rough <= _SMALL_ENOUGH * largest:
                return rough
            return min(rough, self.sharp_error())

    def rough_error(self) -> float:
        """The module's bound with the fewest samples that two features can share.

        As r_ij ≤ r_jj and counts are at most n, every t_ij is at most the largest
        r_ii r_jj / (s_i s_j) over that number.
        """
        n = len(self.X)
        norms = self._norms(self.observed.sum(axis=0), self._squares().sum(axis=0))
        counts = self.observed.sum(axis=0)
        shared = max(1.0, 2 * float(counts.min()) - n - self.ddof)
        largest = float((norms**2).max())
        own = float((norms**2 / np.maximum(counts - self.ddof, 1.0)).max())
        room = 3 * n + 16 if self.scale is None else (3 * n + 16) * (1 + own)
        return EPS * largest / shared * room + self._underflow(shared)

    def sharp_error(self) -> float:
        """The largest bound of the module over all pairs, by one pass over them."""
        d, squares = self.n_features, self._squares()
        counts = self.observed.sum(axis=0)
        own = self._norms(counts, squares.sum(axis=0)) ** 2 / (counts - self.ddof)
        deviation = np.zeros(d)
        if self.scale is not None:
            deviation = (3 * counts + 16) * own / 2
        worst = 0.0
        step = max(1, ENTRIES_AT_ONCE // (4 * d))
        for start in range(0, d, step):
            rows, columns = slice(start, min(start + step, d)), slice(start, d)
            shared = self.counts(rows, columns)
            of_row = squares[:, rows].T @ self.observed[:, columns]
            of_column = self.observed[:, rows].T @ squares[:, columns]
            t = self._norms(shared, of_row, rows, by_row=True)
            t *= self._norms(shared, of_column, columns)
            t /= shared - self.ddof
            t *= 3 * shared + 16 + deviation[rows][:, None] + deviation[columns]
            worst = max(worst, float(t.max()))
        return EPS * worst + self._underflow(1.0)

    def _squares(self) -> FloatArray:
        return self.X * self.X

    def _norms(
        self,
        counts: FloatArray,
        sums: FloatArray,
        index: slice = slice(None),
        *,
        by_row: bool = False,
    ) -> FloatArray:
        """r / s from sums of squares, enlarged by what underflowed in them."""
        rest = self.rest[index]
        norms = np.sqrt(sums + counts * SMALLEST)
        norms += np.sqrt(counts) * (rest[:, None] if by_row else rest)
        if self.scale is not None:
            scale = self.scale[index]
            norms /= scale[:, None] if by_row else scale
        return norms

    def _underflow(self, shared: float) -> float:
        """Bound the underflow in products of numbers and of sums, over the scales."""
        n = len(self.X)
        squares = self._squares().sum(axis=0)
        smallest = 1.0
        if self.scale is not None:
            squares = squares / self.scale**2
            smallest = min(float(self.scale.min()), 1.0)
        lost = SMALLEST * (n + 4) * (4 + np.sqrt(n * float(squares.max())))
        return float(lost / smallest**2 / shared)


def pairwise_data(
    X: FloatArray, gaps: np.ndarray, prepare: Preparation
) -> PairwiseSource:
    """Centre, count and scale data with `gaps`; refuse pairs that share too little."""
    n, d = X.shape
    center, ddof, names = prepare.center, prepare.ddof, prepare.names
    observed = (~gaps).astype(np.float64)
    counts = observed.sum(axis=0)
    if not counts.all():
        empty = np.flatnonzero(counts == 0).tolist()
        raise ValueError(
            f"feature(s) {describe(empty, names)} have no values at all; drop them."
        )
    if prepare.scale:  # any unit of a feature gives the same correlations
        X = np.ldexp(X, -column_exponents(np.nanmax(np.abs(X), axis=0)))
    filled, rest = np.where(gaps, 0.0, X), np.zeros(d)
    lowest = np.nanmin(X, axis=0)
    constant = lowest == np.nanmax(X, axis=0)
    if center:
        # Shifts change no covariance; this one keeps digits and makes constants zero.
        shift = np.where(constant, lowest, filled.sum(axis=0) / counts)
        filled = np.where(gaps, 0.0, X - shift)
        # A second shift recovers digits that a large mean has cost.
        rest = filled.sum(axis=0) / counts
        filled -= np.where(gaps, 0.0, rest)
    else:
        constant &= lowest == 0
    source = PairwiseSource(filled, observed, ddof, center, rest)
    # Two features share at least count_i + count_j − n samples: check all pairs only
    # if the two most incomplete features could share too few.
    if np.sort(counts)[:2].sum() - n * min(d - 1, 1) < ddof + 1:
        step = max(1, 2**22 // d)
        for i in range(0, d, step):
            shared = source.counts(slice(i, i + step), slice(None))
            if shared.min() < ddof + 1:
                a, b = np.unravel_index(shared.argmin(), shared.shape)
                pair = describe([i + int(a), int(b)], names)
                raise ValueError(
                    f"features {pair} have {int(shared.min())} sample(s) in common, "
                    f"too few for a covariance with ddof = {ddof}; drop one of them."
                )
    with np.errstate(over="ignore", invalid="ignore"):  # refused here
        variance = source.diagonal()
    variance[constant] = 0.0
    refuse_out_of_range(variance, constant, prepare)
    if prepare.scale:
        source.scale = prepare.scales(variance, constant)
    return source
