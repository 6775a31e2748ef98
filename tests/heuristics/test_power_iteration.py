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


def test_starts_that_go_the_same_way_are_gone_on_with_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    X[:, :9] += 2 * rng.standard_normal((60, 1))
    A = np.cov(X.T)
    starts = np.column_stack([A[:, :9], rng.standard_normal((40, 3))])
    seen: list[int] = []

    def product(x):
        seen.append(x.shape[1])
        return A @ x

    def settled(merge):
        seen.clear()
        x = power_iteration.power_iteration(
            product, starts, 9, shift=0.0, max_iterations=100, merge=merge
        )
        return {tuple(np.flatnonzero(column)) for column in x.T}, sum(seen)

    merged, columns = settled(True)
    alone, all_columns = settled(False)
    assert merged == alone
    assert columns < all_columns
