"""Numba kernels: one file per idea, each compiled when its file is imported."""
