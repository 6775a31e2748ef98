"""The whole pipeline on one screen: covariance → blocks → solver → proof → result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ._kernels.loading import times_cut_short
from ._messages import interruption
from ._validation import check_flag, check_n_jobs, check_seed, check_sparsity
from ._warnings import is_nested_call, warn_caller
from .blocks.block_solve import is_plug_in
from .blocks.framework import solve_blocks
from .blocks.power_steps import improved_by_power_steps, with_support
from .blocks.strategies import ThresholdStrategy, as_strategy
from .bounds.closed_form import MOMENT, ObviousBounds
from .certificate import restated
from .certify.provers import ProofOptions, choose_prover
from .constraint_rules import Rules
from .constraints import Constraints, checked, feature_indices
from .covariance.covariance import Covariance, as_covariance, refuse_constant
from .covariance.formed import formed_or_interrupted
from .limits import Budget, Limits, as_limits
from .numerics.linalg import on_support
from .numerics.threads import allowed_threads
from .progress import Listener, as_listener
from .proof_file import Proof
from .proof_settings import DEFAULT_SETTINGS, Prover
from .result import Price, Result
from .solvers.base import Solver
from .solvers.local_search import LocalSearch
from .solvers.registry import as_solver
from .solvers.truncated_power import TruncatedPower
from .sparsity_path import SparsityPath, known
from .status import PROVED, Status, status_of_gap

#: Of every proof; the one place where another choice would be made.
SETTINGS = DEFAULT_SETTINGS

#: Seconds for bounds of a run without proof: blocks of the paper's sets take longer.
AT_NO_COST = 0.01
#: The same of its searches, which take less than power steps then.
NODES_AT_NO_COST = 1000


def solve(
    cov: Covariance | Any,
    k: int | float,
    *,
    solver: Solver | Callable[..., Any] | str | None = None,
    threshold: ThresholdStrategy | float | str | None = None,
    certify: bool = True,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
    progress: Listener | bool | None = None,
    constraints: Constraints | None = None,
    start: Sequence[int | str] | np.ndarray | None = None,
    proof: bool = False,
) -> Result:
    """Solve max x'Ax over unit vectors x with at most k nonzeros, with a proof.

    The blocks of the thresholded matrix find a component; the certified path then
    proves on the original matrix that there is none better, or finds it.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k : int or float
        How many features the component may use; 0.05 is a share of all features.
    solver : Solver, name or callable f(A, k) -> x, optional
        The algorithm for a block, or its name in `blockspca.solvers.SOLVERS`. By
        default `LocalSearch()`, whose cost grows with k³, and `TruncatedPower()` for k
        above 30.
    threshold : strategy, name or float, optional
        How the blocks are chosen: `BlockSearch()` ("search"), by default;
        `FixedThreshold(eps)`, for which a number is short; `NoiseThreshold()`
        ("noise").
    certify : bool
        False stops after the blocks: the framework of the paper and, unless a solver or
        a threshold is given, power steps on A from there; no proof.
    limits : Limits or float, optional
        Time, nodes, gap and memory for the whole call; a number is seconds. When one
        is reached, or on Ctrl-C, the result holds the best solution and bound so far;
        a warning says what Ctrl-C has left unproved.
    n_jobs : int, optional
        Most blocks solved at a time (joblib), most threads of the scan, of a proof and
        of the direction dual, and most threads of BLAS: with 1, one core does all the
        work. −1 is all cores. By default blocks, and nodes of a proof, are taken one
        at a time, while the scan uses all cores, and the duals and BLAS as many threads
        as BLAS has. The answer is the same for every value; under a limit on time two
        threads get further, with the chain on one and the duals on the other.
    rng : int or Generator, optional
        For solvers that draw random numbers; 0 by default.
    progress : bool or callable, optional
        True shows a log with a progress bar; a callable gets an `Event`. By default a
        terminal or notebook shows a line after five seconds; False shows nothing.
    constraints : Constraints, optional
        What the component must be besides sparse: features in or out, so many of a
        group, no negative loading. The proof is then for the constrained problem, and
        `Result.price` says what the constraints cost. Solved by the certified path, so
        that solver and threshold do not go with it.
    start : names or indices of features, optional
        A support to start from, such as yesterday's, of at most k features.
    proof : bool
        Keep what a proof is written from that anybody can check without this library;
        see `Result.write_proof`. Until it is written the result holds on to `cov`.

    Examples
    --------
    >>> import blockspca as bs
    >>> result = bs.solve([[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]], k=2)
    >>> result.support, round(result.objective, 6), result.status.value
    (array([0, 1]), 3.0, 'optimal')
    """
    budget = Budget(as_limits(limits))  # first of all: the first call imports a lot
    cut_short = times_cut_short()
    from .certify.proof_log import check_recordable, recorded, recording_limits

    cov = as_covariance(cov)
    refuse_constant(cov)
    k = check_sparsity(k, cov.n_features)
    chosen = as_solver(_default_solver(k) if solver is None else solver)
    strategy = as_strategy(threshold)
    certify = check_flag(certify, "certify")
    n_jobs, seed = check_n_jobs(n_jobs), check_seed(rng)
    given = _check_start(start, cov, k)
    if check_flag(proof, "proof"):
        check_recordable(cov, certify)
    is_default = solver is None and threshold is None
    rules = _as_rules(constraints, cov, k, is_default)
    with (
        allowed_threads(n_jobs),
        as_listener(progress) as callback,
        budget.ending() as inside,
    ):
        with budget.reading() as reading:
            if rules is None:
                cov, callback = formed_or_interrupted(cov, reading, callback)
            else:
                cov = cov.formed(reading, reading.limits.memory)
        run = _Run(cov, inside, given, n_jobs, callback)
        if rules is not None:
            result = _solve_constrained(run, k, rules, certify)
        elif is_default and certify and not _are_blocks_worth_it(cov, k):
            result = run.proved(k, given)
        else:
            result = _solve_by_blocks(run, k, chosen, strategy, seed, certify)
            if is_default and not certify:
                result = run.improved(result)
    if result.status in PROVED and not _is_known_unchanged(cov):
        result = _of_unread_data(result)
    _tell_of_compilation(cut_short, [result])
    if result.status is Status.INTERRUPTED and not is_nested_call():
        warn_caller(interruption("solve", [result]))
    if proof:
        record = partial(recorded, cov, [result], recording_limits(budget))
        return replace(result, proof=Proof.deferred(record))
    return result


def _is_known_unchanged(cov: Covariance) -> bool:
    """Refuse data that changed meanwhile; False if Ctrl-C ended the look at them.

    It reads all data once more, if they are read in place.
    """
    try:
        cov.check_unchanged()
    except KeyboardInterrupt:
        return False
    return True


def _of_unread_data(result: Result) -> Result:
    """What was found, of data that may have changed: nothing is called proved."""
    message = "interrupted before the data were read again, which may have changed"
    return replace(restated(result, status=Status.INTERRUPTED), message=message)


@dataclass(frozen=True)
class _Run:
    """What the steps of one call share; `start` may be empty."""

    cov: Covariance
    budget: Budget
    start: list[int]
    n_jobs: int | None
    callback: Listener

    def options(self, prover: Prover = Prover.CHAIN) -> ProofOptions:
        return ProofOptions(prover, SETTINGS, self.n_jobs, self.callback)

    def certified(
        self, k_min: int, k_max: int, incumbents: Mapping[int, list[int]]
    ) -> Mapping[int, Result]:
        """Prove k_min, …, k_max in the time that is left."""
        from .certify.results import certified_results

        return certified_results(
            self.cov,
            range(k_min, k_max + 1),
            self.budget.left(),
            {k: support for k, support in incumbents.items() if support},
            self.options(
                choose_prover(
                    self.cov,
                    k_min,
                    k_max,
                    SETTINGS,
                    timed=self.budget.limits.time is not None,
                )
            ),
        )

    def improved(self, found: Result) -> Result:
        """Improve what blocks found, without a proof, in less time than that takes.

        By the chain with few nodes, which ends in a moment where the proof does; else
        by power steps.
        """
        from .certify.results import certified_results

        cov, k, known = self.cov, found.k, self.start
        if found.status is not Status.FEASIBLE or cov.dask_source() is not None:
            return found  # of dask arrays every step is a pass over the data
        if k < SETTINGS.single_k_from:
            limits, begun = self.budget.left(), {k: _better(cov, found, known)}
            limits = replace(limits, nodes=min(NODES_AT_NO_COST, limits.nodes or 2**62))
            walked = certified_results(
                cov, range(k, k + 1), limits, begun, self.options()
            )[k]
            known = walked.support.tolist()
            if walked.status not in (Status.FEASIBLE, Status.NODE_LIMIT):
                stopped = None if walked.status in PROVED else walked.status
                return with_support(cov, found, known, self.budget, stopped)
        return improved_by_power_steps(cov, found, known, self.budget)

    def proved(self, k: int, incumbent: list[int]) -> Result:
        """Prove one k; its time is that of the whole call."""
        result = self.certified(k, k, {k: incumbent})[k]
        return replace(result, time=self.budget.elapsed())


def _solve_by_blocks(
    run: _Run,
    k: int,
    solver: Solver,
    strategy: ThresholdStrategy,
    seed: int,
    certify: bool,
) -> Result:
    """Find a component in blocks and, if it is to be certified, prove it."""
    found = solve_blocks(
        run.cov,
        k,
        solver,
        strategy,
        run.budget.left(),
        n_jobs=run.n_jobs,
        seed=seed,
        callback=run.callback,
    )
    run.budget.nodes = found.nodes
    if not certify:
        return _clipped(run, found, AT_NO_COST)
    if found.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
        if np.isfinite(found.upper_bound):
            return _clipped(run, found, MOMENT)
        return _before_any_block(run.cov, found)
    proved = run.proved(k, _better(run.cov, found, run.start))
    beaten = ""
    if is_plug_in(solver) and proved.support.tolist() != found.support.tolist():
        beaten = (
            f"This is not the component of solver {solver.name!r}, whose features "
            f"reach {found.objective:.6g}: the proof found a better one."
        )
    return replace(
        proved,
        threshold=found.threshold,
        blocks=found.blocks,
        visits=found.visits,
        guarantee=found.guarantee,
        solver=found.solver,
        message=" ".join(filter(None, (found.message, beaten, proved.message))),
        nodes=found.nodes + proved.nodes,
        timings={**found.timings, **proved.timings},
    )


def _as_rules(
    constraints: Constraints | None, cov: Covariance, k: int, is_default: bool
) -> Rules | None:
    """Check constraints, which go with the solver and the threshold by default only."""
    if constraints is None:
        return None
    if not is_default:
        raise ValueError(
            "constraints with a solver or a threshold: blocks do not know them; "
            "leave solver and threshold out."
        )
    return checked(constraints, cov.n_features, cov.feature_names, k)


def _check_start(start: Any, cov: Covariance, k: int) -> list[int]:
    """Check a support to start from; an empty one is none."""
    if start is None:
        return []
    given = feature_indices(start, cov.n_features, cov.feature_names, "start")
    if len(given) > k:
        raise ValueError(
            f"start has {len(given)} features for k = {k}; pass at most k."
        )
    return list(given)


def _better(cov: Covariance, found: Result, given: list[int]) -> list[int]:
    """The better of the support of the blocks and one to start from."""
    if given and on_support(cov, given)[1] > found.objective:
        return given
    return found.support.tolist()


def _solve_constrained(run: _Run, k: int, rules: Rules, certify: bool) -> Result:
    """Solve under constraints, and without them for the price."""
    from .certify.constrained import solve_constrained

    cov, budget = run.cov, run.budget
    # The price needs both problems; and where the component without constraints keeps
    # them, all is proved at once.
    half = budget.of_a_call(1 / 2)
    free = solve(
        cov, k, certify=certify, limits=half, n_jobs=run.n_jobs, start=run.start
    )
    budget.nodes += free.nodes
    left = budget.left()
    if free.status is Status.INTERRUPTED:  # what is known at once, and no more
        left = replace(left, time=0.0)
    result = solve_constrained(
        cov,
        k,
        rules,
        left,
        replace(run.options(), prove=certify),
        start=run.start,
        free=free,
    )
    price = Price(
        free.objective, free.upper_bound, result.objective, result.upper_bound
    )
    if free.status is Status.INTERRUPTED:
        result = restated(result, status=free.status)
    return replace(
        result,
        price=price,
        nodes=free.nodes + result.nodes,
        time=budget.elapsed(),
        timings={"without constraints": free.time, **result.timings},
    )


def _clipped(run: _Run, found: Result, seconds: float) -> Result:
    """Report no bound of blocks above the obvious ones of so many seconds."""
    value, name = ObviousBounds(run.cov, seconds).least(found.k)
    if not value < found.upper_bound:
        return found
    # What was reached is a bound as good as one that rounding left below it.
    bound = max(value, found.objective)
    stopped = None if found.status is Status.FEASIBLE else found.status
    status = status_of_gap(
        found.objective, bound, run.budget.limits.gap, stopped, keep_interrupt=True
    )
    return replace(found, upper_bound=bound, bound_name=name, status=status)


def _before_any_block(cov: Covariance, found: Result) -> Result:
    """Return what the variances say, for a run that was stopped at its start."""
    from .certify.results import result_from_variances

    known = result_from_variances(cov, found.k, found.status)
    if known.objective < found.objective:
        return found
    return replace(known, message=found.message, nodes=found.nodes, time=found.time)


def solve_path(
    cov: Covariance | Any,
    k_max: int | float,
    *,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
    progress: Listener | bool | None = None,
    constraints: Constraints | None = None,
    start: Sequence[int | str] | np.ndarray | None = None,
    proof: bool = False,
) -> SparsityPath:
    """Solve for every k = 1, 2, …, k_max, each with a proof on the original matrix.

    What is proved for k − 1 makes the proof for k short, so the whole path costs little
    more than its last value.

    Every k is proved by that chain. Only k_max, from 30 on, is also proved by itself,
    by how many features each block can give and by searches of the duals. `solve` does
    that for a k below 30, too, from 15 on, or if at most 1000 features vary or time is
    limited, and for every other k; above 500 it has no chain. So it may close a gap
    that a path has left below k_max.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    k_max : int
    limits : Limits, optional
        For the whole path. With a gap, each k is proved to that gap only, which is much
        cheaper. A k that cannot be settled passes its bound on, and the path goes on.
    n_jobs : int, optional
        Most threads, of the scan, of a proof, of the direction dual and of BLAS, as in
        `solve`. The answer is the same for every value.
    progress : bool or callable, optional
        As in `solve`.
    constraints : Constraints, optional
        As in `solve`, for every k. The path begins where all features to include have
        a place.
    start : names or indices of features, optional
        A support of at most k_max features to start from.
    proof : bool
        As in `solve`; see `SparsityPath.write_proof`.

    Examples
    --------
    >>> import blockspca as bs
    >>> path = bs.solve_path([[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]], k_max=3)
    >>> [result.support.tolist() for result in path.values()]
    [[2], [0, 1], [0, 1, 2]]
    >>> path.smallest_k(0.99)
    2
    """
    budget = Budget(as_limits(limits))  # first of all: the first call imports a lot
    cut_short = times_cut_short()
    cov = as_covariance(cov)
    refuse_constant(cov)
    k_max = check_sparsity(k_max, cov.n_features, "k_max")
    n_jobs = check_n_jobs(n_jobs)
    given = _check_start(start, cov, k_max)
    if check_flag(proof, "proof"):
        from .certify.proof_log import check_recordable, recorded, recording_limits

        check_recordable(cov, True)
    with (
        allowed_threads(n_jobs),
        as_listener(progress) as callback,
        budget.ending() as inside,
    ):
        with budget.reading() as reading:
            cov, callback = formed_or_interrupted(cov, reading, callback)
        run = _Run(cov, inside, given, n_jobs, callback)
        if constraints is None:
            results = run.certified(1, k_max, {len(given): given})
        else:
            from .certify.constrained import solve_constrained_path

            results = solve_constrained_path(
                cov, k_max, constraints, inside, run.options(), given
            )
    if not _is_known_unchanged(cov):
        results = {k: _of_unread_data(result) for k, result in results.items()}
    path = SparsityPath(results, cov)
    _tell_of_compilation(cut_short, path.values())
    steps = known(results)
    if any(one.status is Status.INTERRUPTED for one in steps) and not is_nested_call():
        warn_caller(interruption("solve_path", steps, len(steps)))
    if proof:
        # another path: one that held on to itself would be freed late
        values = SparsityPath(results, cov).values()
        record = partial(recorded, cov, values, recording_limits(budget))
        path.proof = Proof.deferred(record)
    return path


def _tell_of_compilation(cut_short: int, results: Iterable[Result]) -> None:
    """Warn where time was up and kernels were compiled: the same call does better."""
    if times_cut_short() == cut_short:  # and no result of a path is made for it
        return
    if any(result.status is Status.TIME_LIMIT for result in results):
        warn_caller(
            "The time was up, and a part of it went into compiling kernels, which "
            "happens once on a machine. Call again, which finds them ready, or run "
            "`blockspca compile` before."
        )


def _are_blocks_worth_it(cov: Covariance, k: int) -> bool:
    """Whether blocks of 2k features cost less than the proof that they start.

    Those of a contrast take every entry of it, and time that its target should have.
    """
    if cov.dominance is not None and not cov.in_memory:
        return False
    return cov.in_memory or k <= SETTINGS.local_search_up_to


def _default_solver(k: int) -> Solver:
    return LocalSearch() if k <= SETTINGS.local_search_up_to else TruncatedPower()
