"""Checks records and claims: docs/proof-format.md, sections 3 to 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .arithmetic import Floats, Integers
from .data import read_data, sha256
from .entries import Entries, columns_of, integer_block, integers
from .problem import Claim, Problem, Proof, read_proofs
from .reading import ProofError
from .records import Average, Record, Rows, Sets, Tree, Variance
from .rows import UNIT, Matrix, Screening, largest_row_sum
from .subsets import count_strong
from .tree import Search

LARGEST = 2**30  # bytes of a proof file
FEW = 40  # features of a tree that is searched without a look at strong sets


@dataclass(frozen=True)
class Step:
    """A record that holds, and a sentence about it for `--explain`."""

    record: Record
    sentence: str


class RecordChecker:
    """Checks the records of one proof, in their order.

    `upper` has the least bound U_k of each k so far. `exact(features)` returns a block
    of A in integers; if it is None, trees are decided in float64.
    """

    def __init__(
        self, matrix: Matrix, sets: Sets, records: Sequence[Record], exact: Any = None
    ) -> None:
        self.matrix, self.exact, self.records = matrix, exact, records
        self.upper: dict[int, float] = {}
        self.include = np.unique(np.array(sets.include, dtype=np.int64))
        self.lowest = float(matrix.diagonal.min()) - matrix.error
        self.label = np.full(matrix.size, -1)
        self.most = [most for most, _ in sets.groups]
        for group, (_, features) in enumerate(sets.groups):
            self.label[list(features)] = group
        least: dict[int, float] = {}
        questions = []
        for record in records:
            if isinstance(record, Tree):
                u = least.get(record.k - 1, np.inf)
                questions.append((record.k, record.upper, u))
            least[record.k] = min(record.upper, least.get(record.k, np.inf))
        self.screening = Screening(matrix, questions, self.include)

    def run(self) -> list[Step]:
        """Check all records; return a step for each."""
        return [Step(record, self.check(record)) for record in self.records]

    def check(self, record: Record) -> str:
        """Check one record and add its bound to `upper`, or raise ProofError."""
        if not 1 <= record.k <= self.matrix.size or not np.isfinite(record.upper):
            raise ProofError(f"k = {record.k}: the record is about no set")
        if isinstance(record, Variance):
            sentence = self._variance(record)
        elif isinstance(record, Rows):
            self._at_least(record, largest_row_sum(self.matrix, record.k))
            sentence = "no row has a larger sum"
        elif isinstance(record, Average):
            sentence = self._average(record)
        elif isinstance(record, Tree):
            sentence = self._tree(record)
        else:
            raise ProofError(f"k = {record.k}: the rule 'dual' cannot be checked yet")
        known = self.upper.get(record.k, np.inf)
        self.upper[record.k] = min(known, record.upper)
        return sentence

    @staticmethod
    def _at_least(record: Record, needed: Fraction) -> None:
        if not record.upper >= needed:
            raise ProofError(
                f"k = {record.k}: upper = {record.upper!r} must be at least "
                f"{float(needed)!r}"
            )

    def _variance(self, record: Variance) -> str:
        k, top = record.k, self.screening.top
        if k > 1 and not self.matrix.is_psd:
            raise ProofError(f"k = {k}: the matrix may have negative eigenvalues")
        largest = np.sort(top)[-k:] if k == 1 else np.sort(np.maximum(top, 0.0))[-k:]
        self._at_least(record, sum(map(Fraction, largest.tolist()), Fraction(0)))
        return "no variances have a larger sum"

    def _average(self, record: Average) -> str:
        k, m = record.k, record.smaller
        known = self.upper.get(m, np.inf)
        if not m < k or not np.isfinite(known):
            raise ProofError(f"k = {k}: no record of {m} features comes before")
        if len(self.include):  # subsets do not include it
            raise ProofError(f"k = {k}: no average is possible with `include`")
        u, needed = Fraction(known), []
        a = Fraction(float(self.matrix.diagonal.min())) - Fraction(self.matrix.error)
        if m >= 2 and u >= a:
            needed.append(a + (u - a) * Fraction(k - 1, m - 1))
        if self.matrix.is_psd:
            needed.append(u * Fraction(k, m))
        if not any(record.upper >= value for value in needed):
            raise ProofError(f"k = {k}: the bound for {m} features shows no such bound")
        return f"by the bound for {m} features"

    def _tree(self, record: Tree) -> str:
        k, tau = record.k, record.upper
        smaller = {q: u for q, u in self.upper.items() if q < k}
        u = smaller.get(k - 1, np.inf)
        if k < len(self.include):
            raise ProofError(f"k = {k}: `include` has more features")
        features = self.include
        if k > len(features):
            features = self._order(self.screening.survivors(k, tau, u), record, u)
            features = features[~np.isin(features, self.include)]
            features = np.append(self.include, features)
        count = len(features)
        if count < k:
            return "screening leaves too few features"
        numbers: Floats | Integers
        block = self.matrix.block(features)
        numbers = Floats(k, tau, smaller, block, self.lowest, self.matrix.error)
        if count > FEW and not len(self.include):
            strong = count_strong(numbers.G, k, 2 * record.nodes + 16)
            if strong is not None:
                return f"{count} features after screening, {strong} strong sets"
        if self.exact is not None:
            block, bits, error = self.exact(features)
            numbers = Integers(k, tau, smaller, block, bits, error)
        search = Search(record, numbers, self.label[features], self.most)
        search.run(len(self.include))
        return f"{count} features after screening, {search.nodes} nodes"

    def _order(self, features: np.ndarray, record: Tree, u: float) -> np.ndarray:
        """Sort features by the order of the record, then by falling bound."""
        place = np.full(self.matrix.size, len(record.features))
        place[list(record.features)] = np.arange(len(record.features))
        missing = place[features] == len(record.features)
        score = np.zeros(len(features))
        if missing.any():
            squares = self.matrix.block(features) ** 2
            np.fill_diagonal(squares, 0.0)
            sums = np.sort(squares, axis=1)[:, ::-1][:, : record.k - 1].sum(axis=1)
            half = (self.matrix.diagonal[features] - min(u, record.upper)) / 2
            score = half + np.sqrt(half * half + sums)
        order: np.ndarray = features[np.lexsort((-score, place[features]))]
        return order


def check_claim(claim: Claim, upper: dict[int, float], least: Any) -> None:
    """Check a claim; `least` is a pair: a lower bound on x'Ax, and x'x."""
    form, square = least
    known = upper.get(claim.k)
    if known is None or not claim.upper >= known:
        raise ProofError(f"k = {claim.k}: no record shows upper = {claim.upper!r}")
    if not form >= Fraction(claim.objective) * square:
        raise ProofError(
            f"k = {claim.k}: objective = {claim.objective!r} is not reached by x"
        )


def form_below(
    A: Any, error: Any, x: np.ndarray, V: np.ndarray, is_exact: bool
) -> tuple[Fraction, Fraction]:
    """Return a lower bound on x'A_V x, and x'x; the entries of A err by `error`.

    For any w, x'A_V x = z'Az − h'G⁻¹h with z = x − Vw, h = V'Az and G = V'AV.
    """
    V_float, A_float = V.astype(np.float64), A.astype(np.float64)
    x_float = x.astype(np.float64)
    square = sum((Fraction(value) ** 2 for value in x_float.tolist()), Fraction(0))
    if not V.shape[1]:
        z, length = x, Fraction(float(np.abs(x_float).sum()))
    else:
        near = V_float.T @ A_float
        G = near @ V_float
        w = np.linalg.lstsq(G, near @ x_float, rcond=None)[0]
        weights = np.array([Fraction(value) for value in w.tolist()], object)
        z = x - V @ (weights if is_exact else w)
        lengths = np.abs(V_float).sum(axis=0)
        length = Fraction(float(np.abs(x_float).sum() + lengths @ np.abs(w)))
    length *= Fraction(1001, 1000)
    size = float(np.abs(A_float).max(initial=0.0))
    rounding = 4 * (len(x) + 4 * V.shape[1] + 8) * UNIT * size
    lost = Fraction(error) + (0 if is_exact else Fraction(rounding))
    form = Fraction(z @ A @ z) - lost * length**2
    if V.shape[1]:
        worst = float(lengths.max()) * 1.001
        error_of_G = V.shape[1] * (float(error) + rounding) * worst**2
        gamma = float(np.linalg.eigvalsh((G + G.T) / 2)[0])
        gamma -= error_of_G + 64 * V.shape[1] ** 2 * UNIT * float(np.abs(G).max())
        if not gamma > 0:
            raise ProofError("residual: V'AV is not shown to be positive definite")
        h = [abs(Fraction(value)) for value in (V.T @ A @ z).tolist()]
        h = [value + lost * Fraction(worst) * length for value in h]
        form -= sum(value**2 for value in h) / Fraction(gamma)
    return form, square


@dataclass(frozen=True)
class Verdict:
    """A proof that holds."""

    proof: Proof
    steps: list[Step]
    arithmetic: str


def check_proof(Y: np.ndarray, proof: Proof, exact: bool = False) -> Verdict:
    """Check one proof about the data Y; raise ProofError if it is not accepted."""
    problem, d = proof.problem, Y.shape[1]
    kept = np.setdiff1d(np.arange(d), problem.sets.without)
    place = np.full(d, -1)
    place[kept] = np.arange(len(kept))
    matrix = Entries(Y, problem)

    def block(features: np.ndarray) -> Any:
        return integer_block(Y, problem, kept[features])

    def places(features: Sequence[int], where: str) -> tuple[int, ...]:
        if (place[list(features)] < 0).any():
            raise ProofError(f"{where} has a feature of `without`")
        return tuple(place[list(features)].tolist())

    groups = tuple(
        (most, tuple(place[[i for i in features if place[i] >= 0]].tolist()))
        for most, features in problem.sets.groups
    )
    records = [
        Tree(r.k, r.upper, places(r.features, f"k = {r.k}: the tree"), r.nodes)
        if isinstance(r, Tree)
        else r
        for r in proof.records
    ]
    sets = Sets(groups=groups)
    checker = RecordChecker(matrix, sets, records, block if exact else None)
    steps = checker.run()
    for claim in proof.claims:
        places(claim.vector.support, f"k = {claim.k}: support")
        for most, features in problem.sets.groups:
            if len(set(features) & set(claim.vector.support)) > most:
                raise ProofError(f"k = {claim.k}: support has too many of a group")
        check_claim(claim, checker.upper, _form(Y, problem, matrix, claim, exact))
    name = Integers.name if exact else Floats.name
    return Verdict(proof, steps, name)


def _form(
    Y: np.ndarray, problem: Problem, matrix: Entries, claim: Claim, exact: bool
) -> tuple[Fraction, Fraction]:
    vectors = [claim.vector, *problem.residual]
    used = np.unique([i for vector in vectors for i in vector.support])
    columns = columns_of(vectors, Y.shape[1])[used]
    error: Any
    entries, error = matrix.original(used)
    if exact and (error or problem.residual):
        whole, bits, error = integers(Y, problem, used.tolist())
        unit = 1 / Fraction(2) ** bits
        A, error = _fractions(whole) * unit, error * unit
    elif problem.residual:
        return form_below(entries, error, columns[:, 0], columns[:, 1:], False)
    else:
        A = _fractions(entries)
    rational = _fractions(columns)
    form, square = form_below(A, error, rational[:, 0], rational[:, 1:], True)
    return (max(form, Fraction(0)) if problem.kind == "data" else form), square


def _fractions(numbers: np.ndarray) -> Any:
    """Return an array of fractions."""
    exact = [Fraction(number) for number in numbers.ravel().tolist()]
    return np.array(exact, object).reshape(numbers.shape)


def check_file(
    proof: str | Path, data: str | Path, exact: bool = False
) -> list[Verdict]:
    """Check a proof file about a data file; raise ProofError if it is not accepted."""
    path = Path(proof)
    try:
        if path.stat().st_size > LARGEST:
            raise ProofError(f"proof = {str(path)!r} is larger than 1 GiB")
        document = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProofError(f"proof = {str(path)!r} cannot be read ({error})") from None
    header, proofs = read_proofs(document)
    Y = read_data(data)
    there = f"{Y.shape[0]} x {Y.shape[1]} with hash {sha256(Y)}"
    about = f"{header.samples} x {header.features} with hash {header.sha256[:64]}"
    if there != about:
        raise ProofError(f"the proof is about other data, {about}; these are {there}")
    return [check_proof(Y, proof, exact) for proof in proofs]
