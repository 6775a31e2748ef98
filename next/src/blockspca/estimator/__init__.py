"""Sparse PCA as a transformer of scikit-learn."""

from .estimator import SparsePCA

__all__ = ["SparsePCA"]
