"""Rules about the features of a component: in or out, groups, overlap, one sign."""

from .constraints import Constraints

__all__ = ["Constraints"]
