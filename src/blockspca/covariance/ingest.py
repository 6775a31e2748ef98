"""Makes sources from data: computes means and scales, refuses what is out of range."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np

from .._arguments import Argument, NamesArguments, value_error
from .._validation import FloatArray, check_flag, describe
from .._warnings import warn_caller
from ..status import OPTIMAL_GAP
from .fingerprint import Fingerprint, part_fingerprint
from .rounding import (
    EPS,
    SMALLEST_VARIANCE,
    additions,
    column_exponents,
    column_sums,
    in_units,
    out_of_range,
    split_mean,
)
from .sources import (
    DenseDataSource,
    MappedDataSource,
    Source,
    SparseDataSource,
    sample_parts,
)

FAR = 2.0**300  # squares of numbers near 1, or as far from it, keep all their digits
PART_ENTRIES = 2**19  # of data in memory, 4 MiB, prepared at a time

NO_VARIANCE = (
    "X has no variance: every feature is constant, so there is nothing to explain; "
    "pass data that vary."
)

IGNORED = Argument("constant", "ignore")
PAIRWISE = Argument("missing", "pairwise")


class ConstantFeatures(NamesArguments, UserWarning):
    """Features that are to be divided by their deviations, which are zero."""


@dataclass(frozen=True)
class Preparation:
    """What is done to the columns of data; see `Covariance.from_data`."""

    center: bool
    scale: bool
    ddof: int
    names: tuple[str, ...] | None
    constant: Literal["warn", "ignore", "raise"] = "warn"

    def __post_init__(self) -> None:
        check_flag(self.center, "center")
        check_flag(self.scale, "scale")
        ddof = self.ddof
        if isinstance(ddof, bool) or not isinstance(ddof, Integral) or int(ddof) < 0:
            raise ValueError(f"ddof = {ddof!r} is not an integer ≥ 0; pass 0 or 1.")
        if self.constant not in ("warn", "ignore", "raise"):
            raise ValueError(
                f"constant = {self.constant!r} is not known; pass 'warn', 'ignore' or "
                "'raise'."
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
        columns = np.flatnonzero(constant).tolist()
        scaled = Argument("scale", True)
        said = (
            f"{scaled}, but {len(columns)} feature(s) are constant: "
            f"{describe(columns, self.names)}"
        )
        if self.constant == "raise":
            unscaled = Argument("scale", False)
            raise value_error(
                f"{said}; drop them, pass {IGNORED} to give them no loading, or pass "
                f"{unscaled}.",
                *(scaled, IGNORED, unscaled),
            )
        if self.constant == "warn":
            warn_caller(
                ConstantFeatures(
                    f"{said}; they get no loading. Drop them, or pass {IGNORED}, to go "
                    "without this warning.",
                    *(scaled, IGNORED),
                )
            )
        return np.sqrt(np.where(constant, np.inf, variance))


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
    refuse_nonfinite(
        X, argument, "its stored entries", f" ({PAIRWISE} needs dense data)"
    )
    return X


def refuse_nonfinite(X: Any, argument: str, entries: str, hint: str = "") -> None:
    """Refuse a sparse matrix with stored entries that are NaN or infinite."""
    count = int((~np.isfinite(X.data)).sum())
    if count:
        raise value_error(
            f"{argument} has {count} NaN or infinite value(s) among {entries}; replace "
            f"or drop them{hint}.",
            PAIRWISE,
        )


def refuse_out_of_range(
    variance: FloatArray, constant: np.ndarray, prepare: Preparation
) -> None:
    """Refuse variances that overflow, vanish, or are all too small to be exact.

    A small variance beside a large one is accepted: it is exact to within
    `entry_error`, which the largest one determines.
    """
    # Multiples of sums of d variances are formed later on.
    largest = np.finfo(float).max / (4 * len(variance))
    too_large = ~(variance <= largest)
    if too_large.any():
        bad = np.flatnonzero(too_large).tolist()
        raise ValueError(
            f"X overflows: the variance of feature(s) {describe(bad, prepare.names)} "
            "is too large for float64; rescale X."
        )
    vanished = ~constant & (variance == 0)
    if not vanished.any() and not 0 < variance.max() < SMALLEST_VARIANCE:
        return
    if not vanished.any():
        vanished = ~constant
    bad = np.flatnonzero(vanished).tolist()
    raise ValueError(
        f"X underflows: the variance of feature(s) {describe(bad, prepare.names)} is "
        "not zero but too small for float64; rescale X."
    )


def refuse_overflow(source: Source) -> Source:
    """Refuse data whose variances are in range but whose sums of squares are not."""
    with np.errstate(over="ignore"):
        if not np.isfinite(source.entry_error()):
            raise ValueError(
                "X overflows: its sums of squares are too large for float64; rescale X."
            )
    return source


def _column_parts(n: int, d: int) -> list[slice]:
    """Blocks of columns that fit the cache, if 64 columns do; else all columns."""
    step = PART_ENTRIES // n
    if step < 64:
        return [slice(0, d)]
    return [slice(j, min(j + step, d)) for j in range(0, d, step)]


def _row_parts(n: int, d: int) -> list[slice]:
    """Blocks of rows that fit the cache."""
    step = max(1, PART_ENTRIES // d)
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _roundings(n: int, d: int) -> int:
    """Roundings of a sum over the samples of d columns, as `_centred` adds them up."""
    return additions(n, _row_parts(n, d)[0].stop)


def _centred(
    X: FloatArray, prepare: Preparation, out: FloatArray
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Write C = (X − μ) / sqrt(n − ddof) to `out`; see `rounding.py`.

    Returns
    -------
    variance, uncentred : (d,) arrays
        ‖c_j‖² after the second centring and before it.
    constant : (d,) array of bool
    """
    n, d = X.shape
    factor = 1 / np.sqrt(n - prepare.ddof)
    parts = _row_parts(n, d)
    again, variance = np.zeros(d), np.zeros(d)
    point = X[0] if prepare.center else np.zeros(d)
    constant = np.ones(d, dtype=bool)
    total = np.zeros(d)
    for part in parts:
        constant &= (X[part] == point).all(axis=0)
        if prepare.center:
            total += X[part].sum(axis=0)
    if prepare.center:
        # The rounded mean of a constant column need not be that constant.
        mean = np.where(constant, X[0], total / n)
        for part in parts:
            np.subtract(X[part], mean, out=out[part])
            again += out[part].sum(axis=0)
        again /= n
    for part in parts:
        if prepare.center:
            out[part] -= again
            out[part] *= factor
        else:
            np.multiply(X[part], factor, out=out[part])
        variance += np.einsum("ij,ij->j", out[part], out[part])
    return variance, variance + n * (again * factor) ** 2, constant


def dense_data(X: FloatArray, prepare: Preparation) -> DenseDataSource:
    """The source for dense data in memory: C is computed once, from X as it is now."""
    n, d = X.shape
    C = np.empty((n, d))
    variance, uncentred, diagonal = np.empty(d), np.empty(d), np.empty(d)
    constant = np.empty(d, dtype=bool)
    squares = 0  # roundings of the longest sum of squares
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        for part in _column_parts(n, d):
            squares = max(squares, _roundings(n, part.stop - part.start))
            found = _centred(X[:, part], prepare, C[:, part])
            variance[part], uncentred[part], constant[part] = found
            if not prepare.scale:
                continue
            lost = part.start + np.flatnonzero(out_of_range(variance[part]))
            lost = lost[~constant[lost]]
            if len(lost):  # any unit of a feature gives the same correlations
                units = column_exponents(np.abs(X[:, lost]).max(axis=0))
                squares = max(squares, _roundings(n, len(lost)))
                again = np.empty((n, len(lost)))
                found = _centred(np.ldexp(X[:, lost], -units), prepare, again)
                C[:, lost], (variance[lost], uncentred[lost], _) = again, found
            used = ~constant[part]
            C[:, part] /= np.sqrt(np.where(used, variance[part], np.inf))
            diagonal[part] = np.einsum("ij,ij->j", C[:, part], C[:, part])
    refuse_out_of_range(variance, constant, prepare)
    if not prepare.scale:
        return DenseDataSource(C, uncentred, variance, 0)
    uncentred /= prepare.scales(variance, constant) ** 2
    return DenseDataSource(C, uncentred, diagonal, squares)


def sparse_data(X: Any, prepare: Preparation) -> SparseDataSource:
    """Sparse data, stored by columns; X is not used any more."""
    columns = X.tocsc()
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        mean, variance, constant = _sparse_moments(columns, prepare)
        lost = out_of_range(variance) & ~constant
        if prepare.scale and lost.any():  # any unit gives the same correlations
            columns = X.tocsc()
            largest = abs(columns).max(axis=0).toarray().ravel()
            units = np.where(lost, column_exponents(largest), 0)
            stored = np.diff(columns.indptr)
            columns.data = np.ldexp(columns.data, -np.repeat(units, stored))
            mean, variance, constant = _sparse_moments(columns, prepare)
    refuse_out_of_range(variance, constant, prepare)
    _, variance, factor = sparse_scales(prepare, variance, constant, X.shape[0])
    source = SparseDataSource(columns, mean, variance, factor)
    refuse_overflow(source)
    warn_of_means(source, "Pass X as a dense array, or subtract a constant.")
    return source


def sparse_scales(
    prepare: Preparation, variance: FloatArray, constant: np.ndarray, n: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The divisors of columns, their variances after it, and the diagonal of D."""
    if prepare.scale:
        scales = prepare.scales(variance, constant)
        variance = np.ones(len(variance))
    else:  # exactly zero, whatever the rounding of the mean
        scales = np.where(constant, np.inf, 1.0)
    variance[constant] = 0.0
    return scales, variance, 1 / (scales * np.sqrt(n - prepare.ddof))


def warn_of_means(source: SparseDataSource, remedy: str) -> None:
    """Warn where means cost so many digits that a gap may stay open."""
    # The relative gap of "optimal": with a larger error few bounds are that tight.
    if source.entry_error() > OPTIMAL_GAP * float(source.diagonal().max()) > 0:
        warn_caller(
            "X is sparse with means that are large beside its deviations: its "
            f"covariances are computed to {source.entry_error():.1g} only, which may "
            f"keep proofs from closing. {remedy}"
        )


def _sparse_moments(
    columns: Any, prepare: Preparation
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Mean and variance of columns (CSC), and which are constant.

    A column without zeros is centred in place: that costs no memory and keeps digits.
    The others have a deviation of at least |mean| / sqrt(n), so that their means cost
    few digits.
    """
    n, d = columns.shape
    stored = np.diff(columns.indptr)
    owner = np.repeat(np.arange(d), stored)
    high = columns.max(axis=0).toarray().ravel()
    low = columns.min(axis=0).toarray().ravel()
    if prepare.center:
        constant = high == low
        mean = column_sums(columns.data, columns.indptr) / n
        full = stored == n
        if full.any():
            shift = np.where(full, np.where(constant, high, mean), 0.0)
            columns.data -= shift[owner]
            again = column_sums(columns.data, columns.indptr) / n
            mean = np.where(full, again, mean)
    else:
        constant = (high == 0) & (low == 0)
        mean = np.zeros(d)
    centred = columns.data - mean[owner]
    total = column_sums(centred**2, columns.indptr)
    total += (n - stored) * mean**2
    total[constant] = 0.0
    return mean, total / (n - prepare.ddof), constant


def mapped_data(X: Any, prepare: Preparation) -> MappedDataSource | None:
    """Means and scales of data on disk, in parts; None if values are missing."""
    n, d = X.shape
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        sums = _sums_on_disk(X, None)
        if sums is None:
            return None  # the dense path says what is wrong, or fills the gaps
        largest, units = sums.largest, None
        extreme = (largest > FAR) | ((largest < 1 / FAR) & (largest > 0))
        if prepare.scale and extreme.any():
            # any unit of a feature gives the same correlations
            units = np.where(extreme, column_exponents(largest), 0)
            sums = _sums_on_disk(X, units)
            assert sums is not None
        constant = sums.constant
        factor = np.full(d, 1 / np.sqrt(n - prepare.ddof))
        mean, rest = np.zeros(d), np.zeros(d)
        if prepare.center:
            offset = np.where(constant, 0.0, sums.total / n)
            mean, rest = split_mean(sums.first, offset)
        else:
            constant &= sums.first == 0
        variance = MappedDataSource(X, mean, factor, rest, units).diagonal()
    refuse_out_of_range(variance, constant, prepare)
    scales = np.ones(d)
    if prepare.scale:
        scales = prepare.scales(variance, constant)
        factor = factor / scales
        variance = np.where(constant, 0.0, 1.0)
    # The rest of the mean counts by its square; below eps it need not be subtracted.
    negligible = (n * (rest * factor) ** 2 <= EPS * variance).all()
    rest_or_none = None if negligible else rest
    source = MappedDataSource(X, mean, factor, rest_or_none, units)
    source.seen = sums.seen
    exponents = np.zeros(d, dtype=np.intc) if units is None else units
    source.given_moments = (
        np.ldexp(mean + rest, exponents),
        np.ldexp(scales, exponents),
    )
    return source


@dataclass
class _Sums:
    """What one pass over data on disk finds; `total` is Σ (x − first)."""

    first: FloatArray
    constant: np.ndarray
    total: FloatArray
    largest: FloatArray
    seen: Fingerprint


def _sums_on_disk(X: Any, units: np.ndarray | None) -> _Sums | None:
    """One pass over X · 2^−units, in parts; None if a value is missing or infinite."""
    n, d = X.shape
    first = in_units(np.array(X[0], dtype=np.float64), units)
    ones, zeros = np.ones(d, dtype=bool), np.zeros(d)
    sums = _Sums(first, ones, zeros, zeros.copy(), np.zeros(d, dtype=np.uint64))
    for part in sample_parts(n, d):
        block = np.asarray(X[part], dtype=np.float64)
        if not np.isfinite(block).all():
            return None
        sums.seen += part_fingerprint(block, part.start)
        block = in_units(block, units)
        sums.constant &= (block == first).all(axis=0)
        # Relative to the first sample, as a large mean would cost the sum digits.
        sums.total += (block - first).sum(axis=0)
        np.maximum(sums.largest, block.max(axis=0), out=sums.largest)
        np.maximum(sums.largest, -block.min(axis=0), out=sums.largest)
    return sums
