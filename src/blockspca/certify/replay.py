"""Let the independent checker replay the proof of a result, if it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._validation import is_sparse, numeric_array
from ..checker.check import check_proof
from ..checker.fields import NotShown
from ..checker.problem import Problem
from ..checker.problem_file import read_problem
from ..checker.proof_file import ProofError, Section
from ..covariance.covariance import Covariance
from ..proof_file import Proof
from ..result import Result
from .proof_subject import said_constraints
from .refusals import NoTimeToRecord
from .verification import VerificationError


@dataclass(frozen=True)
class Replay:
    """What came of a proof."""

    #: What its sections show; None where one is about something else, or says less.
    #: Nothing where it could not be replayed.
    bounds: tuple[float | None, ...] = ()
    message: str = ""  #: why our own proof was left, if it was refused; else empty

    @property
    def first(self) -> float | None:
        return self.bounds[0] if self.bounds else None


def replayed_result(result: Result, cov: Covariance, data: Any) -> Replay:
    """Replay the proof of a result.

    A proof that says less than the result, is about another matrix than `cov`, is not
    written in its time, or whose data are not at hand, is left: the certificate is
    checked in its place. So is one of our own that a checker cannot follow: the
    certificate may well hold.

    Raises
    ------
    VerificationError
        If the proof is about other data, a vector is not what it says, or somebody else
        has made it and its records do not show the bound.
    """
    if result.proof is None:  # before the data are written out
        return Replay()
    rules = result.certificate and result.certificate.constraints
    header = {} if rules is None else said_constraints(rules)
    return replayed(result.proof, cov, data, [(header, result)])


def replayed(
    proof: Proof,
    cov: Covariance,
    data: Any,
    expected: Sequence[tuple[dict[str, Any], Result]],
) -> Replay:
    """Replay the sections of a proof of results, in their order.

    `expected` has what the header of each section has to say of its problem beside the
    data; otherwise as `replayed_result`.
    """
    origin, numbers = cov.data_origin, _numbers(cov, data)
    if origin is None or numbers is None:
        return Replay()
    try:
        sections = proof.sections
    except NoTimeToRecord:
        return Replay()
    if not sections:  # it could not be written when the result was pickled
        return Replay()
    text = proof.to_text().encode()
    try:
        verdict = check_proof(text, numbers)
    except ProofError as error:
        if isinstance(error, NotShown) and proof.is_ours:
            return Replay(
                message=f"the proof, replayed, does not show the bound ({error}); "
                "the certificate was checked in its place"
            )
        raise VerificationError(f"the proof does not hold: {error}.") from None
    said = origin.to_dict()
    bounds = [
        _shown(section, read_problem({"data": said, **header}, "here"), result)
        for section, (header, result) in zip(verdict.sections, expected, strict=False)
    ]
    return Replay(tuple(bounds))


def _shown(section: Section, problem: Problem, result: Result) -> float | None:
    """The bound that a section shows for a result, if it is about that problem."""
    # a level and raised entries are ways to prove it, and not what is proved
    if replace(section.problem, level=None, raised=None) != problem:
        return None
    for claim in section.claims:
        if claim.k == result.k and claim.upper_bound <= result.upper_bound:
            return float(claim.upper_bound)
    return None


def _numbers(cov: Covariance, data: Any) -> np.ndarray | None:
    """The numbers that were passed in, if they were kept."""
    if data is None:
        data = None if cov.data_origin is None else cov.data_origin.kept
        if data is None:
            return None
    if hasattr(data, "to_memory"):  # a table in a file
        data = data.to_memory()
    if is_sparse(data):
        return np.asarray(data.toarray(), dtype=np.float64)
    return numeric_array(data, "data")
