"""Target minus background: A_t − g A_b, from two matrices or data sets.

Contrastive PCA (Abid et al. 2018) looks for directions that vary in the target and not
in the background. Entries are computed from both when they are asked for: with an entry
error of e_t and e_b, and one rounding of g A_b and of the difference each, they err by

    e_t + g e_b + 2 eps (max |A_t| + g max |A_b|).

If A_b is positive semidefinite, x'(A_t − g A_b)x ≤ x'A_t x for every x: what bounds the
target's optimum bounds the contrast's, however large g is. The target is kept for that
(`dominance.py` has the theorem, also for an A_b that is not quite so).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._validation import FloatArray, check_real
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.blas import single_threaded
from ..numerics.rounding import power_of_two
from ..numerics.upper_eigenvalues import psd_shift
from ..progress import Listener
from .covariance import Covariance, as_covariance
from .derived import DerivedCovariance
from .dominance import Dominance
from .rounding import SMALLEST
from .sources import EPS, Indices, MatrixSource, MomentSource, Source

_LARGEST_SHIFTED = 3000  # features of a background whose least eigenvalue is sought


def contrastive(
    cov_target: Covariance | Any, cov_background: Covariance | Any, weight: float = 1.0
) -> Covariance:
    """Return A_t − g A_b, for sparse PCA of what the background does not have.

    Parameters
    ----------
    cov_target, cov_background : Covariance or symmetric matrix
        Of the same features. From data, dense or sparse, nothing of size d × d is
        stored.
    weight : float
        g ≥ 0; 0 is the target alone.

    Returns
    -------
    Covariance
        Indefinite in general. As a background from data is positive semidefinite, no
        component exceeds the target's own optimum; where the contrast itself is not
        proved at once, a share of the time is spent on bounding that optimum.

    References
    ----------
    A. Abid, M. Zhang, V. Bagaria, J. Zou, "Exploring patterns enriched in a dataset
    with contrastive principal component analysis", Nature Communications 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> target, background = np.diag([5.0, 4.0, 1.0]), np.diag([5.0, 0.0, 0.0])
    >>> bs.solve(bs.contrastive(target, background, 1.0), 1).support
    array([1])
    """
    target, background = as_covariance(cov_target), as_covariance(cov_background)
    weight = check_real(weight, "weight", minimum=0)
    if target.n_features != background.n_features:
        raise ValueError(
            f"cov_target has {target.n_features} features and cov_background "
            f"{background.n_features}; pass two of the same features."
        )
    names = target.feature_names
    other = background.feature_names
    if names is not None and other is not None and names != other:
        at = next(i for i in range(len(names)) if names[i] != other[i])
        raise ValueError(
            f"feature {at} is {names[at]!r} in cov_target and {other[at]!r} in "
            "cov_background; bring the features into the same order."
        )
    view = ContrastSource(target._source, background._source, weight)
    source: Source = view
    if target.known_psd and background.known_psd:
        view.refuse_overflow()  # from the diagonals alone
    if target.in_memory and background.in_memory:
        view.refuse_overflow()
        error = view.entry_error()
        A, B = target.submatrix(slice(None)), background.submatrix(slice(None))
        source = MomentSource(A - weight * B, error, psd=False, computed_from=view)
        # Nothing is subtracted, and the entries stay exact.
        if weight == 0 and not isinstance(target._source, MomentSource):
            source = MatrixSource(np.array(A))
    dominance = None
    is_small = background.in_memory and background.n_features <= _LARGEST_SHIFTED
    if background.known_psd or is_small:  # β is known, or can be found
        dominance = ContrastDominance(target, background, weight)
    names = names if names is not None else other
    origin = f"contrast, weight {weight:g}"
    made = Contrast(source, names, origin, dominance)
    if source is view:
        made.terms, made.weight = (target, background), weight
    return made


class Contrast(DerivedCovariance):
    """A contrast; one that is not in memory knows its terms, and may be formed."""

    is_contrast = True
    terms: tuple[Covariance, Covariance] | None = None
    weight: float = 0.0

    def _form(
        self, deadline: Deadline | None, memory: int | None, tell: Listener
    ) -> Covariance:
        """The contrast of the formed terms, if forming either saves work.

        Both and their difference have to fit into the memory.
        """
        if self.terms is None:
            return self
        room = None if memory is None else memory // 3
        target, background = (t.formed(deadline, room, tell) for t in self.terms)
        if target is self.terms[0] and background is self.terms[1]:
            return self
        return contrastive(target, background, self.weight)


def made_of(cov: Covariance) -> tuple[Covariance, ...]:
    """Return the two matrices of a contrast that is not in memory; else nothing.

    Also for what is derived from such a contrast.
    """
    source: Any = cov._source
    while hasattr(source, "base"):
        source = source.base
    return tuple(Covariance(term) for term in getattr(source, "terms", ()))


class ContrastDominance(Dominance):
    """A_t − g A_b ⪯ A_t + g β I, where A_b + β I is positive semidefinite."""

    def __init__(
        self, target: Covariance, background: Covariance, weight: float
    ) -> None:
        self.target, self.background, self.weight = target, background, weight

    @property
    def matrix(self) -> Covariance:
        return self.target

    @property
    def seconds(self) -> float:
        d = self.background.n_features
        known = self.background.known_psd or self.weight == 0
        return 0.0 if known else _cost.eigenvalues(d) + 3 * _cost.cholesky(d)

    @cached_property
    def excess(self) -> float:
        """g β, rounded up: products and the sum err by eps/2 each, and 4 eps are added.

        β is found in units of the largest entry, where underflow is at most 2⁻¹⁰⁷⁴.
        """
        if self.background.known_psd or self.weight == 0:
            return 0.0
        B = self.background.submatrix(slice(None))
        unit = power_of_two(float(np.abs(B).max()))
        with single_threaded():
            shift = psd_shift(B / unit) * unit
        shift += self.background.n_features * self.background.entry_error
        with np.errstate(over="ignore"):
            # If it overflows, infinity rightly says that there is no bound.
            return float(self.weight * shift * (1 + 4 * EPS) + SMALLEST)


class ContrastSource(Source):
    """A_t − g A_b, entry by entry."""

    no_factor = "a contrast of two has no factor"

    def __init__(self, target: Source, background: Source, weight: float) -> None:
        self.target, self.background, self.weight = target, background, weight
        self.n_features = target.n_features

    @cached_property
    def size(self) -> float:
        """max |A_t| + g max |A_b|, which bounds both terms of every entry."""
        return Covariance(self.target).max_abs() + self.weight * self.largest_taken

    @cached_property
    def largest_taken(self) -> float:
        """The largest |A_b|."""
        return Covariance(self.background).max_abs()

    def refuse_overflow(self) -> None:
        """Refuse a weight with which an entry, or a sum of them, is not a float."""
        if not np.isfinite(4 * self.n_features * self.size):  # sums, as of all data
            raise ValueError(
                f"weight = {self.weight:g} is too large for a background with entries "
                f"up to {self.largest_taken:g}: their product overflows; pass a "
                "smaller one."
            )

    def entry_error(self) -> float:
        self.refuse_overflow()
        errors = self.target.entry_error() + self.weight * self.background.entry_error()
        return errors * (1 + 4 * EPS) + 2 * EPS * self.size

    def diagonal(self) -> FloatArray:
        return self.target.diagonal() - self.weight * self.background.diagonal()

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        less = self.weight * self.background.submatrix(rows, columns)
        return self.target.submatrix(rows, columns) - less

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.target.matvec(x) - self.weight * self.background.matvec(x)

    @property
    def terms(self) -> tuple[Source, Source]:
        """The two sources that entries are computed from."""
        return self.target, self.background

    def check_unchanged(self) -> None:
        for source in self.terms:
            source.check_unchanged()
