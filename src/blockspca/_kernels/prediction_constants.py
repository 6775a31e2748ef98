"""Tolerances and limits of the exchanges between components; without Numba."""

GAIN = 1e-7  # of the goal, without which nothing is changed
DEPENDENT = 1e-10  # of a variance: what is left of scores that say nothing new
TINY = 1e-300
ROUNDED = 1e-12  # of a number that must be had: what the order of sums may take away

EXCHANGES = 60  # of one component in its turn
CANDIDATES = 16  # features that are tried for each of a support
REFINED = 4  # of the exchanges, the best by one step, are looked at more closely
FITS = 8  # steps to the loadings of a support
STEPS = 40  # to the loadings of all
