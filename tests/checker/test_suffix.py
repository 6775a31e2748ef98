"""Suffix bounds: what is closed has no set above τ, in floats and in integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blockspca.checker.float_tree import FloatTree
from blockspca.checker.integer_tree import IntegerTree


def float_tree(B: np.ndarray, m: int, uppers: dict[int, float]) -> FloatTree:
    return FloatTree([], (m, uppers), B, (0.0, np.zeros(len(B))), 0)


def largest(B: np.ndarray, t: int, m: int) -> float:
    """The largest eigenvalue of m features of which t is the first, or −∞."""
    later = itertools.combinations(range(t + 1, len(B)), m - 1)
    values = (np.linalg.eigvalsh(B[np.ix_((t, *S), (t, *S))])[-1] for S in later)
    return max(values, default=-np.inf)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_what_is_closed_is_below(m):
    """With and without bounds of fewer features, which are exact ones here."""
    closed = opened = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        B = rng.integers(-9, 10, (6, 6)).astype(float)
        B = B + B.T - np.diag(rng.integers(-3, 9, 6) * 10.0 ** rng.integers(0, 3, 6))
        best = [max(largest(B, t, q) for t in range(6)) for q in range(1, m + 1)]
        tau = float(np.ceil(best[-1] + rng.choice([-2, 0, 1, 8])))
        known = {
            q: np.ceil(u) for q, u in enumerate(best[:-1], 1) if rng.random() < 0.5
        }
        M = (tau * np.eye(6) - B).astype(int).tolist()
        chain = {q: int(tau - u) for q, u in known.items() if u <= tau}
        whole = IntegerTree([], m, chain).open_by_suffix((M, 1), m)
        rough = float_tree(B, m, {**known, m: tau}).open_by_suffix(B, m)
        assert rough.tolist() == sorted(rough)
        for found in (whole, rough):
            for t in {*range(6)} - {*found.tolist()}:
                assert largest(B, t, m) <= tau + 1e-9
                closed += 1
            opened += len(found)
    assert min(closed, opened) > 100


def test_bounds_within_ulps_are_not_closed():
    """[[a, r], [r, a]] has a + r: with τ an ulp below, the pair is open."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, r = rng.standard_normal(2)
        B = np.array([[a, r], [r, a]])
        top = float(np.nextafter(a + abs(r), -np.inf))
        assert 0 in float_tree(B, 2, {2: top}).open_by_suffix(B, 2)
        # three features, of which the last two have what the first does not change
        C = np.zeros((3, 3))
        C[0, 0], C[1:, 1:] = a - 1, B
        assert len(float_tree(C, 3, {3: top}).open_by_suffix(C, 3))
