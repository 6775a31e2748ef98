"""Derived matrices: every view agrees with the matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca import Covariance
from blockspca.covariance.derived import corrected, masked, projected, restricted

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 9))
GAPS = np.where(rng.random(X.shape) < 0.1, np.nan, X)
BASES = {
    "dense data": Covariance.from_data(X),
    "sparse data": Covariance.from_data(sp.csr_array(X)),
    "gaps": Covariance.from_data(GAPS, missing="pairwise"),
    "matrix": Covariance.from_matrix(np.cov(X.T), feature_names=list("abcdefghi")),
    "sparse matrix": Covariance.from_matrix(sp.csr_array(np.cov(X.T))),
}


@pytest.fixture(params=BASES.values(), ids=BASES.keys())
def base(request) -> Covariance:
    return request.param


def assert_agrees(
    view: Covariance, expected: np.ndarray, has_factor: bool | None = None
) -> None:
    """A matrix from data has a factor C with A = C'C, unless said otherwise."""
    d = len(expected)
    np.testing.assert_allclose(view.submatrix(slice(None)), expected, atol=1e-13)
    np.testing.assert_allclose(view.diagonal(), np.diagonal(expected), atol=1e-13)
    some = np.array([d - 1, 0, 2])
    np.testing.assert_allclose(view.submatrix(some), expected[np.ix_(some, some)])
    np.testing.assert_allclose(view.rows(some), expected[some], atol=1e-13)
    np.testing.assert_allclose(
        view.submatrix(some, slice(1, 4)), expected[some, 1:4], atol=1e-13
    )
    for x in (np.arange(d) / d, rng.normal(size=(d, 2))):
        np.testing.assert_allclose(view.matvec(x), expected @ x, atol=1e-12)
    assert view.max_abs() == pytest.approx(np.abs(expected).max())
    within = view.submatrix(some)
    np.testing.assert_allclose(within, within.T, rtol=1e-13)
    assert f"n_features={d}" in repr(view)
    if not (view.known_psd if has_factor is None else has_factor):
        with pytest.raises(ValueError, match="gram"):
            view.gram(np.ones(d))
        return
    gram = view.gram(np.ones(d))
    assert np.linalg.eigvalsh(gram)[-1] == pytest.approx(
        np.linalg.eigvalsh(expected)[-1]
    )


def test_restricted(base):
    keep = np.array([0, 2, 3, 7])
    A = base.submatrix(slice(None))
    view = restricted(base, keep)
    assert_agrees(view, A[np.ix_(keep, keep)])
    if base.feature_names:
        assert view.feature_names == ("a", "c", "d", "h")
    assert_agrees(
        restricted(view, np.array([0, 1, 3])), A[np.ix_([0, 2, 7], [0, 2, 7])]
    )


def test_masked(base):
    used = np.array([1, 4])
    expected = np.array(base.submatrix(slice(None)))
    rest = np.delete(np.diagonal(expected), used)
    expected[used] = 0
    expected[:, used] = 0
    expected[used, used] = 0 if base.known_psd else rest.min()
    assert_agrees(masked(base, used), expected)


def test_projected(base):
    Q = np.linalg.qr(rng.normal(size=(9, 2)))[0]
    P = np.eye(9) - Q @ Q.T
    expected = P @ base.submatrix(slice(None)) @ P
    has_factor = base is BASES["dense data"]  # sparse data would become dense
    assert_agrees(projected(base, Q, "projected"), expected, has_factor)


def test_corrected(base):
    L, R = rng.normal(size=(2, 9, 2))
    expected = base.submatrix(slice(None)) - L @ R.T - R @ L.T
    assert_agrees(corrected(base, L, R, psd=False, origin="corrected"), expected)


def test_roundings_grow_with_what_is_taken_away():
    """The error of a small difference is that of the large matrices."""
    spike = rng.normal(size=(12, 1)) * 1e4 @ np.ones((1, 9))
    cov = Covariance.from_data(sp.csr_array(X + spike))
    Q = np.full((9, 1), 1 / 3)
    view = projected(cov, Q, "projected")
    left_over = float(view.diagonal().max())
    assert left_over < 1e-5 * float(cov.diagonal().max())
    assert view.entry_error > cov.entry_error > 1e-12 * left_over


def test_a_projection_on_data_keeps_positive_semidefiniteness_known(base):
    Q = np.linalg.qr(rng.normal(size=(9, 1)))[0]
    assert projected(base, Q, "projected").known_psd == base.known_psd
