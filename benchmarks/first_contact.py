"""What the first ten minutes show: `SparsePCA` with five components on every set.

BLOCKSPCA_DATA=.../data python benchmarks/first_contact.py [--sets NAME …] [--output F]

For each set, as it is and scaled, and k = 10, 29 and 30: seconds, components proved,
the largest gap, warnings; beside scikit-learn's MiniBatchSparsePCA on dense data, and
its SparsePCA up to PEER_FEATURES, each with its defaults and one run that may take
PEER_SECONDS. Every row is written to the file as it is measured: runs with other sets,
k or `--peers no` add to it, and the table is of all rows in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import blockspca as bs
from common import DATA, contents, correlations, machine, markdown

COMPONENTS, SPARSITIES = 5, (10, 29, 30)
PEER_FEATURES, PEER_SECONDS = 2400, 60
PEERS = ("MiniBatchSparsePCA", "SparsePCA")
EXEMPT = "Dorothea_train"  # 100,000 features: it ends at the default limit
SHARE, MEDIAN, LONGEST = 0.97, 1.5, 6.0  # what k = 10 is to reach

Row = dict[str, Any]


def ours(name: str, scale: bool, k: int) -> Row:
    """One fit by default but for k."""
    key, values = contents(name)
    how: dict[str, Any] = {"scale": scale}
    if key == "A":
        values = correlations(values) if scale else values
        how = {"covariance": "precomputed"}
    k = min(k, values.shape[1])
    model = bs.SparsePCA(min(COMPONENTS, values.shape[1]), k=k, **how)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        started = time.perf_counter()
        model.fit(values)
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "components": len(model.status_),
        "proved": model.status_.count("optimal"),
        "gap": float(model.gap_.max()),
        "variance": float(model.explained_variance_ratio_.sum()),
        "warnings": [str(one.message) for one in said],
    }


def peer(method: str, name: str, scale: bool) -> Row:
    """One fit of scikit-learn's, in a process of its own, which may be ended."""
    command = [sys.executable, __file__, "--peer", method, name, str(int(scale))]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=PEER_SECONDS, check=True
        )
        return {"seconds": float(done.stdout)}
    except subprocess.TimeoutExpired:
        return {"seconds": None}  # more than it may take


def seconds_of_peer(method: str, name: str, scale: bool) -> float:
    from sklearn import decomposition

    values = contents(name)[1]
    values = values - values.mean(axis=0)
    if scale:
        deviations = values.std(axis=0)
        values /= np.where(deviations > 0, deviations, 1.0)
    model = getattr(decomposition, method)(COMPONENTS, random_state=0)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(values)
    return time.perf_counter() - started


def peers_of(name: str) -> list[str]:
    key, values = contents(name)
    if key == "A" or sp.issparse(values):
        return []
    return [*PEERS] if values.shape[1] <= PEER_FEATURES else [PEERS[0]]


def table(rows: list[Row]) -> str:
    """All rows as Markdown: a line for each set, as it is and scaled."""
    ks = sorted({row["k"] for row in rows if "k" in row})
    header = ["data"]
    for k in ks:
        header += [f"k = {k}: s", "proved", "gap", "warnings"]
    lines = []
    for name, scale in sorted({(row["set"], row["scale"]) for row in rows}):
        here = [r for r in rows if (r["set"], r["scale"]) == (name, scale)]
        line = [name + (", scaled" if scale else "")]
        for k in ks:
            line += next((_cells(row) for row in here if row.get("k") == k), ["–"] * 4)
        for method in PEERS:
            found = [row for row in here if row.get("peer") == method]
            line += [_seconds(found[0]["seconds"]) if found else "–"]
        lines.append(line)
    return markdown([*header, *PEERS], lines)


def _cells(row: Row) -> list[str]:
    gap = f"{row['gap']:.2g}" if row["gap"] > 1e-8 else "0"
    proved = f"{row['proved']} of {row['components']}"
    return [_seconds(row["seconds"]), proved, gap, str(len(row["warnings"]) or "–")]


def _seconds(value: float | None) -> str:
    return f"> {PEER_SECONDS}" if value is None else f"{value:.2f}"


def summary(rows: list[Row]) -> list[str]:
    """A line for each k, without EXEMPT; that of 10 says what was to be reached."""
    lines = []
    rows = [row for row in rows if row["set"] != EXEMPT]
    for k in sorted({row["k"] for row in rows if "k" in row}):
        fits = [row for row in rows if row.get("k") == k]
        asked = sum(row["components"] for row in fits)
        share = sum(row["proved"] for row in fits) / asked
        times = [row["seconds"] for row in fits]
        longest, name = max((row["seconds"], row["set"]) for row in fits)
        line = f"k = {k}: {len(fits)} fits, {share:.1%} of {asked} components proved, "
        line += f"median {np.median(times):.2f} s, longest {longest:.1f} s ({name}), "
        line += f"{sum(len(row['warnings']) > 0 for row in fits)} fits with a warning"
        if k == SPARSITIES[0]:
            line += f"; to be reached: {SHARE:.0%}, {MEDIAN} s, {LONGEST} s"
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", help="names of files, all by default")
    parser.add_argument("--k", nargs="+", type=int, default=[*SPARSITIES])
    parser.add_argument("--peers", choices=("yes", "no"), default="yes")
    parser.add_argument("--output", type=Path, default=Path("first_contact.json"))
    parser.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peer:
        method, name, scale = asked.peer
        print(seconds_of_peer(method, name, scale == "1"))
        return
    rows: list[Row] = []
    if asked.output.exists():
        rows = json.loads(asked.output.read_text())["rows"]

    def keep(row: Row) -> None:
        keys = ("set", "scale", "k", "peer")
        rows[:] = [r for r in rows if any(r.get(k) != row.get(k) for k in keys)]
        rows.append(row)
        content = {"machine": machine(), "rows": rows}
        asked.output.write_text(json.dumps(content, indent=1, ensure_ascii=False))
        print(json.dumps(row, ensure_ascii=False), flush=True)

    sample = np.random.default_rng(0).normal(size=(30, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bs.SparsePCA(2, k=30, limits=5).fit(sample)  # compiles
    for name in asked.sets or sorted(path.stem for path in DATA.glob("*.npz")):
        for scale in (False, True):
            place = {"set": name, "scale": scale}
            for k in asked.k:
                keep({**place, "k": k, **ours(name, scale, k)})
            for method in peers_of(name) if asked.peers == "yes" else ():
                keep({**place, "peer": method, **peer(method, name, scale)})
    print(table(rows), *summary(rows), sep="\n\n")


if __name__ == "__main__":
    main()
