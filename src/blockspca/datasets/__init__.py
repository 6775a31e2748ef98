"""Matrices to try things on."""

from .synthetic import noisy_blocks

__all__ = ["noisy_blocks"]
