"""The interface of a sparse PCA solver: its arguments, result and guarantee."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from .._validation import FloatArray
from ..guarantee import EXACT, HEURISTIC, Guarantee
from ..limits import Deadline, Limits
from ..result import Solution

__all__ = [
    "EXACT",
    "HEURISTIC",
    "Deadline",
    "Guarantee",
    "Limits",
    "Solution",
    "Solver",
    "SolverError",
]


class SolverError(RuntimeError):
    """A solver failed, or returned something that is not a sparse unit vector."""


@runtime_checkable
class Solver(Protocol):
    """A sparse PCA algorithm for one matrix in memory.

    `name` is shown in results; `requires_psd` says that indefinite input is refused;
    `guarantee` is the promise that Theorem 3 carries over to the whole matrix.

    `solve` gets 1 ≤ k < d. It may use `incumbent`, an objective reached elsewhere: it
    may stop as soon as it has proved that it cannot do better. It honours `limits` and
    returns what it has, with the matching status, when one is reached or on Ctrl-C.
    A is its own copy, to write to as it likes.
    """

    name: str
    guarantee: Guarantee
    requires_psd: bool

    def solve(
        self,
        A: FloatArray,
        k: int,
        *,
        limits: Limits,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution: ...
