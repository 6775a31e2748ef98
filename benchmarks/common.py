"""What every benchmark shares: data, timing, options, and reports as JSON and Markdown.

A case is a file with a function `report(options) -> Report`; `run.py` runs it. It warms
up first, outside the times.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from blockspca.reproduction.machine import machine

__all__ = [
    "DATA",
    "Options",
    "Report",
    "columned",
    "contents",
    "correlations",
    "load",
    "machine",
    "markdown",
    "seconds",
    "short",
    "versions",
]

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BLOCKSPCA_DATA", ROOT.parent / "shared" / "data"))
PACKAGES = (
    "blockspca",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "abess",
    "skscope",
    "jax",
)


@dataclass(frozen=True)
class Options:
    """How a case is run: shortened or not, with how many seeds, and which rows of it.

    Without names of rows, all; only some cases have names for them.
    """

    quick: bool = False
    n_seeds: int = 5
    rows: tuple[str, ...] = ()

    @property
    def seeds(self) -> list[int]:
        return list(range(self.n_seeds))


@dataclass
class Report:
    """What a case measured: tables of rows, in order, and what to know about them.

    Rows are dictionaries; `columns` of a table says which keys are shown, under which
    heading and in which format. JSON has all keys.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def add(
        self, name: str, columns: dict[str, tuple[str, str]], rows: list[dict[str, Any]]
    ) -> None:
        """Append a table; `columns` gives heading and format of each key."""
        self.tables.append({"name": name, "columns": columns, "rows": rows})

    def to_markdown(self) -> str:
        text = [f"# {self.title}", "", f"On {machine()}.", ""]
        text += [f"{note}\n" for note in self.notes]
        for table in self.tables:
            columns = table["columns"]
            cells = [columned(row, columns) for row in table["rows"]]
            if len(self.tables) > 1:
                text += [f"## {table['name']}", ""]
            text += [markdown([h for h, _ in columns.values()], cells), ""]
        return "\n".join(text)

    def to_json(self, case: str, quick: bool) -> str:
        content = {
            "format": "blockspca-benchmark",
            "version": 1,
            "case": case,
            "quick": quick,
            "title": self.title,
            "machine": machine(),
            "versions": versions(),
            "threads": {k: v for k, v in os.environ.items() if "NUM_THREADS" in k},
            "seeds": self.seeds,
            "notes": self.notes,
            "tables": [
                {key: value for key, value in table.items() if key != "columns"}
                for table in self.tables
            ],
        }
        return json.dumps(content, indent=2, default=float) + "\n"


def columned(row: dict[str, Any], columns: dict[str, tuple[str, str]]) -> list[str]:
    """Write the values of a row, in the order and format of the columns."""
    return [_write(row.get(key), form) for key, (_, form) in columns.items()]


def _write(value: Any, form: str) -> str:
    if value is None:
        return "–"
    return format(value, form) if isinstance(value, (int, float)) else str(value)


def short(ratio: float) -> str:
    """Write a ratio for a sentence."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def versions() -> dict[str, str]:
    """Return the versions of what is installed of the packages that matter."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def contents(name: str) -> tuple[str, Any]:
    """Return "A" and the matrix of a set, or "X" and its data, dense or sparse."""
    path = DATA / f"{name}.npz"
    with np.load(path, allow_pickle=False) as file:
        for key in ("A", "X"):
            if key in file:
                return key, file[key].astype(float)
    return "X", sp.load_npz(path).astype(float)


def load(name: str) -> Any:
    """Return the matrix A or the data X of a set, as float64."""
    return contents(name)[1]


def correlations(A: np.ndarray) -> np.ndarray:
    """Scale a matrix to a diagonal of ones, but for features without variance."""
    deviations = np.sqrt(np.diagonal(A))
    deviations = np.where(deviations > 0, deviations, 1.0)
    A = A / deviations[:, None] / deviations
    return (A + A.T) / 2


def seconds(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the median time of a call, and its last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
