"""Chan's algorithm on Dorothea (800 × 100,000, sparse), without forming A.

python benchmarks/run.py chan
"""

from __future__ import annotations

import time

import scipy.sparse as sp

from blockspca import Covariance
from blockspca.solvers import Chan, Limits
from common import DATA, Options, Report

PAPER = {200: 3.25, 500: 4.94, 1000: 6.23, 2000: 7.18}  # truncated digits, 68 hours

COLUMNS = {
    "k": ("k", ""),
    "objective": ("objective", ".4f"),
    "paper": ("paper", ".2f"),
    "rows": ("rows looked at", ""),
    "seconds": ("seconds", ".1f"),
    "cpu": ("of processor time", ".1f"),
}


def report(options: Options) -> Report:
    small = Covariance.from_data(sp.random(9, 400, density=0.02, rng=0, format="csr"))
    Chan().solve_covariance(small, 3, limits=Limits())  # compile
    cov = Covariance.from_data(sp.load_npz(DATA / "Dorothea_train.npz"))
    rows = []
    for k in [200] if options.quick else PAPER:
        wall, cpu = time.perf_counter(), time.process_time()
        solution = Chan().solve_covariance(cov, k, limits=Limits())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append(
            {
                "k": k,
                "objective": float(solution.x @ cov.matvec(solution.x)),
                "paper": PAPER[k],
                "rows": solution.nodes,
                "seconds": wall,
                "cpu": cpu,
            }
        )
    found = Report("Chan's algorithm on DorotheaCov")
    found.add("Times", COLUMNS, rows)
    return found
