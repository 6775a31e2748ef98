"""Sparse PCA with a proof of how good the answer is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0.dev0"

# Public names and their modules, imported on first use: importing the package is
# instant, and numba or scikit-learn load only if a call needs them.
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
_MODULES: tuple[str, ...] = ()

__all__ = ["__version__", *_EXPORTS, *_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _EXPORTS:
        return getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
