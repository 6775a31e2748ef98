"""Random constrained problems against every allowed set: is anything proved wrong?

    python benchmarks/constrained_soundness.py --problems 10000 --jobs 2
    python benchmarks/constrained_soundness.py --seed 1234       one problem again

A seed makes a matrix, or data, of 3 to 12 features (`tests/zoo.py`), a k up to 6 and
one or two constraints (`tests/constrained_zoo.py`): features in, features out, limits
of groups, no negative loading, an overlap. The answer is compared with all allowed
sets, and `verify` is to accept it. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # matrices of ten features need no threads

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

BATCH = 50
LARGEST = 12  # features


def judge(seed: int) -> tuple[str, str, list[str]]:
    """Return the kinds of constraints, the status and what is wrong."""
    import blockspca as bs
    import constrained_zoo as cz

    drawn = cz.drawn(seed, LARGEST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        kinds = " + ".join(sorted(drawn.kinds))
        try:
            result = bs.solve(drawn.problem.cov, drawn.k, constraints=drawn.constraints)
        except Exception as error:  # whatever it is, it is a fault, and others follow
            return kinds, "none", [f"{drawn.problem.kind}: solve: {error!r}"]
        said = cz.faults(drawn, result)
        try:
            bs.verify(result, drawn.problem.cov)
        except bs.VerificationError as error:
            said.append(f"verify: {error}")
    return kinds, str(result.status), [f"{drawn.problem.kind}: {s}" for s in said]


def judge_batch(first: int, last: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for seed in range(first, last):
        kinds, status, said = judge(seed)
        counts[kinds, status] += 1
        wrong += [f"seed {seed}, {kinds}: {text}" for text in said]
    return counts, wrong


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="this problem alone")
    options = parser.parse_args(words)
    if options.seed is not None:
        print(*judge(options.seed))
        return 0
    started = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    starts = range(0, options.problems, BATCH)
    stops = [min(first + BATCH, options.problems) for first in starts]
    with ProcessPoolExecutor(options.jobs) as pool:
        for more, bad in pool.map(judge_batch, starts, stops):
            counts += more
            wrong += bad
            for text in bad:
                print(text, flush=True)
            if counts.total() % 1000 == 0:
                print(f"{counts.total()} problems, {len(wrong)} wrong", flush=True)
    seconds = time.monotonic() - started
    for kinds in sorted({kinds for kinds, _ in counts}):
        total = sum(n for (one, _), n in counts.items() if one == kinds)
        proved = counts[kinds, "optimal"]
        print(f"{kinds:28} {total:6} problems, {proved / total:7.2%} proved")
    print(f"{counts.total()} problems, {len(wrong)} wrong, {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
