"""Linear algebra with bounds on rounding, its cost and its threads."""
