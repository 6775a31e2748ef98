"""Store the tables of the old package that the scoreboard does not measure.

    PYTHONPATH=src python next/benchmarks/base_tables.py

Each page with measured tables becomes one file of results/base, with the page and the
commit that wrote it. Contrasts, importance and stability had no page: they are measured
here, k = 10. BLOCKSPCA_DATA names the data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("BLOCKSPCA_DATA", ROOT.parent / "shared" / "data"))
OUTPUT = Path(__file__).resolve().parent / "results" / "base"
PAGES = (
    *("benchmark-automatic-k", "benchmark-components", "benchmark-constraints"),
    *("benchmark-gpu", "benchmark-limits", "benchmark-scale", "benchmark-standardised"),
    *("cluster", "results"),
)
OF_RESULTS = (
    "The 28 rows with data, now with a proof",
    "Peers against the proved optimum",
)
NUMBERS = re.compile(r"(-?[\d.]+(?:e[+-]?\d+)?(?:, |$))+")
Row = dict[str, Any]


def git(*words: str) -> str:
    """Return what git prints at the root of the repository."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def value(cell: str) -> Any:
    """Return a number, a list of numbers with the seconds last, or the text."""
    text = re.sub(r" \(([\d.]+) s\)$", r", \1", cell.strip(" *"))
    if not NUMBERS.fullmatch(text):
        return cell
    numbers = [float(number) for number in text.split(", ")]
    return numbers[0] if len(numbers) == 1 else numbers


def tables(page: str) -> dict[str, list[Row]]:
    """Return the rows of all tables of a page, by the heading above them."""
    result: dict[str, list[Row]] = {}
    heading, header = "", None
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if header is None:
            header = cells
        elif set(line) - set("|- "):
            row = zip(header, map(value, cells), strict=True)
            result.setdefault(heading, []).append(dict(row))
    return result


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    result = call()
    return round(time.perf_counter() - start, 2), result


def measured() -> dict[str, list[Row]]:
    """Return a table each for contrasts, importance and stability."""
    import blockspca as bs

    result: dict[str, list[Row]] = {"contrast": [], "importance": [], "stability": []}
    limits = bs.Limits(time=30)
    for name in ("madelon", "alon_colon", "srbct_khan", "Leukemia"):
        with np.load(DATA / f"{name}.npz") as file:
            X = file["X"].astype(float)
        half = len(X) // 2
        for weight in (0.5, 1.0):  # the first half of the samples against the second
            target, background = map(bs.Covariance.from_data, (X[:half], X[half:]))
            cov = bs.contrastive(target, background, weight)
            seconds, found = timed(lambda cov=cov: bs.solve(cov, 10, limits=limits))
            row = {"data": name, "weight": weight, "objective": found.objective}
            row |= {"upper bound": found.upper_bound, "status": found.status.value}
            result["contrast"].append(row | {"seconds": seconds})
        cov = bs.Covariance.from_data(X)
        best = bs.solve(cov, 10, limits=limits)
        seconds, found = timed(
            lambda cov=cov, best=best: bs.feature_importance(cov, best, limits=limits)
        )
        row = {"data": name, "objective": best.objective, "complete": found.complete}
        row |= {"costs": sorted(map(float, found.costs)), "seconds": seconds}
        result["importance"].append(row)
        seconds, found = timed(lambda X=X: bs.stability(X, 10, 20, limits=limits))
        row = {"data": name, "overlap": found.overlap, "proved": float(found.proved)}
        row |= {"in 80 %": len(found.stable(0.8)), "seconds": seconds}
        result["stability"].append(row)
    return result


def store(name: str, source: str, content: dict[str, list[Row]]) -> None:
    """Write one file."""
    commit = git("log", "-1", "--format=%H", "--", source)
    lines = [f'{{"source": "{source}", "commit": "{commit}", "tables": {{']
    for heading, rows in content.items():
        body = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        lines.append(f"{json.dumps(heading, ensure_ascii=False)}: [\n{body}],")
    path = OUTPUT / f"{name}.json"
    path.write_text("\n".join(lines)[:-1] + "}}\n", encoding="utf-8")
    print(path.relative_to(ROOT), {name: len(rows) for name, rows in content.items()})


def main() -> None:
    """Write all files."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        content = tables(page)
        if name == "results":
            content = {heading: content[heading] for heading in OF_RESULTS}
        store(name.removeprefix("benchmark-"), f"docs/{name}.md", content)
    store("inspection", "src", measured())


if __name__ == "__main__":
    main()
