"""Mutants of a source file: one small change each; does a test command notice?

    python benchmarks/mutation.py src/blockspca/linalg/eigen.py --count 20 \
        -- python -m pytest -q -x tests/linalg tests/test_claims.py

The folder that holds `src` is copied, the file is changed in the copy, and the command
runs there with the copy first on the path. A mutant that the command does not notice
is printed; the exit status is 1 if there are any. A mutant that runs longer than the
limit counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
SWAPPED |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
SIGNS: dict[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
ALLOWANCE = re.compile(
    r"allowance|margin|rounding|slack|error|gamma|uncertain|^_?eps$|^_?unit$", re.I
)


def is_allowance(node: ast.AST) -> bool:
    """Tell whether a term is there for rounding: by a name, or as a small constant."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return 0 < abs(node.value) < 1e-3
    names = [getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node)]
    return any(ALLOWANCE.search(name) for name in names)


def changes(node: ast.AST) -> Iterator[tuple[str, str, object]]:
    """Yield (kind, field, new value) for what can be changed at a node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        yield "turned", "ops", [TURNED[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, ast.Name) and node.id in SWAPPED:
        yield "swapped", "id", SWAPPED[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in SWAPPED:
        yield "swapped", "attr", SWAPPED[node.attr]
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", "op", other
    elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield "sign", "op", SIGNS[type(node.op)]
        for side in ("left", "right"):
            if is_allowance(getattr(node, side)):
                yield "dropped", side, ast.Constant(0.0)
    elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS:
        yield "dropped", "value", ast.Constant(0)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", "op", ast.UAdd()
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Compare):
        yield "returned", "value", ast.Constant(True)


def mutants(source: str) -> list[tuple[str, str]]:
    """Return (description, source) of every mutant of a file."""
    tree, found = ast.parse(source), []
    for node in ast.walk(tree):
        for kind, field, value in changes(node):
            old, before = getattr(node, field), ast.unparse(node)
            setattr(node, field, value)
            after = ast.unparse(node)
            line = getattr(node, "lineno", 0)
            text = f"line {line}, {kind}: {before[:70]} -> {after[:70]}"
            found.append((text, ast.unparse(tree)))
            setattr(node, field, old)
    return found


def noticed(command: list[str], folder: Path, limit: float) -> bool:
    """Tell whether the command fails, or runs longer than the limit."""
    environment = dict(os.environ, PYTHONPATH=str(folder / "src"))
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="below the folder that holds src")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds a mutant")
    if "--" not in sys.argv:
        parser.error("the command of the tests is missing; write it behind --")
    split = sys.argv.index("--")
    options, command = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    path = options.file.resolve()
    root = next(folder for folder in path.parents if (folder / "src").is_dir())
    drawn = mutants(path.read_text(encoding="utf-8"))
    random.Random(options.seed).shuffle(drawn)
    drawn = drawn[: options.count]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / root.name
        ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "results")
        shutil.copytree(root, folder, ignore=ignored)
        copy = folder / path.relative_to(root)
        if noticed(command, folder, 10 * options.limit):
            print("the command fails without any change", file=sys.stderr)
            return 2
        survivors = []
        for number, (text, source) in enumerate(drawn, 1):
            copy.write_text(source, encoding="utf-8")
            if not noticed(command, folder, options.limit):
                survivors.append(text)
                print(f"{number}/{len(drawn)} survives: {text}", flush=True)
    killed = len(drawn) - len(survivors)
    print(f"{path.relative_to(root)}: {killed} of {len(drawn)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
