"""Record a proof: for each k the rule that bounds it, with what its checker needs.

A recording is made after the solve, from its result: the bounds on opt(1), …, opt(k)
say at which τ each k can be closed, and closing it once more, with one order of the
features and each node written down, takes less than finding these bounds did
(`docs/design-notes.md` has the measurement). Of the rules of `docs/proof-format.md` the
cheapest that reaches the bound of the result is taken; if none does, the best there is,
and the proof then says less than the result, which its message tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.direction_dual.point import direction_point, direction_rounds
from ..bounds.entry_dual.check import read_record
from ..bounds.entry_dual.point import written_point, written_search
from ..bounds.entry_dual.record import EntryRecord
from ..bounds.smaller_k import bound_from_smaller_k
from ..certificate import BoundName
from ..constraints import Constraints
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..limits import Budget, LimitReached, Limits
from ..numerics.blas import single_threaded
from ..numerics.rounding import EPS
from ..proof_file import (
    FORMAT,
    VERSION,
    WITH_DIRECTIONS,
    WITH_ENTRIES,
    WITH_ENTRY_TREES,
    WITH_ROUNDS,
    WITH_SECTIONS,
    Proof,
    Section,
)
from ..result import Result, Status, is_within_gap
from ..search.tree_log import ROOM, above, below, root_order, tree_text
from .adaptive_screening import Candidates

Found = tuple[float, dict[str, Any] | None]
_NOTHING: Found = (np.inf, None)

_SEARCHED = (BoundName.PROOF_TREE, BoundName.GROWTH, BoundName.SCREENING)

# Of the bound by the direction dual; the format page says why it is larger.
DIRECTION_ROOM = 2.0**-20

# The same of the entry dual: eliminating hundreds of rows in floats errs by more, and
# half of the tolerance of "optimal" is left.
ENTRY_ROOM = 2.0**-31

# Nodes of one tree, at the most. As a rule it has as many as the search opened; where
# that had other arguments than a tree, it may need any number.
_NODES, _NODES_PER_NODE = 20_000, 4

# A proof whose gap is larger than that of the result by more than this says so.
_SAME_GAP = 1e-9


# Share of a time limit that recording may take on top of it.
_RECORDING = 0.2


class NotRecordable(ValueError):
    """The proof format has no rule for this result."""


def check_recordable(
    cov: Covariance, certify: bool, constraints: Constraints | None
) -> None:
    """Refuse, before any work, to record what the proof format cannot say."""
    refuse_unrecordable(cov, ())
    if not certify:
        raise ValueError("proof=True with certify=False: pass one of them.")
    if constraints is not None:
        raise ValueError(
            "proof=True with constraints: such proofs cannot be recorded yet; leave "
            "one of them out."
        )


def recorded(
    cov: Covariance,
    results: Sequence[Result],
    limits: Limits,
    without: NDArray[np.intp] | Sequence[int] = (),
) -> Proof:
    """Record the proof of results, in a fifth of the time that was given for them."""
    seconds = None if limits.time is None else _RECORDING * limits.time
    budget = Budget(Limits(time=seconds, memory=limits.memory))
    return record_proof(cov.formed(), results, budget, without)


def record_proof(
    cov: Covariance,
    results: Sequence[Result],
    budget: Budget | None = None,
    without: Sequence[int] | NDArray[np.intp] = (),
) -> Proof:
    """Record a proof of the bounds of results, ascending in k, of one matrix.

    Parameters
    ----------
    cov : Covariance
        Made from data or from a matrix, not derived from another.
    results : sequence of Result
        With certificates.
    budget : Budget, optional
        Of time and nodes; where they end, the rules that need no tree go on.
    without : sequence of int
        Features that the results may not use: A is meant without them.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> from blockspca.certify.proof_log import record_proof
    >>> cov = bs.Covariance.from_matrix(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> proof = record_proof(cov, [bs.solve(cov, 2)])
    >>> [(record["k"], record["rule"]) for record in proof.sections[0].records]
    [(1, 'variance'), (2, 'tree')]
    """
    refuse_unrecordable(cov, results)
    budget = budget or Budget()
    features = np.setdiff1d(np.arange(cov.n_features), without)
    part = restricted(cov, features) if len(without) else cov
    try:
        candidates = Candidates(part, results[-1].k, budget.check, again=True)
    except LimitReached:  # before A was read
        raise NotRecordable(
            "the time did not suffice to read A once more, so that there is nothing to "
            "record; give more time."
        ) from None
    with single_threaded():
        recording = _Recording(part, results, budget, candidates, features)
        for k in range(recording.first, results[-1].k + 1):
            recording.add(k)
    origin = cov.data_origin
    assert origin is not None
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": WITH_SECTIONS if len(without) else VERSION,
        "data": origin.to_dict(),
    }
    if len(without):
        header["without"] = sorted(int(i) for i in without)
    return recording.proof(header)


def refuse_unrecordable(cov: Covariance, results: Sequence[Result]) -> None:
    """Say what a proof cannot be recorded of."""
    if cov.data_origin is None:
        raise NotRecordable(
            f"a proof names the data that A comes from, and of {cov!r} it cannot; make "
            "it with Covariance.from_data or from_matrix, from numbers in memory or in "
            "a file and without missing values."
        )
    for result in results:
        if result.certificate is None:
            raise NotRecordable(
                f"the result for k = {result.k} has no certificate, so that there is "
                "no bound to prove; solve with certify=True."
            )
        if result.certificate.constraints is not None:
            raise NotRecordable(
                "proofs under constraints cannot be recorded yet; `verify` checks "
                "their certificates."
            )


def _level(result: Result) -> float:
    """The τ at which a proof shows the bound of a result, with room.

    A little below the bound, so that the claim can be the bound itself; not so far that
    the component itself is near.
    """
    bound, objective = result.upper_bound, result.objective
    lower = bound - 4 * ROOM * abs(bound)
    return lower if lower - objective >= 8 * ROOM * abs(objective) else bound


@dataclass
class _Recording:
    """The records so far; all values are in units of `candidates.unit`.

    `cov` is A without some features; `features` are the numbers of the others in A.
    """

    cov: Covariance
    results: Sequence[Result]
    budget: Budget
    candidates: Candidates
    features: NDArray[np.intp]
    records: dict[int, dict[str, Any]] = field(default_factory=dict)
    nodes: int = 0

    def __post_init__(self) -> None:
        k_max = self.results[-1].k
        self.unit = self.candidates.unit
        self.upper: FloatArray = np.full(k_max + 1, np.inf)
        steps = [step for r in self.results for step in r.certificate.steps]
        steps.sort(key=lambda step: -step.upper_bound)  # the least of a k comes last
        self.targets = {step.k: step.upper_bound / self.unit for step in steps}
        self.names = {step.k: step.bound_name for step in steps}
        self.duals = {step.k: step.dual for step in steps}
        for result in self.results:
            self.targets[result.k] = _level(result) / self.unit
        self.first = min(self.targets)  # that k alone, where no chain was needed
        self.claimed = {result.k: result for result in self.results}
        opened = sum(result.nodes for result in self.results[-1:])
        self.most_nodes = _NODES + _NODES_PER_NODE * opened

    def add(self, k: int) -> None:
        """Record the best bound for k: that of the result, if a rule reaches it."""
        previous = float(self.upper[k - 1]) if k > 1 else -np.inf
        wanted = self.targets.get(k, np.inf)
        target = max(wanted, above(previous))
        value, record = np.inf, None
        if self.names.get(k) in _SEARCHED:
            value, record = self._tree(k, target)
        if self.names.get(k) == BoundName.ENTRY_DUAL:
            value, record = self._entry(k)
        if record is None:
            value, record = self._closed_form(k)
            if value > target and k > 1 and self.names.get(k) not in _SEARCHED:
                searched = self._tree(k, target)
                value, record = min(
                    (value, record), searched, key=lambda found: found[0]
                )
        no_chain = (BoundName.DIRECTION_DUAL, BoundName.NONE)
        if value > wanted and k in self.claimed and self.names.get(k) in no_chain:
            directed = self._direction(k, wanted)
            value, record = min((value, record), directed, key=lambda found: found[0])
        self._add(k, (value, record))

    def _add(self, k: int, found: Found) -> None:
        """Keep a record that is better than what there is for this k."""
        value, record = found
        if record is not None and value <= self.upper[k]:
            self.upper[k] = value
            bound = float(value * self.unit).hex()
            self.records[k] = {"k": k, "upper": bound, **record}

    def _direction(self, k: int, target: float) -> Found:
        """The direction dual, which needs no smaller k: its root, or rounds at it."""
        support = np.searchsorted(self.features, self.claimed[k].support)
        bound, memory = target * self.unit, self.budget.limits.memory
        call = (self.cov, k, support, bound, self.budget, memory)
        point = direction_point(*call)
        if point is None:
            return _NOTHING
        value = point.value + DIRECTION_ROOM * abs(point.value)
        if value <= bound or self.claimed[k].status is not Status.OPTIMAL:
            return value / self.unit, {"rule": "direction", **point.to_dict()}
        found = direction_rounds(*call)
        if found is None:
            return value / self.unit, {"rule": "direction", **point.to_dict()}
        rounds, last = found
        said = [self._in_numbers(step.to_dict()) for step in rounds]
        return target, {"rule": "direction", **last.to_dict(), "rounds": said}

    def _entry(self, k: int) -> Found:
        """The entry dual, which needs no smaller k either: the point of its bound."""
        dual = read_record(self.duals.get(k) or "", self.cov.n_features)
        if isinstance(dual, EntryRecord):
            return self._entry_point(k, dual)
        if dual.screen is not None:
            self._add(k - 1, self._entry_point(k - 1, dual.screen.record))
        found = written_search(self.cov, k, dual, self.budget)
        if found is None:
            return _NOTHING
        value, said = found
        self._rename(said)
        return self._with_room(value), {"rule": "entry-tree", **said}

    def _entry_point(self, k: int, dual: EntryRecord) -> Found:
        """A point of the entry dual."""
        found = written_point(self.cov, k, dual, self.budget)
        if found is None:
            return _NOTHING
        value, said = found
        for key in ("core", "dense"):
            said[key] = self.features[said[key]].tolist()
        return self._with_room(value), {"rule": "entry", **said}

    def _with_room(self, value: float) -> float:
        return (value + ENTRY_ROOM * abs(value)) / self.unit

    def _rename(self, said: dict[str, Any]) -> None:
        """Name the features of a search by their numbers in A."""
        said["features"] = self.features[said["features"]].tolist()
        for node in said["nodes"]:
            if "split" in node:
                node["split"] = int(self.features[node["split"]])
            for key in {"out", "in"} & {*node}:
                node[key] = self.features[node[key]].tolist() if node[key] else []

    def _in_numbers(self, step: dict[str, Any]) -> dict[str, Any]:
        """Name the features of a round by their numbers in A."""
        for key in ("in", "free"):
            step[key] = self.features[step[key]].tolist() if step[key] else []
        return step

    def _closed_form(self, k: int) -> Found:
        """The least bound that needs no tree, with its record."""
        candidates, previous = self.candidates, float(self.upper[k - 1])
        if k == 1:
            return above(float(candidates.variances.max())), {"rule": "variance"}
        found: list[Found] = [(candidates.screening.row_sum_bound(k), {"rule": "rows"})]
        if self._is_data:
            found.append((float(self._variance_sums[k - 1]), {"rule": "variance"}))
        if np.isfinite(previous):
            nothing_left = {"rule": "tree", "features": [], "tree": "L"}
            nested = candidates.screening.nested_bound(k, previous)
            found.append((nested, nothing_left))
        found += [self._average(k, m) for m in range(1, k)]
        value, record = min(found, key=lambda pair: pair[0])
        return (above(value), record) if np.isfinite(value) else _NOTHING

    def _average(self, k: int, m: int) -> Found:
        known = [np.inf] * k
        known[m] = float(self.upper[m])
        lowest = self.candidates.lowest - self.cov.entry_error / self.unit
        value = bound_from_smaller_k(k, known, lowest, is_psd=self._is_data)
        return value, {"rule": "average", "from": m}

    @cached_property
    def _variance_sums(self) -> FloatArray:
        largest: FloatArray = -np.sort(-self.candidates.variances)
        return np.cumsum(largest[: len(self.upper)])

    @property
    def _is_data(self) -> bool:
        return self.cov.known_psd  # of what has an origin: made from data

    def _tree(self, k: int, tau: float) -> Found:
        """Screening and a tree at τ; nothing if they do not close."""
        previous = float(self.upper[k - 1])
        if not np.isfinite(tau):
            return _NOTHING
        try:
            self.budget.check()
            survivors = self.candidates.survivors(k, below(tau), previous)
        except LimitReached:
            return _NOTHING
        entries = self.budget.max_entries
        if 4 * len(survivors) ** 2 > entries:
            return _NOTHING
        if len(survivors) < k:
            return tau, self._tree_record(survivors, "L")
        matrix = self.cov.submatrix(survivors) / self.unit
        order = root_order(matrix, k, tau, previous)
        text, nodes = tree_text(
            matrix[np.ix_(order, order)],
            k,
            tau,
            self.upper[: k + 1],
            min(self.budget.nodes_left, self.most_nodes),
            entries,
        )
        self.nodes += nodes
        self.budget.nodes += nodes
        if text is None:
            return _NOTHING
        return tau, self._tree_record(survivors[order], text)

    def _tree_record(self, survivors: NDArray[np.int64], tree: str) -> dict[str, Any]:
        features = self.features[survivors].tolist()
        return {"rule": "tree", "features": features, "tree": tree}

    # -- what is handed out ------------------------------------------------------------

    def proof(self, header: dict[str, Any]) -> Proof:
        """The file: claims with what the records prove of them."""
        claims, weaker = [], []
        for result in self.results:
            bound = max(result.upper_bound, above(self.upper[result.k]) * self.unit)
            claims.append(self._claim(result, bound))
            if not is_within_gap(
                result.objective, bound, max(result.gap, 0.0) + _SAME_GAP
            ):
                weaker.append(
                    f"k = {result.k}: the proof shows at most {bound:.6g}, the result "
                    f"says {result.upper_bound:.6g} by {result.bound_name}"
                )
        lists = max(self.results[-1].k - 1, 1)
        header = {**header, "row_list": lists, "claims": claims}
        records = self._needed()
        if any(record["rule"] == "direction" for record in records):
            header["version"] = WITH_DIRECTIONS
        if any("rounds" in record for record in records):
            header["version"] = WITH_ROUNDS
        if any(record["rule"] == "entry" for record in records):
            header["version"] = WITH_ENTRIES
        if any(record["rule"] == "entry-tree" for record in records):
            header["version"] = WITH_ENTRY_TREES
        section = Section(header, records)
        return Proof((section,), "; ".join(weaker), self.nodes)

    def _claim(self, result: Result, bound: float) -> dict[str, Any]:
        support = result.support
        x = result.x[support]
        within = self.cov.submatrix(np.searchsorted(self.features, support))
        size = np.abs(x)
        # The Rayleigh quotient rounded down: of 2k products and sums, of entries that
        # are off by their error, and of a norm that is 1 up to rounding.
        slack = 4 * (len(x) + 2) * EPS * float(size @ np.abs(within) @ size)
        slack += self.cov.entry_error * float(size.sum()) ** 2
        return {
            "k": result.k,
            "support": support.tolist(),
            "x": [float(value).hex() for value in x],
            "objective": float(result.objective - slack).hex(),
            "upper_bound": float(bound).hex(),
        }

    def _needed(self) -> tuple[dict[str, Any], ...]:
        """The records that a claim rests on, directly or through others."""
        needed: set[int] = set()
        for k in sorted((result.k for result in self.results), reverse=True):
            waiting = [k]
            while waiting:
                q = waiting.pop()
                if q in needed or q not in self.records:
                    continue
                needed.add(q)
                record = self.records[q]
                if record["rule"] == "tree":
                    waiting += range(1, q)
                elif record["rule"] == "entry-tree":
                    waiting.append(q - 1)
                elif record["rule"] == "average":
                    waiting.append(record["from"])
        return tuple(self.records[k] for k in sorted(needed))
