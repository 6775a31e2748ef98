"""The data of the interactive picture of the blocks, as plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray
from ..blocks.threshold_path import ThresholdPath
from ..covariance.covariance import Covariance
from ..plotting._layout import (
    block_levels,
    block_order,
    largest_blocks,
    select_features,
)
from ..result import Result

if TYPE_CHECKING:
    from .page import Report

# Rows of the picture, whose cells are to be seen; a level more adds a label for each.
MAX_SHOWN = 48
MAX_LEVELS = 120


def block_data(report: Report) -> dict[str, Any]:
    """Return the blocks that the page shows, and the level to start with."""
    results = report.components.results
    content = blocks_at_levels(report.thresholds, report.cov, results)
    return {**content, "start": start_level(report, slider_levels(report))}


def blocks_at_levels(
    path: ThresholdPath, cov: Covariance, results: Sequence[Result]
) -> dict[str, Any]:
    """Return the strongest entries of A, in block order, and the blocks at each level.

    Returns
    -------
    dict
        names, rank (the place of each feature in the original order), upper triangle
        of A row by row, levels of ε ascending with the number of blocks and the largest
        one, the block of each shown feature at each level, and for each feature the
        component that uses it (0 for none).
    """
    used = np.concatenate([result.support for result in results])
    shown = select_features(path, MAX_SHOWN, used[:MAX_SHOWN])
    order = block_order(path)
    ordered = order[np.isin(order, shown)]
    levels = levels_of(path, results[0].threshold)
    labels = [path.labels(level)[ordered] for level in levels]
    A = cov.submatrix(ordered)
    owner = np.zeros(cov.n_features, dtype=int)
    # Of a feature that several components use the first is shown.
    for number, result in reversed(list(enumerate(results, start=1))):
        owner[result.support] = number
    return {
        "names": cov.names_of(ordered),
        "rank": np.argsort(np.argsort(ordered)).tolist(),
        "upper": as_list(A[np.triu_indices(len(A))], 4),
        "levels": as_list(levels, 6),
        "blocks": [path.n_blocks(level) for level in levels],
        "largest": largest_blocks(path, levels).tolist(),
        "labels": [label.tolist() for label in labels],
        "component": owner[ordered].tolist(),
        "total": cov.n_features,
    }


def slider_levels(report: Report) -> FloatArray:
    """Return the levels of the report's slider."""
    return levels_of(report.thresholds, report.components.results[0].threshold)


def levels_of(path: ThresholdPath, used: float | None) -> FloatArray:
    """Return ε = 0 and the thresholds at which blocks change, thinned if many.

    The threshold that was used, if any, is one of them.
    """
    levels = block_levels(path)
    if len(levels) > MAX_LEVELS:
        # Most edges are weak, and most of what there is to see happens above them: two
        # thirds of the levels are even in ε, the others even in the number of blocks.
        even = np.linspace(0, levels[-1], 2 * MAX_LEVELS // 3)
        by_value = np.searchsorted(levels, even, side="right") - 1
        by_number = np.linspace(0, len(levels) - 1, MAX_LEVELS // 3).round()
        levels = levels[np.union1d(by_value, by_number.astype(int))]
    return levels if used is None else np.unique(np.append(levels, used))


def start_level(report: Report, levels: FloatArray) -> int:
    """Return the level with the blocks that the first component was found in."""
    epsilon = report.components.results[0].threshold
    if epsilon is None:
        return len(levels) // 2
    return int(np.searchsorted(levels, epsilon, side="right")) - 1


def as_list(values: Any, digits: int) -> list[float]:
    """Return an array as short numbers for JSON."""
    return [float(f"{value:.{digits}g}") for value in np.ravel(values)]
