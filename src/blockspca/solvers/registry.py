"""Every solver by name, and what may be passed in place of a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._validation import FloatArray
from .abess_adapter import Abess
from .base import Solution, Solver
from .branch_and_bound import BranchAndBound
from .chan import Chan
from .convex_relaxation import ConvexRelaxation
from .covariance_thresholding import CovarianceThresholding
from .diagonal_thresholding import DiagonalThresholding
from .elastic_net import ElasticNet
from .exhaustive import Exhaustive
from .generalized_power import GeneralizedPower
from .greedy import Greedy
from .l1_integer_program import L1IntegerProgram
from .local_search import LocalSearch
from .low_rank import LowRank
from .mixed_integer_qp import MixedIntegerQP
from .mixed_integer_sdp import MixedIntegerSDP
from .projection import Projection
from .semidefinite_relaxation import SemidefiniteRelaxation
from .sklearn_adapters import ScikitLearnMiniBatchSparsePCA, ScikitLearnSparsePCA
from .subexponential_search import SubexponentialSearch
from .template import BaseSolver, SolverRun
from .truncated_power import TruncatedPower

SOLVERS: dict[str, type[Solver]] = {
    "abess": Abess,
    "branch-and-bound": BranchAndBound,
    "chan": Chan,
    "convex-relaxation": ConvexRelaxation,
    "covariance-thresholding": CovarianceThresholding,
    "diagonal-thresholding": DiagonalThresholding,
    "elastic-net": ElasticNet,
    "exhaustive": Exhaustive,
    "generalized-power": GeneralizedPower,
    "greedy": Greedy,
    "l1-integer-program": L1IntegerProgram,
    "local-search": LocalSearch,
    "low-rank": LowRank,
    "mixed-integer-qp": MixedIntegerQP,
    "mixed-integer-sdp": MixedIntegerSDP,
    "projection": Projection,
    "semidefinite-relaxation": SemidefiniteRelaxation,
    "sklearn": ScikitLearnSparsePCA,
    "sklearn-minibatch": ScikitLearnMiniBatchSparsePCA,
    "subexponential-search": SubexponentialSearch,
    "truncated-power": TruncatedPower,
}


class CallableSolver(BaseSolver):
    """A plain function f(A, k) → x, which limits and Ctrl-C cannot stop."""

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
