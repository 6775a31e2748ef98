"""The certified path against BLAS on real data, in one run.

    python benchmarks/run.py certified_path --output DIR

DIR/certified_path.md has the tables of the page docs/benchmark-certified-path.md.

The yardstick of a data matrix is the BLAS product X'X in float64, that of a covariance
matrix one `numpy.linalg.eigvalsh(A)`, with the same threads. The first call compiles
and is not timed.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import blockspca as bs
from blockspca.datasets import noisy_blocks
from common import Options, Report, load, seconds

FROM_DATA = (
    "Leukemia",
    "Lymphoma2",
    "Prostate",
    "Arcene_train_valid",
    "gordon",
    "singh",
    "golub_raw",
    "ALLAML",
)
FROM_MATRIX = ("CovColon", "LymphomaCov1", "Reddit2000")

REPEATS = 7
# name, largest k, most times the yardstick
PATHS = [
    *((name, 15, 3.0) for name in FROM_DATA[:-1]),
    *((name, 15, 1.0) for name in FROM_MATRIX[:-1]),
    *((name, 50, 10.0) for name in FROM_MATRIX[:-1]),
    ("ALLAML", 20, 30.0),
    ("Reddit2000", 20, 30.0),
]

# name, k, gap wanted, seconds allowed
GAPS = [
    ("Reddit2000", 50, 0.01, 10.0),
    ("Lymphoma2", 100, 0.01, 10.0),
    ("Prostate", 100, 0.01, 10.0),
    ("Prostate", 200, 0.01, 60.0),
    ("Lymphoma2", 200, 0.01, 60.0),
    ("Arcene_train_valid", 200, 0.05, 60.0),
    ("Leukemia", 200, 0.05, 60.0),
]


def yardstick(name: str, array: np.ndarray) -> float:
    if name in FROM_MATRIX:
        return seconds(lambda: np.linalg.eigvalsh(array), repeats=REPEATS)[0]
    centred = array - array.mean(axis=0)
    return seconds(lambda: centred.T @ centred, repeats=REPEATS)[0]


def covariance(name: str, array: np.ndarray) -> bs.Covariance:
    if name in FROM_MATRIX:
        return bs.Covariance.from_matrix(array)
    return bs.Covariance.from_data(array)


def path_row(name: str, k_max: int, most: float) -> tuple[list[object], list[list]]:
    array = load(name)
    unit = yardstick(name, array)
    taken, path = seconds(
        lambda: bs.solve_path(covariance(name, array), k_max), repeats=REPEATS
    )
    proved = sum(r.status is bs.Status.OPTIMAL for r in path.values())
    ratio = taken / unit
    verdict = "yes" if proved == k_max and ratio <= most else "no"
    row = [
        f"{name}, k ≤ {k_max}",
        f"{proved} of {k_max}",
        f"{unit:.3f}",
        f"{taken:.3f}",
        f"{ratio:.2f}",
        f"{most:g}",
        verdict,
    ]
    details = [
        [name, k, f"{r.objective:.6g}", r.status, r.nodes, f"{1000 * r.time:.1f}"]
        for k, r in path.items()
    ]
    return row, details


def gap_row(name: str, k: int, wanted: float, allowed: float) -> list[object]:
    limits = bs.Limits(time=allowed, gap=wanted)
    return limited_row(name, covariance(name, load(name)), k, wanted, limits)


def limited_row(
    name: str, cov: object, k: int, wanted: float, limits: bs.Limits
) -> list[object]:
    """Solve within limits, and say whether the gap is the one that is wanted."""
    start = time.perf_counter()
    result = bs.solve(cov, k, limits=limits)
    taken = time.perf_counter() - start
    return [
        f"{name}, k = {k}",
        f"{result.objective:.6g}",
        f"{result.upper_bound:.6g}",
        f"{result.gap:.2%}",
        f"{wanted:.0%}",
        f"{taken:.1f}",
        f"{limits.time:g}",
        result.bound_name,
        "yes" if result.gap <= wanted else "no",
    ]


def model_1_row(k: int, wanted: float, allowed: float = 60.0) -> list[object]:
    A, _ = noisy_blocks(n_blocks=30, block_size=20, sigma=0.1, rng=42)
    return limited_row("Model 1", A, k, wanted, bs.Limits(time=allowed))


def first_call_rows() -> list[list[object]]:
    """A new process with a cold and with a warm cache of compiled kernels."""
    import os
    import tempfile

    code = (
        "import time; t = time.perf_counter(); import numpy as np, blockspca as bs; "
        "A = np.load({!r})['A']; bs.solve(A, 10); print(time.perf_counter() - t)"
    )
    from common import DATA

    command = [sys.executable, "-c", code.format(str(DATA / "CovColon.npz"))]
    most = {"cold cache": 6.0, "warm cache": 1.0}
    times: dict[str, list[float]] = {name: [] for name in most}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            for taken in times.values():
                output = subprocess.run(
                    command, env=environment, capture_output=True, check=True
                )
                taken.append(float(output.stdout))
    rows = []
    for name, limit in most.items():
        median = float(np.median(times[name]))
        verdict = "yes" if median <= limit else "no"
        rows.append([name, f"{median:.2f}", f"{limit:g}", verdict])
    return rows


PATH_HEADER = ["path", "proved", "yardstick (s)", "path (s)", "ratio", "target", "met"]
GAP_HEADER = ["case", "objective", "upper bound", "gap", "target", "seconds"]
GAP_HEADER += ["allowed", "bound", "met"]
MODEL_1 = ((5, 0.0), (7, 0.2), (10, 0.4))  # k, gap wanted


def warm_up() -> None:
    bs.solve_path(np.cov(np.random.default_rng(0).normal(size=(9, 40)).T), 12)


def report(options: Options) -> Report:
    """Paths, gaps, noise and the first call as a case of run.py."""
    warm_up()
    found = Report("The certified path, measured", seeds=[42])

    def add(name: str, header: list[str], rows: list[list]) -> None:
        columns = {key: (key, "") for key in header}
        lines = [dict(zip(header, map(str, row), strict=True)) for row in rows]
        found.add(name, columns, lines)

    paths = [("CovColon", 5, 1.0)] if options.quick else PATHS
    measured = [path_row(*case) for case in paths]
    add("Whole paths, exact", PATH_HEADER, [row for row, _ in measured])
    if not options.quick:
        add("Large k, to a gap", GAP_HEADER, [gap_row(*case) for case in GAPS])
        noisy = [model_1_row(k, wanted + 1e-9) for k, wanted in MODEL_1]
        add("Noise: Model 1, d = 600", GAP_HEADER, noisy)
        header = ["first call on CovColon", "seconds", "target", "met"]
        add("First call in a new process", header, first_call_rows())
    header = ["data", "k", "objective", "status", "nodes", "ms"]
    add("Every k", header, [line for _, lines in measured for line in lines])
    return found
