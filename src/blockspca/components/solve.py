"""Several sparse components, each with a proof for its own problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import interruption
from .._validation import FloatArray, check_count, check_flag, check_n_jobs, pandas_for
from .._warnings import is_nested_call, warn_caller
from ..bound_names import BoundName
from ..certificate import restated
from ..certify.proof_log import recording_limits
from ..certify.verification import Verification
from ..constraints import Constraints
from ..covariance.covariance import Covariance, as_covariance
from ..covariance.formed import formed_or_interrupted
from ..limits import Budget, Limits, as_limits
from ..numerics.threads import allowed_threads
from ..progress import Listener, ProgressLog, as_listener
from ..proof_file import MayHaveProof, Proof
from ..result import Result
from ..status import Status, relative_gap
from .checks import REGRESSION_AGREEMENT
from .in_turn import HALF, Call, chosen_together, in_turn
from .joint import JointProof, adds_plain, joint_claim
from .recording import check_recorded, recorded_apart
from .requests import (
    asked_of,
    check_constraints,
    check_sparsities,
    check_starts,
    check_sweeps,
)
from .scheme import Scheme, as_given, completed
from .scheme_names import as_scheme
from .schemes import in_turn_only, scheme_name
from .shown import as_html, as_repr, as_rows, as_text
from .sweep_goal import swept_again
from .undominated import look_is_due, unless_dominated
from .variance import adjusted_variance, predicted, score_covariance
from .verified import given, verified

_JOINT = ("joint_upper_bound", "joint_bound_name", "joint_proof")


@dataclass(frozen=True, repr=False)
class Components(MayHaveProof):
    """Sparse components x_1, …, x_m with what is known about each and about the set.

    Attributes
    ----------
    results : tuple of Result
        Component j solves its own problem, `problem(j, cov)`: the matrix without what
        the earlier components have used or explained. Its objective, upper bound,
        status and certificate are claims about that problem. A bound named "earlier
        component" is that of an earlier one, which holds for it too.
    components : array of shape (n_components, n_features)
        The unit vectors x_j, as rows.
    explained_variance : array of shape (n_components,)
        x_j'Ax_j on the original matrix. Counts variance twice where scores correlate.
    adjusted_explained_variance : array of shape (n_components,)
        The variance of score j that scores 1, …, j − 1 do not explain by regression;
        nothing is counted twice. Never more than PCA with as many components.
    total_variance : float
        The trace of A.
    joint_upper_bound : float
        Proved: no components with the `sparsities`, however chosen, have a larger sum
        of adjusted variances. Where the scheme's are orthogonal: no orthogonal ones
        have a larger sum of variances x_j'Ax_j, nor of adjusted ones. See
        `variance.joint_upper_bound` for the proof.
    joint_bound_name : str
        Which argument gave it; the names are in `variance.joint_upper_bound`.
    scheme : Scheme
    r2 : float
        The share of the variance of all features that linear regression on the scores
        predicts, tr(AV(V'AV)⁺V'A) / tr A. At most that of PCA with as many components.
        NaN in a set that was stored before this was computed.
    first : Result or None
        Where components were solved again, given the others (`sweeps`): the first one
        before that. It is certified for A itself, which the joint bound needs. The
        problem of each of the `results` then is what *all* others leave of A.
    in_turn : Components or None
        Where this set was taken because it dominates the components found one after the
        other (`ResidualDeflation(unless_dominated=…)`): those, with their certificates.
    joint_proof : SharedSupport, JointEntries, JointSplit or None
        What the joint bound rests on, unless it is in closed form.
    proof : Proof or None
        What `write_proof` writes, if `solve_components` was told to record it.
    is_contrast : bool
        Whether A is a target less a background: then there is no total variance that
        anything could be a share of, and shares are NaN.
    sparsities : tuple of int
        The k of each component, as asked for; that of its result is smaller where it is
        left fewer features, as with disjoint supports. Empty in a set that was stored
        before this was, whose joint bound is for the k of the results.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[4, 3, 0, 1], [3, 4, 0, 1], [0, 0, 3, 2], [1, 1, 2, 3]]
    >>> found = bs.solve_components(A, 2, 2)
    >>> len(found), [support.tolist() for support in found.supports]
    (2, [[0, 1], [2, 3]])
    >>> found[1].status, found.explained_variance.round(6)
    (<Status.OPTIMAL: 'optimal'>, array([7.      , 4.994917]))
    >>> all(check.complete for check in found.verify(A))
    True
    """

    _call = "solve_components"

    # The three fields of the joint bound are computed when one is first read, and are
    # not there before: see `__getattr__`.
    results: tuple[Result, ...]
    components: FloatArray
    explained_variance: FloatArray
    adjusted_explained_variance: FloatArray
    total_variance: float
    joint_upper_bound: float
    joint_bound_name: str
    scheme: Scheme
    r2: float = float("nan")
    first: Result | None = None
    joint_proof: JointProof | None = field(default_factory=lambda: None)
    proof: Proof | None = None
    is_contrast: bool = False
    in_turn: Components | None = None
    sparsities: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """Compute the joint bound, which takes as long as some components do.

        In what the call has left of its limits. What interrupts it leaves it to be
        asked for again.
        """
        if name not in _JOINT or "_joint_claim" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        claim = vars(self)["_joint_claim"]()
        vars(self).update(zip(_JOINT, claim, strict=True))
        del vars(self)["_joint_claim"]
        return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all fields, without the data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Result:
        return self.results[self._checked(index)]

    def _checked(self, index: int) -> int:
        """Return the index counted from the start, or say how many there are."""
        try:
            return range(len(self))[index]
        except IndexError:
            raise IndexError(
                f"index = {index} is outside 0..{len(self) - 1}; there are {len(self)} "
                "component(s)."
            ) from None

    @property
    def supports(self) -> tuple[NDArray[np.intp], ...]:
        """The features of each component, ascending."""
        return tuple(result.support for result in self.results)

    @property
    def upper_bounds(self) -> FloatArray:
        """Proved for each component's own problem."""
        return np.array([result.upper_bound for result in self.results])

    @property
    def gaps(self) -> FloatArray:
        return np.array([result.gap for result in self.results])

    @property
    def statuses(self) -> tuple[Status, ...]:
        return tuple(result.status for result in self.results)

    @property
    def explained_variance_ratio(self) -> FloatArray:
        """Adjusted variance over total variance; zeros if nothing varies.

        NaN if there is no such total, of a contrast or a negative trace.
        """
        if not self.has_shares:
            return np.full(len(self), np.nan)
        if self.total_variance == 0:
            return np.zeros(len(self))
        return self.adjusted_explained_variance / self.total_variance

    @property
    def has_shares(self) -> bool:
        """Whether there is a total variance that something could be a share of."""
        return not (self.is_contrast or self.total_variance < 0)

    @property
    def joint_total(self) -> float:
        """What the joint bound is about: the sum of the variances x_j'Ax_j.

        Of `DisjointSupports` and `Orthogonalised`; of the adjusted ones otherwise.
        """
        if adds_plain(completed(self.scheme)):
            return float(self.explained_variance.sum())
        return float(self.adjusted_explained_variance.sum())

    @property
    def joint_gap(self) -> float:
        """(joint_upper_bound − joint_total) / joint_total."""
        return relative_gap(self.joint_total, self.joint_upper_bound)

    def problem(self, index: int, cov: Covariance | Any) -> Covariance:
        """Return the matrix that component `index` is certified for.

        It is computed from the original matrix `cov` on demand, and not kept here.
        """
        index = self._checked(index)
        cov = as_covariance(cov).formed()
        return self.scheme.problem(cov, given(self, index, cov))

    def verify(self, cov: Covariance | Any, **options: Any) -> tuple[Verification, ...]:
        """Check every component's certificate against its own problem, and the set.

        Of the set: that supports are disjoint, or components orthogonal, where the
        scheme says so; what they explain; and the joint upper bound. What was found of
        it is said with the last component.

        Parameters
        ----------
        cov : Covariance or symmetric matrix
            The original matrix.
        **options
            Passed to `blockspca.verify`. With `data`, the proof of the components, if
            one was recorded, is replayed in the place of searching again. `max_nodes`
            and `time_limit` are for each component, and for the joint bound.

        Raises
        ------
        VerificationError
            Naming the claim that failed.
        """
        return verified(self, as_covariance(cov).formed(), **options)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict for each component, for tables and files."""
        return as_rows(self)

    def to_frame(self, names: Sequence[Any] | None = None) -> Any:
        """Return the loadings as a pandas DataFrame, features × components.

        Only features that a component uses; their names are the index.

        Parameters
        ----------
        names : sequence, optional
            One for each feature, of any kind; those of the covariance by default.
        """
        pandas = pandas_for("to_frame")
        used = np.flatnonzero(self.components.any(axis=0))
        d = self.components.shape[1]
        if names is None:
            names = self.results[0].feature_names
        elif len(names) != d:
            raise ValueError(
                f"names has {len(names)} value(s) for {d} features; pass one for each."
            )
        labels = used if names is None else [names[i] for i in used.tolist()]
        columns = [f"component {j + 1}" for j in range(len(self))]
        return pandas.DataFrame(
            self.components[:, used].T, index=labels, columns=columns
        )

    def __repr__(self) -> str:
        return as_repr(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        return as_text(self)


def solve_components(
    cov: Covariance | Any,
    k: int | float | Sequence[int | float],
    n_components: int,
    *,
    scheme: Scheme | str | None = None,
    sweeps: int = 0,
    limits: Limits | float | None = None,
    progress: Listener | bool | None = None,
    constraints: Constraints | None = None,
    start: Sequence[Sequence[int | str]] | None = None,
    proof: bool = False,
    **options: Any,
) -> Components:
    """Find several sparse components, each proved for its own problem.

    Component j solves max x'A_j x over k_j-sparse unit vectors, where A_1 = A and A_j
    is what the scheme makes of A after components 1, …, j − 1.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k : int, float or sequence of these
        How many features each component may use; 0.05 is a share of all features.
    n_components : int
    scheme : scheme or str, optional
        `ResidualDeflation()` ("residual") by default, of which there are also
        "residual-disjoint", "predictive" and "auto"; `DisjointSupports()` ("disjoint"),
        `ProjectionDeflation()` ("projection"),
        `Orthogonalised()` ("orthogonal"), `UncorrelatedScores()` ("uncorrelated"),
        `HotellingDeflation()` ("hotelling").
    sweeps : int
        How often every component is solved again, given all others, unless nothing
        improves. The sum of the variances of disjoint or orthogonal components, or of
        the adjusted variances of others, never falls. Component j is then certified
        for what all others leave of A, and not only the earlier ones. Where one adds
        nothing, and others use features that it closes, there are none, and a warning.
    limits : Limits or float, optional
        For all components together; a number is seconds. Each gets an equal share of
        the time and nodes that are left; a sweep that is not the last has half of them,
        and the look for a dominating set ("auto") one of m + 1 parts.
        The gap and the memory apply to each.
    progress : bool or callable, optional
        As in `solve`.
    constraints : Constraints, optional
        As in `solve`, for every component. With disjoint supports nothing can be
        included in more than one, and `Orthogonalised` does not know constraints. The
        joint upper bound is for components that keep them.
    start : sequence of supports, optional
        One for each component, to start from, such as `Components.supports` of before.
    proof : bool
        Keep what proofs are written from that anybody can check without this library,
        a section for each component; see `Components.write_proof`. A scheme of your
        own can have a proof of one component.
    **options
        Passed to `solve` for every component: solver, threshold, certify, n_jobs, rng.
        `n_jobs` holds for what comes after the components as well: with 1, one core
        does all the work. `rng` is for the solvers, and for the sets that a scheme with
        `prediction` tries; sweeps and joint bounds draw with the seed 0 in any case.

    Returns
    -------
    Components
        After Ctrl-C it holds those that were reached, at least one, and a warning says
        how many, and what is proved.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.diag([5.0, 5.0, 3.0, 3.0, 1.0])
    >>> A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 1.0
    >>> found = bs.solve_components(A, k=2, n_components=2)
    >>> [support.tolist() for support in found.supports]
    [[0, 1], [2, 3]]
    >>> found.explained_variance.round(6), round(found.joint_upper_bound, 6)
    (array([6., 4.]), 10.0)
    >>> all(check.complete for check in found.verify(A))
    True
    """
    budget = Budget(as_limits(limits))
    n_jobs = check_n_jobs(options.get("n_jobs"))
    sweeps = check_count(sweeps, "sweeps")
    cov = as_covariance(cov)
    scheme = as_scheme(scheme)
    sparsities = check_sparsities(k, n_components, cov, scheme)
    if constraints is not None:
        check_constraints(constraints, cov, sparsities, scheme)
        options["constraints"] = constraints
    check_sweeps(sweeps, scheme)
    starts = check_starts(start, cov, sparsities)
    if check_flag(proof, "proof"):
        check_recorded(cov, scheme, len(sparsities), options)
    with (
        allowed_threads(n_jobs),
        as_listener(progress) as listener,
        budget.ending(),
    ):
        with budget.reading() as reading:
            cov, tell = formed_or_interrupted(cov, reading, listener)
        call = Call(cov, scheme, sparsities, budget, tell, options)
        found = _found(call, starts, sweeps)
        if isinstance(listener, ProgressLog):
            listener.returned = found.results
    if Status.INTERRUPTED in found.statuses and not is_nested_call():
        warn_caller(interruption("solve_components", found.results, len(sparsities)))
    if not proof:
        return found
    left, is_swept = recording_limits(budget), found.first is not None
    record = partial(recorded_apart, cov, found.results, left, found.scheme, is_swept)
    return _with(found, proof=Proof.deferred(record))


def _found(call: Call, starts: list[list[int]], sweeps: int) -> Components:
    """Solve for the components, and put together what is known of them."""
    cov, budget = call.cov, call.budget
    if call.scheme.prediction:
        results = chosen_together(call, starts)
    else:
        part = HALF if sweeps else 1.0
        if look_is_due(call, sweeps):  # the look and its bounds are one part of m + 1
            part = len(call.sparsities) / (len(call.sparsities) + 1)
        results = in_turn(call, starts, part)
    scheme, results, replaced = unless_dominated(call, results, sweeps)
    # After Ctrl-C there is no second look at any component, and one alone has no
    # others that it could be solved given.
    alone, is_swept = results[0], False
    if sweeps and len(results) > 1 and results[-1].status is not Status.INTERRUPTED:
        try:
            results, is_swept = swept_again(call, results, sweeps)
        except KeyboardInterrupt:  # between two solves: those found in turn remain
            results = [*results[:-1], restated(results[-1], status=Status.INTERRUPTED)]
    first = alone if is_swept else None
    named = [placed(r, j, scheme, is_swept) for j, r in enumerate(results)]
    prove, ks = bool(call.options.get("certify", True)), call.sparsities
    n_jobs = call.options.get("n_jobs")
    found = collect(
        cov, tuple(named), scheme, budget, first, ks, prove=prove, n_jobs=n_jobs
    )
    if not replaced:
        return found
    return _with(found, in_turn=_replaced(found, cov, replaced, budget))


def _with(found: Components, **changes: Any) -> Components:
    """The components with other fields; a joint bound may still be to compute."""
    other = object.__new__(Components)
    vars(other).update(vars(found) | changes)
    return other


def interrupted_jointly(found: Components) -> Components:
    """The components after Ctrl-C in their joint bound: its closed forms remain."""
    *others, last = found.results
    results = (*others, restated(last, status=Status.INTERRUPTED))
    claim = partial(vars(found)["_joint_claim"], prove=False)
    return _with(found, results=results, _joint_claim=claim)


def placed(result: Result, index: int, scheme: Scheme, swept: bool) -> Result:
    """Return the result with a certificate that says to which problem it belongs."""
    if result.certificate is None or (index == 0 and not swept):
        return result
    return restated(result, component=index + 1, scheme=scheme_name(scheme, swept))


def _replaced(
    found: Components, cov: Covariance, results: list[Result], budget: Budget
) -> Components:
    """Return the components found in turn, in whose place others were taken.

    A joint bound with a proof of its own is for all sets with the same sparsities, and
    so for these; others rest on the bounds of the set itself.
    """
    scheme = in_turn_only(completed(found.scheme))
    named = tuple(placed(r, j, scheme, False) for j, r in enumerate(results))
    ks = found.sparsities
    alone = collect(cov, named, scheme, budget, sparsities=ks, prove=False)

    def claim(prove: bool = True) -> tuple[float, str, JointProof | None]:
        own = alone.joint_upper_bound, alone.joint_bound_name, alone.joint_proof
        bound = max(found.joint_upper_bound, alone.joint_total)
        if not prove or found.joint_proof is None or own[0] <= bound:
            return own
        return bound, found.joint_bound_name, found.joint_proof

    return _deferred(_with(alone), claim)


def _deferred(found: Components, claim: Callable[..., Any]) -> Components:
    """The components without their joint bound, which the claim returns if asked."""
    deferred = _with(found, _joint_claim=claim)
    for name in _JOINT:
        vars(deferred).pop(name, None)
    return deferred


def collect(
    cov: Covariance,
    results: tuple[Result, ...],
    scheme: Scheme,
    budget: Budget | None = None,
    first: Result | None = None,
    sparsities: Sequence[int] = (),
    *,
    prove: bool = True,
    n_jobs: int | None = None,
) -> Components:
    """Put results together: what they explain of A, each and jointly.

    `sparsities` are those that were asked for, also of components that were not
    reached; those of the results by default. The joint bound is computed when it is
    read, with what the budget has left now.
    """
    ks = asked_of(results, sparsities)
    budget, scheme = budget or Budget(Limits()), completed(scheme)
    components = np.array([result.x for result in results])
    scores = score_covariance(cov, components)
    adjusted, plain = adjusted_variance(scores), float(np.trace(scores))
    may_prove = prove and results[-1].status is not Status.INTERRUPTED
    may_prove = may_prove and budget.nodes_left > 0
    total = plain if adds_plain(scheme) else float(adjusted.sum())
    limits = budget.left()

    def claim(prove: bool = True) -> tuple[float, str, JointProof | None]:
        cov.check_unchanged()
        with allowed_threads(n_jobs):
            bound, name, proof = joint_claim(
                cov,
                results,
                first,
                scheme,
                (plain, total),
                Budget(limits),
                ks,
                prove=prove and may_prove,
            )
        # Both are sums with rounding; a bound that is lower by more is wrong, and is
        # not to look like a proof.
        if bound < total - REGRESSION_AGREEMENT * np.abs(np.diagonal(scores)).sum():
            warn_caller(
                f"the joint bound by {name}, {bound:.12g}, is below what the "
                f"components have together, {total:.12g}, and is not used; this is a "
                "defect, please report it.",
                RuntimeWarning,
            )
            bound = math.inf
        return max(bound, total), name, proof

    found = Components(
        results=results,
        components=components,
        explained_variance=np.diagonal(scores).copy(),
        adjusted_explained_variance=adjusted,
        total_variance=float(cov.diagonal().sum()),
        joint_upper_bound=math.inf,
        joint_bound_name=BoundName.NONE,
        scheme=as_given(scheme),
        r2=predicted(cov, components),
        first=first,
        is_contrast=cov.is_contrast,
        sparsities=ks,
    )
    return _deferred(found, claim)
