"""The scan on a GPU: time from data on the device to proofs, against the host.

    python benchmarks/run.py gpu --output DIR

Needs CuPy and a GPU. Groups of correlated features, standardised, so that all variances
are equal and no pair can be passed over: d features, 128 samples, every k ≤ 20 proved.
Many samples, sparse and dense: A formed on the device, and on the host by all cores.
DIR/gpu.md is the page docs/benchmark-gpu.md.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np

from common import Options, Report
from scale import cell_counts, expression_data, related, timed

SIZES = (100_000, 1_000_000)
SAMPLES = 128
K_MAX = 20
# Samples, features, and the share that is stored of sparse ones.
SPARSE = ((30_000, 5_000, 0.05), (200_000, 3_000, 0.03), (50_000, 10_000, 0.03))
DENSE = ((30_000, 3_000), (50_000, 5_000), (100_000, 3_000))
TARGETS = {100_000: 1.5, 1_000_000: 20.0}  # seconds


def device_name() -> str:
    import cupy

    found = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return found.decode() if isinstance(found, bytes) else str(found)


def data(d: int, seed: int = 0) -> np.ndarray:
    """Groups of features, one of which is related more closely than the others."""
    X = expression_data(SAMPLES, d, seed=seed)
    X[:, :60] = related(SAMPLES, 60, seed)
    return X


def warm_up() -> None:
    """Compile the kernels of both sides."""
    import cupy

    import blockspca as bs

    X = np.random.default_rng(0).normal(size=(20, 5000))
    bs.solve_path(bs.Covariance.from_data(cupy.asarray(X), scale=True), 4)
    bs.solve_path(bs.Covariance.from_data(X, scale=True), 4)


def measure(d: int) -> dict[str, Any]:
    """From data on the device to the proofs of every k."""
    import cupy

    import blockspca as bs
    from blockspca.scan import scan

    X = cupy.asarray(data(d))
    cupy.cuda.runtime.deviceSynchronize()
    start = time.perf_counter()
    cov = bs.Covariance.from_data(X, scale=True)
    prepared = time.perf_counter()
    found = scan(cov, K_MAX - 1)
    scanned = time.perf_counter()
    path = bs.solve_path(cov, K_MAX)
    proved = time.perf_counter()
    optimal = sum(result.status is bs.Status.OPTIMAL for result in path.values())
    return {
        "d": d,
        "prepare": prepared - start,
        "scan": scanned - prepared,
        "prove": proved - scanned,
        "seconds": proved - start,
        "proved": f"{optimal} of {K_MAX}",
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "target": TARGETS[d],
        "met": "yes" if optimal == K_MAX and proved - start <= TARGETS[d] else "no",
        **parts(cov),
        "sum of the lists": float(found.values.sum()),
    }


def parts(cov: Any) -> dict[str, float]:
    """The steps of the scan on the device, one by one."""
    import cupy

    from blockspca.scan.cuda_kernels import CudaKernels
    from blockspca.scan.device import TILE_SIZE, device_lists
    from blockspca.scan.single import SPARE

    d, width = cov.n_features, K_MAX - 1 + SPARE
    kernels = CudaKernels()
    clock = [time.perf_counter()]

    def lap() -> None:
        cupy.cuda.runtime.deviceSynchronize()
        clock.append(time.perf_counter())

    kernels.load(cov.dense_factor(), np.arange(d), 2.0)
    lap()
    lists = device_lists(kernels, d, width, lambda done, total: None)
    lap()
    kernels.listed(lists, width)
    lap()
    for i in range(0, d, TILE_SIZE):
        for j in range(i, d, TILE_SIZE):
            rows, columns = slice(i, i + TILE_SIZE), slice(j, j + TILE_SIZE)
            kernels.product(rows, columns)
    lap()
    names = ("copy", "lists", "in double", "products alone")
    return dict(zip(names, np.diff(clock).tolist(), strict=True))


def same_on_the_host(d: int) -> dict[str, Any]:
    """The same certificates from the host, and its time."""
    import cupy

    import blockspca as bs

    X = cupy.asarray(data(d, seed=1))
    there = bs.solve_path(bs.Covariance.from_data(X, scale=True), K_MAX)
    on_host = X.get()
    start = time.perf_counter()
    here = bs.solve_path(bs.Covariance.from_data(on_host, scale=True), K_MAX)
    taken = time.perf_counter() - start
    same = all(there[k].certificate == here[k].certificate for k in here)
    return {"d": d, "host seconds": taken, "same certificates": "yes" if same else "no"}


def many_samples(X: Any, there: Any) -> dict[str, Any]:
    """A of the same samples from the device and from the host."""
    import cupy

    import blockspca as bs
    from blockspca.covariance.formed import form

    n, d = X.shape
    there = there(X)
    cupy.cuda.runtime.deviceSynchronize()
    prepared, cov = timed(lambda: bs.Covariance.from_data(there))
    cov.formed()  # of this shape for the first time
    formed, A = timed(lambda: form(cov._source))
    here = bs.Covariance.from_data(X)
    on_host, B = timed(lambda: form(here._source))
    apart = float(np.abs(A.A - B.A).max())
    dense = isinstance(X, np.ndarray)
    return {
        "n": n,
        "d": d,
        "stored": "all" if dense else f"{X.nnz / n / d:.1%}",
        "prepare": prepared,
        "device": formed,
        "host": on_host,
        "ratio": on_host / formed,
        "apart": apart,
        "error": A.entry_error(),
    }


def of_many_samples() -> list[dict[str, Any]]:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    rows = [many_samples(cell_counts(*size), csr_matrix) for size in SPARSE]
    for size in DENSE:
        X = np.random.default_rng(0).normal(size=size)
        rows.append(many_samples(X, cupy.asarray))
    return rows


def report(options: Options) -> Report:
    """Measure as a case of run.py."""
    warm_up()
    sizes = SIZES[:1] if options.quick else SIZES
    found = Report("The scan on a GPU, measured", seeds=[0])
    found.notes.append(
        f"{device_name()}; {SAMPLES} samples, standardised; every k ≤ {K_MAX}. Times "
        "are from data on the device to certificates on the host, kernels compiled."
    )
    names = ("d", "seconds", "prepare", "scan", "prove", "proved", "peak")
    heads = ("features", "seconds", "prepare", "scan", "prove", "proved", "peak GB")
    columns = {name: (head, ".3g") for name, head in zip(names, heads, strict=True)}
    columns["d"] = ("features", ",")
    columns |= {"target": ("target s", "g"), "met": ("met", "")}
    rows = [measure(d) for d in sizes]
    found.add("From data to proofs", columns, rows)
    steps = ("copy", "lists", "in double", "products alone")
    found.add(
        "The scan",
        {"d": ("features", ","), **{name: (name, ".3g") for name in steps}},
        rows,
    )
    compared = {"d": ("features", ","), "host seconds": ("host seconds", ".3g")}
    compared["same certificates"] = ("same certificates", "")
    found.add("The host, all cores", compared, [same_on_the_host(SIZES[0])])
    formed = {"n": ("samples", ","), "d": ("features", ","), "stored": ("stored", "")}
    formed |= {
        "prepare": ("prepare", ".3g"),
        "device": ("A, GPU", ".3g"),
        "host": ("A, host", ".3g"),
        "ratio": ("ratio", ".3g"),
        "apart": ("largest difference", ".1e"),
        "error": ("proved error", ".1e"),
    }
    found.add("Many samples", formed, of_many_samples())
    return found
