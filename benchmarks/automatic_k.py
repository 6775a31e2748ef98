"""What k="auto" costs: the whole fit against the fit at the k that it chooses.

BLOCKSPCA_DATA=.../data python benchmarks/run.py automatic_k

`SparsePCA(n_components=c, k="auto").fit(X)` and then, with the k of each component that
it chose, `SparsePCA(n_components=c, k=ks).fit(X)`, c = 1 and 4; both begin with the
data. The target is a ratio of at most three. Seconds are those of the processor, all
threads together, which other work on the machine does not stretch; each is the least of
three fits, or of one where that takes more than ten seconds.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from sklearn.datasets import load_breast_cancer, load_wine

import blockspca as bs
from common import Options, Report, contents

TARGET = 3.0
SETS = (
    "wine",
    "breast_cancer",
    "snp500",
    "madelon",
    "alon_colon",
    "srbct_khan",
    "Leukemia",
)
QUICK = SETS[:3]
COMPONENTS = (1, 4)
COLUMNS = {
    "data": ("data", ""),
    "n": ("n", ""),
    "d": ("d", ""),
    "components": ("components", ""),
    "k": ("k", ""),
    "automatic": ('k="auto", s', ".2f"),
    "given": ("k given, s", ".2f"),
    "ratio": ("ratio", ".2f"),
    "status": ("proved", ""),
}


def report(options: Options) -> Report:
    """Measure every set with one and with four components."""
    warm_up()
    rows = [
        measured(name, m)
        for name in (QUICK if options.quick else SETS)
        for m in COMPONENTS
    ]
    largest = max(row["ratio"] for row in rows)
    found = Report('k="auto" against the fit at the k that it chooses')
    found.notes.append(f"The largest ratio is {largest:.2f}; the target is {TARGET:g}.")
    found.add("Fits", COLUMNS, rows)
    return found


def measured(name: str, m: int) -> dict[str, Any]:
    """One set: both fits, in processor seconds."""
    X, settings = data(name)
    model, automatic = fitted(X, n_components=m, k="auto", **settings)
    ks = [choice.k for choice in model.choices_of_k_]
    again, given = fitted(X, n_components=m, k=ks, **settings)
    return {
        "data": name,
        "n": "" if settings.get("covariance") else X.shape[0],
        "d": X.shape[1],
        "components": m,
        "k": ", ".join(map(str, ks)),
        "automatic": automatic,
        "given": given,
        "ratio": automatic / given,
        "status": f"{again.status_.count('optimal')} of {m}",
    }


def data(name: str) -> tuple[Any, dict[str, Any]]:
    """A set, and how it is fitted: real units are scaled, matrices are taken as is."""
    if name in ("wine", "breast_cancer"):
        chosen = load_wine if name == "wine" else load_breast_cancer
        return chosen().data, {"scale": True}
    kind, content = contents(name)
    return content, {"covariance": "precomputed"} if kind == "A" else {}


def fitted(X: Any, **settings: Any) -> tuple[bs.SparsePCA, float]:
    """A fitted model, and the least processor time of up to three fits."""
    times = []
    for _ in range(3):
        began = time.process_time()
        with warnings.catch_warnings():  # of what is not proved: a column says so
            warnings.simplefilter("ignore")
            model = bs.SparsePCA(**settings, random_state=0).fit(X)
        times.append(time.process_time() - began)
        if times[-1] > 10:
            break
    return model, min(times)


def warm_up() -> None:
    X = load_wine().data
    for k in ("auto", 3):
        bs.SparsePCA(n_components=2, k=k).fit(X)
