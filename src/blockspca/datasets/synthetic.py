"""Model 1 of the paper: a block-diagonal matrix plus symmetric Gaussian noise."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray, check_positive_integer, check_real


def noisy_blocks(
    n_blocks: int = 30,
    block_size: int = 20,
    sigma: float = 0.1,
    n_samples: int = 100,
    rng: int | np.random.Generator = 0,
) -> tuple[FloatArray, FloatArray]:
    """Draw A = Ã + E, with Ã = diag(M_1'M_1, …, M_p'M_p) / n and E_ij ~ N(0, σ²).

    Each M_i is an n × block_size matrix of standard normal entries; E is symmetric.

    Parameters
    ----------
    n_blocks, block_size : int
        The matrix has n_blocks · block_size features.
    sigma : float
        Standard deviation of the noise.
    n_samples : int
        The number n of rows of each M_i.
    rng : int or Generator

    Returns
    -------
    A, noiseless : arrays of shape (d, d)
        A may be indefinite: the noise is not positive semidefinite.

    Examples
    --------
    >>> from blockspca.datasets import noisy_blocks
    >>> A, noiseless = noisy_blocks(n_blocks=3, block_size=4, rng=1)
    >>> A.shape
    (12, 12)
    """
    p = check_positive_integer(n_blocks, "n_blocks")
    size = check_positive_integer(block_size, "block_size")
    n = check_positive_integer(n_samples, "n_samples")
    sigma = check_real(sigma, "sigma", minimum=0)
    generator = np.random.default_rng(rng)
    d = p * size
    noiseless = np.zeros((d, d))
    for i in range(0, d, size):
        M = generator.standard_normal((n, size))
        noiseless[i : i + size, i : i + size] = M.T @ M / n
    E = np.triu(generator.normal(scale=sigma, size=(d, d)))
    return noiseless + E + np.triu(E, 1).T, noiseless
