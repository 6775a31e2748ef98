"""Covariance matrices of data, or given matrices, with entries computed on demand."""

from .covariance import Covariance, as_covariance, refuse_constant

__all__ = [
    "Covariance",
    "as_covariance",
    "refuse_constant",
]
