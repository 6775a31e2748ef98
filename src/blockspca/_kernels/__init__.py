"""Compiled kernels, one idea a file: the only place that imports numba."""
