"""Several components: deflation schemes, adjusted explained variance, joint bound."""

from .many import Components, solve_components
from .orthogonal import Orthogonalised
from .schemes import (
    DisjointSupports,
    HotellingDeflation,
    ProjectionDeflation,
    Scheme,
)

__all__ = [
    "Components",
    "DisjointSupports",
    "HotellingDeflation",
    "Orthogonalised",
    "ProjectionDeflation",
    "Scheme",
    "solve_components",
]
