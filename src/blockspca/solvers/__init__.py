"""Sparse PCA algorithms for one matrix, a file each, with a common interface."""

from .abess_adapter import Abess
from .base import EXACT, HEURISTIC, Guarantee, Limits, Solution, Solver, SolverError
from .branch_and_bound import BranchAndBound
from .chan import Chan
from .convex_relaxation import ConvexRelaxation
from .covariance_thresholding import CovarianceThresholding
from .diagonal_thresholding import DiagonalThresholding
from .elastic_net import ElasticNet
from .exhaustive import Exhaustive
from .generalized_power import GeneralizedPower, L0Penalty, L1Penalty
from .greedy import Greedy
from .l1_integer_program import L1IntegerProgram
from .local_search import LocalSearch
from .low_rank import LowRank
from .mixed_integer_qp import MixedIntegerQP
from .mixed_integer_sdp import MixedIntegerSDP
from .projection import Projection
from .registry import SOLVERS, CallableSolver, as_solver
from .semidefinite_relaxation import SemidefiniteRelaxation
from .sklearn_adapters import ScikitLearnMiniBatchSparsePCA, ScikitLearnSparsePCA
from .subexponential_search import SubexponentialSearch
from .template import BaseSolver, SolverRun
from .truncated_power import TruncatedPower

__all__ = [
    "EXACT",
    "HEURISTIC",
    "SOLVERS",
    "Abess",
    "BaseSolver",
    "BranchAndBound",
    "CallableSolver",
    "Chan",
    "ConvexRelaxation",
    "CovarianceThresholding",
    "DiagonalThresholding",
    "ElasticNet",
    "Exhaustive",
    "GeneralizedPower",
    "Greedy",
    "Guarantee",
    "L0Penalty",
    "L1IntegerProgram",
    "L1Penalty",
    "Limits",
    "LocalSearch",
    "LowRank",
    "MixedIntegerQP",
    "MixedIntegerSDP",
    "Projection",
    "ScikitLearnMiniBatchSparsePCA",
    "ScikitLearnSparsePCA",
    "SemidefiniteRelaxation",
    "Solution",
    "Solver",
    "SolverError",
    "SolverRun",
    "SubexponentialSearch",
    "TruncatedPower",
    "as_solver",
]
