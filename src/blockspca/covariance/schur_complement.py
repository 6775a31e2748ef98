"""The Schur complement of A for features that are fixed in, at a level τ.

**Theorem** (Schur complement). Let F be the features fixed in, R others, and τ above
λmax(A_FF). With

    B(τ) = A_RR + A_RF (τI − A_FF)⁻¹ A_FR,

a set T in R has λmax(B(τ)_TT) > τ exactly if λmax(A_SS) > τ for S = F ∪ T. B decreases
in τ (in the order of positive semidefinite matrices). So if no T of m features has
λmax(B(τ)_TT) > w, no S has an eigenvalue above max(τ, w): for w ≥ τ, B(w) ⪯ B(τ).

**Rounding.** Entries of A are known to ± e. Let G = τI − A_FF and take any T (an
inverse Cholesky factor of what was computed for G), M = T'GT and η ≥ ‖M − I‖. That G is
positive definite follows from η < 1. G⁻¹ = T M⁻¹ T', so that with f_i = T'a_i, a_i =
A_Fi, the term of an entry is f_i'M⁻¹f_j, and f_i'f_j is off by η / (1 − η) ‖f_i‖ ‖f_j‖.
As a factor, M^(−1/2) f_i differs from f_i by (η / (1 − η)) ‖f_i‖ at most. η is computed
a posteriori, and is too large where τ is too near λmax(A_FF).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .covariance import Covariance
from .derived import (
    DerivedCovariance,
    LowRankSource,
    ResidualDataSource,
    SubsetSource,
    correction_error,
)
from .residual import (
    LARGEST_DEFECT,
    ROOM,
    data_errors,
    distance_from_identity,
    powers_of_two,
)
from .rounding import EPS
from .sources import DenseDataSource, MatrixSource, Source


class LevelTooLow(ValueError):
    """The level is not above λmax(A_FF), or not by enough to prove it."""


def forced(
    cov: Covariance,
    chosen: NDArray[np.intp],
    rest: NDArray[np.intp],
    level: float,
) -> Covariance:
    """Return B(level) for the features `rest`, `chosen` being fixed in; see the module.

    Raises `LevelTooLow` if λmax(A_FF) is not proved to be below the level.
    """
    factor, apart, defect = _factor(cov, chosen, rest, level)
    names = None if cov.feature_names is None else tuple(cov.names_of(rest))
    origin = f"{len(chosen)} feature(s) in for good"
    source = cov._source
    sizes = np.linalg.norm(factor, axis=0)
    new: Source
    if isinstance(source, DenseDataSource):
        columns = ROOM * (apart + defect / (1 - defect) * (sizes + apart))
        C = np.concatenate([source.C[:, rest], factor])
        errors = ROOM * (data_errors(source)[rest] + columns)
        new = ResidualDataSource(np.ascontiguousarray(C), errors)
        return DerivedCovariance(new, names, origin)
    largest = ROOM * float(sizes.max(initial=0.0)) + float(apart.max(initial=0.0))
    error = 2 * float(apart.max(initial=0.0)) * largest
    error = ROOM * (error + defect / (1 - defect) * largest**2)
    if isinstance(source, MatrixSource) and not source.sparse:
        A, product = source.A[np.ix_(rest, rest)], factor.T @ factor
        size = float(np.abs(A).max(initial=0.0)) + largest**2
        rounding = correction_error(len(chosen), size) + source.entry_error()
        A = A + (product + product.T) / 2
        new = source.computed(A, rounding + error, psd=cov.known_psd)
    else:
        base = SubsetSource(source, rest)
        new = LowRankSource(base, factor.T, -factor.T / 2, cov.known_psd, error)
    return DerivedCovariance(new, names, origin)


def _factor(
    cov: Covariance, chosen: NDArray[np.intp], rest: NDArray[np.intp], level: float
) -> tuple[FloatArray, FloatArray, float]:
    """T'A_FR, a bound on the error of each of its columns, in norm, and η."""
    m, e = len(chosen), cov.entry_error
    within = cov.submatrix(chosen)
    within = (within + within.T) / 2
    gram = level * np.eye(m) - within
    # the mean of two entries and the difference, one rounding each
    off = np.full((m, m), e) + 2 * EPS * (np.abs(within) + abs(level) * np.eye(m))
    variances = np.diagonal(gram)
    if not (np.isfinite(gram).all() and (variances > 0).all()):
        raise LevelTooLow(f"level = {level:.17g} is not above a variance in include.")
    units = powers_of_two(np.sqrt(variances))
    gram = gram / units / units[:, None]
    off = off / units / units[:, None]
    try:
        T = np.linalg.inv(np.linalg.cholesky(gram)).T
    except np.linalg.LinAlgError:
        raise LevelTooLow(f"level = {level:.17g} is not above λmax(A_FF).") from None
    defect = distance_from_identity(T, gram, off)
    if not defect < LARGEST_DEFECT:
        raise LevelTooLow(f"level = {level:.17g} is too near λmax(A_FF).")
    cross = cov.submatrix(chosen, rest) / units[:, None]
    factor = T.T @ cross
    rounded = e / units[:, None] + (m + 1) * EPS * np.abs(cross)
    apart = ROOM * np.linalg.norm(np.abs(T).T @ rounded, axis=0)
    return factor, apart, defect
