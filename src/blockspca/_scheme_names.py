"""The names of deflation schemes, as the command line and the explorer write them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .components import Scheme


class SchemeName(str, Enum):
    """How a further component depends on the earlier ones."""

    DISJOINT = "disjoint"
    PROJECTION = "projection"
    ORTHOGONAL = "orthogonal"
    HOTELLING = "hotelling"
    RESIDUAL = "residual"
    RESIDUAL_DISJOINT = "residual-disjoint"
    UNCORRELATED = "uncorrelated"


DISJOINT_SCHEMES = (SchemeName.DISJOINT, SchemeName.RESIDUAL_DISJOINT)

#: How each is written in Python.
IN_PYTHON = {
    SchemeName.DISJOINT: "DisjointSupports()",
    SchemeName.PROJECTION: "ProjectionDeflation()",
    SchemeName.ORTHOGONAL: "Orthogonalised()",
    SchemeName.HOTELLING: "HotellingDeflation()",
    SchemeName.RESIDUAL: "ResidualDeflation()",
    SchemeName.RESIDUAL_DISJOINT: "ResidualDeflation(disjoint=True)",
    SchemeName.UNCORRELATED: "UncorrelatedScores()",
}


def as_scheme(name: SchemeName) -> Scheme:
    """Return the library's object for a scheme."""
    from . import components

    schemes: dict[SchemeName, Callable[[], Scheme]] = {
        SchemeName.DISJOINT: components.DisjointSupports,
        SchemeName.PROJECTION: components.ProjectionDeflation,
        SchemeName.ORTHOGONAL: components.Orthogonalised,
        SchemeName.HOTELLING: components.HotellingDeflation,
        SchemeName.RESIDUAL: components.ResidualDeflation,
        SchemeName.RESIDUAL_DISJOINT: partial(components.ResidualDeflation, True),
        SchemeName.UNCORRELATED: components.UncorrelatedScores,
    }
    return schemes[name]()


def scheme_called(name: str) -> SchemeName | None:
    """Return the scheme that certificates call so."""
    from .components.schemes import scheme_name

    known = {scheme_name(as_scheme(scheme)): scheme for scheme in SchemeName}
    return known.get(name)
