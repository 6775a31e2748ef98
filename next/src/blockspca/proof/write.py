"""Writes proofs to a file: docs/proof-format.md, section 2."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checker.problem import FORMAT, RULES, VERSION
from ..covariance.kinds import table_of
from .evidence import Average, Record, Tree

if TYPE_CHECKING:
    from ..result import Result

ROOM = 2.0**-31  # of the terms of an objective in a file, for their rounding
NAMES = {kind: rule for rule, (kind, _) in RULES.items()}

Vectors = Sequence[tuple[Sequence[int], Sequence[float]]]


def write_proof(
    path: str | Path, data: Any, *parts: tuple[Sequence[Result], Vectors]
) -> None:
    """Write a proof file; anybody who has the data can check it.

    Parameters
    ----------
    path : path
        The file; it is replaced once the whole proof is written.
    data : array, table or file
        The data that the covariance of the results was made from.
    *parts : pairs (results, vectors)
        One proof for each pair. Its results are for the same matrix, the residual after
        regression on the scores of the vectors (features, loadings).
    """
    first = parts[0][0][0]
    for results, _ in parts:
        _refuse_unnamed(results[0])
    digest = first.identity.sha256(data)  # refuses other data
    scale = max(abs(each.objective) for results, _ in parts for each in results)
    proofs = [_proof(results, vectors, data, scale) for results, vectors in parts]
    n, d = first.identity.shape
    document = {
        "format": FORMAT,
        "version": VERSION,
        "data": {"sha256": digest, "samples": n, "features": d},
        "proofs": proofs,
    }
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(json.dumps(document) + "\n", encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _refuse_unnamed(result: Result) -> None:
    """Refuse a result about a matrix or sets that a file cannot name."""
    if result.identity is None or result.identity.weighted:
        raise ValueError(
            "write_proof cannot name the matrix of this result: it was not made from "
            "data or a matrix alone; use verify(result, cov)."
        )
    if result.sets.include:
        raise ValueError(
            "write_proof does not support include; use verify(result, cov)."
        )


def _proof(
    results: Sequence[Result], vectors: Vectors, data: Any, scale: float
) -> dict[str, Any]:
    identity, sets = results[0].identity, results[0].sets
    problem: dict[str, Any] = {"kind": identity.kind}
    if identity.kind == "data":
        for key in ("center", "scale", "ddof"):
            problem[key] = getattr(identity, key)
    if vectors:
        problem["residual"] = [_vector(i, x) for i, x in vectors]
    if sets.without:
        problem["without"] = list(sets.without)
    if sets.groups:
        problem["groups"] = [
            {"most": most, "features": sorted(features)}
            for most, features in sets.groups
        ]
    records: list[Record] = []
    for each in results:
        records += [record for record in each.bound.evidence if record not in records]
    return {
        "problem": problem,
        "claims": [_claim(each, data, scale) for each in results],
        "records": [_record(record) for record in records],
    }


def _vector(features: Sequence[int], x: Sequence[float]) -> dict[str, Any]:
    order = np.argsort(features)
    return {
        "support": [int(features[i]) for i in order],
        "x": [float(x[i]).hex() for i in order],
    }


def _claim(result: Result, data: Any, scale: float) -> dict[str, Any]:
    if result.bound.name != "none" and not result.bound.evidence:
        raise ValueError(
            "write_proof does not support nonnegative loadings: no checker has the "
            "raised matrix; use Result.upper_bound alone."
        )
    if not result.bound.evidence or not math.isfinite(result.upper_bound):
        raise ValueError(
            f"write_proof cannot write k = {result.k}: its bound has no evidence; use "
            "larger limits."
        )
    x = result.x[result.support]
    # Where no variance is left, the roundings are those of the first component.
    size = scale if result.message else abs(result.objective)
    if result.identity.kind == "matrix":  # its terms may cancel
        table, _ = table_of(data, "data")
        rows = table.take(result.support, slice(0, table.shape[0]))
        size = max(size, float(np.abs(x) @ np.abs(rows[result.support]) @ np.abs(x)))
    lower = result.objective - ROOM * size
    return {
        "k": result.k,
        **_vector(result.support.tolist(), x.tolist()),
        "objective": lower.hex(),
        "upper": float(result.upper_bound).hex(),
    }


def _record(record: Record) -> dict[str, Any]:
    if type(record) not in NAMES:
        raise ValueError(
            f"write_proof cannot write k = {record.k}: files have no dual records yet; "
            "use verify(result, cov)."
        )
    fields: dict[str, Any] = {
        "rule": NAMES[type(record)],
        "k": record.k,
        "upper": float(record.upper).hex(),
    }
    if isinstance(record, Average):
        fields["smaller"] = record.smaller
    if isinstance(record, Tree):
        fields |= {"features": list(record.features), "nodes": record.nodes}
    return fields
