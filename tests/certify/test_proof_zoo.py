"""Problems of the zoo: what is written is accepted by the checker.

In integers, and by default, where integers decide what floats cannot: values far below
the entries that they come from, as of a negative definite matrix.
"""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.checker.check import check_proof, is_optimal
from zoo import FAMILIES, SAMPLES, samples


def assert_checked(proof: bs.proof_file.Proof, Y: np.ndarray) -> None:
    text = proof.to_text().encode()
    for exact in (True, False):
        verdict = check_proof(text, Y, exact=exact)
        assert verdict.records == sum(len(s.records) for s in proof.sections)


@pytest.mark.parametrize("family", FAMILIES)
def test_matrices(family):
    rng = np.random.default_rng(7)
    A = FAMILIES[family](8, rng)
    A = (A + A.T) / 2
    path = bs.solve_path(A, 6, proof=True)
    assert path.proof.message == ""
    assert_checked(path.proof, A)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("center", [True, False])
def test_data(kind, center):
    X = samples(kind, np.random.default_rng(3))
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    cov = bs.Covariance.from_data(X, center=center)
    result = bs.solve(cov, 4, proof=True)
    assert_checked(result.proof, dense)
    components = bs.solve_components(cov, 2, 3, proof=True)
    assert_checked(components.proof, dense)


@pytest.mark.parametrize("seed", range(4))
def test_correlations(seed):
    X = np.random.default_rng(seed).normal(size=(11, 9))
    cov = bs.Covariance.from_data(X, scale=True)
    result = bs.solve(cov, 5, proof=True)
    verdict = check_proof(result.proof.to_text().encode(), X, exact=True)
    assert is_optimal(verdict.sections[0].claims[0])


def test_interrupted_run_is_accepted():
    X = np.random.default_rng(0).normal(size=(12, 40))
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 10, limits=bs.Limits(nodes=1), proof=True)
    assert result.status is not bs.Status.OPTIMAL
    assert_checked(result.proof, X)


def test_changed_data_are_refused():
    from blockspca.checker.proof_file import ProofError

    X = np.random.default_rng(0).normal(size=(12, 8))
    text = bs.solve(bs.Covariance.from_data(X), 3, proof=True).proof.to_text().encode()
    X[0, 0] = np.nextafter(X[0, 0], 2)
    with pytest.raises(ProofError, match="other data"):
        check_proof(text, X)
