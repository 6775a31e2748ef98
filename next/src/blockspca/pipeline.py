"""solve and solve_path: supports for a matrix or data, and their proof."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._kernels.compilation import prepare
from .call import Run, Stop, one_call
from .constraints.constraints import Problem, problem_of
from .constraints.features import indices_of
from .constraints.nonnegative import nonnegative_pair
from .covariance.covariance import Covariance, as_covariance
from .limits import Status
from .messages import warn_caller
from .proof.evidence import Sets, renumbered
from .prove.chain import Chain
from .prove.screening import Screening
from .result import Bound, Result
from .sparsity_path import SparsityPath
from .supports.power import ROWS, power_support
from .supports.supports import ROWS as ROWS_TO_TRY
from .supports.supports import Supports
from .validation import Indices, check_flag, check_sparsity

KERNELS = ("screen", "tree")
# From this k on power steps find better sets than swaps: ALLAML standardised, k = 30.
POWER_FROM = 30


def solve(
    cov: Covariance | Any,
    k: int | float,
    *,
    certify: bool = True,
    limits: Any = None,
    n_jobs: int | None = None,
    constraints: Any = None,
    progress: Any = None,
    start: Sequence[int | str] = (),
) -> Result:
    """Find the k-sparse component of most variance, and prove how good it is.

    It maximises x'Ax over unit vectors x with at most k nonzeros.

    Parameters
    ----------
    cov : Covariance, symmetric matrix, or data of shape (n_samples, n_features)
        An array that is not square is data; its columns are centred.
    k : int, or a share of the features below 1
    certify : bool
        False returns a good component and the bounds that cost nothing.
    limits : Limits or float, optional
        A number is seconds. The default is ``Limits(work=30)``, about 30 s of one core;
        ``Limits()`` goes on until the proof is complete. A limit or Ctrl-C returns the
        best component and bound so far; `Result.status` names it.
    n_jobs : int, optional
        Number of cores; None is all.
    constraints : Constraints, optional
    progress : bool or callable, optional
        True writes a log; a callable receives each `Event`.
    start : sequence of indices or names, optional
        Features of a support to start from, at most k.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.pipeline import solve
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    >>> result = solve(A, k=2)
    >>> result.support, round(result.objective, 6), result.status.value
    (array([0, 1]), 3.0, 'optimal')
    """
    cov = as_covariance(cov)
    k = check_sparsity(k, cov.n_features)
    problem = problem_of(cov, constraints, k, is_path=False)
    check_flag(certify, "certify")
    starts = starting_support(start, problem, k, cov)
    prepare(*KERNELS)
    with one_call(limits, n_jobs, progress) as run:
        return results_of(problem, k, run, certify, starts, cov, True)[-1]


def solve_path(
    cov: Covariance | Any,
    k_max: int | float,
    *,
    certify: bool = True,
    limits: Any = None,
    n_jobs: int | None = None,
    constraints: Any = None,
    progress: Any = None,
    start: Sequence[Sequence[int | str]] = (),
) -> SparsityPath:
    """Solve for k = 1, 2, …, k_max; see `solve`.

    With ``include`` the path begins at the number of features to include.

    Parameters
    ----------
    cov, certify, limits, n_jobs, constraints, progress
        As in `solve`; limits are those of the whole path.
    k_max : int, or a share of the features below 1
    start : sequence of supports, optional
        Supports to start from, of at most k_max features each.

    Returns
    -------
    SparsityPath

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.pipeline import solve_path
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    >>> print(solve_path(A, 2))
        k      objective    upper bound        gap  status
        1              2              2          0  optimal
        2              3              3          0  optimal
    """
    cov = as_covariance(cov)
    k_max = check_sparsity(k_max, cov.n_features, "k_max")
    problem = problem_of(cov, constraints, k_max, is_path=True)
    check_flag(certify, "certify")
    if isinstance(start, str) or not isinstance(start, Iterable):
        raise TypeError(
            f"start = {start!r} must be a list of supports, not "
            f"{type(start).__name__}; use for example start=[[0, 1]]."
        )
    starts = [
        support
        for i, each in enumerate(start)
        for support in starting_support(each, problem, k_max, cov, f"start[{i}]")
    ]
    prepare(*KERNELS)
    with one_call(limits, n_jobs, progress) as run:
        results = results_of(problem, k_max, run, certify, starts, cov, not certify)
    return SparsityPath(tuple(results), cov.trace)


def starting_support(
    start: Any, problem: Problem, k: int, whole: Covariance, argument: str = "start"
) -> list[Indices]:
    """Return a list of the part of `start` that obeys the rules, if it is not empty.

    It has positions in the problem.
    """
    features = indices_of(start, whole.n_features, whole.feature_names, argument)
    if len(features) > k:
        raise ValueError(
            f"{argument} has {len(features)} features and must have at most {k}; use "
            "fewer."
        )
    inside = np.flatnonzero(np.isin(problem.features, features))
    if len(inside) == 0:
        return []
    return [problem.rules.first(inside, k)]


def results_of(
    problem: Problem,
    k: int,
    run: Run,
    certify: bool,
    start: Sequence[Indices],
    whole: Covariance,
    with_power: bool,
) -> list[Result]:
    """Return results for all sizes up to k; a limit or Ctrl-C ends the search only.

    A path with proofs needs no power steps, because each support improves the next.
    """
    cov, rules = problem.cov, problem.rules
    screening: Screening | None = None
    supports: Supports | None = None
    chain: Chain | None = None
    try:
        cov = cov.formed(run)
        screening = Screening(cov, k, rules, run)
        # Swaps read all entries of the pool, so a large k gets fewer features.
        first = screening.strongest(max(4 * k, min(10 * k, 100)))
        supports = Supports(cov, k, rules, run, first, start)
        supports.find()
        if with_power and k >= POWER_FROM and rules.is_free:
            rows = screening.unlike_rows(ROWS)
            supports.offer(k, power_support(cov, k, rows, run))
        if not certify:  # a proof improves the supports by itself
            for q in range(max(2, len(rules.root)), min(k + 1, POWER_FROM)):
                run.check()
                supports.follow(q)
                supports.try_rows(q, screening.row_supports(q, ROWS_TO_TRY), 2)
        chain = Chain(cov, k, rules, screening, supports, run)
        if certify:
            chain.advance(math.inf)
    except Stop:
        pass  # the run says why
    except KeyboardInterrupt:
        run.stop(Status.INTERRUPTED)
    if supports is None:
        order = np.argsort(-cov.diagonal(), kind="stable")[:k]
        supports = Supports(cov, k, rules, run, order, start)
    supports.find()
    if chain is None:
        chain = Chain(cov, k, rules, screening, supports, run)
    chain.finish()
    whole.check_unchanged()
    sets = sets_of(problem)
    return [
        result_of(problem, q, chain, supports, run, whole, sets) for q in chain.sizes
    ]


def result_of(
    problem: Problem,
    q: int,
    chain: Chain,
    supports: Supports,
    run: Run,
    whole: Covariance,
    sets: Sets,
) -> Result:
    """Return the result for q, with the features of the whole matrix."""
    features = supports.best[q].features
    x, objective = supports.objective(q)
    bound = chain.bounds[q]
    if bound.value < objective - chain.margin(q, objective):
        warn_caller(
            f"internal error: the bound {bound.value:.12g} ({bound.name}) for k = {q} "
            f"is below {objective:.12g}, which its support reaches; no bound is used. "
            "Please report it.",
            RuntimeWarning,
        )
        bound = Bound()
    evidence = bound.evidence
    if sets.without:
        evidence = renumbered(evidence, problem.features.tolist())
    if problem.unraised is not None:
        # No checker has the raised matrix, which the evidence is about.
        objective, x = nonnegative_pair(problem.unraised.submatrix(features))
        evidence = ()
    loadings = np.zeros(whole.n_features)
    loadings[problem.features[features]] = x
    return Result(
        loadings,
        problem.features[features],
        objective,
        replace(bound, evidence=evidence),
        q,
        stopped=run.stopped,
        gap_wanted=run.limits.gap,
        work=run.work,
        nodes=chain.nodes[q],
        feature_names=whole.feature_names,
        sets=sets,
        identity=whole.identity,
    )


def sets_of(problem: Problem) -> Sets:
    """Return the rules about sets, with the features of the whole matrix."""
    rules, features = problem.rules, problem.features
    without = np.ones(problem.n_features, dtype=bool)
    without[features] = False
    return Sets(
        without=tuple(np.flatnonzero(without).tolist()),
        include=tuple(features[rules.root].tolist()),
        groups=tuple(
            (int(most), tuple(features[rules.label == g].tolist()))
            for g, most in enumerate(rules.room)
            if most > 0  # the features of other groups are in `without`
        ),
    )
