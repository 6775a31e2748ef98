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
and for the rounding of t itself. What underflows is below that (see `rounding`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..call import Run
from ..linalg.rounding import EPS
from ..messages import count
from ..validation import FloatArray
from .moments import FAR, Preparation, labels, refuse_variances
from .sources import ENTRIES, Source
from .tables import ALL, Index, Table
from .views import in_memory

STEP = 2**20  # entries of A at a time, which need several products


class Pairwise(Source):
    """Each A_ij from the samples where i and j are observed; see the module."""

    def __init__(self, X: FloatArray, observed: FloatArray, prepare: Preparation):
        self.X, self.observed = X, observed
        self.ddof, self.center = prepare.ddof, prepare.center
        self.rest = np.zeros(X.shape[1])
        self.scale = np.ones(X.shape[1])
        self.scaled = prepare.scale
        self.n_features = X.shape[1]

    def counts(self, rows: Index, columns: Index) -> FloatArray:
        """Return how many samples features share."""
        return self.observed[:, rows].T @ self.observed[:, columns]

    def diagonal(self) -> FloatArray:
        counts = self.observed.sum(axis=0)
        total = np.einsum("ij,ij->j", self.X, self.X)
        if self.center:
            total -= self.X.sum(axis=0) ** 2 / counts
        return np.asarray(total / (counts - self.ddof) / self.scale**2)

    def block(self, rows: Index, columns: Index) -> FloatArray:
        left, right = self.X[:, rows], self.X[:, columns]
        counts = self.counts(rows, columns)
        product = left.T @ right
        if self.center:
            sums = left.T @ self.observed[:, columns]
            product -= sums * (self.observed[:, rows].T @ right) / counts
        product /= counts - self.ddof
        product /= self.scale[rows][:, None]
        product /= self.scale[columns]
        return product

    def largest(self) -> float:
        # |x_i'x_j| of centred columns of the common samples is at most that of all.
        norms = np.sqrt(np.einsum("ij,ij->j", self.X, self.X)) / self.scale
        return float(norms.max() ** 2) * 1.01

    def formed(self, run: Run) -> Source:
        return in_memory(self, run) if len(self.X) > self.n_features else self

    def error(self) -> float:
        return self._error

    @cached_property
    def _error(self) -> float:
        """The largest bound of the module over all pairs, by one pass over them."""
        d, observed, squares = self.n_features, self.observed, self.X**2
        counts = observed.sum(axis=0)
        rest = np.abs(self.rest)
        norms = np.sqrt(squares.sum(axis=0)) + np.sqrt(counts) * rest
        own = (norms / self.scale) ** 2 / (counts - self.ddof)
        deviation = (3 * counts + 16) * own / 2 * self.scaled
        worst, step = 0.0, max(1, STEP // d)
        for start in range(0, d, step):
            rows, columns = slice(start, min(start + step, d)), slice(start, d)
            shared = self.counts(rows, columns)
            t = np.sqrt(squares[:, rows].T @ observed[:, columns])
            t += np.sqrt(shared) * rest[rows][:, None]
            beside = np.sqrt(observed[:, rows].T @ squares[:, columns])
            t *= beside + np.sqrt(shared) * rest[columns]
            t /= (shared - self.ddof) * self.scale[rows][:, None] * self.scale[columns]
            t *= 3 * shared + 16 + deviation[rows][:, None] + deviation[columns]
            worst = max(worst, float(t.max()))
        return EPS * worst


def pairwise_source(
    table: Table, prepare: Preparation, weights: NDArray[np.float64] | None
) -> Pairwise:
    """Centre, count and scale data with gaps; refuse pairs that share too little."""
    if weights is not None:
        raise ValueError(
            "sample_weight cannot be combined with missing='pairwise' if X has gaps; "
            "fill the gaps, or use numpy.repeat(X, sample_weight, axis=0)."
        )
    n = table.shape[0]
    X = table.take(ALL, slice(0, n))
    gaps = np.isnan(X)
    counts = n - gaps.sum(axis=0)
    if not counts.all():
        empty = np.flatnonzero(counts == 0).tolist()
        raise ValueError(
            f"X has no values in feature(s) {labels(empty, prepare.names)}; drop them."
        )
    top = np.nanmax(np.abs(X))
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        if prepare.scale:  # any unit of a feature gives the same correlations
            X = np.ldexp(X, -np.frexp(np.nanmax(np.abs(X), axis=0))[1])
        low = np.nanmin(X, axis=0)
        constant = low == np.nanmax(X, axis=0)
        if not prepare.center:
            constant &= low == 0
        X[gaps] = 0.0
        observed = (~gaps).astype(np.float64)
        source = Pairwise(X, observed, prepare)
        if prepare.center:
            # Shifts change no covariance; two keep digits, and constants become 0.
            X -= np.where(constant, low, X.sum(axis=0) / counts)
            X[gaps] = 0.0
            source.rest = np.where(constant, 0.0, X.sum(axis=0) / counts)
            X -= source.rest
            X[gaps] = 0.0
        refuse_strangers(source, prepare)
        variance = np.where(constant, 0.0, source.diagonal())
    if prepare.scale:
        if not (variance[~constant] > 1 / FAR).all():
            raise ValueError(
                "X has numbers out of range: deviations of a feature are below 2**-100 "
                "of its numbers; subtract a constant from it."
            )
    else:
        refuse_variances(variance, constant, float(top))
    source.scale = prepare.deviations(variance, constant)
    return source


def refuse_strangers(source: Pairwise, prepare: Preparation) -> None:
    """Refuse two features that share too few samples."""
    step = max(1, ENTRIES // source.n_features)
    for i in range(0, source.n_features, step):
        shared = source.counts(slice(i, i + step), ALL)
        if shared.min() < prepare.ddof + 1:
            a, b = np.unravel_index(shared.argmin(), shared.shape)
            pair = labels([i + int(a), int(b)], prepare.names)
            raise ValueError(
                f"X has {count(int(shared.min()), 'sample')} with features {pair}, too "
                f"few for ddof = {prepare.ddof}; drop one of the features."
            )
