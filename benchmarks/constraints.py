"""Constraints, non-negative loadings and alternatives on real sets, k = 10.

BLOCKSPCA_DATA=.../data python benchmarks/run.py constraints

For each set the component without constraints, and then: two features in that are next
to it, two drawn at random, three of its own out, five random groups with at most two
each, no negative loading, and an overlap of three with ten others. Seconds are those of
the whole call, which also solves the problem without constraints, and the ratio is to
that problem alone. `alternatives` lists all sets within 0.1 % in ten seconds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import blockspca as bs
from common import Options, Report, load

K = 10
SECONDS = 60.0
SETS = (
    "normIonosphere",
    "normMiniBooNE",
    "normLung",
    "Eisen1Cov",
    "normCommunities",
    "Eisen2Cov",
    "snp500",
    "CovColon",
    "LymphomaCov1",
    "madelon",
    "alon_colon",
    "Reddit2000",
    "srbct_khan",
    "Leukemia",
    "Lymphoma2",
    "ALLAML",
    "golub_raw",
    "gordon",
    "singh",
    "borovecki",
)
QUICK = SETS[:4]
COLUMNS = {
    "data": ("data", ""),
    "d": ("d", ""),
    "what": ("constraint", ""),
    "seconds": ("s", ".2f"),
    "ratio": ("times without", ".1f"),
    "status": ("status", ""),
    "price": ("price", ".2%"),
}
LISTED = {
    "data": ("data", ""),
    "seconds": ("s", ".2f"),
    "sets": ("sets", ""),
    "complete": ("complete", ""),
    "in_all": ("in all", ""),
}


def report(options: Options) -> Report:
    """Measure every set, and say what holds in the median."""
    rows: list[dict[str, Any]] = []
    lists: list[dict[str, Any]] = []
    for name in QUICK if options.quick else SETS:
        cov = as_covariance(name)
        bs.solve(cov, 2)  # the scan, which every call shares
        rows += constrained(name, cov)
        lists.append(listed(name, cov))
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    proved = np.mean([row["status"] == "optimal" for row in rows])
    complete = np.mean([row["complete"] for row in lists])
    found = Report("Constraints on real sets, k = 10")
    found.notes.append(
        f"In the median {np.median(ratios):.1f} times the problem without constraints; "
        f"proved: {proved:.0%}. Complete lists of alternatives: {complete:.0%}."
    )
    found.add("Constraints", COLUMNS, rows)
    found.add("Alternatives within 0.1 %", LISTED, lists)
    return found


def as_covariance(name: str) -> bs.Covariance:
    values = load(name)
    if values.shape[0] == values.shape[1]:
        return bs.Covariance.from_matrix(values)
    return bs.Covariance.from_data(values)


def constrained(name: str, cov: bs.Covariance) -> list[dict[str, Any]]:
    """One row for the problem without constraints, and one for each with."""
    start = time.perf_counter()
    free = bs.solve(cov, K, limits=bs.Limits(time=SECONDS))
    alone = time.perf_counter() - start
    d = cov.n_features
    rng = np.random.default_rng(0)
    own = set(free.support.tolist())
    near = [i for i in np.argsort(-np.abs(cov.matvec(free.x))) if i not in own]
    cases: dict[str, dict[str, Any]] = {
        "two near ones in": {"include": near[:2]},
        "two random ones in": {"include": rng.permutation(d)[:2]},
        "three out": {"exclude": free.support[:3]},
        "two of each group": {"groups": rng.integers(0, 5, size=d), "max_per_group": 2},
        "no negative loading": {"nonnegative": True},
        "overlap": {"overlap_with": near[:K], "min_overlap": 3},
    }
    base = {"data": name, "d": d}
    first = {"what": "none", "seconds": alone, "ratio": None, "price": None}
    rows = [{**base, **first, "status": str(free.status)}]
    for what, given in cases.items():
        start = time.perf_counter()
        constraints = bs.Constraints(**given)
        limits = bs.Limits(time=SECONDS)
        result = bs.solve(cov, K, constraints=constraints, limits=limits)
        seconds = time.perf_counter() - start
        assert result.price is not None
        row = {
            "what": what,
            "seconds": seconds,
            "ratio": seconds / alone,
            "status": str(result.status),
            "price": result.price.share,
        }
        rows.append({**base, **row})
    return rows


def listed(name: str, cov: bs.Covariance) -> dict[str, Any]:
    start = time.perf_counter()
    found = bs.alternatives(cov, K, within=0.001, limits=bs.Limits(time=10.0))
    return {
        "data": name,
        "seconds": time.perf_counter() - start,
        "sets": len(found),
        "complete": found.complete,
        "in_all": len(found.in_all),
    }
