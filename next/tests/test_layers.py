"""Imports point one way: a module imports from its own layer or from lower ones.

All imports count, also those inside functions and those for type checkers.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "blockspca"

# From the ground up; a package stands for all its modules.
LAYERS = [
    {"checker"},  # stands alone: numpy and itself
    {"validation", "messages", "limits", "progress"},
    {"linalg"},
    {"_kernels"},
    {"call"},
    {"scan"},
    {"covariance"},
    {"constraints"},
    {"proof", "result"},
    {"supports"},
    {"search"},
    {"bounds"},
    {"prove"},
    {"sparsity_path", "pipeline"},
    {"solvers"},
    {"blocks"},
    {"components"},
    {"inspection", "model_selection"},
    {"io", "datasets", "plotting"},
    {"estimator", "tl"},
    {"report"},
    {"explore"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ALONE = {"checker"}
#: the library hands matrices to the checker's rules
MAY_USE_CHECKER = {"proof", "cli", "__main__"}


def rooms_imported(path: Path) -> set[str]:
    """Return the rooms of the package that a module imports, itself excluded."""
    parts = ("blockspca", *path.relative_to(PACKAGE).with_suffix("").parts)
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            names.update(f"{module}.{alias.name}" for alias in node.names)
    split = [name.split(".") for name in names if name.startswith("blockspca.")]
    return {words[1] for words in split if words[1] in LEVEL}


def modules() -> list[Path]:
    """Return all modules but the package's own `__init__`."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return [path for path in paths if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_point_down(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert room in LEVEL, f"{room} is in no layer"
    for name in rooms_imported(path) - {room}:
        assert LEVEL[name] <= LEVEL[room], f"{room} imports {name}, which is above it"
        assert room not in ALONE, f"{room} stands alone, but imports {name}"
        assert name not in ALONE or room in MAY_USE_CHECKER, f"{room} imports {name}"


def test_the_table_names_no_room_twice():
    assert len(LEVEL) == sum(len(names) for names in LAYERS)
