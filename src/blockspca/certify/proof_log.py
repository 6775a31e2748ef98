"""Record a proof: for each k the rule that bounds it, with what its checker needs.

The provers keep what they have shown, the bounds on opt(1), …, opt(k) and the points of
duals, in the certificate; the rest is done when the proof is first looked at. The
bounds say at which τ each k can be closed, and closing it once more, with one order of
the features and each node written down, takes less than finding these bounds did
(`docs/design-notes.md` has the measurement). Of the rules of `docs/proof-format.md` the
cheapest that reaches the bound of the result is taken; if none does, the best there is,
and the proof then says less than the result, which its message tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels.loading import RECORDED_BY, load
from ..certificate import StepClaim
from ..covariance.covariance import Covariance
from ..limits import Budget, LimitReached, Limits
from ..numerics.blas import single_threaded
from ..proof_file import FORMAT, Proof
from ..result import Result
from ..scan.lists import scan_kernels
from .adaptive_screening import AdaptiveScreening
from .proof_records import Recording
from .proof_subject import Deflated, Subject, constrained_subject, free_subject
from .refusals import NoTimeToRecord, NotRecordable

# Share of a time limit that recording may take on top of it, where the solve has used
# all of it; the command line leaves that much for it.
RECORDING = 0.2


def recording_limits(budget: Budget) -> Limits:
    """Return the limits of recording what a solve has shown that ends now.

    What it has left of its time, but at least a fifth of all.
    """
    given, left = budget.limits, budget.remaining()
    if given.time is None or left is None:
        return given
    return replace(given, time=max(RECORDING * given.time, left))


def time_to_solve(limits: Limits) -> Limits:
    """Return the limits of a solve whose recording is to end within these, too."""
    if limits.time is None:
        return limits
    return replace(limits, time=limits.time / (1 + RECORDING))


def check_recordable(cov: Covariance, certify: bool) -> None:
    """Refuse, before any work, what the proof format cannot express."""
    refuse_unrecordable(cov, ())
    if not certify:
        raise ValueError("proof=True with certify=False: pass one of them.")
    assert cov.data_origin is not None
    cov.data_origin.refuse_changed()


def recorded(
    cov: Covariance,
    results: Iterable[Result],
    limits: Limits,
    without: NDArray[np.intp] | Sequence[int] = (),
    deflated: Deflated | None = None,
) -> Proof:
    """Record the proof of results within limits, see `recording_limits`.

    Data that are read in place have to be what they were. Otherwise as `record_proof`;
    results of a path may be made here.
    """
    cov.check_unchanged()
    cov = cov.formed()
    # The prover of a single k loads neither, which takes a second where others wait.
    load(*scan_kernels(cov), *RECORDED_BY)
    budget = Budget(Limits(time=limits.time, memory=limits.memory))
    return record_proof(cov, list(results), budget, without, deflated)


def record_proof(
    cov: Covariance,
    results: Sequence[Result],
    budget: Budget | None = None,
    without: Sequence[int] | NDArray[np.intp] = (),
    deflated: Deflated | None = None,
) -> Proof:
    """Record a proof of the bounds of results, ascending in k, of one matrix.

    Parameters
    ----------
    cov : Covariance
        Made from data or from a matrix, not derived from another.
    results : sequence of Result
        With certificates. Under constraints those that are about one matrix share a
        section, and each other has its own.
    budget : Budget, optional
        Of time and nodes; where they end, the rules that need no tree go on.
    without : sequence of int
        Features that the results may not use: A is meant without them.
    deflated : Deflated, optional
        What earlier components leave of A.

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
    budget, whole = budget or Budget(), deflated or Deflated(cov)
    assert cov.data_origin is not None
    data = cov.data_origin.to_dict()
    if all(result.certificate.constraints is None for result in results):
        steps = [step for r in results for step in r.certificate.steps]
        found = [(free_subject(whole, without), steps, list(results))]
    else:
        found = _constrained_subjects(whole, results, budget.limits)
    proof = Proof(())
    for subject, steps, own in found:
        proof += _recorded_section(subject, steps, own, budget, data)
    return proof


Subjects = list[tuple[Subject, list[StepClaim], list[Result]]]


def _constrained_subjects(
    whole: Deflated, results: Sequence[Result], limits: Limits
) -> Subjects:
    """The subjects of results under constraints, those that are the same together."""
    found: Subjects = []
    for result in results:
        assert result.certificate is not None
        subject, steps = constrained_subject(whole, result.certificate, limits)
        if found and subject.level is None and found[-1][0].header == subject.header:
            found[-1][1].extend(steps)
            found[-1][2].append(result)
        else:
            found.append((subject, list(steps), [result]))
    return found


def _recorded_section(
    subject: Subject,
    steps: Sequence[StepClaim],
    results: Sequence[Result],
    budget: Budget,
    data: dict[str, Any],
) -> Proof:
    """Record one section."""
    places = results[-1].k - subject.chosen
    try:
        candidates = AdaptiveScreening(
            subject.cov, max(places, 1), budget.check, groups=subject.groups, again=True
        )
    except LimitReached:  # before A was read
        raise NoTimeToRecord(
            "the time that was left, or a fifth of all, did not suffice to read A once "
            "more; solve again with more time."
        ) from None
    with single_threaded():
        recording = Recording(subject, results, steps, budget, candidates)
        if subject.units is None:
            for k in range(recording.first, places + 1):
                recording.add(k)
        else:
            for k in recording.claimed:
                recording.add_units(k)
    return recording.proof({"format": FORMAT, "data": data})


def refuse_unrecordable(cov: Covariance, results: Sequence[Result]) -> None:
    """Refuse a covariance or results of which the format has no proof."""
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
