"""Bounds by the entry dual, as they are written and checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.bounds.entry_dual import bound as entry_bounds
from blockspca.bounds.entry_dual import proof as entry_proof
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.log import SearchRecord
from blockspca.bounds.entry_dual.point import written_point, written_search
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.certificate import Certificate, StepClaim
from blockspca.certify.proof_log import record_proof
from blockspca.checker.check import check_proof
from blockspca.limits import Deadline
from blockspca.proof_settings import ProofSettings
from blockspca.result import Result
from blockspca.status import Status


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
    return certificate.as_result()


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
    support = tuple(left[found.support].tolist())
    certificate = replace(found.certificate, n_features=70, support=support)
    proof = record_proof(cov, [certificate.as_result()], without=without)
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


def spiked(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X + rng.normal(size=(n, 1)) * (np.arange(d) < 15) * rng.uniform(0.5, 1.5, d)


def searched_by_entries(
    cov: bs.Covariance, k: int, nodes: int, target: float | None = None
) -> Result:
    """A result whose bound is that of a search by the entry dual."""
    d = cov.n_features
    A = cov.submatrix(np.arange(d))
    x = np.linalg.eigh(A)[1][:, -1]
    for _ in range(20):
        support = np.sort(np.argsort(-np.abs(x))[:k])
        y = np.zeros(d)
        y[support] = np.linalg.eigh(A[np.ix_(support, support)])[1][:, -1]
        x = A @ y
    objective = float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])
    level = objective if target is None else target
    bound = entry_bound(
        cov, k, support, target=level, time_limit=100, iterations=40, nodes=nodes
    )
    assert isinstance(bound.record, SearchRecord)
    step = StepClaim(k, bound.value, BoundName.ENTRY_DUAL, dual=bound.record.to_text())
    certificate = Certificate(
        k=k,
        n_features=d,
        support=tuple(support.tolist()),
        loadings=tuple(y[support].tolist()),
        objective=objective,
        upper_bound=bound.value,
        status=Status.FEASIBLE,
        tolerance=0.0,
        steps=(step,),
    )
    return certificate.as_result(nodes=bound.nodes)


def assert_search_holds(result: Result, cov: bs.Covariance, Y: np.ndarray) -> list[str]:
    """The proof says what the result says; return the kinds of its nodes."""
    proof = record_proof(cov, [result])
    assert proof.message == ""
    assert proof.sections[0].header["version"] == 6
    for mode in ({"floats": True}, {"exact": True}):
        verdict = check_proof(proof.to_text().encode(), Y, **mode)
        (claim,) = verdict.sections[0].claims
        assert claim.upper_bound <= result.upper_bound * (1 + 1e-9)
    return [key for node in proof.sections[0].records[-1]["nodes"] for key in node]


def test_searches_are_written_and_hold():
    """To the end and cut short, where nodes are open at the bound."""
    kinds = set()
    problems = ((12, 30, 8, 1, 60), (10, 36, 8, 5, 60), (10, 36, 8, 5, 3))
    for n, d, k, seed, nodes in problems:
        X = spiked(n, d, seed)
        cov = bs.Covariance.from_data(X, scale=True)
        kinds |= {*assert_search_holds(searched_by_entries(cov, k, nodes), cov, X)}
        A = cov.submatrix(np.arange(d)) - 0.4 * np.eye(d)
        matrix = bs.Covariance.from_matrix((A + A.T) / 2)
        result = searched_by_entries(matrix, k, nodes)
        kinds |= {*assert_search_holds(result, matrix, (A + A.T) / 2)}
    assert kinds >= {"fix", "split", "last", "close"}


def test_features_are_ruled_out_before_a_search(monkeypatch):
    """By the point of k − 1, whose record comes before that of k."""
    monkeypatch.setattr(entry_bounds, "_DENSE", 40)
    monkeypatch.setattr(entry_bounds, "_SCREENABLE", 2.0)
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(25, 60))
    X += rng.normal(size=(25, 1)) * (np.arange(60) < 12) * rng.uniform(0.8, 1.2, 60)
    cov = bs.Covariance.from_data(X)
    result = searched_by_entries(cov, 6, 40)
    assert_search_holds(result, cov, X)
    first, last = record_proof(cov, [result]).sections[0].records
    assert (first["k"], first["rule"]) == (5, "entry")
    assert (last["k"], last["rule"]) == (6, "entry-tree")
    assert len(last["features"]) < 60


def test_a_log_that_does_not_repeat_is_not_written():
    X = spiked(12, 30, 1)
    cov = bs.Covariance.from_data(X, scale=True)
    (step,) = searched_by_entries(cov, 8, 60).certificate.steps
    record = SearchRecord.from_text(step.dual, 30)
    del record.log.points[:]
    found = written_search(cov, 8, record, Deadline(100.0))
    assert found is None


@pytest.mark.parametrize(
    ("seed", "given", "name"),
    [
        (2, {"exclude": [13]}, BoundName.ENTRY_DUAL),
        (4, {"include": [6]}, BoundName.DIRECTION_DUAL),
        (4, {"include": [12]}, BoundName.DIRECTION_DUAL),
    ],
)
def test_features_that_the_problem_of_a_proof_does_not_have(
    monkeypatch: pytest.MonkeyPatch, seed: int, given: dict, name: BoundName
) -> None:
    """A point is for all features, and a component has those that are included."""
    settings = ProofSettings(single_k_from=2, chain_up_to=1)
    monkeypatch.setattr("blockspca.pipeline.SETTINGS", settings)
    A = np.corrcoef(np.random.default_rng(seed).normal(size=(12, 14)).T)
    A = (A + A.T) / 2
    limits, constraints = bs.Limits(gap=0.02), bs.Constraints(**given)
    result = bs.solve(A, 4, limits=limits, constraints=constraints, proof=True)
    (part,) = result.certificate.parts
    assert [step.bound_name for step in part.steps] == [name]
    text = result.proof.to_text()
    assert result.proof.message == ""
    check_proof(text.encode(), A)
