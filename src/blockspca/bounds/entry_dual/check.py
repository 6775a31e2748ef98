"""The bound that a record of the entry dual proves, from the record and A alone."""

from __future__ import annotations

import numpy as np

from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics.rounding import EPS
from .matrix import DualMatrix
from .pairs import Pairs, strong_pairs
from .proof import largest_eigenvalue, priced_matrix
from .record import EntryRecord

#: Diagonal entries below, in units of the record, are raised to it: the unit is the
#: power of four below |objective|, and none so low is in a component worth its name.
LOWEST = -8.0
_MU = 1e-4  # of the largest diagonal entry: which eigenvectors are nearly leading
_AGREED = 1e-10  # relative: by how much another LAPACK may find a bound to be larger


def checked_value(
    cov: Covariance, k: int, record: EntryRecord, deadline: Deadline | None = None
) -> float:
    """Bound opt(k) by a record; one pass over A and a factor of the core.

    Parameters
    ----------
    cov : Covariance
    k : int
    record : EntryRecord
        Its inequalities are checked first: ValueError if one does not hold.
    deadline : Deadline, optional
        `pairs.OutOfTime` is raised if the pass over A is late.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> cov = Covariance.from_matrix(np.ones((4, 4)))
    >>> nobody, nothing = np.empty(0, np.intp), np.zeros((0, 0))
    >>> record = EntryRecord.of(np.ones(4), 1.0, nobody, nothing)
    >>> round(checked_value(cov, 2, record), 6)  # M = (1 + (k - 1) w²) I
    2.0
    """
    record.check()
    levels = record.weights_in(1.0)
    found = strong_pairs(cov, levels, deadline)
    pairs = Pairs(found.rows, found.columns, found.values / record.unit)
    return proved_value(cov, k, record, pairs, agreed=0.0)


def proved_value(
    cov: Covariance,
    k: int,
    record: EntryRecord,
    pairs: Pairs,
    agreed: float = _AGREED,
) -> float:
    """Bound opt(k) by a record and a list of pairs, in units of the record.

    Parameters
    ----------
    pairs : Pairs
        All with |A_ij| > w_i w_j, and perhaps more.
    agreed : float
        Raise the bound by this part of it, so that it is found again elsewhere.
    """
    unit, core = record.unit, record.core
    d = cov.n_features
    members = np.zeros(d, dtype=bool)
    members[core] = True
    w = record.weights_in(unit)
    pairs = pairs.outside(members).above(w)
    diagonal = np.maximum(cov.diagonal() / unit, LOWEST)
    block = cov.submatrix(core) / unit if len(core) else np.zeros((0, 0))
    shares = record.shares_as_floats
    # Where the leading eigenvectors are; the proof does not rely on it.
    largest = float((diagonal + (k - 1) * w * w).max())
    matrix = DualMatrix(diagonal, k, core, block, pairs, w)
    slope = matrix.slope(w, shares, _MU * abs(largest) or 1.0)
    M = priced_matrix(diagonal, k, w, core, shares, block, pairs)
    value = largest_eigenvalue(M, slope.presence, slope.largest) * unit
    value += k * cov.entry_error
    return float(value + (agreed + 4 * EPS) * abs(value))
