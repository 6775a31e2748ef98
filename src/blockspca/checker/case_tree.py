"""Trees of the rule "compositions": sets with known counts of features of each part.

The parts are groups, of which a set has at most as many features as its counts say;
the tree is that of section 5, read by the classes that read the trees of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arithmetic import Matrix, Number
from .composition_file import Case
from .fields import ProofError
from .groups import Groups, Rooms


@dataclass(frozen=True)
class CaseCounts:
    """Features of parts that a set has all of, and of those that it has some of."""

    whole: np.ndarray  # in the order of parts
    some: np.ndarray
    part: np.ndarray  # of each feature of the matrix
    room: np.ndarray  # the count of each part

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], begin: Sequence[int]) -> CaseCounts:
        """Return what counts say; those that are not there are 0."""
        room = np.zeros(len(parts), dtype=np.int64)
        room[: len(begin)] = begin
        whole = [part for part, s in zip(parts, room, strict=True) if s == len(part)]
        some = [part for part, s in zip(parts, room, strict=True) if 0 < s < len(part)]
        none = np.zeros(0, dtype=np.int64)
        of_feature = np.zeros(sum(map(len, parts)), dtype=np.int64)
        for g, part in enumerate(parts):
            of_feature[part] = g
        return cls(
            np.concatenate([none, *whole]),
            np.concatenate([none, *some]),
            of_feature,
            room,
        )

    @property
    def groups(self) -> Groups:
        """The parts as groups, of which a set has as many features as are counted."""
        return Groups(self.part, self.room)

    def largest_sums(
        self, squares: np.ndarray, columns: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Return for each row the sum of its largest squares that a set can have.

        A set with the feature of the row has one less of its part. It is the choice of
        `Groups.largest` for many rows: part by part, as all features are in one.
        """
        total = np.zeros(len(rows))
        for g in np.flatnonzero(self.room):
            inside = np.sort(squares[:, self.part[columns] == g], axis=1)[:, ::-1]
            most = self.room[g] - (self.part[rows] == g)
            sums = np.cumsum(inside, axis=1)
            places = np.minimum(most, inside.shape[1]) - 1
            if inside.shape[1]:
                found = sums[np.arange(len(rows)), np.maximum(places, 0)]
                total += np.where(places >= 0, found, 0.0)
        return total


def check_case_tree(
    matrix: Matrix[Number],
    k: int,
    counts: CaseCounts,
    case: Case,
    uppers: dict[int, Number],
) -> None:
    """Choose the features of whole parts, and read the tree; U_q is `uppers[q]`."""
    if len(counts.whole) == k and [node.letter for node in case.tree] != ["L"]:
        raise ProofError(f"k = {k}: a case without a choice is closed by L")
    whole = counts.whole.tolist()
    choices = case.depth + len(whole)
    names = tuple(whole) + case.features
    with np.errstate(all="ignore"):  # what is not finite fails its comparison
        tree, B = matrix.tree(case.tree, choices, k, names, uppers)
        for _ in whole:
            if not tree.pivot_fits(B, 0):
                raise ProofError(f"k = {k}: a whole part has B_pp ≥ τ")
            B = tree.child(B, 0, np.arange(1, tree.size(B)))
        if len(whole) < k:
            groups = counts.groups.restricted(case.features)
            places = np.arange(len(case.features))
            tree.node(B, places, k - len(whole), Rooms([groups]))
