"""What `deflated` takes off A, in exact arithmetic: docs/proof-format.md, section 8.

V'AV and V'V are small; they are eliminated exactly, so that vectors v_l, orthogonal in
their sense, are combinations of the given ones in integers, with squares s_l:

    residual     A − Σ Av_l (Av_l)'/s_l,        s_l = v_l'Av_l
    projection   PAP, P = I − Σ v_l v_l'/s_l,   s_l = v_l'v_l
    hotelling    A − Σ a_l v_l v_l'             (of the given vectors)
    orthogonal   PAP − M Σ v_l v_l'/s_l

For data, A = C'C, the first two only change columns: c_i becomes c_i − Σ y_l
(y_l'c_i)/s_l with the scores y_l = Cv_l, or c_i − Σ v_li y_l/s_l. All else is a sum of
pairs c (pq' + qp'), of which entries are taken off.

With `scale` the scores Ŝ are rounded, by E in all. For ‖E‖ below the least singular
value of Ŝ, the exact scores are as independent, and the projections onto both differ by
‖(I − Π)Π̂‖ = ‖(I − Π)EŜ⁺‖ ≤ ‖E‖‖Ŝ⁺‖, where ‖Ŝ⁺‖² is at most the trace of (Ŝ'Ŝ)⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from .columns import ExactColumns, dot, fraction_bits, scaled
from .factor import factor, root_above, trace_of_inverse
from .fields import ProofError
from .problem import Problem

EXTRA = 96  # bits of a column after it is divided
Sparse = Mapping[int, int]


@dataclass(frozen=True)
class Pair:
    """The matrix c (pq' + qp')."""

    c: Fraction
    p: Sparse
    q: Sparse

    def entry(self, i: int, j: int) -> int:
        """Return p_i q_j + q_i p_j."""
        p, q = self.p, self.q
        return p.get(i, 0) * q.get(j, 0) + q.get(i, 0) * p.get(j, 0)

    def form(self, x: Sparse) -> Fraction:
        """Return x'(pq' + qp')x c."""
        return 2 * self.c * product(self.p, x) * product(self.q, x)


def product(a: Sparse, b: Sparse) -> int:
    """Return a'b."""
    if len(b) < len(a):
        a, b = b, a
    return sum(value * b.get(i, 0) for i, value in a.items())


class ChangedColumns:
    """The columns g_i − Σ_l z_l(i) y_l/s_l, times 2^EXTRA, rounded down.

    An interface as that of `ExactColumns`. Each of r quotients is less by at most 1.
    """

    def __init__(
        self,
        columns: ExactColumns,
        y: list[list[int]],
        squares: list[int],
        z: Callable[[int, list[int]], list[int]],
        error: Fraction,
    ) -> None:
        self.columns, self.y, self.squares, self.z = columns, y, squares, z
        self.two_bits = columns.two_bits + 2 * EXTRA
        self.denominator = columns.denominator
        root = isqrt(columns.problem.n) + 1
        self.error = int(error * 2**EXTRA) + 1 + len(y) * root

    def square(self, i: int) -> int:
        """Return the square of the length of a column."""
        column = self.column(i)
        return dot(column, column)

    def column(self, i: int) -> list[int]:
        """Return the column of a feature."""
        found = self.columns.column(i)
        weights = self.z(i, found)
        found = [g << EXTRA for g in found]
        for y, square, weight in zip(self.y, self.squares, weights, strict=True):
            if weight:
                weight <<= EXTRA
                found = [
                    g - weight * t // square for g, t in zip(found, y, strict=True)
                ]
        return found


class Deflated:
    """The matrix after step 1, exactly: `columns` or the data, less the `pairs`.

    For the features `names`, and those of the vectors. `basis` are the scores that a
    residual is orthogonal to, with their squares; `turned` is how far the space of
    these may be from the exact one; `mixed` are the vectors v_l of a projection.
    """

    def __init__(self, Y: np.ndarray, problem: Problem, names: Sequence[int]) -> None:
        self.Y, self.problem = Y, problem
        self.pairs: list[Pair] = []
        self.basis: tuple[list[list[int]], list[int]] = ([], [])
        self.mixed: tuple[list[Sparse], list[int]] = ([], [])
        self.turned = Fraction(0)
        given = problem.deflated
        vectors = problem.vectors
        self.names = sorted({*names}.union(*(v.support for v in vectors)))
        self.columns: ExactColumns | ChangedColumns
        if problem.kind == "data":
            self.plain = self.columns = ExactColumns(Y, problem, self.names)
        if given is None:
            return
        bits = [fraction_bits(np.array(v.x)) for v in vectors]
        self.vectors = [
            {i: scaled(x, b) for i, x in zip(v.support, v.x, strict=True)}
            for v, b in zip(vectors, bits, strict=True)
        ]
        if problem.kind == "matrix":
            supports = sorted({i for one in self.vectors for i in one})
            parts = (
                Y[np.ix_(self.names, supports)],
                Y[np.ix_(supports, self.names)],
            )
            self.more = max(map(fraction_bits, parts))
        if given.how == "hotelling":
            for v, b, whole in zip(vectors, bits, self.vectors, strict=True):
                c = Fraction(v.value) / (2 * 4**b)
                self.pairs.append(Pair(c, whole, whole))
        elif given.how == "residual":
            self._take_scores()
        else:
            self._take_directions(Fraction(given.penalty))

    # -- the ways -------------------------------------------------------------------

    def _take_scores(self) -> None:
        """Residual: V'AV must be positive definite."""
        if self.problem.kind == "matrix":
            images = [self._image(v) for v in self.vectors]
            W, squares = _definite(
                [[product(v, image) for image in images] for v in self.vectors],
                "the vectors have no scores of their own",
            )
            for row, square in zip(W, squares, strict=True):
                p = _combined(row, images)
                self.pairs.append(Pair(Fraction(1, square << self.more + 2), p, p))
            return
        scores = [self.plain.combined(v) for v in self.vectors]
        reason = "the vectors have no scores of their own"
        W, squares = _definite([[dot(a, b) for a in scores] for b in scores], reason)
        lost = [self.plain.error * sum(map(abs, v.values())) for v in self.vectors]
        moved = sum(e * e for e in lost) * trace_of_inverse(W, squares)
        if moved > Fraction(1, 2**20):
            raise ProofError(reason)
        basis = [
            [dot(row, list(sample)) for sample in zip(*scores, strict=True)]
            for row in W
        ]
        self.basis = (basis, squares)
        self.turned = root_above(moved) if moved else Fraction(0)
        error = self.plain.error + self.turned * self.plain.longest
        near, bits = self._rounded_basis()
        self.columns = ChangedColumns(
            self.plain,
            near,
            [1 << 2 * bits] * len(near),
            lambda i, g: [dot(q, g) for q in near],
            error + Fraction(1, 2**EXTRA),
        )

    def _rounded_basis(self) -> tuple[list[list[int]], int]:
        """Return q̂_l = y_l/√s_l in units of 2^−b, rounded towards 0, and b.

        The y_l have as many digits as all vectors together. With η = √n 2^−b, q̂_l is
        within η of the unit vector, so that what is taken off a column g, Σ q̂ q̂'g, is
        within r η (2 + η) ‖g‖ of the exact Σ y y'g/s: at most 2^−EXTRA by this b.
        """
        basis, squares = self.basis
        size = 3 * len(basis) * (isqrt(self.problem.n) + 1) * self.plain.longest
        bits = EXTRA + size.bit_length()
        near = []
        for y, square in zip(basis, squares, strict=True):
            roots = (isqrt((t * t << 2 * bits) // square) for t in y)
            near.append([q if t > 0 else -q for q, t in zip(roots, y, strict=True)])
        return near, bits

    def _take_directions(self, penalty: Fraction) -> None:
        """Projection, perhaps with a penalty: V'V must be positive definite."""
        given = self.vectors
        W, squares = _definite(
            [[product(a, b) for a in given] for b in given],
            "the vectors are not independent",
        )
        vectors: list[Sparse] = [_combined(row, given) for row in W]
        self.mixed = (vectors, squares)
        if self.problem.kind == "data":
            y = [self.plain.combined(v) for v in vectors]
            # Σ_j |P_ji| ≤ √|those j|, as P is a projection.
            together = isqrt(len({i for v in vectors for i in v})) + 1
            error = Fraction(self.plain.error * together)

            def weights(i: int, g: list[int]) -> list[int]:
                return [v.get(i, 0) for v in vectors]

            self.columns = ChangedColumns(self.plain, y, squares, weights, error)
        else:
            self._project_matrix(vectors, squares)
        if penalty:
            for v, square in zip(vectors, squares, strict=True):
                self.pairs.append(Pair(penalty / (2 * square), v, v))

    def _project_matrix(self, vectors: list[Sparse], squares: list[int]) -> None:
        """A − PAP = Σ_l (v_l Av_l' + Av_l v_l')/s_l − Σ_lm v_l (v_l'Av_m) v_m'/s_l s_m.

        (v_l and v_m are there twice, unless l = m.)
        """
        images = [self._image(v) for v in vectors]
        unit = 1 << self.more + 1
        for v, image, square in zip(vectors, images, squares, strict=True):
            self.pairs.append(Pair(Fraction(1, square * unit), v, image))
        for i, v in enumerate(vectors):
            for j in range(i + 1):
                c = Fraction(-product(v, images[j]), squares[i] * squares[j] * unit)
                c = c / 2 if i == j else c
                self.pairs.append(Pair(c, v, vectors[j]))

    # -- a matrix -------------------------------------------------------------------

    def _image(self, v: Sparse) -> dict[int, int]:
        """Return 2^(more + 1) Av on `names`, for a matrix."""
        Y, names = self.Y, self.names
        total = [0] * len(names)
        for j, weight in v.items():
            one, other = Y[names, j].tolist(), Y[j, names].tolist()
            total = [
                t + weight * (scaled(a, self.more) + scaled(b, self.more))
                for t, a, b in zip(total, one, other, strict=True)
            ]
        return dict(zip(names, total, strict=True))

    # -- forms ----------------------------------------------------------------------

    def form(self, support: Sequence[int], x: Sequence[float]) -> Fraction:
        """Return x'Ax of the matrix after step 1, or what is no more."""
        bits = fraction_bits(np.array(x))
        whole = {i: scaled(value, bits) for i, value in zip(support, x, strict=True)}
        if self.problem.kind == "matrix":
            found = self._plain_form(whole)
        else:
            found = self._data_form(whole)
        found -= sum((pair.form(whole) for pair in self.pairs), Fraction(0))
        return found / 4**bits

    def _plain_form(self, x: Sparse) -> Fraction:
        names = list(x)
        part = self.Y[np.ix_(names, names)]
        bits = fraction_bits(part)
        rows = ([scaled(y, bits) for y in row] for row in part.tolist())
        values = list(x.values())
        form = sum(a * dot(values, row) for a, row in zip(values, rows, strict=True))
        return Fraction(form, 1 << bits)

    def _data_form(self, x: Sparse) -> Fraction:
        """Return ‖(I − Π)CPx‖², of scores Π and vectors P, or less with `scale`.

        Then each entry of a g_i is within 1 of the exact one, and the length of what is
        found is less by at most √n Σ |x_i|, and by `turned` ‖Cx‖.
        """
        below = 1
        for v, square in zip(*self.mixed, strict=True):
            # Multiplied by s_l, all remains whole: x ← s_l x − v_l (v_l'x).
            share = product(v, x)
            if share:
                changed = {i: square * x.get(i, 0) for i in {*x, *v}}
                for i, value in v.items():
                    changed[i] -= share * value
                x, below = changed, below * square
        z = self.plain.combined(x)
        found = Fraction(dot(z, z))
        for y, square in zip(*self.basis, strict=True):
            found -= Fraction(dot(y, z) ** 2, square)
        if self.problem.scale:
            lost = Fraction(self.plain.error * sum(map(abs, x.values())))
            lost += self.turned * root_above(Fraction(dot(z, z)))
            none = Fraction(0)
            length = max(root_above(max(found, none)) - Fraction(1, 2**255), none)
            found = max(length - lost, none) ** 2
        return found / (self.plain.denominator << self.plain.two_bits) / below**2


def _definite(K: list[list[int]], reason: str) -> tuple[list[list[int]], list[int]]:
    found = factor(K)
    if found is None:
        raise ProofError(reason)
    return found


def _combined(row: list[int], vectors: Sequence[Sparse]) -> dict[int, int]:
    """Return Σ w_l v_l."""
    total: dict[int, int] = {}
    for weight, vector in zip(row, vectors, strict=True):
        if weight:
            for i, value in vector.items():
                total[i] = total.get(i, 0) + weight * value
    return total
