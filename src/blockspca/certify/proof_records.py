"""The records of one section of a proof: for each k the cheapest rule that suffices.

All values are in units of the candidates, a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..bounds.direction_dual.point import RootProof
from ..bounds.entry_dual.bound import entry_bound
from ..bounds.entry_dual.check import read_record
from ..bounds.entry_dual.point import written_point, written_search
from ..bounds.entry_dual.record import EntryRecord
from ..bounds.smaller_k import bound_from_smaller_k
from ..certificate import StepClaim
from ..limits import Budget, LimitReached
from ..numerics.rounding import EPS
from ..proof_file import Proof, Section, needed_version
from ..result import Result
from ..search.tree_log import ROOM, above, below, root_order, tree_text
from ..status import OPTIMAL_GAP, SEARCH_GAP, Status, is_within_gap
from .adaptive_screening import AdaptiveScreening
from .composition_records import records_by_counts
from .group_records import ALL_UNITS, group_tree
from .proof_subject import Subject
from .refusals import NotRecordable, TreeLimits
from .sign_records import SmallerBounds, sign_record

Found = tuple[float, dict[str, Any] | None]
_NOTHING: Found = (np.inf, None)

_SEARCHED = (BoundName.PROOF_TREE, BoundName.GROWTH, BoundName.SCREENING)

# Of the bound by the direction dual; the format page says why it is larger.
DIRECTION_ROOM = 2.0**-20

# The same of the entry dual: eliminating hundreds of rows in floats errs by more, and
# half of what searches leave open is left.
ENTRY_ROOM = 2.0**-31

# Nodes of one tree, at the most. As a rule it has as many as the search opened; where
# that had other arguments than a tree, it may need any number.
_NODES, _NODES_PER_NODE = 20_000, 4

# Nodes in one order of the features before another is tried: Reddit2000, k = 18, has 50
# in the order of the variances and more than 20,000 in that of the 2×2 bounds, which is
# the better one as a rule.
_SHORT_TREE = 4_000

# Of a search by the entry dual that is made for the proof: CovColon, k = 100, has 6.
_ENTRY_NODES = 200


def _least(*found: Found) -> Found:
    """The record with the least bound, the first of equals."""
    return min(found, key=lambda one: one[0])


def _level(result: Result, error: float) -> float:
    """The τ at which a proof shows the bound of a result, with room.

    A little below the bound, so that the claim can be the bound itself though it and
    the record are raised by `error`; not so far that the component itself is near.
    """
    bound, objective = result.upper_bound, result.objective
    lower = bound - 4 * ROOM * abs(bound) - 2 * error
    return lower if lower - objective >= 8 * ROOM * abs(objective) else bound


def weaker_message(result: Result, bound: float) -> str:
    """Return the message that a proof shows less than the result, if it does.

    By more than "optimal" leaves open.
    """
    allowed = max(result.gap + SEARCH_GAP, OPTIMAL_GAP)
    if is_within_gap(result.objective, bound, allowed):
        return ""
    return (
        f"k = {result.k}: the proof shows at most {bound:.6g}, the result says "
        f"{result.upper_bound:.6g} by {result.bound_name}"
    )


@dataclass
class Recording:
    """The records so far; all values are in units of `candidates.unit`.

    k is that of the records: features beside those that are chosen at the level.
    """

    subject: Subject
    results: Sequence[Result]
    steps: Sequence[StepClaim]
    budget: Budget
    candidates: AdaptiveScreening
    records: dict[int, dict[str, Any]] = field(default_factory=dict)
    nodes: int = 0
    #: bounds on whole groups or by signs, which are not in `upper`
    apart: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cov, self.features = self.subject.cov, self.subject.features
        self.claimed = {
            result.k - self.subject.chosen: result for result in self.results
        }
        self.unit = self.candidates.unit
        self.upper: FloatArray = np.full(max(self.claimed) + 1, np.inf)
        # the least of a k comes last
        steps = sorted(self.steps, key=lambda step: -step.upper_bound)
        error = self.error = self.cov.entry_error + self.subject.whole.error
        targets = {step.k: step.upper_bound - step.k * error for step in steps}
        self.names = {step.k: step.bound_name for step in steps}
        self.duals = {step.k: step.dual for step in steps}
        for k, result in self.claimed.items():
            targets[k] = _level(result, k * error)
        self.targets = {k: target / self.unit for k, target in targets.items()}
        # that k alone, where no chain was needed
        self.first = max(min(self.targets), 1)
        opened = sum(result.nodes for result in self.results[-1:])
        self.most_nodes = _NODES + _NODES_PER_NODE * opened

    def add(self, k: int) -> None:
        """Record the best bound for k: that of the result, if a rule reaches it."""
        previous = float(self.upper[k - 1]) if k > 1 else -np.inf
        wanted = self.targets.get(k, np.inf)
        target = max(wanted, above(previous))
        value, record = np.inf, None
        if self.subject.beside is not None and k not in self.claimed:
            value, record = self._tree_below(k, target)
        if record is None and self.names.get(k) in _SEARCHED:
            value, record = self._tree(k, target)
        if self.names.get(k) == BoundName.ENTRY_DUAL:
            value, record = self._entry(k)
        if self.names.get(k) == BoundName.COMPOSITIONS:
            value, record = self._compositions(k, wanted)
        if record is None:
            value, record = self._closed_form(k)
            if value > target and k > 1 and self.names.get(k) not in _SEARCHED:
                value, record = _least((value, record), self._tree(k, target))
        no_chain: tuple[BoundName, ...] = (BoundName.DIRECTION_DUAL, BoundName.NONE)
        if self.subject.level is not None or "raised" in self.subject.header:
            no_chain = ()  # what the format has no directions for
        if value > wanted and k in self.claimed and self.names.get(k) in no_chain:
            value, record = _least((value, record), self._direction(k, wanted))
        if value > wanted and self.names.get(k) == BoundName.DIRECTION_DUAL:
            value, record = _least((value, record), self._entry_instead(k))
        self._add(k, (value, record))
        is_signed = self.subject.header.get("constraints", {}).get("nonnegative")
        if value > wanted and k in self.claimed and is_signed:
            # the bound of a single set may be the set's own value, without any room
            reached = above(self.claimed[k].objective / self.unit, ENTRY_ROOM / 2)
            if not self._add_signs(k, wanted):
                self._add_signs(k, max(wanted, reached))

    def _add_signs(self, k: int, target: float) -> bool:
        """Record trees for loadings that are not negative, in the place of others.

        What is recorded of fewer features, for all signs, is kept where it is below the
        target; the first that is not, and all after it, are bounded by signs as well.
        """
        certificate = self.claimed[k].certificate
        assert certificate is not None
        assert certificate.constraints is not None
        inside = np.searchsorted(self.features, certificate.constraints.include)
        by_signs: dict[int, tuple[float, dict[str, Any]]] = {}
        for q in range(k if len(inside) else 2, k + 1):
            tau = target - 3 * (k - q) * ROOM * abs(target)
            if q < k and self.upper[q] <= tau and not by_signs:
                continue
            upper = self.upper[:q].copy()
            upper[list(by_signs)] = np.inf
            known = [by_signs.get(j, (self.apart.get(j, np.inf),))[0] for j in range(q)]
            found = sign_record(
                self.subject, self.candidates, inside.astype(np.intp), q, tau,
                SmallerBounds(upper, np.array(known)),
                TreeLimits(min(self.budget.nodes_left, self.most_nodes), self.budget),
            )  # fmt: skip
            if found is None:
                return False
            by_signs[q] = self._raised(q, tau), found[0]
            self.nodes += found[1]
        for q, (value, record) in by_signs.items():
            self.upper[q], self.apart[q] = np.inf, value
            self.records[q] = self._complete(q, value, record)
        return True

    def add_units(self, k: int) -> None:
        """Record a tree of units for k; where there is none, what holds of all sets."""
        assert self.subject.units is not None
        include, *units = self.subject.units
        n, found = self.cov.n_features, None
        if 4 * n * n * (k + 1) > self.budget.max_entries:
            raise NotRecordable(
                f"a tree of whole groups holds {k + 1} matrices of {n} features, which "
                "is more than the limit on memory; raise it, or exclude features."
            )
        A = np.array(self.cov.submatrix(slice(None))) / self.unit
        most = min(self.budget.nodes_left, self.most_nodes)
        # the bound of a single set may be the set's own value, without any room
        reached = above(self.claimed[k].objective / self.unit, ENTRY_ROOM / 2)
        for tau in (self.targets[k], max(self.targets[k], reached)):
            found = group_tree(A, include, units, k, tau, most, self.budget)
            if found is not None:
                break
        instead = _NOTHING
        if found is None:
            instead = self._closed_form(k) if k <= n else _NOTHING
            # no set has more than all features together
            tau = above(float(np.linalg.eigvalsh(A)[-1]), ALL_UNITS)
            found = list(range(len(units))), "P", 1
        order, text, nodes = found
        self.nodes += nodes
        named = [int(self.features[units[g][0]]) for g in order]
        tree = {"rule": "group-tree", "features": named, "tree": text}
        value, record = _least((tau, tree), instead)
        assert record is not None
        # not in `upper`: what is smaller need not be whole groups, and rests on nothing
        self.apart[k] = self._raised(k, value)
        self.records[k] = self._complete(k, self.apart[k], record)

    def _add(self, k: int, found: Found) -> None:
        """Keep a record that is better than what there is for this k."""
        value, record = self._raised(k, found[0]), found[1]
        if record is not None and value <= self.upper[k]:
            self.upper[k] = value
            self.records[k] = self._complete(k, value, record)

    def _raised(self, k: int, value: float) -> float:
        """A bound for the exact entries, of which a record has to hold."""
        return value + k * self.error / self.unit

    def _complete(self, k: int, value: float, record: dict[str, Any]) -> dict[str, Any]:
        return {"k": k, "upper": float(value * self.unit).hex(), **record}

    def _direction(self, k: int, target: float) -> Found:
        """The direction dual, which needs no smaller k: rounds at its root, or that.

        What is optimal is rarely so by the root alone: rounds come first.
        """
        support = np.searchsorted(self.features, self.claimed[k].support)
        bound, memory = target * self.unit, self.budget.limits.memory
        root = RootProof(self.cov, k, support, self.budget, memory)
        if self.claimed[k].status is Status.OPTIMAL:
            found = root.rounds(bound)
            if found is not None:
                rounds, last = found
                said = [step.to_dict() for step in rounds]
                for step in said:
                    step.update({key: self._names(step[key]) for key in ("in", "free")})
                return target, {"rule": "direction", **last.to_dict(), "rounds": said}
        point = root.point(bound)
        if point is None:
            return _NOTHING
        value = point.value + DIRECTION_ROOM * abs(point.value)
        return value / self.unit, {"rule": "direction", **point.to_dict()}

    def _entry_instead(self, k: int) -> Found:
        """A search by the entry dual, where that of directions has no words.

        For matrices, which have no columns of samples, and where it has to split. Its
        nodes end it, or a limit on time, of which a solve without one knows nothing.
        """
        result = self.claimed.get(k)
        if result is None:
            return _NOTHING
        # features that are chosen at the level have no place here
        support = np.flatnonzero(np.isin(self.features, result.support))
        if len(support) == 0:
            return _NOTHING
        left, memory = self.budget.remaining(), self.budget.limits.memory
        found = entry_bound(
            self.cov,
            k,
            support,
            target=(result.objective + result.upper_bound) / 2,
            time_limit=np.inf if left is None else left,
            nodes=_ENTRY_NODES,
            memory=memory,
        )
        if found.record is None:
            return _NOTHING
        self.duals[k] = found.record.to_text()
        return self._entry(k)

    def _entry(self, k: int) -> Found:
        """The entry dual, which needs no smaller k either: the point of its bound."""
        text = self.duals.get(k)
        if text is None:  # it was for more features
            return self._entry_instead(k)
        dual = read_record(text, self.cov.n_features)
        if isinstance(dual, EntryRecord):
            return self._entry_point(k, dual)
        if dual.screen is not None:
            self._add(k - 1, self._entry_point(k - 1, dual.screen.record))
        found = written_search(self.cov, k, dual, self.budget)
        if found is None:
            return _NOTHING
        value, said = found
        said["features"] = self._names(said["features"])
        for node in said["nodes"]:
            if "split" in node:
                node["split"] = int(self.features[node["split"]])
            for key in {"out", "in"} & {*node}:
                node[key] = self._names(node[key])
        return self._with_room(value), {"rule": "entry-tree", **said}

    def _entry_point(self, k: int, dual: EntryRecord) -> Found:
        """A point of the entry dual."""
        found = written_point(self.cov, k, dual, self.budget)
        if found is None:
            return _NOTHING
        value, said = found
        for key in ("core", "dense"):
            said[key] = self._names(said[key])
        return self._with_room(value), {"rule": "entry", **said}

    def _compositions(self, k: int, target: float) -> Found:
        """Counts of features by parts, also of fewer where the chain needs it."""
        found, nodes = records_by_counts(
            self.cov, k, target, self.duals[k], self.unit, self.upper[: k + 1],
            TreeLimits(self.most_nodes, self.budget),
        )  # fmt: skip
        self.nodes += nodes
        for q, (tau, record) in found.items():
            record["parts"] = [self._names(part) for part in record["parts"]]
            for case in record["cases"]:
                case["features"] = self._names(case["features"])
            self._add(q, (tau, record))
        return found.get(k, _NOTHING)

    def _names(self, positions: Sequence[int] | NDArray[np.int64]) -> list[int]:
        """The numbers of features in A."""
        names: list[int] = self.features[np.array(positions, dtype=np.intp)].tolist()
        return names

    def _with_room(self, value: float) -> float:
        return (value + ENTRY_ROOM * abs(value)) / self.unit

    def _closed_form(self, k: int) -> Found:
        """The least bound that needs no tree, with its record."""
        candidates, previous = self.candidates, float(self.upper[k - 1])
        if k == 1:
            return above(float(candidates.variances.max())), {"rule": "variance"}
        found: list[Found] = [(candidates.screening.row_sum_bound(k), {"rule": "rows"})]
        if self.cov.known_psd:
            found.append((float(self._variance_sums[k - 1]), {"rule": "variance"}))
        if np.isfinite(previous):
            nothing_left = {"rule": "tree", "features": [], "tree": "L"}
            nested = candidates.screening.nested_bound(k, previous)
            found.append((nested, nothing_left))
        found += [self._average(k, m) for m in range(1, k)]
        value, record = _least(*found)
        return (above(value), record) if np.isfinite(value) else _NOTHING

    def _average(self, k: int, m: int) -> Found:
        known = [np.inf] * k
        known[m] = float(self.upper[m])
        lowest = self.candidates.lowest - self.cov.entry_error / self.unit
        value = bound_from_smaller_k(k, known, lowest, is_psd=self.cov.known_psd)
        return value, {"rule": "average", "from": m}

    @cached_property
    def _variance_sums(self) -> FloatArray:
        largest: FloatArray = -np.sort(-self.candidates.variances)
        return np.cumsum(largest[: len(self.upper)])

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
        by_bound = root_order(matrix, k, tau, previous)
        by_variance = np.argsort(-np.diagonal(matrix), kind="stable")
        orders = (
            (by_bound, _SHORT_TREE),
            (by_variance, _SHORT_TREE),
            (by_bound, self.most_nodes),
            (by_variance, self.most_nodes),
        )
        # Where sets are so near τ that floats cannot tell, exact numbers still can.
        for error in (ROOM, 0.0):
            for order, most in orders:
                most = min(self.budget.nodes_left, most)
                text, nodes = tree_text(
                    matrix[np.ix_(order, order)], k, tau, self.upper[: k + 1], most,
                    entries, *self.subject.limits_of(survivors[order]), error=error,
                )  # fmt: skip
                self.budget.nodes += nodes
                if text is not None:
                    self.nodes += nodes
                    return tau, self._tree_record(survivors[order], text)
                if nodes <= most:
                    break  # a set is above τ', or memory is short: in any order
        return _NOTHING

    def _tree_below(self, k: int, target: float) -> Found:
        """A tree at a τ below that of the largest k, if the target is above that.

        The targets are of sets that need not keep the limits beside groups. Those that
        keep all have less than the claim, as a rule, and the chain needs that.
        """
        last = max(self.claimed)
        wanted = self.targets[last]
        tau = wanted - 3 * (last - k) * ROOM * abs(wanted)
        is_needed = k > 1 and tau < target and above(float(self.upper[k - 1])) <= tau
        return self._tree(k, tau) if is_needed else _NOTHING

    def _tree_record(self, survivors: NDArray[np.int64], tree: str) -> dict[str, Any]:
        return {"rule": "tree", "features": self._names(survivors), "tree": tree}

    # -- the section -------------------------------------------------------------------

    def proof(self, header: dict[str, Any]) -> Proof:
        """The section: claims with what the records prove of them."""
        claims, weaker = [], []
        for k, result in self.claimed.items():
            shown = [result.upper_bound]
            if self.subject.level is not None:
                shown.append(self.subject.level)
            if k > 0:
                value = self.apart.get(k, float(self.upper[k]))
                # a checker in floats has errors of its own, no larger as a rule
                shown.append(above(value) * self.unit + k * self.error)
            claims.append(self._claim(result, max(shown)))
            weaker.append(weaker_message(result, max(shown)))
        records = self._needed()
        header = {
            **header,
            "version": needed_version(self.subject.header, records),
            **self.subject.header,
            "row_list": max(*self.claimed, 2) - 1,
            "claims": claims,
        }
        section = Section(header, records)
        return Proof((section,), "; ".join(filter(None, weaker)), self.nodes)

    def _claim(self, result: Result, bound: float) -> dict[str, Any]:
        support = result.support
        x = result.x[support]
        whole = self.subject.whole.cov
        within = whole.submatrix(support)
        size = np.abs(x)
        # The Rayleigh quotient rounded down: of 2k products and sums, of entries that
        # are off by their error, and of a norm that is 1 up to rounding.
        slack = 4 * (len(x) + 2) * EPS * float(size @ np.abs(within) @ size)
        error = whole.entry_error + self.subject.whole.error
        slack += error * float(size.sum()) ** 2
        said = {
            "k": result.k,
            "support": support.tolist(),
            "x": [float(value).hex() for value in x],
            "objective": float(result.objective - slack).hex(),
            "upper_bound": float(bound).hex(),
        }
        if "beside" in self.subject.header.get("constraints", {}):
            assert result.certificate is not None
            rules = result.certificate.constraints
            assert rules is not None
            held = np.union1d(support, rules.include).astype(np.intp)
            said["set"] = rules.filled(held, result.k).tolist()
        return said

    def _needed(self) -> tuple[dict[str, Any], ...]:
        """The records that a claim rests on, directly or through others."""
        needed: set[int] = set()
        for k in sorted(self.claimed, reverse=True):
            waiting = [k]
            while waiting:
                q = waiting.pop()
                if q in needed or q not in self.records:
                    continue
                needed.add(q)
                record = self.records[q]
                if record["rule"] in ("tree", "compositions", "signs"):
                    waiting += range(1, q)
                elif record["rule"] == "entry-tree":
                    waiting.append(q - 1)
                elif record["rule"] == "average":
                    waiting.append(record["from"])
        return tuple(self.records[k] for k in sorted(needed))
