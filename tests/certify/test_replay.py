"""`verify` replays the proof of a result, if it has one and the data are at hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
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
