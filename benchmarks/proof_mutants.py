"""Mutated proofs against the checker: is one accepted whose claim is false?

    python benchmarks/proof_mutants.py --mutants 100000 --jobs 2
    python benchmarks/proof_mutants.py --seed 1234        the mutants of one proof again
    python benchmarks/proof_mutants.py --proof FILE --data FILE --mutants 1000

A seed makes a problem of 3 to 6 features, a proof of it, and 20 mutants of the proof
(`tests/proof_changes.py`: numbers, nodes dropped, other data with their hash, another
k, reordered, truncated, …). Each is checked in integers, in floats or both, and the
claims of those that are accepted are compared with all supports, in exact fractions.

With `--proof`, mutants of a given proof are checked in floats. Then a claim is false if
it contradicts those of the proof, which is checked first.

What is done is written to a file after each batch, so that a run goes on where the last
one ended. The file belongs to the checker and the mutations that were tested: if they
change, it starts again. The exit status is 1 if a false claim was accepted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soundness import ROOT, State

MUTANTS = 20  # of one proof
BATCH = 10  # proofs


def sources() -> str:
    """Return a hash of the checker and of what judges it."""
    checker = sorted((ROOT / "src" / "blockspca" / "checker").glob("*.py"))
    judges = [
        ROOT / "tests" / f"proof_{name}.py"
        for name in (
            *("builder", "changes", "compositions", "groups", "mutations"),
            *("problems", "signs"),
        )
    ]
    digest = hashlib.sha256()
    for path in [*checker, *judges]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class Tried(State):
    """What is done; `problems` are mutants."""

    accepted: int = 0

    @classmethod
    def load(cls, path: Path) -> Tried:
        """Read the state, or begin anew if there is none for these sources."""
        if path.exists():
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
            if found.sources == sources():
                return found
            print(f"{path} is of other sources: starting again.", flush=True)
        return cls(sources())

    def __str__(self) -> str:
        return (
            f"seeds {self.done}: {self.problems} mutants, {self.accepted} accepted, "
            f"{len(self.wrong)} with a false claim, {self.seconds:.0f} s"
        )


def judge_batch(first: int, last: int) -> tuple[int, int, int, list[str]]:
    """Judge the seeds of a range; return it, what was accepted and what was wrong."""
    from proof_mutations import judge

    accepted, wrong = 0, []
    for seed in range(first, last):
        more, false = judge(seed, MUTANTS)
        accepted += more
        wrong += false
    return first, last, accepted, wrong


def run(state: Tried, path: Path, mutants: int, jobs: int) -> Tried:
    """Go on until so many mutants are done."""
    batches = state.open_batches(BATCH)
    running: set[Future[Any]] = set()
    before, started = state.seconds, time.monotonic()
    told = started
    with ProcessPoolExecutor(jobs) as pool:
        while state.problems < mutants or running:
            while state.problems < mutants and len(running) < jobs:
                running.add(pool.submit(judge_batch, *next(batches)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                first, last, accepted, wrong = future.result()
                found = [{"text": text} for text in wrong]
                state.add(first, last, MUTANTS * (last - first), found)
                state.accepted += accepted
                for text in wrong:
                    print(f"ACCEPTED AND FALSE: {text}", flush=True)
            state.seconds = before + time.monotonic() - started
            state.save(path)
            if time.monotonic() > told + 10:
                told = time.monotonic()
                print(state, flush=True)
    print(state)
    return state


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    state = ROOT / "build" / "proof_mutants.json"
    parser.add_argument("--state", type=Path, default=state)
    parser.add_argument("--seed", type=int, help="the mutants of one proof only")
    parser.add_argument("--proof", type=Path, help="a proof to be mutated")
    parser.add_argument("--data", type=Path, help="the data of that proof")
    given = parser.parse_args(words)
    if given.proof is not None:
        from blockspca.checker.data import read_data
        from proof_mutations import judge_file

        content, Y = given.proof.read_bytes(), read_data(given.data)
        accepted, wrong = judge_file(content, Y, given.seed or 0, given.mutants)
        print(f"{accepted} of {given.mutants} accepted", f"{len(wrong)} false", *wrong)
        return int(bool(wrong))
    if given.seed is not None:
        _, _, accepted, wrong = judge_batch(given.seed, given.seed + 1)
        print(f"seed {given.seed}: {accepted} of {MUTANTS} accepted", *wrong, sep="\n")
        return int(bool(wrong))
    tried = run(Tried.load(given.state), given.state, given.mutants, given.jobs)
    return int(bool(tried.wrong))


if __name__ == "__main__":
    sys.exit(main())
