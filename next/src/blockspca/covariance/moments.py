"""Means, scales and ranges of the columns of a table: two passes, for all tables.

The first pass finds the means, the second centres about them; both take the fingerprint
of the numbers, so that a table that changes while it is read is refused. A table whose
squares leave the range of floats is read in other units if `scale` allows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..linalg.rounding import EPS
from ..messages import count, warn_caller
from ..validation import FloatArray, describe_features
from .identity import DataChangedError, Marks
from .tables import ALL, Scaled, Table

FAR = 2.0**200  # data with a larger variance, or one below 1 / FAR, are refused
EXTREME = 2.0**300  # columns with larger numbers, or below 1 / EXTREME, get other units

NO_DIGITS = (
    "X has means so large beside the deviations that its covariances have no digits; "
    "subtract a constant from each column."
)
NO_VARIANCE = (
    "X has no variance: all features are constant, so there is nothing to explain; "
    "pass data that vary."
)


@dataclass(frozen=True)
class Preparation:
    """The treatment of the columns of data; see `from_data`."""

    center: bool
    scale: bool
    ddof: int
    constant: Literal["warn", "ignore", "raise"] = "warn"
    names: tuple[str, ...] | None = None

    def refuse_few(self, n: int) -> None:
        """Refuse fewer samples than a covariance needs."""
        if n - self.ddof < 1:
            raise ValueError(
                f"X has {count(n, 'sample')}, too few for ddof = {self.ddof}; pass at "
                f"least {self.ddof + 1}, or use a smaller ddof."
            )

    def deviations(self, variance: FloatArray, constant: NDArray[np.bool_]) -> Any:
        """Return the divisors of columns: infinity for constant ones."""
        if constant.all():
            raise ValueError(NO_VARIANCE)
        if not self.scale:
            return np.where(constant, np.inf, 1.0)
        if constant.any() and self.constant != "ignore":
            columns = np.flatnonzero(constant).tolist()
            text = (
                f"X has {len(columns)} constant feature(s): "
                f"{describe_features(columns, self.names)}; with scale=True they"
            )
            if self.constant == "raise":
                raise ValueError(
                    f"{text} cannot be divided by their deviation; drop them, or use "
                    "Covariance.from_data(..., constant='ignore'): no loading for them."
                )
            warn_caller(
                f"{text} get no loading; drop them, or use Covariance.from_data(..., "
                "scale=True, constant='ignore')."
            )
        return np.sqrt(np.where(constant, np.inf, variance))


class Sums:
    """Sums over samples (`_kernels/moments.py`), and the fingerprint of the columns."""

    def __init__(self, d: int) -> None:
        self.rows = np.zeros((7, d))
        self.marks: Marks = np.zeros(d, dtype=np.uint64)

    def __add__(self, other: Sums) -> Sums:
        """Add the sums of other samples."""
        result = Sums(len(self.marks))
        result.rows = self.rows + other.rows
        result.rows[4] = np.maximum(self.rows[4], other.rows[4])
        result.marks = self.marks + other.marks
        return result

    @property
    def total(self) -> FloatArray:
        """Σ w (x − m)."""
        return np.asarray(self.rows[0] + self.rows[1])

    @property
    def squares(self) -> FloatArray:
        """Σ w (x − m)²."""
        return np.asarray(self.rows[2] + self.rows[3])


def add_block(
    sums: Sums, shift: FloatArray, weights: FloatArray | None, block: Any, start: int
) -> None:
    """Add a block of samples to sums about a shift."""
    n = block.shape[0]
    w = np.ones(n) if weights is None else weights[start : start + n]
    if isinstance(block, np.ndarray):
        from .._kernels.moments import add_dense

        bits = block.view(np.uint64)
        add_dense(block, bits, shift, w, start, sums.rows, sums.marks)
        sums.rows[6] += w.sum()
    else:
        from .._kernels.sparse_moments import add_sparse

        parts = arrays_of(block)
        add_sparse(*parts, shift, w, start, sums.rows, sums.marks)


def sums_of_block(
    shift: FloatArray, weights: FloatArray | None, block: Any, start: int
) -> Sums:
    """Return the sums of one block."""
    sums = Sums(len(shift))
    add_block(sums, shift, weights, block, start)
    return sums


def arrays_of(X: Any) -> tuple[Any, Any, Any]:
    """Return pointers, indices and values of a CSR or CSC matrix for kernels."""
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return X.indptr.astype(np.int64), indices, np.ascontiguousarray(X.data)


def sums_about(
    table: Table, shift: FloatArray, weights: FloatArray | None, n: float
) -> Sums:
    """Return the sums of all samples about a shift, by one pass."""
    if table.remote:
        sums = table.total(partial(sums_of_block, shift, weights))
    else:
        sums = Sums(len(shift))

        def of_block(block: Any, start: int) -> int:
            add_block(sums, shift, weights, block, start)
            return 0

        table.total(of_block)
    if table.sparse:  # the zeros that are not stored
        rest = n - sums.rows[6]
        sums.rows[0] -= rest * shift
        sums.rows[2] += rest * shift**2
        sums.rows[5] += np.where(shift != 0, rest, 0.0)
    return sums


def marks_of(table: Table) -> Marks:
    """Return the fingerprint of each column."""
    return sums_about(table, np.zeros(table.shape[1]), None, 0.0).marks


def count_gaps(block: Any, start: int) -> NDArray[np.int64]:
    """Return how many numbers of each column are NaN, and how many are infinite."""
    if isinstance(block, np.ndarray):
        return np.array([np.isnan(block).sum(axis=0), np.isinf(block).sum(axis=0)])
    at, d = block.indices, block.shape[1]
    gaps = np.isnan(block.data), np.isinf(block.data)
    return np.array([np.bincount(at[gap], minlength=d) for gap in gaps])


@dataclass(frozen=True)
class Moments:
    """Columns c_j = √w (x_j − mean_j − rest_j) factor_j of a factor of A."""

    table: Table  #: in the units of `mean`
    weights: FloatArray | None
    n: int  #: Σ w
    mean: FloatArray
    rest: FloatArray
    negligible: bool  #: whether entries need no `rest`
    scale: FloatArray  #: infinite for constant columns
    factor: FloatArray
    variance: FloatArray  #: A_jj
    #: ‖√w (x_j − mean_j) factor_j‖², or of x_j if the table is sparse
    uncentred: FloatArray
    marks: Marks
    scaled: bool

    @property
    def mean_and_scale(self) -> tuple[FloatArray, FloatArray]:
        """Means of the columns of X, and their divisors."""
        mean, scale = self.mean + self.rest, self.scale
        if isinstance(self.table, Scaled):
            e = self.table.exponents
            mean, scale = np.ldexp(mean, e), np.ldexp(scale, e)
        return mean, scale

    @property
    def root(self) -> FloatArray | None:
        """√w."""
        return None if self.weights is None else np.sqrt(self.weights)


class GapsError(ValueError):
    """X has NaN or infinite values."""


def moments_of(
    table: Table, prepare: Preparation, weights: FloatArray | None = None
) -> Moments:
    """Compute the moments of a table; refuse gaps and numbers out of range."""
    n = table.shape[0] if weights is None else int(weights.sum())
    prepare.refuse_few(n)
    original = table
    with np.errstate(over="ignore", invalid="ignore"):
        at = 0 if weights is None else int(np.argmax(weights > 0))
        first = table.take(ALL, slice(at, at + 1))[0]
        zeros = np.zeros(len(first))
        shift = first if prepare.center and not table.sparse else zeros
        shift = np.where(np.isfinite(shift), shift, 0.0)
        sums = sums_about(table, shift, weights, n)
        marks, largest = sums.marks, sums.rows[4]
        if not (np.isfinite(sums.squares) & (largest < np.inf)).all():
            fix = (
                "fill them, drop those features, or use Covariance.from_data(..., "
                "missing='pairwise')"
            )
            refuse_gaps(table, prepare.names, "X", fix)
        extreme = (largest > EXTREME) | ((largest < 1 / EXTREME) & (largest > 0))
        if prepare.scale and extreme.any():
            exponents = np.where(extreme, np.frexp(largest)[1], 0)
            table = Scaled(table, exponents)
            first, shift = np.ldexp(first, -exponents), np.ldexp(shift, -exponents)
            sums = sums_about(table, shift, weights, n)
        mean = zeros
        if prepare.center:
            mean = near(shift + sums.total / n, first)
            sums = sums_about(table, mean, weights, n)
        constant = sums.rows[5] == 0
        rest = sums.total / n if prepare.center else zeros
        variance = (sums.squares - n * rest**2) / (n - prepare.ddof)
        variance = np.where(constant, 0.0, np.maximum(variance, 0.0))
    if prepare.center and table is original and (sums.marks != marks).any():
        raise DataChangedError(
            "X changed while it was read; leave X as it is until the call ends, or "
            "pass a copy in memory."
        )
    if prepare.scale and not (constant | (variance > 0)).all():
        raise ValueError(NO_DIGITS)
    if not prepare.scale:
        refuse_variances(variance, constant, largest.max())
    scale = prepare.deviations(variance, constant)
    factor = 1 / (scale * np.sqrt(n - prepare.ddof))
    uncentred = sums.squares * factor**2
    if table.sparse:
        uncentred = uncentred + n * (mean * factor) ** 2
    if prepare.scale:
        variance = np.where(constant, 0.0, 1.0)
    negligible = bool((n * (rest * factor) ** 2 <= EPS * variance.max()).all())
    return Moments(
        table, weights, n, mean, rest, negligible, scale, factor, variance, uncentred,
        marks, prepare.scale,
    )  # fmt: skip


def refuse_gaps(
    table: Table, names: tuple[str, ...] | None, argument: str, fix: str
) -> None:
    """Refuse NaN and infinite values, if there are any."""
    missing, infinite = table.total(count_gaps)
    for gaps, kind in ((infinite, "infinite"), (missing, "missing")):
        columns = np.flatnonzero(gaps).tolist()
        if columns:
            error = GapsError if kind == "missing" else ValueError
            fix = fix if kind == "missing" else "replace them"
            raise error(
                f"{argument} has {int(gaps.sum())} {kind} value(s), in feature(s) "
                f"{describe_features(columns, names)}; {fix}."
            )


def near(mean: FloatArray, first: FloatArray) -> FloatArray:
    """Return means, but `first` for columns that are constant up to rounding."""
    return np.where(np.abs(mean - first) <= 4 * EPS * np.abs(first), first, mean)


def refuse_variances(
    variance: FloatArray, constant: NDArray[np.bool_], top: float
) -> None:
    """Refuse data whose largest variance is out of range."""
    largest = float(variance.max())
    if largest == 0 and not constant.all():
        largest = math.nan  # all squares underflow
    refuse_far(largest, "X", "the largest variance", top)


def refuse_far(largest: float, argument: str, kind: str, top: float) -> None:
    """Refuse numbers whose fourth powers may not be floats; `top` is the largest."""
    if largest == 0 or 1 / FAR <= largest <= FAR:
        return
    exponent, value = -int(np.frexp(top)[1]), "no float"
    if 0 < largest < np.inf:
        value = f"{largest:.3g}"
        exponent = round(np.log2(largest) * (-1 if argument == "A" else -0.5))
    fix = f"multiply {argument} by 2.0**{exponent}"
    raise ValueError(
        f"{argument} has numbers out of range: {kind} is {value} and must lie "
        f"between 2**-200 and 2**200; {fix}" + ("." if argument == "A" else
        ", or use Covariance.from_data(..., scale=True).")
    )  # fmt: skip
