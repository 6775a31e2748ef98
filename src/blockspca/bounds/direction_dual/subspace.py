"""The sums of a node within a space of few dimensions, where mirror steps are cheap.

If a space V, an orthonormal basis, holds the directions Q of a density, then

    V'(c + Qh) = V'c + (V'Q)h,

so that V'MV follows from V'C, and what a step needs of the rest is its trace.  A step
then costs O(s² p) for s dimensions, whatever n is.  The space is left now and then, to
see what M does outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._validation import FloatArray
from .columns import Columns, DenseColumns
from .density import Density, Side
from .relaxation import Relaxation


@dataclass(frozen=True)
class Frame:
    """Columns, and what else M is made of, in the coordinates of a space.

    Attributes
    ----------
    columns : Columns or None
        Of the features in play; None where they are not needed.
    inside : Columns or None
        Of those inside, if any.
    sides : sequence of Side
    tilt : array or None
        √α q, while the ascent leans.
    outside : array or None
        What of ‖c_i‖² is outside the space.
    trace : float
        Of what is inside, less the tilt, in all directions.
    """

    columns: Columns | None
    inside: Columns | None
    sides: Sequence[Side]
    tilt: FloatArray | None = None
    outside: FloatArray | None = None
    trace: float = 0.0

    def leaning(self, tilt: FloatArray | None) -> Frame:
        """Return the same with another tilt."""
        return replace(self, tilt=tilt)

    def within(self, space: FloatArray, columns: bool = True) -> Frame:
        """Return the same in the coordinates of a space that holds sides and tilt.

        Without the columns if they are not needed.
        """
        inside, trace = None, 0.0
        if self.inside is not None:
            inside = DenseColumns(self.inside.project(space), self.inside.norms)
            trace = float(self.inside.norms.sum())
        tilt = None
        if self.tilt is not None:
            tilt = self.tilt @ space
            trace -= float(self.tilt @ self.tilt)
        sides = [side.within(space) for side in self.sides]
        if not columns or self.columns is None:
            return Frame(None, inside, sides, tilt)
        C, norms = self.columns.project(space), self.columns.norms
        outside = norms - np.einsum("ij,ij->j", C, C)
        return Frame(DenseColumns(C, norms), inside, sides, tilt, outside, trace)

    def fixed_mean(self, density: Density) -> float:
        """Return tr(XF), F what M has beside the relaxation: inside, less the tilt."""
        mean = 0.0
        if self.inside is not None:
            along = (self.inside.project(density.Q) ** 2).sum(axis=1)
            rest = float(self.inside.norms.sum() - along.sum())
            mean = float(density.weights @ along) + density.rest * rest
        if self.tilt is not None:
            along = (self.tilt @ density.Q) ** 2
            rest = float(self.tilt @ self.tilt - along.sum())
            mean -= float(density.weights @ along) + density.rest * rest
        return mean

    def sum(self, relaxation: Relaxation) -> tuple[FloatArray, float]:
        """Return M within the space, but for the sides, and the trace of all of it."""
        assert self.outside is not None
        M = relaxation.total
        trace = float(np.trace(M) + relaxation.D @ self.outside) + self.trace
        if self.inside is not None:
            M = M + self.inside.gram(np.ones(self.inside.shape[1]))
        if self.tilt is not None:
            M = M - np.outer(self.tilt, self.tilt)
        return M, trace
