"""Why a proof, or a tree of it, is not recorded."""

from __future__ import annotations


class NotRecordable(ValueError):
    """The proof format has no rule for this result."""


class NoTimeToRecord(NotRecordable):
    """A was not read once more in the time that a recording has."""


class NotClosed(Exception):
    """A set is above τ, or there are too many nodes."""
