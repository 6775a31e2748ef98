"""Sparse components under linear conditions: W'x = 0, with x'Ax as large as may be.

Orthogonal components (W the earlier ones) and uncorrelated scores (W = A times the
earlier ones) are such problems. On a support S the best loadings are the leading
eigenvector of A_SS within the null space of W_S'. Supports are found by ascent: with
the multipliers μ of the conditions, A_SS x − W_S μ = λx, the gradient g = Ax − Wμ says
which features would add most, and those of the k largest |g_i| are the next support.
Where that leads no further, features with small loadings are exchanged for features
with large gradients, one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics.linalg import OnSupport, largest_entries, leading_eigenvector, with_sign

NULL = 1e-12  # a singular value of W_S that counts as zero
GAIN = 1e-12  # of the objective: less is rounding
# Steps of one ascent. Each gains, so that it ends by itself; the cap keeps small gains
# from taking all of the time.
MOST_ASCENTS = 60
MOST_DENSE = 1000  # features of a matrix all of whose rows are looked at
# Features that one round of exchanges takes out and puts in: of each ascent, and of the
# best support in the end. With 250, and not 100, the last of four uncorrelated
# components of snp500 with five features has a twelfth more variance.
QUICK, THOROUGH = (6, 8), (1000, 250)


def best_orthogonal(
    within: FloatArray, basis: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return the unit x that maximises x'Ax subject to Q'x = 0, and its objective.

    Parameters
    ----------
    within : (s, s) array
        A on the features of a support.
    basis : (s, m) array
        The rows of Q for those features.

    Returns
    -------
    (x, objective), or None if only x = 0 is orthogonal.
    """
    touched = basis[:, np.abs(basis).max(axis=0) > 0] if basis.size else basis
    if touched.shape[1] == 0:
        x = leading_eigenvector(within)
    else:
        left, sizes, _ = np.linalg.svd(touched)
        rank = int((sizes > NULL).sum())
        if rank == len(within):
            return None
        null = left[:, rank:]
        x = with_sign(null @ leading_eigenvector(null.T @ within @ null))
        x /= np.linalg.norm(x)
    return x, float(x @ within @ x)


def ascend(
    cov: Covariance,
    normals: FloatArray,
    k: int,
    start: NDArray[np.intp],
    deadline: Deadline,
    thoroughly: bool = False,
) -> OnSupport | None:
    """Improve a support; None if it admits no vector. See the module.

    It may have fewer than k features; those with the largest gradients are added.
    Thoroughly, many exchanges are tried where few have found nothing.
    """
    now = _on(cov, normals, start)
    for _ in range(MOST_ASCENTS if now is not None else 0):
        assert now is not None
        if deadline.passed():
            break
        gradient = _gradient(cov, normals, now)
        trial = _on(cov, normals, largest_entries(gradient, k))
        if trial is None or not trial.objective > _above(now.objective):
            sizes = np.abs(gradient)
            trial = _exchanged(cov, normals, now, sizes, QUICK, deadline)
            if trial is None and thoroughly:
                trial = _exchanged(cov, normals, now, sizes, THOROUGH, deadline)
        if trial is None:
            break
        now = trial
    return now


def _above(value: float) -> float:
    return value + GAIN * abs(value)


def _on(
    cov: Covariance, normals: FloatArray, support: NDArray[np.intp]
) -> OnSupport | None:
    support = np.sort(support)
    found = best_orthogonal(cov.submatrix(support), normals[support])
    return None if found is None else OnSupport(support, *found)


def _gradient(cov: Covariance, normals: FloatArray, now: OnSupport) -> FloatArray:
    gradient = cov.matvec(now.vector(cov.n_features))
    if normals.shape[1]:
        left = gradient[now.support] - now.objective * now.loadings
        mu = np.linalg.lstsq(normals[now.support], left, rcond=NULL)[0]
        gradient = gradient - normals @ mu
    return np.asarray(gradient)


def _exchanged(
    cov: Covariance,
    normals: FloatArray,
    now: OnSupport,
    gradient: FloatArray,
    most: tuple[int, int],
    deadline: Deadline,
) -> OnSupport | None:
    """Return the best exchange of one feature for another, if one helps."""
    weakest = np.argsort(np.abs(now.loadings), kind="stable")[: most[0]]
    outside = gradient.copy()
    outside[now.support] = -1.0
    added = np.argsort(-outside, kind="stable")[: most[1]]
    features = np.concatenate([now.support, added])  # one look at A for all
    A, W = cov.submatrix(features), normals[features]
    size = len(now.support)
    best, swap = _above(now.objective), None
    for out, new in product(weakest, range(size, len(features))):
        if features[new] in now.support or deadline.passed():
            continue
        chosen = np.arange(size)
        chosen[out] = new
        found = best_orthogonal(A[np.ix_(chosen, chosen)], W[chosen])
        if found is not None and found[1] > best:
            best, swap = found[1], chosen
    return None if swap is None else _on(cov, normals, features[swap])


def supports_of_rows(
    cov: Covariance, normals: FloatArray, k: int, count: int
) -> list[NDArray[np.intp]]:
    """Return supports to start from: the k strongest entries of strong rows of PAP.

    P projects off W. Strong rows are those with the largest sums of k entries, or, of
    matrices that are not held as a whole, with the largest variances; each is in no
    support before.
    """
    d = cov.n_features
    basis = np.linalg.qr(normals)[0] if normals.shape[1] else normals
    image = np.empty((d, basis.shape[1]))
    for column in range(basis.shape[1]):
        image[:, column] = cov.matvec(np.ascontiguousarray(basis[:, column]))
    core = basis.T @ image

    def rows(index: NDArray[np.intp]) -> FloatArray:
        part = basis[index]
        left = np.asarray(cov.submatrix(index, slice(None))) - part @ image.T
        return np.asarray(left - (image[index] - part @ core) @ basis.T)

    if d <= MOST_DENSE:
        sizes = np.abs(rows(np.arange(d)))
        strength = np.partition(sizes, d - min(k, d), axis=1)[:, d - min(k, d) :].sum(1)
    else:
        strength = cov.diagonal() - np.einsum("ij,ij->i", basis, 2 * image)
        strength += np.einsum("ij,jk,ik->i", basis, core, basis)
    starts: list[NDArray[np.intp]] = []
    free = np.ones(d, dtype=bool)
    while free.any() and len(starts) < count:
        i = int(np.argmax(np.where(free, strength, -np.inf)))
        starts.append(largest_entries(rows(np.array([i]))[0], k))
        free[starts[-1]] = free[i] = False
    return starts


def search_constrained(
    cov: Covariance,
    normals: FloatArray,
    k: int,
    starts: Sequence[NDArray[np.intp]],
    deadline: Deadline,
) -> OnSupport | None:
    """Return the best of the supports that ascents from the starts lead to."""
    best: OnSupport | None = None
    for start in starts:
        if best is not None and deadline.passed():
            break
        found = ascend(cov, normals, k, start, deadline)
        if found is not None and (best is None or found.objective > best.objective):
            best = found
    return best
