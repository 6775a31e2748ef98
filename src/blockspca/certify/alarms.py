"""Alarms: a bound below what is reached is a defect, and then nothing is claimed.

Every bound here is a theorem with its rounding accounted for, so that none of these
should ever go off. They compare what was proved with what was found, which comes from
other code, and cost next to nothing.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..numerics.rounding import EPS
from ..result import Result
from ..status import Status

DEFECT = (
    "internal error: the upper bound {bound:.12g} ({name}) for k = {k} is below "
    "{objective:.12g}, which {source} reaches; {consequence}. "
    "Please report it."
)


def is_below_objective(
    bound: FloatArray, objective: FloatArray, rounding: FloatArray
) -> NDArray[np.bool_]:
    """Tell which bounds contradict objectives that are right to `rounding`.

    A bound that is not a number contradicts everything.
    """
    return np.logical_not(bound >= objective - rounding)


def alarm(
    k: int,
    bound: float,
    name: str,
    objective: float,
    source: str,
    consequence: str = "no bound of this run is used",
) -> str:
    """Warn of a bound below what is reached; return the message."""
    message = DEFECT.format(
        bound=bound,
        name=name,
        k=k,
        objective=objective,
        source=source,
        consequence=consequence,
    )
    warnings.warn(message, RuntimeWarning, stacklevel=3)
    return message


def has_alarm(result: Result) -> bool:
    """Whether `conclude` found a defect, so that a walk without a limit has no bound.

    Otherwise it would have the bound of the variances at least.
    """
    return result.status is Status.FEASIBLE and result.bound_name == BoundName.NONE


class Subsets:
    """x'Ax / x'x for x cut to its 1, 2, …, K largest entries, and what rounding adds.

    For several x at once, (m, K), on supports `positions`, (m, K), of a matrix; what
    has fewer entries is filled up with zeros, anywhere. Each value is a lower bound on
    opt(1), opt(2), …, opt(K): what is proved for a smaller k must not be below it.

    Examples
    --------
    >>> import numpy as np
    >>> A, x = np.diag([1.0, 3.0]), np.array([[0.6, 0.8]])
    >>> Subsets(A, np.array([[0, 1]]), x).values.round(2)
    array([[3.  , 2.28]])
    """

    def __init__(
        self, matrix: FloatArray, positions: NDArray[np.int64], x: FloatArray
    ) -> None:
        order = (-np.abs(x)).argsort(axis=1, kind="stable")
        each = np.arange(len(x))[:, None]
        y, at = x[each, order], positions[each, order]
        self._terms = matrix[at[:, :, None], at[:, None, :]]
        self._terms *= y[:, :, None] * y[:, None, :]
        self._squares = (y * y).cumsum(axis=1)
        self.values = _sums_of_corners(self._terms) / self._squares

    def rounding(self) -> FloatArray:
        """What the values may be off by.

        A sum of j² products is added up in 2j + 1 steps, so it errs by at most
        (j + 3) eps of their sizes.
        """
        sizes = _sums_of_corners(np.abs(self._terms)) / self._squares
        return (np.arange(sizes.shape[1]) + 6) * EPS * sizes


def _sums_of_corners(terms: FloatArray) -> FloatArray:
    """The sums over the first 1, 2, …, K rows and columns of symmetric matrices.

    By symmetry, an entry more adds a row up to the diagonal, twice but for that.
    """
    rows = 2 * terms.cumsum(axis=2).diagonal(axis1=1, axis2=2)
    rows -= terms.diagonal(axis1=1, axis2=2)
    return rows.cumsum(axis=1)
