"""Target minus background: A_t − g A_b, from two matrices or data sets.

Contrastive PCA (Abid et al. 2018) looks for directions that vary in the target and not
in the background. Entries are computed from both when they are asked for: with an entry
error of e_t and e_b, and one rounding of g A_b and of the difference each, they err by

    e_t + g e_b + 2 eps (max |A_t| + g max |A_b|).

If A_b is positive semidefinite, x'(A_t − g A_b)x ≤ x'A_t x for every x: what bounds the
target's optimum bounds the contrast's, however large g is. The target is kept for that
(`Covariance.dominant`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._validation import FloatArray, check_real
from .covariance import Covariance, as_covariance
from .derived import DerivedCovariance
from .sources import (
    EPS,
    Indices,
    MatrixSource,
    MomentSource,
    Source,
    WithoutFactor,
)


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
        Indefinite in general. Every command takes it; as A_b is positive semidefinite
        if it comes from data, no component exceeds the target's own optimum, and no
        bound those of the target.

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
    if target.in_memory and background.in_memory:
        A, B = target.submatrix(slice(None)), background.submatrix(slice(None))
        held = MomentSource(A - weight * B, view.entry_error())
        held.known_psd = False
        source = held
        if weight == 0 and not isinstance(target._source, MomentSource):
            source = MatrixSource(np.array(A))
    return DerivedCovariance(
        source,
        names if names is not None else other,
        f"contrast, weight {weight:g}",
        dominant=target if background.known_psd else None,
    )


class ContrastSource(WithoutFactor):
    """A_t − g A_b, entry by entry."""

    known_psd = False
    no_factor = "a contrast of two has no factor"

    def __init__(self, target: Any, background: Any, weight: float) -> None:
        self.target, self.background, self.weight = target, background, weight
        self.n_features = target.n_features

    @cached_property
    def size(self) -> float:
        background = Covariance(self.background).max_abs()
        return Covariance(self.target).max_abs() + self.weight * background

    def entry_error(self) -> float:
        errors = self.target.entry_error() + self.weight * self.background.entry_error()
        return errors * (1 + 4 * EPS) + 2 * EPS * self.size

    def diagonal(self) -> FloatArray:
        return self.target.diagonal() - self.weight * self.background.diagonal()

    def submatrix(self, rows: Indices | slice, columns: Indices | slice) -> FloatArray:
        less = self.weight * self.background.submatrix(rows, columns)
        return self.target.submatrix(rows, columns) - less

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.target.matvec(x) - self.weight * self.background.matvec(x)

    def check_unchanged(self) -> None:
        """Ask both, where they read data in place."""
        for source in (self.target, self.background):
            Covariance(source).check_unchanged()
