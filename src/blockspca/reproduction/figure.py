"""The paper's figure 1: a 9 × 9 matrix, its blocks, the component found in one."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from ..pipeline import solve
from ..solvers import BranchAndBound
from .measurements import Measurements
from .table import ReproducedTable, make_table

NAME = "figure-1"
PICTURE = "figure-1.png"
K = 2
EPSILON = 0.3


def example() -> np.ndarray:
    """Return a 9 × 9 covariance: blocks of 4, 3 and 2 features, shuffled, and noise."""
    rng = np.random.default_rng(1)
    A = np.zeros((9, 9))
    start = 0
    for size in (4, 3, 2):
        loadings = rng.uniform(0.8, 1.2, size)
        block = np.outer(loadings, loadings) + 0.3 * np.eye(size)
        A[start : start + size, start : start + size] = block
        start += size
    noise = np.triu(rng.normal(scale=0.05, size=A.shape))
    order = rng.permutation(9)
    return (A + noise + np.triu(noise, 1).T)[np.ix_(order, order)]


def figure(measurements: Measurements) -> ReproducedTable:
    """Draw the figure, and say what it shows."""
    A = example()
    result = solve(A, K, solver=BranchAndBound(), threshold=EPSILON)
    assert result.blocks is not None
    pictures, notes = {}, []
    if find_spec("matplotlib") is None:
        notes.append("Not drawn: pip install 'blockspca[plot]'.")
    else:
        from ..plotting.figures import picture, plot_blocks

        pictures[PICTURE] = picture(plot_blocks(A, result), "png", dpi=110)
    sizes = sorted(result.blocks.sizes.tolist(), reverse=True)
    rows = (
        {"what": "features", "value": "9"},
        {"what": f"blocks at ε = {EPSILON:g}", "value": str(len(result.blocks))},
        {"what": "their sizes", "value": ", ".join(map(str, sizes))},
        {"what": f"best component, k = {K}", "value": str(result.support.tolist())},
        {"what": "its objective", "value": f"{result.objective:.4f}"},
        {"what": "on the original matrix", "value": str(result.status)},
    )
    table = make_table(NAME, rows, pictures=pictures)
    return replace(table, notes=(*table.notes, *notes))
