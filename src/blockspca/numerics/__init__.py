"""Linear algebra with its rounding: eigenvalues from above, threads."""
