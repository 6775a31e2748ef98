"""What the eigenvalues of A say about every sparse vector, for branch and bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance import Covariance
from .chan import rough_eigenvector

SPECTRUM_SIZE = 1200  # features for which all eigenvalues cost about a second


@dataclass(frozen=True)
class Spectrum:
    """x'Ax ≤ low + span · Σ of `weights` over the support of x, and λmin ≥ −defect."""

    weights: FloatArray
    low: float
    span: float
    defect: float  #: A + defect · I is positive semidefinite

    @classmethod
    def of(cls, A: FloatArray, features: NDArray[np.intp] | None = None) -> Spectrum:
        """Take it from the two largest eigenvalues of A, restricted to `features`."""
        within = A if features is None else A[np.ix_(features, features)]
        eigenvalues, vectors = np.linalg.eigh(within)
        size = max(abs(eigenvalues[0]), abs(eigenvalues[-1]))
        slack = 8 * len(within) * np.finfo(float).eps * size
        second = float(eigenvalues[-2]) if len(within) > 1 else float(eigenvalues[-1])
        weights = vectors[:, -1] ** 2
        if features is not None:
            everywhere = np.zeros(len(A))
            everywhere[features] = weights
            weights = everywhere
        span = max(0.0, float(eigenvalues[-1]) - second)
        defect = max(0.0, slack - float(eigenvalues[0]))
        return cls(weights, second + slack, span, defect)

    @classmethod
    def of_data(cls, cov: Covariance, left: NDArray[np.intp]) -> Spectrum | None:
        """From the eigenvalues of the n × n Gram matrix, where samples are few.

        For a unit vector v at a distance of at most e from the eigenvector and β = λ₁ −
        λ₂, the largest eigenvalue of A − βvv' is at most λ₂ + 2βe, and e is at most √2
        times the residual of v, divided by β (Davis & Kahan).
        """
        n = cov.n_samples
        if n is None or not 2 <= n <= SPECTRUM_SIZE or not cov.known_psd:
            return None
        eigenvalues = np.linalg.eigvalsh(cov.gram(np.ones(cov.n_features)))
        first, second = float(eigenvalues[-1]), float(eigenvalues[-2])
        rounding = np.finfo(float).eps * (n + len(left)) * first
        defect = 8 * rounding  # of the entries of A
        if first - second <= 1e-6 * first:
            return cls(np.zeros(len(left)), math.inf, 0.0, defect)
        v = rough_eigenvector(cov.matvec, cov.diagonal(), tolerance=0.0)
        v /= np.linalg.norm(v)
        product = cov.matvec(v)
        residual = float(np.linalg.norm(product - (v @ product) * v))
        low = second + 3 * residual + 8 * rounding
        return cls(v[left] ** 2, low, first - second, defect)

    @classmethod
    def unknown(cls, A: FloatArray) -> Spectrum:
        """Without eigenvalues; that A is semidefinite is shown by a Cholesky factor."""
        slack = 1e-13 * len(A) * float(np.abs(np.diagonal(A)).max())
        defect = 2 * slack  # the factorisation itself is rounded
        shifted = A.copy()
        shifted.flat[:: len(A) + 1] += slack
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            defect = math.inf
        return cls(np.zeros(len(A)), math.inf, 0.0, defect)
