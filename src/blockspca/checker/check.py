"""Checks the records of a proof, one after the other, and then what it claims.

The rules are those of docs/proof-format.md, sections 3 to 8. The arithmetic is that of
`IntegerMatrix` or `FloatMatrix`, one of them for a whole section: all its records are
about one matrix Ã, which is that after all steps of section 8. Bounds from above on
rows of Ã are in float64 in both (`screening`). The vector of a claim is
always checked in exact arithmetic on the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Generic

import numpy as np

from .arithmetic import Forms, Matrix, Number, level_of
from .claims import Claim
from .compositions import CompositionCheck
from .data import as_data, data_hash, read_data
from .direction import FloatDirections
from .entry import check_entry
from .entry_tree import EntryTree
from .fields import NotShown, ProofError
from .float_forms import FloatForms
from .floats import FloatMatrix
from .group_tree import check_group_tree
from .groups import Groups, Rooms
from .integer_direction import IntegerDirections
from .integer_forms import IntegerForms
from .integers import IntegerMatrix
from .problem import Problem
from .proof_file import Record, Section, read_proof
from .screening import RowLists, UpperBounds, undecided_by_lists
from .sign_tree import check_signs
from .taken import Deflated
from .tree_text import WrittenTree

OPTIMAL = Fraction(1, 10**6)


@dataclass(frozen=True)
class Verdict:
    """What was checked. There is none for a proof that is refused."""

    sections: list[Section]
    arithmetic: list[str]
    nodes: int
    seconds: float

    @property
    def records(self) -> int:
        return sum(len(section.records) for section in self.sections)

    def __str__(self) -> str:
        problem = self.sections[0].problem
        lines = [f"data     {problem.n} x {problem.d}, sha256 {problem.sha256}"]
        for section in self.sections:
            lines += [f"problem  {section.problem}"]
            groups = section.problem.constraints.group_words()
            lines += [f"group    {words}" for words in groups]
            lines += [claimed(claim) for claim in section.claims]
        lines += [
            f"checked  {self.records} records, {self.nodes} nodes of trees, "
            f"in {' and '.join(sorted({*self.arithmetic}))}, {self.seconds:.2f} s"
        ]
        return "\n".join(lines)


def claimed(claim: Claim) -> str:
    """Say in a line what a claim says."""
    features = " ".join(map(str, claim.support))
    return (
        f"k = {claim.k:<4} {'optimal' if is_optimal(claim) else 'bounded'}: "
        f"{claim.objective!r} <= opt <= {claim.upper_bound!r}, features {features}"
    )


def is_optimal(claim: Claim) -> bool:
    """Say whether the gap is at most 10⁻⁶."""
    low, high = Fraction(claim.objective), Fraction(claim.upper_bound)
    return high - low <= OPTIMAL * abs(low)


def check_proof(
    proof: str | Path | bytes,
    data: str | Path | np.ndarray,
    *,
    exact: bool = False,
    floats: bool = False,
) -> Verdict:
    """Check a proof for data; raise `ProofError` unless all of it holds.

    Parameters
    ----------
    proof : path or bytes
        The file that `write_proof` has written, or what is in it.
    data : path or array of shape (n, d)
        The data Y that the proof is about.
    exact : bool
        Decide in integers. Four steps are float64 with derived margins all the same,
        from above: bounds of entries and of sums of them that drop features
        (screening), that close the rule "rows", the rows beside the dense features of
        the rule "entry", and the counts of the rule "compositions". What the first
        three do not decide is decided in integers.
    floats : bool
        Decide in float64 with derived margins only. Without either, what float64 cannot
        decide is tried again in integers.
    """
    start = time.perf_counter()
    Y = as_data(data) if isinstance(data, np.ndarray) else read_data(data)
    sections = read_proof(proof, Y.shape)
    ways = [_in_floats, _in_integers]
    if exact or floats:
        ways = [_in_integers] if exact else [_in_floats]
    digest = data_hash(Y)
    checked = [_check_section(section, Y, digest, ways) for section in sections]
    names, nodes = zip(*checked, strict=True)
    return Verdict(sections, [*names], sum(nodes), time.perf_counter() - start)


def _check_section(
    section: Section, Y: np.ndarray, digest: str, ways: Sequence[Way]
) -> tuple[str, int]:
    """Check a section in the first arithmetic that can; return its name, and nodes.

    Other data, or a vector that is not as claimed, are refused; `NotShown` is raised
    where the records do not show the bound, which may be true.
    """
    problem = section.problem
    if digest != problem.sha256:
        raise ProofError(
            "these are other data: the hash is not that of the proof, which is about "
            f"{problem.n} x {problem.d} numbers; of this file, {len(Y)} x {Y.shape[1]} "
            "are used (if columns were left out of the proof, write the rest as .npy)"
        )
    needed = sorted({i for claim in section.claims for i in claim.support})
    deflated = Deflated(Y, problem, needed)
    for claim in section.claims:
        _check_vector(claim, deflated)
    reasons = []
    for way in ways:
        try:
            return way(section, Y)
        except ProofError as error:
            reasons.append(str(error))
        except RecursionError:
            reasons.append("a tree is nested too deeply for this Python")
        except OverflowError as error:
            reasons.append(f"the numbers are too large ({error})")
        except MemoryError:
            reasons.append("this machine has too little memory")
    raise NotShown("; in integers: ".join(reasons))


def _in_floats(section: Section, Y: np.ndarray) -> tuple[str, int]:
    matrix = FloatMatrix(Y, section.problem)
    RecordCheck(section, matrix, FloatForms(matrix)).check()
    return matrix.name, matrix.nodes


def _in_integers(section: Section, Y: np.ndarray) -> tuple[str, int]:
    matrix = IntegerMatrix(Y, section.problem)
    RecordCheck(section, matrix, IntegerForms(matrix)).check()
    return matrix.name, matrix.nodes


# How a section is checked: returns the arithmetic, and how many nodes trees had.
Way = Callable[[Section, np.ndarray], tuple[str, int]]


class RecordCheck(Generic[Number]):
    """Checks the records of a section in one arithmetic, with a method for each rule.

    `plain` are the U of the records so far that bound all sets, which every rule may
    rest on; `signs` those by signs, which only that rule may; `all` are these and
    those of whole groups.
    """

    def __init__(
        self, section: Section, matrix: Matrix[Number], forms: Forms[Number]
    ) -> None:
        self.section, self.problem = section, section.problem
        self.matrix: Matrix[Number] = matrix
        self.forms: Forms[Number] = forms
        constraints = self.problem.constraints
        groups = Groups.of(self.problem, constraints.groups)
        beside = Groups.of(self.problem, constraints.beside)
        self.kinds = [one for one in (groups, beside) if len(one.room)]
        if constraints.whole:  # all rules but one know no groups then
            self.kinds = []
        self.bounds = matrix.upper_bounds()
        if self.kinds:
            self.bounds = replace(self.bounds, groups=groups)
        self.screening: Screening[Number] = Screening(section, matrix, self.bounds)
        self.all: dict[int, Number] = {}
        self.plain: dict[int, Number] = {}
        self.signs: dict[int, Number] = {}
        self.rules: dict[str, Callable[[Record, Number], None]] = {
            "variance": self.check_variance,
            "rows": self.check_rows,
            "average": self.check_average,
            "tree": self.check_tree,
            "direction": self.check_direction,
            "entry": self.check_entry,
            "entry-tree": self.check_entry_tree,
            "group-tree": self.check_group_tree,
            "compositions": self.check_compositions,
            "signs": self.check_signs,
        }

    def check(self) -> None:
        """Check all records in their order, and then the bounds that are claimed."""
        for record in self.section.records:
            upper = self.matrix.number(record.upper)
            self.rules[record.rule](record, upper)
            self.all[record.k] = upper
            if record.rule == "signs":
                self.signs[record.k] = upper
            elif record.rule != "group-tree":
                self.plain[record.k] = upper
        for claim in self.section.claims:
            _check_bound(claim, self.problem, self.matrix, self.all)

    def check_variance(self, record: Record, upper: Number) -> None:
        """The largest eigenvalue of a semidefinite matrix is at most its trace."""
        k, matrix = record.k, self.matrix
        if k > 1 and not self.problem.is_semidefinite:
            raise ProofError(f"k = {k}: the rule variance is for data")
        needed = matrix.largest_diagonal(k) + (2 * k * matrix.e if k > 1 else 0)
        if upper < needed:
            raise ProofError(f"k = {k}: U is below the sum of variances")

    def check_rows(self, record: Record, upper: Number) -> None:
        """No row has Ã_ii + the k − 1 largest |Ã_ij| above U."""
        self.matrix.check_rows(self.bounds, record.k, upper)

    def check_average(self, record: Record, upper: Number) -> None:
        """All m-subsets of a k-set together: Σ x_T'Ãx_T ≤ U_m Σ ‖x_T‖²."""
        k, m = record.k, record.source
        if not 1 <= m < k or m not in self.plain:
            raise ProofError(f"k = {k}: average needs a record of m < k, not of {m}")
        least, below = self.matrix.smallest_diagonal(), self.plain[m]
        first = m >= 2 and below >= least
        if first and (upper - least) * (m - 1) >= (below - least) * (k - 1):
            return
        more = 2 * k * self.matrix.e
        if self.problem.is_semidefinite and (upper - more) * m >= below * k:
            return
        raise ProofError(f"k = {k}: U is below the average over sets of {m}")

    def check_tree(self, record: Record, upper: Number) -> None:
        """Screening, and then a tree of all sets of the features that are left."""
        k, features = record.k, record.features
        self.screening.check(record, upper, self.plain.get(k - 1))
        rooms = Rooms([one.restricted(features) for one in self.kinds])
        uppers = {**self.plain, k: upper}
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            written = WrittenTree(record.tree, record.depth, k, features, uppers)
            tree, B = self.matrix.tree(written)
            tree.node(B, np.arange(len(features)), k, rooms)
        self.matrix.nodes += len(record.tree)

    def check_direction(self, record: Record, upper: Number) -> None:
        """Rounds of directions, and the largest eigenvalue of what they leave."""
        assert record.direction is not None
        directions: FloatDirections | IntegerDirections
        if isinstance(self.matrix, IntegerMatrix):
            directions = IntegerDirections(self.matrix, record.k, upper)
        else:
            assert isinstance(self.matrix, FloatMatrix)
            directions = FloatDirections(self.matrix, record.k, upper)
        directions.check(record.direction)

    def check_entry(self, record: Record, upper: Number) -> None:
        """Every entry moved by a product of weights, at a price on the diagonal."""
        assert record.entry is not None
        check_entry(self.forms, self.bounds, record.k, upper, record.entry)

    def check_entry_tree(self, record: Record, upper: Number) -> None:
        """Screening, and then features fixed and split, with weights for nodes."""
        self.screening.check(record, upper, self.plain.get(record.k - 1))
        EntryTree(self.forms, record.k, upper, record.features).check(record.nodes)
        self.matrix.nodes += len(record.nodes)

    def check_group_tree(self, record: Record, upper: Number) -> None:
        """A tree of all sets of whole groups."""
        check_group_tree(self.problem, self.matrix, record, upper)

    def check_compositions(self, record: Record, upper: Number) -> None:
        """How many features a set has of each part, and trees for what is left."""
        given = record.compositions
        assert given is not None
        CompositionCheck(
            self.forms, self.bounds, record.k, upper, self.plain, given
        ).check()

    def check_signs(self, record: Record, upper: Number) -> None:
        """A tree for loadings that are not negative, with its own screening."""
        if not self.problem.constraints.include:
            known = {**self.plain, **self.signs}
            self.screening.check(record, upper, known.get(record.k - 1))
        check_signs(
            self.problem,
            self.matrix,
            record,
            upper,
            self.plain,
            self.signs,
            self.kinds,
        )


def _check_bound(
    claim: Claim, problem: Problem, matrix: Matrix[Number], uppers: dict[int, Number]
) -> None:
    """Show opt(k) ≤ upper_bound by the record of k, or of what is left beside I."""
    m = claim.k - len(problem.chosen)
    if problem.level is not None and claim.upper_bound < problem.level:
        raise ProofError(f"k = {claim.k}: the bound claimed is below the level")
    if problem.level is not None and m == 0:
        return
    if m not in uppers:
        raise ProofError(f"k = {claim.k}: there is no record for the claim")
    if matrix.number(claim.upper_bound) < uppers[m] + m * matrix.e:
        raise ProofError(f"k = {claim.k}: the bound claimed is below U + k e")


# Rules that name features, and for which all others are dropped.
SCREENED = ("tree", "entry-tree", "signs")


class Screening(Generic[Number]):
    """Shows that features not named by a tree are in no better set."""

    def __init__(
        self, section: Section, matrix: Matrix[Number], bounds: UpperBounds
    ) -> None:
        self.matrix: Matrix[Number] = matrix
        self.section, self.bounds = section, bounds
        self.lists: RowLists | None = None

    def check(self, record: Record, tau: Number, u: Number | None) -> None:
        d, k = len(self.section.kept), record.k
        if len(record.features) == d:
            return
        if k == 1:
            kept = set(record.features)
            for i in range(d):
                if i not in kept and not self.matrix.diagonal_at_most(i, tau):
                    what = self.section.problem.feature(i)
                    raise ProofError(f"k = 1: {what} cannot be dropped")
            return
        if u is None or u > tau:
            raise ProofError(f"k = {k}: screening needs U of k - 1, at most τ")
        if self.lists is None:
            self.lists = self._make_lists()
        level = level_of(self.matrix, k, tau, u)
        alive, rows = undecided_by_lists(
            self.bounds, self.lists, level, record.features
        )
        if isinstance(self.matrix, IntegerMatrix):
            self.matrix.check_screening(self.bounds, alive, rows, (k, tau, u))
        elif len(rows):  # what floats do not drop, stays
            what = self.section.problem.feature(rows[0])
            raise ProofError(f"k = {k}: {what} is not shown to drop")

    def _make_lists(self) -> RowLists:
        """One pass over the rows and columns that Cauchy leaves for some record."""
        d = len(self.section.kept)
        rows, columns = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
        before: tuple[int, Number] | None = None
        levels = []
        for record in self.section.records:
            number = self.matrix.number(record.upper)
            if record.rule in SCREENED and len(record.features) < d and record.k > 1:
                left = np.ones(d, dtype=bool)
                if before is not None and before[0] == record.k - 1:
                    level = level_of(self.matrix, record.k, number, before[1])
                    left = self.bounds.left_by_cauchy(level)
                    levels.append(level)
                kept = np.zeros(d, dtype=bool)
                kept[list(record.features)] = True
                rows |= left & ~kept
                columns |= left | kept
            before = (record.k, number)
        length = self.section.row_list
        places = np.flatnonzero(columns)
        return RowLists(self.bounds, np.flatnonzero(rows), places, length, levels)


def _check_vector(claim: Claim, deflated: Deflated) -> None:
    """Show x'Ax ≥ objective·x'x, in exact arithmetic on the data."""
    norm = sum(Fraction(value) ** 2 for value in claim.x)
    form = deflated.form(claim.support, claim.x)
    if form < Fraction(claim.objective) * norm:
        raise ProofError(f"k = {claim.k}: x has less than the objective claimed")
