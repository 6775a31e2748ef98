"""Numbers and proofs in words, and warnings in the name of the user's line."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

from .limits import Status

# Calls of these files are no user's line: scikit-learn wraps `fit`.
_LIBRARIES = (str(Path(__file__).parent), "/sklearn/", "\\sklearn\\")
_REASONS = {
    Status.FEASIBLE: "the search is finished",
    Status.TIME_LIMIT: "the time limit was reached; raise limits.time",
    Status.WORK_LIMIT: "the work limit was reached; raise limits.work",
    Status.MEMORY_LIMIT: "the memory limit was reached; raise limits.memory",
    Status.INTERRUPTED: "the call was interrupted",
}


def count(number: int, noun: str) -> str:
    """Return '1 sample' or '3 samples'.

    Examples
    --------
    >>> from blockspca.messages import count
    >>> count(1, "sample"), count(30_000, "sample")
    ('1 sample', '30,000 samples')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def gap_in_percent(gap: float) -> str:
    """Return a relative gap as text.

    Examples
    --------
    >>> from blockspca.messages import gap_in_percent
    >>> [gap_in_percent(gap) for gap in (0.025, 2e-6, 1e-9, float("inf"))]
    ['2.50 %', '0.0002 %', '0', 'unknown']
    """
    if gap < 1e-8:
        return "0"
    if math.isinf(gap):
        return "unknown"
    return f"{100 * gap:.2f} %" if gap >= 1e-4 else f"{100 * gap:.1g} %"


def proof_in_words(status: Status, gap: float) -> str:
    """Say in half a sentence how good an objective is.

    Examples
    --------
    >>> from blockspca.limits import Status
    >>> from blockspca.messages import proof_in_words
    >>> proof_in_words(Status.OPTIMAL, 0.0)
    'proved optimal'
    >>> proof_in_words(Status.GAP, 0.02)
    'proved: no other choice is more than 2.00 % better'
    """
    if status is Status.OPTIMAL:
        return "proved optimal"
    better = f"no other choice is more than {gap_in_percent(gap)} better"
    if status is Status.GAP:
        return f"proved: {better}"
    if math.isinf(gap):
        better = "no bound is proved"
    return f"not proved optimal, {better} ({_REASONS[status]})"


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the first caller outside this package.

    Examples
    --------
    >>> import warnings
    >>> from blockspca.messages import warn_caller
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warn_caller("two columns are constant")
    >>> str(caught[0].message)
    'two columns are constant'
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and any(
        library in frame.f_code.co_filename for library in _LIBRARIES
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
