"""Proofs that are written down: their sizes, and what recording and checking take.

    python benchmarks/run.py proofs --output DIR

DIR/proofs.md has the tables of the page docs/benchmark-proofs.md.

Every set with proved optima, for all of them with k up to 20 in one file, checked in
integers and in floats; then larger k, checked in floats; then `verify` of a
result with its proof beside the solve, for k = 10 and 20 of every set. All times are
the processor's, after kernels are compiled. Solves with and without `proof=True` take
turns, each with a covariance made anew, and of each kind the median counts; so does
that of writing the proof down, which is done after the solve.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import blockspca as bs
from blockspca.checker.check import check_proof, is_optimal
from blockspca.checker.proof_file import ProofError
from common import DATA, Options, Report, contents

Row = dict[str, Any]

ORACLES = DATA.parent / "oracles" / "proved_optima.csv"
QUICK_SETS = ("pitprops", "Eisen1Cov", "CovColon")
LAST = ("alon_colon", "ALLAML")  # which take as long as all others together
#: Turns of short solves, and the seconds after which no more are begun
MOST_TURNS, LEAST_TURNS, SECONDS = 25, 3, 3.0
LIMITS = bs.Limits(time=60)
#: One k, or a path up to k; with the gap that is asked for
LARGE = (
    ("Prostate", "path", 50, 0.0),
    ("Prostate", "one", 100, 0.0),
    ("Prostate", "one", 200, 0.0),
    ("Dorothea_train", "one", 50, 0.0),
    ("Dorothea_train", "one", 200, 0.01),
)

COLUMNS = {
    "set": ("data", ""),
    "k": ("k", "d"),
    "gap": ("gap", ".1e"),
    "solve": ("solve s", ".3f"),
    "recording": ("with proof=True s", ".3f"),
    "share": ("more", ".0%"),
    "write": ("write s", ".3f"),
    "of_it": ("of solve", ".0%"),
    "nodes": ("nodes", "d"),
    "bytes": ("bytes", "d"),
    "exact": ("exact check s", ".1f"),
    "floats": ("float check s", ".1f"),
    "right": ("", ""),
}


REPLAYED = (10, 20)
REPLAY_COLUMNS = {
    "set": ("data", ""),
    "k": ("k", "d"),
    "bound": ("bound by", ""),
    "solve": ("solve s", ".3f"),
    "verify": ("verify s", ".3f"),
    "allowed": ("5 × solve + 1", ".3f"),
    "right": ("", ""),
}


def covariance(name: str) -> bs.Covariance:
    key, values = contents(name)
    if key == "A":
        return bs.Covariance.from_matrix(values)
    return bs.Covariance.from_data(values)


def oracles() -> dict[str, dict[int, float]]:
    """Return the proved optima of every set, by k."""
    table: dict[str, dict[int, float]] = {}
    with open(ORACLES, newline="") as file:
        for row in csv.DictReader(file):
            table.setdefault(row["dataset"], {})[int(row["k"])] = float(
                row["objective"]
            )
    return table


def processor_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def recorded_row(
    name: str, k: int, solve: Callable[[bs.Covariance, bool], Any], target: Path
) -> Row:
    """Solve with and without a proof in turn, write it; return what that took."""
    times: list[tuple[float, float, float]] = []
    began = time.process_time()
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and time.process_time() - began > SECONDS:
            break
        took = {}
        for proof in (False, True) if turn % 2 else (True, False):
            cov = covariance(name)
            took[proof], found = processor_seconds(
                lambda cov=cov, proof=proof: solve(cov, proof)
            )
            if proof:
                held = found
        writing, _ = processor_seconds(lambda held=held: held.write_proof(target))
        times.append((took[False], took[True], writing))
    solving, recording, writing = map(median, zip(*times, strict=True))
    return {
        "set": name,
        "k": k,
        "solve": solving,
        "recording": recording,
        "share": median(more / alone for alone, more, _ in times) - 1,
        "write": writing,
        "of_it": writing / solving,
        "nodes": held.proof.nodes,
        "bytes": target.stat().st_size,
    }


def check(row: Row, target: Path, ways: tuple[str, ...]) -> Any:
    """Check a proof in the ways that are asked for; return the last verdict."""
    file, verdict = DATA / f"{row['set']}.npz", None
    for way in ways:
        try:
            row[way], verdict = processor_seconds(
                lambda way=way: check_proof(target, file, **{way: True})
            )
        except ProofError as error:
            row[way], row["right"] = None, f"refused: {error}"
            return None
    return verdict


def path_row(name: str, expected: dict[int, float], folder: Path) -> Row:
    """All proved optima of a set with k ≤ 20, in one proof."""
    k_max, target = max(expected), folder / "path.proof"

    def solve(cov: bs.Covariance, proof: bool) -> bs.SparsityPath:
        return bs.solve_path(cov, k_max, proof=proof)

    row = recorded_row(name, k_max, solve, target)
    verdict = check(row, target, ("exact", "floats"))
    if verdict is None:
        return row
    claims = {claim.k: claim for claim in verdict.sections[0].claims}
    same = all(
        is_optimal(claims[k]) and abs(claims[k].objective / value - 1) < 1e-9
        for k, value in expected.items()
    )
    row["gap"] = claims[k_max].upper_bound / claims[k_max].objective - 1
    row["right"] = "all optimal" if same else "not all"
    return row


def large_row(name: str, kind: str, k: int, gap: float, folder: Path) -> Row:
    """One large k, by itself or at the end of a path."""
    target, limits = folder / "large.proof", bs.Limits(gap=gap or None)

    def solve(cov: bs.Covariance, proof: bool) -> Any:
        if kind == "one":
            return bs.solve(cov, k, limits=limits, proof=proof)
        return bs.solve_path(cov, k, limits=limits, proof=proof)

    row = recorded_row(name, k, solve, target)
    row["kind"] = "a path" if kind == "path" else "one k"
    verdict = check(row, target, ("floats",))
    if verdict is not None:
        claim = verdict.sections[0].claims[-1]
        row["gap"] = claim.upper_bound / claim.objective - 1
        row["right"] = "optimal" if is_optimal(claim) else "bounded"
    return row


def replay_row(name: str, k: int) -> Row:
    """`verify` of a result with its proof, and the solve without one."""
    key, values = contents(name)
    cov = covariance(name)
    solving, _ = processor_seconds(lambda: bs.solve(cov, k, limits=LIMITS))
    cov = covariance(name)
    result = bs.solve(cov, k, limits=LIMITS, proof=True)
    assert result.proof is not None
    result.proof.to_text()  # written, as it is once it is handed out
    data = None if key == "A" else values
    verifying, found = processor_seconds(lambda: bs.verify(result, cov, data=data))
    allowed = 5 * solving + 1
    words = "as asked" if verifying <= allowed else "slower"
    if found.unchecked:
        words = "not checked: " + found.unchecked[0]
    return {
        "set": name,
        "k": k,
        "bound": str(result.bound_name),
        "solve": solving,
        "verify": verifying,
        "allowed": allowed,
        "right": words,
    }


def replay_rows(names: Sequence[str]) -> list[Row]:
    """All sets with more than k features."""
    rows = []
    for name in names:
        for k in REPLAYED:
            if contents(name)[1].shape[1] > k:
                rows.append(replay_row(name, k))
                print(rows[-1], flush=True)
    return rows


def report(options: Options) -> Report:
    """Measure every set."""
    expected = oracles()
    names = QUICK_SETS if options.quick else sorted(expected, key=LAST.__contains__)
    warm = bs.Covariance.from_matrix(contents("pitprops")[1])
    bs.solve_path(warm, 6, proof=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for name in names:
            rows.append(path_row(name, expected[name], Path(folder)))
            print(rows[-1], flush=True)
        large = []
        for case in () if options.quick else LARGE:
            large.append(large_row(*case, Path(folder)))
            print(large[-1], flush=True)
    found = Report(
        "Proofs that are written down",
        notes=[
            "Each file has a claim for every k with a proved optimum, up to 20, and is "
            "checked by `python -m blockspca.checker`, in integers (`--exact`) "
            "and in floats with derived margins (`--floats`). Seconds are the "
            "processor's, medians of up to 25 turns. Solving is `solve_path` once "
            "kernels are compiled, without a proof and with `proof=True`: what a proof "
            "is written from is kept in any case, so that the two differ by the noise "
            "of the machine. Writing comes after it, when it is asked for, and closes "
            "every k once more.",
            "For larger k, one k by itself has one claim, by the direction dual: its "
            "root, for a gap of 1 %, or rounds of fixing at the root; a path is proved "
            "by the chain and its trees.",
        ],
    )
    every = QUICK_SETS if options.quick else sorted(p.stem for p in DATA.glob("*.npz"))
    found.add("`verify` with a proof", REPLAY_COLUMNS, replay_rows(every))
    found.add("Every oracle value with k ≤ 20", COLUMNS, rows)
    if large:
        columns = {key: value for key, value in COLUMNS.items() if key != "exact"}
        found.add("Larger k", {"kind": ("proof of", ""), **columns}, large)
    return found
