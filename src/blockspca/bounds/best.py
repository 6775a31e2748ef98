"""The least of the named upper bounds for one k, cheap ones first, within a time limit.

They need no bound on opt(k − 1): where the chain of proofs is cut, they start it anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.blas import single_threaded
from ..numerics.linalg import on_support
from ..numerics.rounding import EPS, frobenius_norm
from ..numerics.upper_eigenvalues import psd_shift
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings
from .closed_form import best_threshold_bound, largest_eigenvalue_bound, trace_bound
from .direction_dual.search import FirstLook, dual_bound
from .entry_dual.bound import EntryDual
from .entry_dual.pairs import seconds_of_pass

_LARGEST_DENSE = 3000  # features of a matrix that is held as a whole
_LANCZOS = 200  # products that Lanczos' method takes, seldom more
# Of the gap: a root that cannot gain more is not worth its time. The trace of
# correlations, which it cannot beat, is known up to rounding only.
_NO_GAIN = 0.01
_AGREED = 1e-10  # of the objective, by which values of one set may differ
_POWER_STEPS = 8  # to see whether λmax is worth its price; they cost a pass each


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
    """Tell whether a bound is at least the objective; warn of a defect if it is not."""
    if bound.value >= objective - allowed:
        return True
    warnings.warn(
        f"the bound by {bound.name}, {bound.value:.12g}, is below the objective "
        f"{objective:.12g} and is not used; this is a defect, please report it.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


@dataclass(frozen=True)
class Effort:
    """How far the searches of the duals go."""

    #: Of the direction dual's search, which splits none once there are this many.
    nodes: int = ProofSettings.few_nodes
    #: The same for the search of the entry dual, `nodes` by default.
    entry_nodes: int | None = None
    #: False if the caller has no limit on time: then ascents of the entry dual end by
    #: their number of steps, and the bound does not depend on the speed of a machine.
    is_timed: bool = True
    #: The gap that the caller has asked for, and the target leaves. The direction dual
    #: often has it before the entry dual has begun.
    gap: float = 0.0


def best_bound(
    cov: Covariance,
    k: int,
    support: Sequence[int] | NDArray[np.intp],
    *,
    target: float,
    time_limit: float,
    effort: Effort = Effort(),  # noqa: B008 (frozen)
    memory: int | None = None,
    report: Callable[[float, int, int], None] | None = None,
    settings: ProofSettings = DEFAULT_SETTINGS,
) -> NamedBound:
    """Return the least of: variances, the two duals, largest eigenvalue, thresholds.

    Under a limit on time the entry dual comes first, for a moment, so that there is a
    bound for this k soon, or some nodes of the direction dual if they may be all that
    is needed; without one the entry dual comes last. The search of the direction dual
    goes on unless its root is far off; the entry dual has the time that is left.

    Parameters
    ----------
    support : sequence of int
        A good support, from which the duals start; every bound holds for any.
    target : float
        Stop as soon as a bound is this low.
    time_limit : float
        Seconds. What cannot be stopped is begun only if they suffice for it.
    report : callable
        Told of the dual's search, see `dual_bound`: the best bound so far, the nodes
        and the free features.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca import Covariance
    >>> cov = Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    >>> round(best_bound(cov, 2, [0, 1], target=3.0, time_limit=1.0).value, 6)
    3.0
    """
    deadline = Deadline(time_limit)
    run = _Run(cov, k, support, target, deadline, memory, effort, settings, report)
    if cov.known_psd:
        run.by_variances()
    if effort.is_timed and effort.gap > 0:
        run.by_few_directions()
    if effort.is_timed:
        run.by_entries(settings.entry_share_first, settings.entry_steps_first)
        run.by_eigenvalue(settings.eigenvalue_share_first)
    run.by_directions()
    run.by_entries(settings.entry_share(k), settings.entry_steps)
    if effort.is_timed and (run.entries_are_near() or run.is_late()):
        run.by_entries(settings.entry_share_alone, settings.entry_steps)
    run.by_eigenvalue()
    run.by_thresholds()
    return run.least()


@dataclass
class _Run:
    """The bounds of one problem so far; each method adds one while that is wanted."""

    cov: Covariance
    k: int
    support: Sequence[int] | NDArray[np.intp]
    target: float
    deadline: Deadline
    memory: int | None
    effort: Effort
    settings: ProofSettings
    report: Callable[[float, int, int], None] | None
    visited: int = 0  #: nodes of the direction dual's search
    entries: EntryDual | None = None

    def __post_init__(self) -> None:
        self.known = [NamedBound(np.inf, BoundName.NONE)]
        self.error = self.k * self.cov.entry_error

    @cached_property
    def dense(self) -> FloatArray | None:
        """A as a whole, if it is not known to be PSD, not too large, and affordable."""
        cov, deadline = self.cov, self.deadline
        if cov.known_psd or cov.n_features > _LARGEST_DENSE:
            return None
        if not cov.in_memory and not deadline.affords(seconds_of_pass(cov)):
            return None
        return cov.submatrix(slice(None))

    def is_open(self) -> bool:
        lowest = min(self.known).value
        return lowest > self.target and not self.deadline.passed()

    def notify(self, value: float, nodes: int, free: int) -> None:
        if self.report is not None:
            lowest = min(value + self.error, min(self.known).value)
            self.report(lowest, nodes, free)

    def least(self) -> NamedBound:
        """The best bound so far, with what a certificate needs of it."""
        best = None if self.entries is None else self.entries.best
        nodes = self.visited + (0 if best is None else best.nodes)
        bound = replace(min(self.known), nodes=nodes)
        if bound.name != BoundName.ENTRY_DUAL or best is None or best.record is None:
            return bound
        return replace(bound, dual=best.record.to_text())

    def by_variances(self) -> None:
        value = trace_bound(self.cov.diagonal(), self.k) + self.error
        self.known.append(NamedBound(value, BoundName.VARIANCES))

    def entries_are_near(self) -> bool:
        """Whether the entry dual's gap is so small that it may well end in a proof."""
        if self.entries is None:
            return False
        gap = self.entries.best.value - self.target
        worth = abs(self.target) / self.k
        return gap <= self.settings.entry_near * worth

    def is_late(self) -> bool:
        """Whether too little time is left for a chain: then it is for the duals."""
        return (self.deadline.remaining() or 0.0) < self.deadline.elapsed()

    def by_entries(self, share: float, steps: int) -> None:
        """Give the entry dual a share of the time, and at most so many steps."""
        if not self.is_open():
            return
        cov, effort = self.cov, self.effort
        if self.entries is None:
            self.entries = EntryDual(
                cov, self.k, self.support, target=self.target, memory=self.memory
            )
        seconds = share * (self.deadline.remaining() or 0.0)
        if not effort.is_timed and cov.n_features <= _LARGEST_DENSE:
            # by steps alone, so that the clock decides nothing
            seconds, steps = np.inf, min(steps, self.settings.entry_steps_untimed)
        nodes = (effort.entry_nodes or effort.nodes) if effort.nodes > 1 else 0
        bound = self.entries.run(seconds, steps, nodes)
        if np.isfinite(bound.value):
            found = NamedBound(bound.value, BoundName.ENTRY_DUAL, better=bound.better)
            self.known.append(found)
            self._raise_target(found)
        if bound.interrupted:
            raise BoundInterrupted(self.least())
        self.notify(np.inf, 0, cov.n_features)

    def _raise_target(self, found: NamedBound) -> None:
        """Be content with a bound that a better set reaches as the first one would."""
        if found.better is None or not np.isfinite(self.target):
            return
        _, before = on_support(self.cov, np.asarray(self.support))
        _, reached = on_support(self.cov, found.better)
        slack = self.target - before + _AGREED * abs(reached)
        if found.value <= reached + slack:
            self.target = max(self.target, found.value)

    def by_few_directions(self) -> None:
        """The root of the direction dual, and a few nodes if it has twice the gap.

        The root takes a tenth of what the entry dual would: Arcene, k = 200, has 7.4 %
        after 40 ms, and 5 % after seven nodes and 140 ms; the entry dual takes 730.
        """
        if not self._directions_are_worth_it():
            return
        settings = self.settings
        twice = self.target + self.effort.gap * abs(self.target)
        seconds = settings.root_share * (self.deadline.remaining() or 0.0)
        look = FirstLook(twice - self.error, seconds)
        nodes = min(self.effort.nodes, settings.few_nodes)
        self._directions(settings.root_share, nodes, look)

    def by_directions(self) -> None:
        """The direction dual: its root, and its search if that is worth it."""
        if not self._directions_are_worth_it():
            return
        settings, nodes = self.settings, self.effort.nodes
        if nodes <= 1:
            if not self.visited:  # the root may have been looked at before
                self._directions(settings.root_share, nodes)
            return
        # One search, not a root and a search that begins with the same root: a tenth of
        # the time of Dorothea_train, k = 500. (Where a gap is wanted, a few nodes
        # have had their chance before.)
        so_far = min(self.known).value - self.target
        least, most = settings.search_up_to_gap
        worth = max(least * abs(self.target), 2 * so_far)
        worth = min(most * abs(self.target), worth)
        up_to = self.target + worth if np.isfinite(self.target) else np.inf
        seconds = settings.root_share * (self.deadline.remaining() or 0.0)
        look = FirstLook(up_to - self.error, seconds)
        self._directions(settings.root_share + settings.search_share, nodes, look)

    def _directions_are_worth_it(self) -> bool:
        if not self.is_open() or self._directions_are_hopeless():
            return False
        return self._directions_are_apt()

    def _directions_are_hopeless(self) -> bool:
        """Whether the root of the direction dual is no lower than what is known.

        Its relaxation has a solution without any direction, W = I/n with c_i c_i'/n for
        each of d, or of kn, columns, and its value is at least min(k, d/n) min A_ii:
        for correlations with k < d/n that is the trace.
        """
        cov, k = self.cov, self.k
        if not cov.known_psd or cov.n_samples is None:
            return False
        # of the columns that vary: the others have no part in that solution
        varying = cov.diagonal()[cov.diagonal() != 0]
        columns = min(float(k), len(varying) / cov.n_samples)
        reached = columns * float(varying.min(initial=np.inf))
        known = min(self.known).value
        gap = known - self.target
        # Without a target any gain is one; an infinite gap would rule it out for good.
        return reached >= known - (_NO_GAIN * gap if np.isfinite(gap) else 0.0)

    def _directions_are_apt(self) -> bool:
        """A shift as large as the optimum leaves the dual nothing to work with."""
        if self.dense is None:
            return self.cov.known_psd
        with single_threaded():  # as many threads as cores wait for one another
            shift = psd_shift(self.dense, self.deadline)
        return shift < abs(self.target) / 4

    def _directions(
        self, share: float, nodes: int, look: FirstLook | None = None
    ) -> None:
        left = self.deadline.remaining() or 0.0
        dual = dual_bound(
            self.cov,
            self.k,
            start=self.support,
            # sums may round up
            target=self.target - self.error - 4 * EPS * abs(self.target),
            time_limit=share * max(0.95 * left, left - 1.0),
            nodes=nodes,
            memory=self.memory,
            first_look=look,
            report=self.notify,
        )
        self.visited += dual.nodes
        value = dual.value + self.error
        if np.isfinite(value):
            found = NamedBound(value, BoundName.DIRECTION_DUAL, better=dual.better)
            self.known.append(found)
        if dual.interrupted:
            raise BoundInterrupted(self.least())

    def by_eigenvalue(self, share: float = 1.0) -> None:
        """λmax, if it is expected to take no more than a share of the time.

        Once, and only if it may be less than what is known: for large k it is near the
        optimum, where both duals begin far off.
        """
        tried = any(bound.name == BoundName.LARGEST_EIGENVALUE for bound in self.known)
        if tried or not self.is_open():
            return
        if not _eigenvalue_is_affordable(
            self.cov, self.dense is not None, self.deadline, self.memory, share
        ):
            return
        with single_threaded():
            reached = self._reached_by_all()
            if reached >= min(self.known).value:
                return
            if share < 1 and self._directions_may_do(reached):
                return
            value = largest_eigenvalue_bound(self.cov, by_lanczos=True)
            value += self.error
        self.known.append(NamedBound(value, BoundName.LARGEST_EIGENVALUE))

    def _directions_may_do(self, reached: float) -> bool:
        """Whether λmax is so far off that the direction dual, of data, is worth more.

        Then it comes last: of sparse data CC' is dense, as dear as the dual's root.
        """
        cov, target = self.cov, self.target
        far = reached - target > self.settings.search_up_to_gap[0] * abs(target)
        is_apt = cov.known_psd and cov.n_samples is not None
        return far and is_apt and not self._directions_are_hopeless()

    def _reached_by_all(self) -> float:
        """x'Ax of some unit x: by power steps from the component, less than λmax."""
        cov, support = self.cov, np.asarray(self.support)
        x, _ = on_support(cov, support)
        reached = -np.inf
        for _ in range(_POWER_STEPS):
            image = cov.matvec(x)
            reached = max(reached, float(x @ image))
            length = frobenius_norm(image)
            if not 0 < length < np.inf:
                break
            x = image / length
        return reached

    def by_thresholds(self) -> None:
        if not self.is_open() or self.dense is None:
            return
        with single_threaded():
            found = best_threshold_bound(self.dense, self.k, self.deadline)
        value = found[0] + self.error
        self.known.append(NamedBound(value, BoundName.SOFT_THRESHOLD))


def _eigenvalue_is_affordable(
    cov: Covariance,
    is_matrix: bool,
    deadline: Deadline,
    memory: int | None,
    share: float,
) -> bool:
    """Tell whether a share of the time, and memory, suffice for λmax, of A or CC'."""
    d = cov.n_features
    if not is_matrix and cov.n_samples is None:
        return False
    order = d if is_matrix else min(cov.n_samples or d, d)
    if order > _LARGEST_DENSE or (memory is not None and 24 * order**2 > memory):
        return False
    seconds = _cost.product(order, order, _LANCZOS) + 2 * _cost.cholesky(order)
    if not is_matrix:
        seconds += _cost.product(order, cov.n_samples or d, d)
    return deadline.affords(seconds / share)
