"""Grids of features against components, numbers of features, or alternative sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from .._messages import count
from .._validation import FloatArray
from ..plotting._layout import membership, shortened
from .frame import WIDTH, line, picture, text

if TYPE_CHECKING:
    from ..inspection.alternatives import Alternatives
    from .page import Report

MAX_ROWS = 48
MAX_SETS = 60
NAMES = 172  # the width that names get
ROW, HEAD = 17, 24
LONGEST = 22  # characters of a name
STRONG = 0.75  # of the strongest colour: from there on a light text reads better


@dataclass(frozen=True)
class Grid:
    """Values of features (rows) in columns; 0 is an empty cell."""

    values: FloatArray
    rows: list[str]
    columns: list[str]
    head: str
    texts: bool = False  # whether the numbers fit into the cells

    def draw(self, title: str) -> Markup:
        """Return the picture."""
        n_rows, n_columns = self.values.shape
        width = (WIDTH - NAMES - 4) / max(n_columns, 6)
        strongest = float(np.abs(self.values).max()) or 1.0
        parts = [self._heads(width)]
        for i, name in enumerate(self.rows):
            y = HEAD + ROW * i
            parts.append(
                Markup('<text x="{}" y="{}" class="tick end">{}').format(
                    NAMES - 6, y + 13, shortened(name, LONGEST)
                )
                + Markup("<title>{}</title></text>").format(name)
            )
            for j in np.flatnonzero(self.values[i]):
                parts.append(self._cell(i, int(j), y, width, strongest))
        height = HEAD + ROW * n_rows + 6
        right = round(NAMES + width * n_columns, 2)
        lines = Markup("").join(
            line(NAMES, right, y, y, "grid")
            for y in (HEAD + ROW * i for i in range(n_rows + 1))
        )
        return picture(WIDTH, height, lines + Markup("").join(parts), title)

    def _heads(self, width: float) -> Markup:
        every = max(1, int(22 / width) + (width < 22))  # a number of two digits fits
        heads = Markup("").join(
            text(round(NAMES + width * (j + 0.5), 2), HEAD - 7, name, "tick mid")
            for j, name in enumerate(self.columns)
            if j % every == 0
        )
        return heads + text(NAMES - 6, HEAD - 7, self.head, "tick end")

    def _cell(self, i: int, j: int, y: int, width: float, strongest: float) -> Markup:
        value = float(self.values[i, j])
        share = abs(value) / strongest
        x = round(NAMES + width * j + 0.5, 2)
        kind = "plus" if value > 0 else "minus"
        cell = Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" class="{}" '
            'fill-opacity="{:.2f}"><title>{}, {} {}: {:+.4g}</title></rect>'
        ).format(
            x,
            y + 0.5,
            round(width - 1, 2),
            ROW - 1,
            kind,
            0.15 + 0.85 * share,
            self.rows[i],
            self.head,
            self.columns[j],
            value,
        )
        if not self.texts:
            return cell
        kind = f"in-cell mid {'strong' if share > STRONG else ''}"
        return cell + text(round(x + width / 2, 2), y + 12.5, f"{value:+.2f}", kind)


def loadings(report: Report) -> Markup:
    """Features × components: the loadings at a glance."""
    values = report.components.components
    m = len(values)
    if m < 2:
        return Markup("")
    used = np.flatnonzero(values.any(axis=0))
    strength = np.abs(values[:, used]).max(axis=0)
    used = used[np.argsort(-strength, kind="stable")[:MAX_ROWS]]
    first = np.argmax(values[:, used] != 0, axis=0)  # the first component with it
    used = used[np.lexsort((-np.abs(values[first, used]), first))]
    grid = Grid(
        values[:, used].T,
        report.cov.names_of(used),
        [str(j + 1) for j in range(m)],
        "component",
        texts=m <= 6,
    )
    title = (
        f"Loadings of {count(len(used), 'feature')} in {m} components; the tables of "
        "the components have the numbers."
    )
    return grid.draw(title)


def entering(report: Report) -> Markup:
    """Which features the best component has, for each k."""
    path = report.path
    if path is None:
        return Markup("")
    ks = list(path)
    loadings = np.array([path[k].x for k in ks])
    used = np.flatnonzero(loadings.any(axis=0))
    first = np.argmax(loadings[:, used] != 0, axis=0)
    often = (loadings[:, used] != 0).sum(axis=0)
    used = used[np.lexsort((-often, first))][:MAX_ROWS]
    values = np.abs(loadings[:, used].T)
    grid = Grid(values, report.cov.names_of(used), [str(k) for k in ks], "k =")
    stay = [
        f"{name} from k = {ks[int(np.argmax(row > 0))]} on"
        for name, row in zip(grid.rows, values, strict=True)
        if (row[np.argmax(row > 0) :] > 0).all()
    ]
    title = "Features of the best component for each k. " + "; ".join(stay[:12]) + "."
    return grid.draw(title)


def alternatives(found: Alternatives) -> Markup:
    """Which features are in which of the sets, the best set first."""
    order, member = membership(found, MAX_SETS, MAX_ROWS)
    columns = [str(j + 1) for j in range(len(member))]
    grid = Grid(member.T, found.names_of(order), columns, "set")
    often = ", ".join(
        f"{name} in {n}" for name, n in zip(grid.rows, found.counts[order], strict=True)
    )
    return grid.draw(f"Features of {count(len(found), 'set')}: {often}.")
