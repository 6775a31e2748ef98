"""Random problems against brute force: is anything that is proved wrong?

    python benchmarks/soundness.py --problems 1000000 --jobs 2
    python benchmarks/soundness.py --seed 1234        one matrix again, all its k

One problem is one matrix with one k. A seed makes a matrix of 3 to 10 features (`tests/
zoo.py`: covariances, correlations, ties, ulps, features that cannot matter, scales up
to 1e±160, data, …); it counts as many problems as it has features, for the path is
judged at every k. Each matrix is shown to every prover or to those whose turn it is
(`tests/judge.py`), and what they say is compared with all supports, tried one by one.

What is done is written to a file after each batch, so that a run goes on where the last
one ended. The file belongs to the sources that were tested: if they change, it starts
again. Wrong answers are printed with their seed. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # matrices of ten features need no threads

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

BATCH = 200  # seeds
SHOWN = 20  # wrong answers that are printed

Found = dict[str, Any]


def sources() -> str:
    """Return a hash of the library and of what judges it."""
    import blockspca

    library = sorted(Path(blockspca.__file__).parent.rglob("*.py"))
    judges = [ROOT / "tests" / f"{name}.py" for name in ("zoo", "case", "judge")]
    digest = hashlib.sha256()
    for path in [*library, *judges]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class State:
    """What is done: ranges of seeds, how many problems they were, what was wrong."""

    sources: str
    done: list[list[int]] = field(default_factory=list)
    problems: int = 0
    seconds: float = 0.0
    wrong: list[Found] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> State:
        """Read the state, or begin anew if there is none for these sources."""
        fresh = cls(sources())
        if not path.exists():
            return fresh
        found = cls(**json.loads(path.read_text(encoding="utf-8")))
        if found.sources != fresh.sources:
            print(f"{path} is of other sources: starting again.", flush=True)
            return fresh
        return found

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        other = path.with_suffix(".new")
        other.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        other.replace(path)

    def add(self, first: int, last: int, problems: int, wrong: list[Found]) -> None:
        """Take in a batch; neighbouring ranges become one."""
        self.problems += problems
        self.wrong += wrong
        merged: list[list[int]] = []
        for start, stop in sorted([*self.done, [first, last]]):
            if merged and merged[-1][1] == start:
                merged[-1][1] = stop
            else:
                merged.append([start, stop])
        self.done = merged

    def open_batches(self, size: int = BATCH) -> Iterator[tuple[int, int]]:
        """Yield the ranges that are not done, in order, without an end."""
        start = 0
        for first, last in [*self.done, [2**62, 2**62]]:
            while start < first:
                stop = min(start + size, first)
                yield start, stop
                start = stop
            start = last


def judge_batch(first: int, last: int) -> tuple[int, int, int, list[Found]]:
    """Judge the seeds of a range; return it, its problems and what was wrong."""
    from judge import judge
    from zoo import problem

    problems, wrong = 0, []
    for seed in range(first, last):
        made = problem(seed)
        problems += made.d
        wrong += [
            {"seed": seed, "kind": made.kind, "d": made.d, **asdict(one)}
            for one in judge(made, seed)
        ]
    return first, last, problems, wrong


def run(state: State, path: Path, problems: int, jobs: int) -> State:
    """Go on until so many problems are done."""
    batches = state.open_batches()
    running: set[Future[Any]] = set()
    told = time.monotonic()
    before, started = state.seconds, time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        while state.problems < problems or running:
            while state.problems < problems and len(running) < 2 * jobs:
                running.add(pool.submit(judge_batch, *next(batches)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                first, last, count, wrong = future.result()
                shown = max(0, SHOWN - len(state.wrong))
                state.add(first, last, count, wrong)
                for one in wrong[:shown]:
                    print(describe(one), flush=True)
            state.seconds = before + time.monotonic() - started
            state.save(path)
            if time.monotonic() > told + 10:
                told = time.monotonic()
                print(summary(state), flush=True)
    return state


def describe(one: Found) -> str:
    where = f"seed {one['seed']} ({one['kind']}, d = {one['d']}), k = {one['k']}"
    return f"WRONG: {where}: {one['prover']}: {one['text']}"


def summary(state: State) -> str:
    rate = state.problems / max(state.seconds, 1e-9)
    seeds = sum(last - first for first, last in state.done)
    return (
        f"{state.problems} problems ({seeds} matrices), {rate:.0f} a second, "
        f"{len(state.wrong)} wrong"
    )


def by_prover(wrong: list[Found]) -> str:
    """Count what was wrong, with the first seed of each kind."""
    first: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for one in wrong:
        name = f"{one['prover']}: {' '.join(str(one['text']).split()[:2])} …"
        counts[name] += 1
        first.setdefault(name, one["seed"])
    lines = [
        f"  {count:6d}  {name} (first with seed {first[name]})"
        for name, count in counts.most_common()
    ]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soundness.json")
    parser.add_argument("--seed", type=int, help="judge one matrix, by every prover")
    given = parser.parse_args(words)
    if given.seed is not None:
        from judge import JUDGES, judge
        from zoo import problem

        made = problem(given.seed)
        print(f"seed {given.seed}: {made.kind}, d = {made.d}\n{made.A!r}")
        # In its turn, and then with every prover.
        wrong = judge(made, given.seed) or judge(
            made, given.seed, dict.fromkeys(JUDGES, 1)
        )
        for one in wrong:
            found = {"seed": given.seed, "kind": made.kind, "d": made.d, **asdict(one)}
            print(describe(found))
        print(f"{len(wrong)} wrong")
        return int(bool(wrong))
    state = run(State.load(given.state), given.state, given.problems, given.jobs)
    print(summary(state))
    if state.wrong:
        print(by_prover(state.wrong))
    return int(bool(state.wrong))


if __name__ == "__main__":
    sys.exit(main())
