"""Sparse PCA with a proof of how good the answer is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0.dev0"

# Public names and their modules. They are imported on first use, so that the import of
# the package is fast, and Numba and scikit-learn are loaded only if a call needs them.
_EXPORTS: dict[str, str] = {
    "Constraints": "constraints",
    "Covariance": "covariance",
    "DataChangedError": "covariance",
    "Event": "progress",
    "Limits": "limits",
    "Result": "result",
    "SparsePCA": "estimator",
    "SparsityPath": "sparsity_path",
    "Status": "limits",
    "VerificationError": "proof.verify",
    "contrastive": "covariance",
    "solve": "pipeline",
    "solve_path": "pipeline",
    "verify": "proof.verify",
}

__all__ = ["__version__", *_EXPORTS]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
