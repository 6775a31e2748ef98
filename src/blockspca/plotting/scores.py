"""Pictures of samples: their scores on one or two components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._validation import FloatArray
from .figures import POSITIVE, SOFT, axes, tidy

FEW = 12  # values of a number that are told apart by a legend


def plot_scores(
    scores: FloatArray,
    *,
    components: tuple[int, int] = (0, 1),
    color: Sequence[Any] | None = None,
    colour: Sequence[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the samples on two components, or the histogram of the only one.

    Parameters
    ----------
    scores : array of shape (n_samples, n_components)
    components : pair of int
    color : sequence, optional
        A label for each sample, which a legend explains, or a number, as a scale of
        colours: numbers of more than 12 values that are not all whole are such.
    colour : sequence, optional
        The same, as it used to be written.
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
    if scores.ndim == 2 and not 0 <= max(components) < max(2, scores.shape[1]):
        raise ValueError(
            f"components = {components} for scores of {scores.shape[1]} component(s); "
            "pass two of those, counted from 0."
        )
    ax = tidy(axes(ax, (5.2, 4.6)))
    if scores.ndim == 1 or scores.shape[1] == 1:
        ax.hist(np.ravel(scores), bins="auto", color=POSITIVE, alpha=0.85)
        ax.set(xlabel="component 1", ylabel="samples")
        return ax
    i, j = components
    _scatter(ax, scores[:, [i, j]], colour if color is None else color)
    ax.axhline(0, color=SOFT, lw=0.6, zorder=0)
    ax.axvline(0, color=SOFT, lw=0.6, zorder=0)
    ax.set(xlabel=f"component {i + 1}", ylabel=f"component {j + 1}")
    return ax


def _scatter(ax: Any, points: FloatArray, color: Sequence[Any] | None) -> None:
    """Draw points in one colour, in one for each label, or by a scale of numbers."""
    style = {"s": 14, "alpha": 0.7, "linewidths": 0}
    if color is None:
        ax.scatter(*points.T, color=POSITIVE, **style)
        return
    labels = np.asarray(color)
    if labels.shape != (len(points),):
        raise ValueError(
            f"color has shape {labels.shape} for {len(points)} samples; pass one label "
            "or number for each."
        )
    if labels.dtype.kind not in "fiub":
        labels = labels.astype(str)
    values = np.unique(labels)
    if labels.dtype.kind == "f" and len(values) > FEW and np.any(values % 1):
        drawn = ax.scatter(*points.T, c=labels, cmap="viridis", **style)
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
        return
    for value in values:
        ax.scatter(*points[labels == value].T, label=str(value), **style)
    ax.legend(frameon=False)
