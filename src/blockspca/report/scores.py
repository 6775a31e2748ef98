"""The samples on two components, coloured by labels, with arrows of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from .._messages import count
from ..plotting._layout import UNLABELLED, label_groups
from .block_data import as_list
from .charts import histogram
from .frame import BOTTOM, LEFT, RIGHT, TOP, Frame, number, tick_values, value_range

if TYPE_CHECKING:
    from .page import Report

HEIGHT = 340
# Each is an element of the page, which moves all of them when another component is
# chosen.
MAX_POINTS = 1500
MAX_ARROWS = 40
N_COLOURS, N_SHAPES = 8, 4

# A circle, a square, a triangle and a rhombus of about the same area.
SHAPES = (
    "M-2.8,0a2.8,2.8 0 1,0 5.6,0a2.8,2.8 0 1,0 -5.6,0z",
    "M-2.5,-2.5h5v5h-5z",
    "M0,-3.4l3.2,5.6h-6.4z",
    "M0,-3.6l3.3,3.6l-3.3,3.6l-3.3,-3.6z",
)


@dataclass(frozen=True)
class Group:
    """Samples with one label: what it is called, how many, and how they are drawn."""

    name: str
    size: int
    style: str
    shape: int


def drawn_groups(labels: tuple[str, ...] | None) -> tuple[list[Group], NDArray[Any]]:
    """Return how the groups of the samples are drawn, and the group of each."""
    if labels is None:
        return [], np.zeros(0, dtype=int)
    found = label_groups(labels)
    groups = []
    for j, (name, size) in enumerate(zip(found.names, found.sizes, strict=True)):
        style, shape = f"g{j % N_COLOURS}", (j + j // N_COLOURS) % N_SHAPES
        if found.values is not None:
            style, shape = f"q{j}", 0
        elif found.gathered and j == len(found.names) - 1:
            style, shape = "gx", 0
        groups.append(Group(name, size, style, shape))
    missing = found.of < 0
    if missing.any():
        groups.append(Group(UNLABELLED, int(missing.sum()), "gx", N_SHAPES - 1))
    return groups, np.where(missing, len(found.names), found.of)


class ScorePicture:
    """The scatter plot of a report, as SVG and as data for the script.

    The script only moves what is drawn here: when other components are chosen for the
    axes, it takes places from `data`.
    """

    def __init__(self, report: Report) -> None:
        assert report.scores is not None
        self.report = report
        self.scores = report.scores
        self.groups, self.group_of = drawn_groups(report.labels)
        self.shown = self._thinned()

    def _thinned(self) -> NDArray[np.intp]:
        """Take every n-th sample of each group, so that small groups are kept."""
        n = len(self.scores)
        step = -(-n // MAX_POINTS)
        if step == 1 or not self.groups:
            return np.arange(0, n, step)
        chosen = [
            np.flatnonzero(self.group_of == j)[::step] for j in range(len(self.groups))
        ]
        return np.sort(np.concatenate(chosen))

    @property
    def is_plane(self) -> bool:
        """Whether there are two components to choose from."""
        return self.scores.shape[1] > 1

    def svg(self) -> Markup:
        """The samples on the first two components, or a histogram of the only one."""
        if not self.is_plane:
            return histogram(self.scores[:, 0])
        first, second = self.scores[:, 0], self.scores[:, 1]
        names = ("component 1", "component 2")
        frame = Frame(value_range(first), value_range(second), names, HEIGHT)
        shapes = {self.groups[j].shape for j in range(len(self.groups))} or {0}
        definitions = Markup("").join(
            Markup('<path id="shape-{}" d="{}"/>').format(shape, SHAPES[shape])
            for shape in sorted(shapes)
        )
        dots = Markup("")
        for i in self.shown:
            x, y = frame.place(first[i], second[i])
            dots += self._dot(i, x, y)
        title = f"Scores of {len(self.scores)} samples on components 1 and 2."
        inside = Markup(
            '<defs>{}</defs><g class="points">{}</g><g class="arrows"></g>'
            '<circle r="6" class="cursor" visibility="hidden"/>'
        ).format(definitions, dots)
        return frame.draw(inside, title, name="scores")

    def _dot(self, i: int, x: float, y: float) -> Markup:
        style, shape = "g0", 0
        if self.groups:
            group = self.groups[self.group_of[i]]
            style, shape = group.style, group.shape
        return Markup('<use href="#shape-{}" x="{}" y="{}" class="sample {}"/>').format(
            shape, x, y, style
        )

    def data(self) -> dict[str, Any]:
        """Return the data of the script: columns, axes, names and arrows."""
        report, shown = self.report, self.shown
        names = report.sample_names or tuple(str(i) for i in range(len(self.scores)))
        axes = []
        for column in self.scores.T:
            low, high = Frame(value_range(column), (0, 1), ("", "")).x
            ticks = [[value, number(value)] for value in tick_values(low, high)]
            axes.append({"low": low, "high": high, "ticks": ticks})
        return {
            "columns": [as_list(column[shown], 5) for column in self.scores.T],
            "axes": axes,
            "names": [names[i] for i in shown],
            "group": self.group_of[shown].tolist() if self.groups else [],
            "groups": [group.name for group in self.groups],
            "arrows": arrows(report),
            "margins": [LEFT, RIGHT, TOP, BOTTOM],
        }

    def caption(self) -> str:
        """Return how many samples are shown, and of how many."""
        n, shown = len(self.scores), len(self.shown)
        said = f"{count(n, 'sample')}."
        if self.is_plane and shown < n:
            said = f"{shown} of {n} samples, evenly chosen."
        return said


def arrows(report: Report) -> list[dict[str, Any]]:
    """Return the correlation of every feature of a component with every score.

    corr(i, j) = (A v_j)_i / √(A_ii · v_j'A v_j), from the matrix alone.
    """
    loadings = report.components.components
    used = np.flatnonzero(loadings.any(axis=0))
    strength = np.abs(loadings[:, used]).max(axis=0)
    used = np.sort(used[np.argsort(-strength, kind="stable")[:MAX_ARROWS]])
    images = np.array([report.cov.matvec(v) for v in loadings])
    variances = np.maximum((images * loadings).sum(axis=1), 0.0)
    scale = np.sqrt(np.outer(variances, np.maximum(report.cov.diagonal()[used], 0.0)))
    safe = np.where(scale > 0, scale, np.inf)
    correlations = np.clip(images[:, used] / safe, -1, 1)
    return [
        {
            "name": name,
            "values": as_list(correlations[:, place], 4),
            "of": np.flatnonzero(loadings[:, i]).tolist(),
        }
        for place, (i, name) in enumerate(
            zip(used, report.cov.names_of(used), strict=True)
        )
    ]
