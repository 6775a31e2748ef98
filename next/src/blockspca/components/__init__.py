"""Several sparse components of one matrix."""

from .components import Components
from .sequence import solve_components

__all__ = ["Components", "solve_components"]
