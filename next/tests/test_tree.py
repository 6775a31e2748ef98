"""The tree: brute force, ties, lists, groups, roots, pauses, the kernel itself."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockspca._kernels import tree as kernel
from blockspca.search.tree import Tree, root_order

EVERYTHING = 10**9


def symmetric(rng, d, family):
    """Return a small matrix of a family that breaks searches."""
    G = rng.normal(size=(d, d))
    if family == "covariance":
        return G @ G.T
    if family == "indefinite":
        return G + G.T
    if family == "ties":
        return np.round(G + G.T)
    if family == "rank 2":
        return G[:, :2] @ G[:, :2].T
    if family == "blocks":
        return np.kron(np.eye((d + 2) // 3), np.ones((3, 3)))[:d, :d]
    if family == "negative diagonal":
        return G + G.T - 1e6 * np.diag(rng.random(d))
    return (G @ G.T) * 2.0 ** rng.integers(-199, 199)  # "scale"


FAMILIES = [
    "covariance",
    "indefinite",
    "ties",
    "rank 2",
    "blocks",
    "negative diagonal",
    "scale",
]


def values(A, k, root=(), label=None, room=None):
    """Return λ(S) of all k-sets S that contain the root and keep the groups."""
    found = {}
    for S in combinations(range(len(A)), k):
        taken = [] if label is None else [label[i] for i in S if label[i] >= 0]
        full = any(taken.count(g) > room[g] for g in set(taken))
        if set(root) <= set(S) and not full:
            found[S] = np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
    return found


def best(A, k, *sets):
    return max(values(A, k, *sets).values(), default=-np.inf)


def problem(seed, family):
    """Return a random problem: A, k, root, label, room, upper bounds, the values."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    k = int(rng.integers(2, d + 1))
    A = symmetric(rng, d, family)
    root, label, room = (), None, None
    if seed % 3 == 1:
        label, room = rng.integers(-1, 3, size=d), rng.integers(1, 3, size=3)
    if seed % 4 == 1:
        root = tuple(rng.choice(d, size=int(rng.integers(1, k + 1)), replace=False))
    upper = np.full(k + 1, np.inf)
    for q in range(max(1, len(root)), k):
        upper[q] = best(A, q, root, label, room)
    return A, k, root, label, room, upper


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tree_closes_above_the_optimum_and_finds_a_set_below(family):
    for seed in range(60):
        A, k, root, label, room, upper = problem(seed, family)
        sets = {"root": root, "label": label, "room": room}
        optimum = best(A, k, root, label, room)
        if optimum == -np.inf:
            optimum = 0.0
        size = np.abs(A).max()
        for offset in (1e-9, -1e-9, 0.1, -0.1):
            tau = optimum + offset * size
            tree = Tree(A, k, tau, upper, **sets)
            tree.advance(EVERYTHING)
            assert tree.ended
            if offset > 0:
                assert tree.closed or best(A, len(tree.found)) > tau - 1e-12 * size
            elif best(A, k, root, label, room) > tau:
                S = tree.found
                assert np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] > tau - 1e-12 * size


@pytest.mark.parametrize("family", FAMILIES)
def test_a_paused_tree_goes_on_the_same_way_and_always_has_a_bound(family):
    for seed in range(40):
        A, k, root, label, room, upper = problem(seed, family)
        optimum, size = best(A, k, root, label, room), np.abs(A).max()
        if optimum == -np.inf:
            continue
        tau = optimum + 1e-9 * size
        whole, parts = (
            Tree(A, k, tau, upper, root=root, label=label, room=room) for _ in range(2)
        )
        whole.advance(EVERYTHING)
        while not parts.ended:
            parts.advance(1)
            assert parts.open_bound() >= optimum - 1e-12 * size
        assert (parts.nodes, parts.closed) == (whole.nodes, whole.closed)


def test_the_open_bound_comes_down_to_tau():
    X = np.random.default_rng(0).normal(size=(30, 14))
    A = X.T @ X
    tau = best(A, 5) * 1.0001
    tree = Tree(A, 5, tau, np.full(6, np.inf))
    bounds = []
    while not tree.ended:
        tree.advance(500)
        bounds.append(tree.open_bound())
    assert len(bounds) > 3
    assert tree.closed
    assert bounds[-1] == tau < bounds[-2] < bounds[0] < np.inf


@pytest.mark.parametrize("family", FAMILIES[:6])
def test_a_list_has_all_sets_above_tau(family):
    for seed in range(60):
        A, k, root, label, room, upper = problem(seed, family)
        if k - len(root) < 2:
            continue
        every = values(A, k, root, label, room)
        size = np.abs(A).max()
        tau = max(upper[k - 1], 0.8 * max(every.values(), default=0.0)) + 1e-9 * size
        tree = Tree(A, k, tau, upper, root=root, label=label, room=room, lists=100)
        tree.advance(EVERYTHING)
        if tree.found is not None:  # no more than k − 1 features, by rounding
            continue
        assert tree.closed
        listed = [tuple(S) for S in tree.listed]
        assert len(set(listed)) == len(listed)
        assert {S for S in every if every[S] > tau + 1e-9 * size} <= set(listed)
        assert all(every[S] > tau - 1e-9 * size for S in listed)


def test_a_full_list_ends_the_search():
    A = np.ones((6, 6)) + np.eye(6)
    tree = Tree(A, 3, 3.5, np.array([0, 2.0, 3, np.inf]), lists=5)
    tree.advance(EVERYTHING)
    assert tree.failed == "list"
    assert len(tree.listed) == 5


def test_equality_in_each_step():
    # λ of a set equals τ: no set is above it, so a tree must not report a better one.
    A = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
    tree = Tree(A, 2, np.nextafter(3.0, 4), np.array([0, 2.0, np.inf]))
    tree.advance(EVERYTHING)
    assert tree.closed
    assert tree.nodes == 1  # pairs decide at the root
    # A feature whose norm is exactly what screening allows is peeled.
    A = np.diag([3.0, 3, 3, 1, 1])
    tree = Tree(A, 3, 3.5, np.array([0, 3.0, 3, np.inf]))
    tree.advance(EVERYTHING)
    assert tree.closed
    assert tree.nodes == 1


def test_memory_is_limited():
    X = np.random.default_rng(1).normal(size=(20, 30))
    A = X.T @ X
    tree = Tree(A, 5, 1.2 * A.diagonal().max(), np.full(6, np.inf), memory=8 * 2000)
    tree.advance(EVERYTHING)
    assert tree.failed == "memory"
    assert not tree.closed
    assert tree.open_bound() > tree.tau


def test_the_order_is_by_the_2x2_bound():
    A = np.array([[1.0, 0, 1], [0, 5, 0.1], [1, 0.1, 3]])
    assert root_order(A, 2, 6.0).tolist() == [2, 0, 1]


def test_the_kernel_equals_its_python_function(monkeypatch):
    X = np.random.default_rng(2).normal(size=(12, 9))
    A = X.T @ X
    upper = np.array([0, best(A, 1), best(A, 2), best(A, 3), np.inf])
    counts = []
    for explore in (kernel.explore, kernel.explore.py_func):
        monkeypatch.setattr(kernel, "explore", explore)
        for group in (None, np.arange(9) % 3):
            tree = Tree(
                A, 4, best(A, 4) * 1.0001, upper, label=group, room=np.array([2, 2, 2])
            )
            while not tree.ended:
                tree.advance(10)
            counts.append((tree.nodes, tree.entries, tree.closed))
    assert counts[:2] == counts[2:]
    for name in ("largest_squares", "peel", "is_below", "bound_suffixes", "pair_above"):
        helper = getattr(kernel, name)
        assert helper.py_func is not None
