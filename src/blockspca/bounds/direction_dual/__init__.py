"""The direction dual: bounds for A = C'C, and their search."""
