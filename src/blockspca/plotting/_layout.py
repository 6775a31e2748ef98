"""What pictures of a matrix share: which features to show, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..blocks.threshold_path import ThresholdPath


def block_order(path: ThresholdPath) -> NDArray[np.intp]:
    """Return an order of the features in which every block, at every ε, is one run.

    Edges join runs of features, strongest edge first, as in single linkage: the leaves
    of that tree from left to right. Runs that no edge joins follow by size.
    """
    d = path.n_features
    run_of = np.arange(d)
    runs: dict[int, list[int]] = {i: [i] for i in range(d)}
    for i, j in path.edges.tolist():
        a, b = int(run_of[i]), int(run_of[j])
        if len(runs[a]) < len(runs[b]):
            a, b = b, a
        moved = runs.pop(b)
        run_of[moved] = a  # the smaller run moves: each feature does so log d times
        runs[a].extend(moved)
    ordered = sorted(runs.values(), key=lambda run: (-len(run), run[0]))
    return np.concatenate([np.array(run, dtype=np.intp) for run in ordered])


def select_features(
    path: ThresholdPath, limit: int, always: Sequence[int] | NDArray[np.intp] = ()
) -> NDArray[np.intp]:
    """Return at most `limit` features, ascending: those given, then the strongest tied.

    A feature comes as early as the strongest edge of the forest that ends at it.
    """
    d = path.n_features
    if d <= limit:
        return np.arange(d, dtype=np.intp)
    by_strength = path.edges.ravel()
    everything = np.concatenate([np.asarray(always), by_strength, np.arange(d)])
    _, first = np.unique(everything, return_index=True)
    return np.sort(everything[np.sort(first)[:limit]]).astype(np.intp)


def runs_of(labels: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return start and length of each run of equal labels."""
    starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    lengths = np.diff(np.append(starts, len(labels)))
    return [(int(s), int(n)) for s, n in zip(starts, lengths, strict=True)]
