"""From input to the source of a covariance: symmetry, means, scales, refusals."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np

from ._sources import (
    EPS,
    DenseDataSource,
    MappedDataSource,
    MomentSource,
    PairwiseSource,
    SparseDataSource,
    sample_parts,
)
from ._validation import (
    FloatArray,
    MemoryLimitError,
    check_flag,
    describe,
    is_sparse,
    numeric_array,
    split_names,
)

TILE_SIZE = 512  # a float64 tile of 2 MiB, which stays in cache while it is turned

# Two halves of a matrix computed in floating point differ by rounding only.
SYMMETRY_TOLERANCE = 1e-12

NO_VARIANCE = (
    "X has no variance: every feature is constant, so there is nothing to explain; "
    "pass data that vary."
)


def symmetric_dense(A: FloatArray) -> FloatArray:
    """Check that A is finite and symmetric, tile by tile."""
    d = len(A)
    worst, largest, where = 0.0, 0.0, (0, 0)
    deviation = np.sqrt(np.abs(np.diagonal(A)))
    symmetric = True
    for i0 in range(0, d, TILE_SIZE):
        for j0 in range(i0, d, TILE_SIZE):
            upper = A[i0 : i0 + TILE_SIZE, j0 : j0 + TILE_SIZE]
            lower = A[j0 : j0 + TILE_SIZE, i0 : i0 + TILE_SIZE].T
            same = np.array_equal(upper, lower)  # never where something is NaN
            top = max(upper.max(), -upper.min())
            if not same:
                top = np.abs([top, lower.max(), lower.min()]).max()  # NaN if one is
            if not np.isfinite(top):
                tile = np.isfinite(upper) & np.isfinite(lower)
                i, j = np.argwhere(~tile)[0] + (i0, j0)
                raise ValueError(
                    f"A[{i}, {j}] = {A[i, j]} and A[{j}, {i}] = {A[j, i]}: A must be "
                    "finite; replace or drop those features."
                )
            largest = max(largest, float(top))
            if same:
                continue
            symmetric = False
            size = np.maximum(np.abs(upper), np.abs(lower))
            size = np.maximum(
                size,
                np.outer(
                    deviation[i0 : i0 + TILE_SIZE], deviation[j0 : j0 + TILE_SIZE]
                ),
            )
            size[size == 0] = 1.0
            difference = np.abs(upper / size - lower / size)
            if difference.max() > worst:
                worst = float(difference.max())
                i, j = np.unravel_index(difference.argmax(), difference.shape)
                where = (i0 + int(i), j0 + int(j))
    if largest > np.finfo(float).max / (4 * d):
        raise ValueError(
            f"A has entries as large as {largest:.3g}, so that x'Ax overflows; divide "
            "A by a constant."
        )
    if worst > SYMMETRY_TOLERANCE:
        i, j = where
        raise ValueError(
            f"A is not symmetric: A[{i}, {j}] = {A[i, j]} but A[{j}, {i}] = "
            f"{A[j, i]}; pass (A + A.T) / 2 if its symmetric part is meant, or data "
            "(rows are samples) to Covariance.from_data."
        )
    return A if symmetric else (A + A.T) / 2


def symmetric_sparse(A: Any) -> Any:
    difference = abs(A - A.T)
    worst = difference.max()
    if worst > SYMMETRY_TOLERANCE * abs(A).max():
        raise ValueError(
            f"A is not symmetric: an entry differs from its mirror image by {worst}; "
            "pass (A + A.T) / 2 if its symmetric part is meant."
        )
    return A if worst == 0 else ((A + A.T) / 2).tocsr()


@dataclass(frozen=True)
class Preparation:
    """What is done to the columns of data; see `Covariance.from_data`."""

    center: bool
    scale: bool
    ddof: int
    names: tuple[str, ...] | None
    constant: Literal["raise", "ignore"] = "raise"

    def __post_init__(self) -> None:
        check_flag(self.center, "center")
        check_flag(self.scale, "scale")
        ddof = self.ddof
        if isinstance(ddof, bool) or not isinstance(ddof, Integral) or int(ddof) < 0:
            raise ValueError(f"ddof = {ddof!r} is not an integer ≥ 0; pass 0 or 1.")
        if self.constant not in ("raise", "ignore"):
            raise ValueError(
                f"constant = {self.constant!r} is not known; pass 'raise' or 'ignore'."
            )

    def check_samples(self, n: int) -> None:
        """Refuse fewer samples than a covariance needs."""
        if n - self.ddof < 1:
            raise ValueError(
                f"X has {n} sample(s), too few for ddof = {self.ddof}; pass at least "
                f"{self.ddof + 1} rows, or a smaller ddof."
            )

    def scales(self, variance: FloatArray, constant: np.ndarray) -> FloatArray:
        """Standard deviations; infinite for a constant that is ignored.

        Divided by infinity, a column and its row of A are exactly zero: the feature
        keeps its place and can add nothing to a component.
        """
        if not constant.any():
            return np.sqrt(variance)
        if constant.all():
            raise ValueError(NO_VARIANCE)
        if self.constant == "raise":
            columns = np.flatnonzero(constant).tolist()
            raise ValueError(
                f"scale=True, but {len(columns)} feature(s) are constant: "
                f"{describe(columns, self.names)}; drop them, pass constant='ignore' "
                "to give them no loading, or pass scale=False."
            )
        return np.sqrt(np.where(constant, np.inf, variance))


def refuse_infinite(X: np.ndarray, argument: str, names: Any) -> None:
    infinite = np.isinf(X)
    if infinite.any():
        columns = np.flatnonzero(infinite.any(axis=0)).tolist()
        raise ValueError(
            f"{argument} has {int(infinite.sum())} infinite value(s), in feature(s) "
            f"{describe(columns, names)}; replace or drop them."
        )


def checked_sparse(X: Any, argument: str) -> Any:
    if np.issubdtype(X.dtype, np.complexfloating):
        raise TypeError(f"{argument} has complex dtype {X.dtype}; pass its real part.")
    if X.dtype.kind not in "fiub":
        raise TypeError(
            f"{argument} has dtype {X.dtype}, which does not hold real numbers; "
            "convert it first with astype(float)."
        )
    if 0 in X.shape or len(X.shape) != 2:
        raise ValueError(
            f"{argument} has shape {X.shape}; pass at least one row and one column."
        )
    X = X.tocsr().astype(np.float64)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError(
            f"{argument} has {int((~np.isfinite(X.data)).sum())} NaN or infinite "
            "value(s) among its stored entries; replace or drop them (missing="
            "'pairwise' needs dense data)."
        )
    return X


def dense_data(X: FloatArray, prepare: Preparation) -> DenseDataSource:
    n = len(X)
    constant = (X[0] == X).all(axis=0)
    if prepare.center:
        # The rounded mean of a constant column need not be that constant.
        C = X - np.where(constant, X[0], X.mean(axis=0))
    else:
        C = X.copy()
        constant = ~X.any(axis=0)
    C /= np.sqrt(n - prepare.ddof)
    vanished = ~constant & (np.einsum("ij,ij->j", C, C) == 0)
    if vanished.any():
        raise ValueError(
            "X underflows: the variance of feature(s) "
            f"{describe(np.flatnonzero(vanished).tolist(), prepare.names)} is not zero "
            "but too small for float64; rescale X."
        )
    if prepare.scale:
        C /= prepare.scales(np.einsum("ij,ij->j", C, C), constant)
    return DenseDataSource(np.ascontiguousarray(C))


def sparse_data(X: Any, prepare: Preparation) -> SparseDataSource:
    n, d = X.shape
    ddof = prepare.ddof
    mean = np.asarray(X.mean(axis=0)).ravel() if prepare.center else np.zeros(d)
    columns = X.tocsc()
    stored = np.diff(columns.indptr)
    centred = columns.data - np.repeat(mean, stored)
    total = np.bincount(
        np.repeat(np.arange(d), stored), weights=centred**2, minlength=d
    ).astype(np.float64)  # of no entries at all, numpy counts integers
    total += (n - stored) * mean**2
    variance = total / (n - ddof)
    constant = (columns.max(axis=0) - columns.min(axis=0)).toarray().ravel() == 0
    if not prepare.center:
        constant = variance == 0
    if prepare.scale:
        scales = prepare.scales(variance, constant)
        variance = np.ones(d)
    else:  # exactly zero, whatever the rounding of the mean
        scales = np.where(constant, np.inf, 1.0)
    variance[constant] = 0.0
    source = SparseDataSource(columns, mean, variance, 1 / (scales * np.sqrt(n - ddof)))
    if source.entry_error() > 1e-9 * float(variance.max()):
        warnings.warn(
            "X is sparse with means that are large beside its deviations: its "
            f"covariances are computed to {source.entry_error():.1g} only, which keeps "
            "proofs from closing. Pass X as a dense array, or subtract a constant.",
            stacklevel=3,
        )
    return source


def pairwise_data(
    X: FloatArray, gaps: np.ndarray, prepare: Preparation
) -> PairwiseSource:
    n, d = X.shape
    center, ddof, names = prepare.center, prepare.ddof, prepare.names
    observed = (~gaps).astype(np.float64)
    counts = observed.sum(axis=0)
    if not counts.all():
        empty = np.flatnonzero(counts == 0).tolist()
        raise ValueError(
            f"feature(s) {describe(empty, names)} have no values at all; drop them."
        )
    filled = np.where(gaps, 0.0, X)
    lowest = np.nanmin(X, axis=0)
    constant = lowest == np.nanmax(X, axis=0)
    if center:
        # Any shift leaves a centred product as it is; this one saves digits, and makes
        # a constant exactly zero.
        shift = np.where(constant, lowest, filled.sum(axis=0) / counts)
        filled = np.where(gaps, 0.0, X - shift)
    else:
        constant &= lowest == 0
    source = PairwiseSource(filled, observed, ddof, center)
    # Two features share at least count_i + count_j − n samples, so the full check is
    # needed only if the two most incomplete ones could share too few.
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
    if prepare.scale:
        source.scale = prepare.scales(source.diagonal(), constant)
    return source


def mapped_data(X: Any, prepare: Preparation) -> MappedDataSource | None:
    """Means and scales of data on disk, in parts; None if values are missing."""
    n, d = X.shape
    first = np.asarray(X[0], dtype=np.float64)
    constant = np.ones(d, dtype=bool)
    total = np.zeros(d)
    for part in sample_parts(n, d):
        block = np.asarray(X[part], dtype=np.float64)
        if not np.isfinite(block).all():
            return None  # the dense path says what is wrong, or fills the gaps
        constant &= (block == first).all(axis=0)
        total += (block - first).sum(axis=0)
    if prepare.center:
        mean = np.where(constant, first, first + total / n)
    else:
        mean, constant = np.zeros(d), constant & (first == 0)
    factor = np.full(d, 1 / np.sqrt(n - prepare.ddof))
    source = MappedDataSource(X, mean, factor)
    if prepare.scale:
        source.factor = factor / prepare.scales(source.diagonal(), constant)
        source = MappedDataSource(X, mean, source.factor)
    return source


def accumulate(
    chunks: Iterable[Any],
    prepare: Preparation,
    memory_limit: int | None,
) -> tuple[MomentSource, tuple[str, ...] | None]:
    """Moments of chunks of samples, each merged into those before it."""
    if hasattr(chunks, "shape") or not hasattr(chunks, "__iter__"):
        raise TypeError(
            f"chunks is of type {type(chunks).__name__}; pass several tables of rows, "
            "such as [X[:1000], X[1000:]], or one table to Covariance.from_data."
        )
    center, ddof = prepare.center, prepare.ddof
    n, n_chunks, names = 0, 0, None
    for chunk in chunks:
        values, chunk_names = split_names(chunk)
        block = values.toarray() if is_sparse(values) else values
        block = numeric_array(block, "a chunk")
        if n == 0:
            d, names, first = block.shape[1], chunk_names, block[0].copy()
            if memory_limit is not None and 16 * d**2 > memory_limit:
                raise MemoryLimitError(
                    f"memory_limit = {memory_limit:,} bytes is too small: {d:,} "
                    f"features need {16 * d**2:,}; raise it, or pass all data at once "
                    "to Covariance.from_data, which forms no d × d matrix."
                )
            moments, mean = np.zeros((d, d)), np.zeros(d)
            constant = np.ones(d, dtype=bool)
        if block.shape[1] != d:
            raise ValueError(
                f"chunk {n_chunks} has {block.shape[1]} columns and the first has {d}; "
                "pass chunks of rows with the same features."
            )
        if not np.isfinite(block).all():
            raise ValueError(
                f"chunk {n_chunks} has missing or infinite values; fill or drop them."
            )
        constant &= (block == first).all(axis=0)
        m = len(block)
        if center:
            own = block.mean(axis=0)
            centred = block - own
            moments += centred.T @ centred
            step = own - mean
            moments += np.outer(step, step) * (n * m / (n + m))
            mean += step * (m / (n + m))
        else:
            moments += block.T @ block
        n, n_chunks = n + m, n_chunks + 1
    if n - ddof < 1:
        raise ValueError(
            f"the chunks hold {n} sample(s), too few for ddof = {ddof}; pass at least "
            f"{ddof + 1} rows."
        )
    moments /= n - ddof
    if center:  # exactly, whatever the rounding of their means
        moments[constant], moments[:, constant] = 0.0, 0.0
    variances = moments.diagonal().copy()
    largest = float((variances + n / (n - ddof) * mean**2).max())
    error = 4 * (n + 4 * n_chunks) * EPS * largest
    if prepare.scale:
        known = names if prepare.names is None else prepare.names
        still = ~(variances > 0)
        scales = replace(prepare, names=known).scales(variances, still)
        moments /= scales
        moments /= scales[:, None]
        np.fill_diagonal(moments, np.where(still, 0.0, 1.0))
        error /= float(scales.min()) ** 2
    return MomentSource(moments, error), names
