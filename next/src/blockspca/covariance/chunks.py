"""The covariance of samples that come in chunks, each read once.

A point m near the means comes from the first chunk, and A is added up about it:
S = Σ (x − m)(x − m)', t = Σ (x − m), A = D (S − t t'/n) D. That is `moments` of the
columns x − m, with one rounding more for the difference: the error is that of
`moment_error` for sums of chunks, with ‖(x_j − m_j) D_j‖² for the moments. If the first
chunk has the share p of all samples, that is at most 1/p times A_jj: the samples near m
contribute p (1 − p) Δ² to the variance if the others are Δ away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..validation import FloatArray, check_names
from .kinds import table_of
from .moments import (
    EXTREME,
    Preparation,
    Sums,
    add_block,
    near,
    refuse_gaps,
    refuse_variances,
    sums_about,
)
from .rounding import moment_error
from .sources import Matrix
from .tables import ALL, ENTRIES, Table


@np.errstate(over="ignore", invalid="ignore")  # `finished` refuses the results
def accumulated(
    chunks: Iterable[Any], prepare: Preparation, feature_names: Sequence[str] | None
) -> tuple[Matrix, tuple[str, ...] | None]:
    """Return the covariance of chunks and the names of its features."""
    if hasattr(chunks, "shape") or not hasattr(chunks, "__iter__"):
        raise TypeError(
            f"chunks is of type {type(chunks).__name__} and must be several tables; "
            "use [X[:1000], X[1000:]], or Covariance.from_data for one table."
        )
    n = joins = longest = 0
    names: tuple[str, ...] | None = None
    sums: Sums | None = None
    for number, chunk in enumerate(chunks):
        table, own = table_of(chunk, f"chunk {number}")
        rows, d = table.shape
        refuse_gaps(table, own, f"chunk {number}", "fill them")
        if sums is None:
            names = check_names(own if feature_names is None else feature_names, d)
            prepare = replace(prepare, names=names)
            point = means_of(table) if prepare.center else np.zeros(d)
            sums, S = Sums(d), np.zeros((d, d))
        if d != len(point):
            raise ValueError(
                f"chunk {number} has {d} columns and must have {len(point)}; use "
                "chunks with the same features."
            )
        step = max(256, ENTRIES // d)
        for start in range(0, rows, step):
            block = table.take(ALL, slice(start, min(start + step, rows)))
            add_block(sums, point, None, block, n + start)
            block -= point
            S += block.T @ block
            joins, longest = joins + 1, max(longest, len(block))
        n += rows
    if sums is None:
        raise ValueError("chunks are empty and cannot be; use at least one table.")
    prepare.refuse_few(n)
    return finished(S, sums, n, longest + joins + 4, joins, prepare), names


def means_of(table: Table) -> FloatArray:
    """Return a number near the mean of each column; a constant column's is itself."""
    first = table.take(ALL, slice(0, 1))[0]
    n = table.shape[0]
    return near(first + sums_about(table, first, None, n).total / n, first)


def finished(
    S: FloatArray, sums: Sums, n: int, products: int, joins: int, prepare: Preparation
) -> Matrix:
    """Return A from sums about a point."""
    total = sums.total if prepare.center else np.zeros(len(S))
    constant = sums.rows[5] == 0
    variance = (sums.squares - total**2 / n) / (n - prepare.ddof)
    variance = np.where(constant, 0.0, np.maximum(variance, 0.0))
    if prepare.scale:
        vary = variance[~constant]
        if len(vary) and not 1 / EXTREME < vary.min() <= vary.max() < EXTREME:
            raise ValueError(
                "chunks have numbers out of range: a variance is below 2**-300 or "
                "above 2**300; multiply columns by a power of two, or use "
                "Covariance.from_data."
            )
    else:
        refuse_variances(variance, constant, sums.rows[4].max())
    D = 1 / (prepare.deviations(variance, constant) * np.sqrt(n - prepare.ddof))
    S -= np.outer(total, total / n)
    S *= D
    S *= D[:, None]
    A = (S + S.T) / 2
    np.fill_diagonal(A, np.where(constant, 0.0, 1.0) if prepare.scale else variance)
    error = moment_error(products, joins, float((sums.squares * D**2).max()))
    return Matrix(A, error, psd=True, n_samples=n)
