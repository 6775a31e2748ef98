"""What the two arithmetics have in common: integers, and float64 with derived margins.

`IntegerMatrix` and `IntegerForms` count in integers. The numbers of `FloatMatrix` and
`FloatForms`, U and what is compared with it, are fractions that are float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .problem import Problem
from .screening import Level, UpperBounds
from .tree import Schur, Tree
from .tree_text import WrittenTree

Number = TypeVar("Number", int, Fraction)
Form = Any  # UI − M: an array of integers, or a `FloatForm`
Borders = Any  # what features that are out add to a form: `IntegerBorders`, `Float…`


class Matrix(Protocol[Number]):
    """Ã of a section, with what rules ask of it."""

    nodes: int  # of trees that were read

    @property
    def name(self) -> str:
        """The arithmetic, in words."""

    @property
    def problem(self) -> Problem:
        """What the records are about."""

    @property
    def e(self) -> Number:
        """What Ã_ij may differ by from A_ij."""

    def number(self, value: float) -> Number:
        """Return a number of the file in the unit of Ã."""

    def largest_diagonal(self, k: int) -> Number:
        """Return the sum of the k largest Ã_ii, or more."""

    def smallest_diagonal(self) -> Number:
        """Return the smallest Ã_ii, or less."""

    def diagonal_at_most(self, i: int, tau: Number) -> bool:
        """Say whether Ã_ii ≤ τ is shown."""

    def upper_bounds(self) -> UpperBounds:
        """Return what screening needs."""

    def number_below(self, number: Number) -> float:
        """Return a number of Ã in the unit of `UpperBounds`, rounded down."""

    def number_above(self, number: Number) -> float:
        """Return a number of Ã in the unit of `UpperBounds`, rounded up."""

    def block(self, features: Sequence[int]) -> np.ndarray:
        """Return Ã on features."""

    def check_rows(self, bounds: UpperBounds, k: int, upper: Number) -> None:
        """Rule "rows"."""

    def tree(self, written: WrittenTree) -> tuple[Tree, Schur]:
        """Return a tree, ready to be read, and its first B."""


def level_of(matrix: Matrix[Number], k: int, tau: Number, u: Number) -> Level:
    """Return the question of a record, rounded for screening."""
    return Level(k, matrix.number_below(tau), matrix.number_above(u))


@dataclass(frozen=True)
class Weighted(Generic[Number]):
    """Ã on the features of a node, with weights ŵ and shares, to be shown below U."""

    A: np.ndarray
    w: np.ndarray
    shares: np.ndarray
    upper: Number
    k: int  # entries of the vectors that are meant


class Forms(Protocol[Number]):
    """Forms UI − M of a matrix, and how they are shown not to be negative."""

    @property
    def matrix(self) -> Matrix[Number]:
        """The matrix Ã."""

    def weights(self, values: Sequence[float]) -> np.ndarray:
        """Return ŵ for numbers w ≥ 0."""

    def signed_weights(self, values: Sequence[float]) -> np.ndarray:
        """Return v̂ for numbers v of any sign."""

    def squares_above(self, v: np.ndarray) -> np.ndarray:
        """Return v̂² in the unit of `UpperBounds`, rounded up."""

    def weights_below(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded down."""

    def weights_above(self, w: np.ndarray) -> np.ndarray:
        """Return ŵ in the unit of `UpperBounds`, rounded up."""

    def from_above(self, value: float) -> Number:
        """Return a number of the unit of `UpperBounds`, rounded up to one of Ã."""

    def rounded_up(self, values: np.ndarray) -> Any:
        """Return numbers of the unit of `UpperBounds` in that of squares of weights."""

    def point(self, given: Weighted[Number], raised: Sequence[Fraction]) -> Form:
        """UI − M, M_ii = A_ii + raised_i ŵ_i², M_ij = A_ij − 2⁻¹⁴ s_ij ŵ_i ŵ_j."""

    def dense(self, given: Weighted[Number], core: np.ndarray, beside: Any) -> Form:
        """Return UI − M − Diag(δ) of rule "entry"; `core` are places, δ is `beside`."""

    def without(self, form: Form, keep: np.ndarray) -> Form:
        """Return the form on some of its rows."""

    def is_positive(self, form: Form, k: int) -> bool:
        """Show that the form is not negative for vectors of k entries."""

    def bounds_part(
        self, features: Sequence[int], t: Number, v: np.ndarray, k: int
    ) -> bool:
        """Show that tI + vv' − Ã is not negative for vectors of k entries."""

    def columns(
        self,
        given: Weighted[Number],
        places: np.ndarray,
        own: np.ndarray,
        price: float,
    ) -> Borders:
        """Return c and U − Ã_ii − au² of the features at `places`."""

    def bordered(self, form: Form, columns: Borders, t: int) -> Form:
        """Return the form of t and y for the t-th of the features that are out."""

    def are_out(self, form: Form, columns: Borders, upper: Number) -> np.ndarray:
        """Say which features are shown to be out, all at once."""
