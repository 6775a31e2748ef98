"""The least of the named upper bounds for one k, cheap ones first, within a time limit.

They need no bound on opt(k − 1): where the chain of proofs is cut, they start it anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..certificate import BoundName
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.blas import single_threaded
from ..numerics.rounding import EPS
from ..numerics.upper_eigenvalues import psd_shift
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings
from .closed_form import best_threshold_bound, largest_eigenvalue_bound, trace_bound
from .direction_dual.search import dual_bound
from .entry_dual.bound import EntryBound, EntryDual

_LARGEST_DENSE = 3000  # features of a matrix that is held as a whole


@dataclass(frozen=True, order=True)
class NamedBound:
    """An upper bound on opt(k) and where it comes from; the least one sorts first.

    `better` is a support that the search for it came upon. `nodes` are those of the
    dual's search, also where another bound is less. `dual` is what a certificate keeps
    of a dual, so that the bound can be checked without an ascent.
    """

    value: float
    name: BoundName
    nodes: int = field(default=0, compare=False)
    better: NDArray[np.intp] | None = field(default=None, compare=False)
    dual: str | None = field(default=None, compare=False)


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
    nodes: int = ProofSettings.few_nodes,
    entry_nodes: int | None = None,
    memory: int | None = None,
    report: Callable[[float, int, int], None] | None = None,
    settings: ProofSettings = DEFAULT_SETTINGS,
    is_timed: bool = True,
) -> NamedBound:
    """Return the least of: variances, the two duals, largest eigenvalue, thresholds.

    Under a limit on time the entry dual comes first, for a moment, so that there is a
    bound for this k soon, then the root of the direction dual, whose search goes on
    unless the entry dual is much better. The entry dual and its search have the time
    that is left.

    Parameters
    ----------
    cov : Covariance
    k : int
    support : sequence of int
        A good support, from which the dual starts; every bound holds for any.
    target : float
        Stop as soon as a bound is this low.
    time_limit : float
        Seconds. What cannot be stopped is begun only if they suffice for it.
    nodes : int
        Of the dual's search, which splits none once there are this many.
    entry_nodes : int, optional
        The same for the search of the entry dual, `nodes` by default.
    memory : int, optional
        Bytes for working arrays.
    report : callable
        Told of the dual's search, see `dual_bound`: the best bound so far, the nodes
        and the free features.
    settings : ProofSettings
        How long each dual has.
    is_timed : bool
        False if the caller has no limit on time: then ascents of the entry dual end by
        their number of steps, and the bound does not depend on the speed of a machine.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> cov = Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    >>> round(best_bound(cov, 2, [0, 1], target=3.0, time_limit=1.0).value, 6)
    3.0
    """
    deadline = Deadline(time_limit)
    error = k * cov.entry_error
    known = [NamedBound(np.inf, BoundName.NONE)]

    def is_open() -> bool:
        return min(known).value > target and not deadline.passed()

    def tell(value: float, nodes: int, free: int) -> None:
        if report is not None:
            report(min(value + error, min(known).value), nodes, free)

    A = None
    if not cov.known_psd and cov.n_features <= _LARGEST_DENSE:
        A = cov.submatrix(slice(None))
    if cov.known_psd:
        value = trace_bound(cov.diagonal(), k) + error
        known.append(NamedBound(value, BoundName.VARIANCES))
    entries = EntryDual(cov, k, support, target=target, memory=memory)

    def improve_entries(seconds: float, steps: int) -> None:
        own = Deadline(seconds)
        if not is_timed and cov.n_features <= _LARGEST_DENSE:
            # by steps alone, so that the clock decides nothing
            seconds, steps = np.inf, min(steps, settings.entry_steps_untimed)
        bound = entries.improve(seconds, steps, until_fixable=nodes > 1)
        if nodes > 1 and entries.is_fixable and not bound.interrupted:
            bound = entries.search(own.remaining() or 0.0, entry_nodes or nodes)
        if np.isfinite(bound.value):
            found = NamedBound(bound.value, BoundName.ENTRY_DUAL, better=bound.better)
            known.append(found)
        if bound.interrupted:
            raise BoundInterrupted(_written(min(known), bound))
        tell(np.inf, 0, cov.n_features)

    if is_open() and is_timed:
        first = settings.entry_share_first * (deadline.remaining() or 0.0)
        improve_entries(first, settings.entry_steps_first)
    # A shift as large as the optimum itself leaves the dual nothing to work with.
    dual_is_apt = cov.known_psd
    if A is not None:
        with single_threaded():  # as many threads as cores wait for one another
            dual_is_apt = psd_shift(A, deadline) < abs(target) / 4
    visited = 0
    if dual_is_apt and is_open():
        by_entries = min(known).value - target
        for share, most in ((settings.root_share, 1), (settings.search_share, nodes)):
            left = deadline.remaining() or 0.0
            if visited and not is_open():
                break
            worth = max(2 * by_entries, settings.search_up_to_gap * abs(target))
            if visited and known[-1].value - target > worth:
                break
            dual = dual_bound(
                cov,
                k,
                start=support,
                target=target - error - 4 * EPS * abs(target),  # sums may round up
                time_limit=share * max(0.95 * left, left - 1.0),
                nodes=min(most, nodes),
                memory=memory,
                report=tell,
            )
            visited += dual.nodes
            if np.isfinite(dual.value):
                value = dual.value + error
                found = NamedBound(value, BoundName.DIRECTION_DUAL, better=dual.better)
                known.append(found)
            if dual.interrupted:
                raise BoundInterrupted(
                    _written(replace(min(known), nodes=visited), entries.best)
                )
            if nodes == 1:
                break
    if is_open():
        left = settings.entry_share(k) * (deadline.remaining() or 0.0)
        improve_entries(left, settings.entry_steps)
    if is_open() and _eigenvalue_is_affordable(cov, A is not None, deadline, memory):
        with single_threaded():
            value = largest_eigenvalue_bound(cov) + error
        known.append(NamedBound(value, BoundName.LARGEST_EIGENVALUE))
    if is_open() and A is not None:
        with single_threaded():
            value = best_threshold_bound(A, k, deadline=deadline)[0] + error
        known.append(NamedBound(value, BoundName.SOFT_THRESHOLD))
    visited += entries.best.nodes
    return _written(replace(min(known), nodes=visited), entries.best)


def _written(bound: NamedBound, entries: EntryBound) -> NamedBound:
    """Add what a certificate needs of the entry dual, if the bound is by that."""
    if bound.name != BoundName.ENTRY_DUAL or entries.record is None:
        return bound
    return replace(bound, dual=entries.record.to_text())


def _eigenvalue_is_affordable(
    cov: Covariance, is_matrix: bool, deadline: Deadline, memory: int | None
) -> bool:
    """Tell whether there are time and memory for λmax, of A or of CC'."""
    d = cov.n_features
    if not is_matrix and cov.n_samples is None:
        return False
    order = d if is_matrix else min(cov.n_samples or d, d)
    if order > _LARGEST_DENSE or (memory is not None and 24 * order**2 > memory):
        return False
    seconds = _cost.eigenvalues(order) + 2 * _cost.cholesky(order)
    if not is_matrix:
        seconds += _cost.product(order, cov.n_samples or d, d)
    return deadline.affords(seconds)
