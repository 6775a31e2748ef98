"""Runs for the tables, each made once: framework, baseline, certified path."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..blocks.block_search import BlockSearch
from ..blocks.forest import count_above
from ..covariance.covariance import Covariance
from ..datasets.catalogue import PaperSet, is_present
from ..datasets.paper_sets import load_paper_set
from ..heuristics.truncated_power import truncated_power
from ..limits import Limits
from ..pipeline import solve, solve_path
from ..result import Result
from ..scan.lists import scan
from ..solvers import BranchAndBound, Chan
from ..solvers.base import Solution
from ..status import Status

T = TypeVar("T")
Timed = Callable[[Covariance, float], "Result | Solution"]

SHORT = 1.0  # seconds; a run that is shorter is repeated, for the median
REPEATS = 3
TOGETHER = 0.5  # seconds; a few runs of a millisecond would measure the machine
# Of runs of some microseconds, which would never add up to TOGETHER.
MOST_REPEATS = 1000
DELTA = 0.01  # δ of the paper, in units of ‖A‖∞
LONGEST_BOUND = 60.0  # seconds for the bound of a large k
COUNTED_BY_TILES = 25_000  # features up to which all d² entries are looked at
# Of each run of each method, by default and for the quick tables.
SECONDS, QUICK_SECONDS = 60.0, 15.0


@dataclass(frozen=True)
class Settings:
    """What the tables are made with."""

    folder: Path | None = None  #: of the data
    time_limit: float = SECONDS  #: seconds for one run of one method
    quick: bool = False  #: leave out long runs; a note under the table says which
    tell: Callable[[str], None] = lambda text: None  #: gets a line about each run


@dataclass(frozen=True)
class Run:
    """One run of one method: what it found, and in how many seconds."""

    objective: float
    support: NDArray[np.intp]
    seconds: float
    finished: bool
    status: Status
    upper_bound: float = float("inf")
    threshold: float | None = None  #: in units of ‖A‖∞
    largest_block: int | None = None

    @property
    def proved(self) -> bool:
        return self.status is Status.OPTIMAL

    @classmethod
    def of_result(cls, found: Result, seconds: float, norm: float) -> Run:
        """A run of the framework or of a proof; thresholds in units of `norm`."""
        return cls(
            found.objective,
            found.support,
            seconds,
            finished=found.status is not Status.TIME_LIMIT,
            status=found.status,
            upper_bound=found.upper_bound,
            threshold=None if found.threshold is None else found.threshold / norm,
            largest_block=found.blocks.largest if found.blocks else None,
        )

    @classmethod
    def of_solution(cls, found: Solution, seconds: float, cov: Covariance) -> Run:
        """A run of a solver on the whole matrix."""
        return cls(
            float(found.x @ cov.matvec(found.x)),
            np.flatnonzero(found.x),
            seconds,
            finished=found.status is not Status.TIME_LIMIT,
            status=found.status,
            upper_bound=found.upper_bound,
        )


def timed(run: Callable[[], T], repeats: int = REPEATS) -> tuple[float, T]:
    """Return the seconds of a call, the median of several if it is short; its result.

    Calls of milliseconds are repeated until they take `TOGETHER` in all; with repeats=1
    no call is. If the result was interrupted, KeyboardInterrupt is raised again.
    """
    times: list[float] = []
    while True:
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        raise_if_interrupted(getattr(result, "status", None))
        enough = len(times) >= repeats and sum(times) >= TOGETHER
        if times[0] > SHORT or repeats == 1 or enough or len(times) == MOST_REPEATS:
            return statistics.median(times), result


def raise_if_interrupted(status: Status | None) -> None:
    """Raise KeyboardInterrupt if a run ended on Ctrl-C: it is no measurement."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def warm_up() -> None:
    """Compile the kernels of all methods before anything is timed."""
    rng = np.random.default_rng(0)
    cov = Covariance.from_data(rng.normal(size=(20, 60)))
    dense = Covariance.from_matrix(np.cov(rng.normal(size=(20, 12)).T))
    for matrix in (cov, dense):
        for solver in (BranchAndBound(), Chan()):
            solve(matrix, 3, solver=solver, certify=False)
            # Other kernels than those of the blocks.
            solver.solve_covariance(matrix, 3, limits=Limits())
        solve_path(matrix, 3)


class Measurements:
    """Data sets and runs, kept for all tables that use them.

    Every method is timed from a fresh copy of the same validated `Covariance`, as it
    was loaded, to its component, bound and status. Not timed are x'Ax of a solver that
    stands alone, which returns no objective, and ‖A‖∞ for the δ of Algorithm 5. The
    certified path proves all of 1, …, k in its time.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._kept: dict[tuple[Any, ...], Any] = {}

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    def is_present(self, chosen: PaperSet) -> bool:
        return is_present(chosen, self.settings.folder)

    def covariance(self, chosen: PaperSet) -> Covariance:
        """Load a data set; only the last one is kept, some are large."""
        key = ("covariance", chosen.name)
        if key not in self._kept:
            for old in [k for k in self._kept if k[0] == "covariance"]:
                del self._kept[old]
        return self._once(key, lambda: load_paper_set(chosen, self.settings.folder))

    def _measured(
        self, said: str, chosen: PaperSet, k: int, call: Timed, *options: Any
    ) -> Run:
        """Time a method, once for each name and options; `call` gets A and ‖A‖∞."""

        def run() -> Run:
            self.settings.tell(f"{chosen.name}, k = {k}: {said}")
            cov = self.covariance(chosen)
            norm = cov.max_abs()
            # A copy, which does not have the scan of an earlier run.
            seconds, found = timed(lambda: call(copy.copy(cov), norm))
            if isinstance(found, Result):
                return Run.of_result(found, seconds, norm)
            return Run.of_solution(found, seconds, cov)

        return self._once((said, *options, chosen.name, k), run)

    def framework(
        self,
        chosen: PaperSet,
        k: int,
        solver: Any,
        max_block_size: int,
        delta: float = DELTA,
    ) -> Run:
        """Algorithm 5 with the given block solver, d0 and δ / ‖A‖∞, and no more."""
        # The threshold path does not depend on k: if it took too long once, it will
        # again.
        stopped = ("no forest", chosen.name)
        if stopped in self._kept:
            kept: Run = self._kept[stopped]
            return kept

        def call(cov: Covariance, norm: float) -> Result:
            search = BlockSearch(max_block_size=max_block_size, delta=delta * norm)
            return solve(
                cov,
                k,
                solver=solver,
                threshold=search,
                certify=False,
                limits=self._limits(),
            )

        said = f"{solver.name} in blocks of {max_block_size}"
        found = self._measured(said, chosen, k, call, delta)
        if not found.finished and found.threshold is None:
            self._kept[stopped] = found
        return found

    def alone(self, chosen: PaperSet, k: int, solver: Any) -> Run:
        """The baseline: the solver on the whole matrix."""

        def call(cov: Covariance, norm: float) -> Solution:
            return solver.solve_covariance(cov, k, limits=self._limits())

        return self._measured(f"{solver.name} alone", chosen, k, call)

    def certified(self, chosen: PaperSet, k: int) -> Run:
        """The certified path up to k, proved on the original matrix."""

        def call(cov: Covariance, norm: float) -> Result:
            return solve_path(cov, k, limits=self._limits())[k]

        run = self._measured("certified path", chosen, k, call)
        return replace(run, finished=run.proved)

    def power_steps(self, chosen: PaperSet, k: int) -> Run:
        """Truncated power iteration on the whole matrix, for k in the hundreds."""

        def call(cov: Covariance, norm: float) -> Solution:
            return truncated_power(cov, k, limits=self._limits(), polish=False)

        return self._measured("power steps", chosen, k, call)

    def bounded(self, chosen: PaperSet, k: int) -> Run:
        """`solve` for a large k: the best component and the best bound in its time."""
        limits = Limits(time=min(LONGEST_BOUND, self.settings.time_limit))
        return self._measured(
            "bound", chosen, k, lambda cov, _: solve(cov, k, limits=limits)
        )

    def zeros(self, chosen: PaperSet, threshold: float) -> float:
        """The share of zeros of A^ε in per cent, ε in units of ‖A‖∞."""
        cov = self.covariance(chosen)
        key = ("zeros", chosen.name, threshold)
        share = self._once(key, lambda: zero_share(cov, threshold * cov.max_abs()))
        return 100 * share

    def _limits(self) -> Limits:
        return Limits(time=self.settings.time_limit)


def zero_share(cov: Covariance, epsilon: float) -> float:
    """Return the share of entries with |A_ij| ≤ ε: the zeros of A^ε."""
    d = cov.n_features
    if d > COUNTED_BY_TILES:
        return 1 - count_above(cov, scan(cov, 64), epsilon) / d**2
    zeros = 0
    for i0, _, j0, _, tile in cov.tiles():
        count = int(np.count_nonzero(np.abs(tile) <= epsilon))
        # Tiles are of the upper half.
        zeros += count if i0 == j0 else 2 * count
    return zeros / d**2


def jaccard(a: NDArray[np.intp], b: NDArray[np.intp]) -> float:
    """Return |a ∩ b| / |a ∪ b|."""
    return len(np.intersect1d(a, b)) / len(np.union1d(a, b))
