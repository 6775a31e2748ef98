"""Columns c_i with A = C'C, up to a shift, of the features that can matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance
from ..vectors import leading_eigenvector
from .eigenvalues import psd_shift

_EPS = float(np.finfo(float).eps)
_LARGEST_DENSE = 6000  # features of a matrix that are factorized at most
_ENTRIES = 2**26  # of C that are held at most: 512 MiB


@dataclass
class Problem:
    """Columns that matter, longest first; the rest is no longer than `floor`.

    `chosen` are their features, and `same_basis` tells that they are columns as given
    by `Covariance.columns`, so that those of other features have the same coordinates.
    All in multiples of `unit`, a power of four near the largest variance. Column i
    counts copies[i] times: more than once only where the columns are a sample.
    """

    C: FloatArray
    norms: FloatArray
    k: int
    floor: float
    penalty: float
    leading: FloatArray
    unit: float
    chosen: NDArray[np.intp]
    same_basis: bool
    shift: float = 0.0
    slack: float = 0.0
    copies: FloatArray | None = None

    def sample(self, size: int) -> Problem | None:
        """Return about `size` columns that stand for all; None if there are few more.

        A third are the longest and a third those that the leading direction sees best,
        for which nothing else can stand; every so manieth of the others is the rest.
        """
        if len(self.norms) < 3 * size:
            return None
        third = size // 3
        seen = np.abs(self.leading @ self.C)
        seen[:third] = np.inf
        order = np.argsort(-seen, kind="stable")
        kept, others = order[: 2 * third], np.sort(order[2 * third :])
        some = others[:: len(others) // third]
        copies = np.zeros(len(self.norms))
        copies[kept] = 1.0
        copies[some] = len(others) / len(some)
        taken = np.flatnonzero(copies)
        return replace(
            self, C=self.C[:, taken], norms=self.norms[taken], copies=copies[taken]
        )


def make_problem(
    cov: Covariance,
    k: int,
    start: Sequence[int] | NDArray[np.intp] | None,
    survivors: Sequence[int] | NDArray[np.intp] | None,
) -> Problem | None:
    everything = np.arange(cov.n_features)
    features = everything if survivors is None else np.asarray(survivors, dtype=np.intp)
    k = min(k, len(features))
    shift = slack = 0.0
    if not cov.known_psd:
        if cov.n_features > _LARGEST_DENSE:
            return None
        shift = psd_shift(cov.submatrix(features))
    diagonal = cov.diagonal()[features] + shift
    if not diagonal.max() > 0:
        return None
    unit = 4.0 ** np.floor(np.log2(diagonal.max()) / 2)
    diagonal /= unit
    shift /= unit
    start = (
        truncated_power_support(cov, k, features)
        if start is None
        else np.asarray(start)
    )
    x = np.zeros(cov.n_features)
    x[start] = leading_eigenvector(cov.submatrix(start) / unit)
    image = cov.matvec(x) / unit + shift * x
    scores = image[features] ** 2 / max(float(x @ image), np.finfo(float).tiny)
    penalty = float(np.partition(scores, len(features) - k)[len(features) - k])
    penalty = max(penalty, 1e-3 * float(np.sort(diagonal)[-k:].mean()))
    order = np.argsort(-diagonal, kind="stable")
    rows = cov.n_samples if cov.has_columns else None
    most = _LARGEST_DENSE if rows is None else max(k, _ENTRIES // rows)
    count = min(int((diagonal > 0.8 * penalty).sum()), most)
    chosen = features[order[:count]]
    floor = float(diagonal[order[count]]) if count < len(order) else 0.0
    floor *= 1 + 8 * ((rows or 0) + 4) * _EPS
    if rows is not None:
        C = cov.columns(chosen)
        C /= np.sqrt(unit)
        if len(C) > count:
            C = np.linalg.qr(C, mode="reduced")[1]
            slack = 8 * (rows + count) * _EPS * float(diagonal[order[:count]].sum())
    else:
        # A little more on the diagonal, so that rounding cannot stop the factorization
        slack = 8 * (count + 4) * _EPS * float(diagonal[order[:count]].sum())
        inner = cov.submatrix(chosen) / unit + (shift + slack) * np.eye(count)
        try:
            C = np.linalg.cholesky(inner).T
        except np.linalg.LinAlgError:  # indefinite after all, by more than rounding
            return None
        slack *= 2
    leading = C @ x[chosen]
    if not np.linalg.norm(leading) > 0:
        leading = C[:, 0].copy()
    leading /= np.linalg.norm(leading)
    norms = np.einsum("ij,ij->j", C, C)
    longest_first = np.argsort(-norms, kind="stable")
    C, norms = C[:, longest_first], norms[longest_first]
    chosen = chosen[longest_first]
    same = rows is not None and len(C) == rows
    return Problem(
        C, norms, k, floor, penalty, leading, unit, chosen, same, shift, slack
    )


def truncated_power_support(
    cov: Covariance, k: int, features: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Truncated power steps from the feature of the largest variance."""
    diagonal = cov.diagonal()[features]
    x = np.zeros(cov.n_features)
    x[features[int(diagonal.argmax())]] = 1.0
    chosen = features[:0]
    for _ in range(20):
        image = cov.matvec(x)[features]
        image += max(0.0, -float(diagonal.min())) * x[features]
        top = np.argpartition(-np.abs(image), k - 1)[:k]
        if np.array_equal(np.sort(features[top]), np.sort(chosen)):
            break
        chosen = features[top]
        x[:] = 0.0
        x[chosen] = image[top] / max(
            float(np.linalg.norm(image[top])), np.finfo(float).tiny
        )
    return np.sort(chosen)
