"""Bounds by the entry dual, as they are written and checked."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.entry_dual import proof as entry_proof
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.point import written_point
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.certificate import BoundName, Certificate, StepClaim
from blockspca.certify.proof_log import record_proof
from blockspca.checker.check import check_proof
from blockspca.limits import Deadline
from blockspca.result import Result, Status


def correlated_data(n: int = 30, d: int = 70) -> np.ndarray:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, d))
    return X + rng.normal(size=(n, 1)) * (np.arange(d) < 30) * rng.uniform(0.5, 1.5, d)


def bounded_by_entries(cov: bs.Covariance, k: int, core: int) -> Result:
    """A result whose bound is that of a point with a core of the first features."""
    support = np.arange(k)
    values, vectors = np.linalg.eigh(cov.submatrix(support))
    objective = float(values[-1])
    unit = 4.0 ** np.floor(np.log(abs(objective)) / np.log(4))
    allowed = np.maximum(objective - cov.diagonal(), 0.1 * objective)
    w = np.sqrt(0.9 * np.minimum(allowed, 2 * objective) / (k - 1) / unit)
    product = np.outer(w, w)[:core, :core]
    shares = cov.submatrix(np.arange(core)) / unit / product
    record = EntryRecord.of(w, unit, np.arange(core), shares)
    bound = checked_value(cov, k, record)
    step = StepClaim(k, bound, BoundName.ENTRY_DUAL, dual=record.to_text())
    certificate = Certificate(
        k=k,
        n_features=cov.n_features,
        support=tuple(support.tolist()),
        loadings=tuple(vectors[:, -1].tolist()),
        objective=objective,
        upper_bound=bound,
        status=Status.FEASIBLE,
        tolerance=0.0,
        steps=(step,),
    )
    return certificate.as_result(bound_name=step.bound_name)


def assert_proves(result: Result, cov: bs.Covariance, Y: np.ndarray) -> None:
    """The proof says what the result says, and is accepted in both arithmetics."""
    proof = record_proof(cov, [result])
    assert proof.message == ""
    for exact in (True, False):
        verdict = check_proof(
            proof.to_text().encode(), Y, exact=exact, floats=not exact
        )
        (claim,) = verdict.sections[0].claims
        assert claim.upper_bound <= result.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize("scale", [True, False])
def test_a_point_of_data(scale):
    X = correlated_data()
    cov = bs.Covariance.from_data(X, scale=scale)
    result = bounded_by_entries(cov, 32, 40)
    assert_proves(result, cov, X)
    (section,) = record_proof(cov, [result]).sections
    assert section.header["version"] == 5
    assert [record["rule"] for record in section.records] == ["entry"]


def test_a_point_of_an_indefinite_matrix():
    A = np.corrcoef(correlated_data(), rowvar=False) - 0.5 * np.eye(70)
    A = (A + A.T) / 2
    A[3, 3] = -1e6  # far below what matters
    cov = bs.Covariance.from_matrix(A)
    assert_proves(bounded_by_entries(cov, 20, 70), cov, A)


def test_rows_beside_those_that_are_dense(monkeypatch):
    """Where a worse bound will do, most rows are bounded by sums."""
    monkeypatch.setattr(entry_proof, "_LOST", 1.0)
    X = correlated_data(40, 200)
    cov = bs.Covariance.from_data(X, scale=True)
    result = bounded_by_entries(cov, 32, 40)
    (record,) = record_proof(cov, [result]).sections[0].records
    assert 0 < len(record["dense"]) < 200
    assert len(record["scaling"]) == 200
    assert_proves(result, cov, X)


def test_features_that_are_left_keep_their_numbers():
    X = correlated_data()
    cov = bs.Covariance.from_data(X, scale=True)
    without = [0, 5, 69]
    left = np.setdiff1d(np.arange(70), without)
    found = bounded_by_entries(bs.Covariance.from_data(X[:, left], scale=True), 20, 67)
    x = np.zeros(70)
    x[left] = found.x
    result = Result(
        x=x,
        support=left[found.support],
        objective=found.objective,
        upper_bound=found.upper_bound,
        status=found.status,
        k=20,
        n_features=70,
        bound_name=found.bound_name,
        certificate=found.certificate,
    )
    proof = record_proof(cov, [result], without=without)
    (record,) = proof.sections[0].records
    assert record["rule"] == "entry"
    assert not {*record["core"], *record["dense"]} & {*without}
    check_proof(proof.to_text().encode(), X, exact=True)


def test_without_time_nothing_is_written():
    class Late(Deadline):
        def passed(self) -> bool:
            return True

    X = correlated_data()
    cov = bs.Covariance.from_data(X, scale=True)
    (step,) = bounded_by_entries(cov, 32, 40).certificate.steps
    record = EntryRecord.from_text(step.dual, 70)
    assert written_point(cov, 32, record, Late(1.0)) is None
