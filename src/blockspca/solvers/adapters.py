"""Things that are not solvers, seen as solvers: a plain function f(A, k) → x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._validation import FloatArray
from .base import Solution, Solver
from .template import BaseSolver, SolverRun


class CallableSolver(BaseSolver):
    """A plain function f(A, k) → x. It cannot be stopped midway."""

    def __init__(self, function: Callable[[FloatArray, int], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        run.adopt(Solution(x=self.function(A, k)))


def as_solver(solver: Any) -> Solver:
    """Accept a Solver, its name, or a callable in its place.

    Examples
    --------
    >>> from blockspca.solvers import as_solver
    >>> as_solver("chan").name
    'chan'
    """
    if isinstance(solver, type):
        raise TypeError(
            f"solver = {solver.__name__} is a class; pass an instance, "
            f"{solver.__name__}()."
        )
    if isinstance(solver, Solver):
        return solver
    if callable(solver):
        return CallableSolver(solver)
    if isinstance(solver, str):
        from .registry import SOLVERS

        if solver in SOLVERS:
            return SOLVERS[solver]()
        raise ValueError(
            f"solver = {solver!r} is not known; pass one of {sorted(SOLVERS)}, a "
            "solver object or a function of (A, k)."
        )
    raise TypeError(
        f"solver = {solver!r} has no solve(A, k, limits=...) method and is not "
        "callable; pass one of blockspca.solvers or a function f(A, k) -> x."
    )
