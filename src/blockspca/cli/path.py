"""`blockspca path`: the best component for every k, each with its bound."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .compile import compile_before
from .constraining import ConstraintOptions
from .declaring import option, whole
from .display import Display
from .options import File, Force, ProofFile, ReadOptions, ShowOptions, SolveOptions
from .solving import end, say_interrupted, was_interrupted, write_proof


@dataclass(frozen=True)
class PathOptions:
    """How far the path goes, and where it is written."""

    k_max: int | None = option(
        "The largest k; 10 by default, or all features if fewer.", None, **whole(1)
    )
    output: Path | None = option(
        "A .csv or .json file to write.", None, "--output", "-o"
    )
    plot: Path | None = option("A .png, .svg or .pdf picture to write.", None)
    proof: ProofFile = None
    force: Force = False


def path(
    file: File,
    reading: ReadOptions,
    solving: SolveOptions,
    show: ShowOptions,
    constraining: ConstraintOptions,
    asked: PathOptions,
) -> None:
    """Solve for k = 1, 2, …, k-max: how much each further feature adds."""
    from ..io.writing import check_free, check_output, to_csv, to_json, write_file

    output, plot, proof, force = asked.output, asked.plot, asked.proof, asked.force
    check_output("--output", output, force, ".csv", ".json")
    check_output("--plot", plot, force, ".png", ".svg", ".pdf")
    check_free([] if proof is None else [proof], force)
    if plot is not None and find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib; pip install 'blockspca[plot]'.")
    display = Display(show)
    from .loading import load

    loaded = load(file, reading, display)
    d = loaded.cov.n_features
    if asked.k_max is not None and asked.k_max > d:
        raise ValueError(f"--k-max = {asked.k_max} is more than the {d} feature(s).")
    compile_before(solving, loaded.cov, display, proof is not None)
    with display.solving() as progress:
        from ..pipeline import solve_path

        results = solve_path(
            loaded.cov,
            asked.k_max or min(10, d),
            limits=solving.limits(proof is not None),
            n_jobs=solving.jobs,
            progress=progress,
            constraints=constraining.read(loaded),
            start=constraining.start_of_path(loaded),
            proof=proof is not None,
        )
    if was_interrupted(results.values()):
        say_interrupted(display)
    rows = results.to_rows()
    for line in _lines(rows, results.ceiling):  # first: a disk may be full
        display.say(line)
    if output is not None:
        header = list(rows[0])
        text = to_json(rows)
        if output.suffix == ".csv":
            # A list in JSON: names may hold spaces, commas and anything else.
            flat = (
                {**row, "features": json.dumps(row["features"], ensure_ascii=False)}
                for row in rows
            )
            text = to_csv(header, ([row[name] for name in header] for row in flat))
        write_file(output, text, force=force)
        display.say(f"Written: {output}")
    if plot is not None:
        from ..plotting.figures import plot_sparsity_path, save

        save(plot_sparsity_path(results), plot, force=force)
        display.say(f"Written: {plot}")
    if proof is not None:
        write_proof(results, proof, display)
    end(results.values(), display, solving)


def _lines(rows: list[dict[str, Any]], ceiling: float) -> list[str]:
    lines = [f"{'k':>4} {'objective':>12} {'upper bound':>12} {'of PCA':>8}  status"]
    lines += [
        f"{row['k']:>4} {row['objective']:>12.6g} {row['upper_bound']:>12.6g} "
        f"{row['objective'] / ceiling:>8.2%}  {row['status']}"
        for row in rows
    ]
    return lines
