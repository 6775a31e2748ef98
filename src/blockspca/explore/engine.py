"""Solves the questions of an explorer, and keeps the components and their proofs.

The certified path proves all k up to 30 together in hundredths of a second once A has
been scanned, so that the first component is kept as a path: a slider that moves on
reads the next entry of it. Further components are solved, and kept, one by one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..blocks.threshold_path import ThresholdPath, threshold_path
from ..certify.constrained import solve_constrained
from ..certify.provers import ProofOptions
from ..components.in_turn import SolveWithin, next_component
from ..components.requests import check_constraints
from ..components.scheme import BaseScheme
from ..components.scheme_names import as_scheme
from ..components.solve import placed
from ..components.variance import adjusted_variance, predicted, score_covariance
from ..constraint_rules import Rules
from ..constraints import Constraints, checked
from ..covariance.covariance import Covariance
from ..covariance.pca import pca_variances
from ..limits import Deadline, Limits
from ..pipeline import SETTINGS, solve_path
from ..progress import Listener, silent
from ..result import Price, Result
from ..sparsity_path import SparsityPath
from ..status import Status
from .dataset import Dataset
from .state import State

#: Up to here all k are kept. The chain of proofs is that fast for small k only, and a
#: component that is read by eye has no more features.
PATH_K = 30

#: Problems, and matrices, that are kept; those used last.
MAX_PROBLEMS, MAX_MATRICES = 32, 4
MAX_LATER = 500  # further components of a problem

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Answer:
    """Components for a state, as far as they are known."""

    state: State
    cov: Covariance
    scheme: BaseScheme
    results: tuple[Result, ...]

    @property
    def complete(self) -> bool:
        return len(self.results) == self.state.n_components

    @cached_property
    def components(self) -> FloatArray:
        """The loadings, components × features."""
        return np.array([result.x for result in self.results])

    @cached_property
    def shares(self) -> FloatArray:
        """The adjusted variance of each component, as a share of the total.

        NaN of a contrast, which has none.
        """
        total = float(self.cov.diagonal().sum())
        if self.cov.is_contrast or total < 0:
            return np.full(len(self.results), np.nan)
        if total == 0:
            return np.zeros(len(self.results))
        return adjusted_variance(score_covariance(self.cov, self.components)) / total

    @cached_property
    def r2(self) -> float:
        """The share of the variance of all features that the scores predict."""
        return predicted(self.cov, self.components)


class Recent(OrderedDict[Hashable, T]):
    """A cache of the values that were used last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.lock = threading.RLock()

    def get_or(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, making it if need be."""
        with self.lock:
            if key in self:
                self.move_to_end(key)
                return self[key]
        # Outside the lock: it may take seconds, and other tabs look up meanwhile.
        made = make()
        with self.lock:
            self[key] = made
            while len(self) > self.most:
                self.popitem(last=False)
        return made


class ByPath(SolveWithin):
    """Solves the problems of one component by the certified path.

    `solve` looks for the component in blocks first, which pays where one k of a hard
    matrix is wanted; here the path is at hand.
    """

    def __call__(
        self, problem: Covariance, k: int, *, certify: bool = True, share: float = 1.0
    ) -> Result:
        left = self.deadline.remaining()
        limits = Limits(
            time=None if left is None else share * left, nodes=self.limits.nodes
        )
        rules, jobs = self.options.get("constraints"), self.options.get("n_jobs")
        if rules is not None and _one_k_at_a_time(rules):
            d, names = problem.n_features, problem.feature_names
            return solve_constrained(
                problem.formed(),
                k,
                checked(rules, d, names, k),
                limits,
                ProofOptions(settings=SETTINGS, n_jobs=jobs, callback=self.tell),
            )
        if k > PATH_K:
            return super().__call__(problem, k, certify=certify, share=share)
        path = solve_path(
            problem,
            k,
            limits=limits,
            n_jobs=jobs,
            progress=self.tell,
            constraints=rules,
        )
        return path[k]

    def without(self, problem: Covariance, used: NDArray[np.intp], k: int) -> Result:
        """Solve without the features that are used, which a path may leave out."""
        options = dict(self.options)
        if options.get("constraints") is None:
            options["constraints"] = Constraints()
        within = ByPath(self.limits, self.deadline, self.tell, options, self.start)
        return SolveWithin.without(within, problem, used, k)


def _one_k_at_a_time(rules: Constraints | Rules) -> bool:
    """Whether constraints have a search of their own for each k."""
    return bool(len(rules.include) or rules.nonnegative)


@dataclass(eq=False)
class Problem:
    """A matrix with constraints, and the components of it that are known."""

    cov: Covariance
    constraints: Constraints | None
    paths: list[SparsityPath] = field(default_factory=list)
    singles: dict[int, Result] = field(default_factory=dict)
    later: Recent[Result] = field(default_factory=lambda: Recent(MAX_LATER))
    path_done: bool = False

    def first(self, k: int) -> Result | None:
        """The best that is known of the first component with k features."""
        known = [path[k] for path in self.paths if k in path]
        known += [self.singles[k]] if k in self.singles else []
        # What was overtaken by another question is not what this one has to say.
        known = [result for result in known if result.status is not Status.INTERRUPTED]
        known.sort(key=lambda result: (result.status is not Status.OPTIMAL, result.gap))
        return known[0] if known else None

    @cached_property
    def rules(self) -> Rules:
        """The constraints by index."""
        given = self.constraints or Constraints()
        return checked(given, self.cov.n_features, self.cov.feature_names, None)

    @property
    def largest_k(self) -> int:
        """The largest k of a path: what the constraints allow, at most 30."""
        most = min(PATH_K, self.rules.most_features())
        return max(most, len(self.rules.include))


class Engine:
    """Answers questions about a data set, and remembers the answers.

    Whatever solves is called by one thread; what is known may be read by any.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore.dataset import Dataset
    >>> from blockspca.explore.engine import Engine
    >>> from blockspca.explore.state import State
    >>> from blockspca.io import Table
    >>> X = np.random.default_rng(0).normal(size=(40, 6))
    >>> X[:, :2] += 2 * np.random.default_rng(1).normal(size=(40, 1))
    >>> engine = Engine(Dataset(Table(X)))
    >>> answer = engine.solve(State(k=2))
    >>> answer.results[0].support, engine.known(State(k=2)) is not None
    (array([0, 1]), True)
    """

    def __init__(self, dataset: Dataset, n_jobs: int | None = 1) -> None:
        self.dataset, self.n_jobs = dataset, n_jobs
        self._matrices: Recent[Covariance] = Recent(MAX_MATRICES)
        self._problems: Recent[Problem] = Recent(MAX_PROBLEMS)
        self._pca: Recent[FloatArray] = Recent(MAX_MATRICES * 8)
        self._thresholds: Recent[ThresholdPath] = Recent(1)

    # -- matrices and problems -----------------------------------------------------

    def covariance(self, state: State) -> Covariance:
        """The matrix of a state, formed where that is how it is solved."""
        key = (state.scale, state.weight)
        return self._matrices.get_or(
            key, lambda: self.dataset.covariance(state).formed()
        )

    def constraints(self, state: State) -> Constraints | None:
        """Return the constraints of a state; None without any."""
        if not state.is_constrained:
            return None
        grouped = state.max_per_group is not None
        if grouped and self.dataset.groups is None:
            raise ValueError("there are no groups to limit; open with groups.")
        return Constraints(
            include=list(state.include),
            exclude=list(state.exclude),
            groups=self.dataset.groups if grouped else None,
            max_per_group=state.max_per_group,
            nonnegative=state.nonnegative,
        )

    def problem(self, state: State) -> Problem:
        """The problem of a state; the same object for all k."""
        return self._problems.get_or(
            _problem_key(state),
            lambda: Problem(self.covariance(state), self.constraints(state)),
        )

    # -- components ----------------------------------------------------------------

    def known(self, state: State) -> Answer | None:
        """The answer, if nothing has to be solved for it."""
        problem = self._problems.get(_problem_key(state))
        if problem is None:
            return None
        results: tuple[Result, ...] = ()
        while len(results) < state.n_components:
            key = _later_key(state, results)
            found = problem.later.get(key) if results else problem.first(state.k)
            if found is None:
                return None
            results = (*results, found)
        scheme = as_scheme(state.used_scheme)
        return Answer(state, problem.cov, scheme, results)

    def solve(
        self,
        state: State,
        tell: Listener = silent,
        found: Callable[[Answer], None] = lambda answer: None,
    ) -> Answer:
        """Answer a question; `found` is told of every component as it is found.

        An interruption ends it with the components so far, the last of which says that
        it was interrupted.
        """
        problem = self.problem(state)
        scheme = as_scheme(state.used_scheme)
        sparsities = [state.k] * state.n_components
        scheme.check(sparsities, problem.cov.n_features)
        if problem.constraints is not None:
            check_constraints(problem.constraints, problem.cov, sparsities, scheme)
        deadline = Deadline(state.seconds)
        results: tuple[Result, ...] = ()
        while len(results) < state.n_components:
            key = _later_key(state, results)
            one = problem.later.get(key) if results else problem.first(state.k)
            if one is None or _could_be_tighter(one, state):
                one = self._next(problem, state, scheme, results, deadline, tell)
            results = (*results, one)
            answer = Answer(state, problem.cov, scheme, results)
            found(answer)
            if one.status is Status.INTERRUPTED:
                break
        return answer

    def _next(
        self,
        problem: Problem,
        state: State,
        scheme: BaseScheme,
        earlier: tuple[Result, ...],
        deadline: Deadline,
        tell: Listener,
    ) -> Result:
        options: dict[str, Any] = {"n_jobs": self.n_jobs}
        if problem.constraints is not None:
            options["constraints"] = problem.constraints
        share = (deadline.remaining() or 0.0) / (state.n_components - len(earlier))
        limits = Limits(time=share)
        solve_one = ByPath(limits, Deadline(share), tell, options)
        free = problem.constraints is None
        one = next_component(problem.cov, earlier, state.k, scheme, solve_one, free)
        one = placed(one, len(earlier), scheme, False)
        if one.status is not Status.INTERRUPTED:
            if earlier:
                problem.later.get_or(_later_key(state, earlier), lambda: one)
            else:
                problem.singles[state.k] = one
        return one

    # -- around the components -----------------------------------------------------

    def path(self, state: State, tell: Listener = silent) -> SparsityPath:
        """The first component for all k up to 30, proved as far as time allows."""
        problem = self.problem(state)
        if not problem.path_done:
            path = solve_path(
                problem.cov,
                problem.largest_k,
                # All k, of which the one that was asked for is answered already: nobody
                # waits for them.
                limits=Limits(time=2 * state.seconds),
                n_jobs=self.n_jobs,
                progress=tell,
                constraints=problem.constraints,
            )
            # The longest, and the one before.
            problem.paths = sorted([*problem.paths[-1:], path], key=len)
            problem.path_done = not any(
                path[k].status is Status.INTERRUPTED for k in path
            )
        return problem.paths[-1]

    def pca(self, state: State) -> FloatArray:
        """The variances of as many ordinary components."""
        key = (state.scale, state.weight, state.n_components)
        return self._pca.get_or(
            key, lambda: pca_variances(self.covariance(state), state.n_components)
        )

    def known_pca(self, state: State) -> FloatArray | None:
        return self._pca.get((state.scale, state.weight, state.n_components))

    def price(self, state: State, of: State, tell: Listener = silent) -> Price:
        """Return what the constraints in `state` but not in `of` cost component 1."""
        with_all, without = (self._first_of(one, tell) for one in (state, of))
        return Price(
            without.objective,
            without.upper_bound,
            with_all.objective,
            with_all.upper_bound,
        )

    def _first_of(self, state: State, tell: Listener) -> Result:
        known = self.problem(state).first(state.k)
        if known is not None:
            return known
        return self.solve(replace(state, n_components=1), tell).results[0]

    def thresholds(self, state: State) -> ThresholdPath:
        """The blocks of the matrix at every ε; takes seconds for thousands of d."""
        key = (state.scale, state.weight)
        return self._thresholds.get_or(
            key, lambda: threshold_path(self.covariance(state))
        )


def _could_be_tighter(result: Result, state: State) -> bool:
    """Whether a result that a limit stopped may gain from the time of this state."""
    # Little more time than it had is not worth another wait.
    return result.status is Status.TIME_LIMIT and result.time < 0.8 * state.seconds


def _problem_key(state: State) -> Hashable:
    return (
        state.scale,
        state.weight,
        state.include,
        state.exclude,
        state.max_per_group,
        state.nonnegative,
    )


def _later_key(state: State, earlier: Sequence[Result]) -> Hashable:
    supports = tuple(tuple(result.support.tolist()) for result in earlier)
    return state.scheme, state.k, supports
