"""Matrices: one way to read them, whatever they are made of."""

from .covariance import Covariance, as_covariance
from .identity import DataChangedError, Identity
from .residual import residual
from .sources import Factor
from .views import contrastive, low_rank, raised

__all__ = [
    "Covariance",
    "DataChangedError",
    "Factor",
    "Identity",
    "as_covariance",
    "contrastive",
    "low_rank",
    "raised",
    "residual",
]
