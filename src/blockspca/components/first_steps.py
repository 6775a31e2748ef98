"""Components one after the other, by power steps alone: a set to begin with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..covariance.residual import residual
from ..heuristics.truncated_power import truncated_power
from ..limits import Deadline, Limits
from ..numerics.linalg import on_support
from ..result import Status
from .schemes import used_in_vain


def by_steps(
    cov: Covariance,
    sparsities: Sequence[int],
    disjoint: bool,
    starts: Sequence[Sequence[int]],
    deadline: Deadline,
) -> FloatArray:
    """Return components, (m, d), each of what regression on the earlier ones leaves.

    Parameters
    ----------
    disjoint : bool
        Whether no feature may be used twice.
    starts : sequence of supports
        One for each component, or none; taken where it is better.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, which power steps catch.
    """
    d = cov.n_features
    rows = np.zeros((len(sparsities), d))
    for j, k in enumerate(sparsities):
        earlier = rows[:j]
        left = residual(cov, earlier) if j else cov
        closed = np.flatnonzero(earlier.any(axis=0))
        if not disjoint:
            closed = used_in_vain(cov, earlier)
        keep = np.setdiff1d(np.arange(d), closed).astype(np.intp)
        if len(keep) < d:
            left = restricted(left, keep)
        limits = Limits(time=deadline.remaining())
        found = truncated_power(left, min(k, len(keep)), limits=limits, sample=False)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        rows[j, keep] = found.x
        if starts:
            given = np.flatnonzero(np.isin(keep, starts[j]))
            x, value = on_support(left, given) if len(given) else (found.x, -np.inf)
            if value > on_support(left, np.flatnonzero(found.x))[1]:
                rows[j, keep] = x
    return rows
