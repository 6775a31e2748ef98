"""Compares the summary and loadings that fit wrote with certificates and data."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..components import Components

AGREEMENT = 1e-9  # relative: what is written has every digit
ROUNDING = 1e-12  # of the total variance, or of 1 for loadings, shares and gaps

_OF_TOTAL = ("explained_variance_ratio", "ratio", "r2")  # null of a contrast
_SHARES = (*_OF_TOTAL, "gap")


def summary_difference(
    content: Mapping[str, Any], expected: Components, first: int, shape: list[int]
) -> str | None:
    """Describe where a summary is wrong, from component `first` on; else None.

    With `first` 0 it is the summary of these components and of no others.
    """
    rows, theirs = expected.to_rows(), content.get("components")
    if not isinstance(theirs, list) or len(theirs) < len(rows):
        return f"components are fewer than its {len(rows)} certificates"
    total, bound = expected.total_variance, expected.joint_upper_bound
    if first == 0:
        if len(theirs) > len(rows):
            return f"components are {len(theirs)}, the certificates {len(rows)}"
        if isinstance(stated := content.get("joint_upper_bound"), float):
            bound = max(bound, stated)  # there may be no time for eigenvalues
        whole: dict[str, Any] = {
            "shape": shape,
            "explained_variance_ratio": float(expected.explained_variance_ratio.sum()),
            "total_variance": total,
            "joint_upper_bound": bound,
        }
        if "r2" in content:  # summaries of older versions do not have it
            whole["r2"] = expected.r2
        if said := _row_difference("", content, whole, total):
            return said
    for j in range(first, len(rows)):
        if said := _row_difference(f"components[{j}].", theirs[j], rows[j], total):
            return said
    return None


def _row_difference(
    place: str, stated: Any, expected: Mapping[str, Any], total: float
) -> str | None:
    """Compare field by field; variances to a part of the total, shares to one of 1."""
    stated = stated if isinstance(stated, Mapping) else {}
    for name, value in expected.items():
        if name in _OF_TOTAL and stated.get(name, value) is None:
            continue
        if name == "loadings":
            said = _names_difference(place + name, stated.get(name), value)
        else:
            scale = 1.0 if name in _SHARES else total
            said = _value_difference(place + name, stated.get(name), value, scale)
        if said:
            return said
    return None


def loadings_difference(path: Path, expected: Components, first: int) -> str | None:
    """Describe where loadings.csv is wrong, from component `first` on; else None."""
    stated: dict[str, dict[str, float]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                at = stated.setdefault(row["component"], {})
                if row["feature"] in at:
                    return f"component {row['component']} has {row['feature']!r} twice"
                at[row["feature"]] = float(row["loading"])
    except (KeyError, TypeError, ValueError, csv.Error):
        return "the columns are not those of fit: component, feature, loading"
    wanted = {str(j + 1): r.loadings for j, r in enumerate(expected.results)}
    if first == 0 and (more := [name for name in stated if name not in wanted]):
        return f"component {more[0]} has no certificate"
    for j in range(first, len(wanted)):
        name = str(j + 1)
        field = f"the loadings of component {name}"
        if said := _names_difference(field, stated.get(name), wanted[name]):
            return said
    return None


def _names_difference(
    field: str, stated: Any, expected: Mapping[str, float]
) -> str | None:
    """Compare loadings by feature: the names, then the values."""
    if not isinstance(stated, Mapping):
        return f"{field} are missing"
    missing = [name for name in expected if name not in stated]
    more = [name for name in stated if name not in expected]
    if more:
        instead = f", which has {missing[0]!r} there" if missing else ""
        return (
            f"{field} name {more[0]!r}, which is not a feature that the certificate "
            f"chooses in the file{instead}"
        )
    if missing:
        return f"{field} lack {missing[0]!r}, which the certificate has"
    for name, value in expected.items():
        if said := _value_difference(f"{field} of {name!r}", stated[name], value):
            return said
    return None


def _value_difference(
    field: str, stated: Any, expected: Any, scale: float = 1.0
) -> str | None:
    if isinstance(expected, float):
        if stated is None and not math.isfinite(expected):  # as JSON has it
            return None
        number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
        same = number and math.isclose(
            stated, expected, rel_tol=AGREEMENT, abs_tol=ROUNDING * abs(scale)
        )
    else:
        same = stated == expected
    if same:
        return None
    return f"{field} is {stated!r}, by the certificate and the file {expected!r}"
