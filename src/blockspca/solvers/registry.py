"""Every solver by name: the tests, the benchmarks and the command line read this."""

from __future__ import annotations

from .abess_adapter import Abess
from .base import Solver
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
