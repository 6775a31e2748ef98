"""Bound opt(k) by the direction dual: ascent at the root, then branch and bound.

Where the relaxation is nearly tight, fixing variables by its bound, ascending again
with those that are free, and branching on the few that remain ends in a proof that the
component is optimal, for k in the hundreds and thousands.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance, as_covariance
from ...limits import Deadline, NotAffordable
from ...numerics import cost as _cost
from ...numerics.blas import keep_to_one_thread, single_threaded, thread_count
from ...numerics.upper_eigenvalues import eigenvalue_ceiling
from .ascent import Ascent
from .density import concentrated
from .node import Node, branches
from .problem import Problem, make_problem
from .relaxation import rounding_of_sum
from .settings import DEFAULT, DualSettings

_CHILD_STEPS = 40  # no child takes as many: it stalls before, or is closed
_PROOFS = 1.5  # Cholesky factors that a bound takes, those that fail at once included


@dataclass(frozen=True)
class FirstLook:
    """What the root has to show before anything is split."""

    up_to: float  #: the search ends with the root if its bound is above this
    seconds: float  #: when that is looked at, if the ascent has not stalled before


@dataclass(frozen=True)
class DualBound:
    """An upper bound on opt(k) and how it came about."""

    value: float  #: opt(k) ≤ value, rounding included
    #: `iterations`, `nodes`: steps of ascent, and nodes of the search.
    iterations: int
    nodes: int
    elapsed: float  #: seconds
    #: A support above the target, up to rounding, if the search came upon one.
    better: NDArray[np.intp] | None = None
    interrupted: bool = False  #: by the keyboard; the bound holds all the same
    cut_short: bool = False  #: time or memory did not suffice for more


def dual_bound(
    cov: Covariance | FloatArray,
    k: int,
    *,
    start: Sequence[int] | NDArray[np.intp] | None = None,
    target: float = -np.inf,
    time_limit: float = 10.0,
    iterations: int = 150,
    nodes: int = 1,
    memory: int | None = None,
    first_look: FirstLook | None = None,
    report: Callable[[float, int, int], None] | None = None,
    settings: DualSettings = DEFAULT,
) -> DualBound:
    """Bound opt(k) by the direction dual, with ρ and the directions optimised.

    Parameters
    ----------
    cov : Covariance or array
        Made from data, or a matrix; an indefinite one is shifted by its smallest
        eigenvalue, which x'x = 1 makes harmless.
    start : sequence of int, optional
        A good support. The better it is, the fewer steps are needed; the bound holds
        for any.
    target : float
        Stop as soon as the bound is this low.
    time_limit, iterations : float, int
        Where to stop; `iterations` is for the root. If the time does not suffice for
        the columns, a step and the proof of its bound, none is begun and the value is
        infinite.
    nodes : int
        No node is split once there are this many; with 1, the root is all. Two nodes
        may be split at once, into twelve.
    memory : int, optional
        Bytes for the columns and the arrays of a step; infinite if they do not suffice.
    first_look : FirstLook, optional
        After which the search is given up if the root is far off.
    report : callable
        Told after each node and each split: the bound so far, the nodes, and the
        free features of the weakest node.
    settings : DualSettings
        Tuned constants: how soon a bound is found, not whether it holds.

    Notes
    -----
    A step costs O(n² p) for dense and O(Σ nnz(c_i)² + n²) for sparse data, for the p
    active columns: all with A_ii > ρ at first, a small part of them once the gap is
    small. The result is valid whenever it stops. Where n is large,
    nodes are worked on by as many threads as BLAS may use; the result does not depend
    on their number.
    """
    deadline = Deadline(time_limit)
    try:
        # A QR factor of 2600 × 500 takes a tenth of a second, and with threads, beside
        # other processes, four seconds: they wait for one another at every panel.
        with single_threaded():
            problem = make_problem(
                as_covariance(cov),
                k,
                start,
                nodes > 1,
                deadline,
                memory,
                settings,
            )
    except NotAffordable:
        return DualBound(np.inf, 0, 0, deadline.elapsed(), cut_short=True)
    if problem is None:
        return DualBound(np.inf, 0, 0, deadline.elapsed())
    # The bound of the step under way when time is up is still to be proved.
    reserve = _PROOFS * _cost.cholesky(problem.columns.shape[0])
    ends = Deadline(max(0.0, (deadline.remaining() or 0.0) - reserve))
    search = _Search(problem, problem.to_columns(target), ends, report, first_look)
    interrupted = True
    # The steps are many and small: threads of BLAS would wait for one another.
    with suppress(KeyboardInterrupt), single_threaded():
        search.run(iterations, nodes)
        interrupted = False
    better = None if search.better is None else problem.features[search.better]
    return DualBound(
        problem.to_matrix(search.value),
        search.steps,
        search.nodes,
        deadline.elapsed(),
        better,
        interrupted,
        cut_short=not ends.affords_step(),
    )


@dataclass(frozen=True)
class _Outcome:
    """What came of the work on a node."""

    node: Node  #: as it is now
    closed: bool  #: nothing in the node can be above the target, except for `better`
    #: Of ascent; None if time was up before there was any work.
    steps: int | None = None
    #: Columns of a support above the target; its value is the node's `closed_bound`.
    better: NDArray[np.intp] | None = None


def root_of(problem: Problem) -> Node:
    """The node in which nothing is fixed."""
    settings = problem.settings
    return Node(
        fixed_in=np.empty(0, np.intp),
        free=np.arange(problem.columns.shape[1]),
        density=concentrated(problem.leading, settings.start_weight),
        multiplier=problem.multiplier,
        projection_bound=problem.columns.norms,
        min_weight=settings.first_min_weight,
        has_short_columns=problem.min_multiplier > 0,
    )


class _Search:
    """Branch and bound, the weakest nodes first."""

    def __init__(
        self,
        problem: Problem,
        target: float,
        deadline: Deadline,
        report: Callable[[float, int, int], None] | None,
        first_look: FirstLook | None = None,
    ) -> None:
        self.problem, self.target, self.deadline = problem, target, deadline
        self.report = report
        self.first_look = first_look  # None once the root was looked at
        self.given_up = False
        self.settings = settings = problem.settings
        self.nodes_per_batch = settings.batch_size(problem.columns.shape[0])
        self.threads = thread_count()
        self.steps = self.nodes = 0
        self.closed_bound = -np.inf  # the largest bound of what is closed
        self.better: NDArray[np.intp] | None = None
        root = root_of(problem)
        # A heap, the weakest first; the second entry breaks ties. Whenever an
        # interrupt comes, what is open covers all that is not closed: nodes leave it,
        # and their children enter it, by one assignment.
        self.open: list[tuple[float, int, Node]] = [(-np.inf, 0, root)]

    def run(self, iterations: int, most_nodes: int) -> None:
        order = itertools.count(1)
        root = self.open[0][2]
        outcome = self._work(
            root, self.target, iterations, most_nodes > 1, self._keep_root
        )
        self.first_look = None
        self._take_in(outcome)
        if outcome.closed:
            self.open = []
        self._tell()
        while self.open and self._goes_on() and self.nodes < most_nodes:
            left = list(self.open)
            split = [heapq.heappop(left)[2]]
            while (
                len(split) < self.nodes_per_batch
                and left
                and self._can_be_split(left[0][2])
            ):
                split.append(heapq.heappop(left)[2])
            children = [
                child for node in split for child in branches(node, self.settings)
            ]
            with self._workers(len(children)) as apply:
                outcomes = apply(partial(self._work, target=self.target), children)
                for outcome in outcomes:
                    self._take_in(outcome)
                    if not outcome.closed:
                        node = outcome.node
                        left.append((-node.bound, next(order), node))
                    self._tell()
            heapq.heapify(left)
            self.open = left
            self._tell()

    @contextmanager
    def _workers(self, count: int) -> Iterator[Callable[..., Iterator[_Outcome]]]:
        """Give what applies a function to the nodes, by threads if they are large."""
        threads = min(self.threads, count)
        if self.nodes_per_batch == 1 or threads == 1:
            yield map
            return
        with ThreadPoolExecutor(threads, initializer=keep_to_one_thread) as pool:
            try:
                yield pool.map
            except BaseException:
                self.deadline.end()  # the others stop, too
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _keep_root(self, root: Node) -> None:
        """Put what is known of the root in its place: an interrupt may come next."""
        self.open = [(-root.bound, 0, root)]

    def _take_in(self, outcome: _Outcome) -> None:
        """Keep what came of the work on a node, but for the node itself."""
        node = outcome.node
        self.nodes += outcome.steps is not None
        self.steps += outcome.steps or 0
        self.closed_bound = max(self.closed_bound, node.closed_bound)
        if outcome.better is not None and node.closed_bound > self.target:
            self.better, self.target = outcome.better, node.closed_bound

    def _tell(self) -> None:
        if self.report is not None:
            free = len(self.open[0][2].free) if self.open else 0
            self.report(self.problem.to_matrix(self.value), self.nodes, free)

    @property
    def value(self) -> float:
        """The bound proved so far."""
        still_open = [max(node.bound, node.closed_bound) for _, _, node in self.open]
        return max([self.closed_bound, *still_open])

    def _goes_on(self) -> bool:
        return (
            not self.given_up
            and self._can_be_split(self.open[0][2])
            and self.deadline.affords_step()
        )

    def _can_be_split(self, node: Node) -> bool:
        """Whether it has to be, and there is something to split it by."""
        return node.bound > self.target and len(node.relaxed_z) > 0

    def _work(
        self,
        node: Node,
        target: float,
        steps: int | None = None,
        fix: bool = True,
        keep: Callable[[Node], None] = lambda node: None,
    ) -> _Outcome:
        """Ascend at a node and fix variables, as long as that gets on.

        `keep` is given each node that takes its place, also if an interrupt ends this.
        """
        taken, deadline, settings = 0, self.deadline, self.settings
        steps = _CHILD_STEPS if steps is None else steps
        if not deadline.affords_step():
            return _Outcome(node, closed=False)
        while True:
            left = self.problem.k - len(node.fixed_in)
            if left < 0:
                return _Outcome(node, True, taken)
            if left == 0 or (left >= len(node.free) and not node.has_short_columns):
                value, better = self._leaf(node, left, target)
                return _Outcome(node.with_closed(value), True, taken, better)
            if not len(node.free):
                return _Outcome(node, False, taken)
            ascent = Ascent(self.problem, node)
            fixes = False
            try:
                self._ascend(ascent, steps, target, fix)
                closed = ascent.bound <= target
                fixes = fix and not closed and not self.given_up
                fixes = fixes and deadline.affords_step() and ascent.can_fix()
                if fixes:
                    ascent.deflate(deadline)
            finally:
                node = node.ascended(ascent.found)
                keep(node)
            taken += ascent.steps
            if closed:
                return _Outcome(node.with_closed(node.bound), True, taken)
            if not fixes:
                return _Outcome(node, False, taken)
            fixed = ascent.fix_variables(target)
            # What is ruled out now is at or below the target, no more.
            node = node.with_closed(target)
            if fixed is None:
                return _Outcome(node, True, taken)
            node = node.fixed(fixed)
            keep(node)
            gained = left - (self.problem.k - len(node.fixed_in))
            few = fixed.count(ascent.active) <= settings.worthwhile * len(ascent.active)
            few = few and gained <= settings.worthwhile * left
            if few and left > gained and not ascent.stopped_to_reduce:
                return _Outcome(node, False, taken)
            steps = _CHILD_STEPS

    def _ascend(self, ascent: Ascent, steps: int, target: float, fix: bool) -> None:
        """Ascend at a node, or give up at a root far off."""
        look, deadline = self.first_look, self.deadline
        if look is None:
            ascent.run(steps, target, deadline, fix)
            return
        left = look.seconds - deadline.elapsed()
        whole = deadline.remaining()
        soon = Deadline(left if whole is None else min(left, whole))
        found = ascent.run(steps, target, soon, fix)
        deadline.step_took(soon.step)
        # What stops in order to reduce goes on with fewer columns, and shows more then.
        if found.bound <= target or ascent.stopped_to_reduce:
            return
        self.first_look = None
        bound = self.problem.to_matrix(found.bound)
        self.given_up = bool(look.up_to < bound < np.inf)
        if not self.given_up and not soon.affords_step():
            ascent.run(steps - ascent.steps, target, deadline, fix)

    def _leaf(
        self, node: Node, left: int, target: float
    ) -> tuple[float, NDArray[np.intp] | None]:
        """Bound the only set that is left; return it too, if it is above the target."""
        chosen = node.fixed_in
        if left:
            chosen = np.concatenate([chosen, node.free])
        columns = self.problem.columns.take(chosen)
        value = eigenvalue_ceiling(columns.gram(np.ones(len(chosen))))
        value += rounding_of_sum(*columns.shape, float((columns.sizes**2).sum()))
        return value, np.sort(chosen) if value > target else None
