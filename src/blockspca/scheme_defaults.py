"""The names of schemes, and which is the default where; `components` has the schemes.

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


#: Of `solve_components`: what is claimed then needs no matrix but A itself.
SOLVED = SchemeName.DISJOINT

#: Of `SparsePCA` and of `blockspca fit`: who fits data wants what explains most of it.
FITTED = SchemeName.AUTO

#: Of the explorer: a page answers one component at a time, and changes none of them.
EXPLORED = SchemeName.RESIDUAL

#: Of `choose_n_components`: a component is to count for what the earlier ones leave.
COUNTED = SchemeName.RESIDUAL
