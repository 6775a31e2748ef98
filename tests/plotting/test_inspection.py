"""Pictures of alternatives and stability show every feature in question."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs

pytest.importorskip("matplotlib")
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 12)) + rng.normal(size=(40, 1))


def test_alternatives() -> None:
    from blockspca.plotting import plot_alternatives

    found = bs.alternatives(np.cov(X.T), 3, within=0.1)
    ax = plot_alternatives(found)
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert set(labels) == set(found.names_of(np.flatnonzero(found.counts)))
    assert ax.images[0].get_array().shape == (len(found), len(labels))


def test_stability() -> None:
    from blockspca.plotting import plot_stability

    found = bs.stability(X, 3, n_resamples=6)
    ax = plot_stability(found)
    assert len(ax.get_xticklabels()) == len(found.to_rows())
