"""The plug-in contract: what a sparse PCA solver is given, returns and promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._validation import FloatArray, check_positive_integer, check_real
from ..result import Status


class SolverError(RuntimeError):
    """A solver failed, or returned something that is not a sparse unit vector."""


@dataclass(frozen=True)
class Limits:
    """When to stop: seconds, nodes, relative gap, bytes. None means no limit."""

    time: float | None = None
    nodes: int | None = None
    gap: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("time", "gap"):
            if getattr(self, name) is not None:
                check_real(getattr(self, name), f"limits.{name}", minimum=0)
        for name in ("nodes", "memory"):
            if getattr(self, name) is not None:
                check_positive_integer(getattr(self, name), f"limits.{name}")


@dataclass(frozen=True)
class Guarantee:
    """objective ≥ OPT / factor(k, d) − error(k, d), for every input of size d.

    Both functions must not decrease in d. `factor` is infinite for a heuristic.
    """

    factor: Callable[[int, int], float]
    error: Callable[[int, int], float]

    def after_blocks(self, k: int, block_size: int, epsilon: float) -> BlockGuarantee:
        """Apply Theorem 3: the guarantee of the framework with threshold ε."""
        m = self.factor(k, block_size)
        return BlockGuarantee(
            factor=m,
            error=self.error(k, block_size) + (k * epsilon / m),
            k=k,
            epsilon=epsilon,
            block_size=block_size,
        )


@dataclass(frozen=True)
class BlockGuarantee:
    """objective ≥ OPT / factor − error on the original matrix, known beforehand."""

    factor: float
    error: float
    k: int
    epsilon: float
    block_size: int

    def __str__(self) -> str:
        if math.isinf(self.factor):
            return (
                "The solver is a heuristic: nothing is promised beforehand about how "
                "close its objective comes to the optimum."
            )
        share = "" if self.factor == 1 else f" / {self.factor:.4g}"
        return (
            f"Theorem 3 promises objective ≥ optimum{share} − {self.error:.4g}: "
            f"entries of at most {self.epsilon:.4g} were ignored between blocks of at "
            f"most {self.block_size} features, which for k = {self.k} costs at most "
            f"k·ε = {self.k * self.epsilon:.4g}."
        )


EXACT = Guarantee(factor=lambda k, d: 1.0, error=lambda k, d: 0.0)
HEURISTIC = Guarantee(factor=lambda k, d: math.inf, error=lambda k, d: 0.0)


@dataclass(frozen=True)
class Solution:
    """A solver's answer on the matrix it was given; `upper_bound` holds there only."""

    x: FloatArray
    upper_bound: float = math.inf
    status: Status = Status.FEASIBLE
    nodes: int = 0


@runtime_checkable
class Solver(Protocol):
    """A sparse PCA algorithm for one matrix.

    `name` is shown in results. `requires_psd` says that indefinite input is refused.
    `solve` may use `incumbent`, an objective reached elsewhere: it may stop as soon as
    it has proved that it cannot do better. It honours `limits` and returns what it has.
    """

    name: str
    guarantee: Guarantee
    requires_psd: bool

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution: ...


class CallableSolver:
    """A plain function f(A, k) → x, seen as a solver. It cannot be stopped midway."""

    requires_psd = False
    guarantee = HEURISTIC

    def __init__(self, function: Callable[[FloatArray, int], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        return Solution(x=self.function(A, k))


def as_solver(solver: Any) -> Solver:
    """Accept a Solver, or a callable in its place."""
    if isinstance(solver, type):
        raise TypeError(
            f"solver = {solver.__name__} is a class; pass an instance, "
            f"{solver.__name__}()."
        )
    if isinstance(solver, Solver):
        return solver
    if callable(solver):
        return CallableSolver(solver)
    raise TypeError(
        f"solver = {solver!r} has no solve(A, k, limits=...) method and is not "
        "callable; pass one of blockspca.solvers or a function f(A, k) -> x."
    )
