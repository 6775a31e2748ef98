"""Write the tree of a proof as text that an independent checker replays.

The search itself (`schur_tree.py`) is fast because it changes its order at every node
and remembers nothing. To be written down it is run once more, at the same τ, with one
order of the features throughout, so that a node needs no list of them: the order by
the 2×2 bound at the root gives as small a tree (measured in `docs/design-notes.md`).

Every inequality is required with room, at τ' = τ − 2⁻³⁶ |τ| in the place of τ, and for
all matrices within 2⁻³⁶ |τ| of A: who computes in floats has such a matrix. What that
does to a node grows with the weights of the features chosen (`_kernels/tree_log.py`).
Room makes a checker's work easier; whether the text is a proof is the checker's word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..numerics.rounding import larger_root

# Of |τ|: a hundred times what float64 does to an inequality of a node, and a thirtieth
# of what searches leave open.
ROOM = 2.0**-36
_FIRST_LOG = 2**16  # tokens


def below(tau: float) -> float:
    """τ', a little below τ."""
    return tau - ROOM * abs(tau)


def above(value: float, room: float = 2 * ROOM) -> float:
    """A bound with room above a value."""
    return value + room * abs(value)


def root_order(
    matrix: FloatArray, k: int, tau: float, upper: float
) -> NDArray[np.intp]:
    """The features, strongest first, by the 2×2 bound of the sets that they are in."""
    squares = matrix**2
    np.fill_diagonal(squares, 0.0)
    q = min(k - 1, len(matrix) - 1)
    if q < len(matrix) - 1:
        squares = -np.partition(-squares, q, axis=1)[:, :q]
    norms = squares.sum(axis=1)
    diagonal = np.diagonal(matrix).copy()
    partner = upper if upper <= tau else tau
    return np.argsort(-larger_root(diagonal, norms, partner), kind="stable")


def tree_text(
    matrix: FloatArray,
    k: int,
    tau: float,
    upper: FloatArray,
    max_nodes: int,
    max_entries: int,
    *groups: GroupLimits,
    error: float = ROOM,
    weights: FloatArray | None = None,
) -> tuple[str | None, int]:
    """Return the text of a tree for no k-set above τ, and how many nodes it has.

    None if a set is above τ', or may be for a matrix nearby, or if the nodes or the
    memory do not suffice.

    Parameters
    ----------
    matrix : (n, n) array
        In the order of the nodes; see `root_order`.
    k : int
        At least 2.
    upper : (k + 1,) array
        upper[q] ≥ opt(q) for q < k, +inf where nothing is known.
    max_entries : int
        Most float64 entries of all matrices of nodes together.
    *groups : GroupLimits
        Of the features of `matrix`: only sets that keep all of them count.
    error : float
        How near those matrices are, of |τ|.
    weights : (p, n) array, optional
        If `matrix` is the Schur complement of p features: (τI − A_PP)⁻¹ A_PF.
    """
    from .._kernels import tree_log as kernel

    n = len(matrix)
    if n < k:
        return "L", 1
    # Pages that are not written to cost nothing, beginning again does.
    memory = np.empty(min(max_entries, (k + 4) * n * n + 64))
    log = np.empty(_FIRST_LOG, dtype=np.int64)
    levels = np.zeros((5, k + 1), dtype=np.int64)
    labels, orders, opens = (np.zeros((k + 1, n), dtype=np.int64) for _ in range(3))
    bounds, work = np.zeros((4, k + 1, n)), np.zeros((3, max(n, k) + 1))
    state = np.zeros(3, dtype=np.int64)
    group = np.full((len(groups), n), -1)
    rooms = np.zeros((k + 1, sum(len(one.room) for one in groups)), dtype=np.int64)
    first, before = 0, np.zeros((0, n)) if weights is None else weights
    for labels_of, limits in zip(group, groups, strict=True):
        own, end = limits.label >= 0, first + len(limits.room)
        labels_of[own] = limits.label[own] + first
        rooms[0, first:end], first = limits.room, end
    while True:
        code = kernel.write_tree(
            np.ascontiguousarray(matrix), np.ascontiguousarray(before), k, tau,
            below(tau), error * abs(tau), upper, memory, levels, labels, orders, opens,
            bounds, work, np.zeros(n, dtype=np.int64), log, max_nodes, state, group,
            rooms,
        )  # fmt: skip
        if code == kernel.NEEDS_MEMORY and state[kernel.MEMORY] <= max_entries:
            memory = np.empty(min(2 * int(state[kernel.MEMORY]), max_entries))
        elif code == kernel.LOG_FULL:
            log = np.empty(4 * len(log), dtype=np.int64)
        else:
            break
    nodes = int(state[kernel.NODES])
    if code != kernel.CLOSED:
        return None, nodes
    return _as_text(log[: state[kernel.WRITTEN]].tolist()), nodes


def _as_text(log: list[int]) -> str:
    from .._kernels import tree_log as kernel

    letters = {kernel.DROP: "D", kernel.LEAF: "L", kernel.POSITIVE: "P"}
    words, i = [], 0
    while i < len(log):
        if log[i] == kernel.SUFFIX:
            words.append(f"S{log[i + 1]}")
            i += 2
        else:
            words.append(letters.get(log[i], str(log[i])))
            i += 1
    return " ".join(words)
