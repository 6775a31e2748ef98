"""Write docs/guarantees.md from the guarantees in the code."""

from __future__ import annotations

from pathlib import Path

from blockspca.reproduction.guarantee_table import as_markdown, guarantee_table

INTRODUCTION = """\
# What each algorithm promises

<!-- Written by docs/generate_guarantees.py; edit that, not this. -->

This page says what each solver promises before it runs, with and without blocks. Such a
promise does not depend on the data; the proved gap of a result is usually far smaller.

**Definition.** An algorithm with factor m and error a returns an objective of at least
OPT / m − a, for every matrix with d features and every k. A \\* marks promises for
positive semidefinite matrices only.

**With blocks** (Theorem 3 of the paper). Suppose that the algorithm solves the blocks
at a threshold ε instead, and the largest block has d\\* ≤ d features. Then it has the
factor m(k, d\\*), which is never larger, and the error a(k, d\\*) + k ε / m(k, d\\*).

`blockspca.reproduction.guarantee_table.guarantee_table(k, d, epsilon, block_size)`
gives the table for other numbers. `delta` adds the low-rank algorithm with its additive
error, the eigenvalue λ_{r+1} of the matrix.

Solvers that are missing are heuristics. They promise nothing beforehand, but the upper
bound of a result may still prove their answer optimal.
"""

EXAMPLES = (
    {"k": 5, "d": 500, "epsilon": 0.01, "block_size": 50},
    {"k": 10, "d": 1000, "epsilon": 0.01, "block_size": 20},
    {"k": 100, "d": 1000, "epsilon": 0.001, "block_size": 125},
    {"k": 200, "d": 100_000, "epsilon": 0.001, "block_size": 2000},
)


def page() -> str:
    parts = [INTRODUCTION]
    for example in EXAMPLES:
        parts.append(
            "## k = {k}, d = {d}, ε = {epsilon:g}, largest block {block_size}, "
            "δ = 0.1\n".format(**example)
        )
        parts.append(as_markdown(guarantee_table(**example, delta=0.1)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    target = Path(__file__).with_name("guarantees.md")
    target.write_text(page(), encoding="utf-8")
