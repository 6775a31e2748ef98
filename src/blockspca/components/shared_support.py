"""One set of k features for r components: found, bounded, and searched where small."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import interruption
from .._validation import (
    FloatArray,
    check_n_jobs,
    check_positive_integer,
    check_sparsity,
)
from .._warnings import is_nested_call, warn_caller
from ..certify.verification import Verification, require
from ..constraints import Constraints, feature_indices
from ..covariance.covariance import Covariance, as_covariance, refuse_constant
from ..limits import Budget, Limits, Status, as_limits
from ..numerics.linalg import with_sign
from ..numerics.rounding import EPS, rounding_of_forms
from ..numerics.threads import allowed_threads
from ..result import (
    is_optimal_gap,
    is_within_gap,
    refuse_unproved,
    relative_gap,
)
from ..rules import Rules
from .shared_bounds import closed_forms
from .shared_choice import SharedChoice, shared_rules
from .shared_heuristic import SharedHeuristic, SharedSet
from .shared_search import DUAL, SEARCH, DualClaim, SharedSearch

UNPROVED = "none"


@dataclass(frozen=True)
class SharedClaim:
    """opt_r(k) ≤ upper_bound over the sets that keep the constraints, and by what.

    For the direction dual, `dual` has the point that proves it at the root; for the
    search, `nodes` says how large it was.
    """

    upper_bound: float
    bound_name: str
    dual: DualClaim | None = None
    nodes: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class SharedSupport:
    """r components on one set of k features, with what is known about them.

    Attributes
    ----------
    support : array of int
        The k features, ascending.
    components : array of shape (n_components, n_features)
        The leading eigenvectors of A on the support: orthonormal rows.
    variances : array of shape (n_components,)
        Their eigenvalues, descending. Scores are uncorrelated: they may be added up.
    objective : float
        Σ variances = F_r(S), the sum of the r largest eigenvalues of A_SS.
    upper_bound : float
        Proved: no k features that keep the constraints have a larger one.
    status : Status
        `optimal` if the two meet within 1e-9 of the objective.
    certificate : SharedClaim
        What `verify` needs to check the bound again.
    nodes : int
        Of the search.
    rules : Rules or None
        Which features may be together, by index; None for all.
    """

    support: NDArray[np.intp]
    components: FloatArray
    variances: FloatArray
    objective: float
    upper_bound: float
    status: Status
    k: int
    n_features: int
    certificate: SharedClaim
    include: tuple[int, ...] = ()
    nodes: int = 0
    time: float = 0.0
    total_variance: float = 0.0
    feature_names: tuple[str, ...] | None = field(default=None)
    rules: Rules | None = None

    def __post_init__(self) -> None:
        refuse_unproved(self.status, self.objective, self.upper_bound)

    @property
    def n_components(self) -> int:
        return len(self.components)

    @property
    def gap(self) -> float:
        """(upper_bound − objective) / |objective|."""
        return relative_gap(self.objective, self.upper_bound)

    @property
    def bound_name(self) -> str:
        return self.certificate.bound_name

    @property
    def features(self) -> list[str]:
        """The names of the features, in the order of the matrix."""
        names = self.feature_names
        return [str(int(i)) if names is None else names[i] for i in self.support]

    def __repr__(self) -> str:
        return (
            f"SharedSupport(k={self.k}, n_components={self.n_components}, "
            f"objective={self.objective:.6g}, upper_bound={self.upper_bound:.6g}, "
            f"status={self.status})"
        )

    def verify(self, cov: Covariance | Any, *, max_nodes: int = 20_000) -> Verification:
        """Check the components, their objective and the bound against the matrix.

        Parameters
        ----------
        cov : Covariance or symmetric matrix
        max_nodes : int
            A larger search is listed in `unchecked`.

        Raises
        ------
        VerificationError
            Naming the claim that failed.
        """
        cov = as_covariance(cov).formed()
        checks = [self._check_components(cov)]
        claim = self.certificate
        require(
            claim.upper_bound == self.upper_bound,
            "the result and its certificate do not say the same",
        )
        unchecked: list[str] = []
        said = f"at most {claim.upper_bound:.12g}, by {claim.bound_name}"
        if claim.bound_name == UNPROVED:
            require(claim.upper_bound == np.inf, "a bound that nothing proves")
        else:
            proved = self._proved(cov, max_nodes)
            if proved is None:
                unchecked.append(f"{said}: more nodes are needed to search again")
            else:
                require(
                    claim.upper_bound >= proved,
                    f"the bound by {claim.bound_name} is {proved:.17g}, above the "
                    f"claimed {claim.upper_bound:.17g}",
                )
                checks.append(said)
        cov.check_unchanged()
        return Verification(
            upper_bound=np.inf if unchecked else claim.upper_bound,
            checks=tuple(checks),
            unchecked=tuple(unchecked),
        )

    def _check_components(self, cov: Covariance) -> str:
        """Feasible, orthonormal, and of the objective that is claimed."""
        rows, support = self.components, self.support
        require(
            rows.shape == (len(self.variances), cov.n_features)
            and self.n_features == cov.n_features,
            "the components are of another length",
        )
        require(len(support) <= self.k, f"{len(support)} features for k = {self.k}")
        outside = np.delete(np.arange(cov.n_features), support)
        require(not rows[:, outside].any(), "a loading outside the support")
        require(set(self.include) <= set(support.tolist()), "a feature is not kept in")
        if self.rules is not None:
            require(
                self.rules.n_features == cov.n_features
                and self.rules.include == self.include,
                "the constraints are those of another problem",
            )
            objection = self.rules.objection(support, self.k)
            require(not objection, f"the set breaks a constraint: {objection}")
        r = len(rows)
        skew = float(np.abs(rows @ rows.T - np.eye(r)).max())
        allowed = (8 * len(support) + 64) * EPS
        require(skew <= allowed, f"the components are not orthonormal, by {skew:.3g}")
        within = cov.submatrix(support)
        V = rows[:, support]
        values = np.einsum("ji,ji->j", V @ within, V)
        rounding = np.diagonal(rounding_of_forms(V, within, cov.entry_error))
        require(
            bool((np.abs(values - self.variances) <= rounding).all())
            and abs(self.objective - values.sum()) <= rounding.sum() * (1 + r * EPS),
            f"the variances add up to {values.sum():.17g}, not {self.objective:.17g}",
        )
        require(
            self.upper_bound >= values.sum() - rounding.sum(),
            "the bound is below the objective",
        )
        return f"components: {r} on {len(support)} features, orthonormal"

    def _proved(self, cov: Covariance, max_nodes: int) -> float | None:
        claim, r, k = self.certificate, self.n_components, self.k
        budget = Budget(Limits())
        choice = SharedChoice.of(cov, self._rules())

        def begun(support: NDArray[np.intp]) -> SharedSearch:
            start = SharedSet.of(choice.cov, support, r)
            return SharedSearch(choice, k, r, start, budget)

        if claim.bound_name == DUAL:
            require(claim.dual is not None, "the direction dual without its point")
            assert claim.dual is not None
            start = np.array(claim.dual.start, dtype=np.intp)
            return begun(start).bound_of(claim.dual)
        if claim.bound_name == SEARCH:
            search = begun(choice.places(self.support))
            holds = search.proves(claim.upper_bound, max_nodes)
            if holds is None:
                return None
            return claim.upper_bound if holds else np.inf
        known = closed_forms(choice.cov, k, r, budget, margin=1.0)
        require(claim.bound_name in known, f"there is no bound {claim.bound_name!r}")
        return known[claim.bound_name]

    def _rules(self) -> Rules | None:
        """The constraints, also of a result that was stored without the rest."""
        if self.rules is None and self.include:
            return Rules(self.n_features, self.include)
        return self.rules


def solve_shared(
    cov: Covariance | Any,
    k: int,
    n_components: int,
    *,
    include: Sequence[int | str] = (),
    constraints: Constraints | None = None,
    start: Sequence[int | str] | None = None,
    limits: Limits | None = None,
    n_jobs: int | None = None,
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
    limits : Limits, optional
        Time, nodes and gap for the whole call.
    n_jobs : int, optional
        Most threads of BLAS.

    Notes
    -----
    Sets are found by alternating ascent (`shared_heuristic`); the bound is the least of
    closed forms (`shared_bounds`) and of the direction dual with a Ky Fan sum
    (`shared_dual`), of which every point is a proof. Up to 60 features a branch and
    bound with it follows, so that small problems end as optimal; in larger ones a
    descent on a closer bound (`shared_copies`), after which they are feasible with the
    gap that it leaves. `Limits(gap=…)` ends it earlier. It is left out where samples
    times features, of those that can matter, are more than 2¹⁸. Features that are kept
    out are no part of the problem. The branch and bound knows the limits on groups, the
    bounds of larger problems do not: they hold with them, and leave a larger gap.

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
    with allowed_threads(check_n_jobs(n_jobs)):
        cov = cov.formed(budget, budget.limits.memory)
        choice = SharedChoice.of(cov, rules)
        place = None if given is None else choice.places(given)
        found = _solve(choice, k, r, place, budget)
    if found.status in (Status.OPTIMAL, Status.GAP_LIMIT):
        cov.check_unchanged()  # nothing is proved of data that changed meanwhile
    if found.status is Status.INTERRUPTED and not is_nested_call():
        warn_caller(interruption("solve_shared", [found]))
    return replace(found, rules=rules)


def _solve(
    choice: SharedChoice,
    k: int,
    r: int,
    start: NDArray[np.intp] | None,
    budget: Budget,
) -> SharedSupport:
    cov, heuristic = choice.cov, SharedHeuristic(choice, k, r)
    best = SharedSet.of(cov, heuristic.top(cov.diagonal()), r)
    claim = SharedClaim(np.inf, UNPROVED)
    search: SharedSearch | None = None
    interrupted = True
    with suppress(KeyboardInterrupt):
        starts = heuristic.starts()
        if start is not None:
            scores = np.zeros(cov.n_features)
            scores[start] = 1.0
            starts.insert(0, heuristic.top(scores))
        best = heuristic.best_of([best.support, *starts], budget)
        claim = _closed_form(cov, k, r, budget)
        if not _is_enough(best, claim, budget):
            search = SharedSearch(choice, k, r, best, budget, heuristic)
            search.run()
        interrupted = False
    return _result(choice, k, best, claim, search, budget, interrupted)


def _result(
    choice: SharedChoice,
    k: int,
    best: SharedSet,
    claim: SharedClaim,
    search: SharedSearch | None,
    budget: Budget,
    interrupted: bool,
) -> SharedSupport:
    """Put together what was found and what was proved, by whichever is less."""
    nodes = 0
    if search is not None:
        nodes = search.nodes
        best = max(best, search.best, key=lambda s: s.objective)
        if search.bound < claim.upper_bound:
            name = SEARCH if search.nodes > 1 else DUAL
            claim = SharedClaim(search.bound, name, search.root_claim, nodes)
    objective = best.objective
    bound = max(claim.upper_bound, objective)
    claim = SharedClaim(bound, claim.bound_name, claim.dual, claim.nodes)
    vectors = np.column_stack([with_sign(vector) for vector in best.vectors.T])
    return SharedSupport(
        support=choice.features[best.support],
        components=choice.rows(best.support, vectors),
        variances=best.values,
        objective=objective,
        upper_bound=bound,
        status=_status(objective, bound, budget, interrupted),
        k=k,
        n_features=choice.n_features,
        certificate=claim,
        include=tuple(choice.features[choice.include].tolist()),
        nodes=nodes,
        time=budget.elapsed(),
        total_variance=choice.total_variance,
        feature_names=choice.feature_names,
    )


def bound_shared(
    cov: Covariance,
    k: int,
    r: int,
    start: NDArray[np.intp],
    budget: Budget,
    nodes: int,
    steps: int,
) -> SharedSupport:
    """Bound opt_r(k), without looking far for sets that are better than the one given.

    Parameters
    ----------
    start : array of int
        At most k features; those of the largest variances are added.
    nodes : int
        Of a branch and bound, at the most.
    steps : int
        Of the ascent at its root, at the most.
    """
    scores = cov.diagonal().copy()
    scores[start] = np.inf
    choice = SharedChoice.of(cov)
    heuristic = SharedHeuristic(choice, k, r)
    starts = [heuristic.top(scores), *heuristic.starts()]
    best = heuristic.best_of(starts, budget, exchange=False)
    claim = _closed_form(cov, k, r, budget)
    search = SharedSearch(choice, k, r, best, budget)
    search.run(nodes, steps)
    return _result(choice, k, best, claim, search, budget, False)


def _closed_form(cov: Covariance, k: int, r: int, budget: Budget) -> SharedClaim:
    known = closed_forms(cov, k, r, budget)
    if not known:
        return SharedClaim(np.inf, UNPROVED)
    return SharedClaim(*min((bound, name) for name, bound in known.items()))


def solve_shared_path(
    cov: Covariance | Any, ks: Sequence[int], n_components: int, **options: Any
) -> dict[int, SharedSupport]:
    """Solve `solve_shared` for several k, each from the set of the one before.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    ks : sequence of int
        Ascending or not; each at least `n_components`.
    n_components : int
    **options
        Passed to `solve_shared`; limits are for each k.

    Returns
    -------
    dict of int to SharedSupport
        After Ctrl-C, up to the k that it has stopped, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> path = bs.solve_shared_path(np.diag([4.0, 3.0, 2.0]), [2, 3], 2)
    >>> [round(path[k].objective, 6) for k in path]
    [7.0, 7.0]
    """
    cov = as_covariance(cov)
    path: dict[int, SharedSupport] = {}
    start = options.pop("start", None)
    for k in ks:
        path[k] = solve_shared(cov, k, n_components, start=start, **options)
        start = path[k].support.tolist()
        if path[k].status is Status.INTERRUPTED:  # which is meant for all k
            if not is_nested_call():
                warn_caller(interruption(f"solve_shared_path, at k = {k},", [path[k]]))
            break
    return path


def _is_enough(best: SharedSet, claim: SharedClaim, budget: Budget) -> bool:
    gap = budget.limits.gap
    bound = max(claim.upper_bound, best.objective)
    return is_optimal_gap(best.objective, bound) or (
        gap is not None and is_within_gap(best.objective, bound, gap)
    )


def _status(objective: float, bound: float, budget: Budget, stopped: bool) -> Status:
    if is_optimal_gap(objective, bound):
        return Status.OPTIMAL
    gap = budget.limits.gap
    if gap is not None and is_within_gap(objective, bound, gap):
        return Status.GAP_LIMIT
    if stopped:
        return Status.INTERRUPTED
    return budget.stop_reason() or Status.FEASIBLE


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
