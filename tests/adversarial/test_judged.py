"""Every prover against brute force on a few problems of each kind.

Plain functions without fixtures: `benchmarks/mutation.py` runs them on mutants, with
kernels as Python, so that they are to take a second or two in all.
"""

from __future__ import annotations

import numpy as np

import judge
import zoo

FAMILIES = [name for name in zoo.FAMILIES if name != "threshold_chain"]
# Where the optimum is no difference of larger numbers
PLAIN = ["gaussian", "correlation", "low_rank", "indefinite", "integer", "blocks"]


def judged(
    judges: dict[judge.Judge, int],
    changes: list,
    seeds: int = 1,
    families: list[str] = FAMILIES,
) -> None:
    """Assert that nothing is wrong on one small problem of each family and change."""
    for which, name in enumerate(families):
        for change in changes:
            for seed in range(seeds):
                rng = np.random.default_rng([which, seed])
                A = change(zoo.FAMILIES[name](int(rng.integers(4, 7)), rng), rng)
                problem = zoo.from_matrix((A + A.T) / 2, name)
                wrong = judge.judge(problem, seed, judges)
                assert wrong == [], (name, change.__name__, seed, wrong)


def test_searches() -> None:
    judges = {judge.refutations: 1, judge.trees: 1, judge.plain_searches: 1}
    judged(judges, [zoo.as_it_is, zoo.within_ulps])
    judged({judge.trees: 1}, [zoo.as_it_is], 8, ["blocks", "spiked", "binary"])


def test_what_is_dropped() -> None:
    judges = {judge.screenings: 1, judge.parts: 1, judge.spectral: 1}
    judged(judges, [zoo.as_it_is, zoo.within_ulps])


def test_formulas() -> None:
    judged({judge.closed_forms: 1}, [zoo.as_it_is, zoo.within_ulps, zoo.scaled])


def test_bounds_of_paths() -> None:
    judges = {judge.path_by_every_argument: 1, judge.path_within_limits: 1}
    judged(judges, [zoo.within_ulps], families=PLAIN)
