"""Run benchmarks: each case is one file; results as JSON and Markdown.

    python benchmarks/run.py                       list the cases
    python benchmarks/run.py peers growth          run some
    python benchmarks/run.py all --output DIR      run all, write DIR/CASE.json and .md
    python benchmarks/run.py all --quick           minutes instead of an hour
    python benchmarks/run.py scale --rows cells million    some rows of one case

BLOCKSPCA_DATA names the folder of the data. Times are medians of several runs after a
warm-up; compare ratios, not seconds. For one thread, set OPENBLAS_NUM_THREADS=1 and
NUMBA_NUM_THREADS=1; the JSON has such settings.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common import Options, Report

CASES = {
    "certified_path": "the certified path against BLAS",
    "peers": "values and times of other packages against the proved optimum",
    "growth": "the certified path as d, n and k grow",
    "components": "several components: every scheme, peers, joint bounds, shared sets",
    "spanning_forest": "the spanning forest against plain passes over the matrix",
    "scale": "large data: time, peak memory, proofs",
    "branch_and_bound": "branch and bound, and a plain transcription of it",
    "chan": "Chan's algorithm on 100,000 features",
    "ablation": "tuned constants, doubled and halved",
    "bounds": "upper bounds of every method that has one, with their times",
    "standardised": "correlations and given matrices, k from 30 to 300, ten seconds",
    "constraints": "constraints and alternatives on real sets",
    "automatic_k": 'k="auto" against the fit at the k that it chooses',
    "limits": "calls with a limit on time: how long they take",
    "gpu": "the scan on a GPU, from data there to proofs",
    "cluster": "a dask cluster: bytes that move, against the cost model",
    "proofs": "proofs that are written down: sizes, recording, checking",
    "explore": "the page with sliders, in Chromium: from a move to its answer",
    "paper": "every table of the paper",
}

WITH_ROWS = (
    "ablation",
    "components",
    "scale",
    "standardised",
)  # cases whose rows have names


def run_case(name: str, options: Options, output: Path | None) -> Report:
    """Measure one case, print its tables, and write them."""
    found: Report = importlib.import_module(name).report(options)
    text = found.to_markdown()
    print(text, flush=True)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / f"{name}.md").write_text(text, encoding="utf-8")
        content = found.to_json(name, options.quick)
        (output / f"{name}.json").write_text(content, encoding="utf-8")
    return found


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="all, or some of the cases")
    parser.add_argument("--output", type=Path, help="a folder for CASE.json and .md")
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--rows", nargs="+", default=[], help=f"of {', '.join(WITH_ROWS)}"
    )
    given = parser.parse_args(words)
    if not given.cases:
        for name, text in CASES.items():
            print(f"  {name:<18}{text}")
        return
    names = list(CASES) if given.cases == ["all"] else given.cases
    if unknown := sorted(set(names) - set(CASES)):
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    if given.rows and not (len(names) == 1 and names[0] in WITH_ROWS):
        parser.error(f"--rows is for one of {', '.join(WITH_ROWS)}, alone")
    options = Options(given.quick, given.seeds, tuple(given.rows))
    for name in names:
        run_case(name, options, given.output)


if __name__ == "__main__":
    main()
