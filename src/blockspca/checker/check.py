"""Checks the records of a proof, one after the other, and then what it claims.

The rules are those of docs/proof-format.md, sections 3 to 8. The arithmetic is that of
`IntegerMatrix` or `FloatMatrix`, one of them for a whole proof: all records are about
one matrix Ã. The vector of a claim is always checked in exact arithmetic on the data.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from .columns import ExactColumns, dot, fraction_bits, scaled
from .compositions import check_compositions
from .data import as_data, data_hash, read_data
from .entries import ExactEntries
from .fields import NotShown, ProofError
from .floats import FloatMatrix
from .integers import IntegerMatrix
from .problem import Groups, Problem
from .proof_file import Claim, Record, Section, read_proof
from .screening import (
    RowLists,
    UpperBounds,
    undecided_by_lists,
    undecided_in_groups,
)
from .taken import Taken

SCREENED = ("tree", "entry-tree", "signs")
OPTIMAL = Fraction(1, 10**9)
Matrix = Any  # IntegerMatrix or FloatMatrix: numbers are integers or fractions


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
    """Say whether the gap is at most 10⁻⁹."""
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
        Decide in integers only.
    floats : bool
        Decide in float64 only. Without either, what float64 cannot decide is tried
        again in integers.
    """
    start = time.perf_counter()
    Y = as_data(data) if isinstance(data, np.ndarray) else read_data(data)
    sections = read_proof(proof, Y.shape)
    ways: list[type] = [FloatMatrix, IntegerMatrix]
    if exact or floats:
        ways = [IntegerMatrix] if exact else [FloatMatrix]
    digest = data_hash(Y)
    matrices = [_check_section(section, Y, digest, ways) for section in sections]
    return Verdict(
        sections,
        [matrix.name for matrix in matrices],
        sum(matrix.nodes for matrix in matrices),
        time.perf_counter() - start,
    )


def _check_section(
    section: Section, Y: np.ndarray, digest: str, ways: Sequence[type]
) -> Matrix:
    """Check a section in the first arithmetic that can; return its matrix.

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
    for claim in section.claims:
        _check_vector(claim, Y, problem)
    reasons = []
    for way in ways:
        try:
            matrix = way(Y, problem)
            _check_records(section, matrix)
            return matrix
        except ProofError as error:
            reasons.append(str(error))
    raise NotShown("; in integers: ".join(reasons))


def _check_records(section: Section, matrix: Matrix) -> None:
    bounds = matrix.upper_bounds()
    screening = Screening(section, matrix, bounds)
    uppers: dict[int, Any] = {}
    of_units: dict[int, Any] = {}  # which bound some sets, and no other record
    of_signs: dict[int, Any] = {}  # which bound vectors that are not negative
    semidefinite = section.problem.is_semidefinite
    for record in section.records:
        upper = matrix.number(record.upper)
        if record.rule == "variance":
            _check_variance(record, semidefinite, matrix, upper)
        elif record.rule == "rows":
            matrix.check_rows(bounds, record.k, upper)
        elif record.rule == "average":
            _check_average(record, semidefinite, matrix, upper, uppers)
        elif record.entry is not None:
            matrix.check_entry(bounds, record.k, upper, record.entry)
        elif record.rule == "entry-tree":
            screening.check(record, upper, uppers.get(record.k - 1))
            matrix.check_entry_tree(record, upper)
        elif record.rule == "group-tree":
            matrix.check_group_tree(record, upper)
            of_units[record.k] = upper
            continue
        elif record.rule == "signs":
            screening.check_signs(record, upper, uppers, of_signs)
            matrix.check_signs(record, {**uppers, record.k: upper}, of_signs)
            of_signs[record.k] = upper
            continue
        elif record.composed is not None:
            check_compositions(matrix, bounds, record, {**uppers, record.k: upper})
        elif record.direction is not None:
            matrix.check_direction(record.k, upper, record.direction)
        else:
            screening.check(record, upper, uppers.get(record.k - 1))
            matrix.check_tree(record, {**uppers, record.k: upper})
        uppers[record.k] = upper
    for claim in section.claims:
        _check_bound(claim, section.problem.level, matrix, uppers | of_units | of_signs)


def _check_bound(
    claim: Claim, level: float | None, matrix: Matrix, uppers: dict[int, Any]
) -> None:
    """opt(k) ≤ U + k e; with features chosen at a level, at most that or the level."""
    k, bound = claim.places, matrix.number(claim.upper_bound)
    if level is not None and Fraction(claim.upper_bound) < Fraction(level):
        raise ProofError(f"k = {claim.k}: the bound claimed is below the level")
    if level is not None and k == 0:
        return  # that B(level) exists says that the one set is below the level
    if k not in uppers:
        raise ProofError(f"k = {claim.k}: there is no record for the claim")
    if bound < uppers[k] + k * matrix.e:
        raise ProofError(f"k = {claim.k}: the bound claimed is below U + k e")


def _check_variance(
    record: Record, semidefinite: bool, matrix: Matrix, upper: Any
) -> None:
    """The largest eigenvalue of a positive semidefinite matrix is at most its trace."""
    k = record.k
    if k > 1 and not semidefinite:
        raise ProofError(f"k = {k}: the rule variance is for data")
    needed = matrix.largest_diagonal(k) + (2 * k * matrix.e if k > 1 else 0)
    if upper < needed:
        raise ProofError(f"k = {k}: U is below the sum of variances")


def _check_average(
    record: Record,
    semidefinite: bool,
    matrix: Matrix,
    upper: Any,
    uppers: dict[int, Any],
) -> None:
    """All m-subsets of a k-set together: Σ x_T'Ãx_T ≤ U_m Σ ‖x_T‖²."""
    k, m = record.k, record.source
    if not 1 <= m < k or m not in uppers:
        raise ProofError(f"k = {k}: average needs a record of m < k, not of {m}")
    least, below = matrix.smallest_diagonal(), uppers[m]
    first = m >= 2 and below >= least
    if first and (upper - least) * (m - 1) >= (below - least) * (k - 1):
        return
    if semidefinite and (upper - 2 * k * matrix.e) * m >= below * k:
        return
    raise ProofError(f"k = {k}: U is below the average over sets of {m}")


class Screening:
    """Shows that features not named by a tree are in no better set."""

    def __init__(self, section: Section, matrix: Matrix, bounds: UpperBounds) -> None:
        self.section, self.matrix, self.bounds = section, matrix, bounds
        self.lists: RowLists | None = None
        self.groups: Groups | None = section.problem.places

    def check(self, record: Record, tau: Any, u: Any) -> None:
        d, k = len(self.section.kept), record.k
        if len(record.features) == d:
            return
        if k == 1:
            kept = set(record.features)
            for i in range(d):
                if i not in kept and not self.matrix.diagonal_at_most(i, tau):
                    raise ProofError(f"k = 1: feature {i} cannot be dropped")
            return
        if u is None or u > tau:
            raise ProofError(f"k = {k}: screening needs U of k - 1, at most τ")
        level = self.matrix.level(k, tau, u)
        if self.groups is not None:
            alive, rows = undecided_in_groups(
                self.bounds, self.groups, level, record.features
            )
        else:
            if self.lists is None:
                self.lists = self._make_lists()
            alive, rows = undecided_by_lists(
                self.bounds, self.lists, level, record.features
            )
        self.matrix.check_screening(alive, rows, k, tau, u, self.groups)

    def check_signs(
        self, record: Record, tau: Any, uppers: dict[int, Any], signs: dict[int, Any]
    ) -> None:
        """As `check`; where features are included, all that fit must be named."""
        problem, before = self.section.problem, record.k - 1
        names = [problem.kept[i] for i in record.features]
        if {*names} & {*problem.include} or record.k < len(problem.include):
            raise ProofError(f"k = {record.k}: features of include are not in the tree")
        if not problem.include:
            known = [found[before] for found in (uppers, signs) if before in found]
            return self.check(record, tau, min(known, default=None))
        named = {*names, *problem.include}
        if not all(i in named for i in problem.kept if problem.fits(i)):
            raise ProofError(f"k = {record.k}: a feature that fits is not in the tree")
        return None

    def _make_lists(self) -> RowLists:
        """One pass over the rows and columns that Cauchy leaves for some record."""
        d = len(self.section.kept)
        rows, columns = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
        before, levels = None, []
        for record in self.section.records:
            number = self.matrix.number(record.upper)
            is_screened = record.rule in SCREENED and len(record.features) < d
            if is_screened and record.k > 1:
                left = np.ones(d, dtype=bool)
                if before is not None and before[0] == record.k - 1:
                    level = self.matrix.level(record.k, number, before[1])
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


def _check_vector(claim: Claim, Y: np.ndarray, problem: Problem) -> None:
    """Show x'Ax ≥ objective·x'x, in exact arithmetic on the data."""
    norm = sum(Fraction(value) ** 2 for value in claim.x)
    before = replace(problem, level=None, raised=None)  # A itself, perhaps deflated
    if quadratic_form(Y, before, claim) < Fraction(claim.objective) * norm:
        raise ProofError(f"k = {claim.k}: x has less than the objective claimed")


def quadratic_form(Y: np.ndarray, problem: Problem, claim: Claim) -> Fraction:
    """Return x'Ax of a claim, or what is no more.

    For data, x'Ax = ‖Σ x_i a_i‖². If each column g_i is within an error of the exact
    one, the norm is at least ‖Σ x_i g_i‖ − error Σ |x_i|.
    """
    bits = fraction_bits(np.array(claim.x))
    x = [scaled(value, bits) for value in claim.x]
    if problem.kind == "matrix":
        exact = ExactEntries(Y, problem)
        form = sum(
            a * b * exact.top(i, j)
            for a, i in zip(x, claim.support, strict=True)
            for b, j in zip(x, claim.support, strict=True)
        )
        return Fraction(form, exact.bottom << 2 * bits)
    needed = {i for vector in problem.vectors for i in vector.support}
    columns = ExactColumns(Y, problem, sorted({*claim.support, *needed}))
    found = [columns.column(i) for i in claim.support]
    form = sum(dot(x, list(sample)) ** 2 for sample in zip(*found, strict=True))
    lost = columns.error * sum(map(abs, x))
    if lost:
        form = max(isqrt(form) - lost, 0) ** 2
    unit = Fraction(2) ** (columns.two_bits + 2 * bits)
    value = Fraction(form, columns.denominator) / unit
    loadings = dict(zip(claim.support, map(Fraction, claim.x), strict=True))
    return value - Taken(problem).form(loadings)
