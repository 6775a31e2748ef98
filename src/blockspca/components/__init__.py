"""Several components: deflation schemes, adjusted explained variance, joint bound."""

from .orthogonal import Orthogonalised
from .schemes import (
    DisjointSupports,
    HotellingDeflation,
    ProjectionDeflation,
    ResidualDeflation,
    Scheme,
)
from .solve import Components, solve_components
from .uncorrelated import UncorrelatedScores

__all__ = [
    "Components",
    "DisjointSupports",
    "HotellingDeflation",
    "Orthogonalised",
    "ProjectionDeflation",
    "ResidualDeflation",
    "Scheme",
    "UncorrelatedScores",
    "solve_components",
]
