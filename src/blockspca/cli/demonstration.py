"""The demo: a data set with named features, and the paper's introductory example."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from .._messages import gap_in_percent
from ..blocks.threshold_path import threshold_path
from ..covariance.covariance import Covariance
from ..datasets import noisy_blocks
from ..pipeline import solve
from ..result import Result


@dataclass(frozen=True)
class Example:
    """A matrix with the sparsity to solve it for."""

    title: str
    cov: Covariance
    k: int
    max_block_size: int


def introduction(seed: int = 0) -> Example:
    """10 noisy blocks of 100 features, k = 4, as in the paper's introduction."""
    A, _ = noisy_blocks(n_blocks=10, block_size=100, sigma=0.02, n_samples=10, rng=seed)
    names = [f"block {i // 100}, feature {i % 100}" for i in range(1000)]
    cov = Covariance.from_matrix(A, feature_names=names)
    return Example("10 noisy blocks of 100", cov, 4, 100)


def breast_cancer() -> Example:
    """569 tumours × 30 named measurements, standardised, k = 5."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    cov = Covariance.from_data(data.data, scale=True, feature_names=data.feature_names)
    return Example("breast cancer (569 × 30)", cov, 5, 15)


def run(seed: int = 0) -> list[Result]:
    """Solve the examples and print them side by side."""
    console, results = Console(), []
    with console.status("Loading the solver (the first time, it is compiled) ..."):
        seconds = load_solver()
    table = Table(title="Sparse PCA: k features that vary most together")
    table.add_column("")
    for example in (breast_cancer(), introduction(seed)):
        with console.status(f"Solving {example.title} ..."):
            epsilon = threshold_path(example.cov).threshold_for(example.max_block_size)
            results.append(solve(example.cov, example.k, threshold=epsilon))
        table.add_column(example.title, overflow="fold")
    for row in zip(*(_describe(result) for result in results), strict=True):
        label = row[0][0]
        table.add_row(label, *(text for _, text in row))
    console.print(table)
    console.print(f"Loading the solver took {seconds:.1f} s, which no solve counts.")
    return results


def load_solver() -> float:
    """Compile the kernels by solving a small example; return the seconds it took.

    Loading the kernels alone would leave 0.2 s of other imports to the first solve.
    """
    started = time.perf_counter()
    A, _ = noisy_blocks(n_blocks=3, block_size=4, rng=0)
    solve(Covariance.from_matrix(A), 3, threshold=0.1)
    return time.perf_counter() - started


def _describe(result: Result) -> list[tuple[str, str]]:
    loadings = (f"{x:+.3f} {name}" for name, x in result.loadings.items())
    blocks = "none"
    if result.blocks is not None:
        blocks = (
            f"{len(result.blocks)}, the largest of {result.blocks.largest} features"
        )
    return [
        ("problem", f"k = {result.k} of {result.n_features} features"),
        ("chosen features", "\n".join(loadings)),
        ("objective x'Ax", f"{result.objective:.6g}"),
        ("upper bound", f"{result.upper_bound:.6g}"),
        ("gap", gap_in_percent(result.gap)),
        ("status", str(result.status)),
        ("time", f"{result.time:.3f} s"),
        ("blocks", blocks),
    ]
