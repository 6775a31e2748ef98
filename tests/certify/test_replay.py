"""`verify` replays the proof of a result, if it has one and the data are at hand."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import zoo
from blockspca.certify.proof_records import Recording
from blockspca.checker.check import check_proof
from blockspca.checker.proof_file import ProofError
from blockspca.covariance.origin import data_sha256
from blockspca.proof_file import Proof

X = np.random.default_rng(2).poisson(1.0, size=(30, 12)).astype(float)
REPLAYED = "by the proof, replayed"


def said(result: bs.Result, cov: bs.Covariance, data: object = None) -> str:
    check = bs.verify(result, cov, data=data)
    assert check.complete
    return str(check)


def test_matrix_and_sparse_data_are_at_hand():
    A = np.cov(X.T)
    assert REPLAYED in said(bs.solve(A, 3, proof=True), bs.Covariance.from_matrix(A))
    cov = bs.Covariance.from_data(sp.csr_matrix(X))
    assert REPLAYED in said(bs.solve(cov, 3, proof=True), cov)
    assert REPLAYED not in said(bs.solve(cov, 3), cov)


def test_dense_data_have_to_be_passed():
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 3, proof=True)
    assert REPLAYED not in said(result, cov)
    assert REPLAYED in said(result, cov, X)
    with pytest.raises(bs.VerificationError, match="other data"):
        bs.verify(result, cov, data=X + 1)


def test_proof_of_less_is_not_enough():
    A = np.cov(X.T)
    cov = bs.Covariance.from_matrix(A)
    better, worse = bs.solve(cov, 3, proof=True), bs.solve(cov, 2, proof=True)
    # the proof of another k holds, and says nothing about this one
    assert REPLAYED not in said(replace(better, proof=worse.proof), cov)
    (section,) = better.proof.sections
    claim = {**section.header["claims"][0], "upper_bound": (1.0).hex()}
    forged = replace(section, header={**section.header, "claims": [claim]})
    with pytest.raises(bs.VerificationError, match="does not hold"):
        bs.verify(replace(better, proof=Proof((forged,))), cov)


@pytest.fixture
def unshown(monkeypatch: pytest.MonkeyPatch) -> tuple[bs.Result, bs.Covariance]:
    """A proof of our own that is written wrong: its records are below the truth."""
    raised = Recording._raised
    monkeypatch.setattr(
        Recording, "_raised", lambda self, k, value: 2 * value - raised(self, k, value)
    )
    cov = bs.Covariance.from_matrix(zoo.problem(24, 4, 9).A)
    rules = bs.Constraints(include=[1])
    return bs.solve(cov, 3, constraints=rules, proof=True), cov


def test_our_own_proof_that_is_not_followed_leaves_the_certificate(unshown):
    result, cov = unshown
    for one in (result, pickle.loads(pickle.dumps(result))):
        with pytest.raises(ProofError, match="U is below"):
            check_proof(one.proof.to_text().encode(), zoo.problem(24, 4, 9).A)
        check = bs.verify(one, cov)
        assert any("does not show the bound" in words for words in check.checks)
        assert REPLAYED not in str(check)
        without = bs.verify(replace(one, proof=None), cov)
        assert check.upper_bound == without.upper_bound
        assert check.unchecked == without.unchecked


def test_what_is_false_is_refused_also_with_our_own_proof(unshown):
    """Other data, and a bound that the certificate does not have; or others' proofs."""
    result, cov = unshown
    made = Proof(result.proof.sections)
    with pytest.raises(bs.VerificationError, match="does not hold"):
        bs.verify(replace(result, proof=made), cov)
    with pytest.raises(bs.VerificationError, match="other data"):
        bs.verify(result, cov, data=2 * zoo.problem(24, 4, 9).A)


def test_a_proof_of_entries_far_above_the_values_holds_and_says_that_it_shows_less():
    A = zoo.problem(24, 4, 9).A
    rules = bs.Constraints(include=[1])
    result = bs.solve(A, 3, constraints=rules, proof=True)
    check_proof(result.proof.to_text().encode(), A)
    assert result.proof.message.startswith("k = 3: the proof shows at most")


def test_a_proof_of_another_matrix_proves_nothing_of_this_one():
    """The data are those of the proof; what was made of them is not."""
    half = np.random.default_rng(0).integers(-3, 4, size=(10, 4)).astype(float)
    X = np.vstack([half, -half])  # means of exactly 0
    X = np.hstack([X, 100 + np.tile([[0.0], [1e-3]], (10, 1)) * np.array([[1, -1.0]])])
    result = bs.solve(bs.Covariance.from_data(X), 2, proof=True)
    with pytest.raises(bs.VerificationError):
        bs.verify(result, bs.Covariance.from_data(X, center=False), data=X)
    other = X.copy()
    other[:, 4] *= np.linspace(1, 50, 20)
    with pytest.raises(bs.VerificationError):
        bs.verify(result, bs.Covariance.from_data(other), data=X)
    assert bs.verify(result, bs.Covariance.from_data(X), data=X).complete


def test_a_proof_does_not_replace_the_check_of_constraints():
    A = np.cov(np.random.default_rng(1).normal(size=(30, 6)).T)
    free = bs.solve(A, 2, proof=True)
    rules = bs.Constraints(exclude=[int(free.support[0])])
    kept = bs.solve(A, 2, constraints=rules)
    said = free.certificate
    other = replace(
        kept.certificate,
        objective=said.objective,
        upper_bound=said.upper_bound,
        status=said.status,
        support=said.support,
        loadings=said.loadings,
        tolerance=said.tolerance,
    )
    claimed = replace(free, certificate=other, bound_name=other.bound_name)
    with pytest.raises(bs.VerificationError, match="is excluded"):
        bs.verify(claimed, A)


def test_a_small_column_beside_large_ones_is_not_constant():
    """Scaled by one power of two it is 0; its correlation with a large one is 1."""
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    X = np.stack([a * 1e200, b * 1e200, a * 1e-200], axis=1)
    still = X.copy()
    still[:, 2] = 0.0
    cov = bs.Covariance.from_data(still, scale=True, constant="ignore")
    false = bs.solve(cov, 2, proof=True).proof.to_text()
    false = false.replace(data_sha256(still), data_sha256(X))
    with pytest.raises(ProofError):
        check_proof(false.encode(), X)
    true = bs.solve(bs.Covariance.from_data(X, scale=True), 2, proof=True)
    assert true.objective == pytest.approx(2.0)
    check_proof(true.proof.to_text().encode(), X)
