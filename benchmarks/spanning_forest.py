"""The spanning forest against plain passes over the same matrix, in one run.

python benchmarks/run.py spanning_forest
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import blockspca as bs
from common import Options, Report, seconds


def report(options: Options) -> Report:
    d = 500 if options.quick else 10_000
    A = np.random.default_rng(0).normal(size=(d, d)).astype(np.float64)
    A += A.T
    cov = bs.Covariance.from_matrix(A)
    bs.threshold_path(A[:10, :10].copy())  # compile
    one_pass, _ = seconds(lambda: A.max(), repeats=7)
    forest, _ = seconds(lambda: bs.threshold_path(cov), repeats=7)
    code = "import time; t = time.perf_counter(); import blockspca; "
    code += "print(time.perf_counter() - t)"
    imports = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        for _ in range(5)
    ]
    rows = [
        {"what": "one pass over A (its largest entry)", "seconds": one_pass},
        {"what": "spanning forest", "seconds": forest},
        {"what": "import blockspca", "seconds": float(np.median(imports))},
    ]
    for row in rows[:2]:
        row["ratio"] = row["seconds"] / one_pass
    columns = {"what": ("what", ""), "seconds": ("seconds", ".3f")}
    found = Report("The spanning forest against one pass", [f"d = {d}."], seeds=[0])
    found.add("Times", columns | {"ratio": ("ratio", ".1f")}, rows)
    return found
