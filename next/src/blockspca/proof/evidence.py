"""What a prover hands over: the records of `checker/records.py`, and their margin.

Evidence is a tuple of records, each of which rests on those before it. That of a chain
has a record for each of 1, 2, …, k, and begins with the evidence for k − 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..checker.records import (
    Average,
    Dual,
    Record,
    Rows,
    Sets,
    Tree,
    Variance,
    allowance,
)

__all__ = [
    "Average",
    "Dual",
    "Evidence",
    "Record",
    "Rows",
    "Sets",
    "Tree",
    "Variance",
    "margin",
    "renumbered",
]

Evidence = tuple[Record, ...]


def margin(k: int, tau: float, lowest: float, error: float) -> float:
    """Return what a bound τ that was found in float64 needs to be checked.

    A tree that finds no k-set above τ, with U_{k−1} ≤ τ, gives the bound τ + margin;
    so does a closed form whose value is τ. A checker may then have entries with twice
    the error. It is four times the allowance of a tree.

    Parameters
    ----------
    lowest : float
        min A_ii over all features.
    error : float
        `Covariance.entry_error`.
    """
    return 4 * allowance(k, abs(tau) + max(0.0, -lowest), error)


def renumbered(evidence: Evidence, features: Sequence[int]) -> Evidence:
    """Return evidence about a restricted matrix with the numbers of all features.

    Examples
    --------
    >>> from blockspca.proof.evidence import Tree, renumbered
    >>> renumbered((Tree(2, 1.5, (1, 0), 3),), [4, 7])[0].features
    (7, 4)
    """
    return tuple(
        replace(record, features=tuple(int(features[i]) for i in record.features))
        if isinstance(record, Tree | Dual) and record.features is not None
        else record
        for record in evidence
    )
