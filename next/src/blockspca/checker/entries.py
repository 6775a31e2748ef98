"""Entries of A from the data: docs/proof-format.md, section 7.

`Floats` has float64 numbers Ã with |Ã_ij − A_ij| ≤ error, `integers` the entries on
some features as integers times 2^−bits. The page derives the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, lcm

import numpy as np

from .problem import Problem, Vector
from .reading import DataError

UNIT = 2.0**-53
ROWS = 4096  # of a product that is one sum
ENTRIES = 2**24  # of a block of rows of A
BITS = 96  # of integers that stand for the largest entry


def product_error(n: int) -> float:
    """Return γ: the relative error of a sum of n products."""
    return (min(n, ROWS) + n / ROWS + 8) * UNIT


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left' right, added over blocks of rows."""
    blocks = [slice(start, start + ROWS) for start in range(0, len(left), ROWS)]
    return np.asarray(sum(left[rows].T @ right[rows] for rows in blocks))


def lengths(H: np.ndarray) -> np.ndarray:
    """Return the lengths of columns."""
    blocks = [H[start : start + ROWS] for start in range(0, len(H), ROWS)]
    return np.sqrt(sum(np.einsum("si,si->i", block, block) for block in blocks))


class Floats:
    """Ã in float64, for the features that are kept.

    Attributes
    ----------
    size : int
    is_psd : bool
        A is positive semidefinite.
    diagonal : array
    error : float
        Of an entry of `diagonal`, `block` and `lists`.
    """

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        kept = np.setdiff1d(np.arange(Y.shape[1]), problem.sets.without)
        self.is_psd = problem.kind == "data"
        self._C = None
        self._base: np.ndarray | None = None
        self._vectors = columns_of(problem.residual, Y.shape[1])
        with np.errstate(all="ignore"):  # other numbers are refused below
            if self.is_psd:
                whole = self._from_data(Y, problem, kept)
                largest = lengths(whole).max() ** 2
            else:
                whole = self._from_matrix(Y, kept)
                largest = np.abs(whole).max()
        if whole.any() and not 2.0**-200 <= largest <= 2.0**200:
            raise DataError("the largest entry must be within 2^±200; scale the data")
        if not np.isfinite(self.error) or not np.isfinite(self.diagonal).all():
            raise DataError("float64 cannot hold the covariance of these data")
        self.size = len(kept)

    def _from_matrix(self, Y: np.ndarray, kept: np.ndarray) -> np.ndarray:
        A, V = Y / 2 + Y.T / 2, self._vectors
        self._base = A
        size = np.abs(A).max()
        self.base_error = 0.0 if np.array_equal(A, Y) else 2 * UNIT * size
        self.error = self.base_error
        if V.shape[1]:
            AV = A @ V
            G = V.T @ AV
            W = np.linalg.lstsq(G, AV.T, rcond=None)[0]
            length = 1 + (np.abs(V).sum(axis=0) @ np.abs(W)).max()
            terms = np.count_nonzero(V.any(axis=1)) + 2 * V.shape[1] + 8
            self.error = (2 + 8 * terms) * UNIT * length**2 * size
            A = A - (AV @ W + (AV @ W).T) + W.T @ (G @ W)
        self._A = A[np.ix_(kept, kept)]
        self._A = (self._A + self._A.T) / 2
        self.diagonal = self._A.diagonal().copy()
        return self._base

    def _from_data(
        self, Y: np.ndarray, problem: Problem, kept: np.ndarray
    ) -> np.ndarray:
        n = len(Y)
        gamma = product_error(n)
        used = np.union1d(kept, np.flatnonzero(self._vectors.any(axis=1)))
        H = Y[:, used].astype(np.float64)
        theta = np.zeros(H.shape[1])
        if problem.center:
            still = (H[0] == H).all(axis=0)
            for step in range(2):
                H -= product(np.ones((n, 1)), H)[0] / n
                if step == 0:
                    theta = 1.01 * (gamma + 3 * UNIT) * lengths(H)
            H[:, still], theta[still] = 0.0, 0.0
        length = lengths(H)
        if problem.scale:
            divisor = np.where(length > 0, length, 1.0)
            if (length[H.any(axis=0)] < 2.0**-400).any():
                raise DataError("float64 cannot hold the lengths of these columns")
            theta = np.where(length > 0, 2.02 * theta / divisor + gamma + 3 * UNIT, 0.0)
        else:
            divisor = np.sqrt(n - problem.ddof)
            theta = theta / divisor + 2 * UNIT * length / divisor
        H /= divisor
        self._whole, self._used = H, used
        self.base_error = self._error_of(H, theta)
        V = self._vectors[used]
        if V.shape[1]:
            S = H @ V
            W = np.linalg.lstsq(S, H, rcond=None)[0]
            terms = np.count_nonzero(V, axis=0).max() + 2
            own = np.abs(V).T @ (theta + terms * UNIT * lengths(H))  # of each score
            theta = theta + own @ np.abs(W)
            size = lengths(H) + lengths(S) @ np.abs(W)
            theta += (V.shape[1] + 4) * UNIT * size
            H = H - S @ W
        place = np.searchsorted(used, kept)
        self._C, theta = H[:, place], theta[place]
        self.diagonal = lengths(self._C) ** 2
        self.error = self._error_of(self._C, theta)
        return self._whole

    def _error_of(self, H: np.ndarray, theta: np.ndarray) -> float:
        length, worst = 1.01 * lengths(H).max(), theta.max()
        gamma = 1.01 * product_error(len(H))
        return float((2 * length + worst) * worst + gamma * length**2)

    def block(self, features: np.ndarray) -> np.ndarray:
        """Return Ã on some features."""
        if self._C is None:
            return self._A[np.ix_(features, features)]
        return product(self._C[:, features], self._C[:, features])

    def lists(
        self, features: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the `width` largest |Ã_ij| of each row, falling, j, and their error.

        Rows and columns are `features`; the j are positions in them.
        """
        count = len(features)
        width = min(width, count - 1)
        values = np.zeros((count, width))
        positions = np.zeros((count, width), dtype=np.int64)
        part = None if self._C is None else self._C[:, features]
        step = max(1, ENTRIES // count)
        for start in range(0, count if width else 0, step):
            rows = np.arange(start, min(count, start + step))
            if part is None:
                entries = np.abs(self._A[np.ix_(features[rows], features)])
            else:
                entries = np.abs(product(part[:, rows], part))
            entries[np.arange(len(rows)), rows] = -1.0
            order = np.argpartition(entries, count - width, axis=1)[:, count - width :]
            largest = np.take_along_axis(entries, order, axis=1)
            falling = np.argsort(-largest, axis=1, kind="stable")
            values[rows] = np.take_along_axis(largest, falling, axis=1)
            positions[rows] = np.take_along_axis(order, falling, axis=1)
        return values, positions, self.error

    def original(self, features: np.ndarray) -> tuple[np.ndarray, float]:
        """Return entries of A before `residual` and `without`, and their error."""
        if self._base is not None:
            return self._base[np.ix_(features, features)], self.base_error
        part = self._whole[:, np.searchsorted(self._used, features)]
        return product(part, part), self.base_error


def columns_of(vectors: Sequence[Vector], d: int) -> np.ndarray:
    """Return vectors as the columns of a matrix."""
    V = np.zeros((d, len(vectors)))
    for column, vector in enumerate(vectors):
        V[list(vector.support), column] = vector.x
    return V


def integer_block(
    Y: np.ndarray, problem: Problem, features: np.ndarray
) -> tuple[np.ndarray, int, int]:
    """Return 2^bits A on features after `residual`, the bits, and the error.

    With W near (V'AV)⁻¹V'A, in integers times 2⁻⁴⁰, it is (I − VW)'A(I − VW).
    """
    V = columns_of(problem.residual, Y.shape[1])
    if not V.shape[1]:
        return integers(Y, problem, features.tolist())
    used = np.union1d(features, np.flatnonzero(V.any(axis=1)))
    A, bits, error = integers(Y, problem, used.tolist())
    V = V[used]
    near = A.astype(np.float64)  # 2^bits A: W has no unit
    W = np.linalg.lstsq(V.T @ near @ V, V.T @ near, rcond=None)[0]
    place = np.searchsorted(used, features)
    exact = max(Fraction(v).denominator.bit_length() - 1 for v in V.ravel().tolist())
    Z = -_whole(V, exact) @ _whole(W[:, place], 40)
    Z[place, np.arange(len(place))] += 2 ** (exact + 40)
    length, unit = int(np.abs(Z).sum(axis=0).max()), 2 * (exact + 40)
    return (Z.T @ A @ Z) >> unit, bits, 2 + (error * length**2 >> unit)


def _whole(x: np.ndarray, bits: int) -> np.ndarray:
    """Return 2^bits x, rounded down, in Python's integers."""
    scaled = [int(Fraction(value) * 2**bits // 1) for value in x.ravel().tolist()]
    return np.array(scaled, dtype=object).reshape(x.shape)


def integers(
    Y: np.ndarray, problem: Problem, features: Sequence[int]
) -> tuple[np.ndarray, int, int]:
    """Return 2^bits A on features before `residual`, the bits, and the error (0 or 2).

    Entries are rounded down if they do not fit.
    """
    if problem.kind == "matrix":
        exact = [[_half(Y[i, j], Y[j, i]) for j in features] for i in features]
    else:
        exact = _gram(Y, problem, features)
    largest = max((abs(entry) for row in exact for entry in row), default=Fraction(0))
    denominator = lcm(*(entry.denominator for row in exact for entry in row))
    bits = BITS - int(largest).bit_length() if largest >= 1 else BITS
    while largest and largest * 2**bits < 2 ** (BITS - 1):
        bits += 1
    error = 2
    if denominator & (denominator - 1) == 0 and denominator <= 2 ** max(0, bits):
        error = 0
    scale = Fraction(2) ** bits
    A = np.array([[int(entry * scale // 1) for entry in row] for row in exact], object)
    return A.reshape(len(features), len(features)), bits, error


def _half(a: float, b: float) -> Fraction:
    return (Fraction(float(a)) + Fraction(float(b))) / 2


def _gram(
    Y: np.ndarray, problem: Problem, features: Sequence[int]
) -> list[list[Fraction]]:
    """Return A_ij, exact; with `scale` rounded to 2⁻¹²⁸ below (see `integers`)."""
    n = len(Y)
    columns = []
    for i in features:
        exact = [Fraction(y) for y in Y[:, i].tolist()]
        unit = max(y.denominator for y in exact)
        column = [int(y * unit) for y in exact]
        if problem.center:
            total = sum(column)
            column, unit = [n * y - total for y in column], n * unit
        columns.append((column, unit))
    squares = [sum(y * y for y in column) for column, _ in columns]
    gram: list[list[Fraction]] = []
    for i, (left, unit) in enumerate(columns):
        row = [gram[j][i] for j in range(i)]
        for j in range(i, len(columns)):
            right, other = columns[j]
            dot = sum(a * b for a, b in zip(left, right, strict=True))
            if problem.scale:
                row.append(_ratio(dot, squares[i] * squares[j]))
            else:
                row.append(Fraction(dot, unit * other * (n - problem.ddof)))
        gram.append(row)
    return gram


def _ratio(dot: int, square: int) -> Fraction:
    """Return dot / √square within 2⁻¹²⁸; 0 if the square is 0."""
    if not square:
        return Fraction(0)
    root = isqrt((dot * dot << 256) // square)
    return Fraction(root if dot > 0 else -root, 2**128)
