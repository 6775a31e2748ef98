"""Algorithms 1 and 2 of the paper: threshold the matrix, group features into blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_real
from ..covariance.covariance import Covariance, as_covariance
from .threshold_path import threshold_path


def denoise(cov: Covariance | Any, epsilon: float) -> FloatArray:
    """Algorithm 1: A^ε, which keeps A_ij where |A_ij| > ε and is 0 elsewhere.

    A^ε is an ε-matrix approximation of A, that is, max |A_ij − A^ε_ij| ≤ ε, and among
    those it has the smallest largest block (Lemma 1 of the paper). Forms a dense d × d
    array.

    Examples
    --------
    >>> from blockspca import denoise
    >>> denoise([[2.0, 0.4], [0.4, 1.0]], epsilon=0.5)
    array([[2., 0.],
           [0., 1.]])
    """
    epsilon = check_real(epsilon, "epsilon", minimum=0)
    A = as_covariance(cov).rows(slice(None))
    return np.where(np.abs(A) > epsilon, A, 0.0)


def partition(cov: Covariance | Any, epsilon: float) -> list[NDArray[np.intp]]:
    """Algorithm 2: the blocks of features joined by entries larger than ε.

    Returns every feature exactly once: a feature with no such entry is a block of its
    own. Each block is ascending; blocks are ordered by their first feature.

    Examples
    --------
    >>> from blockspca import partition
    >>> A = [[2.0, 0.4, 0.0], [0.4, 1.0, 0.1], [0.0, 0.1, 1.0]]
    >>> [block.tolist() for block in partition(A, epsilon=0.2)]
    [[0, 1], [2]]
    """
    return threshold_path(cov).blocks(epsilon)


def largest_block_size(cov: Covariance | Any) -> int:
    """lbs(B): the size of the largest block of B itself, at ε = 0.

    Examples
    --------
    >>> import blockspca as bs
    >>> bs.largest_block_size([[2.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    2
    """
    return threshold_path(cov).largest_block(0.0)


def intrinsic_dimension(cov: Covariance | Any, epsilon: float) -> int:
    """Return the smallest lbs(B) over all B with max |A_ij − B_ij| ≤ ε.

    By Lemma 1 of the paper A^ε attains it: an entry with |A_ij| > ε cannot be made zero
    within ε, so no such B can break a block of A^ε.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]]
    >>> [bs.intrinsic_dimension(A, epsilon) for epsilon in (0.0, 0.1, 0.9)]
    [3, 2, 1]
    """
    return threshold_path(cov).largest_block(epsilon)


def is_epsilon_approximation(
    cov: Covariance | Any, other: Covariance | Any, epsilon: float
) -> bool:
    """Tell whether max |A_ij − B_ij| ≤ ε (Definition 1 of the paper).

    Examples
    --------
    >>> import blockspca as bs
    >>> bs.is_epsilon_approximation([[2.0, 0.1], [0.1, 1.0]], [[2, 0], [0, 1]], 0.1)
    True
    """
    epsilon = check_real(epsilon, "epsilon", minimum=0)
    A, B = as_covariance(cov), as_covariance(other)
    if A.n_features != B.n_features:
        raise ValueError(
            f"cov has {A.n_features} features but other has {B.n_features}; pass "
            "matrices of the same size."
        )
    return all(
        bool(
            (np.abs(tile - B.submatrix(slice(i0, i1), slice(j0, j1))) <= epsilon).all()
        )
        for i0, i1, j0, j1, tile in A.tiles()
    )
