"""Modules that have moved: an import by an old name warns and gives the new one.

The documentation of earlier versions names them, and so do pickles written by these.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "_sources": "covariance.sources",
    "blocks.path": "blocks.threshold_path",
    "bounds.row_sums": "bounds.closed_form",
    "certify.certificate": "certificate",
    "certify.dominated": "certify.contrast",
    "certify.options": "certify.provers",
    "certify.records": "certify.steps",
    "choosing_k": "model_selection.choose_k",
    "components.constrained": "components.conditions",
    "components.constrained_proof": "components.conditions_search",
    "components.goal": "components.prediction_goal",
    "components.many": "components.solve",
    "covariance.forced": "covariance.schur_complement",
    "covariance.kinds": "covariance.input_kinds",
    "cross_validation": "model_selection.cross_validation",
    "large_k": "heuristics.truncated_power",
    "reading": "io",
    "reading.table": "io.table",
    "rules": "constraint_rules",
    "solvers.guarantee": "guarantee",
    "solvers.guarantee_table": "reproduction.guarantee_table",
    "stopping": "status",
    "vectors": "numerics.linalg",
    "writing": "io.writing",
}


class _Loader:
    """Makes a module that looks everything up in the new one."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = f"{__package__}.{MOVED[old.partition('.')[2]]}"
        warnings.warn(
            f"{old} is now {new}; the old name will go in version 1.0.",
            DeprecationWarning,
            stacklevel=2,
        )
        target = import_module(new)

        def look_up(name: str) -> object:
            return getattr(target, name)

        module.__doc__ = target.__doc__
        module.__dict__["__getattr__"] = look_up


class _Finder:
    """Finds modules by their old names, after everything else has been asked."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = name.partition(".")
        if package != __package__ or old not in MOVED:
            return None
        has_modules = any(other.startswith(f"{old}.") for other in MOVED)
        # A loader is what has these two methods; the base class would be one more
        # import whenever the package is imported.
        loader = _Loader()
        return ModuleSpec(name, loader, is_package=has_modules)  # type: ignore[arg-type]


def install() -> None:
    """Let the old names be found, from the end of the list of finders."""
    if not any(type(finder).__name__ == _Finder.__name__ for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
