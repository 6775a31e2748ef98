"""The spanning forest against plain passes over the same matrix, in one run.

python benchmarks/spanning_forest.py [d]
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import blockspca as bs
from common import machine, markdown, seconds


def main(d: int = 10_000) -> None:
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
        ["one pass over A (its largest entry)", f"{one_pass:.3f}", "1.0"],
        ["spanning forest", f"{forest:.3f}", f"{forest / one_pass:.1f}"],
        ["import blockspca", f"{np.median(imports):.3f}", "–"],
    ]
    print(f"d = {d}; {machine()}\n")
    print(markdown(["what", "seconds", "ratio"], rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
