"""Proofs that are written down; the tests of the checker check them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.certify import proof_log
from blockspca.certify.proof_log import record_proof
from blockspca.certify.refusals import NoTimeToRecord, NotRecordable
from blockspca.covariance.origin import data_sha256
from blockspca.limits import Budget, Limits
from blockspca.proof_file import Proof
from proof_builder import EXAMPLE, FIVE


def lines_of(proof: Proof) -> list[dict[str, Any]]:
    return [json.loads(line) for line in proof.to_text().splitlines()]


def best(A: np.ndarray, k: int) -> float:
    """Return opt(k), by trying every set."""
    sets = itertools.combinations(range(len(A)), k)
    return max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets)


def test_hash_is_that_of_the_format_page():
    numbers = b"".join(struct.pack("<d", value) for value in FIVE.ravel())
    expected = hashlib.sha256(b"blockspca-data-1 5 5\n" + numbers).hexdigest()
    said = json.loads(EXAMPLE.read_text().splitlines()[0])["data"]
    assert data_sha256(FIVE) == expected == said["sha256"]
    assert data_sha256(sp.csr_matrix(FIVE)) == expected
    assert data_sha256(np.where(FIVE == 0, -0.0, FIVE)) == expected
    assert data_sha256(FIVE + np.eye(5)) != expected


def test_example_says_what_the_page_says():
    page = (Path(__file__).parents[2] / "docs" / "proof-format.md").read_text()
    header, *records = EXAMPLE.read_text().splitlines()
    for record in records:
        assert record in page
    for claim in json.loads(header)["claims"]:
        assert json.dumps(claim)[1:30] in page


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_origin_is_what_was_passed_in(sparse, center):
    rng = np.random.default_rng(3)
    X = rng.poisson(1.0, size=(30, 6)).astype(float)
    X[:, 2] += 5  # a column without zeros is centred where it is stored
    given = sp.csr_matrix(X) if sparse else X.copy()
    cov = bs.Covariance.from_data(given, center=center, ddof=0)
    if not sparse:
        cov.data_origin.refuse_changed()
        given[:] = 0.0
    assert cov.data_origin.to_dict() == {
        "sha256": data_sha256(X),
        "kind": "data",
        "n": 30,
        "d": 6,
        "center": center,
        "scale": False,
        "ddof": 0,
    }
    assert cov.formed().data_origin is cov.data_origin


def _flip(X):
    X *= -1


def _constant_shift(X):
    X += 2.0**20  # nearly the same C


def _one_ulp(X):
    X[3, 2] = np.nextafter(X[3, 2], np.inf)


def _gap(X):
    X[0, 0] = np.nan


@pytest.mark.filterwarnings("ignore:scale=True")
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("change", [_flip, _constant_shift, _one_ulp, _gap])
def test_data_that_changed_have_no_proof(change, scale):
    X = np.random.default_rng(3).normal(size=(30, 6))
    X[:, 4] = 1.0
    given = X.copy()
    cov = bs.Covariance.from_data(given, scale=scale)
    change(given)
    before = bs.solve(cov, 2)
    assert (
        before.objective
        == bs.solve(bs.Covariance.from_data(X, scale=scale), 2).objective
    )
    with pytest.raises(bs.DataChangedError, match="proof"):
        bs.solve(cov, 2, proof=True)
    with pytest.raises(bs.DataChangedError, match="proof"):
        pickle.loads(pickle.dumps(cov)).data_origin.to_dict()


@pytest.mark.parametrize("kind", [np.float32, np.int64, "F", pd.DataFrame, list])
def test_data_may_change_once_a_proof_was_asked_for(kind):
    X = np.random.default_rng(3).integers(-9, 9, size=(30, 6)).astype(float)
    if kind in (pd.DataFrame, list):
        given = pd.DataFrame(X) if kind is pd.DataFrame else X.tolist()
    else:
        given = X.copy(order="F") if kind == "F" else X.astype(kind)
    cov = bs.Covariance.from_data(given)
    other = pickle.loads(pickle.dumps(cov))
    assert other.data_origin.to_dict()["sha256"] == data_sha256(X)
    path = bs.solve_path(cov, 3, proof=True)
    if isinstance(given, np.ndarray):
        given[:] = 0
    assert path.proof.sections[0].header["data"]["sha256"] == data_sha256(X)


def test_origin_of_a_matrix_that_is_not_quite_symmetric():
    A = FIVE.copy()
    A[0, 1] *= 1 + 2**-50
    cov = bs.Covariance.from_matrix(A)
    assert cov.data_origin.to_dict()["sha256"] == data_sha256(A)
    assert data_sha256(A) != data_sha256(cov.submatrix(slice(None)))


@pytest.mark.parametrize("seed", range(12))
def test_records_bound_every_set(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 10))
    A = rng.integers(-3, 4, size=(d, d)).astype(float)
    A = A + A.T + (seed % 3) * np.diag(rng.exponential(5.0, size=d))
    path = bs.solve_path(A, d - 1, proof=True)
    header, *records, end = lines_of(path.proof)
    assert end == {"end": len(records)}
    assert [r["k"] for r in records] == [*range(1, d)]
    for record, claim in zip(records, header["claims"], strict=True):
        k, upper = record["k"], float.fromhex(record["upper"])
        value = best(A, k)
        assert upper >= value - 1e-12 * abs(value)
        x = np.array([float.fromhex(text) for text in claim["x"]])
        within = A[np.ix_(claim["support"], claim["support"])]
        objective = float.fromhex(claim["objective"])
        assert x @ within @ x / (x @ x) >= objective
        assert float.fromhex(claim["upper_bound"]) > upper
        if path[k].gap > 4e-10:  # with room the claim is that of the result
            assert float.fromhex(claim["upper_bound"]) == path[k].upper_bound
        assert float.fromhex(claim["upper_bound"]) <= value + 2e-9 * abs(value) + 1e-300
    assert path.proof.message == ""


def test_only_what_the_claims_need_is_written():
    cov = bs.Covariance.from_matrix(np.kron(np.eye(3), np.ones((2, 2))))
    # a run that had no time has no search behind its bound: row sums are as good
    stopped = bs.solve(cov, 2, limits=bs.Limits(time=0))
    proof = record_proof(cov, [stopped])
    assert [(record["k"], record["rule"]) for record in proof.sections[0].records] == [
        (2, "rows")
    ]


def test_stopped_run_writes_the_bound_that_it_has():
    X = np.random.default_rng(0).normal(size=(12, 60))
    cov = bs.Covariance.from_data(X, scale=True)
    result = bs.solve(cov, 10, limits=bs.Limits(nodes=1), proof=True)
    assert result.status is bs.Status.NODE_LIMIT
    header, *records, _ = lines_of(result.proof)
    bound = float.fromhex(header["claims"][0]["upper_bound"])
    assert result.objective < bound < 10.0 + 1e-6
    assert result.upper_bound <= bound
    assert records[-1]["k"] == 10


def test_weaker_proof_says_so():
    X = np.random.default_rng(0).normal(size=(12, 60))
    cov = bs.Covariance.from_data(X, scale=True)
    result = bs.solve(cov, 4)
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    assert proof.message.startswith("k = 4: the proof shows at most")


def test_what_cannot_be_recorded_is_refused():
    with pytest.raises(ValueError, match="proof=True to solve"):
        bs.solve(FIVE, 2).write_proof("never.proof")
    with pytest.raises(ValueError, match="proof=True to solve_path"):
        bs.solve_path(FIVE, 2).write_proof("never.proof")
    with pytest.raises(ValueError, match="certify=False"):
        bs.solve(FIVE, 2, certify=False, proof=True)
    cov = bs.Covariance.from_chunks([FIVE[:3], FIVE[3:]])
    with pytest.raises(NotRecordable, match="from_data or from_matrix"):
        bs.solve(cov, 2, proof=True)


def test_file_is_written(tmp_path):
    target = bs.solve(FIVE, 3, proof=True).write_proof(tmp_path / "five.proof")
    header, *records, end = map(json.loads, target.read_text().splitlines())
    assert header["format"] == "blockspca-proof"
    assert header["version"] == 1
    assert header["claims"][0]["support"] == [0, 1, 2]
    assert end == {"end": len(records)}


def test_disjoint_components_have_a_section_each():
    found = bs.solve_components(FIVE, 2, 2, scheme="disjoint", proof=True)
    sections = found.proof.sections
    used = found.supports[0].tolist()
    assert [section.header.get("without") for section in sections] == [None, used]
    assert [section.header["version"] for section in sections] == [1, 2]
    rest = np.setdiff1d(np.arange(5), used)
    bound = float.fromhex(sections[1].header["claims"][0]["upper_bound"])
    value = best(FIVE[np.ix_(rest, rest)], 2)
    assert value <= bound <= value * (1 + 1e-9)
    for record in sections[1].records:
        assert set(record.get("features", ())) <= set(rest.tolist())


class OfAUser(bs.HotellingDeflation):
    """A scheme that the format does not know."""


def test_components_that_cannot_be_recorded_are_refused():
    with pytest.raises(NotRecordable, match="DisjointSupports"):
        bs.solve_components(FIVE, 2, 2, scheme=OfAUser(), proof=True)
    with pytest.raises(ValueError, match="proof=True to solve_components"):
        bs.solve_components(FIVE, 2, 1).write_proof("never.proof")
    one = bs.solve_components(FIVE, 2, 1, scheme=bs.ResidualDeflation(), proof=True)
    assert len(one.proof.sections) == 1


def test_kernels_are_loaded_before_the_clock_starts(monkeypatch):
    """The prover of a single k needs none of them, and loading takes a second."""
    order = []
    monkeypatch.setattr(proof_log, "load", lambda *names: order.append(names))
    monkeypatch.setattr(
        proof_log, "Budget", lambda *given: order.append("clock") or Budget(*given)
    )
    bs.solve(FIVE, 2, proof=True).proof.to_text()
    assert order == [("rowtops", "screen", "tree_log"), "clock"]


SOLVES = {
    "result": lambda A: bs.solve(A, 2, proof=True),
    "path": lambda A: bs.solve_path(A, 2, proof=True),
    "components": lambda A: bs.solve_components(A, 1, 2, proof=True),
}


@pytest.mark.parametrize("what", SOLVES)
def test_a_proof_is_written_when_somebody_looks_and_once(monkeypatch, tmp_path, what):
    """The provers pay nothing for it, and what stops the writing loses nothing."""
    calls, record = [], proof_log.record_proof

    def stopped(*given: Any) -> None:
        raise calls.pop()

    monkeypatch.setattr(proof_log, "record_proof", stopped)
    found = SOLVES[what](np.diag([3.0, 2.0, 1.0]) + 0.5)
    for reason in (NoTimeToRecord("too late."), KeyboardInterrupt()):
        calls.append(reason)
        with pytest.raises(type(reason)):
            found.write_proof(tmp_path / "a.proof")
    monkeypatch.setattr(
        proof_log, "record_proof", lambda *given: calls.append(1) or record(*given)
    )
    text = found.write_proof(tmp_path / "a.proof").read_text()
    made = len(calls)
    assert made > 0
    assert (
        text
        == found.proof.to_text()
        == pickle.loads(pickle.dumps(found.proof)).to_text()
    )
    assert found.proof == replace(found.proof, message="")
    assert len(calls) == made


def test_a_proof_takes_its_place_whole_or_not_at_all(monkeypatch, tmp_path):
    target, link = tmp_path / "a.proof", tmp_path / "link.proof"
    result = bs.solve(FIVE, 2, proof=True)
    target.write_text("of yesterday")
    link.symlink_to(target)

    def stopped(_handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", stopped)
        with pytest.raises(KeyboardInterrupt):
            result.write_proof(target)
    assert target.read_text() == "of yesterday"
    assert sorted(tmp_path.iterdir()) == [target, link]
    result.write_proof(link)
    assert link.is_symlink()
    assert target.read_text() == result.proof.to_text()
    assert sorted(tmp_path.iterdir()) == [target, link]


def test_a_result_is_pickled_with_its_proof_and_without_the_data():
    rng = np.random.default_rng(0)
    result = bs.solve(np.cov(rng.standard_normal((9, 300)).T), 2, proof=True)
    held = pickle.dumps(result)
    assert len(held) < 300 * 300
    assert pickle.loads(held).proof.to_text() == result.proof.to_text()


def test_a_result_whose_proof_cannot_be_written_is_pickled_without_it(tmp_path):
    late = Proof.deferred(lambda: (_ for _ in ()).throw(NoTimeToRecord("too late.")))
    result = pickle.loads(pickle.dumps(replace(bs.solve(FIVE, 2), proof=late)))
    assert bs.verify(result, FIVE).complete
    with pytest.raises(ValueError, match=r"no proof to write: too late\."):
        result.write_proof(tmp_path / "a.proof")
    assert not (tmp_path / "a.proof").exists()


def test_verify_checks_the_certificate_where_no_proof_is_written_in_time():
    late = Proof.deferred(lambda: (_ for _ in ()).throw(NoTimeToRecord("too late.")))
    result = replace(bs.solve(FIVE, 2), proof=late)
    check = bs.verify(result, FIVE)
    assert check.complete
    assert "replayed" not in " ".join(check.checks)
    with pytest.raises(AttributeError, match="nothing"):
        late.nothing  # noqa: B018
