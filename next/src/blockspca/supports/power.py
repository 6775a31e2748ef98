"""Truncated power steps: x ← the k largest entries of A x, from several starts at once.

They need products with A only, so they reach sets that no pool of strong features has.
If A is positive semidefinite, x'Ax never falls as long as k stays the same (Yuan and
Zhang 2013). A start goes straight to k, and once more through supports of 2k, 1.5k and
1.2k features, because larger ones settle first. Neither is always better.
"""

from __future__ import annotations

import numpy as np

from ..call import Run
from ..covariance.covariance import Covariance
from ..linalg import cost
from ..validation import FloatArray, Indices

RATIOS = (2.0, 1.5, 1.2, 1.0)
# Rows of A of each kind to start from. Rows that are not alike: gordon standardised,
# k = 50, has 36.98 with them and 34.73 without.
ROWS = 4
STEPS = 100  # for each size; most starts settle after a dozen


def power_support(cov: Covariance, k: int, rows: Indices, run: Run) -> Indices:
    """Return the support of k features that power steps reach.

    Starts are some rows of A, those of largest variance, the variances, and about the
    leading eigenvector. A limit ends the steps.
    """
    d, variances = cov.n_features, cov.diagonal()
    order = np.argsort(-variances, kind="stable")
    work = cost.product(cov.n_samples or d, d, 2)

    def product(x: FloatArray) -> FloatArray:
        run.spend(work * x.shape[1])
        return cov.matvec(x)

    rows = np.union1d(rows, order[:ROWS])
    units = np.zeros((d, len(rows)))
    units[rows, np.arange(len(rows))] = 1.0
    leading = np.sqrt(np.maximum(variances, 0.0))[:, None]
    for _ in range(10):
        if not run.over() and leading.any():
            leading = product(leading / np.linalg.norm(leading))
    # Steps on an indefinite A have to be shifted, or signs alternate.
    shift = 0.0 if cov.known_psd else float(np.linalg.norm(leading)) / 2
    starts = y = np.column_stack([product(units), variances, leading])
    best, value = np.sort(order[:k]), -np.inf
    for ratio in (1.0, *RATIOS):
        size, before = min(d, int(ratio * k)), np.full(y.shape[1], -np.inf)
        if ratio == RATIOS[0]:
            y = starts
        for _ in range(STEPS):
            if run.over():
                return best
            x = cut(y, size)
            image = product(x)
            values = np.einsum("ij,ij->j", x, image)
            first = int(values.argmax())
            if size == k and values[first] > value:
                value = float(values[first])
                best = np.sort(np.argsort(-np.abs(x[:, first]), kind="stable")[:k])
            y = image + shift * x
            if (values <= before + 1e-9 * np.abs(values)).all():
                break
            before = np.maximum(before, values)
    return best


def cut(y: FloatArray, size: int) -> FloatArray:
    """Keep the largest |entries| of each column, at unit length."""
    x = np.zeros_like(y)
    rows = np.argpartition(-np.abs(y), size - 1, axis=0)[:size]
    np.put_along_axis(x, rows, np.take_along_axis(y, rows, axis=0), axis=0)
    lengths = np.linalg.norm(x, axis=0)
    return x / np.where(lengths > 0, lengths, 1.0)
