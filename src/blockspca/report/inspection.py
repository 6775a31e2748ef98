"""Alternatives, stability and importance of features, as sentences and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from .._messages import count, percent
from .._validation import names_of
from ..plotting._layout import shortened
from .frame import WIDTH, dot, line, picture, text
from .grids import LONGEST, NAMES

if TYPE_CHECKING:
    from ..inspection.alternatives import Alternatives
    from ..inspection.importance import FeatureImportance
    from ..inspection.stability import Stability
    from .page import Report

MAX_FEATURES = 30
ROW, HEAD = 18, 24


def about_alternatives(found: Alternatives) -> list[str]:
    """Say how many other sets are nearly as good, and what they have in common."""
    k, n = found.best.k, len(found)
    within = percent(found.within)
    if n == 1 and found.complete:
        said = (
            f"Proved: no other set of {k} features comes within {within} of the first "
            "component."
        )
        return [said]
    said = f"{count(n, 'set')} of {k} features, the first component's among them,"
    if n == 1:
        said = f"No other set of {k} features was found that is"
    said += f" within {within} of the best"
    said += ", and proved: there is no other." if found.complete else "; more may be."
    why = "" if found.complete else found.message
    sentences = [f"{said} {why[0].upper()}{why[1:]}." if why else said]
    if n > 1:
        everywhere = ", ".join(found.names_of(found.in_all)) or "none"
        some = ", ".join(found.names_of(found.in_some)) or "none"
        sentences += [f"In all of them: {everywhere}.", f"In some of them: {some}."]
    return sentences


def about_stability(found: Stability) -> list[str]:
    """Say how much of the selection survives when the samples are drawn again."""
    ways = {
        "bootstrap": "with replacement (bootstrap)",
        "subsample": "half of them, without replacement",
    }
    said = [
        f"The samples were drawn again {count(found.n_resamples, 'time')}, "
        f"{ways[found.method]}, and the components computed anew, "
        f"{percent(found.proved)} of them with a proof. Two draws share "
        f"{percent(found.overlap)} of their features on average."
    ]
    sure = ", ".join(names_of(found.stable()[:20], found.feature_names))
    said.append(f"Selected in at least 80 % of the draws: {sure or 'none'}.")
    return said


def stability(report: Report) -> Markup:
    """How often each feature is selected, with intervals of 95 %."""
    found = report.stability
    if found is None:
        return Markup("")
    order = found.stable(1e-12)[:MAX_FEATURES]
    names = report.cov.names_of(order)
    used = np.flatnonzero(report.components.components.any(axis=0))

    def across(share: float) -> float:
        return round(NAMES + share * (WIDTH - NAMES - 22), 2)

    height = HEAD + ROW * len(order) + 8
    parts = [
        text(across(share), HEAD - 8, f"{share:.0%}", "tick mid")
        + line(across(share), across(share), HEAD, height - 4, "grid")
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    for row, (i, name) in enumerate(zip(order, names, strict=True)):
        y = HEAD + ROW * row + ROW / 2
        share, low, high = (
            float(v[i]) for v in (found.frequency, found.low, found.high)
        )
        said = f"{name}: {share:.0%} ({low:.0%} to {high:.0%})"
        kind = "dot" if i in used else "dot open"
        parts.append(
            text(NAMES - 6, y + 4, shortened(name, LONGEST), "tick end")
            + line(across(low), across(high), y, y, "line")
            + dot(across(share), y, 4, said, kind)
        )
    title = (
        f"How often features are selected in {count(found.n_resamples, 'draw')} of the "
        "samples: "
        + ", ".join(
            f"{name} {found.frequency[i]:.0%}"
            for i, name in zip(order, names, strict=True)
        )
        + "."
    )
    return picture(WIDTH, height, Markup("").join(parts), title)


def importance_rows(found: FeatureImportance) -> list[dict[str, Any]]:
    """One row for each feature: what is lost without it, and what replaces it."""
    before = set(found.result.features)
    return [
        {
            "feature": row["feature"],
            "objective": f"{row['objective_without']:.6g}",
            "loss": percent(row["share"]) if row["share"] >= 5e-4 else "< 0.1 %",
            "proved": row["status"] == "optimal",
            "instead": ", ".join(n for n in row["instead"] if n not in before) or "–",
        }
        for row in found.to_rows()
    ]
