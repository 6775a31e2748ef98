"""Pictures of a matrix, its blocks and its sparse components (matplotlib)."""

from .components import plot_components
from .figures import (
    plot_blocks,
    plot_cross_validation,
    plot_largest_block,
    plot_loadings,
    plot_matrix,
    plot_permutation_reference,
    plot_proof,
    plot_sparsity_path,
    save,
)
from .inspection import plot_alternatives, plot_stability
from .scores import plot_scores

__all__ = [
    "plot_alternatives",
    "plot_blocks",
    "plot_components",
    "plot_cross_validation",
    "plot_largest_block",
    "plot_loadings",
    "plot_matrix",
    "plot_permutation_reference",
    "plot_proof",
    "plot_scores",
    "plot_sparsity_path",
    "plot_stability",
    "save",
]
