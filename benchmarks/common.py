"""What every benchmark shares: data, timing, and tables in Markdown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blockspca.reproduction.machine import machine

__all__ = ["load", "machine", "markdown", "seconds"]

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BLOCKSPCA_DATA", ROOT.parent / "shared" / "data"))


def load(name: str) -> np.ndarray:
    """Return the matrix A or the data X of a dense set, as float64."""
    with np.load(DATA / f"{name}.npz") as file:
        return file["A" if "A" in file else "X"].astype(float)


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
