"""What is asked of several components besides a scheme: constraints, and starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..constraints import Constraints, checked, feature_indices
from ..covariance.covariance import Covariance
from .schemes import DisjointSupports, Scheme


def check_constraints(
    constraints: Constraints,
    cov: Covariance,
    sparsities: Sequence[int],
    scheme: Scheme,
) -> None:
    """Refuse constraints that several components cannot keep."""
    for k in sparsities:
        rules = checked(constraints, cov.n_features, cov.feature_names, k)
    if hasattr(scheme, "normals"):
        raise ValueError(
            f"constraints with {type(scheme).__name__}(): its own search does not know "
            "them; pass scheme=ResidualDeflation()."
        )
    disjoint = isinstance(scheme, DisjointSupports) or getattr(
        scheme, "disjoint", False
    )
    if disjoint and rules.include and len(sparsities) > 1:
        raise ValueError(
            "include with disjoint supports: a feature can be in one component only; "
            "pass scheme=ResidualDeflation(), or solve the first component alone."
        )


def check_starts(
    start: Any, cov: Covariance, sparsities: Sequence[int]
) -> list[list[int]]:
    """Check supports to start from, one for each component; none is an empty list."""
    if start is None:
        return []
    if len(start) != len(sparsities):
        raise ValueError(
            f"start has {len(start)} support(s) for {len(sparsities)} component(s); "
            "pass one for each."
        )
    d, names = cov.n_features, cov.feature_names
    return [
        list(feature_indices(support, d, names, f"start[{j}]"))[:k]
        for j, (support, k) in enumerate(zip(start, sparsities, strict=True))
    ]
