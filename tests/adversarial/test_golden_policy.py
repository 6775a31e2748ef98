"""Which bound is tried, how long it has, and what it is expected to cost.

None of this can make a bound wrong; it decides what there is time for.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from blockspca.bounds import best
from blockspca.bounds.best import Effort, _Run
from blockspca.bounds.direction_dual import problem as dual_problem
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.components import shared_bounds
from blockspca.covariance.covariance import Covariance
from blockspca.heuristics.pool import first_pool
from blockspca.limits import Deadline, NotAffordable
from blockspca.proof_settings import DEFAULT_SETTINGS
from golden import Groups, Numbers, assert_as_written, data, matrices


class Clock:
    """A deadline at which time stands still."""

    def __init__(self, left: float, gone: float) -> None:
        self.left, self.gone = left, gone

    def remaining(self) -> float:
        return self.left

    def elapsed(self) -> float:
        return self.gone

    def affords(self, seconds: float) -> bool:
        return seconds <= self.left

    def passed(self) -> bool:
        return False


def run(cov: Covariance, clock: Any, memory: int | None = None, k: int = 3) -> _Run:
    effort = Effort(nodes=5, is_timed=True)
    return _Run(cov, k, [0, 1, 2], 2.0, clock, memory, effort, DEFAULT_SETTINGS, None)


def given() -> list[tuple[str, Covariance]]:
    found = [(name, Covariance.from_matrix(A)) for name, A in matrices()]
    return found + [(f"data {len(X)}", Covariance.from_data(X)) for X in data()]


def turns() -> Numbers:
    """Whose turn it is, and for how long."""
    found: Numbers = {}
    for name, cov in given():
        # min(k, d/n) variances: three, or one and a half, of the least
        least = 2.2 * float(cov.diagonal().min())
        for value in (2.1, 2.39, 2.41, 9.0, least):
            here = run(cov, Clock(5.0, 4.0))
            here.entries = SimpleNamespace(best=SimpleNamespace(value=value))
            found[f"{name} {value:.6g}"] = [
                here.entries_are_near(),
                here._directions_are_hopeless(),
            ]
        for left, gone in ((5.0, 4.0), (4.0, 5.0)):
            found[f"{name} late {left}"] = run(cov, Clock(left, gone)).is_late()
        for left in (0.5, 7.0, 60.0):
            asked: list[Any] = []

            def dual(*_: object, asked: list[Any] = asked, **words: Any) -> Any:
                asked.append([words["target"], words["time_limit"], words["nodes"]])
                return SimpleNamespace(
                    value=3.0, nodes=1, better=None, interrupted=False
                )

            with (
                patch.object(best, "dual_bound", dual),
                patch.object(best, "EPS", 1e-3),
                patch.object(Covariance, "entry_error", 0.01),
            ):
                run(cov, Clock(left, 0.0))._directions(0.4, 7)
            found[f"{name} directions {left}"] = asked[0]
    return found


def entries() -> Numbers:
    """Seconds and steps of the entry dual, with a clock and without."""
    found: Numbers = {}
    for name, cov in given():
        for timed in (True, False):
            for largest in (3, 3000):
                asked: list[Any] = []

                class Entries:
                    best = SimpleNamespace(nodes=0, record=None, value=3.0)

                    def __init__(self, *_: object, **__: object) -> None:
                        """Nothing to prepare."""

                    def run(
                        self,
                        seconds: float,
                        steps: int,
                        nodes: int,
                        asked: list[Any] = asked,
                    ) -> Any:
                        asked.append([float(seconds), steps, nodes])
                        return SimpleNamespace(
                            value=3.0, better=None, interrupted=False
                        )

                here = run(cov, Clock(10.0, 0.0))
                here.effort = Effort(nodes=5, entry_nodes=9, is_timed=timed)
                with (
                    patch.object(best, "EntryDual", Entries),
                    patch.object(best, "_LARGEST_DENSE", largest),
                ):
                    here.by_entries(0.3, 400)
                    here.by_entries(0.3, 4)
                found[f"{name} {timed} {largest}"] = asked
    return found


def affordable() -> Numbers:
    """For which orders and memories λmax is computed."""
    found: Numbers = {}
    for name, cov in given():
        for is_matrix in (True, False):
            for largest in (5, 7, 3000):
                for memory in (None, 800, 24 * 49, 10**6):
                    with patch.object(best, "_LARGEST_DENSE", largest):
                        said = best._eigenvalue_is_affordable(
                            cov, is_matrix, Clock(9.0, 0.0), memory, 1.0
                        )
                    found[f"{name} {is_matrix} {largest} {memory}"] = said
    return found


def columns() -> Numbers:
    """Columns of the direction dual, by time and memory, and where nothing varies."""
    found: Numbers = {}
    for name, cov in given():
        for memory in (None, 100, 3000, 10**6):
            count = dual_problem._most_columns(cov, 2, memory)
            try:
                made = make_problem(cov, 3, None, memory=memory)
                said: Any = None if made is None else made.columns.shape[1]
            except NotAffordable:
                said = "not affordable"
            found[f"{name} {memory}"] = [count, said]
        costs = dual_problem._Costs.of(cov, np.arange(cov.n_features), False)
        few = dual_problem._Costs.of(cov, np.arange(3), False)
        found[f"{name} costs"] = [
            [1e9 * costs.seconds, costs.bytes],
            [1e9 * few.seconds, few.bytes],
        ]
    X = data()[0].copy()
    X[:, -1] = 1.0
    found["a variance of 0"] = make_problem(Covariance.from_data(X), 2, None) is None
    return found


def tables() -> Numbers:
    """Whether shared supports have a table."""
    found: Numbers = {}
    cov = Covariance.from_matrix(dict(matrices())["flat"])
    for most_k, most in ((3, 10**6), (9, 10**6), (9, 80), (9, 81)):
        with patch.multiple(shared_bounds, TABLE_K=most_k, TABLE_ENTRIES=most):
            forms = shared_bounds.closed_forms(cov, 4, 2, Deadline(None))
        found[f"{most_k} {most}"] = sorted(forms)
    return found


def pools() -> Numbers:
    """How many features the first supports of a path are made of."""
    return {str(k): first_pool(k) for k in (1, 5, 12, 30)}


GROUPS: Groups = {
    "pools": pools,
    "turns": turns,
    "entries": entries,
    "affordable": affordable,
    "columns": columns,
    "tables": tables,
}


def test_pools() -> None:
    assert_as_written(__file__, GROUPS, "pools")


def test_turns() -> None:
    assert_as_written(__file__, GROUPS, "turns")


def test_entries() -> None:
    assert_as_written(__file__, GROUPS, "entries")


def test_affordable() -> None:
    assert_as_written(__file__, GROUPS, "affordable")


def test_columns() -> None:
    assert_as_written(__file__, GROUPS, "columns")


def test_tables() -> None:
    assert_as_written(__file__, GROUPS, "tables")
