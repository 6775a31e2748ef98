"""What a solve returns: a component, what was proved about it, how it was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._html import Markup, bar, table
from ._messages import advice, gap_in_percent, proof_in_words
from ._validation import FloatArray, names_of, pandas_for
from .proof_file import MayHaveProof, Proof
from .status import (
    SEARCH_GAP,
    Status,
    refuse_unproved,
    relative_gap,
)

if TYPE_CHECKING:
    from .guarantee import BlockGuarantee


class BlockStatus(str, Enum):
    """How the solve of one block ended; the claims concern the block alone.

    Examples
    --------
    >>> import blockspca as bs
    >>> blocks = bs.solve([[2.0, 0.0], [0.0, 1.0]], k=1, threshold=0.5).blocks
    >>> [str(block.status) for block in blocks]
    ['optimal', 'optimal']
    """

    OPTIMAL = "optimal"
    GAP_LIMIT = "gap_limit"
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    FEASIBLE = "feasible"
    SKIPPED = "skipped"  #: its upper bound cannot beat the incumbent
    FAILED = "failed"  #: the solver raised, or returned something unusable

    def __str__(self) -> str:
        return self.value


SHOWN = 20  # loadings in print
NEGLIGIBLE = 1e-10  # a loading that changes the objective by less than rounding does


def refuse_contradiction(result: Result) -> None:
    """Raise if a result says something else than its certificate.

    Each is read on its own, the certificate in files; a claim of the one is changed
    together with that of the other, by `certificate.restated`.
    """
    certificate = result.certificate
    if certificate is None:
        return
    names = ("k", "n_features", "objective", "upper_bound", "bound_name")
    apart = [n for n in names if getattr(result, n) != getattr(certificate, n)]
    if result.status is not certificate.status:  # text would equal its status
        apart.append("status")
    if result.support.tolist() != list(certificate.support):
        apart.append("support")
    elif len(result.x) != result.n_features or not (
        np.array_equal(result.x[result.support], certificate.loadings)
        and np.count_nonzero(result.x) == np.count_nonzero(certificate.loadings)
    ):
        apart.append("x")
    if apart:
        raise ValueError(
            "the result and its certificate do not say the same: they differ in "
            f"{', '.join(apart)}; change both with blockspca.certificate.restated, or "
            "pass certificate=None."
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """A solver's answer on the matrix it was given; `upper_bound` holds there only.

    Only the support of x counts: its loadings are optimised afterwards by the caller.
    """

    x: FloatArray
    upper_bound: float = math.inf
    status: Status = Status.FEASIBLE
    nodes: int = 0

    @property
    def support(self) -> NDArray[np.intp]:
        """The ascending indices of the features with a nonzero loading."""
        return np.flatnonzero(self.x)


@dataclass(frozen=True, eq=False)
class BlockReport:
    """One block: its features, and what its solver found and proved there."""

    features: NDArray[np.intp]
    objective: float
    upper_bound: float
    status: BlockStatus
    nodes: int = 0
    message: str = ""

    @property
    def size(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one threshold, as columns; `blocks[i]` is the report of block i."""

    labels: NDArray[np.intp]  #: block of each feature
    sizes: NDArray[np.intp]
    objectives: FloatArray  #: −inf where the block was skipped or failed
    upper_bounds: FloatArray
    statuses: tuple[BlockStatus, ...]
    nodes: NDArray[np.int64]
    messages: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> BlockReport:
        index = range(len(self))[index]
        return self._report(index, np.flatnonzero(self.labels == index))

    def _report(self, index: int, features: NDArray[np.intp]) -> BlockReport:
        return BlockReport(
            features=features,
            objective=float(self.objectives[index]),
            upper_bound=float(self.upper_bounds[index]),
            status=self.statuses[index],
            nodes=int(self.nodes[index]),
            message=self.messages.get(index, ""),
        )

    def __iter__(self) -> Iterator[BlockReport]:
        order = np.argsort(self.labels, kind="stable")
        members = np.split(order, np.cumsum(self.sizes)[:-1])
        return (self._report(i, features) for i, features in enumerate(members))

    @property
    def largest(self) -> int:
        return int(self.sizes.max())

    def count(self, status: BlockStatus) -> int:
        return sum(s is status for s in self.statuses)

    def __repr__(self) -> str:
        return f"Blocks({len(self)} blocks, largest {self.largest})"


@dataclass(frozen=True)
class Price:
    """What constraints cost: the best component without them against that with them.

    Examples
    --------
    >>> from blockspca.result import Price
    >>> price = Price(5.0, 5.0, 4.0, 4.5)
    >>> price.least, price.most, price.share
    (0.5, 1.0, 0.2)
    """

    #: `free_objective`, `free_upper_bound`: of the same problem without constraints:
    #: what is reached, and what is proved.
    free_objective: float
    free_upper_bound: float
    #: `objective`, `upper_bound`: with them.
    objective: float
    upper_bound: float

    @property
    def least(self) -> float:
        """Proved: the constraints cost at least this much of the optimum."""
        return max(0.0, self.free_objective - self.upper_bound)

    @property
    def most(self) -> float:
        """Proved: the constraints cost at most this much of the optimum."""
        return max(self.least, self.free_upper_bound - self.objective)

    @property
    def share(self) -> float:
        """What they cost of what is reached, relative to that without them."""
        lost = max(0.0, self.free_objective - self.objective)
        return lost / abs(self.free_objective) if lost else 0.0

    def __str__(self) -> str:
        if self.share <= SEARCH_GAP:
            return (
                f"nothing of {self.free_objective:.6g} without constraints; proved: at "
                f"most {self.most:.3g}"
            )
        return (
            f"{self.share:.3%} of {self.free_objective:.6g} without constraints; "
            f"proved: between {self.least:.6g} and {self.most:.6g}"
        )


@dataclass(frozen=True)
class Visit:
    """One threshold that a search looked at, and what was done there."""

    epsilon: float
    largest_block: int
    action: str  #: "solved", "too large", "size solved before", "not scanned"
    objective: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Result(MayHaveProof):
    """A sparse component x with what is known about it.

    Attributes
    ----------
    x : array of shape (n_features,)
        Unit vector with at most k nonzeros; its largest loading is positive.
    support : array of int
        The features chosen, in ascending order. Where fewer than k suffice, some of
        them may have the loading 0; `features` leaves those out.
    objective : float
        x'Ax on the original matrix.
    upper_bound : float
        Proved: no unit vector with at most k nonzeros has a larger x'Ax.
    gap : float
        (upper_bound − objective) / |objective|.
    status : Status
        `optimal` only if proved on the original matrix, within `OPTIMAL_GAP` of the
        objective: a result that claims it and has a larger gap cannot be made.
    bound_name : str
        Which argument gave the upper bound.
    threshold : float or None
        The ε of the blocks in which x was found.
    blocks : Blocks or None
        Sizes, bounds and statuses of those blocks.
    visits : tuple of Visit
        The thresholds that were tried.
    guarantee : BlockGuarantee or None
        What Theorem 3 promises for the solver and threshold that were used; None if a
        limit or a failure kept the solver from finishing its blocks.
    certificate : Certificate or None
        What `verify` needs to check the upper bound again.
    nodes : int
        All nodes that were opened for this answer, by every search: those of the
        solvers of the blocks, of the direction dual, and of the proofs for 1, 2, …, k.
        `Limits.nodes` is a limit on this number.
    time : float
        Seconds.
    price : Price or None
        What the constraints cost, if `solve` was given some.
    proof : Proof or None
        What `write_proof` writes, if `solve` was told to record it.

    Examples
    --------
    >>> import blockspca as bs
    >>> result = bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1)
    >>> result.objective, result.upper_bound, result.gap
    (2.0, 2.0, 0.0)
    """

    _call = "solve"

    x: FloatArray
    support: NDArray[np.intp]
    objective: float
    upper_bound: float
    status: Status
    k: int
    n_features: int
    message: str = ""
    bound_name: str = ""
    threshold: float | None = None
    blocks: Blocks | None = None
    visits: tuple[Visit, ...] = ()
    guarantee: BlockGuarantee | None = None
    certificate: Any = None
    nodes: int = 0
    time: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    solver: str = ""
    feature_names: tuple[str, ...] | None = None
    price: Price | None = None
    proof: Proof | None = None

    def __repr__(self) -> str:
        return (
            f"Result(k={self.k}, objective={self.objective:.6g}, "
            f"upper_bound={self.upper_bound:.6g}, status={self.status}, "
            f"features={self.features[:5]}{'...' if len(self.support) > 5 else ''})"
        )

    def __post_init__(self) -> None:
        refuse_unproved(self.status, self.objective, self.upper_bound)
        refuse_contradiction(self)
        self.x.flags.writeable = False
        self.support.flags.writeable = False

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.upper_bound)

    def _by_loading(self) -> NDArray[np.intp]:
        sizes = np.abs(self.x[self.support])
        order = np.argsort(-sizes, kind="stable")
        return self.support[order[sizes[order] > NEGLIGIBLE]]

    @property
    def features(self) -> list[str]:
        """The names of the features with a loading, largest first.

        Fewer than `support` where a loading is zero up to rounding.
        """
        return names_of(self._by_loading(), self.feature_names)

    @property
    def loadings(self) -> dict[str, float]:
        """Loading of each of the `features`, largest first."""
        loadings = (float(value) for value in self.x[self._by_loading()])
        return dict(zip(self.features, loadings, strict=True))

    def to_frame(self) -> Any:
        """Return the loadings as a pandas DataFrame, largest first.

        Examples
        --------
        >>> import numpy as np
        >>> import blockspca as bs
        >>> bs.solve(np.array([[2.0, 1.0], [1.0, 2.0]]), 2).to_frame().shape
        (2, 1)
        """
        pandas = pandas_for("to_frame")
        index = pandas.Index(self.features, name="feature")
        values = list(self.loadings.values())
        return pandas.DataFrame({"loading": values}, index=index)

    def _repr_html_(self) -> str:
        loadings = list(self.loadings.items())
        rows = [(name, f"{value:+.4f}", bar(value)) for name, value in loadings[:SHOWN]]
        if len(loadings) > SHOWN:
            rows.append((f"… ({len(loadings) - SHOWN} more)", "", Markup()))
        caption = (
            f"k = {self.k} of {self.n_features} features: variance "
            f"{self.objective:.6g}, {proof_in_words(self)}"
        )
        return table(("feature", "loading", ""), rows, caption)

    def __str__(self) -> str:
        shown = list(self.loadings.items())[:SHOWN]
        gap = gap_in_percent(self.gap)
        lines = [
            f"k = {self.k} of {self.n_features} features: "
            f"objective {self.objective:.6g}, upper bound {self.upper_bound:.6g} "
            f"(gap {gap}), {self.status}",
            "  " + ", ".join(f"{n} {v:+.4f}" for n, v in shown),
        ]
        if len(self.support) > len(shown):
            lines[-1] += f", … ({len(self.support) - len(shown)} more)"
        if self.price is not None:
            lines.append(f"  constraints cost {self.price}")
        lines += ["  " + said for said in (self.message, advice(self.status)) if said]
        return "\n".join(lines)
