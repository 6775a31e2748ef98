"""Answers of some thirty problems as they were written down: a refactoring keeps them.

    python tests/test_golden.py           run all, print a table of what differs
    python tests/test_golden.py --write   the same, and write tests/golden.json anew

Status, support and nodes must be equal, objective and upper bound to `TOLERANCE`. A
change that is meant to alter a search writes the file anew and says why in its commit.
With older NumPy and SciPy than the file was written with, the last bits of LAPACK are
others, and decide which of two equal sets is found: there the status must be equal, and
values to what "optimal" allows.

Limits are on nodes, never on time. The proofs share out seconds between themselves all
the same, so every problem runs under a clock that advances by `TICK` whenever it is
looked at: the numbers depend on the code alone, not on the speed of the machine.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.solvers import BranchAndBound, Chan
from blockspca.status import SEARCH_GAP

FILE = Path(__file__).with_name("golden.json")
WRITTEN_WITH = {"numpy": (2, 4), "scipy": (1, 17)}
TOLERANCE = 1e-12  # relative, of objectives and upper bounds
TICK = 1e-3  # seconds: about what lies between two looks at the clock in a search

Row = dict[str, Any]
Results = Iterable[bs.Result]


@dataclass(frozen=True)
class Problem:
    """What is solved, by a function of the folder of real data if it needs that."""

    run: Callable[..., Results]
    needs_data: bool = False


PROBLEMS: dict[str, Problem] = {}


def golden(run: Callable[..., Results]) -> Callable[..., Results]:
    """Register a problem; one with an argument is given the folder of real data."""
    needs_data = run.__code__.co_argcount == 1
    PROBLEMS[run.__name__.replace("_", " ")] = Problem(run, needs_data)
    return run


def normal(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def grouped(seed: int, n: int, d: int, groups: int, common: float = 0.5) -> np.ndarray:
    """Draw data whose features share a factor with their group; variances differ."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, groups))
    X = common * factors[:, np.arange(d) % groups] + rng.standard_normal((n, d))
    return X * np.exp(0.2 * rng.standard_normal(d))


def symmetric(seed: int, d: int) -> np.ndarray:
    noise = normal(seed, d, d)
    return (noise + noise.T) / 2


def counts(seed: int, n: int, d: int) -> sp.csr_array:
    """Draw sparse counts, as of words in texts of a few subjects."""
    rng = np.random.default_rng(seed)
    rates = 2.0 / np.arange(1, d + 1) ** 0.7
    subject = rng.integers(0, 4, size=(n, 1)) == np.arange(d) % 4
    return sp.csr_array(rng.poisson(rates * (0.3 + 2.0 * subject)).astype(float))


# One component


@golden
def solve_tall_data() -> Results:
    return [bs.solve(bs.Covariance.from_data(normal(0, 200, 40)), 3)]


@golden
def solve_wide_data() -> Results:
    return [bs.solve(bs.Covariance.from_data(grouped(1, 40, 400, 20)), 6)]


@golden
def solve_correlations() -> Results:
    cov = bs.Covariance.from_data(normal(2, 60, 60), scale=True)
    return [bs.solve(cov, 8, limits=bs.Limits(nodes=20_000))]


@golden
def solve_flat_correlations_node_limit() -> Results:
    cov = bs.Covariance.from_data(normal(3, 60, 80), scale=True)
    return [bs.solve(cov, 12, limits=bs.Limits(nodes=3000))]


@golden
def solve_sparse_data() -> Results:
    return [bs.solve(bs.Covariance.from_data(counts(4, 200, 500)), 8)]


@golden
def solve_sparse_correlations() -> Results:
    X = counts(5, 200, 300)
    cov = bs.Covariance.from_data(X, scale=True, constant="ignore")
    return [bs.solve(cov, 4, limits=bs.Limits(nodes=20_000))]


@golden
def solve_indefinite() -> Results:
    return [bs.solve(symmetric(6, 60), 7)]


@golden
def solve_negative_definite() -> Results:
    X = normal(7, 30, 24)
    return [bs.solve(-X.T @ X - np.eye(24), 4)]


@golden
def solve_ties() -> Results:
    values = np.random.default_rng(8).integers(-2, 3, size=(40, 40))
    return [bs.solve((np.triu(values) + np.triu(values, 1).T).astype(float), 6)]


@golden
def solve_to_a_gap() -> Results:
    cov = bs.Covariance.from_data(grouped(9, 30, 300, 10))
    return [bs.solve(cov, 10, limits=bs.Limits(gap=0.05))]


@golden
def solve_k_40_from_data() -> Results:
    cov = bs.Covariance.from_data(grouped(10, 40, 300, 4, 1.0))
    return [bs.solve(cov, 40, limits=bs.Limits(nodes=2000))]


@golden
def solve_k_35_of_a_matrix() -> Results:
    X = grouped(11, 50, 120, 3, 0.8)
    return [bs.solve(np.cov(X.T), 35, limits=bs.Limits(nodes=2000))]


@golden
def solve_k_120_by_the_dual() -> Results:
    cov = bs.Covariance.from_data(grouped(12, 30, 600, 5, 1.0))
    return [bs.solve(cov, 120)]


@golden
def solve_k_510_by_the_dual() -> Results:
    cov = bs.Covariance.from_data(counts(13, 40, 1200))
    return [bs.solve(cov, 510)]


# Noise: Model 1 of the paper, where the averaging argument does the work


@golden
def model_one_flat_noise() -> Results:
    A, _ = bs.datasets.noisy_blocks(10, 20, sigma=0.1, rng=14)
    return [bs.solve(A, 5, limits=bs.Limits(nodes=200_000))]


@golden
def model_one_path() -> Results:
    A, _ = bs.datasets.noisy_blocks(10, 10, sigma=0.15, rng=15)
    return bs.solve_path(A, 6, limits=bs.Limits(nodes=200_000)).values()


@golden
def model_one_blocks_by_noise() -> Results:
    A, _ = bs.datasets.noisy_blocks(10, 12, sigma=0.05, rng=16)
    threshold = bs.NoiseThreshold(n_subsets=36)
    solver = BranchAndBound()
    return [bs.solve(A, 5, solver=solver, threshold=threshold, certify=False)]


# Blocks and their solvers


@golden
def blocks_fixed_threshold() -> Results:
    cov = bs.Covariance.from_data(grouped(17, 100, 60, 10))
    return [bs.solve(cov, 5, threshold=0.3, certify=False)]


@golden
def blocks_branch_and_bound() -> Results:
    A = np.cov(grouped(18, 40, 120, 6).T)
    return [bs.solve(A, 6, solver=BranchAndBound(), certify=False)]


@golden
def branch_and_bound_node_limit() -> Results:
    A = np.corrcoef(normal(19, 60, 80).T)
    limits = bs.Limits(nodes=3000)
    return [
        bs.solve(
            A, 10, solver=BranchAndBound(), threshold=0.0, certify=False, limits=limits
        )
    ]


@golden
def blocks_chan() -> Results:
    cov = bs.Covariance.from_data(counts(20, 150, 400))
    return [bs.solve(cov, 10, solver=Chan(), threshold=0.0, certify=False)]


# Paths


@golden
def path_of_data() -> Results:
    return bs.solve_path(bs.Covariance.from_data(grouped(21, 50, 150, 8)), 12).values()


@golden
def path_indefinite_node_limit() -> Results:
    return bs.solve_path(symmetric(22, 60), 10, limits=bs.Limits(nodes=4000)).values()


# Several components, once for each scheme


def components(scheme: Any) -> Results:
    cov = bs.Covariance.from_data(grouped(23, 40, 90, 6))
    limits = bs.Limits(nodes=20_000)
    found = bs.solve_components(cov, 6, n_components=3, scheme=scheme, limits=limits)
    return found.results


@golden
def components_disjoint() -> Results:
    return components(bs.DisjointSupports())


@golden
def components_projected() -> Results:
    return components(bs.ProjectionDeflation())


@golden
def components_orthogonalised() -> Results:
    return components(bs.Orthogonalised())


@golden
def components_hotelling() -> Results:
    return components(bs.HotellingDeflation())


# Real data


def matrix(folder: Path, name: str) -> np.ndarray:
    with np.load(folder / f"{name}.npz") as file:
        return file["A" if "A" in file else "X"].astype(float)


@golden
def pitprops_path(folder: Path) -> Results:
    return bs.solve_path(matrix(folder, "pitprops"), 13).values()


@golden
def eisen_path(folder: Path) -> Results:
    limits = bs.Limits(nodes=20_000)
    return bs.solve_path(matrix(folder, "Eisen2Cov"), 20, limits=limits).values()


@golden
def communities_k_25(folder: Path) -> Results:
    A = matrix(folder, "normCommunities")
    return [bs.solve(A, 25, limits=bs.Limits(nodes=5000))]


@golden
def leukemia_k_10(folder: Path) -> Results:
    return [bs.solve(bs.Covariance.from_data(matrix(folder, "Leukemia")), 10)]


@golden
def colon_branch_and_bound(folder: Path) -> Results:
    A = matrix(folder, "CovColon")
    limits = bs.Limits(nodes=20_000)
    return [
        bs.solve(
            A, 15, solver=BranchAndBound(), threshold=0.0, certify=False, limits=limits
        )
    ]


@golden
def basehock_correlations(folder: Path) -> Results:
    X = sp.load_npz(folder / "BASEHOCK.npz").astype(float)
    cov = bs.Covariance.from_data(X, scale=True, constant="ignore")
    return [bs.solve(cov, 4, limits=bs.Limits(nodes=20_000))]


@golden
def dorothea_by_the_dual(folder: Path) -> Results:
    """All of it takes seconds: some samples, and the features that they have."""
    X = sp.load_npz(folder / "Dorothea_train.npz").tocsr()[:300].tocsc().astype(float)
    X = X[:, X.getnnz(axis=0) >= 15]
    return [bs.solve(bs.Covariance.from_data(X), 200)]


@contextmanager
def slow_clock() -> Iterator[None]:
    """Let the clocks of `time` advance by one tick at each look."""
    ticks = itertools.count()

    def now() -> float:
        return TICK * next(ticks)

    with mock.patch.multiple(time, perf_counter=now, monotonic=now):
        yield


def answer(name: str, folder: Path | None) -> list[Row]:
    problem = PROBLEMS[name]
    with slow_clock():
        results = list(problem.run(folder) if problem.needs_data else problem.run())
    return [
        {
            "k": result.k,
            "status": result.status.value,
            "objective": float(result.objective),
            "upper_bound": float(result.upper_bound),
            "nodes": int(result.nodes),
            "support": result.support.tolist(),
        }
        for result in results
    ]


def has_these_bits() -> bool:
    """Whether LAPACK is one of which the last bits are known, or a newer one."""
    return all(
        tuple(map(int, version(name).split(".")[:2])) >= written
        for name, written in WRITTEN_WITH.items()
    )


def differences(
    expected: list[Row], found: list[Row], to_the_bit: bool = True
) -> list[str]:
    """Say what differs, a line for each number."""
    tolerance = TOLERANCE if to_the_bit else SEARCH_GAP
    if len(expected) != len(found):
        return [f"{len(expected)} results before, {len(found)} now"]
    lines = []
    for position, (before, now) in enumerate(zip(expected, found, strict=True)):
        for field, old in before.items():
            new = now[field]
            if field in ("objective", "upper_bound"):
                equal = abs(new - old) <= tolerance * abs(old)
            elif field in ("support", "nodes") and not to_the_bit:
                equal = True
            else:
                equal = new == old
            if not equal:
                where = f"[{position}] k = {now['k']:<4}{field:<12}"
                lines.append(where + shown(field, old, new))
    return lines


def shown(field: str, old: Any, new: Any) -> str:
    if field == "support":
        gone, come = sorted({*old} - {*new}), sorted({*new} - {*old})
        return f"without {gone}, with {come}"
    if field == "status":
        return f"{old} -> {new}"
    share = f"{(new - old) / abs(old):+.2e} relative" if old else ""
    return f"{old!r} -> {new!r}  {share}"


def written() -> dict[str, list[Row]]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_every_problem_is_written_down():
    assert list(written()) == list(PROBLEMS)
    assert len(PROBLEMS) >= 30


def test_a_difference_is_seen():
    before = written()["solve tall data"]
    for field, other in {
        "status": "node_limit",
        "objective": before[0]["objective"] * (1 + 1e-11),
        "upper_bound": before[0]["upper_bound"] * (1 - 1e-11),
        "nodes": before[0]["nodes"] + 1,
        "support": [0, 1, 2],
    }.items():
        assert len(differences(before, [{**before[0], field: other}])) == 1
    assert differences(before, []) == ["1 results before, 0 now"]
    assert differences(before, before) == []
    other = {**before[0], "support": [0, 1, 2], "nodes": 99}
    assert differences(before, [other], to_the_bit=False) == []
    for field, value in {
        "status": "node_limit",
        "objective": before[0]["objective"] * (1 + 1e-8),
        "upper_bound": before[0]["upper_bound"] * (1 - 1e-8),
    }.items():
        worse = [{**before[0], field: value}]
        assert len(differences(before, worse, to_the_bit=False)) == 1


@pytest.mark.parametrize(
    "name", [name for name, problem in PROBLEMS.items() if not problem.needs_data]
)
def test_golden(name):
    changed = differences(written()[name], answer(name, None), has_these_bits())
    assert not changed, "\n".join(changed)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", [name for name, problem in PROBLEMS.items() if problem.needs_data]
)
def test_golden_on_real_data(name, data_dir):
    changed = differences(written()[name], answer(name, data_dir), has_these_bits())
    assert not changed, "\n".join(changed)


def main(write: bool) -> int:
    if "BLOCKSPCA_DATA" not in os.environ:
        print("set BLOCKSPCA_DATA to the folder of real data", file=sys.stderr)
        return 2
    before = written() if FILE.exists() else {}
    found, changed = {}, 0
    for name in PROBLEMS:
        started = time.perf_counter()
        found[name] = answer(name, Path(os.environ["BLOCKSPCA_DATA"]))
        lines = differences(before[name], found[name]) if name in before else ["new"]
        changed += bool(lines)
        nodes = sum(row["nodes"] for row in found[name])
        seconds = time.perf_counter() - started
        status = found[name][-1]["status"]
        print(
            f"{name:<36}{len(found[name]):>3}{nodes:>9}  {status:<12}{seconds:6.2f} s"
        )
        for line in lines:
            print(f"    {line}")
    print(f"{changed} of {len(PROBLEMS)} differ")
    if write:
        rows = (
            f"{json.dumps(name)}: [\n  "
            + ",\n  ".join(json.dumps(row) for row in rows)
            + "\n]"
            for name, rows in found.items()
        )
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
        print(f"{FILE} written")
        return 0
    return changed > 0


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv[1:]))
