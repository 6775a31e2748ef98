"""Record the proofs of several components, one after the other.

Component j is about what components 1, …, j − 1 leave, or, after sweeps, all others: A
without their features, what regression on their scores leaves of it, what projection
off their directions does, or A less multiples of their squares. Where a scheme asks for
vectors that keep conditions, it is the matrix without these that bounds them, and a
bound by a search under the conditions, or by an earlier component, has no words in the
format: then the matrix is bounded once more.
Of schemes of users the proof format can say what the first component claims, which is
about A itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..certify.proof_log import check_recordable, recorded
from ..certify.proof_records import weaker_message
from ..certify.proof_subject import Deflated, deflated_by, said_constraints
from ..certify.refusals import NotRecordable
from ..certify.replay import Replay, replayed
from ..certify.results import certified_results
from ..covariance.covariance import Covariance
from ..covariance.derived import correction_error, projected
from ..covariance.residual import regressed, residual
from ..limits import Deadline, Limits
from ..proof_file import Proof
from ..result import Result
from ..status import Status
from .orthogonal import Orthogonalised, penalty_of
from .rewrite import with_bound
from .scheme import Scheme, completed
from .scheme_names import SCHEMES, as_scheme
from .schemes import (
    DisjointSupports,
    HotellingDeflation,
    ProjectionDeflation,
    ResidualDeflation,
    row_space,
)
from .sweeps import others
from .uncorrelated import UncorrelatedScores

if TYPE_CHECKING:
    from .solve import Components

RECORDABLE = (
    DisjointSupports,
    ResidualDeflation,
    ProjectionDeflation,
    HotellingDeflation,
    Orthogonalised,
    UncorrelatedScores,
)


def recordable_names() -> list[str]:
    """The names of the schemes of which several components can be recorded.

    Examples
    --------
    >>> from blockspca.components.recording import recordable_names
    >>> recordable_names()[1:4]
    ['disjoint', 'projection', 'orthogonal']
    """
    return [name for name in SCHEMES if type(as_scheme(name)) in RECORDABLE]


def check_recorded(
    cov: Covariance,
    scheme: Scheme,
    n_components: int,
    options: Mapping[str, Any],
) -> None:
    """Refuse, before any work, to record what the proof format cannot say."""
    check_recordable(cov, bool(options.get("certify", True)))
    if n_components > 1 and type(scheme) not in RECORDABLE:
        names = ", ".join(f"{one.__name__}()" for one in RECORDABLE)
        raise NotRecordable(
            f"proof=True with scheme = {scheme!r}: of several components only those of "
            f"{names} can be recorded; pass one component, or one of these."
        )


def recorded_apart(
    cov: Covariance,
    results: Sequence[Result],
    limits: Limits,
    scheme: Scheme,
    swept: bool = False,
) -> Proof:
    """Record the proof of each component, about what the earlier ones leave.

    About what all the others leave, if they were `swept`. A time limit is for all of
    them together; what one does not need the next ones have.
    """
    deadline = Deadline(limits.time)
    formed, proof = cov.formed(), Proof(())
    for j, result in enumerate(results):
        left, used = _left_for(formed, results, j, scheme, swept)
        again = _is_by_others(result) and not len(used)
        parts = (3 if again else 1) + len(results) - j - 1
        found = recorded(formed, [result], _part(limits, deadline, parts), used, left)
        if found.message and again:
            alone = _bounded_alone(result, left, _part(limits, deadline, parts - 1))
            part = _part(limits, deadline, parts - 2)
            own = recorded(formed, [alone], part, (), left)
            if _bound_shown(own) < _bound_shown(found):
                said = weaker_message(result, _bound_shown(own))
                found = replace(own, message=said)
        proof += found
    return proof


def _part(limits: Limits, deadline: Deadline, parts: int) -> Limits:
    """One of so many equal parts of the time that is left."""
    seconds = deadline.remaining()
    return replace(limits, time=None if seconds is None else seconds / parts)


def _is_by_others(result: Result) -> bool:
    """Whether the bound is not that of the matrix by itself."""
    certificate = result.certificate
    return (
        certificate is not None
        and certificate.constraints is None
        and certificate.bound_name
        in (BoundName.EARLIER_COMPONENT, BoundName.CONDITIONS)
    )


def _bounded_alone(result: Result, left: Deflated, limits: Limits) -> Result:
    """The component with the bound of its matrix, for all vectors on it."""
    k, known = result.k, {result.k: result.support.tolist()}
    alone: Result = certified_results(left.cov, range(k, k + 1), limits, known)[k]
    assert alone.certificate is not None
    return with_bound(result, Status.FEASIBLE, *alone.certificate.steps)


def _bound_shown(proof: Proof) -> float:
    return float.fromhex(proof.sections[-1].header["claims"][0]["upper_bound"])


def replayed_components(found: Components, cov: Covariance, data: Any) -> Replay:
    """Replay a proof, which has a section for each component."""
    results, scheme = found.results, found.scheme
    if found.proof is None or (type(scheme) not in RECORDABLE and len(results) > 1):
        return Replay()
    expected = []
    for j, result in enumerate(results):
        left, used = _left_for(cov, results, j, scheme, found.first is not None)
        rules = result.certificate and result.certificate.constraints
        header = dict(left.header)
        if rules is not None:
            header |= said_constraints(rules)
        elif len(used):
            header["without"] = [int(i) for i in used]
        expected.append((header, result))
    return replayed(found.proof, cov, data, expected)


def _left_for(
    cov: Covariance, results: Sequence[Result], j: int, scheme: Scheme, swept: bool
) -> tuple[Deflated, Sequence[int] | NDArray[np.intp]]:
    """What the other components leave for component j, and the features they use."""
    earlier = others(cov, results, j) if swept else results[:j]
    left = Deflated(cov) if not earlier else _left_by(cov, earlier, scheme)
    return left, completed(scheme).closed(cov, earlier)


def _left_by(cov: Covariance, earlier: Sequence[Result], scheme: Scheme) -> Deflated:
    """What earlier components leave of A, named by vectors that are independent."""
    vectors = np.array([result.x for result in earlier])
    if isinstance(scheme, HotellingDeflation):
        problem, values = scheme.problem(cov, earlier), [r.objective for r in earlier]
        error = _taken_error(cov, len(earlier), sum(map(abs, values)))
        return deflated_by("hotelling", problem, vectors, values, error=error)
    if isinstance(scheme, Orthogonalised):
        problem, chosen = scheme.problem(cov, earlier), _independent(vectors)
        penalty = penalty_of(scheme, earlier)
        error = _taken_error(cov, len(earlier), penalty)
        return deflated_by("orthogonal", problem, chosen, penalty=penalty, error=error)
    if isinstance(scheme, ResidualDeflation | UncorrelatedScores):
        kept = list(regressed(cov, vectors).kept)
        return deflated_by("residual", residual(cov, vectors), vectors[kept])
    if isinstance(scheme, ProjectionDeflation):
        chosen = _independent(vectors)
        basis = row_space(chosen)
        said = f"{len(chosen)} direction(s) projected out"
        return deflated_by("projection", projected(cov, basis, said), chosen)
    return Deflated(cov)


def _taken_error(cov: Covariance, count: int, taken: float) -> float:
    """What entries of a corrected matrix are off by, with room for a basis that is."""
    return 16 * correction_error(count, 4 * cov.max_abs() + taken)


def _independent(vectors: FloatArray) -> FloatArray:
    """The rows that none of the rows before them make up."""
    kept: list[int] = []
    for j in range(len(vectors)):
        if row_space(vectors[[*kept, j]]).shape[1] > len(kept):
            kept.append(j)
    return vectors[kept]
