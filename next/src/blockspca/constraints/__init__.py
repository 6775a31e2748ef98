"""Constraints: features to include or exclude, groups, overlap, one sign."""

from .constraints import Constraints

__all__ = ["Constraints"]
