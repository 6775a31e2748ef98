"""The paper's table (tab:comparison_algorithms_MF_AE), from the guarantees."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

from blockspca.reproduction.guarantee_table import as_markdown, guarantee_table
from blockspca.solvers import SOLVERS

DOCS = Path(__file__).parents[2] / "docs"

# algorithm: (factor, error) as printed, as functions of k and the number of features
PRINTED = {
    "chan": lambda k, d, delta: (min(math.sqrt(k), d ** (1 / 3)), 0),
    "greedy": lambda k, d, delta: (k, 0),
    "convex-relaxation": lambda k, d, delta: (max(1, min(k, d / k)), 0),
    "exhaustive": lambda k, d, delta: (1, 0),
    "branch-and-bound": lambda k, d, delta: (1, 0),
    "mixed-integer-sdp": lambda k, d, delta: (1, 0),
    "low-rank, with δ": lambda k, d, delta: (1, delta),
}


@pytest.mark.parametrize(("k", "d", "size"), [(1, 1, 1), (5, 90, 11), (30, 4000, 64)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_as_printed(k, d, size, epsilon):
    delta = 0.25
    rows = {
        row.algorithm: row for row in guarantee_table(k, d, epsilon, size, delta=delta)
    }
    for name, printed in PRINTED.items():
        factor, error = printed(k, d, delta)
        ours, our_error = printed(k, size, delta)
        row = rows[name]
        assert (row.factor, row.error) == pytest.approx((factor, error))
        assert row.block_factor == pytest.approx(ours)
        assert row.block_error == pytest.approx(our_error + k * epsilon / ours)
        assert row.block_factor <= row.factor


def test_one_row_for_each_solver_that_promises_something():
    rows = guarantee_table(5, 50, 0.1, 20)
    promising = [n for n, s in SOLVERS.items() if s.guarantee.factor(5, 50) < math.inf]
    assert [row.algorithm for row in rows] == sorted(promising)
    assert len(as_markdown(rows).splitlines()) == 2 + len(rows)


def test_bad_arguments():
    with pytest.raises(ValueError, match="block_size = 60 is larger than d = 50"):
        guarantee_table(5, 50, 0.1, 60)
    with pytest.raises(ValueError, match="k = 51"):
        guarantee_table(51, 50, 0.1, 20)
    with pytest.raises(ValueError, match=r"epsilon = -0\.1"):
        guarantee_table(5, 50, -0.1, 20)


def test_the_page_in_the_docs_is_up_to_date():
    page = runpy.run_path(str(DOCS / "generate_guarantees.py"))["page"]
    assert (DOCS / "guarantees.md").read_text(encoding="utf-8") == page(), (
        "run python docs/generate_guarantees.py"
    )
