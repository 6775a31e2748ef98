"""A dask cluster: bytes that move between workers, against the cost model.

    python benchmarks/run.py cluster --output DIR

Two workers on this machine, each a process with one thread. The model, for n samples
and d features in r chunks of rows and c of columns, w = d / c:

    Gram, CSR chunks    8 d² for each chunk of rows but the first, and to the client
    Gram, dense         for each of c (c + 1) / 2 tiles, 8 w² for each chunk of rows but
                        the first; and at most half of the chunks for each pair
    scan, dense         the same, and 16 K w for the two lists of each tile

The memory of a worker above its chunks: for CSR chunks 8 d² for each X'X of a chunk
that is added up at a time (9 with the sum); otherwise 8 n d for the centred chunks, at
the most all of them, and 8 w² for each tile that waits to be added up.

Where a task runs is up to the scheduler, which moves less than that when it can. Bytes
between processes of one machine are counted as those of a network are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import Options, Report

WIDTH = 14  # entries of each list of a scan
SIZES = {
    "Gram, CSR chunks": ((4_000, 500), (8_000, 1_000), (16_000, 2_000)),
    "Gram, dense": ((2_000, 500), (4_000, 1_000), (8_000, 2_000)),
    "scan, dense": ((100, 2_000), (100, 4_000), (100, 8_000)),
}


def moved(client: Any) -> int:
    """Bytes that workers have sent to each other and to the client."""
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return int(sum(sent.values()))


def _start_of_peak() -> int:
    """Let the peak of this process begin now; return what it has now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(x for x in lines if x.startswith(name)).split()[1])


def model(kind: str, n: int, d: int, r: int, c: int) -> float:
    """Bytes at the most, by the formulas above."""
    if kind == "Gram, CSR chunks":
        return 8.0 * d * d * r
    w = d / c
    pairs = c * (c + 1) / 2
    inputs = 8.0 * n * w * (c * (c - 1) / 2)  # the chunk that is not there yet
    sums = 8.0 * w * w * pairs * (r - 1)
    if kind == "Gram, dense":
        return inputs + sums + 8.0 * w * w * pairs
    return inputs + sums + 2 * 16.0 * WIDTH * w * pairs + 16.0 * WIDTH * d


def memory(kind: str, n: int, d: int, r: int, c: int) -> float:
    """Bytes of a worker above its chunks, at the most, by the formulas above."""
    from blockspca.covariance.task_tree import TREE_ARITY

    joined = min(r, TREE_ARITY) + 1
    if kind == "Gram, CSR chunks":
        return 8.0 * d * d * joined
    w = d / c
    pairs = c * (c + 1) / 2
    tiles = 8.0 * w * w * (pairs * joined if r > 1 else 3)
    return 8.0 * n * d + tiles


def chunked(kind: str, n: int, d: int) -> tuple[Any, int, int, float]:
    """The array, how many chunks of rows and of columns it has, and the operations."""
    import dask.array as da

    rng = np.random.default_rng(0)
    if kind == "Gram, CSR chunks":
        X = sp.random_array((n, d), density=0.05, rng=rng, format="csr").toarray()
        array = da.from_array(X, chunks=(n // 8, d)).map_blocks(sp.csr_matrix)
        work = float((np.count_nonzero(X, axis=1).astype(float) ** 2).sum())
    else:
        X = rng.normal(size=(n, d))
        rows = n // 8 if n > d else n
        array = da.from_array(X, chunks=(rows, d // 4))
        work = float(n) * d * d
    return array.persist(), array.numblocks[0], array.numblocks[1], work


def measure(client: Any, kind: str, n: int, d: int) -> dict[str, Any]:
    """One Gram matrix or scan: seconds, bytes moved, memory of a worker."""
    import blockspca as bs
    from blockspca.scan import scan

    X, r, c, done = chunked(kind, n, d)
    cov = bs.Covariance.from_data(X)
    work: Callable[[], Any] = cov.formed
    if kind == "scan, dense":
        work = lambda: scan(cov, WIDTH)  # noqa: E731
    had = client.run(_start_of_peak)
    before, start = moved(client), time.perf_counter()
    work()
    taken, bytes_moved = time.perf_counter() - start, moved(client) - before
    peaks = client.run(_status, "VmHWM")
    said = model(kind, n, d, r, c)
    return {
        "kind": kind,
        "n": n,
        "d": d,
        "chunks": f"{r} × {c}",
        "seconds": taken,
        "operations": done,
        "rate": done / taken,
        "worker": max(peaks[name] - had[name] for name in had) / 1e6,
        "worker model": memory(kind, n, d, r, c) / 1e6,
        "moved": bytes_moved / 1e6,
        "model": said / 1e6,
        "data": 8e-6 * n * d,
        "met": "yes" if bytes_moved <= 1.05 * said + 1e5 else "no",
    }


def report(options: Options) -> Report:
    """Measure as a case of run.py."""
    from distributed import Client, LocalCluster

    rows = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as client,
    ):
        for kind, sizes in SIZES.items():
            measure(client, kind, *sizes[0])  # what the workers compile and load
            for n, d in sizes[:1] if options.quick else sizes:
                rows.append(measure(client, kind, n, d))
    found = Report("A cluster: what moves", seeds=[0])
    found.notes.append(
        "Two workers on one machine. MB sent by the workers, to each other and to the "
        "client, and what the cost model allows; 'dense MB' is X written out."
    )
    columns = {
        "kind": ("step", ""),
        "n": ("samples", ","),
        "d": ("features", ","),
        "chunks": ("chunks", ""),
        "moved": ("MB moved", ".3g"),
        "model": ("model, at most", ".3g"),
        "data": ("dense MB", ".3g"),
        "seconds": ("seconds", ".3g"),
        "met": ("within", ""),
    }
    found.add("Bytes", columns, rows)
    shown = ("kind", "n", "d", "chunks", "seconds")
    columns = {name: columns[name] for name in shown} | {
        "operations": ("operations", ".2g"),
        "rate": ("a second", ".2g"),
        "worker": ("MB of a worker", ".3g"),
        "worker model": ("model, at most", ".3g"),
    }
    found.add("Operations and memory", columns, rows)
    return found
