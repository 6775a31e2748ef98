"""Non-negative loadings on a set, and when there are none on all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify.nonnegative import has_both_signs, nonnegative_loadings

rng = np.random.default_rng(0)
NOISE = rng.normal(size=(5, 5))
A = NOISE + NOISE.T


@pytest.mark.parametrize("exponent", [-530, -30, 0, 30, 530])
def test_unit_vectors_at_every_scale(exponent: int) -> None:
    scaled = A * 2.0**exponent
    x = nonnegative_loadings(scaled)
    assert x.min() >= 0
    assert abs(np.linalg.norm(x) - 1) < 1e-15
    np.testing.assert_allclose(x, nonnegative_loadings(A), atol=1e-12)


def test_a_positive_matrix_has_its_leading_eigenvector() -> None:
    positive = np.abs(A)
    leading = np.abs(np.linalg.eigh(positive)[1][:, -1])
    np.testing.assert_allclose(nonnegative_loadings(positive), leading, atol=1e-12)


def test_signs_are_told_only_where_they_are_sure() -> None:
    def tell(A: np.ndarray) -> bool:
        return has_both_signs(bs.Covariance.from_matrix(A), np.arange(len(A)))

    assert tell(np.array([[1.0, -0.5], [-0.5, 1.0]]))
    assert not tell(np.array([[1.0, 0.5], [0.5, 1.0]]))
    assert not tell(np.eye(2))  # every vector is an eigenvector
    assert not tell(np.array([[1.0, -1e-17], [-1e-17, 1.0]]))
    assert not tell(np.ones((1, 1)))


MATRICES = (
    "normIonosphere",
    "normMiniBooNE",
    "normLung",
    "Eisen1Cov",
    "normCommunities",
    "Eisen2Cov",
    "snp500",
    "CovColon",
)


@pytest.mark.data
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_proved(name: str, data_dir: Path) -> None:
    with np.load(data_dir / f"{name}.npz") as file:
        cov = bs.Covariance.from_matrix(file["A"].astype(float))
    for k in (5, 10, 15):
        found = bs.solve(cov, k, constraints=bs.Constraints(nonnegative=True))
        assert found.status is bs.Status.OPTIMAL
        assert found.x.min() >= 0
