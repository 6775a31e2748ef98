"""Warnings that point at the user's line, however deep they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

#: Files of this package, and of scikit-learn, which wraps `fit`, are nobody's own code.
_HERE = str(Path(__file__).parent)
_LOOPS = ("sklearn.model_selection", "joblib.parallel", "joblib._parallel_backends")
_PACKAGES = (_HERE, "/sklearn/", "\\sklearn\\")


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the first caller outside this package.

    Examples
    --------
    >>> import warnings
    >>> from blockspca._warnings import warn_caller
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warn_caller("two columns are constant")
    >>> str(said[0].message)
    'two columns are constant'
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and any(
        part in frame.f_code.co_filename for part in _PACKAGES
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def is_one_of_many_fits() -> bool:
    """Tell whether a search of scikit-learn, or a loop of joblib, calls from above.

    Neither sees that a fit which returns was interrupted, and goes on with the next.

    Examples
    --------
    >>> from blockspca._warnings import is_one_of_many_fits
    >>> is_one_of_many_fits()
    False
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(_LOOPS):
            return True
        frame = frame.f_back
    return False


def is_nested_call() -> bool:
    """Tell whether the function that asks was called by this package, not by a user.

    Then whoever called it hears what it found, and says what is to be said of it, once.
    """
    caller = sys._getframe(1).f_back
    return caller is not None and caller.f_code.co_filename.startswith(_HERE)
