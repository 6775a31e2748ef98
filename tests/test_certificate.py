"""Certificates as text: read strictly, in both versions, with the gap asked for."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.certify.claims import BoundChecks


@pytest.fixture(scope="module")
def A() -> np.ndarray:
    return zoo.graded(30)


@pytest.fixture(scope="module")
def result(A) -> bs.Result:
    return bs.solve(A, 5)


def test_json_in_and_out(result, A):
    text = result.certificate.to_json()
    again = bs.Certificate.from_json(text)
    assert again == result.certificate
    assert bs.verify(again, A).complete


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(format="other"), "format 'other'"),
        (lambda c: c.update(version=99), "version 99"),
        (lambda c: c.update(extra=1), "unknown fields"),
        (lambda c: c.pop("objective"), "objective is missing"),
        (lambda c: c.update(objective="7"), "wrong type"),
        (lambda c: c.update(objective=float("nan")), "not a number"),
        (lambda c: c.update(k=0), "below 1"),
        (lambda c: c.update(k=True), "wrong type"),
        (lambda c: c.update(n_features=2), "do not go together"),
        (lambda c: c.update(status="certain"), "not a status"),
        (lambda c: c.update(support=[1.5]), "list of integers"),
        (lambda c: c.update(support=[3, 1]), "loadings"),
        (lambda c: c.update(loadings=["a"]), "list of numbers"),
        (lambda c: c["support"].reverse(), "ascend"),
        (lambda c: c["support"].__setitem__(-1, 10**6), "ascend"),
        (lambda c: c["steps"].pop(), "steps must lead up"),
        (lambda c: c["steps"].append({}), r"steps\[5\].*missing"),
        (lambda c: c["steps"][0].update(surprise=1), "unknown fields"),
        (lambda c: c["steps"][0]["statistics"].update(nodes=0.5), "not an integer"),
        (lambda c: c.update(steps=None), "wrong type"),
    ],
)
def test_strict_parsing(result, change, words):
    content = json.loads(result.certificate.to_json())
    change(content)
    with pytest.raises(ValueError, match=words):
        bs.Certificate.from_json(json.dumps(content))


def test_text_that_is_no_certificate():
    for text in ("", "[]", "{", "null", "[" * 100_000):
        with pytest.raises(ValueError, match="certificate"):
            bs.Certificate.from_json(text)


VERSION_1 = """{"format": "blockspca-certificate", "version": 1, "k": 2,
"n_features": 3, "support": [0, 1],
"loadings": [0.7071067811865475, 0.7071067811865475],
"objective": 3.0000000000000004, "upper_bound": 3.000000001500024,
"status": "optimal", "tolerance": 3.0000000000000004e-09, "steps": [
{"k": 1, "upper_bound": 2.5, "bound_name": "variances", "tau": null,
"upper_previous": null, "survivors": [], "statistics": {"nodes": 0}},
{"k": 2, "upper_bound": 3.000000001500024, "bound_name": "proof tree",
"tau": 3.0000000015, "upper_previous": 2.5, "survivors": [0, 1],
"statistics": {"nodes": 0, "leaves": 1}}], "component": 1, "scheme": ""}"""
SMALL = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])


def test_certificates_of_version_1_are_read():
    certificate = bs.Certificate.from_json(VERSION_1)
    assert (certificate.version, certificate.gap) == (1, None)
    assert bs.verify(certificate, SMALL).complete
    assert json.loads(certificate.to_json()) == json.loads(VERSION_1)
    limited = bs.Certificate.from_json(VERSION_1.replace("optimal", "gap_limit"))
    outcome = bs.verify(limited, SMALL)
    assert not outcome.complete
    assert "does not say which gap" in outcome.unchecked[0]
    with pytest.raises(ValueError, match=r"unknown fields.*gap"):
        bs.Certificate.from_json(VERSION_1.replace('"k": 2,', '"gap": 1, "k": 2,', 1))
    with pytest.raises(ValueError, match="status is optimal, but"):
        bs.Certificate.from_json(
            VERSION_1.replace('"upper_bound": 3.000000001500024', '"upper_bound": 3.1')
        )


def with_bound(certificate: bs.Certificate, name: BoundName) -> bs.Certificate:
    *before, last = certificate.steps
    return replace(certificate, steps=(*before, replace(last, bound_name=name)))


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("name", [BoundName.TARGET, BoundName.COMPOSITIONS])
def test_claims_that_earlier_releases_do_not_know_have_a_version_of_their_own(
    A, constrained, name
):
    """Earlier releases then say that they cannot read it, not that it is damaged."""
    rules = bs.Constraints(include=[3]) if constrained else None
    before = bs.solve(A, 4, constraints=rules).certificate
    assert before.version == (4 if constrained else 3)
    later = with_bound(before, name)
    content = json.loads(later.to_json())
    assert content["version"] == later.version == 5
    assert bs.Certificate.from_json(later.to_json()) == later
    # Written by a release in between, with the number of the version before.
    content["version"] = before.version
    if not constrained:
        del content["constraints"], content["parts"]
    assert bs.Certificate.from_json(json.dumps(content)) == later


def test_constraints_go_with_their_parts_and_version(A):
    rules = bs.Constraints(include=[3])
    content = json.loads(bs.solve(A, 4, constraints=rules).certificate.to_json())
    for change in ({"constraints": None}, {"parts": []}):
        for version in (4, 5):
            text = json.dumps(content | change | {"version": version})
            with pytest.raises(ValueError, match="constraints and their parts"):
                bs.Certificate.from_json(text)
    text = json.dumps(content | {"constraints": None, "parts": []})
    with pytest.raises(ValueError, match="constraints and their parts"):
        bs.Certificate.from_json(text)


def limited_result() -> tuple[bs.Result, np.ndarray]:
    A, _ = bs.datasets.noisy_blocks(n_blocks=6, block_size=20, rng=3)
    result = bs.solve(A, 6, limits=bs.Limits(gap=0.3))
    assert result.status is bs.Status.GAP_LIMIT
    return result, A


def test_the_gap_that_was_asked_for_is_checked():
    result, A = limited_result()
    certificate = result.certificate
    assert certificate.gap == 0.3
    assert bs.verify(result, A).complete
    again = bs.Certificate.from_json(certificate.to_json())
    assert again == certificate
    for gap in (0.0, 0.9 * result.gap, result.gap * (1 - 1e-12)):
        with pytest.raises(bs.VerificationError, match="status is gap_limit"):
            bs.verify(replace(certificate, gap=gap), A)
    for gap, words in ((None, "no gap was asked"), (-0.1, "gap"), (np.nan, "gap")):
        with pytest.raises(bs.VerificationError, match=words):
            bs.verify(replace(certificate, gap=gap), A)


def test_no_result_is_optimal_with_a_gap(result):
    for share in (1.1e-6, 1e-5, 0.33, np.inf):
        loose = result.objective * (1 + share)
        with pytest.raises(ValueError, match="status is optimal, but"):
            replace(result, upper_bound=loose)
        with pytest.raises(ValueError, match="status is optimal, but"):
            replace(result.certificate, upper_bound=loose).check()
    with pytest.raises(ValueError, match="status is optimal, but"):
        replace(result, upper_bound=result.objective * (1 - 1e-12))


def test_every_bound_has_a_text_and_a_check() -> None:
    """A bound that `verify` or the report does not know would be found by a user."""
    checks = BoundChecks(bs.Covariance.from_matrix(np.eye(3)), 2, (0, 1), 1, None)
    # Blocks are solved without a certificate; the path then proves a bound of its own.
    # Constraints are checked part by part (`certify/part_checks.py`).
    # Those of several components together are not in certificates of one.
    elsewhere = {
        BoundName.BLOCKS,
        BoundName.CONSTRAINED,
        BoundName.COMPONENTS,
        BoundName.EIGENVALUES,
        BoundName.SHARED_SUPPORT,
        BoundName.SPLIT_ENTRY_DUAL,
        BoundName.SCREENING_TABLE,
        BoundName.BRANCH_AND_BOUND,
        BoundName.ENUMERATION,
    }
    assert set(checks.by_name) == set(BoundName) - elsewhere
    texts = {BoundName.text_of(name.value) for name in BoundName}
    assert len(texts) == len(BoundName)
    assert not texts & {name.value for name in BoundName}
    assert BoundName.text_of("a bound of tomorrow") == "a bound of tomorrow"


def test_names_of_bounds_are_text_in_files() -> None:
    """Certificates and tables hold the value, which other programs can read."""
    A = np.cov(np.random.default_rng(0).normal(size=(9, 20)))
    certificate = bs.solve(A, 3).certificate
    written = json.loads(certificate.to_json())["steps"][0]["bound_name"]
    assert written == "variances" == str(certificate.steps[0].bound_name)
    assert BoundName(written) is BoundName.VARIANCES
