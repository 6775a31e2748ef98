"""Components whose scores are uncorrelated, with a bound on the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._arguments import Argument
from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.residual import residual
from ..numerics.rounding import EPS, frobenius_norm
from ..result import Result
from .conditions_search import Conditions
from .orthogonal import Conditioned
from .scheme import RESIDUAL, NoComponent
from .schemes import row_space
from .variance import correlated, score_covariance, score_rounding


@dataclass(frozen=True)
class UncorrelatedScores(Conditioned):
    """x_j maximises x'Ax over k-sparse unit vectors with x'Ax_i = 0 for all i < j.

    The scores of such components are uncorrelated, V'AV is diagonal, so that plain and
    adjusted variance are the same and may be added up. Loadings need not be orthogonal,
    and components may share features.

    Notes
    -----
    A vector with V'Ax = 0 has x'A_j x = x'Ax, A_j = A − AV (V'AV)⁻¹ V'A being the
    problem of `ResidualDeflation`. So the k-sparse optimum of A_j is an upper bound,
    and component j is certified for A_j. What is found has W'x = 0 up to rounding, W =
    AV, on its own support; for up to 200 features a search of all sets under the
    conditions follows where the two do not meet (`finish`). Each condition takes one of
    the k loadings: component j needs k ≥ j, unless features do not covary at all.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(40, 8)) @ np.diag(range(1, 9))
    >>> A = np.cov(X.T)
    >>> found = bs.solve_components(A, 4, 3, scheme=bs.UncorrelatedScores())
    >>> scores = found.components @ A @ found.components.T
    >>> bool(abs(scores - np.diag(np.diag(scores))).max() < 1e-10)
    True
    """

    adds_variances: ClassVar[bool] = True

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        if not earlier:
            return cov
        return residual(cov, np.array([result.x for result in earlier]))

    def normals(self, cov: Covariance, components: FloatArray) -> FloatArray:
        """Return an orthonormal basis of A times the components, (d, m)."""
        images = np.empty((len(components), cov.n_features))
        for j, x in enumerate(components):
            image = cov.matvec(x)
            images[j] = image / (frobenius_norm(image) or 1.0)
        return row_space(images)

    def conditions(self, cov: Covariance, earlier: Sequence[Result]) -> Conditions:
        """(AV)'x = 0, of which AV is known up to rounding.

        An entry of A x_l is a sum of s products of computed entries of A, each of which
        is off by e: (s + 2) eps |A||x_l| + e ‖x_l‖₁. Columns are divided by their norm.
        """
        W = np.empty((cov.n_features, len(earlier)))
        error = 0.0
        for column_of, result in enumerate(earlier):
            used = np.flatnonzero(result.x)
            loadings = result.x[used]
            rows = cov.submatrix(used, slice(None))
            column = loadings @ rows
            weight = np.abs(loadings) @ np.abs(rows)
            off = (len(used) + 2) * EPS * weight
            off += cov.entry_error * float(np.abs(loadings).sum())
            length = frobenius_norm(column) or 1.0
            W[:, column_of] = column / length
            error += (frobenius_norm(off) / length + 2 * EPS) ** 2
        return Conditions(W, 1.01 * float(np.sqrt(error)))

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """0: who has V'Ax = 0 for all earlier components could have been component i.

        Its objective is x'Ax, in the problem of component i as in that of j: both
        subtract a form in V'Ax. Claims are about the exact matrices.
        """
        return 0.0

    def _refuse_broken(
        self, cov: Covariance, earlier: Sequence[Result], result: Result
    ) -> None:
        """Of features in units far apart AV has entries that are lost beside others."""
        rows = np.array([*(one.x for one in earlier), result.x])
        last = len(earlier)
        pairs = correlated(score_covariance(cov, rows), score_rounding(cov, rows))
        if any(j == last for _, j in pairs):
            scaled, fewer = Argument("scale", True), Argument("n_components", last)
            raise NoComponent(
                f"rounding leaves the score of component {last + 1} correlated with "
                "another: the variances of its features are too far apart; divide "
                f"features by their deviation ({scaled}), pass {fewer}, or {RESIDUAL}.",
                scaled,
                fewer,
                RESIDUAL,
            )

    def _none_found(self, k: int, m: int, d: int) -> NoComponent:
        return NoComponent(
            f"no vector with k = {k} nonzeros whose score is uncorrelated with those "
            f"of the {m} earlier component(s) was found; pass a k of at least {m + 1}, "
            f"fewer components, or {RESIDUAL}.",
            RESIDUAL,
        )
