"""The paper's table of factors and errors, with and without blocks, from the code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._validation import check_positive_integer, check_real, check_sparsity
from ..guarantee import Guarantee
from ..solvers.low_rank import additive_guarantee
from ..solvers.registry import SOLVERS


@dataclass(frozen=True)
class GuaranteeRow:
    """objective ≥ OPT / factor − error, for the whole matrix and after blocks at ε."""

    algorithm: str
    factor: float
    error: float
    block_factor: float
    block_error: float
    assumes_psd: bool


def guarantee_table(
    k: int,
    d: int,
    epsilon: float,
    block_size: int,
    *,
    delta: float | None = None,
    guarantees: Mapping[str, Guarantee] | None = None,
) -> list[GuaranteeRow]:
    """Multiplicative factors m and additive errors a, before and after blocks.

    An algorithm with objective ≥ OPT / m(k, d) − a(k, d) has, after blocks at threshold
    ε whose largest has d* features, the factor m(k, d*) and the error
    a(k, d*) + kε / m(k, d*) (Theorem 3).

    Parameters
    ----------
    k, d : int
        Features to use, out of how many.
    epsilon : float
        The threshold.
    block_size : int
        The size d* ≤ d of the largest block at that threshold.
    delta : float, optional
        Adds the low-rank algorithm with the additive error δ = λ_{r+1} of the matrix.
    guarantees : mapping, optional
        By name; those of all registered solvers by default. Heuristics, which promise
        nothing, have no row.

    Examples
    --------
    >>> from blockspca.reproduction.guarantee_table import guarantee_table
    >>> rows = guarantee_table(k=100, d=1000, epsilon=0.01, block_size=125)
    >>> chan = next(row for row in rows if row.algorithm == "chan")
    >>> [round(v, 6) for v in (chan.factor, chan.block_factor, chan.block_error)]
    [10.0, 5.0, 0.2]
    """
    d = check_positive_integer(d, "d")
    k = check_sparsity(k, d)
    epsilon = check_real(epsilon, "epsilon", minimum=0)
    block_size = check_positive_integer(block_size, "block_size")
    if block_size > d:
        raise ValueError(
            f"block_size = {block_size} is larger than d = {d}; a block has at most "
            "all the features."
        )
    if guarantees is None:
        guarantees = {name: SOLVERS[name].guarantee for name in sorted(SOLVERS)}
    entries = dict(guarantees)
    if delta is not None:
        delta = check_real(delta, "delta", minimum=0)
        entries["low-rank, with δ"] = additive_guarantee(delta)
    rows = []
    for name, guarantee in entries.items():
        factor = guarantee.factor(k, d)
        if math.isinf(factor):
            continue
        after = guarantee.after_blocks(k, block_size, epsilon)
        rows.append(
            GuaranteeRow(
                name,
                factor,
                guarantee.error(k, d),
                after.factor,
                after.error,
                guarantee.assumes_psd,
            )
        )
    return rows


def as_markdown(rows: Sequence[GuaranteeRow]) -> str:
    """Render the rows as a Markdown table; * marks what needs a semidefinite matrix."""
    lines = [
        "| algorithm | factor | error | factor with blocks | error with blocks |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        numbers = (row.factor, row.error, row.block_factor, row.block_error)
        cells = " | ".join(f"{number:.4g}" for number in numbers)
        star = "\\*" if row.assumes_psd else ""
        lines.append(f"| {row.algorithm}{star} | {cells} |")
    return "\n".join(lines)
