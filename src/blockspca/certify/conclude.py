"""The end of a path: steps that were not reached, alarms, one record for each k.

Also of a path that was stopped before A was read: then it is what the variances say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..bound_names import BoundName
from ..bounds.closed_form import ObviousBounds
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..numerics.linalg import SMALL, leading_eigenvector, rayleigh, with_sign
from ..numerics.rounding import above_from_units, above_in_units
from ..status import Status, status_of_gap
from .alarms import Subsets, alarm, is_below_objective
from .steps import CertifiedStep

if TYPE_CHECKING:
    from .path import PathProver

_EVERY_UP_TO = 40  # k for which each component is computed
_NEXT = 1.25  # above it, times the last k that was

_NO_PROOF = (np.nan, np.nan, np.empty(0, dtype=np.int64))


def conclude(prover: PathProver, stopped: Status | None) -> dict[int, CertifiedStep]:
    """Return the record of every k; `stopped` is the limit that ended the path."""
    _complete(prover)
    _compare_with_subsets(prover)
    ks = range(1, len(prover.values))
    return {k: _record(prover, k, stopped) for k in ks}


def _complete(prover: PathProver) -> None:
    """Give steps that were not reached a support, and all the best that is known.

    When time is up there is a moment for that, and no more: after it a step keeps
    the component of the one before and gets what costs nothing.  A bound that the
    chain did not bring down far is compared with those that need no chain.
    """
    limit = prover.budget.limits.time
    if limit is None and prover.budget.is_called_off():
        limit = 0.0
    ends = np.inf
    if limit is not None:
        ends = prover.budget.elapsed()
        ends += prover.settings.grace + prover.settings.grace_share * limit
    obvious = ObviousBounds(prover.cov)
    last, before = len(prover.chain.upper) - 1, -np.inf
    for k in range(1, last + 1):
        at_leisure = limit is None or prover.budget.elapsed() < ends
        if prover.values[k] == -np.inf:
            if at_leisure:
                prover.incumbents.start(k)
            else:
                prover.incumbents.start_at_once(k)
        if prover.incumbents.objective(k) < before:
            # By rounding, where entries differ by 1e15 or more.
            prover.incumbents.take_over(k)
        before = prover.incumbents.objective(k)
        if prover.chain.upper[k] == np.inf and (at_leisure or k == last):
            prover.chain.add_cheap_bounds(k)
        if prover.chain.is_proved(k, 0.0):
            continue
        if k > 1:
            prover.chain.bound_by_smaller_k(k)
        if not prover.chain.is_proved(k, prover.settings.chainless_from_gap):
            bound, name = obvious.least(k)
            prover.chain.lower_to(k, above_in_units(bound, prover.unit), name)


def _compare_with_subsets(prover: PathProver) -> None:
    """Compare each bound with its component and with parts of larger ones.

    The j largest entries of a component of K > j features are one of the vectors
    that the bound for j is about. Of components half as large each time, those of a
    handful of features in one go: of all, one by one, this was a sixth of paths that
    take a millisecond. When time is up, the largest are all.
    """
    sizes = [len(prover.values) - 1]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] // 2)
    few = [size for size in sizes if size <= SMALL]
    for batch in (*([size] for size in sizes if size > SMALL), few):
        _compare_with_parts(prover, batch)
        if prover.defect or prover.budget.passed():
            return


def _compare_with_parts(prover: PathProver, sizes: list[int]) -> None:
    """Compare bounds with parts of components of some sizes, largest first."""
    most, pool = sizes[0], prover.incumbents.pool
    positions = np.zeros((len(sizes), most), dtype=np.int64)
    x = np.zeros((len(sizes), most))
    for row, size in enumerate(sizes):
        best = prover.incumbents.best[size]
        positions[row, :size], x[row, :size] = best.positions, best.x
    subsets = Subsets(pool.matrix, positions, x)
    upper, values = np.array(prover.chain.upper[1 : most + 1]), subsets.values
    if (upper >= values).all():  # whatever rounding may have added
        return
    rounding = subsets.rounding()
    rounding += 2 * prover.chain.entry_error * np.arange(1, most + 1)
    below = is_below_objective(upper, values, rounding)
    if not below.any():
        return
    row, at = np.argwhere(below)[0].tolist()
    prover.defect = alarm(
        at + 1,
        float(upper[at]) * prover.unit,
        prover.chain.names[at + 1],
        float(values[row, at]) * prover.unit,
        f"a part of the component of {sizes[row]} features",
    )


def _record(prover: PathProver, k: int, stopped: Status | None) -> CertifiedStep:
    """The record of k."""
    unit, best = prover.unit, prover.incumbents.best[k]
    support, x = best.support, with_sign(best.x)
    objective, chain = prover.incumbents.objective(k), prover.chain
    upper, name = chain.upper[k], chain.names[k]
    tau, previous, survivors = chain.proofs.get(k, _NO_PROOF)
    dual = chain.duals.get(k)
    if prover.defect:
        upper, name = np.inf, BoundName.NONE
        tau, previous, survivors = _NO_PROOF
        dual = None
    return CertifiedStep(
        k=k,
        n_features=prover.cov.n_features,
        support=support.astype(np.intp),
        loadings=x,
        objective=objective,
        upper_bound=max(above_from_units(upper, unit), objective),
        bound_name=name,
        status=prover.status(k, stopped),
        source=best.source,
        tau=above_from_units(tau, unit),
        upper_previous=above_from_units(previous, unit),
        survivors=survivors,
        statistics=prover.statistics[k],
        time=prover.times[k],
        message=prover.defect,
        dual=dual,
    )


def steps_from_variances(
    cov: Covariance, ks: range, status: Status, groups: GroupLimits | None = None
) -> dict[int, CertifiedStep]:
    """Stopped before the pass over A ended: the variances are all there is.

    Of large k a component is computed for some only, each a quarter above the one
    before. It is one for those in between as well, with a loading of 0 for the features
    that they have besides. All of them would take the fourth power of the last k.
    """
    k_max = ks[-1]
    diagonal = cov.diagonal()
    order = np.argsort(-diagonal, kind="stable")
    order = order[:k_max] if groups is None else groups.first(order, k_max)
    block = cov.submatrix(order)
    obvious = ObviousBounds(cov)
    steps: dict[int, CertifiedStep] = {}
    size = 1
    for k in ks:
        if k <= _EVERY_UP_TO or k == k_max or k >= _NEXT * size:
            size = k
            leading = leading_eigenvector(block[:k, :k])
            objective = rayleigh(block[:k, :k], leading)
        ascending = np.argsort(order[:k])
        x = np.zeros(k)
        x[:size] = leading
        upper, name = obvious.least(k)
        upper = max(upper, objective)
        steps[k] = CertifiedStep(
            k=k,
            n_features=cov.n_features,
            support=order[:k][ascending].astype(np.intp),
            loadings=with_sign(x[ascending]),
            objective=objective,
            upper_bound=upper,
            bound_name=name,
            status=status_of_gap(objective, upper, None, status),
            source="variances",
        )
    return steps
