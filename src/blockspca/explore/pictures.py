"""Samples and blocks as pictures: aggregated here, so that the page stays smooth.

Up to `MAX_POINTS` samples are sent as points. More are counted on a grid of cells: the
page is sent a few thousand numbers, however many samples there are. Questions about
samples, a lasso or a cell, are answered here from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..plotting._layout import LabelGroups, label_groups, shades
from ..report.block_data import as_list
from .dataset import Dataset
from .state import SAMPLE_ORDER, State

MAX_POINTS = 1000  # plotly.js takes 0.07 s for so many, twice as long for 2000
GRID = (120, 90)  # cells across and up
MAX_NAMES = 40  # samples that are named in one reply
MAX_CORNERS = 2000  # of a lasso


def colours(dataset: Dataset, state: State, scores: FloatArray) -> LabelGroups:
    """The colours of the samples by a label, or by the scores of a component."""
    label = state.label or ""
    word, _, digits = label.partition(" ")
    if word == "component" and digits.isdecimal() and len(digits) <= 2:
        number = max(0, int(digits) - 1)
        if number < scores.shape[1]:
            return shades(scores[:, number])
    elif label in dataset.labels:
        return label_groups(dataset.labels[label])
    return LabelGroups(np.full(len(scores), -1, dtype=np.intp), ())


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a picture: places on two axes, and colours."""

    x: FloatArray
    y: FloatArray
    colours: LabelGroups

    @classmethod
    def of(cls, dataset: Dataset, state: State, scores: FloatArray) -> Samples:
        """The samples as a state wants to see them."""
        x, y = (_axis(scores, axis) for axis in state.axes)
        return cls(x, y, colours(dataset, state, scores))

    def ranges(self) -> tuple[float, float, float, float]:
        """The edges of the picture, a little beyond the samples."""
        edges = []
        for values in (self.x, self.y):
            low, high = float(values.min()), float(values.max())
            room = 0.04 * (high - low) or 1.0
            edges += [low - room, high + room]
        return edges[0], edges[1], edges[2], edges[3]

    def cells(self) -> NDArray[np.int64]:
        """The number of each sample's cell, row by row from below."""
        left, right, low, high = self.ranges()
        across, up = GRID
        i = np.clip((self.x - left) / (right - left) * across, 0, across - 1)
        j = np.clip((self.y - low) / (high - low) * up, 0, up - 1)
        return j.astype(np.int64) * across + i.astype(np.int64)

    def message(self, dataset: Dataset, state: State) -> dict[str, Any]:
        """The picture for the page: points, or counted cells."""
        n = len(self.x)
        content: dict[str, Any] = {
            "type": "scores",
            "samples": n,
            "axes": [shown_axis(axis, state.n_components) for axis in state.axes],
            "ranges": list(self.ranges()),
            "legend": list(self.colours.names),
            "ordered": self.colours.values is not None,
        }
        if n <= MAX_POINTS:
            content["points"] = {
                "x": as_list(self.x, 5),
                "y": as_list(self.y, 5),
                "colour": self.colours.of.tolist(),
                "names": list(dataset.sample_names),
            }
        else:
            content["grid"] = self._grid()
        return content

    def _grid(self) -> dict[str, Any]:
        """Cells that hold samples: how many, and the colour most of them have."""
        cells, n_colours = self.cells(), len(self.colours.names) + 1
        pairs = cells * n_colours + (self.colours.of + 1)
        kinds, counts = np.unique(pairs, return_counts=True)
        owner = kinds // n_colours
        # The last of equal owners in this order is the colour with the largest count.
        order = np.lexsort((counts, owner))
        last = np.flatnonzero(np.append(np.diff(owner[order]) != 0, True))
        totals = np.bincount(owner, weights=counts)
        chosen = owner[order][last]
        return {
            "across": GRID[0],
            "up": GRID[1],
            "cell": chosen.tolist(),
            "count": totals[chosen].astype(int).tolist(),
            "colour": (kinds[order][last] % n_colours - 1).tolist(),
        }

    def at(self, dataset: Dataset, cell: int) -> dict[str, Any]:
        """The samples in one cell of the grid."""
        return self._named(dataset, np.flatnonzero(self.cells() == cell), "cell")

    def inside(self, dataset: Dataset, corners: FloatArray) -> dict[str, Any]:
        """The samples inside a polygon, its corners being pairs of coordinates."""
        chosen = in_polygon(self.x, self.y, corners)
        return self._named(dataset, np.flatnonzero(chosen), "lasso")

    def _named(
        self, dataset: Dataset, chosen: NDArray[np.intp], kind: str
    ) -> dict[str, Any]:
        colours = replace(self.colours, of=self.colours.of[chosen])
        return {
            "type": kind,
            "count": len(chosen),
            "names": [dataset.sample_names[i] for i in chosen[:MAX_NAMES].tolist()],
            "colours": [
                [name, size]
                for name, size in zip(colours.names, colours.sizes, strict=True)
                if size
            ],
        }


def shown_axis(axis: int, n_components: int) -> int:
    """The axis that is shown: that of a component, or the order of the samples."""
    return axis if 0 <= axis < n_components else SAMPLE_ORDER


def _axis(scores: FloatArray, axis: int) -> FloatArray:
    if shown_axis(axis, scores.shape[1]) == SAMPLE_ORDER:
        return np.arange(len(scores), dtype=np.float64)
    return scores[:, axis]


def in_polygon(x: FloatArray, y: FloatArray, corners: FloatArray) -> NDArray[np.bool_]:
    """Tell which points are inside a polygon: a ray from them crosses it oddly often.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore.pictures import in_polygon
    >>> square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    >>> in_polygon(np.array([1.0, 3.0]), np.array([1.0, 1.0]), square)
    array([ True, False])
    """
    inside = np.zeros(len(x), dtype=bool)
    if len(corners) < 3:
        return inside
    near = (
        (x >= corners[:, 0].min())
        & (x <= corners[:, 0].max())
        & (y >= corners[:, 1].min())
        & (y <= corners[:, 1].max())
    )
    px, py = x[near], y[near]
    odd = np.zeros(len(px), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > py) != (y1 > py)
        odd ^= crosses & (px < x0 + (py - y0) / (y1 - y0) * (x1 - x0))
    inside[near] = odd
    return inside
