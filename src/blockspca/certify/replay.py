"""Let the independent checker replay the proof of a result, if it has one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._validation import is_sparse, numeric_array
from ..checker.check import check_proof
from ..checker.problem import Problem, read_problem
from ..checker.proof_file import ProofError
from ..covariance.covariance import Covariance
from ..result import Result
from .proof_subject import said_constraints
from .verification import VerificationError


def replayed_bound(result: Result, cov: Covariance, data: Any) -> float | None:
    """Return the bound that the proof of a result shows; None if it cannot be replayed.

    A proof that says less than the result, is about another matrix than `cov`, or whose
    data are not at hand, is left: its certificate is checked in its place.

    Raises
    ------
    VerificationError
        If the proof is refused.
    """
    if result.proof is None:  # before the data are written out
        return None
    origin, numbers = cov.data_origin, _numbers(cov, data)
    if origin is None or numbers is None:
        return None
    try:
        verdict = check_proof(result.proof.to_text().encode(), numbers)
    except ProofError as error:
        raise VerificationError(f"the proof does not hold: {error}.") from None
    section = verdict.sections[0]
    if not _is_about(section.problem, origin.to_dict(), result):
        return None
    for claim in section.claims:
        if claim.k == result.k and claim.upper_bound <= result.upper_bound:
            return float(claim.upper_bound)
    return None


def _is_about(problem: Problem, data: dict[str, Any], result: Result) -> bool:
    """Tell whether a proof is about the matrix of a result, and about its sets."""
    rules = result.certificate and result.certificate.constraints
    header: dict[str, Any] = {"data": data}
    if rules is not None:
        header |= said_constraints(rules)
    # a level and raised entries are ways to prove it, and not what is proved
    return replace(problem, level=None, raised=None) == read_problem(header, "here")


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
