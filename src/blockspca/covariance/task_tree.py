"""Joins the results of many dask tasks by a tree, so that no task holds them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

# Results that a task holds at a time; with 2, twice as many tasks would be scheduled.
TREE_ARITY = 8


def bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Where chunks of such sizes begin and end.

    Examples
    --------
    >>> from blockspca.covariance.task_tree import bounds
    >>> bounds([3, 3, 1])
    [(0, 3), (3, 6), (6, 7)]
    """
    ends = np.cumsum(sizes).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def tree(
    parts: list[Any], join: Callable[[list[Any]], Any], even_one: bool = False
) -> Any:
    """Reduce delayed parts, a few at a time."""
    import dask

    while len(parts) > 1 or even_one:
        even_one = False
        parts = [
            dask.delayed(join)(parts[i : i + TREE_ARITY])
            for i in range(0, len(parts), TREE_ARITY)
        ]
    return parts[0]


def summed(parts: list[Any]) -> Any:
    """Add results of tasks; the first is copied, as tasks may not change it."""
    total = copy(parts[0])
    for part in parts[1:]:
        total += part
    return total
