"""Rule "signs": loadings that are not negative (docs/proof-format.md, section 8).

The tree is that of section 5 on Ã, but begins with the features of `include`, may have
nodes without a B, which are *bare*, and closes a node also by numbers N ≥ 0 that are
added to Ā: x'Āx ≤ x'(Ā + N)x for x ≥ 0. Whatever numbers N ≥ 0 a checker takes are as
good, so that rounding them is no error.

In float64 a node counts as bare by its B̂: what holds without a B holds. The margins of
`float_tree` for i and j need B̂_ii, B̂_jj ≤ τ of no other features; one with more is
opened, or makes its node fail. They are as good for U_j by signs: of a vector x ≥ 0,
each entry is split off by a B̂_ii, which has δ_i more, or is under a U_j + 2 max δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .arithmetic import Matrix, Number
from .fields import ProofError
from .float_tree import FloatTree
from .floats import FloatMatrix
from .groups import Groups, Rooms
from .integer_tree import is_positive_semidefinite
from .integers import IntegerMatrix
from .positive import largest_eigenvalue_is_below
from .problem import Problem
from .proof_file import Added, Record
from .screening import UNIT
from .tree import Schur, Tree
from .tree_text import Node, WrittenTree


def check_signs(
    problem: Problem,
    matrix: Matrix[Number],
    record: Record,
    upper: Number,
    plain: dict[int, Number],
    signs: dict[int, Number],
    kinds: Sequence[Groups],
) -> None:
    """Show x'Āx ≤ U x'x for all x ≥ 0 on sets of k features that are allowed.

    `plain` are the U of records of all sets, `signs` those by signs.
    """
    included = [problem.kept[i] for i in problem.constraints.include]
    names = tuple(included) + record.features
    if len(included) > record.k:
        raise ProofError(f"k = {record.k}: there is more to include than k")
    _check_features(included, record, len(problem.kept), kinds)
    k, choices = record.k, len(included) + record.depth
    rooms = Rooms([one.restricted(names) for one in kinds])
    with np.errstate(all="ignore"):  # what is not finite fails its comparison
        uppers = {**plain, k: upper}
        steps, B = matrix.tree(WrittenTree(record.tree, choices, k, names, uppers))
        more: dict[int, Any]
        closes: Callable[[Added], bool]
        if isinstance(matrix, IntegerMatrix):
            more = {j: upper - u for j, u in signs.items() if u <= upper}
            closes = partial(closes_in_integers, matrix, upper)
        else:
            assert isinstance(matrix, FloatMatrix)
            assert isinstance(steps, FloatTree)
            more = steps.chained({j: float(u) for j, u in signs.items()})
            closes = partial(closes_in_floats, matrix, float(upper), k)
        SignTree(steps, closes, more, record.added, names).begin(
            B, len(included), rooms
        )
    matrix.nodes += len(record.tree)


def _check_features(
    included: list[int], record: Record, size: int, kinds: Sequence[Groups]
) -> None:
    """With `include`, the tree must have all features that fit beside it."""
    if not included:
        return
    if {*included} & {*record.features}:
        raise ProofError(f"k = {record.k}: features of include are not in the tree")
    rooms = Rooms(kinds)
    for i in included:
        rooms = rooms.chosen(i)
    fits = np.flatnonzero(rooms.is_open(np.arange(size)))
    if {*fits.tolist()} - {*included} - {*record.features}:
        raise ProofError(f"k = {record.k}: a feature that fits is not in the tree")


class SignTree:
    """Reads a tree by signs. Features are known by their places in `names`."""

    def __init__(
        self,
        steps: Tree,
        closes: Callable[[Added], bool],
        more: dict[int, Any],
        added: Sequence[Added],
        names: Sequence[int],
    ) -> None:
        self.steps, self.closes, self.added, self.names = steps, closes, added, names
        self.chains = {False: steps.chain, True: {**steps.chain, **more}}

    def begin(self, B: Schur, included: int, rooms: Rooms) -> None:
        """Choose the features of `include`, which are first, and read the tree."""
        steps, self.first = self.steps, included
        places = np.arange(len(self.names))
        for p in range(included):
            rooms = rooms.chosen(p)
            if B is not None:
                fits = steps.pivot_fits(B, 0)
                rest = np.arange(1, steps.size(B))
                B = steps.child(B, 0, rest) if fits else None
        m = steps.k - included
        places = places[included:]
        inside = np.flatnonzero(rooms.is_open(places)) if m else places[:0]
        if B is not None:
            B = steps.part(B, inside)
        self.node(B, tuple(range(included)), places[inside], m, rooms)

    def node(
        self, B: Schur, P: tuple[int, ...], F: np.ndarray, m: int, rooms: Rooms
    ) -> None:
        """Read one node, with its children; B is None if it is bare."""
        steps = self.steps
        node = next(steps.nodes)
        if B is not None and m >= 2 and steps.exceeds(B):
            B = None
        if B is None and node.letter in "DP":
            raise steps.fail(f"{node.letter} in a bare node")
        while node.letter == "D":
            steps.chain = self.chains[not P]
            B, F = steps.dropped(B, F, m)
            node = next(steps.nodes)
        if node.letter == "S":
            self.split(node, B, P, F, m, rooms)
        elif node.letter == "N":
            self.close(self.added[node.number], {*P, *F.tolist()})
        elif node.letter == "P":
            steps.check_positive(B)
        elif B is None and rooms.holds(F, m):
            raise steps.fail("L in a bare node")
        elif B is not None and m > 0:
            steps.last(B, F, m, rooms)

    def still_open(
        self, B: Schur, P: tuple[int, ...], F: np.ndarray, m: int
    ) -> np.ndarray:
        """Return the features of F that an `S` has to open."""
        steps = self.steps
        if B is None:
            return F[: max(0, len(F) - m + 1)]
        if m == 1:
            return F[steps.too_large(B)]
        steps.chain = self.chains[not P]
        return F[steps.open_by_suffix(B, m)]

    def split(
        self,
        node: Node,
        B: Schur,
        P: tuple[int, ...],
        F: np.ndarray,
        m: int,
        rooms: Rooms,
    ) -> None:
        """Close what bounds close; the rest must be opened, and hold."""
        steps = self.steps
        if m < 1:
            raise steps.fail("S where all features are chosen")
        still_open = self.still_open(B, P, F, m) - self.first
        for position, t in steps.opened(node, F - self.first, still_open):
            p = self.first + position
            after, places = rooms.chosen(p), np.arange(t + 1, len(F))
            places = places[after.is_open(F[places])] if m > 1 else places[:0]
            has_b = B is not None and steps.pivot_fits(B, t)
            child = steps.child(B, t, places) if has_b else None
            self.node(child, (*P, p), F[places], m - 1, after)

    def close(self, added: Added, places: set[int]) -> None:
        """Token `N`: added to Ā on all features of the node, and perhaps others."""
        k, given = self.steps.k, {*added.features}
        if given - {*self.names}:
            raise ProofError(f"k = {k}: N with features that are not in the tree")
        if {self.names[place] for place in places} - given:
            raise ProofError(f"k = {k}: N without all features of its node")
        if not self.closes(added):
            raise self.steps.fail("N")


def closes_in_floats(matrix: FloatMatrix, tau: float, k: int, added: Added) -> bool:
    """Say whether τI − Ā − N is shown to be positive semidefinite, in float64.

    fl(Ā + N) is at least Ā, as N ≥ 0, and so is Ā and another such N. An error of ε in
    each entry of Ā costs kε, as only x with k entries count.
    """
    size = len(added.features)
    N = np.zeros((size, size))
    N[np.triu_indices(size, 1)] = [
        float(matrix.number(value)) for value in added.numbers
    ]
    B = matrix.block(added.features, is_raised=False) + (N + N.T)
    lost = 1.01 * min(k, size) * matrix.product_error
    # A quarter of the room that writers leave.
    margin = 2.0**-36 * abs(tau)
    tau = tau - lost - 4 * UNIT * (abs(tau) + lost)
    return largest_eigenvalue_is_below(B, tau, margin)


def closes_in_integers(matrix: IntegerMatrix, tau: int, added: Added) -> bool:
    """Say whether τI − Ā − N is positive semidefinite, exactly."""
    M, _ = matrix.slack(added.features, tau, is_raised=False)
    numbers = iter(added.numbers)
    for i in range(len(M)):
        for j in range(i + 1, len(M)):
            M[i][j] -= matrix.number(next(numbers))
            M[j][i] = M[i][j]
    return is_positive_semidefinite(M)
