"""Answers as JSON for the page; every name that is shown comes with its index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._messages import proof_in_words
from ..components.recording import recordable_names
from ..components.scheme_names import IN_TURN
from ..inspection.alternatives import Alternatives
from ..inspection.importance import FeatureImportance
from ..inspection.stability import Stability
from ..progress import Event
from ..result import NEGLIGIBLE, Price, Result
from ..sparsity_path import SparsityPath
from ..status import Status
from .dataset import Dataset
from .engine import PATH_K, Answer
from .state import MAX_COMPONENTS, MAX_K, State

MAX_SETS = 50  # alternatives that are shown
MAX_STABLE = 40  # features of a stability analysis that are shown


def number(value: float) -> float | None:
    """A number for JSON, which has neither infinity nor NaN."""
    return float(value) if math.isfinite(value) else None


def hello(dataset: Dataset, state: State) -> dict[str, Any]:
    """Describe the data, before anything is solved."""
    n, d = dataset.n_samples, dataset.n_features
    return {
        "type": "hello",
        "name": dataset.name,
        "samples": n,
        "features": d,
        "matrix": dataset.table.is_matrix,
        "path_k": min(PATH_K, d),
        "max_k": min(MAX_K, d),
        "max_components": min(MAX_COMPONENTS, d),
        "schemes": list(IN_TURN),
        "recordable": recordable_names(),
        "groups": len({label for label in dataset.group_labels if label}),
        "background": dataset.background is not None,
        "labels": list(dataset.labels),
        "state": state.to_dict(),
        "named": features(dataset, [*state.include, *state.exclude]),
    }


def features(dataset: Dataset, indices: Sequence[int]) -> list[list[Any]]:
    """Features as [index, name, group]."""
    groups = dataset.group_labels
    return [
        [int(i), dataset.names[i], groups[i] if groups else ""]
        for i in map(int, indices)
    ]


def component(dataset: Dataset, result: Result) -> dict[str, Any]:
    """A component with its loadings, largest first, and what is proved."""
    order = np.argsort(-np.abs(result.x[result.support]), kind="stable")
    chosen = result.support[order]
    shown = [i for i in chosen.tolist() if abs(result.x[i]) > NEGLIGIBLE]
    return {
        "k": result.k,
        "features": features(dataset, shown),
        "loadings": [float(result.x[i]) for i in shown],
        "objective": number(result.objective),
        "upper_bound": number(result.upper_bound),
        "gap": number(result.gap),
        "status": result.status.value,
        "proved": result.status is Status.OPTIMAL,
        "words": proof_in_words(result),
        "bound": str(result.bound_name),
    }


def components(dataset: Dataset, answer: Answer) -> dict[str, Any]:
    """The components of an answer, as far as it goes."""
    return {
        "type": "components",
        "complete": answer.complete,
        "components": [component(dataset, result) for result in answer.results],
    }


def summary(answer: Answer, pca: Any | None) -> dict[str, Any]:
    """What the components explain, against as many ordinary ones.

    Nothing of a contrast, which has no total variance.
    """
    if answer.cov.is_contrast:
        return {"type": "summary", "shares": None, "r2": None, "pca": None}
    total = float(answer.cov.diagonal().sum())
    dense = None if pca is None or total <= 0 else float(np.sum(pca)) / total
    return {
        "type": "summary",
        "shares": [number(share) for share in answer.shares],
        "r2": number(answer.r2),
        "pca": None if dense is None else number(dense),
    }


def progress(event: Event, component: int) -> dict[str, Any]:
    """How far a proof has come."""
    return {
        "type": "progress",
        "component": component,
        "stage": event.stage,
        "k": event.k,
        "objective": number(event.objective),
        "upper_bound": number(event.upper_bound),
        "gap": number(event.gap),
        "nodes": event.nodes,
    }


def path(walked: SparsityPath, ceiling: float) -> dict[str, Any]:
    """The curve over k with its bounds; `ceiling` is the variance of PCA's first."""
    results = list(walked.values())
    return {
        "type": "path",
        "k": [result.k for result in results],
        "objective": [number(result.objective) for result in results],
        "upper_bound": [number(result.upper_bound) for result in results],
        "proved": [result.status is Status.OPTIMAL for result in results],
        "ceiling": number(ceiling),
    }


def price(row: str, cost: Price) -> dict[str, Any]:
    """Return the cost of a constraint, as a share of the objective without it."""
    free = abs(cost.free_objective) or 1.0
    return {
        "constraint": row,
        "share": number(cost.share),
        "least": number(cost.least / free),
        "most": number(cost.most / free),
        "proved": cost.most - cost.least <= 1e-6 * free,
    }


def swaps(dataset: Dataset, found: FeatureImportance) -> dict[str, Any]:
    """Return the best replacement of each feature, and its cost."""
    before = set(np.flatnonzero(found.result.x).tolist())
    best = abs(found.result.objective) or 1.0
    rows = []
    for i, value, result in zip(
        found.features.tolist(), found.objectives, found.results, strict=True
    ):
        after = set(np.flatnonzero(result.x).tolist())
        rows.append(
            {
                "out": features(dataset, sorted(before - after)),
                "without": features(dataset, [i])[0],
                "in": features(dataset, sorted(after - before)),
                "cost": number((found.result.objective - value) / best),
                "proved": result.status is Status.OPTIMAL,
            }
        )
    return {"type": "swaps", "rows": rows, "complete": found.complete}


def sets(dataset: Dataset, found: Alternatives) -> dict[str, Any]:
    """The sets of k features that are nearly as good."""
    best = abs(found.best.objective) or 1.0
    before = set(found.best.support.tolist())
    rows = [
        {
            "out": features(dataset, sorted(before - set(support.tolist()))),
            "in": features(dataset, sorted(set(support.tolist()) - before)),
            "cost": number((found.best.objective - value) / best),
        }
        for support, value in zip(
            found.supports[:MAX_SETS], found.objectives[:MAX_SETS], strict=True
        )
    ]
    return {
        "type": "sets",
        "within": found.within,
        "count": len(found),
        "complete": found.complete,
        "rows": rows,
        "in_all": features(dataset, found.in_all.tolist()),
    }


def stability(dataset: Dataset, found: Stability) -> dict[str, Any]:
    """How often features were selected over resamples."""
    order = found.stable(1e-12)[:MAX_STABLE].tolist()
    return {
        "type": "stability",
        "resamples": found.n_resamples,
        "overlap": number(found.overlap),
        "proved": number(found.proved),
        "features": features(dataset, order),
        "frequency": [float(found.frequency[i]) for i in order],
        "low": [float(found.low[i]) for i in order],
        "high": [float(found.high[i]) for i in order],
    }
