"""Bounds by way of a larger matrix: A ⪯ D + δI.

**Theorem.** Let D + δI − A be positive semidefinite, δ ≥ 0. Then for every set F of
unit vectors, such as those with at most k nonzeros, or those that keep constraints,

    max x'Ax over F  ≤  max x'Dx over F  +  δ.

*Proof.* x'Ax = x'(D + δI)x − x'(D + δI − A)x ≤ x'Dx + δ x'x. ∎

A contrast A = A_t − g A_b, g ≥ 0, has it by D = A_t and δ = g β for every β ≥ 0 such
that A_b + βI is positive semidefinite: D + δI − A = g (A_b + βI). If A_b is the
covariance of data, β = 0: however heavy the background, no component of the contrast
exceeds the optimum of the target. Of a matrix that was given β is found by a Cholesky
factor (`numerics.upper_eigenvalues.psd_shift`).

The theorem is about the exact matrices: those of the data, of which entries are known
to ± e. A bound of D's optimum that sets the errors of D's entries aside needs nothing
more to be one for A, whatever the errors of A's own entries. Where A_b is known to ± e
and not known to be positive semidefinite, β is that of what is computed, and d e more,
as a matrix with entries of at most e has a norm of at most d e.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Dominance(ABC):
    """D and δ of a matrix A ⪯ D + δI."""

    @property
    @abstractmethod
    def matrix(self) -> Any:
        """D, a `Covariance`."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """How long it takes to find δ; 0 if it is known."""

    @property
    @abstractmethod
    def excess(self) -> float:
        """δ, rounded up; infinite where it overflows."""
