"""The names of schemes, and what several components are by default.

The command line offers them before it loads the solver, which takes a second or two.
"""

from __future__ import annotations

from enum import Enum


class SchemeName(str, Enum):
    """How a further component depends on the earlier ones."""

    AUTO = "auto"
    DISJOINT = "disjoint"
    PROJECTION = "projection"
    ORTHOGONAL = "orthogonal"
    HOTELLING = "hotelling"
    RESIDUAL = "residual"
    RESIDUAL_DISJOINT = "residual-disjoint"
    PREDICTIVE = "predictive"
    UNCORRELATED = "uncorrelated"


#: Wherever none is named: each component is the best that the earlier ones leave, and
#: is proved to be.
DEFAULT_SCHEME = SchemeName.RESIDUAL

#: Of `SparsePCA` and the command line: features of a component, and components. Of
#: data with fewer, there are fewer.
DEFAULT_K, DEFAULT_COMPONENTS = 10, 2
