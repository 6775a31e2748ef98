"""Linear algebra: bounds on rounding, eigenvalues, rates of work, BLAS threads."""
