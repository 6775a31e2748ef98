"""Mutants of a source file: one change each, made in memory.

An inequality is turned round, an allowance for rounding dropped or put to zero, a
minimum becomes a maximum. What counts as an allowance is told by names (`allowance`,
`margin`, `rounding`, `slack`, `error`, `eps`, …) and by small constants (1 − 1e-12).
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "blockspca"

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
_SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_ALLOWANCE = re.compile(
    r"allowance|margin|rounding|slack|error|widened|inflation|uncertain|^_?eps$", re.I
)


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it is, and which of several alike.

    `text` is the source of what is changed; with the file, the kind and `which` it
    names the mutant in a way that survives edits elsewhere.
    """

    file: str
    kind: str
    text: str
    which: int
    line: int
    position: int

    @property
    def key(self) -> str:
        ordinal = f" [{self.which}]" if self.which else ""
        return f"{self.file}: {self.kind}: `{self.text}`{ordinal}"


class _Mutator(ast.NodeTransformer):
    """Visit what can be changed, in order, and change number `position`."""

    def __init__(self, position: int = -1) -> None:
        self.position = position
        self.found: list[tuple[str, ast.AST]] = []

    def _is_turn(self, kind: str, node: ast.AST) -> bool:
        self.found.append((kind, node))
        return len(self.found) - 1 == self.position

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for at, op in enumerate(node.ops):
            if type(op) in _TURNED and self._is_turn("turned", node):
                node.ops[at] = _TURNED[type(op)]()
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else None
        name = called.id if isinstance(called, ast.Name) else name
        if name in _SWAPPED and self._is_turn("swapped", node):
            if isinstance(called, ast.Attribute):
                called.attr = _SWAPPED[name]
            elif isinstance(called, ast.Name):
                called.id = _SWAPPED[name]
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        changed: ast.AST | None = None
        if isinstance(node.op, (ast.Add, ast.Sub)):
            if _is_allowance(node.right) and self._is_turn("dropped", node):
                changed = node.left
            if _is_allowance(node.left) and self._is_turn("dropped", node):
                changed = node.right
                if isinstance(node.op, ast.Sub):
                    changed = ast.UnaryOp(ast.USub(), node.right)
        self.generic_visit(node)
        return node if changed is None else ast.copy_location(changed, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        drops = _is_allowance(node.value) or _is_allowance(node.target)
        if drops and self._is_turn("dropped", node):
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        is_name = isinstance(target, (ast.Name, ast.Attribute))
        named = is_name and _names(target) and _is_allowance(target)
        computed = not isinstance(node.value, (ast.Constant, ast.Name))
        if named and computed and self._is_turn("zero", node):
            node.value = ast.copy_location(ast.Constant(0.0), node.value)
            return node
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if _ALLOWANCE.search(node.name):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and self._is_turn("zero", inner):
                    inner.value = ast.copy_location(ast.Constant(0.0), inner)
        self.generic_visit(node)
        return node


def _names(node: ast.AST) -> list[str]:
    found = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.append(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.append(inner.attr)
    return found


def _is_allowance(node: ast.AST) -> bool:
    """Whether a term is there for rounding: by its names, or as a small constant."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return False  # its own terms are
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return 0 < node.value < 1e-3
    return any(_ALLOWANCE.search(name) for name in _names(node))


def mutants_of(file: str) -> list[Mutant]:
    """Return all mutants of a file."""
    text = (SOURCE / file).read_text(encoding="utf-8")
    mutator = _Mutator()
    mutator.visit(ast.parse(text))
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for position, (kind, node) in enumerate(mutator.found):
        segment = " ".join((ast.get_source_segment(text, node) or "").split())
        line = int(getattr(node, "lineno", 0))
        alike = kind, segment
        found.append(Mutant(file, kind, segment, seen[alike], line, position))
        seen[alike] += 1
    return found


def code_of(mutant: Mutant) -> CodeType:
    """Compile the mutated source."""
    path = SOURCE / mutant.file
    mutator = _Mutator(mutant.position)
    tree = mutator.visit(ast.parse(path.read_text(encoding="utf-8")))
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class Finder(importlib.abc.MetaPathFinder):
    """Gives the mutated module in place of the file."""

    def __init__(self, mutant: Mutant) -> None:
        path = SOURCE / mutant.file
        self.name = "blockspca." + mutant.file[:-3].replace("/", ".")
        self.loader = _Loader(self.name, str(path), code_of(mutant))

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_loader(fullname, self.loader)
