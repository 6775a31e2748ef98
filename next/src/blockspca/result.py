"""The result of a solve: a sparse component, and a bound on all others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .limits import OPTIMAL_GAP, Status, relative_gap
from .messages import gap_in_percent
from .proof.evidence import Evidence, Sets

SHOWN = 20  # loadings in print
ALL_SETS = Sets()
NEGLIGIBLE = 1e-10  # a smaller loading changes the objective less than rounding does


@dataclass(frozen=True)
class Bound:
    """An upper bound on opt(k), every rounding error included.

    Parameters
    ----------
    value : float
        No unit vector with at most k nonzeros has a larger x'Ax.
    name : str
        The argument, in words: "tree", "row sums", …
    evidence : tuple of records
        The records that `verify` and `write_proof` use; empty if there are none.
    """

    value: float = math.inf
    name: str = "none"
    evidence: Evidence = field(default=(), repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A sparse component x, and a bound on the best one.

    Attributes
    ----------
    x : array of shape (n_features,)
        Unit vector with at most k nonzeros; its largest loading is positive.
    support : array of int
        The features chosen, in ascending order.
    objective : float
        x'Ax.
    bound : Bound
        Upper bound on the objective of all components, with its evidence.
    k : int
        The largest number of features of a component.
    stopped : Status, optional
        The limit that ended the search, if one did.
    gap_wanted : float, optional
        The gap at which the search was allowed to end (`Limits.gap`).
    work : float
        Work of the call, in units of about a second of one core.
    nodes : int
        Nodes of all searches together.
    feature_names : tuple of str, optional
    message : str
        A sentence about a limit of this result; empty if there is none.
    sets : Sets
        The rules about sets of features, if there were constraints.
    identity : object
        `Covariance.identity`, by which `write_proof` recognises the data.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.result import Bound, Result
    >>> result = Result(np.array([1.0, 0]), np.array([0]), 2.0, Bound(2.5, "rows"), 1)
    >>> result.upper_bound, result.gap, result.status.value
    (2.5, 0.25, 'feasible')
    """

    x: NDArray[np.float64]
    support: NDArray[np.int64]
    objective: float
    bound: Bound
    k: int
    stopped: Status | None = None
    gap_wanted: float | None = None
    work: float = 0.0
    nodes: int = 0
    feature_names: tuple[str, ...] | None = None
    message: str = ""
    sets: Sets = ALL_SETS
    identity: Any = None

    def __post_init__(self) -> None:
        self.x.flags.writeable = False
        self.support.flags.writeable = False

    @property
    def upper_bound(self) -> float:
        """The value of the bound."""
        return self.bound.value

    @property
    def gap(self) -> float:
        """(upper bound − objective) / |objective|, as it is proved."""
        return relative_gap(self.objective, self.upper_bound)

    @property
    def status(self) -> Status:
        """OPTIMAL if the gap is at most 1e-6; else why the search ended."""
        if self.gap <= OPTIMAL_GAP:
            return Status.OPTIMAL
        if self.gap_wanted is not None and self.gap <= self.gap_wanted:
            return Status.GAP
        return self.stopped or Status.FEASIBLE

    @property
    def loadings(self) -> dict[str, float]:
        """Loadings that are not negligible by feature, the largest first."""
        order = np.argsort(-np.abs(self.x[self.support]), kind="stable")
        names = self.feature_names
        return {
            names[i] if names else str(i): float(self.x[i])
            for i in self.support[order].tolist()
            if abs(self.x[i]) > NEGLIGIBLE
        }

    @property
    def features(self) -> list[str]:
        """Names of the features with a loading, the largest first."""
        return list(self.loadings)

    def to_frame(self) -> Any:
        """Return the loadings as a pandas DataFrame, the largest first."""
        import pandas

        index = pandas.Index(self.features, name="feature")
        return pandas.DataFrame({"loading": list(self.loadings.values())}, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return the result, without its evidence, in values that JSON has.

        `support`, `loadings` and `features` have the same order.
        """
        names = self.feature_names
        return {
            "k": self.k,
            "support": self.support.tolist(),
            "loadings": self.x[self.support].tolist(),
            "features": [names[i] if names else str(i) for i in self.support.tolist()],
            "objective": self.objective,
            "upper_bound": self.upper_bound if math.isfinite(self.gap) else None,
            "gap": self.gap if math.isfinite(self.gap) else None,
            "bound": self.bound.name,
            "status": self.status.value,
            "work": self.work,
            "nodes": self.nodes,
            "message": self.message,
        }

    def write_proof(self, path: Any, data: Any) -> None:
        """Write the proof of the bound to a file; see `blockspca.proof.write`."""
        from .proof.write import write_proof

        write_proof(path, data, ([self], ()))

    def __repr__(self) -> str:
        return (
            f"Result(k={self.k}, objective={self.objective:.6g}, "
            f"upper_bound={self.upper_bound:.6g}, status={self.status.value!r}, "
            f"features={self.features[:5]}{'...' if len(self.support) > 5 else ''})"
        )

    def __str__(self) -> str:
        shown = list(self.loadings.items())
        loadings = ", ".join(f"{name} {value:+.4f}" for name, value in shown[:SHOWN])
        if len(shown) > SHOWN:
            loadings += f", … ({len(shown) - SHOWN} more)"
        lines = [
            f"k = {self.k} of {len(self.x)} features: objective {self.objective:.6g}, "
            f"upper bound {self.upper_bound:.6g} (gap {gap_in_percent(self.gap)}), "
            f"{self.status.value}",
            f"  {loadings}",
        ]
        return "\n".join([*lines, *([f"  {self.message}"] if self.message else [])])
