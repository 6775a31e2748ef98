"""Numbers of floating point, for kernels, which import nothing else; without Numba."""

EPS = 2.0**-52  # that of `numerics.rounding`
