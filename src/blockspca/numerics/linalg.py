"""Eigenvalues, and components: unit norm, best loadings on a support, sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray

SMALL = 64  # up to here all eigenvectors take less time than the search for a few
LARGE = 300  # from here on all eigenvalues cost more than the steps to the largest


def symmetric_eigenvalues(A: FloatArray) -> FloatArray:
    """Return all eigenvalues of symmetric matrices (…, n, n), ascending.

    With eigenvectors, which takes 2.5 times as long: without them LAPACK squares the
    entries of a tridiagonal form (`dsterf`), and where squares underflow, eigenvalues
    may be off by a quarter of the norm, as with entries of 1e-157 beside 1. As entries
    of the form are products of up to n entries of A, entries of 1e-30 suffice for that
    if n = 11.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.numerics.linalg import symmetric_eigenvalues
    >>> symmetric_eigenvalues(np.array([[2.0, 1.0], [1.0, 2.0]])).round(6)
    array([1., 3.])
    """
    return np.asarray(np.linalg.eigh(A)[0])


def leading_eigenpairs(B: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the `count` largest eigenvalues, ascending, and their eigenvectors.

    If eigenvalues are repeated, LAPACK's search by index may fail or return too few;
    then all are computed.
    """
    n = len(B)
    count = min(count, n)
    if n <= SMALL:
        values, vectors = np.linalg.eigh(B)
        return values[n - count :], vectors[:, n - count :]
    from scipy.linalg import LinAlgError, eigh

    try:
        values, vectors = eigh(B, subset_by_index=[n - count, n - 1])
    except LinAlgError:
        values, vectors = np.empty(0), np.empty((n, 0))
    if len(values) != count:
        values, vectors = np.linalg.eigh(B)
    return values[-count:], vectors[:, -count:]


def leading_eigenvector(A: FloatArray) -> FloatArray:
    """Return a unit eigenvector of the largest eigenvalue, largest entry positive."""
    if len(A) == 1:
        return np.ones(1)
    x = _by_lanczos(A) if len(A) >= LARGE else None
    if x is None:
        x = leading_eigenpairs(A, 1)[1][:, 0]
    return with_sign(x)


def _by_lanczos(A: FloatArray) -> FloatArray | None:
    """Return a leading eigenvector by Lanczos' method, None if it does not converge.

    For components, whose objective is computed afterwards; never for a bound.
    """
    found = largest_by_lanczos(A)
    if found is None:
        return None
    size, value, x = found
    residual = np.linalg.norm(A @ x / size - value * x)
    return x if residual <= 1e-12 * len(A) else None


def largest_by_lanczos(A: FloatArray) -> tuple[float, float, FloatArray] | None:
    """Return max |A_ij|, the largest eigenvalue in units of it, and its eigenvector.

    By Lanczos' method from one start; None if A is zero or it does not converge.
    """
    size = float(np.abs(A).max(initial=0.0))
    if not 0 < size < np.inf:
        return None
    found = lanczos(A / size, np.random.default_rng(0).normal(size=len(A)))
    return None if found is None else (size, float(found[0][-1]), found[1][:, 0])


def lanczos(
    A: FloatArray | Callable[[FloatArray], FloatArray],
    start: FloatArray,
    *,
    count: int = 1,
    tolerance: float = 0.0,
) -> tuple[FloatArray, FloatArray] | None:
    """Return the `count` largest eigenvalues of A and their vectors, by ARPACK.

    A is a symmetric matrix, or the product x → Ax with it, for one vector or several;
    `count` < d. The same start gives the same result. The tolerance is relative, 0 for
    as near as rounding allows. Values ascend; they may be below those of A, so that
    they are no bounds. Returns None if ARPACK does not converge, if A is zero, or if A
    is in memory and computing all eigenvalues would take less time.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    operator: Any = A
    restarts = None
    if callable(A):
        shape = (len(start), len(start))
        operator = LinearOperator(shape, matvec=A, matmat=A, dtype=np.float64)
    else:
        # A restart takes some ten products, and LAPACK about as long as d of them.
        # Where λmax is a multiple eigenvalue ARPACK's own limit is a hundred times d:
        # −Φ'Φ, Φ of 200 × 600, took 5 s here, and LAPACK 0.05.
        restarts = max(30, len(A) // 10)
    try:
        values, vectors = eigsh(
            operator, k=count, which="LA", v0=start, tol=tolerance, maxiter=restarts
        )
    except ArpackError:
        return None
    return values, vectors


def rough_eigenpair(
    product: Callable[[FloatArray], FloatArray], start: FloatArray, tolerance: float
) -> tuple[float, FloatArray]:
    """About the largest eigenvalue of A and its eigenvector, from products with A.

    For starts and shifts, never for a bound. If ARPACK does not converge, or A is zero:
    0 and the start.
    """
    d = len(start)
    if d <= 3:
        A = product(np.eye(d))
        x = leading_eigenvector((A + A.T) / 2)
        return rayleigh(A, x), x
    found = lanczos(product, start, tolerance=tolerance)
    if found is None:
        return 0.0, start
    return float(found[0][0]), found[1][:, 0]


def with_sign(x: FloatArray) -> FloatArray:
    """Return x or −x, whichever has a positive entry of largest size.

    Of entries tied for the largest the first counts, so that the sign does not depend
    on rounding.
    """
    size = np.abs(x)
    first = (size >= size[size.argmax()] * (1 - 1e-9)).argmax()
    return x if x[first] > 0 else -x


def rayleigh(A: FloatArray, x: FloatArray) -> float:
    """Return x'Ax / x'x, which is never above the largest eigenvalue."""
    # For short x `dot` takes half the time of `@`, with the same result.
    return float(x.dot(A).dot(x) / x.dot(x))


class Matrix(Protocol):
    """A symmetric matrix that gives its principal submatrices, such as a Covariance."""

    @property
    def n_features(self) -> int: ...

    def submatrix(self, indices: NDArray[np.intp], /) -> FloatArray: ...


def on_support(
    A: FloatArray | Matrix, support: Sequence[int] | NDArray[np.intp]
) -> tuple[FloatArray, float]:
    """Best unit vector on a support of A, and its objective.

    Returns
    -------
    x : array of shape (d,)
        Zero outside the support.
    objective : float
        x'Ax, the largest eigenvalue of A restricted to the support.
    """
    support = np.asarray(support, dtype=np.intp)
    if isinstance(A, np.ndarray):
        within, d = A[support[:, None], support], len(A)
    else:
        within, d = A.submatrix(support), A.n_features
    loadings = leading_eigenvector(within)
    return vector_on(support, loadings, d), rayleigh(within, loadings)


def vector_on(
    support: Sequence[int] | NDArray[np.integer[Any]], loadings: ArrayLike, d: int
) -> FloatArray:
    """Return the vector of length d with these loadings on a support, else zero."""
    x = np.zeros(d)
    x[support] = loadings
    return x


class OnSupport(NamedTuple):
    """A support, loadings on it, and the objective x'Ax of that vector."""

    support: NDArray[np.intp]
    loadings: FloatArray
    objective: float

    def vector(self, d: int) -> FloatArray:
        """Return x, of length d."""
        return vector_on(self.support, self.loadings, d)


def largest_entries(values: FloatArray, k: int) -> NDArray[np.intp]:
    """Return the ascending indices of the k largest |values|, ties by position."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:k])
