"""Imports point one way: a module imports from its own layer or from those below.

Read from the syntax trees: imports at the top of a module, lazy ones inside functions,
and those for type checkers only. All three count, as a lazy import would hide the
dependency, not remove it. There are no exceptions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "blockspca"

# From the bottom up; each layer with its modules, a package standing for all in it.
# Kernels import nothing, and scans, blocks and searches use them: they lie below all.
# Solvers lie below blocks, as blocks are given to solvers, and no solver knows blocks.
# The estimator lies above pictures, report and explorer: it has methods for them.
LAYERS = {
    "base": "_typing _arguments _validation _moved _html _json_reader _feature_names "
    "_warnings proof_file",
    "checker": "checker",
    "limits": "status limits _messages proof_settings",
    "records": "certificate bound_names scheme_defaults guarantee result progress "
    "constraints constraint_rules",
    "numerics": "numerics",
    "kernels": "_kernels",
    "covariance": "covariance _samples",
    "scan": "scan",
    "heuristics": "heuristics",
    "bounds": "bounds",
    "search": "search",
    "solvers": "solvers",
    "blocks": "blocks",
    "certify": "certify",
    "pipeline": "pipeline sparsity_path",
    "components": "components",
    "inspection": "inspection",
    "model selection": "model_selection",
    "io": "io",
    "plotting": "plotting",
    "report": "report",
    "explore": "explore",
    "estimator": "estimator _sklearn _estimator_input _estimator_output"
    " _estimator_views tl",
    "datasets": "datasets",
    "reproduction": "reproduction",
    "cli": "cli __main__",
}


@dataclass(frozen=True, order=True)
class Import:
    """One module imports another; `kind` is "top", "lazy" or "type"."""

    importer: str
    imported: str
    kind: str
    line: int

    @property
    def edge(self) -> str:
        return f"{self.importer} -> {self.imported}"


def module_name(path: Path, source: Path = SOURCE) -> str:
    """Return the name within the package; "" is the package itself."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(source: Path = SOURCE) -> dict[str, Path]:
    return {module_name(path, source): path for path in sorted(source.rglob("*.py"))}


def public_names(text: str) -> dict[str, str]:
    """Return the modules of the names that the package imports when asked for them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_EXPORTS":
            return ast.literal_eval(node.value)
    return {}


class Reader:
    """Finds the imports of other modules of the package in the text of one."""

    def __init__(self, known: dict[str, Path], exports: dict[str, str]) -> None:
        self.known, self.exports = known, exports

    def imports(self, name: str, text: str, is_package: bool) -> Iterator[Import]:
        package = name.split(".") if name else []
        if not is_package:
            package = package[:-1]
        yield from self._visit(ast.parse(text), name, package, "top")

    def _visit(
        self, node: ast.AST, name: str, package: list[str], kind: str
    ) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = kind
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                inner = "lazy" if kind == "top" else kind
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(
                child.test
            ):
                inner = "type"
            for imported in self._targets(child, package):
                if imported != name:
                    yield Import(name, imported, kind, child.lineno)
            yield from self._visit(child, name, package, inner)

    def _targets(self, node: ast.AST, package: list[str]) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top, _, inside = alias.name.partition(".")
                if top == "blockspca" and inside:
                    yield inside
        elif isinstance(node, ast.ImportFrom):
            base = self._base(node, package)
            for alias in node.names if base is not None else ():
                full = f"{base}.{alias.name}" if base else alias.name
                if full in self.known:
                    yield full
                elif base:
                    yield base
                elif alias.name in self.exports:
                    yield self.exports[alias.name]

    @staticmethod
    def _base(node: ast.ImportFrom, package: list[str]) -> str | None:
        """Return the module imported from, within the package; None if elsewhere."""
        written = node.module.split(".") if node.module else []
        if node.level:
            return ".".join([*package[: len(package) - node.level + 1], *written])
        if written[:1] != ["blockspca"]:
            return None
        return ".".join(written[1:])


def all_imports(source: Path = SOURCE) -> list[Import]:
    known = modules(source)
    text = {name: path.read_text(encoding="utf-8") for name, path in known.items()}
    reader = Reader(known, public_names(text[""]))
    return [
        found
        for name, path in known.items()
        if name  # the package itself imports what it is asked for
        for found in reader.imports(name, text[name], path.name == "__init__.py")
    ]


@lru_cache
def layer_of(module: str) -> int | None:
    """Return the number of a module's layer, by its longest listed prefix."""
    order = list(LAYERS)
    listed = {
        name: order.index(layer)
        for layer, names in LAYERS.items()
        for name in names.split()
    }
    parts = module.split(".")
    for size in range(len(parts), 0, -1):
        if ".".join(parts[:size]) in listed:
            return listed[".".join(parts[:size])]
    return None


def goes_up(found: Import) -> bool:
    return layer_of(found.importer) < layer_of(found.imported)


def circles(edges: set[tuple[str, str]]) -> list[str]:
    """Return the sets of modules that reach each other, as sorted text."""
    reached = {a: {b for x, b in edges if x == a} for a, _ in edges}
    changed = True
    while changed:
        changed = False
        for targets in reached.values():
            more = set().union(*(reached.get(b, set()) for b in targets)) - targets
            changed = changed or bool(more)
            targets |= more
    found = {
        " ".join(sorted(b for b in targets if a in reached.get(b, ())))
        for a, targets in reached.items()
        if a in targets
    }
    return sorted(found)


def test_every_module_has_a_layer():
    without = [name for name in modules() if name and layer_of(name) is None]
    assert not without, f"add to LAYERS: {without}"


def test_every_layer_names_a_module_once():
    listed = " ".join(LAYERS.values()).split()
    assert len(listed) == len(set(listed))


def test_imports_point_down():
    upward = [
        f"{found.edge} ({found.kind}, line {found.line})"
        for found in all_imports()
        if goes_up(found)
    ]
    assert not upward, "imports of a higher layer:\n" + "\n".join(upward)


def test_no_lazy_import_hides_a_cycle():
    edges = {
        (found.importer, found.imported)
        for found in all_imports()
        if found.kind != "type" and not goes_up(found)
    }
    assert circles(edges) == []


def test_kernels_import_nothing_else():
    for found in all_imports():
        if found.importer.startswith("_kernels."):
            assert found.imported.startswith("_kernels"), found.edge


def test_imports_are_read_of_every_kind(tmp_path):
    package = tmp_path / "blockspca"
    for name, text in {
        "__init__.py": "_EXPORTS = {'solve': 'pipeline'}",
        "pipeline.py": "",
        "limits.py": """
from typing import TYPE_CHECKING
from . import pipeline, solve, __version__
from .certify import verify, path
import blockspca.certify.path, numpy
if TYPE_CHECKING:
    from blockspca.certify.verify import check
def f():
    from .certify.path import g
""",
        "certify/__init__.py": "from .verify import check",
        "certify/verify.py": "from ..limits import f\nfrom .. import solve",
        "certify/path.py": "",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = all_imports(package)
    assert sorted(f"{i.edge} {i.kind}" for i in found) == [
        "certify -> certify.verify top",
        "certify.verify -> limits top",
        "certify.verify -> pipeline top",
        "limits -> certify.path lazy",
        "limits -> certify.path top",
        "limits -> certify.path top",
        "limits -> certify.verify top",
        "limits -> certify.verify type",
        "limits -> pipeline top",
        "limits -> pipeline top",
    ]
    upward = {i.edge for i in found if goes_up(i)}
    assert upward == {
        "certify.verify -> pipeline",
        "limits -> certify.path",
        "limits -> certify.verify",
        "limits -> pipeline",
    }


def test_cycles_are_found():
    edges = {("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f"), ("f", "e")}
    assert circles(edges) == ["a b c", "e f"]
    assert circles({("a", "b"), ("b", "c"), ("a", "c")}) == []
