"""Every solver by name: the tests, the benchmarks and the command line read this."""

from __future__ import annotations

from .base import Solver
from .exhaustive import Exhaustive
from .greedy import Greedy
from .local_search import LocalSearch
from .truncated_power import TruncatedPower

SOLVERS: dict[str, type[Solver]] = {
    "exhaustive": Exhaustive,
    "greedy": Greedy,
    "local-search": LocalSearch,
    "truncated-power": TruncatedPower,
}
