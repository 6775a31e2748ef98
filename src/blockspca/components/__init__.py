"""Several components: deflation schemes, adjusted explained variance, joint bound."""

from .orthogonal import Orthogonalised
from .scheme import Scheme
from .schemes import (
    DisjointSupports,
    HotellingDeflation,
    ProjectionDeflation,
    ResidualDeflation,
)
from .shared_result import SharedSupport
from .shared_support import solve_shared, solve_shared_path
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
    "SharedSupport",
    "UncorrelatedScores",
    "solve_components",
    "solve_shared",
    "solve_shared_path",
]
