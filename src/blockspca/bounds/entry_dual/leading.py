"""Leading eigenpairs of a matrix that changes a little from one step to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._validation import FloatArray

BLOCK = 8  # directions that are followed at first: most densities have rank 1 to 5
_MOST = 24  # directions, where densities have a higher rank
_COLUMNS = 48  # of a space, and
_LEAST_DEPTH = 4  # products with the matrix that it is made of at least
# Spaces that are tried at most, and of the first matrix, from random vectors. With half
# as many spaces the gap of CovColon, k = 50, is 0.05 %, with these 0.015 %.
_ROUNDS = 6
_FIRST_ROUNDS = 12
_SEED = 0
_OVERLAP = 1e6  # machine precisions, of vectors that count as orthogonal
_MOST_OVERLAP = 1e-4
_NOISE = 0.03  # of vectors that are taken over, so that no direction is out of reach


class LeadingPairs:
    """Rayleigh–Ritz in Krylov spaces of a block, which begin where the last ended.

    The values are never above the eigenvalues, so they guide an ascent and prove
    nothing.
    """

    def __init__(self, order: int, start: FloatArray | None = None) -> None:
        self.block = min(BLOCK, order)
        rng = np.random.default_rng(_SEED)
        self.vectors = rng.normal(size=(order, self.block)) / np.sqrt(order)
        if start is not None and self.block <= start.shape[1] <= order:
            self.block = start.shape[1]
            noise = rng.normal(size=start.shape) / np.sqrt(order)
            self.vectors = start + _NOISE * noise
        self.fresh = True
        self.rng = rng

    def widen(self) -> None:
        """Follow half as many directions more, from the next matrix on."""
        order, before = self.vectors.shape
        self.block = min(before + before // 2, _MOST, order)
        added = self.rng.normal(size=(order, self.block - before)) / np.sqrt(order)
        self.vectors = np.hstack([added, self.vectors])

    def of(
        self,
        product: Callable[[FloatArray], FloatArray],
        tolerance: float,
        kind: type[np.floating[Any]] = np.float64,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the leading values, ascending, and vectors of x → product(x).

        Until the residual of the leading one is below the tolerance. x and its image
        are arrays of that kind.
        """
        rounds = _FIRST_ROUNDS if self.fresh else _ROUNDS
        values = np.zeros(self.block)
        if not self.fresh and self.block >= BLOCK:
            # What was not among the leading ones may have become one.
            self.vectors[:, 0] = self.rng.normal(size=len(self.vectors))
        first, image = np.linalg.qr(self.vectors.astype(kind))[0], None
        for _ in range(rounds):
            basis, images = _krylov(product, first, image)
            values, within = np.linalg.eigh(basis.T @ images)
            values, within = values[-self.block :], within[:, -self.block :]
            self.vectors = basis @ within
            image = images @ within  # the next space begins with them, and with it
            residual = image[:, -1] - values[-1] * self.vectors[:, -1]
            if np.linalg.norm(residual) <= tolerance:
                break
            first = self.vectors
        self.fresh = False
        self.vectors = self.vectors.astype(np.float64)
        return values.astype(np.float64), self.vectors


def _krylov(
    product: Callable[[FloatArray], FloatArray],
    first: FloatArray,
    image: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis of a Krylov space, and its image, product by product.

    `first`, (d, b), is orthonormal; `image` is that of it, where it is known.
    """
    order, size = first.shape
    accepted = min(_OVERLAP * float(np.finfo(first.dtype).eps), _MOST_OVERLAP)
    # Column by column in memory, so that those there are so far are one array.
    columns = size * max(_COLUMNS // size, _LEAST_DEPTH)
    basis = np.empty((order, columns), dtype=first.dtype, order="F")
    images = np.empty_like(basis)
    basis[:, :size] = first
    images[:, :size] = last = product(first) if image is None else image
    for done in range(size, columns, size):
        so_far, new = basis[:, :done], slice(done, done + size)
        for _ in range(2):  # once leaves what cancellation made of it
            last = last - so_far @ (so_far.T @ last)
        following = np.linalg.qr(last)[0]
        overlap = so_far.T @ following
        if np.abs(overlap).max() > accepted:  # nothing was left in some direction
            following = np.linalg.qr(following - so_far @ overlap)[0]
        basis[:, new] = following
        images[:, new] = last = product(following)
    return basis, images
