"""Views of covariances: subset, low rank, raised, contrast, residual."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from blockspca.call import one_call
from blockspca.covariance import (
    Covariance,
    DataChangedError,
    contrastive,
    low_rank,
    raised,
    residual,
)
from exact import exact_covariance, worst_error

ALL = slice(None)


def data(seed, n=12, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return np.round(X * (rng.random((n, d)) < 0.7) * 64) / 64


BASES = {
    "matrix": lambda X: Covariance.from_matrix(np.cov(X.T)),
    "sparse matrix": lambda X: Covariance.from_matrix(sp.csr_array(np.cov(X.T))),
    "dense": Covariance.from_data,
    "float32": lambda X: Covariance.from_data(X.astype(np.float32)),
    "sparse": lambda X: Covariance.from_data(sp.csr_array(X)),
    "subset": lambda X: Covariance.from_data(np.hstack([X, X])).subset(range(6)),
    "wide subset": lambda X: Covariance.from_data(np.hstack([X] * 3)).subset(range(6)),
}


@pytest.fixture(params=list(BASES))
def base(request):
    return BASES[request.param](data(0))


def agree(view, A, n_jobs=2):
    """Check all methods of a view against its matrix."""
    d, tolerance = len(A), 1e-12 * np.abs(A).max() + view.entry_error
    everything = np.arange(d)
    np.testing.assert_allclose(view.submatrix(ALL), A, atol=tolerance)
    np.testing.assert_allclose(view.diagonal(), A.diagonal(), atol=tolerance)
    np.testing.assert_allclose(
        view.block([2, 0], [1, 3, 2]), A[[2, 0]][:, [1, 3, 2]], atol=tolerance
    )
    np.testing.assert_allclose(
        view.block(slice(1, 3), [4]), A[1:3, [4]], atol=tolerance
    )
    np.testing.assert_allclose(view.matvec(everything), A @ everything, atol=1e-11)
    assert view._source.largest() >= np.abs(A).max() - view.entry_error
    part = view.subset([3, 0, 4])
    np.testing.assert_allclose(
        part.submatrix([1, 2]), A[[0, 4]][:, [0, 4]], atol=tolerance
    )
    np.testing.assert_allclose(part.subset([2]).trace, A[4, 4], atol=tolerance)
    if view.factor is not None:
        C = view.factor.columns(everything)
        np.testing.assert_allclose(C.T @ C, A, atol=1e-11)
        assert view.factor.size * (1 + 1e-12) >= np.linalg.norm(C)
        v = everything + 1.0
        np.testing.assert_allclose(view.factor.gram(v), C * v @ C.T, atol=1e-10)
    with one_call(n_jobs=n_jobs) as run:
        for cov in (view, part):
            formed = cov.formed(run)
            assert formed.entry_error <= 3 * cov.entry_error + 1e-30
            np.testing.assert_allclose(
                formed.submatrix(ALL), cov.submatrix(ALL), atol=2 * tolerance
            )


def test_subset_has_the_entries_of_its_features(base):
    A = base.submatrix(ALL)
    index = np.array([5, 1, 3, 0, 2])
    agree(base.subset(index), A[index[:, None], index])


def test_low_rank_subtracts_both_terms(base):
    rng = np.random.default_rng(1)
    L, R = rng.normal(size=(2, 6, 2))
    view = low_rank(base, L, R)
    agree(view, base.submatrix(ALL) - L @ R.T - R @ L.T)
    assert not view.known_psd
    assert (view.submatrix(ALL) == view.submatrix(ALL).T).all()


def test_raised_keeps_the_diagonal_and_the_pairs(base):
    A = base.submatrix(ALL)
    i, j = np.argwhere((A < 0) & ~np.eye(6, dtype=bool))[0]
    expected = np.maximum(A, 0)
    expected[np.arange(6), np.arange(6)] = A.diagonal()
    agree(raised(base), expected)
    expected[i, j] = expected[j, i] = A[i, j]
    view = raised(base, [(int(j), int(i))])
    agree(view, expected)
    x = np.random.default_rng(0).random(6)
    assert x @ view.matvec(x) >= x @ base.matvec(x)


def test_contrast_subtracts_the_background(base):
    B = Covariance.from_data(data(1, n=4))
    A = base.submatrix(ALL) - 0.7 * B.submatrix(ALL)
    view = contrastive(base, B, 0.7)
    agree(view, A)
    assert view.target is base
    assert contrastive(base, B, 0) is base
    assert contrastive(base, -np.eye(6)).target is None
    agree(contrastive(base, np.eye(6), 2), base.submatrix(ALL) - 2 * np.eye(6))


def test_errors_of_contrasts_and_low_rank_views_are_within_the_bound():
    A, B = np.cov(data(6).T), np.cov(data(7).T)
    view = contrastive(A, B, 0.1)
    F, G, w = fractions(A), fractions(B), Fraction(0.1)
    exact = [[F[i][j] - w * G[i][j] for j in range(6)] for i in range(6)]
    assert 0 < worst_error(view.submatrix(ALL), exact) <= view.entry_error
    L = np.ones((6, 1))
    assert low_rank(view, L, L, error=0.5).entry_error > 0.5 + view.entry_error


def test_contrasts_of_other_features_are_refused():
    A = Covariance.from_matrix(np.eye(2), feature_names=["a", "b"])
    with pytest.raises(ValueError, match="3 features and must have 2"):
        contrastive(A, np.eye(3))
    B = Covariance.from_matrix(np.eye(2), feature_names=["a", "c"])
    with pytest.raises(ValueError, match="feature 1 is 'c' in background and must be"):
        contrastive(A, B)
    with pytest.raises(ValueError, match="weight = -1"):
        contrastive(A, A, -1)


def exact_product(*factors):
    result = factors[0]
    for factor in factors[1:]:
        columns = list(zip(*factor, strict=True))
        result = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
            for row in result
        ]
    return result


def fractions(M):
    return [[Fraction(float(v)) for v in row] for row in M]


def exact_left(A, V, W):
    """(I − VW)'A(I − VW), from matrices of fractions."""
    d = len(A)
    VW = exact_product(V, W)
    P = [[Fraction(i == j) - VW[i][j] for j in range(d)] for i in range(d)]
    return exact_product(list(map(list, zip(*P, strict=True))), A, P)


def components(seed, d=6, m=2):
    V = np.random.default_rng(seed).normal(size=(d, m))
    V[np.abs(V) < 0.5] = 0
    return V


def test_residual_is_what_regression_leaves(base):
    A, V = base.submatrix(ALL), components(2)
    view = residual(base, V)
    G = V.T @ A @ V
    agree(view, A - A @ V @ np.linalg.solve(G, V.T @ A))
    assert view.known_psd == base.known_psd
    assert residual(base, np.zeros((6, 1))) is base
    # A component twice, or one whose score depends on the others, changes nothing.
    again = residual(base, np.column_stack([V, V[:, 0], V @ [1, 2]]))
    np.testing.assert_allclose(again.submatrix(ALL), view.submatrix(ALL), atol=1e-10)
    # As does a residual of a residual: the scores of V have no variance left.
    twice = residual(residual(base, V[:, :1]), V[:, 1:])
    np.testing.assert_allclose(twice.submatrix(ALL), view.submatrix(ALL), atol=1e-10)


@given(st.integers(0, 10**6), st.sampled_from(["dense", "wide", "sparse", "matrix"]))
def test_errors_of_residuals_are_within_the_bound(seed, kind):
    rng = np.random.default_rng(seed)
    n = 4 if kind == "wide" else 9
    X = data(seed, n=n, d=5) * 2.0 ** rng.integers(-12, 3, size=5)
    if kind in ("dense", "wide"):  # means cost nothing there
        X = X + 2.0 ** rng.integers(0, 26, size=5)
    V = components(seed, 5, int(rng.integers(1, 4)))
    if seed % 3 == 0:  # scores that nearly depend on each other
        V = np.column_stack([V, V[:, 0] + 1e-7 * V[:, -1]])
    if not np.ptp(X, axis=0).any():
        return
    if kind == "matrix":
        cov = Covariance.from_matrix(np.cov(X.T))
        A = fractions(cov.submatrix(ALL))
    else:
        cov = Covariance.from_data(sp.csr_array(X) if kind == "sparse" else X)
        A = exact_covariance(X)
    W = coefficients_used(cov, V)
    if W is None:
        return
    view = residual(cov, V)
    left = exact_left(A, fractions(V), fractions(W))
    assert worst_error(view.submatrix(ALL), left) <= view.entry_error
    assert (
        view.entry_error <= 1e-11 * cov.diagonal().max() * max(1, np.abs(W).max()) ** 2
    )
    # The lemma: no other W leaves less than regression does.
    x = fractions([rng.normal(size=5)])
    other = fractions(W + 0.1 * rng.normal(size=W.shape))
    best = exact_product(x, left, list(zip(*x, strict=True)))[0][0]
    worse = exact_product(
        x, exact_left(A, fractions(V), other), list(zip(*x, strict=True))
    )[0][0]
    assert best <= worse + Fraction(1, 10**9) * (abs(worse) + A[0][0])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
@pytest.mark.parametrize("d", [40, 3])
def test_columns_of_factors_err_by_no_more_than_their_bound(kind, d):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(5, d)) * 64) / 64 + 2.0 ** rng.integers(0, 26, d)
    if kind is sp.csr_array:
        X = X % 16
    cov = Covariance.from_data(kind(X))
    error = 0.0
    for x, c in zip(X.T, cov.factor.columns(ALL).T, strict=True):
        exact = [Fraction(float(v)) for v in x]
        mean = sum(exact) / 5
        pairs = zip(c, exact, strict=True)
        off = [float(Fraction(float(v)) - (e - mean) / 2) for v, e in pairs]
        if cov._source.columns is not None:
            assert np.linalg.norm(off) <= cov._source.column_error
        error += np.linalg.norm(off) ** 2
    assert np.sqrt(error) <= cov.factor.error


def coefficients_used(cov, V):
    """Return the W that `residual` takes, from what it is documented to compute."""
    from blockspca.covariance.residual import coefficients

    used = np.flatnonzero(V.any(axis=1))
    if not len(used):
        return None
    P = cov._source.block(used, ALL).T @ V[used]
    G = V[used].T @ P[used]
    return coefficients((G + G.T) / 2, P).T


def test_views_use_a_matrix_that_has_been_formed():
    cov = Covariance.from_data(data(5))
    with one_call(n_jobs=1) as run:
        formed = cov.formed(run)
        for view in (cov.subset([0, 1]), raised(cov), residual(cov, components(0))):
            expected = view.submatrix(ALL)
            assert view.formed(run)._source.in_memory
            np.testing.assert_allclose(
                view.formed(run).submatrix(ALL), expected, atol=1e-12
            )
    part = cov.subset([2, 0])
    assert (part.submatrix(ALL) == formed.block([2, 0], [2, 0])).all()


def test_a_change_of_data_reaches_all_views():
    X, Y = data(3), data(4)
    cov, background = Covariance.from_data(X), Covariance.from_data(Y)
    views = [
        raised(cov),
        residual(cov, components(0)),
        cov.subset([0, 1]),
        contrastive(background, cov),
        contrastive(cov, background),
        residual(raised(contrastive(cov, background)).subset(range(6)), components(0)),
    ]
    for view in views:
        view.check_unchanged()
    X[0, 0] += 1
    for view in views:
        with pytest.raises(DataChangedError):
            view.check_unchanged()
