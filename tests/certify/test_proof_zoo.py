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


def spiked_data() -> np.ndarray:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20, 90)) * np.linspace(1.5, 0.7, 90)
    return X + 2 * rng.normal(size=(20, 1)) * (np.arange(90) < 30)


@pytest.mark.parametrize("gap", [None, 0.05])
def test_one_large_k_by_directions(gap):
    X = spiked_data()
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 32, limits=bs.Limits(gap=gap), proof=True)
    assert result.bound_name == "direction dual"
    (record,) = result.proof.sections[0].records
    assert record["rule"] == "direction"
    assert ("rounds" in record) == (gap is None)
    text = result.proof.to_text().encode()
    verdict = check_proof(text, X, floats=True)
    (claim,) = verdict.sections[0].claims
    assert is_optimal(claim) == (gap is None)
    assert claim.upper_bound <= (1 + (gap or 1e-9)) * claim.objective


def test_directions_for_a_bound_that_is_false_are_refused():
    from blockspca.checker.proof_file import ProofError

    X = spiked_data()
    result = bs.solve(bs.Covariance.from_data(X), 32, proof=True)
    (section,) = result.proof.sections
    (record,) = section.records
    below = (result.objective * (1 - 1e-7)).hex()
    header = {**section.header}
    header["claims"] = [{**claim, "upper_bound": below} for claim in header["claims"]]
    forged = type(section)(header, ({**record, "upper": below},))
    with pytest.raises(ProofError):
        check_proof(forged.to_text().encode(), X)
