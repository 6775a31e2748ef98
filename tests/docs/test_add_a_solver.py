"""The page "add a solver" quotes the contract as it is, and its example works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from blockspca.solvers import Limits, Solver

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def blocks() -> dict[str, str]:
    """The code blocks of the page, by title."""
    page = (ROOT / "docs" / "add-a-solver.md").read_text(encoding="utf-8")
    found = re.findall(r'```python title="(.*?)"\n(.*?)```', page, flags=re.DOTALL)
    return dict(found)


def test_quotes_the_contract(blocks):
    base = (ROOT / "src/blockspca/solvers/base.py").read_text(encoding="utf-8")
    protocol = base[base.index("@runtime_checkable") :]
    assert blocks["the contract"].strip() == protocol.strip()
    records = (ROOT / "src/blockspca/result.py").read_text(encoding="utf-8")
    assert blocks["the answer"].strip() in records


def test_the_example_works(blocks):
    names: dict[str, object] = {}
    exec(blocks["example"], names)
    result, solver = names["result"], names["BestRow"]()
    assert result.support.tolist() == [0, 1]
    assert result.objective == pytest.approx(3 + 0.5**0.5)
    assert isinstance(solver, Solver)
    A = np.cov(np.random.default_rng(0).normal(size=(50, 30)), rowvar=False)
    assert np.count_nonzero(solver.solve(A, 4, limits=Limits()).x) == 4
    assert len(re.findall(r"^.*\S", blocks["example"], flags=re.MULTILINE)) == 10
