"""Truncated power iteration of several starts at once."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.heuristics import power_iteration


@pytest.mark.parametrize("together", [0, 200])
@pytest.mark.parametrize("kind", ["random", "ties", "zeros"])
def test_the_largest_entries_are_kept(monkeypatch, kind, together):
    monkeypatch.setattr(power_iteration, "CUT_TOGETHER", together)
    rng = np.random.default_rng(0)
    y = rng.standard_normal((40, 5))
    if kind == "ties":
        y = np.round(y)
    if kind == "zeros":
        y[3:] = 0.0
    for k in (1, 7, 40):
        sizes = -np.sort(-np.abs(y), axis=0)
        for least in (None, sizes[k - 1], 0.5 * sizes[k - 1], np.zeros(5)):
            x, kept = power_iteration._cut(y, k, least)
            for j in range(5):
                assert len(set(kept[j])) == k
                chosen = -np.sort(-np.abs(y[kept[j], j]))
                np.testing.assert_array_equal(chosen, sizes[:k, j])
                assert set(np.flatnonzero(x[:, j])) <= set(kept[j])
            np.testing.assert_allclose(np.linalg.norm(x, axis=0), 1.0)
