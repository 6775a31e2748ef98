"""Write docs/results.md and its pictures from what was measured into a folder.

    blockspca reproduce all --data DATA --time-limit 90 --output DIR
    python benchmarks/run.py peers growth --output DIR
    python docs/generate_results.py DIR

The second line may be left out; then the page has no peers and no growth.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
WORST = 8
SHORT = 0.05  # seconds
PICTURES = "pictures"
GOOD = ("equal", "equal (cut off)", "better")
OTHER_DATA = "other data"

INTRODUCTION = """\
# Results

<!-- Written by docs/generate_results.py from measurements; edit neither the numbers nor
     this page. -->

Every table of the paper, measured again beside what the paper prints:

    blockspca reproduce all --data DATA --output DIR

The paper's runs took up to 3600 s (days on DorotheaCov) on 36 cores. Here everything
ran on {machine}.
Times start from the loaded covariance; those below a second are medians of several
runs, after a warm-up. Compare ratios, not seconds.

- **The paper's method gives the paper's numbers.** {framework} of the {rows} rows with
  the paper's data give its objective to the printed digits, or a better one. This
  method is Algorithm 5 with δ = 0.01 ‖A‖∞ and branch and bound (d0 = 30) or Chan's
  algorithm (d0 = 2k). It agrees also on the rows where it misses the optimum:
  LymphomaCov2 with k = 10 and 15, Reddit2000 with k = 15.
- **This library matches or beats it, with a proof.** {beaten} of the {rows} rows equal
  or beat the best printed objective; {proved} are proved optimal on the original
  matrix{unproved}.
- **It is faster than both of the paper's methods**, run here with the same code, on
  {faster} of the {rows} rows: {least} to {most} times as fast as the faster of the two.
{with_proof}\
- **The framework's speed-ups are smaller than printed.** Our branch and bound and our
  version of Chan's algorithm are much stronger than the paper's baselines, so there is
  less to gain.
"""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables by name, in the order of the catalogue."""
    from blockspca.reproduction import TABLES

    found = {}
    for name in TABLES:
        path = folder / f"{name}.json"
        if not path.is_file():
            raise SystemExit(f"{path} is missing: run blockspca reproduce all --output")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read_benchmark(folder: Path, case: str) -> dict[str, Any] | None:
    path = folder / f"{case}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def measured_rows(tables: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of both comparisons that were measured on the paper's data."""
    rows = []
    for name, alone, ours in (
        ("branch-and-bound", "branch and bound alone", "certified path"),
        ("chan", "Chan's algorithm alone", "power steps"),
    ):
        rows += [
            {**row, "alone_name": alone, "ours_name": ours}
            for row in tables[name]["rows"]
            if "optimum" in row and row["verdict"] != OTHER_DATA
        ]
    return rows


def title(row: dict[str, Any]) -> str:
    return f"{row['dataset']}, k = {row['k']}"


def gain(row: dict[str, Any]) -> float:
    """Return how many times faster this library is than the faster method."""
    ratios = (row["certified_ratio_to_alone"], row["certified_ratio_to_framework"])
    return 1 / max(ratios)


def gap(row: dict[str, Any]) -> float:
    """Return the gap that is left, as a share."""
    if row["proof"] == "proved":
        return 0.0
    return float(row["proof"].removeprefix("within ").rstrip("%")) / 100


def badness(row: dict[str, Any]) -> tuple[bool, bool, float, float]:
    """Order rows, worst last: wrong, slower, not proved, little gained."""
    wrong = row["verdict"] not in GOOD or row["optimum_verdict"] not in GOOD
    return wrong, gain(row) < 1, gap(row), -gain(row)


def worst_rows(tables: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the rows that are worst for this library, with the reason."""
    left_out = [
        (title(row), row["verdict"], "not run: `--quick` leaves out 100,000 features")
        for row in tables["chan"]["rows"]
        if row["verdict"] == "left out"
    ]
    ranked = sorted(measured_rows(tables), key=badness, reverse=True)
    worst = [(title(r), f"{r['verdict']}, {r['proof']}", reason(r)) for r in ranked]
    return [*left_out, *worst][:WORST]


def reason(row: dict[str, Any]) -> str:
    """Say why a row is not better."""
    text = []
    if row["verdict"] not in GOOD:
        value = row.get("objective")
        said = "nothing" if value is None else f"{value:.4f}"
        text.append(f"framework {said}, printed {row['paper_objective']}")
    if row["optimum_verdict"] not in GOOD:
        text.append(f"{row['optimum']:.4f} is below the best printed objective")
    if row["proof"] != "proved":
        text.append(
            f"not proved optimal: the best upper bound in {row['bound_seconds']} s is "
            f"{row['upper_bound']:.4f}, for {row['optimum']:.4f} found"
            if "bound_seconds" in row
            else "the proof did not finish"
        )
    slower_of = row["certified_ratio_to_framework"] > row["certified_ratio_to_alone"]
    rival, key = (
        ("the framework", "framework") if slower_of else (row["alone_name"], "alone")
    )
    faster = gain(row)
    said = f"only {faster:.1f} times faster" if faster >= 1 else "slower"
    text.append(
        f"{row['ours_name']} {said} than {rival} "
        f"({row['certified']} s against {row[key]} s)"
    )
    if "bound_seconds" in row and row["proof"] == "proved":
        text.append(f"{row['bound_seconds']} s with the proof")
    if row.get("speedup") is not None and row["speedup"] < 1:
        text.append(f"the framework is slower than no framework ({row['speedup']:.1f})")
    if float(row["certified"].removeprefix("> ")) < SHORT:
        text.append("both take a fraction of a second, so fixed costs show")
    return "; ".join(text)


def introduction(tables: dict[str, dict[str, Any]]) -> str:
    rows = measured_rows(tables)
    open_rows = [row for row in rows if row["proof"] != "proved"]
    unproved = ""
    if open_rows:
        names = sorted({row["dataset"] for row in open_rows})
        sizes = [row["k"] for row in open_rows]
        gaps = [gap(row) for row in open_rows]
        which = f"k = {sizes[0]}"
        if len(sizes) > 1:
            which = f"k from {min(sizes)} to {max(sizes)}"
        unproved = (
            f",\n  the rest ({', '.join(names)}, {which}) bounded to {max(gaps):.2%} "
            "or better"
        )
    return INTRODUCTION.format(
        with_proof=with_proof(rows),
        machine=tables["branch-and-bound"]["machine"],
        rows=len(rows),
        framework=sum(row["verdict"] in GOOD for row in rows),
        beaten=sum(row["optimum_verdict"] in GOOD for row in rows),
        proved=len(rows) - len(open_rows),
        unproved=unproved,
        faster=sum(gain(row) > 1 for row in rows),
        least=f"{min(map(gain, rows)):.1f}",
        most=f"{max(map(gain, rows)):.0f}",
    )


def with_proof(rows: list[dict[str, Any]]) -> str:
    """Say how the rows compare whose time is that of the component alone."""
    proved = [
        row for row in rows if "bound_seconds" in row and row["proof"] == "proved"
    ]
    if not proved:
        return ""
    faster = [
        row
        for row in proved
        if float(row["bound_seconds"])
        < min(float(row[key].removeprefix("> ")) for key in ("alone", "framework"))
    ]
    names = ", ".join(sorted({row["dataset"] for row in proved}))
    sizes = ", ".join(str(row["k"]) for row in faster) or "none"
    return (
        f"  On {names} that is the time of the component alone. Even with its proof,\n"
        f"  which neither of the two has, {len(faster)} of {len(proved)} rows are "
        f"faster than both (k = {sizes}).\n"
    )


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def proved_table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows of both comparisons, with a proof and both speed-ups."""
    header = ["data", "k", "paper: framework", "paper: baseline", "here"]
    header += ["against paper's best", "proof", "by", "time of the baseline, ours = 1"]
    header += ["time of the framework, ours = 1"]
    cells = [
        [
            row["dataset"],
            str(row["k"]),
            row["paper_objective"],
            row["paper_base_objective"],
            f"{row['optimum']:.4f}",
            row["optimum_verdict"],
            row["proof"],
            row["ours_name"],
            _at_least(row["alone"], row["certified_ratio_to_alone"]),
            _at_least(row["framework"], row["certified_ratio_to_framework"]),
        ]
        for row in rows
    ]
    return table(header, cells)


def _at_least(seconds: str, ratio: float) -> str:
    return f"{'> ' if seconds.startswith('>') else ''}{1 / ratio:.1f}"


def page(folder: Path) -> str:
    """Return the text of the page."""
    tables = read(folder)
    rows = measured_rows(tables)
    if not rows:
        raise SystemExit("no row was measured: name the folder of the data, --data")
    text = [
        introduction(tables),
        f"## The {_word(WORST)} rows that are worst for this library",
        "",
        "Rows that are missing, wrong, slower or not proved come first, then those "
        "with the smallest speed-up.",
        "",
        *table(["row", "verdict", "reason"], [list(r) for r in worst_rows(tables)]),
        "",
        f"## The {len(rows)} rows with data, now with a proof",
        "",
        *proved_table(rows),
        "",
        "Baseline and framework are the paper's two methods, run here with the same "
        "code. The last two columns are their times, with the time of this library = "
        "1. The time of the certified path includes its proof on the original matrix. "
        "Of the two, branch and bound alone has a proof too, where it finishes. For "
        "DorotheaCov, ours is the time of the power steps that find the component; the "
        "time of the proof is in the table on Chan's algorithm.",
        "",
        f"![Time of the paper's methods, ours = 1]({PICTURES}/results-times.png)",
        "",
    ]
    for case, heading, picture in (
        ("peers", "Peers", "results-peers.png"),
        ("growth", "Growth", "results-growth.png"),
    ):
        found = read_benchmark(folder, case)
        if found:
            text += [f"## {heading}", "", *(f"- {note}" for note in found["notes"]), ""]
            text += [f"![{found['title']}]({PICTURES}/{picture})", ""]
    for name in tables:
        markdown = (folder / f"{name}.md").read_text(encoding="utf-8")
        text.append(markdown.replace("](figure-1.png)", f"]({PICTURES}/figure-1.png)"))
    for case in ("peers", "growth"):
        path = folder / f"{case}.md"
        if path.is_file():
            text.append(_tables_alone(path.read_text(encoding="utf-8")))
    return "\n".join(text)


def _tables_alone(markdown: str) -> str:
    """A benchmark's report one heading deeper, without the notes shown above."""
    lines = markdown.splitlines()
    kept = [line for line in lines if line.startswith(("|", "#")) or not line]
    deeper = ("#" + line if line.startswith("#") else line for line in kept)
    text = "\n".join(deeper)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


def _word(number: int) -> str:
    return {8: "eight"}.get(number, str(number))


# -- pictures --------------------------------------------------------------------------


def draw_times(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw how many times longer than this library the paper's methods take."""
    figure, ax = _axes(7, 0.2 * len(rows) + 1.2)
    places = range(len(rows))
    for key, label, marker in (
        ("certified_ratio_to_alone", "baseline alone", "o"),
        ("certified_ratio_to_framework", "framework", "s"),
    ):
        ax.plot([1 / row[key] for row in rows], places, marker, label=label)
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_yticks(places, [title(row) for row in rows], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("time, ours = 1 (a time limit ends some runs)")
    ax.legend(loc="best")
    _save(figure, path)


def draw_peers(found: dict[str, Any], path: Path) -> None:
    """Draw what each package misses of the optimum against the time it takes."""
    figure, ax = _axes(7, 4)
    rows = found["tables"][0]["rows"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for method, marker in zip(methods, "*osv^Dx+", strict=False):
        own = [row for row in rows if row["method"] == method]
        times = [row["times_certified"] for row in own]
        missed = [100 * row["below_optimum"] for row in own]
        size = 160 if method == "certified path" else 30
        ax.scatter(times, missed, s=size, marker=marker, label=method, alpha=0.8)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(bottom=-0.05)
    ax.set_xlabel("time, certified path = 1")
    ax.set_ylabel("below the optimum, %")
    figure.legend(fontsize=7, loc="outside upper center", ncols=3)
    _save(figure, path)


def draw_growth(found: dict[str, Any], path: Path) -> None:
    """Draw time against d, n and k."""
    figure, axes = _axes(9, 3, len(found["tables"]))
    for ax, part in zip(axes, found["tables"], strict=True):
        which = part["name"].split()[-1]
        sizes = [row[which] for row in part["rows"]]
        for key, label in (("seconds", "certified path"), ("blas", "X'X by BLAS")):
            power = part["exponent"][key]
            times = [row[key] for row in part["rows"]]
            ax.plot(sizes, times, "o-", label=f"{label}, {which}^{power:.1f}")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=7)
        ax.minorticks_off()
        ax.set_xlabel(which)
        ax.legend(fontsize=7)
    axes[0].set_ylabel("seconds")
    _save(figure, path)


def _axes(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})


def draw(folder: Path, pictures: Path) -> None:
    """Draw every picture of the page."""
    draw_times(measured_rows(read(folder)), pictures / "results-times.png")
    for case, picture in (("peers", draw_peers), ("growth", draw_growth)):
        found = read_benchmark(folder, case)
        if found:
            picture(found, pictures / f"results-{case}.png")
    figure = folder / "figure-1.png"
    if figure.is_file():
        (pictures / figure.name).write_bytes(figure.read_bytes())


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    (DOCS / "results.md").write_text(page(folder), encoding="utf-8")
    draw(folder, DOCS / PICTURES)


if __name__ == "__main__":
    main()
