"""The point of the entry dual that a proof writes down: weights, core and shares.

Beside them it names the features K of which the matrix is eliminated, and the scaling v
that bounds the rows of all others (`proof.py`, "Many features"). Whoever checks it
makes the matrix M anew (`docs/proof-format.md`, rule "entry").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from .check import checked_pairs, priced_point, with_errors
from .pairs import OutOfTime
from .proof import bound_beside, dense_features
from .record import EntryRecord

FARTHEST = 2.0**100  # of a scaling from 1, either way, by the format


def written_point(
    cov: Covariance, k: int, record: EntryRecord, deadline: Deadline
) -> tuple[float, dict[str, Any]] | None:
    """Return the bound of a record, and what a proof says of it.

    None if there is no time for a pass over A, or no scaling that the format has.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> from blockspca.limits import Budget
    >>> cov = Covariance.from_matrix(np.ones((3, 3)))
    >>> nobody, nothing = np.empty(0, np.intp), np.zeros((0, 0))
    >>> record = EntryRecord.of(np.ones(3), 1.0, nobody, nothing)
    >>> value, said = written_point(cov, 2, record, Budget())
    >>> round(value, 6), said["weights"][0], said["core"]
    (2.0, '0x1.0000000000000p+0', [])
    """
    try:
        M, slope = priced_point(cov, k, record, checked_pairs(cov, record, deadline))
    except OutOfTime:
        return None
    inside, grown, rows = dense_features(M, slope.presence, slope.largest)
    value = bound_beside(M, inside, grown, rows, deadline) * record.unit
    said: dict[str, Any] = {
        "weights": in_hex(record.weights_in(1.0)),
        "core": record.core.tolist(),
        "shares": record.shares[np.triu_indices(len(record.core), 1)].tolist(),
        "dense": np.flatnonzero(inside).tolist(),
    }
    if not inside.all():
        scaling = grown / float(grown.max())
        if not (np.isfinite(value) and float(scaling.min()) >= 1 / FARTHEST):
            return None
        said["scaling"] = in_hex(scaling)
    return with_errors(value, cov, k), said


def in_hex(values: FloatArray) -> list[str]:
    """Numbers as the format has them."""
    return [value.hex() for value in values.tolist()]
