"""Schemes by name, as the command line and `scheme="residual"` have them.

Which name is the default is in `scheme_defaults`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..scheme_defaults import DEFAULT_SCHEME, SchemeName
from .orthogonal import Orthogonalised
from .scheme import BaseScheme, completed
from .schemes import (
    DisjointSupports,
    HotellingDeflation,
    ProjectionDeflation,
    ResidualDeflation,
)
from .uncorrelated import UncorrelatedScores

#: The weight of R², where a lasso's components do not decide: as good as 2 or 3
#: (docs/benchmark-components.md).
PREDICTION = 2.5

#: By how much more R² a set has to dominate components that are proved, to be taken in
#: their place. Of 25 data sets, six have one with 3 to 23 % more, and all others at the
#: most 1.7 % (docs/benchmark-components.md).
CLEARLY_MORE = 0.02

_STANDS_FOR: dict[SchemeName, Callable[[], BaseScheme]] = {
    SchemeName.AUTO: partial(ResidualDeflation, unless_dominated=CLEARLY_MORE),
    SchemeName.DISJOINT: DisjointSupports,
    SchemeName.PROJECTION: ProjectionDeflation,
    SchemeName.ORTHOGONAL: Orthogonalised,
    SchemeName.HOTELLING: HotellingDeflation,
    SchemeName.RESIDUAL: ResidualDeflation,
    SchemeName.RESIDUAL_DISJOINT: partial(ResidualDeflation, disjoint=True),
    SchemeName.PREDICTIVE: partial(
        ResidualDeflation, prediction=PREDICTION, above_lasso=True
    ),
    SchemeName.UNCORRELATED: UncorrelatedScores,
}

#: What each name stands for.
SCHEMES = {name.value: scheme for name, scheme in _STANDS_FOR.items()}

#: Those that find one component after the other, and never change an earlier one.
IN_TURN = tuple(
    name for name in SCHEMES if name not in (SchemeName.AUTO, SchemeName.PREDICTIVE)
)


def as_scheme(scheme: Any) -> BaseScheme:
    """Return the scheme of a name, or the default, or the given one, completed.

    Examples
    --------
    >>> from blockspca.components.scheme_names import as_scheme
    >>> as_scheme(None) == as_scheme("residual"), as_scheme("disjoint").disjoint
    (True, True)
    """
    if scheme is None:
        scheme = DEFAULT_SCHEME
    if isinstance(scheme, str):
        if scheme not in SCHEMES:
            raise ValueError(
                f"scheme = {scheme!r} is not known; pass one of {sorted(SCHEMES)}, or "
                "an instance such as blockspca.ResidualDeflation()."
            )
        return SCHEMES[scheme]()
    if isinstance(scheme, type):
        raise TypeError(
            f"scheme = {scheme.__name__} is a class; pass an instance, "
            f"{scheme.__name__}()."
        )
    if not all(hasattr(scheme, name) for name in ("check", "problem", "solve")):
        raise TypeError(
            f"scheme = {scheme!r} is not a scheme; pass one of {sorted(SCHEMES)}, or "
            "an instance such as blockspca.ResidualDeflation()."
        )
    return completed(scheme)
