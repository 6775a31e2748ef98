"""Record the proofs of disjoint components, one after the other.

Component j is about A without the features that components 1, …, j − 1 use, which the
proof format can say. Of other schemes it can say what the first component claims, which
is about A itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..certify.proof_log import NotRecordable, check_recordable, recorded
from ..constraints import Constraints
from ..covariance.covariance import Covariance
from ..limits import Limits
from ..proof_file import Proof
from ..result import Result
from .schemes import DisjointSupports, Scheme, used_features


def check_recorded(
    cov: Covariance,
    scheme: Scheme,
    n_components: int,
    sweeps: int,
    constraints: Constraints | None,
    options: Mapping[str, Any],
) -> None:
    """Refuse, before any work, to record what the proof format cannot say."""
    check_recordable(cov, bool(options.get("certify", True)), constraints)
    if n_components > 1 and not isinstance(scheme, DisjointSupports):
        raise NotRecordable(
            f"proof=True with scheme = {scheme!r}: of several components only those of "
            "DisjointSupports() can be recorded; pass one component, or that scheme."
        )
    if sweeps:
        raise NotRecordable(
            f"proof=True with sweeps = {sweeps}: components that are solved again "
            "cannot be recorded; pass sweeps=0."
        )


def recorded_apart(cov: Covariance, results: Sequence[Result], limits: Limits) -> Proof:
    """Record the proof of each component, about A without the earlier ones' features.

    A time limit is for all of them together.
    """
    if limits.time is not None:
        limits = replace(limits, time=limits.time / len(results))
    proof = Proof(())
    for j, result in enumerate(results):
        proof += recorded(cov, [result], limits, used_features(results[:j]))
    return proof
