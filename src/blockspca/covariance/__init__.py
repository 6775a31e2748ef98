"""The matrix A: from a matrix or from data, entry on demand."""

from .covariance import Covariance, as_covariance, refuse_constant

__all__ = [
    "Covariance",
    "as_covariance",
    "refuse_constant",
]
