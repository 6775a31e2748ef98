"""The bound that a record of the entry dual proves, from the record and A alone.

A record is a point, whose matrix is bounded again, or the log of a search, which is run
again without its ascents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline
from ...numerics.rounding import EPS, TINY
from ...numerics.upper_eigenvalues import AGREED
from .log import Screen, SearchRecord
from .matrix import DualMatrix, Slope
from .node import Node
from .pairs import Pairs, strong_pairs
from .proof import Priced, bound_beside, dense_features, priced_matrix
from .record import EntryRecord
from .screening import survivors
from .search import EntrySearch, LogMismatch

#: Diagonal entries below, in units of the record, are raised to it: the unit is the
#: power of four below |objective|, and none so low is in a component worth its name.
LOWEST = -8.0
_NO_LIMIT = 2**62  # nodes
# Of the largest diagonal entry: which eigenvectors are nearly leading. Where v knows
# the leading one alone, what is beside K costs the others (Leukemia, k = 50: 1.1 %
# with 1e-4, 0.0001 % with 1e-3 and more).
_MU = 2e-3


class _InDoubles(DualMatrix):
    """Where v comes from in single precision, another machine finds another bound."""

    single_from = 2**62


def checked_value(
    cov: Covariance, k: int, record: EntryRecord, deadline: Deadline | None = None
) -> float:
    """Bound opt(k) by a record; one pass over A and a factor of the core.

    Parameters
    ----------
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
    pairs = checked_pairs(cov, record, deadline)
    return proved_value(cov, k, record, pairs, agreed=0.0)


def checked_pairs(
    cov: Covariance, record: EntryRecord, deadline: Deadline | None
) -> Pairs:
    """The pairs above w_i w_j of a record that keeps its inequalities, in its units."""
    record.check()
    levels = record.weights_in(1.0)
    found = strong_pairs(cov, levels, deadline)
    return Pairs(found.rows, found.columns, found.values / record.unit)


def read_record(text: str, n_features: int) -> EntryRecord | SearchRecord:
    """Read the text of a point or of a log; ValueError if it is neither."""
    try:
        return SearchRecord.from_text(text, n_features)
    except ValueError:
        return EntryRecord.from_text(text, n_features)


def searched_again(
    cov: Covariance, k: int, record: SearchRecord, deadline: Deadline
) -> float:
    """Bound opt(k) by the log of a search; infinite if it does not repeat.

    At the deadline the search ends with the bound it has; `pairs.OutOfTime` is raised
    if that comes during the pass over A.
    """
    features = record.features
    if len(features) != cov.n_features:
        if record.screen is None:
            return np.inf
        pairs = pairs_of_screen(cov, record.screen, deadline)
        left = screened_features(cov, k, record.tau, record.screen, pairs, 0.0)
        if not np.isin(left, features).all():
            return np.inf
    A = dense_problem(cov, features, record.unit)
    search = EntrySearch(A, k, record.tau, Node.whole(len(A)), record.log)
    try:
        value = search.run(deadline, _NO_LIMIT)
    except LogMismatch:
        return np.inf
    if record.screen is not None:  # what it rules out is at most τ
        value = max(value, record.tau)
    return searched_value(value, record.unit, k, cov)


def pairs_of_screen(cov: Covariance, screen: Screen, deadline: Deadline) -> Pairs:
    """All pairs above the level of a screen, in its units, by a pass over A."""
    unit = screen.record.unit
    levels = np.full(cov.n_features, np.sqrt(screen.level * unit))
    found = strong_pairs(cov, levels, deadline)
    return Pairs(found.rows, found.columns, found.values / unit)


def screened_features(
    cov: Covariance, k: int, tau: float, screen: Screen, pairs: Pairs, agreed: float
) -> NDArray[np.intp]:
    """Return the features that the point of a screen leaves for sets above τ.

    Parameters
    ----------
    tau : float
        In units of the screen.
    pairs : Pairs
        All above the level of the screen, in its units.
    agreed : float
        Room that is left for other machines, on which bounds may differ a little, as a
        part of τ.
    """
    unit = screen.record.unit
    upper = proved_value(cov, k - 1, screen.record, pairs, agreed) / unit
    diagonal = np.maximum(cov.diagonal() / unit, LOWEST)
    error = cov.entry_error / unit
    tau -= agreed * abs(tau)
    return survivors(pairs, diagonal, k, tau, upper, screen.level, error)


def dense_problem(
    cov: Covariance, features: NDArray[np.intp], unit: float
) -> FloatArray:
    """A between features, in units, with very negative variances raised."""
    A = cov.submatrix(features)
    refuse_large(unit, len(features), float(np.abs(A).max(initial=0.0)))
    A = A / unit
    A = (A + A.T) / 2  # of data, entries are computed twice
    n = len(features)
    A[np.diag_indices(n)] = np.maximum(np.diagonal(A), LOWEST)
    return A


def refuse_large(unit: float, k: int, largest: float) -> None:
    """Refuse a unit in which entries would underflow.

    It is at most |x'Ax| ≤ k · largest for the component that it was made for; then what
    underflows is below 2⁻¹⁰⁷⁴ of that, and nothing beside its rounding.
    """
    if not unit <= 4.0 * k * largest:
        raise ValueError(
            f"entry dual: unit = {unit:g} is too large for entries up to {largest:g}."
        )


def searched_value(value: float, unit: float, k: int, cov: Covariance) -> float:
    """What a search in units says about A, errors of entries included."""
    # k TINY: entries may have underflowed in units
    value = (value + k * TINY) * unit
    error = k * cov.entry_error
    return float(value + error + 4 * EPS * (abs(value) + error))


def proved_value(
    cov: Covariance, k: int, record: EntryRecord, pairs: Pairs, agreed: float = AGREED
) -> float:
    """Bound opt(k) by a record and a list of pairs, in units of the record.

    Parameters
    ----------
    pairs : Pairs
        All with |A_ij| > w_i w_j, and perhaps more.
    agreed : float
        Raise the bound by this part of it, so that it is found again elsewhere.
    """
    M, slope = priced_point(cov, k, record, pairs)
    split = dense_features(M, slope.presence, slope.largest)
    value = bound_beside(M, *split) * record.unit
    return with_errors(value, cov, k, agreed)


def with_errors(value: float, cov: Covariance, k: int, agreed: float = 0.0) -> float:
    """What λmax of a point says about A, errors of entries included."""
    error = k * cov.entry_error
    slack = agreed * abs(value + error) + 4 * EPS * (abs(value) + error)
    return float(value + error + slack)


def priced_point(
    cov: Covariance, k: int, record: EntryRecord, pairs: Pairs
) -> tuple[Priced, Slope]:
    """M of a record, in units of it, and where its leading eigenvectors are.

    The proof does not rely on the latter.
    """
    unit, core = record.unit, record.core
    d = cov.n_features
    members = np.zeros(d, dtype=bool)
    members[core] = True
    w = record.weights_in(unit)
    pairs = pairs.outside(members).above(w)
    diagonal = np.maximum(cov.diagonal() / unit, LOWEST)
    block = cov.submatrix(core) if len(core) else np.zeros((0, 0))
    entries = (block, cov.diagonal(), pairs.values * unit, w * w * unit)
    refuse_large(unit, k, max(float(np.abs(v).max(initial=0.0)) for v in entries))
    block = block / unit
    shares = record.shares_as_floats
    largest = float((diagonal + (k - 1) * w * w).max())
    prices = np.full(d, k - 1.0)
    matrix = _InDoubles(diagonal, prices, core, block, pairs, w)
    slope = matrix.slope(w, shares, _MU * abs(largest) or 1.0)
    return priced_matrix(diagonal, k, prices, w, core, shares, block, pairs), slope
