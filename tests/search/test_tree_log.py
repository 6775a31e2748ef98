"""Trees that are written down hold for all matrices near A, not for A alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from blockspca.checker.fields import ProofError
from blockspca.checker.float_tree import FloatTree
from blockspca.checker.groups import Rooms
from blockspca.checker.tree_text import read_tree
from blockspca.search.tree_log import ROOM, tree_text

K, N = 5, 9


def best(A: np.ndarray, k: int) -> float:
    sets = itertools.combinations(range(len(A)), k)
    return float(max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets))


def family(seed: int) -> Callable[[float], np.ndarray]:
    """A(t): one factor and noise; all loadings but two are small, and times t.

    So two features are near τ, and an error of A counts many times after them.
    """
    rng = np.random.default_rng(seed)
    loadings = np.concatenate([[2.0, 1.9], rng.uniform(0.1, 0.3, N - 2)])
    noise = rng.normal(size=(N, N)) * 0.2

    def at(t: float) -> np.ndarray:
        own = loadings.copy()
        own[2:] *= t
        return np.outer(own, own) + noise @ noise.T

    return at


def question(A: np.ndarray) -> tuple[float, np.ndarray]:
    """τ, half of what "optimal" allows above the optimum, and bounds for fewer."""
    upper = [np.inf, *(best(A, q) * (1 + 5e-10) for q in range(1, K + 1))]
    return upper[K], np.array(upper)


def text_of(A: np.ndarray, error: float) -> str:
    tau, upper = question(A)
    text, _ = tree_text(A, K, tau, upper, 10_000, 10**6, error=error)
    assert text is not None
    return text


def is_shown(A: np.ndarray, text: str) -> bool:
    """Whether floats show the tree, A being products of columns of 2,600 numbers."""
    tau, upper = question(A)
    nodes, depth = read_tree(text, N, "tree")
    products = 2600 * 2.0**-53, np.diagonal(A)
    chain = {q: float(upper[q]) for q in range(1, K)} | {K: tau}
    tree = FloatTree(nodes, (K, chain), A, products, depth)
    try:
        tree.node(tree.first, np.arange(N), K, Rooms([]))
    except ProofError:
        return False
    return True


def tight(at: Callable[[float], np.ndarray]) -> np.ndarray | None:
    """A(t) at a t, to the last digit, where another tree is needed for larger t."""
    ends = [0.0, 1.0]
    first = text_of(at(ends[0]), 0.0)
    if text_of(at(ends[1]), 0.0) == first:
        return None
    while (middle := sum(ends) / 2) not in ends:
        ends[text_of(at(middle), 0.0) != first] = middle
    return at(ends[0])


@pytest.mark.parametrize("seed", range(12))
def test_tree_at_the_edge_of_an_inequality_is_shown_in_floats(seed: int) -> None:
    A = tight(family(seed))
    assert A is not None
    assert is_shown(A, text_of(A, ROOM))


def test_room_in_the_nodes_alone_is_too_little() -> None:
    cases = [tight(family(seed)) for seed in range(12)]
    shown = [is_shown(A, text_of(A, 0.0)) for A in cases if A is not None]
    assert not all(shown)
