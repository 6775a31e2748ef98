"""Algorithm 4 of the paper: estimate ‖E‖∞ where A is block-diagonal plus noise E."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._validation import check_positive, check_positive_integer
from ..covariance.covariance import Covariance, as_covariance
from ..covariance.sources import ENTRIES_AT_ONCE

FEW_ENTRIES = 20  # with fewer, the median of mean squares is visibly biased low


def estimate_noise(
    cov: Covariance | Any,
    C: float = 1.0,
    alpha: float = 0.7,
    u: float = 1.0,
    n_subsets: int | None = None,
    rng: int | np.random.Generator = 0,
) -> float:
    """Return ε̄ = 2 u σ̄ sqrt(3 log d), an estimate of the largest noise entry.

    The entries A_ij, i ≤ j, are divided at random into m disjoint subsets of equal size
    (up to one). σ̄² is the median, over the subsets, of the mean of A_ij².

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    C, alpha : float
        The blocks have at most C d^alpha features, alpha in (0, 1).
    u : float
        An upper bound on ϱ²/σ², the sub-Gaussian constant over the variance; 1 for
        Gaussian noise.
    n_subsets : int, optional
        The number m of subsets; ⌊(2C + 2) d^(1 + alpha)⌋ by default, as printed.
    rng : int or Generator
        Decides the division.

    Warns
    -----
    UserWarning
        If subsets hold too few entries to average. The median of a skewed mean square
        lies below its expectation, so the estimate is then biased low; with one
        Gaussian entry per subset by the factor 0.674. See ``docs/noise-estimate.md``.

    Notes
    -----
    One pass over A. Memory O(m) beyond it. Each subset takes one entry from every run
    of m consecutive entries of the upper triangle, which entry being random. If there
    are more subsets than entries, the empty ones are left out of the median.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import estimate_noise
    >>> E = np.random.default_rng(0).normal(scale=0.1, size=(200, 200))
    >>> A = np.triu(E) + np.triu(E, 1).T
    >>> round(estimate_noise(A, n_subsets=100), 1)  # 2 · 0.1 · sqrt(3 log 200) ≈ 0.8
    0.8
    """
    cov = as_covariance(cov)
    check_noise_parameters(C, alpha, u, n_subsets)
    d = cov.n_features
    n_entries = d * (d + 1) // 2
    m = n_subsets or math.floor((2 * C + 2) * d ** (1 + alpha))
    if n_entries < FEW_ENTRIES * m:
        warnings.warn(
            f"The {n_entries} entries of the upper triangle, divided into {m} subsets, "
            f"leave about {n_entries / m:.2g} entries in each, so that the estimate is "
            "biased low, by a factor of up to 0.674 for Gaussian noise. Pass a smaller "
            f"n_subsets, for example {max(1, n_entries // (10 * FEW_ENTRIES))}.",
            stacklevel=2,
        )
    # In units of the largest variance squares neither overflow nor underflow.
    unit = float(np.abs(cov.diagonal()).max()) or 1.0
    generator = np.random.default_rng(rng)
    sums, counts = _subset_sums(cov, min(m, n_entries), unit, generator)
    sigma = unit * math.sqrt(float(np.median(sums / counts)))
    return 2 * u * sigma * math.sqrt(3 * math.log(d))


def check_noise_parameters(
    C: float, alpha: float, u: float, n_subsets: int | None
) -> None:
    """Check the parameters of Algorithm 4."""
    check_positive(C, "C")
    check_positive(u, "u")
    if not 0 < check_positive(alpha, "alpha") < 1:
        raise ValueError(f"alpha = {alpha} is not between 0 and 1; try 0.7.")
    if n_subsets is not None:
        check_positive_integer(n_subsets, "n_subsets")


def _subset_sums(
    cov: Covariance, m: int, unit: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of (A_ij / unit)², and count, of each of m random equal subsets."""
    d = cov.n_features
    sums, counts = np.zeros(m), np.zeros(m)
    waiting = np.empty(0, dtype=np.int64)  # labels drawn and not yet used
    step = max(1, ENTRIES_AT_ONCE // d)
    for i0 in range(0, d, step):
        rows = cov.rows(slice(i0, i0 + step))
        entries = np.concatenate([row[i0 + i :] for i, row in enumerate(rows)])
        runs = -(-(len(entries) - len(waiting)) // m)
        if runs > 0:
            drawn = rng.permuted(np.tile(np.arange(m), (runs, 1)), axis=1).ravel()
            waiting = np.concatenate([waiting, drawn])
        labels, waiting = waiting[: len(entries)], waiting[len(entries) :]
        sums += np.bincount(labels, weights=(entries / unit) ** 2, minlength=m)
        counts += np.bincount(labels, minlength=m)
    return sums, counts
