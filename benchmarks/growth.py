"""The certified path as d, n and k grow, one at a time, with fitted exponents.

python benchmarks/run.py growth

Data with groups of correlated features and log-normal variances, as gene expression has
them. Each size is the median of several runs on a new `Covariance`, the data's centring
and the scan included; X'X by BLAS on the same threads is measured beside it. The
exponent is the slope of the least-squares line through log time against log size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import blockspca as bs
from common import Options, Report, seconds
from scale import expression_data, half_product, warm_up

BASE = {"d": 4000, "n": 100, "k": 10}
SIZES = {
    "d": (1000, 2000, 4000, 8000, 16000),
    "n": (50, 100, 200, 400, 800),
    "k": (5, 10, 20, 40),
}
QUICK_BASE = {"d": 400, "n": 30, "k": 4}
QUICK_SIZES = {"d": (200, 400, 800), "n": (20, 40, 80), "k": (2, 4, 8)}
LIMIT = 60.0  # seconds for one path

COLUMNS = {
    "d": ("d", ""),
    "n": ("n", ""),
    "k": ("k", ""),
    "proved": ("proved, of k", ""),
    "seconds": ("path, s", ".4f"),
    "blas": ("X'X by BLAS, s", ".4f"),
    "ratio": ("ratio", ".2f"),
}


def one_size(d: int, n: int, k: int, repeats: int = 3) -> dict[str, Any]:
    """Measure the certified path up to k on n × d data, and X'X beside it."""
    X = expression_data(n, d)
    taken, path = seconds(
        lambda: bs.solve_path(
            bs.Covariance.from_data(X), k, limits=bs.Limits(time=LIMIT)
        ),
        repeats,
    )
    blas, _ = seconds(lambda: half_product(X), repeats)
    return {
        "d": d,
        "n": n,
        "k": k,
        "proved": sum(r.status is bs.Status.OPTIMAL for r in path.values()),
        "seconds": taken,
        "blas": blas,
        "ratio": taken / blas,
    }


def exponent(sizes: list[float], times: list[float]) -> float:
    """Return the p of the least-squares fit time ≈ c · size^p.

    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def report(options: Options) -> Report:
    base = QUICK_BASE if options.quick else BASE
    sizes = QUICK_SIZES if options.quick else SIZES
    warm_up()
    result = Report("Growth of the certified path", seeds=[0])
    for which, values in sizes.items():
        rows = [one_size(**{**base, which: value}) for value in values]
        found = {
            key: exponent([row[which] for row in rows], [row[key] for row in rows])
            for key in ("seconds", "blas")
        }
        result.notes.append(
            f"In {which}: time grows as {which}^{found['seconds']:.2f}, that of X'X by "
            f"BLAS as {which}^{found['blas']:.2f}; the path takes "
            f"{min(r['ratio'] for r in rows):.2f} to "
            f"{max(r['ratio'] for r in rows):.2f} times as long as X'X."
        )
        result.add(f"Growth in {which}", COLUMNS, rows)
        result.tables[-1]["exponent"] = found
    return result
