"""Fit `SparsePCA` with five components to every data set, as a new user would.

    python benchmarks/first_contact.py [--sets NAME ...] [--k K ...] [--peers no]
        [--output FILE]

The Python that runs it chooses the package: that of BASE, or the new one. Each set is
fitted as it is and scaled. A row has the seconds, the components proved, the largest
gap and the warnings; scikit-learn's MiniBatchSparsePCA stands beside it on dense data,
and its SparsePCA up to 2,400 features. Rows are written to the file as they come, and
later runs add to them. The data are in BLOCKSPCA_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockspca as bs

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
DATA = Path(os.environ.get("BLOCKSPCA_DATA", SHARED))
COMPONENTS, PEER_FEATURES, PEER_SECONDS = 5, 2400, 60
PEERS = ("MiniBatchSparsePCA", "SparsePCA")
EXEMPT = "Dorothea_train"  # 100,000 features: it ends at the default limit

Row = dict[str, Any]


def contents(name: str) -> tuple[str, Any]:
    """Return "A" and a matrix, or "X" and data."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        for key in ("A", "X"):
            if key in file:
                return key, file[key].astype(float)
    return "X", sp.load_npz(DATA / f"{name}.npz").astype(float)


def own_row(name: str, scale: bool, k: int) -> Row:
    """Fit with defaults but for k."""
    key, values = contents(name)
    options: dict[str, Any] = {"scale": scale}
    if key == "A":
        if scale:
            deviations = np.sqrt(np.diagonal(values))
            deviations[deviations == 0] = 1.0
            values = values / deviations[:, None] / deviations
        values = (values + values.T) / 2
        options = {"covariance": "precomputed"}
    d = values.shape[1]
    model = bs.SparsePCA(min(COMPONENTS, d), k=min(k, d), **options)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        started = time.perf_counter()
        model.fit(values)
        seconds = time.perf_counter() - started
    results = model.solution_.results
    return {
        "seconds": seconds,
        "components": len(results),
        "proved": sum(result.status.value == "optimal" for result in results),
        "gap": max(float(result.gap) for result in results),
        "variance": float(model.explained_variance_ratio_.sum()),
        "warnings": [str(message.message) for message in messages],
    }


def peer_row(method: str, name: str, scale: bool) -> Row:
    """Fit a class of scikit-learn in a process of its own, which may be ended."""
    command = [sys.executable, __file__, "--peer", method, name, str(int(scale))]
    try:
        process = subprocess.run(
            command, capture_output=True, timeout=PEER_SECONDS, check=True
        )
        return {"seconds": float(process.stdout)}
    except subprocess.TimeoutExpired:
        return {"seconds": None}


def peer_seconds(method: str, name: str, scale: bool) -> float:
    """Return the seconds of one fit of scikit-learn."""
    from sklearn import decomposition

    values = contents(name)[1]
    values = values - values.mean(axis=0)
    if scale:
        deviations = values.std(axis=0)
        values /= np.where(deviations > 0, deviations, 1.0)
    model = getattr(decomposition, method)(COMPONENTS, random_state=0)
    started = time.perf_counter()
    model.fit(values)
    return time.perf_counter() - started


def peers_of(name: str) -> tuple[str, ...]:
    """Return the classes that can fit a set."""
    key, values = contents(name)
    if key == "A" or sp.issparse(values):
        return ()
    return PEERS if values.shape[1] <= PEER_FEATURES else PEERS[:1]


def line(row: Row) -> str:
    """Return a row as text."""
    name = row["set"] + (", scaled" if row["scale"] else "")
    seconds = row["seconds"]
    time = f"> {PEER_SECONDS}" if seconds is None else f"{seconds:.2f}"
    if "peer" in row:
        return f"{name:28} {row['peer']:20} {time:>8} s"
    gap = f"{row['gap']:.2g}" if row["gap"] > 1e-8 else "0"
    return (
        f"{name:28} k = {row['k']:<16} {time:>8} s  {row['proved']} of "
        f"{row['components']} proved, gap {gap}, {len(row['warnings'])} warnings"
    )


def summary(rows: list[Row], k: int) -> str:
    """Return the shares and times of one k, without the exempt set."""
    fits = [row for row in rows if row.get("k") == k and row["set"] != EXEMPT]
    components = sum(row["components"] for row in fits)
    proved = sum(row["proved"] for row in fits)
    longest, name = max((row["seconds"], row["set"]) for row in fits)
    median = np.median([row["seconds"] for row in fits])
    return (
        f"k = {k}: {len(fits)} fits, {proved} of {components} components proved "
        f"({proved / components:.1%}), median {median:.2f} s, longest {longest:.1f} s "
        f"({name})"
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--k", nargs="+", type=int, default=[10, 29, 30])
    parser.add_argument("--peers", choices=("yes", "no"), default="yes")
    parser.add_argument("--output", type=Path, default=Path("first_contact.json"))
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        method, name, scale = options.peer
        print(peer_seconds(method, name, scale == "1"))
        return
    rows: list[Row] = []
    if options.output.exists():
        rows = json.loads(options.output.read_text())

    def keep(row: Row) -> None:
        keys = ("set", "scale", "k", "peer")
        rows[:] = [r for r in rows if any(r.get(n) != row.get(n) for n in keys)]
        rows.append(row)
        options.output.write_text(json.dumps(rows, indent=1, ensure_ascii=False))
        print(line(row), flush=True)

    sample = np.random.default_rng(0).normal(size=(30, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bs.SparsePCA(2, k=30, limits=5).fit(sample)  # compiles
    for name in options.sets or sorted(path.stem for path in DATA.glob("*.npz")):
        for scale in (False, True):
            place = {"set": name, "scale": scale}
            for k in options.k:
                keep({**place, "k": k, **own_row(name, scale, k)})
            for method in peers_of(name) if options.peers == "yes" else ():
                keep({**place, "peer": method, **peer_row(method, name, scale)})
    for k in options.k:
        print(summary(rows, k))


if __name__ == "__main__":
    main()
