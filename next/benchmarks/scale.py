"""Largest entries of rows of large data, beside BASE: seconds, and peak memory.

    python benchmarks/scale.py BASE_PYTHON BASE_SOURCE [ROW ...]

BASE_PYTHON is an interpreter with the dependencies of BASE, BASE_SOURCE its folder src.
Each row runs in a process of its own, BASE and NEW in turn, three times each, on all
cores. Medians are printed, with the seconds of X'X by BLAS in single precision where
that is dense, and the peak memory of the process. Reading and moments are not in the
seconds; the row "moments" has nothing else, with the memory above the input.
BLOCKSPCA_DATA names the folder of the real data sets.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp

WIDTH = 12
ROWS = [
    *("moments", "wide", "wide32", "raw"),
    *("dorothea", "dorothea_scaled", "sparse", "sparse_wide"),
]


def standardised(n, d, kind):
    X = np.random.default_rng(0).normal(size=(n, d))
    X -= X.mean(axis=0)
    X /= X.std(axis=0, ddof=1)
    return X.astype(kind)


def sparse(n, d, density):
    return sp.random_array(
        (n, d), density=density, rng=np.random.default_rng(0), format="csr"
    )


def data(row):
    """Return the data of a row, and whether columns are scaled."""
    if row == "moments":
        rng = np.random.default_rng(0)
        return rng.standard_normal((100_000, 300), dtype=np.float32), False
    if row == "wide":
        return standardised(100, 100_000, np.float64), False
    if row == "wide32":
        return standardised(100, 100_000, np.float32), False
    if row == "raw":
        rng = np.random.default_rng(0)
        return rng.normal(size=(100, 100_000)) * rng.exponential(size=100_000), False
    if row.startswith("dorothea"):
        folder = Path(os.environ["BLOCKSPCA_DATA"])
        X = sp.load_npz(folder / "Dorothea_train.npz").astype(np.float64)
        return sp.csr_array(X), row.endswith("scaled")
    n, d, density = (30_000, 5_000, 0.01) if row == "sparse" else (15_000, 60_000, 0.01)
    return sparse(n, d, density), False


def measure(side, row, X, scale):
    """Return the seconds of lists, or those of means and variances."""
    small = np.random.default_rng(1).normal(size=(5, 5000))
    if side == "base":
        from blockspca import Covariance
        from blockspca.scan import scan, scan_kernels

        lists = scan
    else:
        from blockspca.call import one_call
        from blockspca.covariance import Covariance
        from blockspca.limits import Limits

        def lists(cov, width):
            with one_call(Limits()) as run:
                cov.lists(width, run)

    for other in (small, sp.csr_array(small[:, :50])):
        lists(Covariance.from_data(other), 3)
    before = memory()
    start = time.perf_counter()
    cov = Covariance.from_data(X, scale=scale, constant="ignore")
    if row != "moments":
        if side == "base":
            scan_kernels(cov)
        start = time.perf_counter()
        lists(cov, WIDTH)
        before = 0
    return time.perf_counter() - start, memory() - before


def memory():
    """Return the peak memory of the process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def gram_seconds(X):
    """Return the seconds of X'X by BLAS on all cores, in tiles, single precision."""
    X = np.asarray(X, dtype=np.float32)
    blocks = [X[:, a : a + 4096].copy() for a in range(0, X.shape[1], 4096)]
    out = blocks[0].T @ blocks[0]
    start = time.perf_counter()
    for a, left in enumerate(blocks):
        for right in blocks[a:]:
            np.dot(left.T, right, out=out[: left.shape[1], : right.shape[1]].copy())
    return time.perf_counter() - start


def child(side, row):
    X, scale = data(row)
    seconds, peak = measure(side, row, X, scale)
    gram = None if sp.issparse(X) or row == "moments" else gram_seconds(X)
    print(json.dumps([seconds, peak, gram]))


def run(side, row, python, source):
    answer = subprocess.run(
        [python, __file__, "--child", side, row],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout.splitlines()[-1])


def main(base_python, base_source, *rows):
    sides = {
        "base": (base_python, base_source),
        "new": (sys.executable, str(Path(__file__).resolve().parent.parent / "src")),
    }
    print(
        "row               base s    new s   ratio  base/X'X  new/X'X  base MB  new MB"
    )
    for row in rows or ROWS:
        times, peaks, grams = {"base": [], "new": []}, {}, []
        for _ in range(3):
            for side, (python, source) in sides.items():
                seconds, peaks[side], gram = run(side, row, python, source)
                times[side].append(seconds)
                grams.append(gram)
        base, new = median(times["base"]), median(times["new"])
        shares = [f"{t / median(grams):.2f}" if grams[0] else "-" for t in (base, new)]
        print(
            f"{row:<16}{base:8.2f} {new:8.2f} {new / base:7.2f} {shares[0]:>9}"
            f"{shares[1]:>9} {peaks['base']:8.0f} {peaks['new']:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
