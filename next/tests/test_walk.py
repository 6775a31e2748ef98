"""The walk of one call: how many modules, files and records it passes."""

from __future__ import annotations

import subprocess
import sys

MODULES = """
import sys
import numpy as np
import blockspca as bs
bs.solve(np.eye(3) + 0.1, 2)
print(sum(name.startswith("blockspca") for name in sys.modules))
"""

FILES = """
import dataclasses, os, sys
import numpy as np
import blockspca as bs

X = np.random.default_rng(0).normal(size=(60, 500))
X[:, :40] += 0.8 * X[:, :1]
A = np.corrcoef(X.T)
bs.solve(A, 10)
folder, files, records = os.path.dirname(bs.__file__), set(), set()

def watch(frame, event, argument):
    name = frame.f_code.co_filename
    if name.startswith(folder):
        files.add(name)
        own = frame.f_locals.get("self")
        if frame.f_code.co_name == "__init__" and dataclasses.is_dataclass(own):
            records.add(type(own).__name__)
    elif frame.f_code.co_name == "__init__" and "self" in frame.f_locals:
        own = frame.f_locals["self"]  # an __init__ that dataclasses wrote
        if type(own).__module__.startswith("blockspca."):
            records.add(type(own).__name__)

sys.setprofile(watch)
result = bs.solve(A, 10)
sys.setprofile(None)
assert result.status.value == "optimal", result
print(len(files), len(records), *sorted(os.path.relpath(f, folder) for f in files))
print(*sorted(records))
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_solve_imports_few_modules():
    assert int(run(MODULES)) <= 100


def test_a_warm_solve_passes_few_files_and_records():
    out = run(FILES)
    files, records = map(int, out.split()[:2])
    assert files <= 45, out
    assert records <= 12, out
