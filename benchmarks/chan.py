"""Chan's algorithm on Dorothea (800 × 100,000, sparse), without forming A.

BLOCKSPCA_DATA=.../data python benchmarks/chan.py [k ...]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import scipy.sparse as sp

from blockspca import Covariance
from blockspca.solvers import Chan, Limits

PAPER = {200: 3.25, 500: 4.94, 1000: 6.23, 2000: 7.18}  # truncated digits, 68 hours


def main() -> None:
    folder = Path(os.environ["BLOCKSPCA_DATA"])
    cov = Covariance.from_data(sp.load_npz(folder / "Dorothea_train.npz"))
    print("    k  objective  paper    rows        s   cpu s")
    for k in [int(a) for a in sys.argv[1:]] or sorted(PAPER):
        wall, cpu = time.perf_counter(), time.process_time()
        solution = Chan().solve_covariance(cov, k, limits=Limits())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        objective = float(solution.x @ cov.matvec(solution.x))
        paper = PAPER.get(k, float("nan"))
        line = f"{k:5d} {objective:10.4f} {paper:6.2f} {solution.nodes:7d}"
        print(f"{line} {wall:8.1f} {cpu:7.1f}")


if __name__ == "__main__":
    main()
