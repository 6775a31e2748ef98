"""One set of k features for r components: found, bounded, and searched where small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import interruption
from .._validation import check_n_jobs, check_positive_integer, check_sparsity
from .._warnings import is_nested_call, warn_caller
from ..bound_names import BoundName
from ..constraints import Constraints, feature_indices
from ..covariance.covariance import Covariance, as_covariance, refuse_constant
from ..limits import Budget, Deadline, Limits, as_limits
from ..numerics.blas import single_threaded
from ..numerics.linalg import with_sign
from ..numerics.threads import allowed_threads
from ..progress import Event, Listener, as_listener, silent
from ..status import SEARCH_GAP, Status, is_search_over, status_of_gap
from .shared_bounds import closed_forms
from .shared_heuristic import SharedHeuristic, SharedSet
from .shared_problem import SharedProblem, shared_rules
from .shared_result import NODE_WORK, SharedClaim, SharedSupport
from .shared_search import SharedSearch
from .shared_tree import TREE_UP_TO, SetTree, largest_of_all

# Which of the two searches ends first is not known before: 5 of 60 features of noise
# take the enumeration 0.1 s and the branch and bound more than a minute, 20 of 40 with
# four factors are proved by the latter alone.
# So they take turns, the first two short ones.
FIRST_WORK = 125 * NODE_WORK  # of the enumeration
FIRST_NODES = 301  # of the branch and bound, a root and pairs: 1 to 4 s
SECOND_WORK = 10_000 * NODE_WORK  # of the enumeration, 40 s
TREE_SHARE = 0.25  # of the time that is left, for the enumeration
NO_CLAIM = SharedClaim(np.inf, BoundName.NONE)


def solve_shared(
    cov: Covariance | Any,
    k: int,
    n_components: int,
    *,
    include: Sequence[int | str] = (),
    constraints: Constraints | None = None,
    start: Sequence[int | str] | None = None,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
    progress: Listener | bool | None = None,
) -> SharedSupport:
    """Find k features whose first r components have the largest variance, with a bound.

    F_r(S), the sum of the r largest eigenvalues of A_SS, is maximised over sets S of k
    features: the panel of k measurements that keeps most of what r components of them
    can say. All r components use the same features.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k : int
    n_components : int
        r, at most k.
    include : names or indices
        Features that must be in the set: short for `Constraints(include=…)`.
    constraints : Constraints, optional
        Features in and out, at most so many of a group, an overlap with another set.
        What is proved is for the sets that keep them.
    start : names or indices, optional
        A set to begin with.
    limits : Limits or float, optional
        Time, nodes and gap for the whole call; a number is seconds.
    n_jobs : int, optional
        Most threads of BLAS.
    progress : bool or callable, optional
        True logs to standard error; a callable is told of `Event`s. Without it a line
        appears after five seconds where somebody watches; False is silent.

    Returns
    -------
    SharedSupport
        After Ctrl-C, the best set and the least bound so far, with a warning.

    Notes
    -----
    Sets are found by alternating ascent (`shared_heuristic`); the bound is the least of
    closed forms (`shared_bounds`), of an enumeration of all sets that closes most of
    them many at a time (`shared_tree`, up to 1,000 features, for half a second), and of
    the direction dual with a Ky Fan sum (`shared_dual`), of which every point is a
    proof. Up to 60 features a branch and bound with it follows, in turns with the
    enumeration, so that small problems end as optimal; in larger ones that the
    enumeration does not settle a descent on a closer bound (`shared_copies`), after
    which they are feasible with the gap that it leaves. `Limits(gap=…)` ends it
    earlier. It is left out where samples times features, of those that can matter, are
    more than 2¹⁸. Features that are kept out are no part of the problem. Both searches
    know the limits on groups, the bounds of larger problems do not: they hold with
    them, and leave a larger gap.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.diag([3.0, 3.0, 2.0, 1.0])
    >>> A[0, 1] = A[1, 0] = 2.9
    >>> found = bs.solve_shared(A, k=3, n_components=2)
    >>> found.support, round(found.objective, 6), found.status.value
    (array([0, 1, 2]), 7.9, 'optimal')
    >>> found.verify(A).complete
    True
    >>> rules = bs.Constraints(exclude=[0], groups={1: "a", 2: "a"}, max_per_group=1)
    >>> bs.solve_shared(A, k=2, n_components=2, constraints=rules).support
    array([1, 3])
    """
    budget = Budget(as_limits(limits))
    cov = as_covariance(cov)
    refuse_constant(cov)
    k = check_sparsity(k, cov.n_features)
    r = check_positive_integer(n_components, "n_components")
    if r > k:
        raise ValueError(
            f"n_components = {r} is more than k = {k}: so many components of k "
            "features do not exist; pass at most k."
        )
    kept = _checked_features(include, "include", k, cov)
    rules = shared_rules(constraints, kept, cov, k)
    given = None
    if start is not None:
        given = _checked_features(start, "start", k, cov)
    with (
        allowed_threads(check_n_jobs(n_jobs)),
        as_listener(progress) as tell,
        budget.ending(),
    ):
        with budget.reading() as reading:
            cov = cov.formed(reading, reading.limits.memory)
        shared = SharedProblem.of(cov, k, r, rules)
        place = None if given is None else shared.places(given)
        found = _solve(shared, place, budget, tell)
    if found.status in (Status.OPTIMAL, Status.GAP_LIMIT):
        cov.check_unchanged()  # nothing is proved of data that changed meanwhile
    if found.status is Status.INTERRUPTED and not is_nested_call():
        warn_caller(interruption("solve_shared", [found]))
    return replace(found, rules=rules)


def _solve(
    shared: SharedProblem,
    start: NDArray[np.intp] | None,
    budget: Budget,
    tell: Listener,
) -> SharedSupport:
    cov, heuristic = shared.cov, SharedHeuristic(shared)
    best = SharedSet.of(cov, heuristic.top(cov.diagonal()), shared.r)
    run = _Run(shared, best, budget, heuristic, tell)
    interrupted = True
    with suppress(KeyboardInterrupt):
        starts = heuristic.starts()
        if start is not None:
            scores = np.zeros(cov.n_features)
            scores[start] = 1.0
            starts.insert(0, heuristic.top(scores))
        run.best = heuristic.best_of([best.support, *starts], budget)
        run.claim = _closed_form(shared, budget)
        run.search_in_turns()
        interrupted = False
    found = run.result(interrupted)
    with suppress(KeyboardInterrupt):  # there is nothing left to be stopped
        tell(run.event(found.upper_bound, found.status))
    return found


@dataclass(eq=False)
class _Run:
    """The best set and the least bound so far, and the searches that improve them."""

    shared: SharedProblem
    best: SharedSet
    budget: Budget
    #: For better sets; None where a bound is all that is wanted.
    heuristic: SharedHeuristic | None = None
    tell: Listener = silent
    claim: SharedClaim = NO_CLAIM
    nodes: int = 0

    def search_in_turns(self) -> None:
        """Enumerate and branch in turn, until one of the two ends or a limit does."""
        applies = self.shared.cov.n_features <= TREE_UP_TO
        if applies and not self._is_over():
            self.enumerate_sets(FIRST_WORK, SEARCH_GAP / 2)
        if self._is_over():
            return
        search = self.branch(FIRST_NODES if applies else None)
        if not search.is_small or search.nodes < FIRST_NODES or self._is_over():
            return
        # The gap that is asked for, with room for the rounding of the bound.
        gap = (self.budget.limits.gap or 0.0) * (1 - 1e-6)
        self.enumerate_sets(SECOND_WORK, max(gap, SEARCH_GAP / 2))
        if not self._is_over():
            self.branch(None)  # from the root again, with the best set so far

    def enumerate_sets(self, most_work: int, slack: float) -> None:
        """Look at all sets in the tree, for part of the time and of the nodes left."""
        budget, most_nodes = self.budget, self.budget.nodes_left // 2
        tree = SetTree(self.shared)

        def told(best: SharedSet, nodes: int) -> None:
            self.best = best
            self.tell(self.event(nodes=nodes))

        deadline = Deadline(budget.share(TREE_SHARE, np.inf))
        try:
            with single_threaded():
                self.best, bound = largest_of_all(
                    tree, self.best, slack, deadline, most_work, most_nodes, told
                )
        finally:
            self.nodes += tree.nodes
            budget.nodes += tree.nodes
        if bound < self.claim.upper_bound:
            self.claim = SharedClaim(bound, BoundName.ENUMERATION, nodes=tree.nodes)

    def branch(
        self,
        nodes: int | None,
        steps: int | None = None,
        search: SharedSearch | None = None,
    ) -> SharedSearch:
        """Bound by the dual, and by branch and bound where there are few features.

        A search that is given is one of before, which goes on.
        """
        if search is None:
            search = SharedSearch(self.shared, self.best, self.budget, self.heuristic)
        before = search.nodes
        if self.budget.limits.nodes is not None:
            most = before + self.budget.nodes_left
            nodes = min(most, nodes or most)

        def told(bound: float) -> None:
            self.best = search.best
            bound = min(bound, self.claim.upper_bound)
            self.tell(self.event(bound, nodes=search.nodes))

        search.tell = told
        try:
            search.run(nodes, steps)
        finally:  # also after Ctrl-C
            self.nodes += search.nodes - before
            self.budget.nodes += search.nodes - before
            self.best = max(self.best, search.best, key=lambda s: s.objective)
            if search.bound < self.claim.upper_bound:
                name = BoundName.DIRECTION_DUAL
                if search.has_branched:
                    name = BoundName.BRANCH_AND_BOUND
                self.claim = SharedClaim(
                    search.bound, name, search.root_claim, search.nodes
                )
        return search

    def _is_over(self) -> bool:
        """Whether the bound is close enough, or a limit is reached."""
        gap, objective = self.budget.limits.gap, self.best.objective
        bound = max(self.claim.upper_bound, objective)
        if is_search_over(objective, bound, gap):
            return True
        return self.claim.dual is not None and self.budget.stop_reason() is not None

    def event(
        self,
        bound: float | None = None,
        status: Status | None = None,
        nodes: int = 0,
    ) -> Event:
        """What is known, to be shown; the nodes are those of a search under way."""
        return Event(
            stage="proof",
            done=int(status is not None),
            total=1,
            k=self.shared.k,
            objective=self.best.objective,
            upper_bound=self.claim.upper_bound if bound is None else bound,
            nodes=self.nodes + nodes,
            elapsed=self.budget.elapsed(),
            status=status,
        )

    def result(self, interrupted: bool) -> SharedSupport:
        """Put together what was found and what was proved."""
        shared, best = self.shared, self.best
        objective = best.objective
        bound = max(self.claim.upper_bound, objective)
        stopped = Status.INTERRUPTED if interrupted else self.budget.stop_reason()
        if stopped is None and self.budget.nodes_left < 2:  # of no use to a search
            stopped = Status.NODE_LIMIT
        vectors = np.column_stack([with_sign(vector) for vector in best.vectors.T])
        return SharedSupport(
            support=shared.features[best.support],
            components=shared.rows(best.support, vectors),
            variances=best.values,
            objective=objective,
            upper_bound=bound,
            status=status_of_gap(objective, bound, self.budget.limits.gap, stopped),
            k=self.shared.k,
            n_features=shared.n_features,
            certificate=replace(self.claim, upper_bound=bound),
            include=tuple(shared.features[shared.include].tolist()),
            nodes=self.nodes,
            time=self.budget.elapsed(),
            total_variance=shared.total_variance,
            feature_names=shared.feature_names,
        )


def bound_shared(
    cov: Covariance,
    k: int,
    r: int,
    start: NDArray[np.intp],
    budget: Budget,
    steps: int,
    most_nodes: Callable[[SharedSupport], int],
) -> SharedSupport:
    """Bound opt_r(k), without looking far for sets that are better than the one given.

    Parameters
    ----------
    start : array of int
        At most k features; those of the largest variances are added.
    steps : int
        Of the ascent at the root, at the most.
    most_nodes : callable
        Is shown what the root gives, and says how many nodes a branch and bound may
        have with it.
    """
    scores = cov.diagonal().copy()
    scores[start] = np.inf
    shared = SharedProblem.of(cov, k, r)
    heuristic = SharedHeuristic(shared)
    starts = [heuristic.top(scores), *heuristic.starts()]
    best = heuristic.best_of(starts, budget, exchange=False)
    run = _Run(shared, best, budget)
    run.claim = _closed_form(shared, budget)
    search = run.branch(1, steps)
    root = run.result(interrupted=False)
    nodes = most_nodes(root)
    if nodes <= 1:
        return root
    run.branch(nodes, search=search)
    return run.result(interrupted=False)


def _closed_form(shared: SharedProblem, budget: Budget) -> SharedClaim:
    known = closed_forms(shared.cov, shared.k, shared.r, budget)
    if not known:
        return NO_CLAIM
    return SharedClaim(*min((bound, name) for name, bound in known.items()))


def solve_shared_path(
    cov: Covariance | Any, ks: Sequence[int], n_components: int, **options: Any
) -> dict[int, SharedSupport]:
    """Solve `solve_shared` for several k, each from the largest set so far that fits.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    ks : sequence of int
        Ascending or not; each at least `n_components`.
    n_components : int
    **options
        Passed to `solve_shared`; limits are for each k, and `start` for the first.

    Returns
    -------
    dict of int to SharedSupport
        After Ctrl-C, up to the k that it has stopped, with a warning.

    Examples
    --------
    >>> import blockspca as bs
    >>> path = bs.solve_shared_path([[4.0, 1, 0], [1, 3.0, 0], [0, 0, 2.0]], [2, 3], 2)
    >>> {k: round(path[k].objective, 3) for k in path}
    {2: 7.0, 3: 7.0}
    """
    cov = as_covariance(cov)
    path: dict[int, SharedSupport] = {}
    start = options.pop("start", None)
    for k in ks:
        size = check_sparsity(k, cov.n_features)
        if path:
            fitting = [found.support for found in path.values() if found.k <= size]
            start = max(fitting, key=len, default=None)
        path[k] = solve_shared(cov, size, n_components, start=start, **options)
        if path[k].status is Status.INTERRUPTED:  # which is meant for all k
            if not is_nested_call():
                warn_caller(interruption(f"solve_shared_path, at k = {k},", [path[k]]))
            break
    return path


def _checked_features(
    given: Sequence[int | str], argument: str, k: int, cov: Covariance
) -> NDArray[np.intp]:
    features = feature_indices(given, cov.n_features, cov.feature_names, argument)
    chosen = np.unique(np.array(features, dtype=np.intp))
    if len(chosen) > k:
        raise ValueError(
            f"{argument} has {len(chosen)} features for k = {k}; pass at most k."
        )
    return chosen
