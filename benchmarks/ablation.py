"""Tuned constants, doubled and halved: which of them change what a prover does?

    python benchmarks/run.py ablation --output DIR
    python benchmarks/run.py ablation --rows bounds    one package

Every number in capitals of the packages that prove, and every setting of
`ProofSettings`, is doubled and halved in turn, everywhere it is used, on problems whose
searches end by nodes. A row has the largest change of nodes, of the gap and of
processor time over them. A constant that changes none of these by a tenth either guards
what these problems do not meet (its comment should say what), or can go. Constants of
compiled kernels are not looked at: they are part of the machine code.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import Any
from unittest.mock import patch

import numpy as np

import blockspca as bs
from blockspca import proof_settings
from blockspca.datasets import noisy_blocks
from common import Options, Report, load

PACKAGES = ("bounds", "search", "certify", "heuristics")
SETTINGS = "settings"
FACTORS = (2.0, 0.5)
LITTLE = 0.1  # of a count, a gap or a time: less is no change

Solve = Callable[[], Any]


def cases(of_bounds: bool) -> Iterator[tuple[str, Solve]]:
    """Problems for the duals, or for the chain and its searches."""

    def one(cov: Any, k: int, nodes: int) -> Solve:
        return lambda: bs.solve(cov, k, limits=bs.Limits(nodes=nodes), n_jobs=1)

    def path(cov: Any, k: int, nodes: int) -> Solve:
        return lambda: bs.solve_path(cov, k, limits=bs.Limits(nodes=nodes), n_jobs=1)

    X, colon = load("alon_colon"), bs.Covariance.from_matrix(load("CovColon"))
    rng = np.random.default_rng(0)
    if of_bounds:
        yield "CovColon, k = 60", one(colon, 60, 60)
        yield "CovColon, k = 100", one(colon, 100, 10)
        yield "alon_colon, k = 100", one(bs.Covariance.from_data(X), 100, 30)
        wide = bs.Covariance.from_data(load("Lymphoma2"))
        yield "Lymphoma2, k = 100", one(wide, 100, 30)
        some = bs.Covariance.from_data(X[:, :150], scale=True)
        yield "150 of alon_colon, scaled, k = 31", one(some, 31, 60)
    else:
        lung = bs.Covariance.from_matrix(load("normLung"))
        yield "normLung, k ≤ 20", path(lung, 20, 10**6)
        scaled = bs.Covariance.from_data(X, scale=True)
        yield "alon_colon, scaled, k ≤ 25", path(scaled, 25, 30_000)
        A, _ = noisy_blocks(n_blocks=10, block_size=20, sigma=0.1, rng=2)
        yield "noisy blocks, k = 8", one(A, 8, 100_000)
        noise = bs.Covariance.from_data(rng.normal(size=(100, 150)))
        yield "noise, k = 12", one(noise, 12, 20_000)


@dataclass(frozen=True)
class Constant:
    """A number in capitals, with all modules that hold it."""

    package: str
    name: str
    value: Any
    modules: tuple[Any, ...]

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        with ExitStack() as stack:
            for module in self.modules:
                value = scaled(self.value, factor)
                stack.enter_context(patch.object(module, self.name, value))
            yield


@dataclass(frozen=True)
class Setting:
    """A field of `ProofSettings`, whose defaults are what everything uses."""

    name: str
    value: Any
    package: str = SETTINGS

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        # One object is shared by all defaults, so that it has to be changed in place.
        shared = proof_settings.DEFAULT_SETTINGS
        object.__setattr__(shared, self.name, scaled(self.value, factor))
        try:
            yield
        finally:
            object.__setattr__(shared, self.name, self.value)


def scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if value > 1 and value * factor <= 1:  # what does not grow may never end
        return (1 + value) / 2
    return value * factor


def is_number(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(is_number(part) for part in value)
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return is_plain and value not in (0, 1) and abs(value) != np.inf


def constants(package: str) -> Iterator[Constant]:
    """Numbers that the modules of a package assign to names in capitals."""
    root = importlib.import_module(f"blockspca.{package}")
    for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        module = importlib.import_module(info.name)
        with open(module.__file__ or "", encoding="utf-8") as source:
            tree = ast.parse(source.read())
        for line in tree.body:
            if not isinstance(line, ast.Assign | ast.AnnAssign):
                continue
            for node in ast.walk(line):
                name = getattr(node, "id", "")
                is_target = isinstance(getattr(node, "ctx", None), ast.Store)
                if not (is_target and name.isupper()):
                    continue
                if is_number(value := getattr(module, name, None)):
                    yield Constant(package, name, value, holders(module, name))


def holders(module: Any, name: str) -> tuple[Any, ...]:
    """The module, and those that import the name from it."""
    found = [module]
    for key, other in list(sys.modules.items()):
        if not key.startswith("blockspca.") or other is module or not other.__file__:
            continue
        with open(other.__file__, encoding="utf-8") as source:
            tree = ast.parse(source.read())
        for line in tree.body:
            if not (isinstance(line, ast.ImportFrom) and line.module):
                continue
            is_from = module.__name__.endswith(f".{line.module}")
            if is_from and any(alias.name == name for alias in line.names):
                found.append(other)
    return tuple(found)


def settings() -> Iterator[Setting]:
    for field in fields(proof_settings.ProofSettings):
        if is_number(value := getattr(proof_settings.DEFAULT_SETTINGS, field.name)):
            yield Setting(field.name, value)


def measure(solve: Solve) -> tuple[float, float, float]:
    """Nodes, the widest gap, and processor seconds."""
    started = time.process_time()
    found = solve()
    seconds = time.process_time() - started
    results = list(found.values()) if hasattr(found, "values") else [found]
    nodes = float(sum(result.nodes for result in results))
    return nodes, max(result.gap for result in results), seconds


def change(before: float, after: float, least: float) -> float:
    """How much larger or smaller, as a ratio less one; what is below `least` is not."""
    low, high = sorted((max(before, least), max(after, least)))
    return high / low - 1


def row(constant: Constant | Setting, problems: dict[str, Solve], known: Any) -> dict:
    """The largest changes, over both factors and all problems."""
    changed = {"nodes": 0.0, "gap": 0.0, "time": 0.0}
    for factor in FACTORS:
        with constant.times(factor):
            for name, solve in problems.items():
                nodes, gap, seconds = measure(solve)
                before = known[name]
                changed["nodes"] = max(changed["nodes"], change(before[0], nodes, 10))
                changed["gap"] = max(changed["gap"], change(before[1], gap, 1e-6))
                changed["time"] = max(changed["time"], change(before[2], seconds, 0.05))
    matters = changed["nodes"] > LITTLE or changed["gap"] > LITTLE
    where = ""
    if isinstance(constant, Constant):
        where = constant.modules[0].__name__.removeprefix("blockspca.")
    return {
        "where": where or constant.package,
        "name": constant.name,
        "value": str(constant.value),
        **changed,
        "matters": "yes" if matters else "no",
    }


def report(options: Options) -> Report:
    """Measure as a case of run.py."""
    found = Report("Constants, doubled and halved", seeds=[0])
    columns = {"where": ("where", ""), "name": ("constant", ""), "value": ("value", "")}
    columns |= {name: (name, ".0%") for name in ("nodes", "gap", "time")}
    columns["matters"] = ("changes a count or a gap by 10 %", "")
    for package in options.rows or (*PACKAGES, SETTINGS):
        problems = dict(cases(of_bounds=package == "bounds"))
        if package in (SETTINGS, "heuristics"):  # all provers ask them
            problems |= dict(cases(of_bounds=True))
        chosen: list[Constant | Setting] = (
            list(settings()) if package == SETTINGS else list(constants(package))
        )
        known = {}
        for name, solve in problems.items():
            measure(solve)  # compiles
            known[name] = measure(solve)
        rows = []
        for constant in chosen[:3] if options.quick else chosen:
            rows.append(row(constant, problems, known))
            print(rows[-1], file=sys.stderr, flush=True)
        found.add(package, columns, rows)
    return found
