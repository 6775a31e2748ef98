"""The largest eigenvalue of a dense symmetric matrix: a pair, and a proved bound.

**Floor.** If B + tI = LL' + E, then x'Bx ≥ −(t + ‖E‖_F) x'x, because LL' ⪰ 0. If x
has at most k entries that are not 0, then (Σ |x_i|)² ≤ k x'x, so that
x'Bx ≥ −(t + k max |E_ij|) x'x. L and t come from LAPACK and are guesses. E is computed
from L: its entry errs by at most γ_n ‖L_i‖ ‖L_j‖ of the product, u |E_ij| of the
difference and u |B_ii + t| of the diagonal. **Ceiling**: λmax(B) = −λmin(−B).
"""

from __future__ import annotations

import math

import numpy as np

from ..validation import FloatArray
from .rounding import EPS, UNIT, above, gamma, norm_above

SMALL = 64  # up to this order all eigenvectors take less time than one
LARGE = 300  # from this order on Lanczos' method takes less time than LAPACK


def leading_pair(B: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of B, at least 1 × 1, and a unit eigenvector of it.

    The entry of largest size is positive. The value is x'Bx, not a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.linalg.eigen import leading_pair
    >>> value, x = leading_pair(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(value, 9), x.round(3)
    (3.0, array([0.707, 0.707]))
    """
    x = _lanczos(B) if len(B) >= LARGE else None
    if x is None:
        x = _leading_vector(B)
    x = with_sign(x / np.linalg.norm(x))
    return float(x @ (B @ x)), x


def _leading_vector(B: FloatArray) -> FloatArray:
    """Return the last eigenvector by LAPACK."""
    from scipy.linalg import LinAlgError, eigh

    if len(B) > SMALL:
        try:
            last = [len(B) - 1, len(B) - 1]
            vectors = eigh(B, subset_by_index=last, check_finite=False)[1]
            if vectors.shape[1]:  # the search by index may fail for repeated ones
                return np.asarray(vectors[:, 0])
        except LinAlgError:
            pass
    return np.asarray(np.linalg.eigh(B)[1][:, -1])


def _lanczos(B: FloatArray) -> FloatArray | None:
    """Return an eigenvector by ARPACK, None if LAPACK would be as fast."""
    from scipy.sparse.linalg import ArpackError, eigsh

    start = np.random.default_rng(0).standard_normal(len(B))
    # A restart takes some ten products, and LAPACK about as long as n of them.
    restarts = max(30, len(B) // 10)
    try:
        values, vectors = eigsh(B, k=1, which="LA", v0=start, maxiter=restarts)
    except ArpackError:
        return None
    x = vectors[:, 0]
    residual = np.linalg.norm(B @ x - values[0] * x)
    return x if residual <= 1e-12 * len(B) * np.abs(B).max() else None


def with_sign(x: FloatArray) -> FloatArray:
    """Return x or −x, so that its entry of largest size is positive.

    The first of nearly equal entries counts, so that rounding does not decide.
    """
    size = np.abs(x)
    first = (size >= size[size.argmax()] * (1 - 1e-9)).argmax()
    return x if x[first] > 0 else -x


def eigenvalue_ceiling(B: FloatArray, guess: float | None = None) -> float:
    """Return a number that is at least λmax(B), and very near it.

    `guess` is the largest eigenvalue, if the caller has computed it already. A wrong
    guess makes the bound weaker and never wrong.
    """
    if guess is None:
        guess = leading_pair(B)[0] if len(B) else 0.0
    return -eigenvalue_floor(-B, -guess)


def eigenvalue_floor(B: FloatArray, guess: float = 0.0, k: int | None = None) -> float:
    """Return f with x'Bx ≥ f x'x for all x, or for all x with k entries that are not 0.

    `guess` is near the least eigenvalue, or 0 if B is positive semidefinite up to
    rounding. If it is too high, the least eigenvalue is computed.
    """
    n = len(B)
    if n == 0:
        return 0.0
    if not (np.isfinite(B).all() and math.isfinite(guess)):
        return -math.inf
    diagonal = np.abs(np.diagonal(B)).max()
    slack = 4 * n * UNIT * max(float(diagonal), abs(guess), math.ulp(0.0))
    L = _factor(B, slack - guess)
    attempts = 1
    while L is None:
        if attempts == 3:  # the guess is wrong, so that slack will not do
            guess = min(guess, float(np.linalg.eigvalsh(B)[0]))
            slack = n * EPS * float(np.abs(B).max())
        slack *= 8
        attempts += 1
        L = _factor(B, slack - guess)
    shift = slack - guess
    product = L @ L.T
    E = B - product
    E[np.diag_indices(n)] = np.diagonal(B) + shift - np.diagonal(product)
    norms = np.sqrt(np.einsum("ij,ij->i", L, L)) * (1 + gamma(n + 4))
    by_diagonal = UNIT * (float(diagonal) + abs(shift)) * (1 + 2 * EPS)
    everywhere = norm_above(E) * (1 + EPS) + above(
        gamma(n) * float(norms @ norms), n + 2
    )
    error = everywhere + by_diagonal * math.sqrt(n)
    if k is not None:
        largest = (
            float(np.abs(E).max()) * (1 + EPS) + gamma(n) * float(norms.max()) ** 2
        )
        error = min(error, k * (largest + by_diagonal))
    return -above(shift + error * (1 + 16 * EPS))


def _factor(B: FloatArray, shift: float) -> FloatArray | None:
    """Return the Cholesky factor of B + shift I, None if there is none."""
    from scipy.linalg import LinAlgError, cholesky

    test = B.copy()
    test[np.diag_indices(len(B))] += shift
    try:
        L = cholesky(test, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return L if np.isfinite(L).all() else None
