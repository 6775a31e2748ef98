"""Let the independent checker replay the proof of a result, if it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import is_sparse, numeric_array
from ..checker.check import check_proof
from ..checker.problem import Problem, read_problem
from ..checker.proof_file import ProofError, Section
from ..covariance.covariance import Covariance
from ..proof_file import Proof
from ..result import Result
from .proof_subject import NoTimeToRecord, said_constraints
from .verification import VerificationError


def replayed_bound(result: Result, cov: Covariance, data: Any) -> float | None:
    """Return the bound that the proof of a result shows; None if it cannot be replayed.

    A proof that says less than the result, is about another matrix than `cov`, is not
    written in its time, or whose data are not at hand, is left: the certificate is
    checked in its place.

    Raises
    ------
    VerificationError
        If the proof is refused.
    """
    if result.proof is None:  # before the data are written out
        return None
    rules = result.certificate and result.certificate.constraints
    header = {} if rules is None else said_constraints(rules)
    bounds = replayed_bounds(result.proof, cov, data, [(header, result)])
    return bounds[0] if bounds else None


def replayed_bounds(
    proof: Proof,
    cov: Covariance,
    data: Any,
    expected: Sequence[tuple[dict[str, Any], Result]],
) -> list[float | None]:
    """Return the bounds that the sections of a proof show for results, in their order.

    `expected` has what the header of each section has to say of its problem beside the
    data. Nothing is returned if the proof cannot be replayed, and None where a section
    is about something else, or says less.
    """
    origin, numbers = cov.data_origin, _numbers(cov, data)
    if origin is None or numbers is None:
        return []
    try:
        sections = proof.sections
    except NoTimeToRecord:
        return []
    if not sections:  # it could not be written when the result was pickled
        return []
    text = proof.to_text().encode()
    try:
        verdict = check_proof(text, numbers)
    except ProofError as error:
        raise VerificationError(f"the proof does not hold: {error}.") from None
    said = origin.to_dict()
    return [
        _shown(section, read_problem({"data": said, **header}, "here"), result)
        for section, (header, result) in zip(verdict.sections, expected, strict=False)
    ]


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
    """The numbers that were passed in, where somebody kept them."""
    if data is None:
        origin = cov.data_origin
        if origin is None or isinstance(origin.numbers, str):
            return None
        data = origin.numbers
    if hasattr(data, "to_memory"):  # a table in a file
        data = data.to_memory()
    if is_sparse(data):
        return np.asarray(data.toarray(), dtype=np.float64)
    return numeric_array(data, "data")
