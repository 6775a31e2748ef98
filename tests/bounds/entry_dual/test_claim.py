"""A certificate by the entry dual is checked from what it holds, without an ascent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.certificate import Certificate, StepClaim
from blockspca.status import OPTIMAL_GAP, Status


@pytest.fixture(scope="module")
def claimed() -> tuple[np.ndarray, Certificate]:
    for seed in range(50):
        A = zoo.correlation(12, np.random.default_rng(seed))
        support = zoo.Reference(A, sizes=(4,)).best[4]
        x = np.linalg.eigh(A[np.ix_(support, support)])[1][:, -1]
        objective = float(x @ A[np.ix_(support, support)] @ x)
        early = 1.02 * objective
        found = entry_bound(bs.Covariance.from_matrix(A), 4, support, target=early)
        if found.value > objective * (1 + 1e-3):  # room for a claim that is false
            break
    assert found.value > objective * (1 + 1e-3)
    assert found.record is not None
    step = StepClaim(4, found.value, BoundName.ENTRY_DUAL, dual=found.record.to_text())
    certificate = Certificate(
        k=4,
        n_features=12,
        support=tuple(support.tolist()),
        loadings=tuple(x.tolist()),
        objective=objective,
        upper_bound=found.value,
        status=Status.FEASIBLE,
        tolerance=OPTIMAL_GAP * objective,
        steps=(step,),
    )
    return A, certificate


def changed(certificate: Certificate, **fields: object) -> Certificate:
    step = replace(certificate.steps[0], **fields)  # type: ignore[arg-type]
    return replace(certificate, upper_bound=step.upper_bound, steps=(step,))


def test_it_is_confirmed_after_a_way_through_a_file(claimed):
    A, certificate = claimed
    read = Certificate.from_json(certificate.to_json())
    assert read == certificate
    assert bs.verify(read, A).complete


def test_a_bound_below_what_the_record_proves_is_refused(claimed):
    A, certificate = claimed
    low = certificate.upper_bound * (1 - 1e-5)
    with pytest.raises(bs.VerificationError, match="entry dual"):
        bs.verify(changed(certificate, upper_bound=low), A)


def test_a_claim_without_a_record_is_refused(claimed):
    A, certificate = claimed
    with pytest.raises(bs.VerificationError, match="not written down"):
        bs.verify(changed(certificate, dual=None), A)


@pytest.mark.parametrize("text", ["", "AAAA"])
def test_a_damaged_record_is_refused(claimed, text):
    A, certificate = claimed
    with pytest.raises(bs.VerificationError, match="entry dual"):
        bs.verify(changed(certificate, dual=text), A)


def test_a_diagonal_that_lowers_the_bound_is_refused(claimed):
    """Shares of 1 on the diagonal would take w_i² off it, which costs k w_i²."""
    _, certificate = claimed
    record = EntryRecord.from_text(certificate.steps[0].dual or "", 12)
    # The format has no place for a diagonal: what is read back has none.
    shares = record.shares.copy()
    np.fill_diagonal(shares, 2**14)
    text = replace(record, shares=shares).to_text()
    assert EntryRecord.from_text(text, 12).shares.diagonal().sum() == 0


def test_another_matrix_is_refused(claimed):
    A, certificate = claimed
    with pytest.raises(bs.VerificationError):
        bs.verify(certificate, 1.01 * A)


def test_version_2_has_no_duals(claimed):
    _, certificate = claimed
    text = certificate.to_json().replace('"version": 3', '"version": 2')
    with pytest.raises(ValueError, match="unknown fields"):
        Certificate.from_json(text)
