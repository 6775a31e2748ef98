"""Search all small subsets, then complete the best (Ding, Kunisky, Wein & Bandeira)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.closed_form import cheap_bound, eigenvalue_error
from ..bounds.smaller_k import bound_from_smaller_k
from ..guarantee import within_factor
from ..numerics.linalg import largest_entries, leading_eigenvector
from ..numerics.rounding import EPS
from ..numerics.upper_eigenvalues import psd_shift
from ..status import Status
from .base import Guarantee
from .exhaustive import evaluated_subsets
from .template import BaseSolver, SolverRun

DEFAULT_SIZE = 2


class _SubsetGuarantee:
    """objective ≥ opt(k) · ℓ/k for the ℓ of a solver, or that of the class."""

    def __get__(self, solver: SubexponentialSearch | None, owner: type) -> Guarantee:
        size = DEFAULT_SIZE if solver is None else solver.subset_size
        return within_factor(lambda k, d: max(1.0, k / size))


class SubexponentialSearch(BaseSolver):
    """The best of all ℓ-subsets S by λmax(A_SS), completed to k by the largest |A u|_i.

    u is the leading eigenvector of A_SS: the features that S pulls most are those that
    share its component. ℓ = 1 ranks by one row of A, ℓ ≥ k is exhaustive search.

    In the spiked models W + λxx' (Wigner) and N(0, I + βxx') (Wishart), where x has k
    nonzeros out of d, time exp(Õ(k²/d)), that is ℓ ≈ k²/d up to logarithms, recovers x
    where √d ≪ k ≪ d and the signal-to-noise ratio is a constant (Ding et al.). That is
    a statement about random matrices. For every positive semidefinite A,

        objective ≥ opt(ℓ) ≥ (ℓ/k) opt(k) ,

    if the search is not stopped by a limit.

    Parameters
    ----------
    subset_size : int
        ℓ; the search has d-choose-ℓ nodes.
    n_starts : int
        How many of the best subsets are completed. Ding et al. complete one; on random
        correlations of 20 to 80 features, k = 5 and 9, ℓ = 2, the objective of 100 was
        10 % higher than that of one on average, and that of 10 was 8 % higher, in next
        to no time.

    Notes
    -----
    opt(ℓ) ≥ (ℓ/k) opt(k) is the theorem of `bounds/smaller_k.py`. The completed support
    contains S, and λmax does not decrease when a set grows. The theorem gives a search
    that was not stopped an upper bound as well, for every symmetric A: opt(ℓ) is known
    then, and A + δI is positive semidefinite for some δ. Rounding is included.

    Subsets of large variances come first, as they are likelier to be good if the search
    is stopped.

    References
    ----------
    Ding, Y., Kunisky, D., Wein, A. S. and Bandeira, A. S. (2023). Subexponential-time
    algorithms for sparse PCA. Foundations of Computational Mathematics.

    Examples
    --------
    >>> from blockspca.solvers import SubexponentialSearch
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> solution = SubexponentialSearch(subset_size=2).solve(A, 2)
    >>> solution.support, solution.status.value, solution.nodes
    (array([0, 1]), 'optimal', 3)
    """

    name = "subexponential search"
    guarantee = _SubsetGuarantee()
    _positive_integers = ("subset_size", "n_starts")

    def __init__(self, subset_size: int = DEFAULT_SIZE, n_starts: int = 100) -> None:
        self.subset_size = subset_size
        self.n_starts = n_starts

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        size = min(self.subset_size, k)
        run.tighten(cheap_bound(A, k, run.deadline))
        order = np.argsort(-run.variances, kind="stable")
        total = math.comb(len(A), size)
        budget = min(total, run.limits.nodes or total)
        subsets, values = np.empty((0, size), dtype=np.intp), np.empty(0)
        best = -math.inf
        batches = evaluated_subsets(A[np.ix_(order, order)], size, budget)
        while run.nodes < budget and not run.time_is_up():
            batch, found = next(batches)
            run.nodes += len(batch)
            subsets = np.concatenate([subsets, order[batch]])
            values = np.concatenate([values, found])
            kept = np.argsort(-values, kind="stable")[: self.n_starts]
            subsets, values = subsets[kept], values[kept]
            if values[0] > best:  # offered at once, in case of Ctrl-C
                best = float(values[0])
                run.offer(completed(A, subsets[0], k))
        for subset in subsets:
            run.offer(completed(A, subset, k))
        if run.stopped is not None:
            return
        if run.nodes < total:
            run.stopped = Status.NODE_LIMIT
            return
        reached = best + eigenvalue_error(size, float(np.abs(A).max()))
        run.tighten(bound_from_subsets(A, k, size, reached, psd_shift(A, run.deadline)))


def completed(A: FloatArray, subset: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Return S and the features with the largest |A u|_i, k in all."""
    pull = A[:, subset] @ leading_eigenvector(A[np.ix_(subset, subset)])
    outside = np.delete(np.arange(len(A)), subset)
    others = largest_entries(pull[outside], k - len(subset))
    return np.concatenate([subset, outside[others]])


def bound_from_subsets(
    A: FloatArray, k: int, size: int, value: float, shift: float
) -> float:
    """Bound opt(k) by `value` ≥ opt(ℓ), ℓ = `size` ≤ k, where A + `shift` I is PSD.

    By `bound_from_smaller_k`, for A and for A + δI, less δ. To add δ to two numbers and
    to subtract it once rounds what is multiplied by at most k afterwards.
    """
    if size == k:
        return value
    known, lowest = np.full(k, math.inf), float(np.diagonal(A).min())
    known[size] = value
    bound = bound_from_smaller_k(k, known.tolist(), lowest, is_psd=False)
    if not math.isfinite(shift):
        return bound
    known[size] += shift
    above = bound_from_smaller_k(k, known.tolist(), lowest + shift, is_psd=True)
    rounding = 4 * k * EPS * (abs(value) + abs(lowest) + shift)
    return min(bound, above - shift + rounding)
