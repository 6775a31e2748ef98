"""Rows of A cut to their k largest entries (Chan, Papailiopoulos & Rubinstein 2016)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..guarantee import within_factor
from ..numerics.linalg import largest_entries, leading_eigenvector, rough_eigenpair
from .base import Deadline
from .template import CovarianceSolver, SolverRun

ROWS_BETWEEN_CLOCKS = 512
EIGENVECTOR_SIZE = 500  # features; above, an iterative eigenvector is faster
EIGENVECTOR_TOLERANCE = 1e-6  # only the order of its entries matters


class Chan(CovarianceSolver):
    """The best x'Ax over the rows of A and its leading eigenvector, cut to k entries.

    For positive semidefinite A, objective ≥ OPT / min(√k, d^{1/3}): the row a_i, cut to
    its k largest entries and of length t_i then, gives at least t_i²/A_ii ≥ t_i, and
    OPT ≤ √k max_i t_i; the eigenvector takes care of large k. The best vector's
    loadings are then optimised on its support.

    Notes
    -----
    Cost: O(d²k) at most for a matrix in memory. Because x'Ax ≤ Σ_{j∈S} |x_j| t_j for a
    unit vector x with k entries, most rows need no evaluation.

    `solve_covariance` takes a `Covariance` and never forms A. For sparse data X it goes
    through the samples that have feature i, O(Σ_s nnz(x_s)²) for all rows together.

    On Ctrl-C or at the time limit, the best of the rows seen so far is returned.

    References
    ----------
    Chan, S. O., Papailiopoulos, D. and Rubinstein, A. (2016). On the approximability of
    sparse PCA. Conference on Learning Theory.

    Examples
    --------
    >>> from blockspca.solvers import Chan
    >>> Chan().solve([[2, 1, 0], [1, 2, 0], [0, 0, 2.5]], 2).support
    array([0, 1])
    >>> Chan.guarantee.factor(100, 10_000)  # √k is the smaller one
    10.0
    """

    name = "chan"
    guarantee = within_factor(lambda k, d: min(math.sqrt(k), d ** (1 / 3)))

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        run.offer(largest_entries(run.variances, k))
        row, run.nodes = best_row(A, k, run.deadline)
        run.offer(row)
        if run.time_is_up():
            return
        if len(A) <= EIGENVECTOR_SIZE:
            direction = leading_eigenvector(A)
        else:
            direction = _rough_eigenvector(A.__matmul__, run.variances)
        run.offer(largest_entries(direction, k))

    def _solve_covariance(self, cov: Covariance, k: int, run: SolverRun) -> None:
        """Without forming A; nodes are rows looked at.

        Rows that are equal, as those of duplicated features are, count once.
        """
        run.offer(largest_entries(run.variances, k))
        direction = _rough_eigenvector(cov.matvec, run.variances)
        run.offer(largest_entries(direction, k))
        best = -math.inf
        for support, value, rows in _rows_of(cov, k):
            if value > best:
                best = value
                run.offer(support)
            run.nodes += rows
            if run.time_is_up():
                return


def _cut(rows: FloatArray, k: int) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Cut rows to their k largest |entries|: positions, unit loadings, lengths."""
    d = rows.shape[1]
    kept = np.argpartition(np.abs(rows), d - k, axis=1)[:, d - k :]
    values = np.take_along_axis(rows, kept, axis=1)
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
    return kept, values / np.where(lengths > 0, lengths, 1.0)[:, None], lengths


def best_row(A: FloatArray, k: int, deadline: Deadline) -> tuple[NDArray[np.intp], int]:
    """Return the best support among the rows of A cut to k, and how many were cut."""
    d = len(A)
    step = max(1, ENTRIES_AT_ONCE // d)
    kept = np.empty((d, k), dtype=np.intp)
    loadings = np.empty((d, k))
    lengths = np.zeros(d)
    done = 0
    while done < d and not (done and deadline.passed()):
        part = slice(done, min(done + step, d))
        kept[part], loadings[part], lengths[part] = _cut(A[part], k)
        done = part.stop
    reach = lengths.copy()
    reach[done:] = math.inf  # a row not cut has no length to bound with
    bounds = (np.abs(loadings[:done]) * reach[kept[:done]]).sum(axis=1)
    order = np.argsort(-bounds, kind="stable")
    best, best_value = order[0], -math.inf
    size = 8  # grows, since the first few mostly decide
    start = 0
    while start < done and bounds[order[start]] > best_value:
        batch = order[start : start + size]
        start, size = start + len(batch), min(2 * size, step)
        x = np.zeros((len(batch), d))
        np.put_along_axis(x, kept[batch], loadings[batch], axis=1)
        objective = np.einsum("ij,ij->i", x @ A, x)
        winner = int(objective.argmax())
        if objective[winner] > best_value:
            best, best_value = batch[winner], float(objective[winner])
        if deadline.passed():
            break
    return np.sort(kept[best]), done


def _rough_eigenvector(
    product: Callable[[FloatArray], FloatArray], diagonal: FloatArray
) -> FloatArray:
    start = diagonal - diagonal.min() + 1e-3 * (1.0 + np.abs(diagonal).max())
    return rough_eigenpair(product, start, EIGENVECTOR_TOLERANCE)[1]


def _distinct_rows(cov: Covariance) -> NDArray[np.int64]:
    """One feature for each distinct row of A, as told by two random combinations."""
    directions = np.random.default_rng(0).standard_normal((cov.n_features, 2))
    fingerprints = np.column_stack([cov.matvec(directions), cov.diagonal()])
    _, first = np.unique(fingerprints, axis=0, return_index=True)
    # Rows of large variance first: they tend to be the best, and let others be skipped.
    first = first[np.argsort(-cov.diagonal()[first], kind="stable")]
    return first.astype(np.int64)


def _rows_of(cov: Covariance, k: int) -> Iterator[tuple[NDArray[np.intp], float, int]]:
    """Yield the best support and value of batch after batch of rows, and its size."""
    rows = _distinct_rows(cov)
    sparse = cov.sparse_data()
    if sparse is None:
        yield from _dense_rows(cov, k, rows)
        return
    from .._kernels import row_truncation

    best_of: Any = row_truncation.best_truncated_row
    X, mean, factor = sparse
    by_sample, by_feature = X.tocsr(), X.tocsc()
    by_mean = np.argsort(-np.abs(factor * mean), kind="stable")
    layout = [
        array
        for matrix in (by_sample, by_feature)
        for array in (
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data.astype(np.float64),
        )
    ]
    support = np.zeros(k, dtype=np.int64)
    best = -math.inf
    for start in range(0, len(rows), ROWS_BETWEEN_CLOCKS):
        batch = rows[start : start + ROWS_BETWEEN_CLOCKS]
        best = best_of(
            *layout, mean, factor, cov.diagonal(), by_mean, k, batch, best, support
        )
        yield np.sort(support), best, len(batch)


def _dense_rows(
    cov: Covariance, k: int, rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.intp], float, int]]:
    d = cov.n_features
    step = max(1, ENTRIES_AT_ONCE // d)
    variances = cov.diagonal()
    best = -math.inf
    for start in range(0, len(rows), step):
        batch = rows[start : start + step]
        kept, loadings, _ = _cut(cov.rows(batch), k)
        if cov.known_psd:  # x'Ax ≤ trace A_SS
            able = np.flatnonzero(variances[kept].sum(axis=1) > best)
            kept, loadings = kept[able], loadings[able]
        if len(kept) == 0:
            yield np.arange(k), -math.inf, len(batch)
            continue
        x = np.zeros((d, len(kept)))
        np.put_along_axis(x, kept.T, loadings.T, axis=0)
        objective = np.einsum("ij,ij->j", x, cov.matvec(x))
        winner = int(objective.argmax())
        best = max(best, float(objective[winner]))
        yield np.sort(kept[winner]), float(objective[winner]), len(batch)
