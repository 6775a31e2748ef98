"""Solve the problems of several components within the limits of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Budget, Deadline, Limits
from ..pipeline import solve
from ..progress import Listener
from ..result import Result


@dataclass(frozen=True)
class SolveWithin:
    """Solves the problems of one component, of which a scheme may have several.

    `deadline` is that of the component: what one problem has used, the next has not.
    `start` are its loadings so far, where it is solved again.
    """

    limits: Limits
    deadline: Deadline
    tell: Listener
    options: Mapping[str, Any]
    start: FloatArray | None = None

    def __call__(
        self, problem: Covariance, k: int, *, certify: bool = True, share: float = 1.0
    ) -> Result:
        left = self.deadline.remaining()
        limits = replace(self.limits, time=None if left is None else share * left)
        chosen = {
            **self.options,
            "certify": certify and self.options.get("certify", True),
        }
        return solve(problem, k, limits=limits, progress=self.tell, **chosen)


def shared_out(budget: Budget, to_go: int, part: float = 1.0) -> Limits:
    """Return an equal share, for the solves to go, of a part of what is left."""
    left = budget.left()
    time, nodes = left.time, left.nodes
    return replace(
        left,
        time=None if time is None else part * time / to_go,
        nodes=None if nodes is None else max(1, int(part * nodes) // to_go),
    )
