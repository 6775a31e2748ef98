"""Sparse PCA by block-diagonalization, with a proof of how good the answer is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _moved

__version__ = "0.1.0"

# Public names and the modules they live in, imported when first asked for: importing
# the package is instant, and numba or scikit-learn load only where they are used.
_EXPORTS = {
    "Alternatives": "inspection.alternatives",
    "BlockSearch": "blocks.block_search",
    "BlockStatus": "result",
    "Certificate": "certificate",
    "ChoiceOfComponents": "model_selection.choose_n_components",
    "ChoiceOfK": "model_selection.choose_k",
    "Components": "components",
    "Constraints": "constraints",
    "Covariance": "covariance",
    "CrossValidation": "model_selection.cross_validation",
    "DataChangedError": "covariance.fingerprint",
    "DisjointSupports": "components",
    "Event": "progress",
    "FeatureImportance": "inspection.importance",
    "FixedThreshold": "blocks.strategies",
    "HotellingDeflation": "components",
    "Limits": "limits",
    "NoiseThreshold": "blocks.strategies",
    "Orthogonalised": "components",
    "PermutationReference": "model_selection.choose_k",
    "ProjectionDeflation": "components",
    "ResidualDeflation": "components",
    "RestrictedIsometry": "inspection.restricted_isometry",
    "Result": "result",
    "SharedSupport": "components",
    "SolverError": "solvers.base",
    "SparsePCA": "estimator",
    "SparsityPath": "sparsity_path",
    "Stability": "inspection.stability",
    "Status": "result",
    "ThresholdPath": "blocks.threshold_path",
    "UncorrelatedScores": "components",
    "Verification": "certify.verify",
    "VerificationError": "certify.verify",
    "alternatives": "inspection.alternatives",
    "choose_k": "model_selection.choose_k",
    "choose_n_components": "model_selection.choose_n_components",
    "contrastive": "covariance.contrast",
    "contrastive_path": "inspection.contrast_path",
    "cross_validate": "model_selection.cross_validation",
    "denoise": "blocks.threshold",
    "estimate_noise": "blocks.noise",
    "feature_importance": "inspection.importance",
    "intrinsic_dimension": "blocks.threshold",
    "is_epsilon_approximation": "blocks.threshold",
    "largest_block_size": "blocks.threshold",
    "partition": "blocks.threshold",
    "permutation_reference": "model_selection.choose_k",
    "restricted_isometry": "inspection.restricted_isometry",
    "solve": "pipeline",
    "solve_components": "components",
    "solve_path": "pipeline",
    "solve_shared": "components",
    "solve_shared_path": "components",
    "stability": "inspection.stability",
    "threshold_path": "blocks.threshold_path",
    "verify": "certify.verify",
}
_MODULES = ("datasets", "plotting", "report", "solvers", "tl")

__all__ = ["__version__", *_EXPORTS, *_MODULES]

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import plotting as plotting
    from . import report as report
    from . import solvers as solvers
    from . import tl as tl
    from .blocks.block_search import BlockSearch as BlockSearch
    from .blocks.noise import estimate_noise as estimate_noise
    from .blocks.strategies import FixedThreshold as FixedThreshold
    from .blocks.strategies import NoiseThreshold as NoiseThreshold
    from .blocks.threshold import denoise as denoise
    from .blocks.threshold import intrinsic_dimension as intrinsic_dimension
    from .blocks.threshold import is_epsilon_approximation as is_epsilon_approximation
    from .blocks.threshold import largest_block_size as largest_block_size
    from .blocks.threshold import partition as partition
    from .blocks.threshold_path import ThresholdPath as ThresholdPath
    from .blocks.threshold_path import threshold_path as threshold_path
    from .certificate import Certificate as Certificate
    from .certify.verify import Verification as Verification
    from .certify.verify import VerificationError as VerificationError
    from .certify.verify import verify as verify
    from .components import Components as Components
    from .components import DisjointSupports as DisjointSupports
    from .components import HotellingDeflation as HotellingDeflation
    from .components import Orthogonalised as Orthogonalised
    from .components import ProjectionDeflation as ProjectionDeflation
    from .components import ResidualDeflation as ResidualDeflation
    from .components import SharedSupport as SharedSupport
    from .components import UncorrelatedScores as UncorrelatedScores
    from .components import solve_components as solve_components
    from .components import solve_shared as solve_shared
    from .components import solve_shared_path as solve_shared_path
    from .constraints import Constraints as Constraints
    from .covariance.contrast import contrastive as contrastive
    from .covariance.covariance import Covariance as Covariance
    from .covariance.fingerprint import DataChangedError as DataChangedError
    from .estimator import SparsePCA as SparsePCA
    from .inspection.alternatives import Alternatives as Alternatives
    from .inspection.alternatives import alternatives as alternatives
    from .inspection.contrast_path import contrastive_path as contrastive_path
    from .inspection.importance import FeatureImportance as FeatureImportance
    from .inspection.importance import feature_importance as feature_importance
    from .inspection.restricted_isometry import RestrictedIsometry as RestrictedIsometry
    from .inspection.restricted_isometry import (
        restricted_isometry as restricted_isometry,
    )
    from .inspection.stability import Stability as Stability
    from .inspection.stability import stability as stability
    from .limits import Limits as Limits
    from .model_selection.choose_k import ChoiceOfK as ChoiceOfK
    from .model_selection.choose_k import PermutationReference as PermutationReference
    from .model_selection.choose_k import choose_k as choose_k
    from .model_selection.choose_k import permutation_reference as permutation_reference
    from .model_selection.choose_n_components import (
        ChoiceOfComponents as ChoiceOfComponents,
    )
    from .model_selection.choose_n_components import (
        choose_n_components as choose_n_components,
    )
    from .model_selection.cross_validation import CrossValidation as CrossValidation
    from .model_selection.cross_validation import cross_validate as cross_validate
    from .pipeline import solve as solve
    from .pipeline import solve_path as solve_path
    from .progress import Event as Event
    from .result import BlockStatus as BlockStatus
    from .result import Result as Result
    from .solvers.base import SolverError as SolverError
    from .sparsity_path import SparsityPath as SparsityPath
    from .status import Status as Status

_moved.install()


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
