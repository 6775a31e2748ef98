"""Bounds on x'Ax from the eigenvalues of A, for branch and bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.sources import ENTRIES_AT_ONCE
from ..numerics.rounding import EPS
from ..numerics.upper_eigenvalues import eigenvalue_ceiling, rounding_shift

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
        slack = 10 * len(within) * EPS * size  # sums of weights included
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
        """From the eigenvectors of the n × n Gram matrix, where samples are few.

        `low` and `weights` hold for A = C'C, `defect` for its entries as computed.
        """
        n = cov.n_samples
        if n is None or not 2 <= n <= SPECTRUM_SIZE or not cov.known_psd:
            return None
        gram = cov.gram(np.ones(cov.n_features))
        eigenvalues, vectors = np.linalg.eigh(gram)
        first, second = float(eigenvalues[-1]), float(eigenvalues[-2])
        if first - second <= 1e-6 * first or not cov.has_columns:
            defect = len(left) * cov.entry_error
            return cls(np.zeros(len(left)), math.inf, 0.0, defect)
        share = 1 - math.sqrt(max(second, 0.0) / first)  # makes λ₁ of NGN equal to λ₂
        return cls.without(cov, left, gram, vectors[:, -1], share)

    @classmethod
    def without(
        cls,
        cov: Covariance,
        left: NDArray[np.intp],
        gram: FloatArray,
        u: FloatArray,
        share: float,
    ) -> Spectrum:
        """Split A = C'C along w = C'u, for any unit vector u and 0 ≤ share ≤ 1.

        N = I − a uu' has N² = I − c uu' with c = a (2 − a u'u), so A − c ww' = C'N²C
        has the largest eigenvalue of NCC'N = NGN, and (x'w)² ≤ Σ_S w_i² for ‖x‖ = 1.
        """
        n, d = len(gram), cov.n_features
        N = np.eye(n) - share * np.outer(u, u)
        rest = N @ gram @ N
        low = eigenvalue_ceiling((rest + rest.T) / 2)
        w = np.empty(len(left))
        step = max(1, ENTRIES_AT_ONCE // n)
        for start in range(0, len(left), step):
            part = slice(start, start + step)
            w[part] = u @ cov.columns(left[part])
        span = share * (2 - share * float(u @ u))
        trace = float(np.trace(gram))
        error = cov.factor_error  # of C: ‖(C + E)(C + E)' − CC'‖ ≤ 2 ‖C‖ ‖E‖ + ‖E‖²
        # ‖G‖, ‖w‖² ≤ trace and ‖N‖ ≤ 1: d terms in an entry of G, n in those of NGN and
        # w; k ≤ d of the w_i² are added up
        rounding = (4 * (d + 16) + 32 * (n + 4)) * EPS * trace
        rounding += 4 * math.sqrt(trace) * error + 2 * error**2
        return cls(w**2, low + rounding, span, len(left) * cov.entry_error)

    @classmethod
    def unknown(cls, A: FloatArray) -> Spectrum:
        """Without eigenvalues; that A is semidefinite is shown by a Cholesky factor."""
        return cls(np.zeros(len(A)), math.inf, 0.0, rounding_shift(A))
