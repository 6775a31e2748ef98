"""Rule "group-tree": groups that are used as a whole (docs/proof-format.md, section 8).

A unit is a group, or a feature that is in none. What a node shows is about all sets of
its features P and units of F with at most k features. x'Bx ≤ Σ N_gh ‖x_g‖ ‖x_h‖ with
N_gg ≥ λmax(B_gg) and N_gh the root of the sum of squares of B_gh: so suffix bounds are
those of a matrix with a row for each unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from .arithmetic import Matrix, Number
from .fields import ProofError
from .float_tree import FloatTree
from .integer_tree import (
    bits_too_many,
    is_positive_semidefinite,
    pair_fits,
    shortened,
    slack_of,
)
from .positive import larger_root, largest_eigenvalues
from .problem import Problem
from .proof_file import Record
from .screening import above
from .tree import Schur, Tree
from .tree_text import Node, WrittenTree

# Given B, where units start in it, their sizes and m: the units that are still open.
StillOpen = Callable[[Any, np.ndarray, np.ndarray, int], Sequence[int] | np.ndarray]

UNIT_BITS = 128  # of entries, to bound the eigenvalues of units


def check_group_tree(
    problem: Problem, matrix: Matrix[Number], record: Record, upper: Number
) -> None:
    """Show that no allowed set of at most k features has an eigenvalue above U."""
    names, kept = list(problem.kept), problem.kept
    constraints = problem.constraints
    included = [kept[i] for i in constraints.include]
    units = [
        [kept[i] for i in constraints.unit(names[place])] for place in record.features
    ]
    features = included + list(itertools.chain.from_iterable(units))
    owner = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    k = record.k
    with np.errstate(all="ignore"):  # what is not finite fails its comparison
        written = WrittenTree(record.tree, len(features), k, features, {k: upper})
        steps, B = matrix.tree(written)
        still_open: StillOpen = open_in_integers
        if isinstance(steps, FloatTree):
            still_open = partial(open_in_floats, steps)
        GroupTree(steps, still_open).begin(B, len(included), owner)
    matrix.nodes += len(record.tree)


class GroupTree:
    """Reads a tree of units. Rows of B belong to units, `owner`, in ascending order."""

    def __init__(self, steps: Tree, still_open: StillOpen) -> None:
        self.steps, self.still_open = steps, still_open

    def begin(self, B: Schur, included: int, owner: np.ndarray) -> None:
        """Choose the features of `include`, which are first, and read the tree."""
        fits = self.fitting(owner, included)
        B = self.steps.part(B, np.append(np.arange(included), included + fits))
        self.node(self.chosen(B, included), owner[fits], included)

    def fitting(self, owner: np.ndarray, chosen: int) -> np.ndarray:
        """Return the rows of units that have at most k − |P| features."""
        sizes = np.bincount(owner, minlength=1)
        return np.flatnonzero(sizes[owner] <= self.steps.k - chosen)

    def chosen(self, B: Schur, count: int) -> Schur:
        """Choose the first features, one after the other."""
        for _ in range(count):
            if not self.steps.pivot_fits(B, 0):
                raise ProofError(f"k = {self.steps.k}: a unit has B_pp ≥ τ")
            B = self.steps.child(B, 0, np.arange(1, self.steps.size(B)))
        return B

    def node(self, B: Schur, owner: np.ndarray, chosen: int) -> None:
        """Read one node, with its children."""
        steps = self.steps
        node = next(steps.nodes)
        if steps.needs_small_diagonal and steps.exceeds(B):
            raise steps.fail("B_ii ≤ τ")
        if node.letter == "P":
            steps.check_positive(B)
        elif node.letter == "S":
            self.split(node, B, owner, chosen)
        elif len(owner):
            units = len(np.unique(owner))
            raise ProofError(f"k = {steps.k}: L with {units} units")

    def split(self, node: Node, B: Schur, owner: np.ndarray, chosen: int) -> None:
        """Close what the suffix bounds close; the rest must be opened, and hold."""
        steps = self.steps
        F, starts, sizes = np.unique(owner, return_index=True, return_counts=True)
        still_open = F[:0]
        if len(F):
            room = steps.k - chosen
            m = int(np.sum(np.cumsum(np.sort(sizes)) <= room))
            still_open = F[self.still_open(B, starts, sizes, m)]
        for _, place in steps.opened(node, F, still_open):
            first, size = int(starts[place]), int(sizes[place])
            later = np.arange(first + size, len(owner))
            later = later[self.fitting(owner[later], chosen + size)]
            rows = np.append(np.arange(first, first + size), later)
            child = self.chosen(steps.part(B, rows), size)
            self.node(child, owner[later], chosen + size)


def open_in_floats(
    tree: FloatTree, B: np.ndarray, starts: np.ndarray, sizes: np.ndarray, m: int
) -> np.ndarray:
    """Return the units whose suffix bound is not shown to be at most τ, in float64."""
    N, most = len(starts), int(sizes.max())
    squares = np.add.reduceat(np.add.reduceat(B**2, starts, axis=0), starts, axis=1)
    squares = above(squares, most**2)
    a = np.zeros(N)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        rows = starts[which][:, None] + np.arange(size)
        a[which] = largest_eigenvalues(B[rows[:, :, None], rows[:, None, :]])
    sums = -np.sort(-np.triu(squares, 1), axis=1)[:, : m - 1]
    sums = above(np.cumsum(sums, axis=1), m)
    T = first = a.copy()
    for q in range(1, m):
        if q > 1:
            first[:-1] = larger_root(a[:-1], T[1:], sums[:-1, q - 2])
        T = np.maximum.accumulate(first[::-1])[::-1]
    fits = a <= tree.tau
    if m > 1:
        fits[:-1] = tree.pairs_fit(a[:-1], T[1:], sums[:-1, m - 2])
    return np.flatnonzero(~fits)


def open_in_integers(
    B: tuple[list[list[int]], int], starts: np.ndarray, sizes: np.ndarray, m: int
) -> list[int]:
    """Return the units whose suffix bound is not at most τ.

    Slacks are q (τ − T), rounded down.
    """
    M, q = B
    short, _ = shortened(M, q)
    parts = [
        range(start, start + size)
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
    a = [_unit_slack(M, q, short, part) for part in parts]
    sums = []
    for t, part in enumerate(parts):
        squares = (
            sum(short[i][j] ** 2 for i in part for j in other)
            for other in parts[t + 1 :]
        )
        sums.append(list(accumulate(sorted(squares, reverse=True))))
    slacks = first = a
    for j in range(1, m):
        if j > 1:
            first = [
                slack_of(a[t], slacks[t + 1], sums[t][min(j - 2, len(sums[t]) - 1)])
                for t in range(len(a) - 1)
            ]
            first.append(a[-1])
        slacks = list(accumulate(reversed(first), min))[::-1]
    found = []
    for t, alpha in enumerate(a):
        fits = alpha >= 0
        if m > 1 and sums[t]:
            square = sums[t][min(m - 2, len(sums[t]) - 1)]
            fits = pair_fits(alpha, slacks[t + 1], square)
        if not fits:
            found.append(t)
    return found


def _unit_slack(
    M: list[list[int]], q: int, short: list[list[int]], part: Sequence[int]
) -> int:
    """Return what is at most the least eigenvalue of M on a unit, in the short unit.

    For more than two features float64 only says where it may be, at l: that X − lI is
    positive semidefinite is decided in integers. X is M in units of 2^bits, rounded
    down, so that M is X and a matrix with entries in [0, 1), of a norm below its size,
    which is 0 if nothing is cut off. If l would be below 0, 0 is tried on M itself.
    """
    i, j = part[0], part[-1]
    if len(part) == 1:
        return short[i][i]
    if len(part) == 2:
        return slack_of(short[i][i], short[j][j], short[i][j] ** 2)
    largest = max(abs(M[a][b]) for a in part for b in part).bit_length()
    short_bits = bits_too_many(M)
    bits = max(short_bits, largest - UNIT_BITS)
    X = [[M[a][b] >> bits for b in part] for a in part]
    lost = len(part) if bits else 0
    for least in _guesses(X):
        if least < lost:
            inside = [[M[a][b] for b in part] for a in part]
            if is_positive_semidefinite(inside, q):
                return 0
        lower = [
            [x - least * (a == b) for b, x in enumerate(row)] for a, row in enumerate(X)
        ]
        if is_positive_semidefinite(lower):
            return (least - lost) << (bits - short_bits)
    # no eigenvalue is below minus the largest sum of a row
    return -(max(sum(map(abs, row)) for row in X) + lost) << (bits - short_bits)


def _guesses(X: list[list[int]]) -> list[int]:
    """Return about the least eigenvalue of a matrix of integers, and less."""
    rounded = np.array(X, dtype=float)  # of UNIT_BITS at the most
    least = -float(largest_eigenvalues(-rounded[None])[0])
    size = float(np.abs(rounded).sum())
    if not np.isfinite([least, size]).all():
        return []
    return [int(np.floor(least - size * part)) for part in (2.0**-50, 2.0**-40)]
