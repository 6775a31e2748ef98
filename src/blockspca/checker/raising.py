"""Step 2, `raised`: entries below 0 become 0, but for those of the pairs listed."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from .problem import Problem


class Raised:
    """Which entries of the matrix of the records stay as they are."""

    def __init__(self, problem: Problem) -> None:
        kept = problem.kept
        self.size = len(kept)
        listed = defaultdict(list)
        for a, b in problem.raised or ():
            if a in kept and b in kept:
                listed[kept[a]].append(kept[b])
                listed[kept[b]].append(kept[a])
        self.listed = {i: np.array(others) for i, others in listed.items()}
        self.pairs = {(i, j) for i, others in listed.items() for j in others}

    @classmethod
    def of(cls, problem: Problem) -> Raised | None:
        """Return it, if there is such a step."""
        return None if problem.raised is None else cls(problem)

    def stays(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Say which of these entries stay: those on the diagonal, and those listed."""
        found = np.zeros((len(rows), len(columns)), dtype=bool)
        place = np.full(self.size, -1)
        place[columns] = np.arange(len(columns))
        for at, i in enumerate(np.asarray(rows).tolist()):
            others = place[self.listed.get(i, np.zeros(0, dtype=np.int64))]
            found[at, others[others >= 0]] = True
            if place[i] >= 0:
                found[at, place[i]] = True
        return found

    def entry(self, i: int, j: int, value: int) -> int:
        """Return an entry, raised or not."""
        return value if i == j or value >= 0 or (i, j) in self.pairs else 0

    def lifted(
        self, rows: np.ndarray, columns: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        """Return a part of the matrix after the step."""
        return np.where(self.stays(rows, columns), found, np.maximum(found, 0.0))
