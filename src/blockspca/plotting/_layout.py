"""Shared by pictures: orders of features, groups of samples, and points of curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..blocks.threshold_path import ThresholdPath
from ..sparsity_path import SparsityPath
from ..status import Status

if TYPE_CHECKING:
    from ..inspection.alternatives import Alternatives

MAX_GROUPS = 12  # of samples; more colours nobody tells apart
SHADES = 10  # of a number
UNLABELLED = "no label"
_WHENCE = {
    "Alternatives": ", which alternatives returns",
    "Components": ", which solve_components returns",
    "Stability": ", which stability returns",
    "Result": ", such as solve returns, or results_[0] of a SparsePCA",
    "SparsityPath": ", which solve_path returns",
    "CrossValidation": ", which cross_validate returns",
    "PermutationReference": ", which permutation_reference returns",
}


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """Samples gathered by their labels: what every picture colours them by."""

    of: NDArray[np.intp]  #: the group of each sample; −1 without a label
    names: tuple[str, ...]
    #: The numbers, where groups are steps of one and not labels.
    values: FloatArray | None = None
    gathered: int = 0  #: labels that the last group has together, as "other"

    @property
    def sizes(self) -> list[int]:
        """How many samples each group has."""
        counts = np.bincount(self.of[self.of >= 0], minlength=len(self.names))
        return [int(size) for size in counts]


def label_groups(labels: Sequence[Any] | NDArray[Any]) -> LabelGroups:
    """Return groups of samples by label, the largest first.

    Numbers, or texts of numbers, of more than `MAX_GROUPS` values become shades.

    Examples
    --------
    >>> from blockspca.plotting._layout import label_groups
    >>> groups = label_groups(["b", "a", "b", ""])
    >>> groups.names, groups.of.tolist()
    (('b', 'a'), [0, 1, 0, -1])
    """
    texts = ["" if _is_gap(one) else str(one) for one in np.asarray(labels).tolist()]
    found, place, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    numbers = _as_numbers(found.tolist())
    if numbers is not None:
        return shades(numbers[place])
    order = np.argsort(-sizes, kind="stable")
    order = order[found[order] != ""]
    rank = np.full(len(found), -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    names = tuple(str(name) for name in found[order])
    if len(names) <= MAX_GROUPS:
        return LabelGroups(rank[place], names)
    rest = len(names) - MAX_GROUPS + 1
    names = (*names[: MAX_GROUPS - 1], f"other ({rest} labels)")
    return LabelGroups(np.minimum(rank, MAX_GROUPS - 1)[place], names, gathered=rest)


def _is_gap(label: Any) -> bool:
    missing = ("None", "nan", "NaT", "<NA>")  # of NumPy and pandas; a text is a label
    return not isinstance(label, str) and str(label) in missing


def _as_numbers(texts: list[str]) -> FloatArray | None:
    """Return distinct labels as numbers, if they are and if they are too many."""
    try:
        values = np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return None
    return values if np.isfinite(values).sum() > MAX_GROUPS else None


def shades(values: FloatArray) -> LabelGroups:
    """Return groups of samples by steps of equal width of a number."""
    known = np.isfinite(values)
    low, high = 0.0, 0.0
    if known.any():
        low, high = float(values[known].min()), float(values[known].max())
    step = (high - low) / SHADES or 1.0
    of = np.full(len(values), -1, dtype=np.intp)
    of[known] = np.clip((values[known] - low) / step, 0, SHADES - 1)
    edges = [f"{float(f'{low + step * j:.3g}'):g}" for j in range(SHADES + 1)]
    names = tuple(f"{a} to {b}" for a, b in pairwise(edges))
    return LabelGroups(of, names, values)


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


def shortened(name: str, most: int) -> str:
    """Return a name of at most so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def membership(
    found: Alternatives, most_sets: int, most_features: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the features that most sets have, and 1 where a set (row) has one."""
    counts = found.counts
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0][:most_features]
    rows = [np.isin(order, support) for support in found.supports[:most_sets]]
    return order, np.array(rows, dtype=float)


def drawn_bounds(path: SparsityPath) -> tuple[FloatArray, float]:
    """Return the bound for each k as far as it is drawn, and the upper edge."""
    top = 1.08 * max(path.ceiling, float(path.objectives.max()))
    return np.minimum(path.upper_bounds, top), top


def proved_optimal(path: SparsityPath) -> NDArray[np.bool_]:
    """Return for each k whether it is proved optimal."""
    return np.array([result.status is Status.OPTIMAL for result in path.values()])


def block_levels(path: ThresholdPath) -> FloatArray:
    """Return ε = 0 and the thresholds at which blocks change, ascending."""
    return np.concatenate([[0.0], path.distinct_thresholds()[::-1]])


def largest_blocks(path: ThresholdPath, levels: FloatArray) -> NDArray[np.intp]:
    """Return the size of the largest block at each level."""
    return np.array([path.largest_block(level) for level in levels])


def expect(value: Any, kind: str, argument: str) -> None:
    """Check the type by its name, so that nothing has to be imported for it."""
    if kind not in {base.__name__ for base in type(value).__mro__}:
        raise TypeError(
            f"{argument} is of type {type(value).__name__}; pass "
            f"{'an' if kind[0] == 'A' else 'a'} {kind}{_WHENCE[kind]}."
        )
