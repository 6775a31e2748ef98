"""Several components as text, as rows, and as a table of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._html import table
from .._messages import proof_in_words
from ..result import SHOWN
from ..status import PROVED
from .requests import is_chosen_together
from .scheme import RESIDUAL
from .schemes import scheme_name

if TYPE_CHECKING:
    from .solve import Components


def as_repr(found: Components) -> str:
    """Return a line about the set, and the repr of each result, by its index."""
    scheme = scheme_name(found.scheme)
    about = f"{len(found)} by {scheme}, joint_upper_bound={found.joint_upper_bound:.6g}"
    if not np.isnan(found.r2):
        about += f", r2={found.r2:.6g}"
    lines = [f"  [{j}] {result!r}" for j, result in enumerate(found.results)]
    return "\n".join([f"Components({about})", *lines])


def proof_of(found: Components, index: int) -> str:
    """Say how sure one component is, in half a sentence."""
    return proof_in_words(found.results[index], is_chosen_together(found))


def as_html(found: Components) -> str:
    """Return a row for each component."""
    name, adjusted = "adjusted share", found.explained_variance_ratio
    form = ".2%"
    if not found.has_shares:
        name, adjusted, form = "adjusted", found.adjusted_explained_variance, ".6g"
    rows = [
        (
            j + 1,
            result.k,
            f"{found.explained_variance[j]:.6g}",
            format(float(adjusted[j]), form),
            proof_of(found, j),
            ", ".join(result.features[:SHOWN]),
        )
        for j, result in enumerate(found.results)
    ]
    headings = ("", "k", "variance", name, "proof", "features")
    caption = f"{len(found)} sparse components"
    if not np.isnan(found.r2):
        caption += f", whose scores predict {found.r2:.1%} of the variance"
    if found.in_turn is not None:
        caption += f". {in_place_of(found)}"
    return table(headings, rows, caption)


def as_rows(found: Components) -> list[dict[str, Any]]:
    """Return one dict for each component, for tables and files."""
    return [
        {
            "component": index + 1,
            "k": result.k,
            "explained_variance": float(found.explained_variance[index]),
            "adjusted_explained_variance": float(
                found.adjusted_explained_variance[index]
            ),
            "ratio": float(found.explained_variance_ratio[index]),
            "objective": result.objective,
            "upper_bound": result.upper_bound,
            "gap": result.gap,
            "status": result.status.value,
            "loadings": result.loadings,
        }
        for index, result in enumerate(found.results)
    ]


def as_text(found: Components) -> str:
    """Return a line for each component, and one for all."""
    lines = [f"component {i + 1}: {r}" for i, r in enumerate(found.results)]
    if not found.has_shares:
        most = f"at most {found.joint_upper_bound:.6g} is possible together"
        return "\n".join([*lines, most])
    share = float(found.explained_variance_ratio.sum())
    lines.append(
        f"together: {share:.2%} of the variance, counted once; {found.joint_total:.6g} "
        f"where at most {found.joint_upper_bound:.6g} is possible"
        + ("" if np.isnan(found.r2) else f"; their scores predict {found.r2:.2%}")
    )
    if found.in_turn is not None:
        lines.append(in_place_of(found))
    return "\n".join(lines)


def in_place_of(found: Components, residual: str = str(RESIDUAL)) -> str:
    """Say why components that were found to be the best in turn were not taken.

    `residual` is how their scheme is asked for.
    """
    before = found.in_turn
    assert before is not None
    was, now = _apart(
        *(float(c.explained_variance_ratio.sum()) for c in (before, found))
    )
    less, more = _apart(before.r2, found.r2)
    proved = "proved " if {*before.statuses} <= {*PROVED} else ""
    return (
        "These components were chosen together, and are not optimal one by one. "
        f"{residual} gives the {proved}components one after the other, which explain "
        f"{was} of the variance instead of {now} and predict {less} instead of {more}."
    )


def _apart(one: float, other: float) -> tuple[str, str]:
    """Return two shares in percent, with digits in which they differ, if any do."""
    for digits in (2, 4, 6):
        texts = f"{one:.{digits}%}", f"{other:.{digits}%}"
        if texts[0] != texts[1]:
            return texts
    return f"{one:.2%}", f"{other:.2%}"
