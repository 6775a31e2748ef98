"""Rule "entry": one weight a feature, by which entries are moved, for a price.

The pairs that are not within the dense features G are bounded from above in float64,
by the |Ã_ij| of `UpperBounds`, in both arithmetics: |M_ij| = max(0, |Ã_ij| − ŵ_i ŵ_j)
is no less for a larger |Ã_ij| = a and a smaller ŵ_i ŵ_j. In float64 that difference
errs by at most 2ua, where it is positive; and a sum of d products of numbers of at
least 0, in any order, divided by another, by 1.01(d + 4)u of it. A row that is not
decided so is added up in integers, if these are what decides.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import Forms, Number, Weighted
from .entry_file import Entry
from .fields import ProofError
from .integer_forms import IntegerForms
from .screening import BLOCK, TINY, UNIT, UpperBounds, above

FEW_PAIRS = 2**18  # that are known exactly, where integers decide


def check_entry(
    forms: Forms[Number], bounds: UpperBounds, k: int, upper: Number, given: Entry
) -> None:
    """Show UI − M ⪰ 0, first by rows beside G and then by a form on G."""
    w = forms.weights(given.weights)
    dense = np.array(given.dense, dtype=np.int64)
    with np.errstate(all="ignore"):  # what is not finite fails its comparison
        beside, left = _rows_beside(forms, bounds, k, upper, w, given)
        exact: _ExactRows | None = None
        if isinstance(forms, IntegerForms):
            exact = _ExactRows(forms, w, given, upper)
        for j in left.tolist():
            if exact is None or not exact.is_below(j, k):
                what = forms.matrix.problem.feature(j)
                raise ProofError(
                    f"k = {k}: the row of {what} is not shown to be below U"
                )
        if exact is not None and len(dense) * (len(w) - len(dense)) <= FEW_PAIRS:
            added = exact.beside()
        else:
            added = forms.rounded_up(beside)
        places = np.searchsorted(dense, np.array(given.core, dtype=np.int64))
        A = forms.matrix.block(given.dense)
        weighted = Weighted(A, w[dense], given.shares, upper, k)
        form = forms.dense(weighted, places, added)
        if not forms.is_positive(form, k):
            raise ProofError(f"k = {k}: U is not shown to bound the weighted matrix")


def _rows_beside(
    forms: Forms[Number],
    bounds: UpperBounds,
    k: int,
    upper: Number,
    w: np.ndarray,
    given: Entry,
) -> tuple[np.ndarray, np.ndarray]:
    """Return δ of G, rounded up, and the rows beside G not shown to be below U.

    U − Ã_jj − (k − 1)ŵ_j² is rounded four times, by at most u of what it is made of.
    """
    d, v = len(w), given.scaling
    more = 1 + 1.01 * (d + 8) * UNIT
    outside = np.ones(d, dtype=bool)
    outside[list(given.dense)] = False
    small = forms.weights_below(w)
    sums, beside = np.zeros(d), np.zeros(d)
    active = np.flatnonzero(_has_entries(bounds, small))
    rows = np.flatnonzero(outside[active])
    entries = bounds.entries(active)
    for start in range(0, len(rows), max(1, BLOCK // max(1, len(active)))):
        part = rows[start : start + max(1, BLOCK // max(1, len(active)))]
        moved = small[active[part]][:, None] * small[active]
        found = entries(part, len(active))
        found += 3 * UNIT * found + TINY - moved
        found = np.maximum(found, 0.0)
        found[np.arange(len(part)), part] = 0.0
        sums[active[part]] = found @ v[active]
        beside[active] += v[active[part]] @ found
    beside, sums = (
        np.where(part > 0, part / v * more + TINY, 0.0) for part in (beside, sums)
    )
    added = (k - 1) * forms.weights_above(w) ** 2
    top = forms.matrix.number_below(upper)
    rounding = 6 * UNIT * (abs(top) + np.abs(bounds.diagonal) + added) + TINY
    room = top - bounds.diagonal - added - rounding
    left = np.flatnonzero(outside & ~(sums <= room))
    return beside[~outside], left


def _has_entries(bounds: UpperBounds, small: np.ndarray) -> np.ndarray:
    """Return a mask of the features that may have an M_ij, i ≠ j, that is not 0.

    A feature has none if roots_i roots_j + error ≤ ŵ_i ŵ_j for all j; with q the
    largest roots_j/ŵ_j, that is so if (roots_i/ŵ_i) q + error/(ŵ_i min ŵ) ≤ 1.
    """
    d = len(small)
    if bounds.roots is None or not small.min() > 0:
        return np.ones(d, dtype=bool)
    ratios = above(bounds.roots / small)
    errors = above(bounds.error / (small * small.min()))
    return ~(above(ratios * ratios.max() + errors) <= 1)


class _ExactRows:
    """Sums of rows beside G, in integers: |M_ij| in units of squares of weights."""

    def __init__(
        self, forms: IntegerForms, w: np.ndarray, given: Entry, upper: int
    ) -> None:
        self.forms, self.w, self.dense, self.upper = forms, w, given.dense, upper
        # v_i ≥ 2^-100 has 53 bits, so that these are integers.
        self.scaling = [int(value * 2.0**160) for value in given.scaling.tolist()]

    def moved(self, i: int, j: int) -> int:
        """Return |M_ij| of a pair that is not in the core."""
        entry = abs(self.forms.matrix.entry(i, j)) << self.forms.square_bits
        return max(entry - self.w[i] * self.w[j], 0)

    def is_below(self, j: int, k: int) -> bool:
        """Decide M_jj + Σ |M_ij| v_i/v_j ≤ U."""
        others = [i for i in range(len(self.w)) if i != j]
        total = sum(self.moved(i, j) * self.scaling[i] for i in others)
        room = (self.upper - self.forms.matrix.entry(j, j)) << self.forms.square_bits
        return total <= (room - (k - 1) * self.w[j] ** 2) * self.scaling[j]

    def beside(self) -> list[int]:
        """Return δ_i = Σ |M_ij| v_j/v_i over j beside G, rounded up, for i in G."""
        outside = sorted({*range(len(self.w))} - {*self.dense})
        sums = [
            sum(self.moved(i, j) * self.scaling[j] for j in outside) for i in self.dense
        ]
        return [-(-x // self.scaling[i]) for x, i in zip(sums, self.dense, strict=True)]
