"""The records of the certified path, one for each k."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..progress import Event
from ..search.schur_tree import TreeStatistics
from ..status import OPTIMAL_GAP, Status, relative_gap


@dataclass(frozen=True)
class CertifiedStep:
    """What is known about one k, with all that is needed to check it again."""

    k: int
    n_features: int
    #: `support`, `loadings`: (k,); the features, ascending, and the unit eigenvector
    #: of A on them.
    support: NDArray[np.intp]
    loadings: FloatArray
    objective: float  #: x'Ax on the original A
    upper_bound: float  #: no unit vector with at most k nonzeros exceeds it
    bound_name: BoundName
    status: Status
    source: str  #: where the incumbent came from
    #: `tau`, `upper_previous`: the proof shows that no k-set exceeds tau, given
    #: upper_previous ≥ opt(k − 1). NaN unless the bound is by a search or by
    #: screening.
    tau: float = np.nan
    upper_previous: float = np.nan
    #: Every feature outside fails the screening inequality at (tau, upper_previous);
    #: fewer than k of them, or the support alone, prove the bound without a tree.
    survivors: NDArray[np.int64] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64)
    )
    statistics: TreeStatistics = field(default_factory=TreeStatistics)
    time: float = 0.0  #: seconds spent on this k
    message: str = ""  #: what went wrong, if anything did
    dual: str | None = None  #: the point of the entry dual, if the bound is by that

    @property
    def gap(self) -> float:
        """(upper_bound − objective) / |objective|."""
        return relative_gap(self.objective, self.upper_bound)

    @property
    def tolerance(self) -> float:
        """Absolute: "optimal" says that upper_bound − objective is at most this."""
        return OPTIMAL_GAP * abs(self.objective)

    @property
    def nodes(self) -> int:
        return self.statistics.nodes

    def event(self, total: int) -> Event:
        """The line of the log that says how this k ended."""
        return Event(
            stage="proof",
            done=self.k,
            total=total,
            k=self.k,
            objective=self.objective,
            upper_bound=self.upper_bound,
            survivors=len(self.survivors),
            nodes=self.nodes,
            source=self.source,
            elapsed=self.time,
            status=self.status,
        )
