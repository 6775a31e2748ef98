"""The largest entries of each row of A, without A in memory."""

from .lists import Lists

__all__ = ["Lists"]
