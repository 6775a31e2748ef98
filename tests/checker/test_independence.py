"""The checker stands alone: it imports nothing else of blockspca, and no LAPACK."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import blockspca.checker
from blockspca.checker.one_file import MODULES, joined

FOLDER = Path(blockspca.checker.__file__).parent
EXAMPLE = Path(__file__).parents[1] / "proofs" / "example-5x5.proof"
A = [
    [4, 2, 2, 1, 0],
    [2, 4, 0, 0, 1],
    [2, 0, 3, 1, 0],
    [1, 0, 1, 3, 1],
    [0, 1, 0, 1, 2],
]
STANDARD = {*sys.stdlib_module_names, "numpy"}


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem
)
def test_a_module_imports_python_numpy_and_its_neighbours_only(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= STANDARD
        if isinstance(node, ast.ImportFrom):
            if node.level:
                assert node.level == 1
                assert node.module in MODULES
            else:
                assert str(node.module).split(".")[0] in STANDARD
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("linalg", "import_module", "eval", "exec")


def test_running_it_loads_nothing_else_of_the_library():
    code = (
        "import sys, runpy; sys.argv = ['checker', '--help']\n"
        "try: runpy.run_module('blockspca.checker', run_name='__main__')\n"
        "except SystemExit: print(*(m for m in sys.modules if m[:9] == 'blockspca'))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    loaded = set(said.splitlines()[-1].split())
    # `_moved` keeps old names of modules working, and imports nothing.
    outside = {name for name in loaded if not name.startswith("blockspca.checker")}
    assert outside <= {"blockspca", "blockspca._moved"}
    assert "blockspca.checker.check" in loaded


def test_every_module_is_joined_and_no_name_is_defined_twice():
    own = {path.stem for path in FOLDER.glob("*.py")}
    assert own - {*MODULES} == {"__init__", "one_file"}
    names: Counter[str] = Counter()
    for node in ast.parse(joined()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] += 1
        elif isinstance(node, ast.Assign):
            names.update(ast.unparse(target) for target in node.targets)
    assert [name for name, times in names.items() if times > 1] == []


def test_one_file_checks_where_the_library_is_not(tmp_path):
    """From an empty folder, with NumPy alone: blockspca cannot be imported there."""
    (tmp_path / "check_proof.py").write_text(joined(), encoding="utf-8")
    shutil.copy(EXAMPLE, tmp_path / "example.proof")
    np.save(tmp_path / "A.npy", np.array(A))
    # -S leaves out site-packages with blockspca; NumPy is put back by a link.
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent)
    libraries = Path(np.__file__).parents[1] / "numpy.libs"
    if libraries.exists():
        (tmp_path / "numpy.libs").symlink_to(libraries)
    words = [sys.executable, "-S", "-E", "check_proof.py", "example.proof", "A.npy"]
    blocked = subprocess.run(
        [*words[:3], "-c", "import blockspca"], cwd=tmp_path, capture_output=True
    )
    assert b"No module named 'blockspca'" in blocked.stderr
    for option in ([], ["--exact"]):
        done = subprocess.run(
            [*words, *option], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "The proof holds." in done.stdout


def test_a_terminal_without_mathematical_signs_is_told_why(tmp_path):
    np.save(tmp_path / "A.npy", np.array(A))
    wrong = EXAMPLE.read_text(encoding="utf-8").replace("S1 0 L", "S1 0 S1 1 S0")
    (tmp_path / "wrong.proof").write_text(wrong, encoding="utf-8")
    words = [sys.executable, "-m", "blockspca.checker", "wrong.proof", "A.npy"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "k = 3: S needs m \\u2265 2" in done.stdout
