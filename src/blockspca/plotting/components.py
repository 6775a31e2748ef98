"""A picture of several components: the samples on two of them, and their loadings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray
from ._layout import expect
from .figures import axes, plot_loadings
from .scores import plot_scores

if TYPE_CHECKING:
    from ..components import Components

MOST = 4  # components whose loadings are drawn beside each other
PANEL = (3.4, 4.6)  # inches of one panel


def plot_components(
    found: Components,
    scores: FloatArray | None = None,
    *,
    color: Sequence[Any] | None = None,
    components: tuple[int, int] = (0, 1),
    max_features: int = 15,
) -> Any:
    """Draw scores and loadings of components side by side.

    Parameters
    ----------
    found : Components
        Of `solve_components`, or `solution_` of a `SparsePCA`.
    scores : array of shape (n_samples, n_components), optional
        Without them, only loadings are drawn.
    color : sequence, optional
        A label or number for each sample; see `plot_scores`.
    components : pair of int
        Those that the samples are drawn on, counted from 0.
    max_features : int
        Most loadings of a component, the largest first.

    Returns
    -------
    array of Axes
        The scores, if there are any, then the loadings of the first four components.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> found = bs.solve_components(bs.Covariance.from_data(X), 2, 2)
    >>> len(bs.plotting.plot_components(found))
    2
    """
    expect(found, "Components", "found")
    shown = min(len(found), MOST)
    panels = shown + (scores is not None)
    first = axes(None, (PANEL[0] * panels, PANEL[1]))
    figure = first.figure
    first.remove()
    drawn = figure.subplots(1, panels, squeeze=False)[0]
    if scores is not None:
        plot_scores(scores, color=color, components=components, ax=drawn[0])
    for j, ax in enumerate(drawn[-shown:]):
        plot_loadings(found[j], max_features=max_features, ax=ax)
        share = float(found.explained_variance_ratio[j])
        said = f"{found[j].objective:.4g}" if np.isnan(share) else f"{share:.1%}"
        ax.set_title(f"component {j + 1}: {said}, {found[j].status}")
    return np.asarray(drawn)
