"""Covariances of dask arrays: entries, products and the scan, computed as dask tasks.

Each tile of A is one task and its row tops another; the tops of a chunk of features
are merged by a tree. Only tops, means and variances come back to the caller. If a
worker is lost, dask computes its tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, describe
from .device_data import is_on_device, on_host
from .device_gram import double_product, refuse_less_than_double
from .fingerprint import Fingerprint, part_fingerprint, refuse_change
from .ingest import Preparation, refuse_out_of_range
from .rounding import (
    UNIT_ROUNDOFF,
    column_exponents,
    moment_error,
    out_of_range,
    split_mean,
)
from .sources import Indices, UncentredSource, is_all
from .task_tree import bounds, summed, tree

Tops = tuple[FloatArray, NDArray[np.int64]]


def is_dask(value: object) -> bool:
    """Tell whether `value` is a dask array, without importing dask."""
    return type(value).__module__.startswith("dask.array")


class DaskSource(UncentredSource):
    """A = C'C with C = (X − μ) D, X a dask array in chunks of rows and columns.

    `given` is the array as it was passed and `seen` its fingerprint; X is that less its
    rounded means, which leaves means μ as small as rounding. `given_moments` are the
    means of `given`, and what its columns are divided by.
    """

    made_from = "a dask array"

    def __init__(
        self,
        X: Any,
        mean: FloatArray,
        factor: FloatArray,
        variance: FloatArray,
        given: Any,
        seen: Fingerprint,
    ) -> None:
        self.X, self.mean, self.factor = X, mean, factor
        self.given, self.seen = given, seen
        self._diagonal = variance
        self.n_samples, self.n_features = X.shape

    def columns(self, index: Indices | slice, start: int, stop: int) -> FloatArray:
        block = np.asarray(computed(self.X[start:stop, index]), dtype=np.float64)
        return (block - self.mean[index]) * self.factor[index]

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        left = self.columns(rows, 0, self.n_samples)
        if columns is rows:
            return left.T @ left
        if is_all(columns):
            return self._rows(left)
        return left.T @ self.columns(columns, 0, self.n_samples)

    def _rows(self, left: FloatArray) -> FloatArray:
        """left' C without gathering C."""
        product = computed(beside(self.X, left, axis=0).T @ self.X)
        return (product - np.outer(left.sum(axis=0), self.mean)) * self.factor

    def centred_image(self, x: FloatArray, shift: Any) -> FloatArray:
        scores = computed(self.X @ beside(self.X, x)) - shift
        total = scores.sum(axis=0)
        back: FloatArray = computed(self.X.T @ beside(self.X, scores, axis=0))
        return back - (self.mean * total if x.ndim == 1 else np.outer(self.mean, total))

    def gram(self, weights: FloatArray) -> FloatArray:
        gram = 0.0
        for j0, j1 in bounds(self.X.chunks[1]):
            C = self.columns(slice(j0, j1), 0, self.n_samples)
            gram = gram + (C * weights[j0:j1]) @ C.T
        return np.asarray(gram)

    def check_unchanged(self) -> None:
        """Compare with the fingerprint `seen`, by one more pass over the data."""
        import dask

        lines = dask.compute(_fingerprints(self.given))[0]
        refuse_change(self.seen, _added(lines))

    def entry_error(self) -> float:
        # μ is subtracted before the product in tiles, after it in rows and products.
        return self.rounding_of(self.n_samples)

    def rounding_of(self, products: int) -> float:
        """Bound the error of an entry whose sum of products takes so many roundings.

        μ is the mean of x − x₀, with x₀ the first sample, and |x₀ − μ| ≤ ‖z‖. Sums are
        added up chunk by chunk (`additions`), in whatever order.
        """
        n = self.n_samples
        sums = self.additions()
        shift = (sums + 3) * UNIT_ROUNDOFF * (1 + float(np.sqrt(n)))
        largest, factor = float(self.moments().max()), float(self.factor.max())
        error = moment_error(n, largest, factor, products=products, sums=sums)
        return error + 2 * shift**2 * largest

    def additions(self) -> int:
        """Roundings of a sum over all samples: in a chunk, and of chunks."""
        rows = self.X.chunks[0]
        return int(max(rows)) + len(rows)


def computed(*arrays: Any) -> Any:
    """Compute dask arrays, or lists of tasks; what is on a GPU comes to the host."""
    import dask

    found = [on_host(value) for value in dask.compute(*arrays)]
    return found if len(found) > 1 else found[0]


def beside(X: Any, values: np.ndarray, axis: int = 1) -> Any:
    """Return values for an operation along an axis of X, on the GPU if X is there."""
    if not is_on_device(X._meta):
        return values
    import dask.array as da

    chunks = (X.chunks[axis], *values.shape[1:])
    return da.from_array(values, chunks=chunks).map_blocks(_like, X._meta)


def _like(values: np.ndarray, other: Any) -> Any:
    """Values where another array is: in its library's memory."""
    return np.asarray(values, like=other)


def _fingerprints(X: Any) -> list[list[Any]]:
    """The fingerprint of every chunk, as a task."""
    import dask

    starts = [start for start, _ in bounds(X.chunks[0])]
    return [
        [dask.delayed(part_fingerprint)(block, start) for block in line]
        for start, line in zip(starts, X.to_delayed(), strict=True)
    ]


def _added(lines: list[list[Fingerprint]]) -> Fingerprint:
    """The fingerprint of the whole from those of its chunks, line by line."""
    return np.sum([np.concatenate(line) for line in lines], axis=0, dtype=np.uint64)


def dask_data(X: Any, prepare: Preparation) -> DaskSource:
    """Means and variances by two passes over the chunks; refuses what is not finite."""
    import dask
    import dask.array as da

    X = X.astype(np.float64)
    n, d = X.shape
    first = X[0]
    if is_on_device(X._meta):
        chunk = X.to_delayed()[0, 0]
        computed(dask.delayed(refuse_less_than_double)(chunk, chunk))
    # Relative to the first sample, so that a constant column has variance 0 exactly.
    offset, constant, finite, lines = computed(
        (X - first).mean(axis=0),
        (first == X).all(axis=0),
        da.isfinite(X).all(axis=0),
        _fingerprints(X),
    )
    if not finite.all():
        bad = np.flatnonzero(~finite).tolist()
        raise ValueError(
            "X has missing or infinite values, in feature(s) "
            f"{describe(bad, prepare.names)}; fill them or drop those features."
        )
    given = X
    mean, point, scales = np.zeros(d), np.zeros(d), np.ones(d)
    units = np.zeros(d, dtype=np.intc)
    if prepare.center:
        start = np.asarray(computed(first))
        point, mean = split_mean(start, np.where(constant, 0.0, offset))
        X = X - beside(X, point)
    else:
        constant &= np.asarray(computed(first)) == 0
    given_mean = point + mean
    variance = _variances(X, mean, prepare)
    lost = prepare.scale & ~constant & out_of_range(variance)
    if lost.any():  # any unit of a feature gives the same correlations
        units = np.where(lost, column_exponents(computed(abs(X).max(axis=0))), 0)
        X = da.ldexp(X, beside(X, -units))
        if prepare.center:  # now with all its digits
            mean = np.where(lost, np.array(computed(X.mean(axis=0))), mean)
        variance = _variances(X, mean, prepare)
    variance[constant] = 0.0
    refuse_out_of_range(variance, constant, prepare)
    factor = np.full(d, 1 / np.sqrt(n - prepare.ddof))
    if prepare.scale:
        scales = prepare.scales(variance, constant)
        factor = factor / scales
        variance = np.where(constant, 0.0, 1.0)
    source = DaskSource(X, mean, factor, variance, given, _added(lines))
    source.given_moments = (given_mean, np.ldexp(scales, units))
    return source


def _variances(X: Any, mean: FloatArray, prepare: Preparation) -> FloatArray:
    centred = X - beside(X, mean)
    # a product, as a power need not be rounded correctly on a GPU
    squares = (centred * centred).sum(axis=0) / (len(X) - prepare.ddof)
    with np.errstate(over="ignore", invalid="ignore"):  # refused by the caller
        return np.array(computed(squares))


def _prepared(
    source: DaskSource, features: NDArray[np.int64] | None = None
) -> tuple[list[tuple[int, int]], list[list[Any]]]:
    """Bounds of the chunks of features, and the chunks of C as tasks, row by row."""
    import dask

    X, mean, factor = source.X, source.mean, source.factor
    if features is not None:
        X, mean, factor = X[:, features], mean[features], factor[features]
    edges = bounds(X.chunks[1])
    lines = [
        [
            dask.delayed(_centred)(block, mean[j0:j1], factor[j0:j1])
            for block, (j0, j1) in zip(line, edges, strict=True)
        ]
        for line in X.to_delayed()
    ]
    return edges, lines


def dask_gram(source: DaskSource, tick: Callable[[int, int], None]) -> FloatArray:
    """A, its upper half: every tile summed where the chunks are, then gathered."""
    import dask

    edges, prepared = _prepared(source)
    pairs = [(a, b) for a in range(len(edges)) for b in range(a, len(edges))]
    tiles = [
        tree([dask.delayed(_product)(line[a], line[b]) for line in prepared], summed)
        for a, b in pairs
    ]
    tick(0, 1)
    found = dask.compute(*tiles)
    tick(1, 1)
    d = source.n_features
    A = np.zeros((d, d))
    for (a, b), tile in zip(pairs, found, strict=True):
        A[slice(*edges[a]), slice(*edges[b])] = tile
    return A


def dask_tops(
    source: DaskSource,
    width: int,
    features: NDArray[np.int64] | None,
    tick: Callable[[int, int], None],
    correction: tuple[FloatArray, FloatArray] | None,
) -> Tops:
    """The `width` largest |A_ij| of every row, computed where the chunks are.

    With a `correction` L, R these are the entries of A − (L R' + R L'), of which every
    task gets the rows that it needs.
    """
    import dask

    edges, prepared = _prepared(source, features)
    partial: list[list[Any]] = [[] for _ in edges]
    for a, (i0, _) in enumerate(edges):
        for b in range(a, len(edges)):
            at = (slice(*edges[a]), slice(*edges[b]))
            less = None if correction is None else _rows_of(correction, features, at)
            corner = (i0, edges[b][0])
            if len(prepared) == 1:  # one task, so that the tile does not move
                (line,) = prepared
                task = dask.delayed(_product_tops, nout=2)
                pair = task(line[a], line[b], corner, width, less)
            else:
                products = [dask.delayed(_product)(x[a], x[b]) for x in prepared]
                tile = tree(products, summed)
                pair = dask.delayed(_tile_tops, nout=2)(tile, corner, width, less)
            partial[a].append(pair[0])
            if b != a:
                partial[b].append(pair[1])
    merged = [
        tree(tops, lambda some: _merge(some, width), even_one=True) for tops in partial
    ]
    tick(0, 1)
    results = dask.compute(*merged)
    tick(1, 1)
    values = np.concatenate([values for values, _ in results])
    indices = np.concatenate([indices for _, indices in results])
    return np.ascontiguousarray(values), np.ascontiguousarray(indices)


def _centred(block: Any, mean: FloatArray, factor: FloatArray) -> Any:
    """A chunk of C, where the chunk is."""
    if is_on_device(block):
        return (block - _like(mean, block)) * _like(factor, block)
    return (np.asarray(block) - mean) * factor


def _rows_of(
    correction: tuple[FloatArray, FloatArray],
    features: NDArray[np.int64] | None,
    at: tuple[slice, slice],
) -> list[FloatArray]:
    """L and R at the rows of a tile, and at its columns."""
    index = np.arange(len(correction[0])) if features is None else features
    return [part[index[where]] for where in at for part in correction]


def _product(left: Any, right: Any) -> FloatArray:
    """left' right, computed where they are."""
    if is_on_device(left):
        return on_host(double_product(left, right))
    return left.T @ right


def _product_tops(
    left: Any,
    right: Any,
    corner: tuple[int, int],
    width: int,
    less: list[FloatArray] | None,
) -> tuple[Tops, Tops]:
    """Row tops of left' right, without keeping the product."""
    return _tile_tops(_product(left, right), corner, width, less)


def _tile_tops(
    tile: FloatArray, corner: tuple[int, int], width: int, less: list[FloatArray] | None
) -> tuple[Tops, Tops]:
    """Row tops of the tile at a corner, for its rows and for its columns."""
    from .._kernels.rowtops import add_rows

    i0, j0 = corner
    if less is not None:
        row_left, row_right, column_left, column_right = less
        tile = tile - (row_left @ column_right.T + row_right @ column_left.T)
    tops = []
    for block, own, other in ((tile, i0, j0), (tile.T, j0, i0)):
        block = np.array(block, dtype=np.float64, order="C")
        rows = np.arange(len(block))
        values = np.zeros((len(block), width))
        indices = np.full((len(block), width), -1, dtype=np.int64)
        if own == other:
            np.fill_diagonal(block, 0.0)
        # The lists number rows from 0, so columns are numbered past them.
        columns = np.arange(block.shape[1]) + len(block)
        add_rows(block.view(np.int64), rows, columns, values.view(np.int64), indices)
        indices[indices >= 0] += other - len(block)
        tops.append((values, indices))
    return tops[0], tops[1]


def _merge(parts: list[Tops], width: int) -> Tops:
    """The `width` largest of several lists of each row; ties by position."""
    values = np.concatenate([values for values, _ in parts], axis=1)
    indices = np.concatenate([indices for _, indices in parts], axis=1)
    order = np.argsort(-values, axis=1, kind="stable")[:, :width]
    return (
        np.take_along_axis(values, order, axis=1),
        np.take_along_axis(indices, order, axis=1),
    )
