"""Five components of ten features: what every scheme explains, and scikit-learn's.

BLOCKSPCA_DATA=.../data python benchmarks/run.py components

For each set, in percent of the total variance: the sum of the adjusted variances, and
R², the share of all features' variance that regression on the scores predicts; seconds
of processor time; how many components were proved. Matrices are given to scikit-learn
as a root whose columns have mean 0, since it subtracts what they have, data centred;
both divided by the root of the mean variance, so that alpha means the same everywhere.
scikit-learn's components are cut to their k largest loadings, the best R² of ALPHAS
counting; its time is that of one fit. Only up to PEER_FEATURES; the largest take it
half a minute for each alpha.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import blockspca as bs
import joint
from blockspca.components.scheme_names import as_scheme
from blockspca.components.variance import (
    adjusted_variance,
    predicted,
    score_covariance,
)
from common import DATA, Options, Report, columned, load

Row = dict[str, Any]

COMPONENTS, K = 5, 10
LIMITS = bs.Limits(nodes=2000, time=15.0)  # for all components of a scheme
LARGEST = 1_300_000  # entries; a larger set is left to `scale`
PEER_FEATURES = 13_000
PEER_ITERATIONS = 20
ALPHAS = (0.03, 0.1, 0.3)  # of data whose features have a sum of squares of 1

SCHEMES = {
    "disjoint": bs.DisjointSupports(),
    "projection": bs.ProjectionDeflation(),
    "orthogonal": bs.Orthogonalised(),
    "hotelling": bs.HotellingDeflation(),
    "residual": bs.ResidualDeflation(),
    "auto": as_scheme("auto"),  # the default of SparsePCA
    "residual, disjoint": bs.ResidualDeflation(disjoint=True),
    "predictive": bs.ResidualDeflation(prediction=2.5, above_lasso=True),
}

#: What is compared with scikit-learn: a scheme, whether it is proved, and sweeps.
PREDICTING = {
    "auto": ("auto", True, 0),
    "residual": ("residual", True, 0),
    "residual, sweeps": ("residual", True, 10),
    "predictive": ("predictive", True, 0),
    "predictive, without proofs": ("predictive", False, 0),
}
PROOFS = bs.Limits(nodes=200_000, time=60.0)
PEER_ENTRIES = 4_100_000  # of data for scikit-learn, 25 s a fit
PREDICTED_ENTRIES = 5_000_000  # of a set that is measured at all
TURNS = 3  # of which the least time counts, here and there

COLUMNS = {
    "data": ("data", ""),
    "d": ("d", ""),
    "method": ("method", ""),
    "adjusted": ("adjusted variance", ".2%"),
    "r2": ("R²", ".2%"),
    "proved": ("proved", ""),
    "seconds": ("seconds", ".2f"),
}


def covariance(path: Path) -> tuple[bs.Covariance, np.ndarray | None]:
    """Return A, and data for scikit-learn whose second moments it is, if small."""
    values = load(path.stem)
    n, d = values.shape
    if n == d:
        cov = bs.Covariance.from_matrix(values)
        data = centred_root(values) if d <= PEER_FEATURES else None
    else:
        cov = bs.Covariance.from_data(values)
        data = None
        if isinstance(values, np.ndarray) and d <= PEER_FEATURES:
            data = values - values.mean(axis=0)
    return cov, None if data is None else data / np.sqrt((data**2).sum() / d)


def centred_root(A: np.ndarray) -> np.ndarray:
    """Return C, (d + 1, d), with C'C = A, the columns of which have mean 0."""
    sizes, vectors = np.linalg.eigh(A)
    root = np.sqrt(np.maximum(sizes, 0))[:, None] * vectors.T
    n = len(root)
    # An orthonormal basis of what is orthogonal to a column of ones.
    basis = np.linalg.qr(np.c_[np.ones(n + 1), np.eye(n + 1, n)])[0][:, 1:]
    return np.asarray(basis @ root)


def peers(data: np.ndarray, k: int, m: int) -> dict[str, list[tuple[Any, float]]]:
    """Return components of scikit-learn for each alpha, cut to k, and their times."""
    from sklearn.decomposition import MiniBatchSparsePCA, SparsePCA

    found: dict[str, list[tuple[Any, float]]] = {}
    for name, kind in (("SparsePCA", SparsePCA), ("MiniBatch", MiniBatchSparsePCA)):
        for alpha in ALPHAS:
            model = kind(m, alpha=alpha, max_iter=PEER_ITERATIONS, random_state=0)
            spent = np.inf
            for _ in range(TURNS if kind is MiniBatchSparsePCA else 1):
                started = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    V = np.array(model.fit(data).components_)
                spent = min(spent, time.process_time() - started)
            for row in V:
                row[np.argsort(-np.abs(row), kind="stable")[k:]] = 0.0
            V = V[V.any(axis=1)]
            found.setdefault(f"scikit-learn {name}", []).append((V, spent))
    return found


def measured(path: Path) -> list[Row]:
    """Return a row for each method on one set."""
    cov, data = covariance(path)
    d = cov.n_features
    k = max(1, min(K, d // COMPONENTS))
    total = float(cov.diagonal().sum())
    rows = []

    def add(method: str, components: Any, seconds: float, proved: Any) -> None:
        scores = score_covariance(cov, components)
        row = {
            "data": path.stem,
            "d": d,
            "k": k,
            "method": method,
            "adjusted": float(adjusted_variance(scores).sum()) / total,
            "r2": predicted(cov, components),
            "proved": proved,
            "seconds": seconds,
        }
        rows.append(row)

    for name in SCHEMES:
        started = time.process_time()
        found = bs.solve_components(
            cov, k, COMPONENTS, scheme=SCHEMES[name], limits=LIMITS
        )
        spent = time.process_time() - started
        proved = sum(status is bs.Status.OPTIMAL for status in found.statuses)
        add(name, found.components, spent, proved)
    if data is not None:
        for name, runs in peers(data, k, COMPONENTS).items():
            runs = [run for run in runs if len(run[0])]
            if runs:
                V, spent = max(runs, key=lambda run: predicted(cov, run[0]))
                V = V / np.linalg.norm(V, axis=1, keepdims=True)
                add(name, V, spent, "")
    return rows


def predicting(path: Path) -> list[Row]:
    """Return a row for each of `PREDICTING` and of scikit-learn's, on one set.

    Seconds of the processor, of one fit; scikit-learn's alpha is the one of three with
    the largest R², which takes three fits to find.
    """
    cov, data = covariance(path)
    k = max(1, min(K, cov.n_features // COMPONENTS))
    total = float(cov.diagonal().sum())
    rows = []

    def add(method: str, V: Any, seconds: float, proved: Any) -> None:
        adjusted = float(adjusted_variance(score_covariance(cov, V)).sum()) / total
        row = {"data": path.stem, "d": cov.n_features, "method": method}
        row |= {"adjusted": adjusted, "r2": predicted(cov, V)}
        rows.append(row | {"proved": proved, "seconds": seconds})

    for method, (name, certify, sweeps) in PREDICTING.items():
        spent = []
        for _ in range(TURNS):
            fresh, _ = covariance(path)  # nothing is kept from one turn to the next
            started = time.process_time()
            found = bs.solve_components(
                fresh,
                k,
                COMPONENTS,
                scheme=SCHEMES[name],
                sweeps=sweeps,
                certify=certify,
                limits=PROOFS if certify else None,
            )
            spent.append(time.process_time() - started)
        proved = sum(status is bs.Status.OPTIMAL for status in found.statuses)
        add(method, found.components, min(spent), proved if certify else "")
    if data is not None and data.size <= PEER_ENTRIES:
        for name, runs in peers(data, k, COMPONENTS).items():
            runs = [run for run in runs if len(run[0])]
            V, spent = max(runs, key=lambda run: predicted(cov, run[0]))
            add(name, V / np.linalg.norm(V, axis=1, keepdims=True), spent, "")
    return rows


def of_sets(
    measure: Callable[[Path], list[Row]], largest: int, options: Options
) -> Iterator[Row]:
    """Yield the rows of each set of at most so many entries, the smallest first."""
    largest = min(largest, 100_000) if options.quick else largest
    sizes = {path: np.prod(load(path.stem).shape) for path in DATA.glob("*.npz")}
    for path in sorted(sizes, key=lambda path: (sizes[path], path)):
        if sizes[path] <= largest:
            yield from measure(path)


#: The parts of this case, the rows that `run.py` can ask for: what a part measures, the
#: columns of its table, and the rows.
PARTS: dict[str, tuple[str, dict[str, tuple[str, str]], Callable[..., Iterator[Row]]]]
PARTS = {
    "schemes": (
        f"{COMPONENTS} components, k = {K} at most",
        COLUMNS,
        partial(of_sets, measured, LARGEST),
    ),
    "prediction": (
        "Components that predict",
        COLUMNS,
        partial(of_sets, predicting, PREDICTED_ENTRIES),
    ),
    "orthogonal": (
        "Four orthogonal or uncorrelated components of snp500",
        joint.SHARE_COLUMNS,
        joint.orthogonal,
    ),
    "joint": (
        "Orthogonal components and the bound on all of them",
        joint.JOINT_COLUMNS,
        joint.joint,
    ),
    "shared": (
        "Five components on one set of features",
        joint.SHARED_COLUMNS,
        joint.shared,
    ),
}


def report(options: Options) -> Report:
    """Measure the parts that are asked for; each row is printed when it is known."""
    if unknown := sorted(set(options.rows) - set(PARTS)):
        raise ValueError(f"no rows {', '.join(unknown)}; there are {', '.join(PARTS)}")
    found = Report("Several components: what every scheme explains")
    for part in options.rows or PARTS:
        name, columns, rows_of = PARTS[part]
        rows = []
        for row in rows_of(options):
            print(*columned(row, columns), sep="  ", flush=True)
            rows.append(row)
        found.add(name, columns, rows)
    return found
