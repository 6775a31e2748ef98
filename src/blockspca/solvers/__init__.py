"""Sparse PCA algorithms for one matrix, one a file, all behind one contract."""

from .adapters import CallableSolver, as_solver
from .base import EXACT, HEURISTIC, Guarantee, Limits, Solution, Solver, SolverError
from .exhaustive import Exhaustive
from .greedy import Greedy
from .local_search import LocalSearch
from .registry import SOLVERS
from .truncated_power import TruncatedPower

__all__ = [
    "EXACT",
    "HEURISTIC",
    "SOLVERS",
    "CallableSolver",
    "Exhaustive",
    "Greedy",
    "Guarantee",
    "Limits",
    "LocalSearch",
    "Solution",
    "Solver",
    "SolverError",
    "TruncatedPower",
    "as_solver",
]
