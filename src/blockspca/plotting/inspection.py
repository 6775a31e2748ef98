"""Pictures of alternatives and of stability: which features are beyond doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import names_of
from ._layout import expect, membership
from .figures import axes

if TYPE_CHECKING:
    from ..inspection.alternatives import Alternatives
    from ..inspection.stability import Stability

MOST_SETS = 200  # shown, of a list of alternatives
MOST_FEATURES = 40


def plot_alternatives(found: Alternatives, *, ax: Any = None) -> Any:
    """Draw which features (columns) are in which set (rows), the best set on top.

    Features are ordered by how many sets have them; at most 200 sets and 40 features
    are shown.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]]
    >>> bs.plotting.plot_alternatives(bs.alternatives(A, 2, within=0.2)).get_title()
    'all sets within 20.00%: 3'
    """
    expect(found, "Alternatives", "found")
    order, member = membership(found, MOST_SETS, MOST_FEATURES)
    ax = axes(ax, (0.5 + 0.22 * len(order), 3.2))
    ax.imshow(member, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    ax.set_xticks(range(len(order)), found.names_of(order), rotation=90, fontsize=7)
    ax.set_ylabel("sets, best first")
    proved = "all" if found.complete else "some"
    ax.set_title(f"{proved} sets within {found.within:.2%}: {len(found)}", fontsize=9)
    return ax


def plot_stability(found: Stability, *, ax: Any = None) -> Any:
    """Draw how often each feature is selected, with intervals of 95 %.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> found = bs.stability(X, 2, n_resamples=4, rng=0)
    >>> ax = bs.plotting.plot_stability(found)
    """
    expect(found, "Stability", "found")
    order = found.stable(1e-12)[:MOST_FEATURES]
    labels = names_of(order, found.feature_names)
    ax = axes(ax, (0.8 + 0.22 * len(order), 3.0))
    share = found.frequency[order]
    spread = np.array([share - found.low[order], found.high[order] - share])
    ax.errorbar(np.arange(len(order)), share, yerr=spread, fmt="o", ms=4, capsize=2)
    ax.set_xticks(range(len(order)), labels, rotation=90, fontsize=7)
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel(f"selected in {found.n_resamples} resamples")
    return ax
