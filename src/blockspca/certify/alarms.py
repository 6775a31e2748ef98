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
from ..result import Result, Status

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
    """Whether a walk came to its end, and yet claims nothing: `conclude` took it back.

    A walk that no limit stopped has the bound of the variances at least.
    """
    return result.status is Status.FEASIBLE and result.bound_name == BoundName.NONE


def values_of_subsets(
    matrix: FloatArray, positions: NDArray[np.int64], x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x'Ax / x'x for x cut to its 1, 2, …, K largest entries, and what rounding adds.

    For several x at once, (m, K), on supports `positions`, (m, K), of a matrix; what
    has fewer entries is filled up with zeros, anywhere. Each value is a lower bound on
    opt(1), opt(2), …, opt(K): what is proved for a smaller k must not be below it. A
    sum of j² products is added up in 2j + 1 steps, so it errs by at most (j + 3) eps of
    their sizes.

    Examples
    --------
    >>> import numpy as np
    >>> A, x = np.diag([1.0, 3.0]), np.array([[0.6, 0.8]])
    >>> values_of_subsets(A, np.array([[0, 1]]), x)[0].round(2)
    array([[3.  , 2.28]])
    """
    order = (-np.abs(x)).argsort(axis=1, kind="stable")
    each = np.arange(len(x))[:, None]
    y, at = x[each, order], positions[each, order]
    terms = matrix[at[:, :, None], at[:, None, :]]
    terms *= y[:, :, None] * y[:, None, :]
    # By symmetry, an entry more adds a row up to the diagonal, twice but for that.
    both = np.array([terms, np.abs(terms)])
    rows = 2 * both.cumsum(axis=3).diagonal(axis1=2, axis2=3)
    rows -= both.diagonal(axis1=2, axis2=3)
    values, sizes = rows.cumsum(axis=2) / (y * y).cumsum(axis=1)
    return values, (np.arange(x.shape[1]) + 6) * EPS * sizes
