"""Large data on two cores: time, peak memory and proofs.

    python benchmarks/run.py scale --output DIR
    python benchmarks/run.py scale --rows dorothea million

The second measures some rows, by the names of `CASES`. DIR/scale.md has the tables of
the page docs/benchmark-scale.md.

Every case runs in a process of its own, so that its peak memory is its own; kernels are
compiled, and libraries loaded, by a small problem before the clock starts. Peak memory
is that of the whole process, Python and libraries (about 150 MB) included. "cpu" is the
processor time of the case, yardsticks included, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import DATA, Options, Report, load, seconds

Case = Callable[[], dict[str, Any]]

# d at fixed n, for the growth of time and memory
GROWTH = (5_000, 10_000, 20_000, 40_000)
LARGE_K = {200: 3.3454, 500: 5.1084, 1000: 6.4547, 2000: 7.4863}
LARGE_K_SECONDS = 60


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def warm_up() -> None:
    """Compile and load what the cases use."""
    import blockspca as bs
    from blockspca.scan import scan

    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 60))
    for data in (X, sp.random_array((9, 400), density=0.02, rng=rng, format="csr")):
        cov = bs.Covariance.from_data(data)
        scan(cov, 5)
        bs.solve(cov, 3)
    bs.solve_path(np.cov(X.T), 12)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def scanned_and_proved(X: Any, k_max: int) -> dict[str, Any]:
    """The full scan, and the whole path proved from it."""
    import blockspca as bs
    from blockspca.scan import scan

    cov = bs.Covariance.from_data(X)
    scanned, found = timed(lambda: scan(cov, k_max - 1))
    proved_in, path = timed(lambda: bs.solve_path(cov, k_max))
    proved = sum(r.status is bs.Status.OPTIMAL for r in path.values())
    return {
        "seconds": scanned + proved_in,
        "scan": scanned,
        "proved": f"{proved} of {k_max}",
        "ok": proved == k_max,
        "width": found.width,
    }


def dorothea() -> dict[str, Any]:
    return scanned_and_proved(sp.load_npz(DATA / "Dorothea_train.npz"), 50)


def dorothea_solve(k: int = 10) -> dict[str, Any]:
    """`solve` from data to proof, one call."""
    import blockspca as bs

    X = sp.load_npz(DATA / "Dorothea_train.npz")
    taken, result = timed(lambda: bs.solve(bs.Covariance.from_data(X), k))
    return {"seconds": taken, "proved": str(result.status)}


def large_k(k: int) -> dict[str, Any]:
    """The component, and the best upper bound within the limit."""
    import blockspca as bs

    cov = bs.Covariance.from_data(sp.load_npz(DATA / "Dorothea_train.npz"))
    limits = bs.Limits(time=LARGE_K_SECONDS)
    taken, result = timed(lambda: bs.solve(cov, k, limits=limits))
    return {
        "seconds": taken,
        "value": result.objective,
        "objective": f"{result.objective:.5f}",
        "upper bound": f"{result.upper_bound:.5f}",
        "gap": f"{result.gap:.2%}",
        "status": str(result.status),
        "nodes": result.nodes,
    }


def half_product(X: np.ndarray, size: int = 1024) -> None:
    """The yardstick: X'X, symmetric half, in tiles, by BLAS alone."""
    d = X.shape[1]
    out = np.empty(size * size, dtype=X.dtype)
    for i in range(0, d, size):
        left = X[:, i : i + size]
        for j in range(i, d, size):
            right = X[:, j : j + size]
            shape = (left.shape[1], right.shape[1])
            np.dot(left.T, right, out=out[: shape[0] * shape[1]].reshape(shape))


def dense_scan(X: np.ndarray, width: int = 14) -> dict[str, Any]:
    import blockspca as bs
    from blockspca.scan import scan

    unit, _ = seconds(lambda: half_product(X))
    taken = []
    for _ in range(3):
        cov = bs.Covariance.from_data(X)
        taken.append(timed(lambda: scan(cov, width))[0])  # noqa: B023
    median = float(np.median(taken))
    return {"seconds": median, "blas": unit, "ratio": median / unit}


def expression_data(n: int, d: int, group: int = 50, seed: int = 0) -> np.ndarray:
    """Groups of correlated features with log-normal variances, as expression data.

    Features of a group share a factor, with correlations of 0.5 to 0.95 to it. The
    variance is log-normal, mostly between groups, some of it within.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((n, d), dtype=np.float64)
    for start in range(0, d, group):
        size = min(group, d - start)
        loading = rng.uniform(0.5, 0.95, size=size)
        deviation = np.exp(rng.normal(0, 0.5) + rng.normal(0, 0.2, size=size))
        block = rng.normal(size=(n, size)) * np.sqrt(1 - loading**2)
        block += rng.normal(size=(n, 1)) * loading
        X[:, start : start + size] = block * deviation
    return X


def related(n: int, size: int, seed: int = 0) -> np.ndarray:
    """Features that share a factor, with correlations of 0.95 to 0.99 to it."""
    rng = np.random.default_rng(seed)
    loading = rng.uniform(0.95, 0.99, size=size)
    own = rng.normal(size=(n, size)) * np.sqrt(1 - loading**2)
    return own + rng.normal(size=(n, 1)) * loading


def glabra() -> dict[str, Any]:
    return scanned_and_proved(expression_data(180, 49_151), 15)


def million(n: int = 100, d: int = 1_000_000, k_max: int = 20) -> dict[str, Any]:
    """Raw data, whose variances leave few features to scan."""
    import blockspca as bs

    X = expression_data(n, d)
    taken, path = timed(
        lambda: bs.solve_path(bs.Covariance.from_data(X), k_max)  # data to proof
    )
    proved = sum(r.status is bs.Status.OPTIMAL for r in path.values())
    return {"seconds": taken, "proved": f"{proved} of {k_max}", "ok": proved == k_max}


def growth(d: int) -> dict[str, Any]:
    import blockspca as bs
    from blockspca.scan import scan

    X = np.random.default_rng(0).normal(size=(100, d))
    cov = bs.Covariance.from_data(X)
    before = peak_mb()
    taken, _ = timed(lambda: scan(cov, 14))
    return {"seconds": taken, "above_mb": peak_mb() - before}


def dask_case() -> dict[str, Any]:
    import dask.array as da
    from distributed import Client, LocalCluster

    import blockspca as bs
    from blockspca.scan import scan

    X = expression_data(200, 8_000)
    cov = bs.Covariance.from_data(X)
    here, found = timed(lambda: scan(cov, 14))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c),
    ):
        chunked = da.from_array(X, chunks=(100, 2_000))
        remote = bs.Covariance.from_data(chunked)
        scan(remote, 3, features=np.arange(200))
        there, same = timed(lambda: scan(remote, 14))
    slack = found.rounding + same.rounding
    return {
        "seconds": there,
        "here": here,
        "ok": bool(np.abs(found.values - same.values).max() <= slack),
    }


def cell_counts(n: int, d: int, density: float, seed: int = 0) -> Any:
    """Logarithms of counts of six types of cells, each with forty markers (CSR)."""
    rng = np.random.default_rng(seed)
    types = rng.integers(0, 6, n)
    X = sp.random_array((n, d), density=density, rng=rng, format="csr")
    X.data = rng.poisson(2 * rng.gamma(1, 1, X.nnz)) + 1.0
    for group in range(6):
        cells = np.flatnonzero(types == group)
        more = sp.random_array((len(cells), 40), density=0.6, rng=rng, format="coo")
        more.data = rng.poisson(6, more.nnz) + 1.0
        place = (cells[more.coords[0]], 40 * group + more.coords[1])
        X = X + sp.coo_array((more.data, place), shape=(n, d)).tocsr()
    X = X.tocsr()
    X.data = np.log1p(X.data)
    return X


def cells() -> dict[str, Any]:
    """Four components of many sparse samples, against one X'X by scipy."""
    import blockspca as bs

    X = cell_counts(30_000, 5_000, 0.05)
    taken, model = timed(lambda: bs.SparsePCA(4, k=15).fit(X))
    peak = peak_mb()  # before the yardstick takes its own
    proved = sum(status == "optimal" for status in model.status_)
    product, _ = timed(lambda: X.T @ X)
    return {
        "seconds": taken,
        "scipy": product,
        "ratio": taken / product,
        "proved": f"{proved} of 4",
        "above_mb": peak,
        "ok": proved == 4,
    }


def equal_variances(n: int = 100, d: int = 100_000, k_max: int = 20) -> dict[str, Any]:
    """Standardised data, of which no pair can be passed over, against SYRK."""
    import blockspca as bs
    from blockspca.scan import scan

    X = expression_data(n, d)
    X[:, :60] = related(n, 60)
    low = np.ascontiguousarray(X).astype(np.float32)
    unit, _ = timed(lambda: half_product(low))
    prepared, cov = timed(lambda: bs.Covariance.from_data(X, scale=True))
    scanned, _ = timed(lambda: scan(cov, k_max - 1))
    proved_in, path = timed(lambda: bs.solve_path(cov, k_max))
    proved = sum(r.status is bs.Status.OPTIMAL for r in path.values())
    whole = prepared + scanned + proved_in
    return {
        "seconds": whole,
        "prepare": prepared,
        "scan": scanned,
        "syrk": unit,
        "ratio": whole / unit,
        "proved": f"{proved} of {k_max}",
        "ok": proved == k_max,
    }


def write_counts(path: Path, n: int, d: int, at_once: int = 20_000) -> None:
    """Write sparse counts by rows (CSR), as AnnData does, some cells at a time."""
    import h5py

    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = (n, d)
        pointers = np.zeros(1, dtype=np.int64)
        for start in range(0, n, at_once):
            X = cell_counts(min(at_once, n - start), d, 0.05, seed=start)
            for name, part in (("data", X.data), ("indices", X.indices)):
                if name not in group:
                    group.create_dataset(
                        name, (0,), part.dtype, maxshape=(None,), chunks=(2**20,)
                    )
                whole = group[name]
                whole.resize((len(whole) + len(part),))
                whole[-len(part) :] = part
            more = X.indptr[1:].astype(np.int64) + pointers[-1]
            pointers = np.concatenate([pointers, more])
        group["indptr"] = pointers


def backed(n: int = 200_000, d: int = 3_000, k: int = 15) -> dict[str, Any]:
    """Sparse samples in a file, never in memory as a whole."""
    import h5py

    import blockspca as bs

    limits = bs.Limits(memory=2 * 10**9)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        write_counts(path, n, d)
        with h5py.File(path, "r") as file:
            stored = int(file["X/indptr"][-1])
            taken, found = timed(
                lambda: bs.solve_components(
                    bs.Covariance.from_data(file["X"]), k, 4, limits=limits
                )
            )
    proved = sum(status is bs.Status.OPTIMAL for status in found.statuses)
    return {
        "seconds": taken,
        "file_mb": stored * 12 / 2**20,
        "proved": f"{proved} of 4",
        "ok": proved == 4,
    }


def large_k_of_cells(k: int = 50) -> dict[str, Any]:
    """One large k of many samples, proved within a minute."""
    import blockspca as bs

    cov = bs.Covariance.from_data(cell_counts(50_000, 5_000, 0.03))
    taken, result = timed(lambda: bs.solve(cov, k, limits=bs.Limits(time=60)))
    return {
        "seconds": taken,
        "gap": f"{result.gap:.2%}",
        "bound": str(result.bound_name),
        "status": str(result.status),
        "ok": result.status is bs.Status.OPTIMAL,
    }


CASES: dict[str, Case] = {
    "dorothea": dorothea,
    "dorothea-solve": dorothea_solve,
    **{f"large-{k}": (lambda k=k: large_k(k)) for k in LARGE_K},  # type: ignore[misc]
    "borovecki": lambda: dense_scan(load("borovecki")),
    "random": lambda: dense_scan(np.random.default_rng(0).normal(size=(100, 22_283))),
    "glabra": glabra,
    "million": million,
    **{f"growth-{d}": (lambda d=d: growth(d)) for d in GROWTH},  # type: ignore[misc]
    "dask": dask_case,
    "cells": cells,
    "equal": equal_variances,
    "backed": backed,
    "cells-50": large_k_of_cells,
}


def measure(name: str, cores: int) -> dict[str, Any]:
    """Run a case in a new process on some cores; return what it printed."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(cores)}
    command = [sys.executable, __file__, "--case", name, "--cores", str(cores)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{name} failed:\n{run.stderr}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def run_case(name: str, cores: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(available[:cores]))
    warm_up()
    before = time.process_time()
    result = CASES[name]()
    result["cpu"] = time.process_time() - before
    print(json.dumps({**result, "peak_mb": peak_mb()}))


def row(name: str, what: str, cores: int, target: str, met: bool, r: dict) -> list:
    details = {k: v for k, v in r.items() if k not in ("seconds", "peak_mb", "ok")}
    shown = ", ".join(
        f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
        for k, v in details.items()
    )
    line = [what, cores, f"{r['seconds']:.2f}", f"{r['peak_mb']:.0f}", shown, target]
    print(*line, "yes" if met else "no", sep="  ", flush=True)
    return [*line, "yes" if met else "no"]


def exponent(small: dict, large: dict, key: str, ratio: float) -> float:
    return float(np.log(large[key] / small[key]) / np.log(ratio))


def main() -> None:
    """Run one case in this process, for `measure`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    run_case(options.case, options.cores)


HEADER = ["case", "cores", "seconds", "peak MB", "details", "target", "met"]


def report(options: Options) -> Report:
    """The whole of it as a case of run.py."""
    if unknown := sorted(set(options.rows) - set(CASES)):
        rows = f"{', '.join(unknown)}; there are {', '.join(CASES)}"
        raise SystemExit(f"scale has no row {rows}")
    wanted = options.rows or [
        name for name in CASES if not options.quick or name == "growth-5000"
    ]
    rows = collect(list(wanted))
    found = Report("Scale, measured", seeds=[0])
    columns = {key: (key, "") for key in HEADER}
    found.add("Cases", columns, [dict(zip(HEADER, r, strict=True)) for r in rows])
    return found


def collect(wanted: list[str]) -> list[list]:
    """Run the cases, each in its own process; return the rows of the table."""
    rows = []
    results: dict[str, dict] = {}
    for name in wanted:
        r = results[name] = measure(name, 2)
        if name == "dorothea":
            what = "Dorothea_train: scan, every k ≤ 50 proved"
            met = r["ok"] and r["seconds"] <= 3.3 and r["peak_mb"] <= 1000
            rows.append(row(name, what, 2, "≤ 3.3 s, ≤ 1 GB", met, r))
            r = measure(name, 1)
            met = r["ok"] and r["seconds"] <= 12 and r["peak_mb"] <= 1000
            rows.append(row(name, what, 1, "≤ 12 s, ≤ 1 GB", met, r))
        elif name == "dorothea-solve":
            what = "Dorothea_train: solve(cov, 10), data to proof"
            rows.append(row(name, what, 2, "optimal", r["proved"] == "optimal", r))
        elif name.startswith("large"):
            k = int(name.split("-")[1])
            # the targets are such values, rounded to four digits
            met = round(r.pop("value"), 4) >= LARGE_K[k] and r["seconds"] <= 120
            target = f"≥ {LARGE_K[k]}, ≤ 120 s"
            rows.append(row(name, f"Dorothea_train, k = {k}", 2, target, met, r))
        elif name in ("borovecki", "random"):
            what = f"dense scan, {'31' if name == 'borovecki' else '100'} × 22,283"
            rows.append(row(name, what, 2, "≤ 2 × BLAS", r["ratio"] <= 2, r))
        elif name == "glabra":
            met = r["ok"] and r["seconds"] <= 60 and r["peak_mb"] <= 2000
            what = "dense 180 × 49,151: scan, k ≤ 15 proved"
            rows.append(row(name, what, 2, "≤ 60 s, ≤ 2 GB", met, r))
        elif name == "million":
            what = "dense 100 × 1,000,000, raw: data to k ≤ 20 proved"
            met = r["ok"] and r["seconds"] <= 4.4 and r["peak_mb"] <= 2640
            rows.append(row(name, what, 2, "≤ 4.4 s, ≤ 2.64 GB", met, r))
        elif name.startswith("growth"):
            d = int(name.split("-")[1])
            before = results.get(f"growth-{d // 2}")
            target, met = "", True
            if before:
                r["time_exponent"] = exponent(before, r, "seconds", 2)
                r["memory_exponent"] = exponent(before, r, "above_mb", 2)
            first = results.get(f"growth-{GROWTH[0]}")
            if d == GROWTH[-1] and first:
                whole = d / GROWTH[0]
                r["time_overall"] = exponent(first, r, "seconds", whole)
                r["memory_overall"] = exponent(first, r, "above_mb", whole)
                target = "exponents ≤ 2.1, 1.1"
                met = r["time_overall"] <= 2.1 and r["memory_overall"] <= 1.1
            rows.append(row(name, f"growth, 100 × {d:,}", 2, target, met, r))
        elif name == "cells":
            what = "30,000 × 5,000 sparse: four components, k = 15"
            peak = r.pop("above_mb")
            met = r["ok"] and r["ratio"] <= 1.3 and peak <= 1500
            target = "optimal, ≤ 1.3 × scipy's X'X, ≤ 1.5 GB"
            rows.append(row(name, what, 2, target, met, {**r, "peak_mb": peak}))
        elif name == "equal":
            what = "100 × 100,000 standardised: data to k ≤ 20 proved"
            met = r["ok"] and r["ratio"] <= 1.5
            rows.append(row(name, what, 2, "≤ 1.5 × SYRK in single", met, r))
        elif name == "backed":
            what = "200,000 × 3,000 sparse in a file: four components, k = 15"
            met = r["ok"] and r["peak_mb"] <= 2000
            rows.append(row(name, what, 2, "optimal, ≤ 2 GB", met, r))
        elif name == "cells-50":
            what = "50,000 × 5,000 sparse, k = 50"
            met = r["ok"] and r["seconds"] <= 60
            rows.append(row(name, what, 2, "optimal, ≤ 60 s", met, r))
        else:
            what = "dask, two workers, 200 × 8,000"
            rows.append(row(name, what, 2, "same result", r["ok"], r))
    return rows


if __name__ == "__main__":
    main()
