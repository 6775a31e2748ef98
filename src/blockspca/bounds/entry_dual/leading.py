"""Leading eigenpairs of a matrix that changes a little from one step to the next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._validation import FloatArray

BLOCK = 8  # directions that are followed: densities of the ascent have rank 1 to 5
_DEPTH = 6  # products with the matrix that a space is made of
_ROUNDS = 6  # spaces that are tried at most
_FIRST_ROUNDS = 12
_SEED = 0
_OVERLAP = 1e-10  # of vectors that count as orthogonal: residuals are far above it
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
        if start is not None and start.shape == self.vectors.shape:
            self.vectors = start + _NOISE * self.vectors
        self.fresh = True
        self.rng = rng

    def of(
        self, product: Callable[[FloatArray], FloatArray], tolerance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the leading values, ascending, and vectors of x → product(x).

        Until the residual of the leading one is below the tolerance.
        """
        rounds = _FIRST_ROUNDS if self.fresh else _ROUNDS
        values = np.zeros(self.block)
        if not self.fresh and self.block == BLOCK:
            # What was not among the leading ones may have become one.
            self.vectors[:, 0] = self.rng.normal(size=len(self.vectors))
        first, image = np.linalg.qr(self.vectors)[0], None
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
        return values, self.vectors


def _krylov(
    product: Callable[[FloatArray], FloatArray],
    first: FloatArray,
    image: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return an orthonormal basis of a Krylov space, and its image, product by product.

    Parameters
    ----------
    first : array of shape (d, b)
        Orthonormal.
    image : array of shape (d, b), optional
        Of the first, where it is known.
    """
    basis, images = first, product(first) if image is None else image
    last = images
    for _ in range(_DEPTH - 1):
        for _ in range(2):  # once leaves what cancellation made of it
            last = last - basis @ (basis.T @ last)
        following = np.linalg.qr(last)[0]
        overlap = basis.T @ following
        if np.abs(overlap).max() > _OVERLAP:  # nothing was left in some direction
            following = np.linalg.qr(following - basis @ overlap)[0]
        last = product(following)
        basis = np.hstack([basis, following])
        images = np.hstack([images, last])
    return basis, images
