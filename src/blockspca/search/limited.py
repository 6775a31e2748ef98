"""Row norms where a set may have only so many features of a group.

In a set S that has at most m_g features of group g, row i meets at most m_g entries of
columns in g, and m_g − 1 of its own group. So ‖A_iT‖², T = S \\ {i}, is at most the sum
of the q largest squares among the m_g (m_g − 1) largest of each group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE


def keep_limits(
    entries: FloatArray, rows: NDArray[np.integer], groups: GroupLimits
) -> FloatArray:
    """Set to 0, in place, what cannot count: entries ≥ 0, (rows, all features).

    `rows` says which feature each row belongs to; its own entry is 0.
    """
    for g, room in enumerate(groups.room.tolist()):
        members = np.flatnonzero(groups.label == g)
        own = groups.label[rows] == g
        for chosen, most in ((own, room - 1), (~own, room)):
            if len(members) <= most or not chosen.any():
                continue
            at = np.flatnonzero(chosen)
            part = entries[np.ix_(at, members)]
            smaller = len(members) - max(most, 0)
            least = np.argpartition(part, smaller - 1, axis=1)[:, :smaller]
            np.put_along_axis(part, least, 0.0, axis=1)
            entries[np.ix_(at, members)] = part
    return entries


def row_tops(
    cov: Covariance, width: int, groups: GroupLimits | None = None
) -> FloatArray:
    """Return the `width` largest |A_ij|, j ≠ i, of every row, descending.

    With groups, of those that a set which keeps their limits can meet.
    """
    d = cov.n_features
    width = min(width, d - 1)
    tops = np.empty((d, max(width, 0)))
    if width < 1:
        return tops
    step = max(1, ENTRIES_AT_ONCE // d)
    for start in range(0, d, step):
        rows = np.abs(cov.rows(slice(start, start + step)))
        index = np.arange(len(rows))
        if groups is not None:
            rows[index, start + index] = 0.0
            keep_limits(rows, start + index, groups)
        rows[index, start + index] = -1.0  # the diagonal does not count
        best = np.partition(rows, d - width, axis=1)[:, d - width :]
        tops[start : start + step] = np.sort(best, axis=1)[:, ::-1]
    return tops
