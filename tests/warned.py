"""A call with the warnings that it gives to whoever made it."""

from __future__ import annotations

import warnings
from typing import Any


def warned(call: Any, *arguments: Any, **options: Any) -> tuple[Any, list[str]]:
    """Return what a call gives, and all that it warns of in this file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = call(*arguments, **options)
    assert all(one.filename == __file__ for one in said)
    return found, [str(one.message) for one in said]
