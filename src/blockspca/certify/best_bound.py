"""The least of the named upper bounds for one k, cheap ones first, within a time limit.

They need no bound on opt(k − 1): where the chain of proofs is cut, they start it anew.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..covariance import Covariance
from .bounds import best_threshold_bound, largest_eigenvalue_bound, trace_bound
from .dual_bound import dual_bound
from .eigenvalues import psd_shift

_LARGEST_DENSE = 3000  # features of a matrix that is held as a whole
FEW_NODES = 7  # of the dual's search, where others wait for their turn
MOST_NODES = 10**6
_EPS = float(np.finfo(float).eps)
_FLOPS = 2e10  # a second, at the least


@dataclass(frozen=True, order=True)
class NamedBound:
    """An upper bound on opt(k) and where it comes from; the least one sorts first.

    `better` is a support that the search for it came upon, `nodes` its size.
    """

    value: float
    name: str
    nodes: int = field(default=0, compare=False)
    better: NDArray[np.intp] | None = field(default=None, compare=False)


class BoundInterrupted(KeyboardInterrupt):
    """Ctrl-C during the search for a bound, with the best one so far."""

    def __init__(self, bound: NamedBound) -> None:
        self.bound = bound


def is_sound(bound: NamedBound, objective: float, allowed: float) -> bool:
    """Tell whether a bound is above what was reached; warn if it is not.

    It never should be. If it is, none is better than a wrong one.
    """
    if bound.value >= objective - allowed:
        return True
    warnings.warn(
        f"the bound by {bound.name}, {bound.value:.12g}, is below the objective "
        f"{objective:.12g} and is not used; this is a defect, please report it.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def best_bound(
    cov: Covariance,
    k: int,
    support: Sequence[int] | NDArray[np.intp],
    *,
    target: float,
    time_limit: float,
    nodes: int = FEW_NODES,
    report: Callable[[float, int, int], None] | None = None,
) -> NamedBound:
    """Return the least of: variances, direction dual, largest eigenvalue, thresholds.

    Parameters
    ----------
    cov : Covariance
    k : int
    support : sequence of int
        A good support, from which the dual starts; every bound holds for any.
    target : float
        Stop as soon as a bound is this low.
    time_limit : float
        Seconds for the dual, which takes what it is given.
    nodes : int
        Of the dual's search, which splits none once there are this many.
    report : callable
        Told of the dual's search, see `dual_bound`: the best bound so far, the nodes
        and the undecided features.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> cov = Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    >>> round(best_bound(cov, 2, [0, 1], target=3.0, time_limit=1.0).value, 6)
    3.0
    """
    started = time.monotonic()
    error = k * cov.entry_error
    known = [NamedBound(np.inf, "none")]

    def left(share: float) -> float:
        return max(0.0, share * (started + time_limit - time.monotonic()))

    def is_open() -> bool:
        return min(known).value > target and left(1.0) > 0

    def tell(value: float, nodes: int, undecided: int) -> None:
        if report is not None:
            report(min(value + error, min(known).value), nodes, undecided)

    A = None
    if not cov.known_psd and cov.n_features <= _LARGEST_DENSE:
        A = cov.submatrix(slice(None))
    if cov.known_psd:
        known.append(NamedBound(trace_bound(cov.diagonal(), k) + error, "variances"))
    # A shift as large as the optimum itself leaves the dual nothing to work with.
    dual_is_apt = cov.known_psd or (A is not None and psd_shift(A) < abs(target) / 4)
    if dual_is_apt and is_open():
        dual = dual_bound(
            cov,
            k,
            start=support,
            target=target - error - 4 * _EPS * abs(target),  # sums may round up
            time_limit=max(left(0.95), left(1.0) - 1.0),
            nodes=nodes,
            report=tell,
        )
        if np.isfinite(dual.value):
            value = dual.value + error
            known.append(NamedBound(value, "direction dual", dual.nodes, dual.better))
        if dual.interrupted:
            raise BoundInterrupted(min(known))
    order = cov.n_features if A is not None else cov.n_samples or np.inf
    seconds = order**2 * cov.n_features / _FLOPS  # for the product and its eigenvalues
    if is_open() and order <= _LARGEST_DENSE and seconds <= left(1.0):
        value = largest_eigenvalue_bound(cov) + error
        known.append(NamedBound(value, "largest eigenvalue"))
    if is_open() and A is not None:
        value = best_threshold_bound(A, k)[0] + error
        known.append(NamedBound(value, "soft threshold"))
    return min(known)
