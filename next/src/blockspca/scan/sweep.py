"""Shared steps of all scans: stripes over the cores, empty lists, whole rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ..call import Run
from ..progress import Event
from ..validation import FloatArray, Indices
from .lists import Lists

Stripe = TypeVar("Stripe")

ENTRIES = 2**19  # entries of a stripe of whole rows, 4 MiB
FEW = 256  # features whose rows NumPy sorts in 5 ms: no kernel has to be compiled


def sweep(
    run: Run, function: Callable[[Stripe], Any], stripes: Iterable[Stripe]
) -> list[Any]:
    """Return function(stripe) for all stripes; check the limits and report progress.

    Stripes have a fixed size and write to places of their own, so that lists do not
    depend on the number of cores.
    """
    todo = list(stripes)

    def step(item: tuple[int, Stripe]) -> Any:
        number, stripe = item
        run.check()
        run.tell(Event(stage="scan", done=number, total=len(todo)))
        return function(stripe)

    results = run.map(step, enumerate(todo))
    run.tell(Event(stage="scan", done=len(todo), total=len(todo)))
    return results


def slices(stop: int, step: int) -> list[slice]:
    """Return consecutive slices of at most `step` that cover range(stop)."""
    return [slice(a, min(a + step, stop)) for a in range(0, stop, max(1, step))]


def empty_lists(d: int, width: int) -> tuple[FloatArray, Indices]:
    """Return values and indices of empty lists."""
    return np.zeros((d, width)), np.full((d, width), -1, dtype=np.int64)


def sorted_lists(A: FloatArray, width: int) -> tuple[FloatArray, Indices]:
    """Return lists of a small matrix, by sorting its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.scan.sweep import sorted_lists
    >>> sorted_lists(np.array([[9.0, 0, -2], [0, 9, 1], [-2, 1, 9]]), 2)[1].tolist()
    [[2, -1], [2, -1], [0, 1]]
    """
    sizes = np.abs(A)
    np.fill_diagonal(sizes, 0.0)
    indices = np.argsort(-sizes, axis=1, kind="stable")[:, :width]
    values = np.take_along_axis(sizes, indices, axis=1)
    indices[values == 0] = -1
    return values, indices


def row_lists(
    strip: Callable[[slice], FloatArray], d: int, width: int, run: Run
) -> tuple[FloatArray, Indices]:
    """Return lists from whole rows of A: ``strip(rows)`` is A[rows, :]."""
    width = min(width, max(d - 1, 1))
    if d <= FEW:
        return sorted_lists(strip(slice(0, d)), width)

    from .._kernels.tiles import ROWS, tile_kernels

    add_tile, _, none = tile_kernels(64)
    values, indices = empty_lists(d, width)
    patterns, columns = values.view(np.int64), np.arange(d)

    def fill(rows: slice) -> None:
        tile = np.ascontiguousarray(strip(rows), dtype=np.float64).view(np.int64)
        lists = (patterns[rows], indices[rows])
        floors = np.empty(d, dtype=np.int64)
        labels = columns[rows], columns
        add_tile(tile, *labels, rows.start, *lists, *lists, floors, ROWS, none)

    sweep(run, fill, slices(d, ENTRIES // d))
    return values, indices


def padded_lists(
    values: FloatArray,
    indices: Any,
    width: int,
    error: float,
    features: Indices | None,
    places: Indices | None = None,
) -> Lists:
    """Return `Lists` of this width; shorter lists are padded.

    If features were scanned in another order, row r belongs to the feature at
    places[r].
    """
    d, listed = values.shape
    if places is None:
        places = np.arange(d)
    all_values, all_indices = empty_lists(d, width)
    all_values[places, :listed] = values
    all_indices[places, :listed] = np.where(indices < 0, -1, places[indices])
    return Lists(all_values, all_indices, error, features)
