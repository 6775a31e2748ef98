"""Pictures of samples: their scores on one or two components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._validation import FloatArray
from ._layout import UNLABELLED, label_groups
from .figures import POSITIVE, SOFT, axes, tidy

CYCLE = 10  # colours of matplotlib


def plot_scores(
    scores: FloatArray,
    *,
    components: tuple[int, int] = (0, 1),
    color: Sequence[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the samples on two components, or the histogram of the only one.

    Parameters
    ----------
    scores : array of shape (n_samples, n_components)
    components : pair of int
    color : sequence, optional
        A label for each sample, which a legend explains, the most frequent ones first,
        or a number, as a scale of colours: numbers of more than 12 values are such.
    ax : Axes, optional

    Examples
    --------
    >>> from blockspca.plotting import plot_scores
    >>> ax = plot_scores([[1.0, 0.5], [-1.0, 0.2], [0.1, -0.7]], color=["a", "b", "a"])
    """
    scores = np.asarray(scores)
    if scores.ndim not in (1, 2) or scores.size == 0 or scores.dtype.kind not in "fiu":
        raise ValueError(
            f"scores has shape {scores.shape} and dtype {scores.dtype}; pass the "
            "samples × components that transform returns."
        )
    i, j = _checked_pair(components, scores)
    ax = tidy(axes(ax, (5.2, 4.6)))
    if scores.ndim == 1 or scores.shape[1] == 1:
        ax.hist(np.ravel(scores), bins="auto", color=POSITIVE, alpha=0.85)
        ax.set(xlabel="component 1", ylabel="samples")
        return ax
    _scatter(ax, scores[:, [i, j]], color)
    ax.axhline(0, color=SOFT, lw=0.6, zorder=0)
    ax.axvline(0, color=SOFT, lw=0.6, zorder=0)
    ax.set(xlabel=f"component {i + 1}", ylabel=f"component {j + 1}")
    return ax


def _checked_pair(components: Any, scores: FloatArray) -> tuple[int, int]:
    number = scores.shape[1] if scores.ndim == 2 else 1
    pair = np.asarray(components)
    is_pair = pair.shape == (2,) and pair.dtype.kind in "iu"
    # The default does for a single component, too.
    if not is_pair or not 0 <= pair.min() <= pair.max() < max(2, number):
        raise ValueError(
            f"components = {components!r} for scores of {number} component(s); pass "
            "two of those, counted from 0."
        )
    return int(pair[0]), int(pair[1])


def _scatter(ax: Any, points: FloatArray, color: Sequence[Any] | None) -> None:
    """Draw points in one colour, in one for each label, or by a scale of numbers."""
    style: dict[str, Any] = {"s": 14, "alpha": 0.7, "linewidths": 0}
    if color is None:
        ax.scatter(*points.T, color=POSITIVE, **style)
        return
    labels = np.asarray(color)
    if labels.shape != (len(points),):
        raise ValueError(
            f"color has shape {labels.shape} for {len(points)} samples; pass one label "
            "or number for each."
        )
    groups = label_groups(labels)
    known = groups.of >= 0
    if not known.all():
        ax.scatter(*points[~known].T, color=SOFT, label=UNLABELLED, **style)
    if groups.values is not None:
        values = groups.values[known]
        drawn = ax.scatter(*points[known].T, c=values, cmap="viridis", **style)
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
        return
    for j, name in enumerate(groups.names):
        style["marker"] = "os"[j // CYCLE]  # or two groups would look alike
        ax.scatter(*points[groups.of == j].T, label=name, **style)
    ax.legend(frameon=False)
