"""Compares the summary and loadings that fit wrote with certificates and data."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from ..scheme_defaults import SchemeName
from .fit import FORMAT

if TYPE_CHECKING:
    from ..components import Components
    from ..result import Result
    from .loading import Loaded

AGREEMENT = 1e-9  # relative: what is written has every digit
ROUNDING = 1e-12  # of the total variance, or of 1 for loadings, shares and gaps
OF_EIGENVALUES = 1e-6  # of the total variance: iterations may end a little below

_OF_TOTAL = ("explained_variance_ratio", "ratio", "r2")  # null of a contrast
_SHARES = (*_OF_TOTAL, "gap", "joint_gap")


def expected_summary(
    content: Mapping[str, Any],
    expected: Components,
    loaded: Loaded,
    scheme: SchemeName | None,
) -> dict[str, Any]:
    """Return what certificates and data say of the fields of a summary as a whole.

    The joint bound is the stated one where that is not refuted: if it is less than the
    closed forms, its proof is not stored. `scheme` is None where no certificate says.
    """
    from ..covariance.pca import pca_variances
    from ..status import relative_gap

    total, bound = expected.joint_total, expected.joint_upper_bound
    stated = content.get("joint_upper_bound")
    if _is_number(stated) and stated >= total - AGREEMENT * abs(total):
        bound = stated
    fields: dict[str, Any] = {
        "shape": list(loaded.table.shape),
        "explained_variance_ratio": float(expected.explained_variance_ratio.sum()),
        "total_variance": expected.total_variance,
        "joint_upper_bound": bound,
    }
    further: dict[str, Any] = {  # older versions do not write all of these
        "format": FORMAT,
        "n_components": len(expected),
        "r2": expected.r2,
        "joint_gap": relative_gap(total, bound),
    }
    if scheme is not None:
        further["scheme"] = scheme.value
    if content.get("scheme") != SchemeName.AUTO.value:  # then no set was replaced
        further["in_turn"] = None
    if not any(_is_constrained(result) for result in expected.results):
        further["prices"] = [None] * len(expected)
    if content.get("pca_variance") is not None:  # null after Ctrl-C
        variances = pca_variances(loaded.cov, len(expected))
        further["pca_variance"] = variances.tolist()
    return fields | {name: at for name, at in further.items() if name in content}


def not_derived(
    content: Mapping[str, Any], fields: Mapping[str, Any], expected: Components
) -> list[str]:
    """Name the fields of a summary that neither certificates nor data determine."""
    known = {"components", *fields}
    if fields["joint_upper_bound"] < expected.joint_upper_bound:
        known.remove("joint_upper_bound")
    left = {name: at for name, at in content.items() if name not in known}
    return [name for name, at in left.items() if at not in (None, [])]


def _is_constrained(result: Result) -> bool:
    return result.certificate is None or result.certificate.constraints is not None


def may_be_requested(asked: Any, results: Sequence[Result]) -> bool:
    """Tell whether components may have been asked for with such k; none is any."""
    return asked == [] or (
        isinstance(asked, list)
        and len(asked) >= len(results)
        and all(isinstance(k, int) for k in asked)
        and all(result.k <= k for result, k in zip(results, asked, strict=False))
    )


def summary_difference(
    content: Mapping[str, Any],
    expected: Components,
    places: Sequence[int],
    fields: Mapping[str, Any],
) -> str | None:
    """Describe where a summary is wrong about components and fields; else None.

    With fields it is the summary of these components and of no others.
    """
    rows, theirs = expected.to_rows(), content.get("components")
    if not isinstance(theirs, list) or len(theirs) < len(rows):
        return f"components are fewer than its {len(rows)} certificates"
    if fields and len(theirs) > len(rows):
        return f"components are {len(theirs)}, the certificates {len(rows)}"
    total = expected.total_variance
    if said := _row_difference("", content, fields, total):
        return said
    for j in places:
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
            scale *= OF_EIGENVALUES / ROUNDING if name == "pca_variance" else 1.0
            said = _value_difference(place + name, stated.get(name), value, scale)
        if said:
            return said
    return None


def loadings_difference(
    path: Path, expected: Components, places: Sequence[int], are_all: bool
) -> str | None:
    """Describe where loadings.csv is wrong about components; else None.

    `are_all` where there are no others than these.
    """
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
    if are_all and (more := [name for name in stated if name not in wanted]):
        return f"component {more[0]} has no certificate"
    for j in places:
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
    is_list = field == "pca_variance" and isinstance(stated, list)
    if is_list and len(stated) == len(expected):
        parts = (
            _value_difference(f"{field}[{j}]", *pair, scale)
            for j, pair in enumerate(zip(stated, expected, strict=True))
        )
        return next((said for said in parts if said), None)
    if isinstance(expected, float):
        if stated is None and not math.isfinite(expected):  # as JSON has it
            return None
        same = _is_number(stated) and math.isclose(
            stated, expected, rel_tol=AGREEMENT, abs_tol=ROUNDING * abs(scale)
        )
    else:
        same = stated == expected
    return None if same else _difference(field, stated, expected)


def _difference(field: str, stated: Any, expected: Any) -> str:
    return f"{field} is {stated!r}, by the certificate and the file {expected!r}"


def _is_number(stated: Any) -> TypeGuard[float]:
    return isinstance(stated, (int, float)) and not isinstance(stated, bool)
