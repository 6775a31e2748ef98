"""One zoo of small problems, and one brute force that judges what is said about them.

A problem is a function of its seed alone. `Reference` tries every support and gives
lower bounds on opt(k) that need no trust: quotients x'Ax / x'x in long doubles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from blockspca.covariance.covariance import Covariance

Rng = np.random.Generator
EPS = float(np.finfo(float).eps)
MOST_SUPPORTS = 30_000  # of one size, that are all tried


def _symmetric(A: np.ndarray) -> np.ndarray:
    return np.triu(A) + np.triu(A, 1).T


def gaussian(d: int, rng: Rng) -> np.ndarray:
    X = rng.standard_normal((d + int(rng.integers(1, 20)), d))
    return np.cov((X * rng.gamma(2.0, size=d)).T)


def correlation(d: int, rng: Rng) -> np.ndarray:
    X = rng.standard_normal((int(rng.integers(3, 20)), d))
    return np.corrcoef(X.T)


def low_rank(d: int, rng: Rng) -> np.ndarray:
    C = rng.standard_normal((int(rng.integers(1, 4)), d))
    return C.T @ C


def indefinite(d: int, rng: Rng) -> np.ndarray:
    return _symmetric(rng.standard_normal((d, d)))


def negative(d: int, rng: Rng) -> np.ndarray:
    return -gaussian(d, rng)


def integer(d: int, rng: Rng) -> np.ndarray:
    """Many ties, between entries and between supports."""
    most = int(rng.integers(1, 4))
    return _symmetric(rng.integers(-most, most + 1, (d, d)).astype(float))


def binary(d: int, rng: Rng) -> np.ndarray:
    A = _symmetric((rng.random((d, d)) < rng.uniform(0.2, 0.8)).astype(float))
    np.fill_diagonal(A, float(rng.integers(0, 2)))
    return A


def sparse(d: int, rng: Rng) -> np.ndarray:
    """Small integers and as many zeros: features that touch few others."""
    A = rng.integers(-2, 3, (d, d)) * (rng.random((d, d)) < 0.5)
    return _symmetric(A.astype(float)) + np.diag(rng.integers(-2, 3, d).astype(float))


def constant_diagonal(d: int, rng: Rng) -> np.ndarray:
    A = _symmetric(rng.normal(scale=rng.uniform(0.05, 1.0), size=(d, d)))
    np.fill_diagonal(A, rng.choice([0.0, 1.0, -1.0]))
    return A


def blocks(d: int, rng: Rng) -> np.ndarray:
    label = rng.integers(0, 3, size=d)
    return indefinite(d, rng) * (label[:, None] == label)


def duplicates(d: int, rng: Rng) -> np.ndarray:
    index = rng.integers(0, max(1, d // 2), size=d)
    return gaussian(d, rng)[np.ix_(index, index)]


def equicorrelated(d: int, rng: Rng) -> np.ndarray:
    noise = 10.0 ** -rng.integers(1, 17) * _symmetric(rng.standard_normal((d, d)))
    return np.eye(d) + rng.uniform(-0.5, 1.0) * (1 - np.eye(d)) + noise


def symmetric_under_shifts(d: int, rng: Rng) -> np.ndarray:
    """A circulant: every support has as many equals as there are shifts."""
    row = rng.integers(-3, 4, size=d).astype(float)
    row = row + row[-np.arange(d)]
    return row[(np.arange(d)[:, None] - np.arange(d)) % d]


def diagonal(d: int, rng: Rng) -> np.ndarray:
    return np.diag(rng.normal(size=d) * rng.integers(0, 2, size=d))


def constant(d: int, rng: Rng) -> np.ndarray:
    return np.full((d, d), float(rng.integers(-1, 2)))


def contrast(d: int, rng: Rng) -> np.ndarray:
    return gaussian(d, rng) - rng.choice([0.1, 1.0, 10.0]) * gaussian(d, rng)


def spiked(d: int, rng: Rng) -> np.ndarray:
    v = np.zeros(d)
    support = rng.permutation(d)[: int(rng.integers(1, d + 1))]
    v[support] = rng.choice([-1.0, 1.0], size=len(support))
    noise = _symmetric(rng.normal(scale=10.0 ** -rng.integers(0, 5), size=(d, d)))
    return np.outer(v, v) / len(support) + noise


def threshold_chain(d: int, rng: Rng) -> np.ndarray:
    """Features 0, 1, 2 win at τ = 1, by way of the pair 0, 1 at half a threshold.

    The pair misses the threshold of growth for k = 3, or not, by ulps, and so do the
    other ways to the three: what is called a parent must have been visited.
    """
    base = 0.5
    A = np.zeros((d, d))
    A[0, 1] = base * (1 + EPS * rng.integers(-40, 41))
    w = rng.uniform(0.6, 0.9)
    A[0, 2] = A[1, 2] = w
    if d >= 5:
        A[0, 3] = A[1, 4] = np.sqrt(max(w**2 - 0.24, 0.0))
    if d >= 7:
        A[5, 6] = rng.uniform(0.9, 0.99)
    return A + A.T


FAMILIES: dict[str, Callable[[int, Rng], np.ndarray]] = {
    family.__name__: family
    for family in (
        gaussian,
        correlation,
        low_rank,
        indefinite,
        negative,
        integer,
        binary,
        sparse,
        constant_diagonal,
        blocks,
        duplicates,
        equicorrelated,
        symmetric_under_shifts,
        diagonal,
        constant,
        contrast,
        spiked,
        threshold_chain,
    )
}


# -- kinds of matrices by name, for tests of each kind ---------------------------------

#: What users have. Every solver is tested on them.
KINDS = (
    "psd",
    "indefinite",
    "negative",
    "integer",
    "rank one",
    "duplicated",
    "zero rows",
    "block-diagonal",
    "diagonal",
    "zero",
)
#: Also those on which bounds tie, and those whose squares are out of range.
EVERY_KIND = (
    *KINDS,
    "low rank",
    "binary",
    "zero diagonal",
    "identity",
    "ones",
    "minus ones",
    "tiny",
    "huge",
)


def symmetric_matrix(kind: str, d: int, rng: Rng) -> np.ndarray:
    """Draw a d × d symmetric matrix of one of the kinds in `EVERY_KIND`."""
    X = rng.normal(size=(d + 3, d))
    psd = X.T @ X / (d + 3)
    noise = rng.normal(size=(d, d))
    indefinite = (noise + noise.T) / 2
    if kind == "negative":
        return -psd - 0.1 * np.eye(d)
    if kind == "integer":  # many ties, between entries and between supports
        return _symmetric(rng.integers(-2, 3, size=(d, d))).astype(float)
    if kind == "binary":
        return _symmetric(rng.integers(0, 2, size=(d, d))).astype(float)
    if kind == "rank one":
        v = rng.normal(size=d)
        return np.outer(v, v)
    if kind == "low rank":
        return X[:3].T @ X[:3]
    if kind == "duplicated":
        index = rng.integers(0, max(1, d // 2), size=d)
        return psd[np.ix_(index, index)]
    if kind == "zero rows":
        keep = rng.random(d) < 0.5
        return psd * np.outer(keep, keep)
    if kind == "zero diagonal":
        return indefinite * (1 - np.eye(d))
    if kind == "block-diagonal":
        label = rng.integers(0, 3, size=d)
        return indefinite * (label[:, None] == label)
    if kind == "diagonal":
        return np.diag(rng.normal(size=d))
    return {
        "psd": psd,
        "indefinite": indefinite,
        "tiny": 1e-200 * psd,
        "huge": 1e200 * psd,
        "zero": np.zeros((d, d)),
        "identity": np.eye(d),
        "ones": np.ones((d, d)),
        "minus ones": -np.ones((d, d)),
    }[kind]


#: Kinds of samples.
SAMPLES = ("wide", "tall", "copies", "constant", "sparse", "offset", "factor", "zeros")


def samples(kind: str, rng: Rng, n: int = 7, d: int = 9) -> Any:
    """Return samples of a kind that has broken something, or might."""
    X = rng.standard_normal((n, d)) * rng.gamma(2.0, size=d)
    if kind == "tall":
        X = rng.standard_normal((3 * d, d)) @ rng.standard_normal((d, d))
    elif kind == "copies":
        X[:, 3:6] = X[:, :3]
        X[:, 6] = -X[:, 0]
    elif kind == "constant":
        X[:, [1, 4]] = 2.0
    elif kind == "sparse":
        X = X * (rng.random((n, d)) < 0.4)
        X[0] += 0.1  # no constant columns
        return sp.csr_array(X)
    elif kind == "offset":
        return sp.csr_array(X + 50.0)
    elif kind == "factor":
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d)) + 0.1 * X
    elif kind == "zeros":
        X[: n - 2] = 0.0
    return X


# -- what may be done to a matrix ------------------------------------------------------


def as_it_is(A: np.ndarray, rng: Rng) -> np.ndarray:
    return A


def within_ulps(A: np.ndarray, rng: Rng) -> np.ndarray:
    """Move entries by a few ulps: ties that are none. What is zero stays zero."""
    steps = _symmetric(rng.integers(-2, 3, size=A.shape)).astype(float)
    return A + steps * np.where(A == 0, 0.0, np.spacing(np.abs(A)))


def cannot_matter(A: np.ndarray, rng: Rng) -> np.ndarray:
    """Make a feature or two useless, and large: A_ii = −1e9, say."""
    A = A.copy()
    for i in rng.permutation(len(A))[: int(rng.integers(1, 3))]:
        A[i, i] = -(10.0 ** rng.integers(3, 15))
        if rng.random() < 0.3:
            A[i, :i] = A[:i, i] = 0.0
            A[i, i + 1 :] = A[i + 1 :, i] = 0.0
    return A


def tiny_rows(A: np.ndarray, rng: Rng) -> np.ndarray:
    factor = np.where(rng.random(len(A)) < 0.4, 10.0 ** -rng.integers(3, 20), 1.0)
    return A * factor * factor[:, None]


def scaled(A: np.ndarray, rng: Rng) -> np.ndarray:
    """By a power of two, up to 1e±160: nothing else may change."""
    return A * 2.0 ** int(rng.integers(-530, 531))


def shifted(A: np.ndarray, rng: Rng) -> np.ndarray:
    """Put opt(k) near zero, or far from the differences between supports."""
    shift = rng.choice([-1.0, 1.0, 10.0, -1e3, 1e6])
    return A + shift * np.eye(len(A))


CHANGES = (as_it_is, within_ulps, cannot_matter, tiny_rows, scaled, shifted)
_SHARES = (0.35, 0.2, 0.12, 0.1, 0.15, 0.08)


@dataclass(frozen=True)
class Problem:
    """A matrix, as it is given to the provers and as exactly as it is known.

    Attributes
    ----------
    kind : str
    cov : Covariance
    A : float64 array of shape (d, d)
        What provers that take a matrix get.
    exact : long double array of shape (d, d)
        A itself, or the covariance of the data in long doubles.
    from_data : bool
    """

    kind: str
    cov: Covariance
    A: np.ndarray
    exact: np.ndarray
    from_data: bool = False

    @property
    def d(self) -> int:
        return len(self.A)


def from_matrix(A: np.ndarray, kind: str = "given") -> Problem:
    """Return the problem of a symmetric matrix."""
    A = np.ascontiguousarray(A, dtype=np.float64)
    return Problem(kind, Covariance.from_matrix(A), A, A.astype(np.longdouble))


def from_data(X: Any, kind: str, scale: bool = False) -> Problem:
    """Return the problem of the covariance, or correlation, of data."""
    cov = Covariance.from_data(X, scale=scale, constant="ignore")
    dense = X.toarray() if sp.issparse(X) else X
    C = dense.astype(np.longdouble)
    C = C - C.mean(axis=0)
    C = C - C.mean(axis=0)
    exact = C.T @ C / (len(C) - 1)
    if scale:
        own = np.diagonal(cov.submatrix(slice(None))) > 0
        deviation = np.where(own, np.sqrt(np.diagonal(exact)), 1)
        exact = exact / deviation / deviation[:, None] * own * own[:, None]
    A = np.ascontiguousarray(cov.submatrix(slice(None)))
    return Problem(kind, cov, (A + A.T) / 2, exact, True)


def _data(d: int, rng: Rng) -> Problem:
    n = int(rng.integers(2, 2 * d + 2))
    X = rng.standard_normal((n, d)) * rng.gamma(2.0, size=d)
    kind = str(rng.choice(["dense", "sparse", "factor", "copies", "counts"]))
    if kind in ("sparse", "counts"):
        X = X * (rng.random((n, d)) < 0.4)
    if kind == "counts":
        X = np.rint(X)
    elif kind == "factor":
        X = 0.1 * X + np.outer(rng.standard_normal(n), rng.standard_normal(d))
    elif kind == "copies":
        X[:, d // 2 :] = X[:, : d - d // 2]
    X *= 2.0 ** int(rng.integers(-60, 61))
    X[0] += X[0].max() + (1e-3 * np.abs(X).max() or 1.0)  # no column is constant
    given = sp.csr_array(X) if kind == "sparse" else X
    return from_data(given, f"data, {kind}", scale=bool(rng.random() < 0.3))


def problem(seed: int, smallest: int = 3, largest: int = 10) -> Problem:
    """Return the problem that belongs to a seed, with 3 to 10 features."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(smallest, largest + 1))
    if rng.random() < 0.15:
        return _data(d, rng)
    family = str(rng.choice(list(FAMILIES)))
    change = CHANGES[int(rng.choice(len(CHANGES), p=_SHARES))]
    A = change(FAMILIES[family](d, rng), rng)
    return from_matrix((A + A.T) / 2, f"{family}, {change.__name__}")


def modules(sizes: Sequence[int], seed: int = 0) -> np.ndarray:
    """Parts with entries of about 0.2, weakly coupled to one another."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    A = np.where(label[:, None] == label, 0.2, -0.04)
    A = A * (1 + 0.03 * rng.normal(size=A.shape))
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.42 + 0.01 * rng.normal(size=len(A)))
    return A


# -- brute force -----------------------------------------------------------------------


@lru_cache(maxsize=100)
def supports(d: int, k: int) -> np.ndarray:
    """Return all k-sets of d features, one a row."""
    return np.array(list(itertools.combinations(range(d), k)), dtype=np.intp)


@lru_cache(maxsize=100)
def membership(d: int, k: int) -> np.ndarray:
    """Return which features (columns) are in which k-set (rows)."""
    members = np.zeros((len(supports(d, k)), d), dtype=bool)
    np.put_along_axis(members, supports(d, k), True, axis=1)
    return members


@lru_cache(maxsize=100)
def _flat(d: int, k: int) -> np.ndarray:
    S = supports(d, k)
    return S[:, :, None] * d + S[:, None, :]


class Reference:
    """opt(k) of a problem for every k, by trying every support.

    Parameters
    ----------
    exact : array of shape (d, d)
        Symmetric, float64 or long double.
    k_max : int, optional
        The largest k, d by default.
    sizes : sequence of int, optional
        The k themselves, in place of 1, …, k_max.

    Notes
    -----
    `reached[k]` is x'Ax / x'x of a vector x with k nonzeros, in long doubles, rounded
    down: opt(k) ≥ reached[k], whatever LAPACK did. The x are eigenvectors of the
    supports whose eigenvalues are the largest up to rounding; the quotient is off by
    the square of the error of x, so that reached[k] is opt(k) in all digits unless
    more than `_TRIED` supports are within rounding of the best.
    """

    _TRIED = 3

    def __init__(
        self,
        exact: np.ndarray,
        k_max: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> None:
        d = len(exact)
        if sizes is None:
            sizes = range(1, (d if k_max is None else k_max) + 1)
        most = max(math.comb(d, k) for k in sizes)
        if most > MOST_SUPPORTS:
            raise ValueError(
                f"exact has {d} features, with {most} supports of a size; pass fewer "
                f"features or a smaller k_max, for at most {MOST_SUPPORTS}."
            )
        size = float(np.abs(exact).max(initial=0.0))
        # A power of two: eigenvalues neither overflow nor vanish.
        self.unit = 2.0 ** int(np.floor(np.log2(size))) if size > 0 else 1.0
        self.exact = exact.astype(np.longdouble) / self.unit
        A = self.exact.astype(np.float64)
        self.d = d
        self.eigenvalues: dict[int, np.ndarray] = {}
        self.reached: dict[int, float] = {}
        self.best: dict[int, np.ndarray] = {}
        for k in sizes:
            stack = A.ravel()[_flat(d, k)]
            values = np.linalg.eigvalsh(stack)[:, -1]
            # ‖A_SS‖ in the Frobenius norm bounds what LAPACK is off by.
            sure = values - 4 * k * EPS * np.sqrt(np.einsum("sij,sij->s", stack, stack))
            self.eigenvalues[k] = sure * self.unit
            found = (-np.inf, supports(d, k)[0])
            # The largest one first, and the surest.
            order = np.argpartition(-values, min(self._TRIED, len(values) - 1))
            tried = {int(sure.argmax()), *map(int, order[: self._TRIED])}
            for index in sorted(tried):
                S = supports(d, k)[index]
                found = max(found, (self._quotient(S, stack[index]), S), key=_first)
            self.reached[k] = _float_below(found[0] * np.longdouble(self.unit))
            self.best[k] = found[1]

    def _quotient(self, S: np.ndarray, block: np.ndarray) -> np.longdouble:
        x = np.linalg.eigh(block)[1][:, -1].astype(np.longdouble)
        return rayleigh_below(self.exact[S[:, None], S], x)

    def in_units(self) -> Reference:
        """Return the same for A / unit."""
        other = copy(self)
        other.unit = 1.0
        other.reached = {k: v / self.unit for k, v in self.reached.items()}
        other.eigenvalues = {k: v / self.unit for k, v in self.eigenvalues.items()}
        return other

    def scale(self, k: int) -> float:
        """Return max |A_ij| on the best support, to which rounding is in proportion."""
        S = self.best[k]
        return float(np.abs(self.exact[S[:, None], S]).max()) * self.unit

    def above(self, k: int, tau: float) -> np.ndarray:
        """Return the k-sets above τ beyond doubt: rows that tell who is in them."""
        return membership(self.d, k)[self.eigenvalues[k] > tau]


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def rayleigh_below(A: np.ndarray, x: np.ndarray) -> np.longdouble:
    """Return x'Ax / x'x in long doubles, less all that it may be off by."""
    A, x = A.astype(np.longdouble), x.astype(np.longdouble)
    terms = A * x * x[:, None]
    off = 4 * A.size * np.finfo(np.longdouble).eps * np.abs(terms).sum()
    length = x @ x
    return (terms.sum() - off) / length


def _float_below(value: np.longdouble) -> float:
    """Return the largest float64 that is at most the value."""
    rounded = float(value)
    return float(np.nextafter(rounded, -np.inf)) if rounded > value else rounded


def graded(d: int) -> np.ndarray:
    """A covariance of 25 samples whose variances grow, for tests of one example."""
    X = np.random.default_rng(6).normal(size=(25, d)) * np.linspace(1, 3, d)
    return np.cov(X.T)


def largest_on(A: np.ndarray, support: Sequence[int] | np.ndarray) -> float:
    """λmax of A on some features."""
    support = list(support)
    return float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])


def brute_force(A: np.ndarray, k: int) -> float:
    """Return opt(k) by trying every support of k features."""
    return Reference(np.asarray(A, dtype=float), sizes=(k,)).reached[k]


def optima(A: np.ndarray) -> np.ndarray:
    """Return opt(1), …, opt(d) by trying every support."""
    return np.array(list(Reference(np.asarray(A, dtype=float)).reached.values()))
