"""The leading eigenvector, also where LAPACK or ARPACK come back empty."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse.linalg
from scipy.sparse.linalg._eigen.arpack import arpack

import blockspca as bs
from blockspca.numerics import linalg as vectors
from blockspca.numerics.linalg import leading_eigenvector, symmetric_eigenvalues
from strategies import symmetric_matrix


def test_eigenvalues_that_differ_by_ulps():
    # An iterate of a semidefinite relaxation: three eigenvalues of 1/3, within rounding
    A = np.zeros((4, 4))
    A[0, 0] = 0.33333333333333415
    A[1, 1] = 1.6434602192104395e-32
    A[2, 1] = A[1, 2] = -7.400402612281691e-17
    A[3, 1] = A[1, 3] = 1.2668260791804486e-18
    A[2, 2] = 0.333333333333333
    A[3, 2] = A[2, 3] = -1.2391459093532902e-16
    A[3, 3] = 0.3333333333333328
    x = leading_eigenvector(A)
    assert np.linalg.norm(x) == pytest.approx(1)
    assert x @ A @ x == pytest.approx(1 / 3)


def test_lanczos_from_large_on(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    matrices = [X.T @ X, X[:40] + X[:40].T, np.eye(40), np.zeros((40, 40)), -X.T @ X]
    exact = [vectors.leading_eigenvector(A) for A in matrices]
    monkeypatch.setattr(vectors, "LARGE", 5)
    for A, x in zip(matrices, exact, strict=True):
        y = vectors.leading_eigenvector(A)
        assert np.linalg.norm(y) == pytest.approx(1)
        assert y @ A @ y == pytest.approx(x @ A @ x, rel=1e-10, abs=1e-10)


def test_without_convergence_all_eigenvalues_are_computed(monkeypatch):
    from scipy.sparse import linalg

    def fail(*arguments, **options):
        raise linalg.ArpackNoConvergence("no", [], [])

    A = np.diag([1.0, 3.0, 2.0, 0.0, 0.0, 0.0])
    monkeypatch.setattr(vectors, "LARGE", 5)
    monkeypatch.setattr(linalg, "eigsh", fail)
    assert vectors.leading_eigenvector(A).tolist() == [0, 1, 0, 0, 0, 0]


def test_no_bound_rests_on_an_iterative_method(monkeypatch):
    """Lanczos' method may end at another eigenvector: bounds must not notice."""

    def second(A):
        return np.linalg.eigh(A)[1][:, -2]

    X = np.random.default_rng(1).normal(size=(40, 12))
    A = np.cov(X.T)
    optimum = np.linalg.eigvalsh(A[:, :])[-1]
    monkeypatch.setattr(vectors, "LARGE", 2)
    monkeypatch.setattr(vectors, "_by_lanczos", second)
    for certify in (True, False):
        result = bs.solve(A, 12, certify=certify)
        assert result.upper_bound >= optimum
    for k in (3, 6):
        best = max(
            np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
            for S in itertools.combinations(range(12), k)
        )
        for cov in (A, bs.Covariance.from_data(X)):
            assert bs.solve(cov, k).upper_bound >= best * (1 - 1e-12)
            path = bs.solve_path(cov, k, limits=bs.Limits(nodes=1))
            assert path[k].upper_bound >= best * (1 - 1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 30])
def test_rough_eigenpair(d):
    A = symmetric_matrix("indefinite", d, np.random.default_rng(d))
    value, x = vectors.rough_eigenpair(A.dot, np.ones(d), 1e-8)
    expected = np.linalg.eigvalsh(A)[-1]
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert x @ A @ x == pytest.approx(expected * (x @ x), rel=1e-6, abs=1e-9)


def test_rough_eigenpair_of_what_arpack_refuses_is_the_start():
    start = np.ones(6)
    value, x = vectors.rough_eigenpair(np.zeros_like, start, 1e-4)
    assert value == 0.0
    assert np.linalg.norm(x) > 0


def test_a_multiple_largest_eigenvalue_of_a_matrix_is_left_to_lapack(monkeypatch):
    """ARPACK does not tell its vectors apart: its own limit is a hundred times d."""
    products = []
    aslinearoperator = scipy.sparse.linalg.aslinearoperator

    def counted(A):
        operator = aslinearoperator(A)
        return scipy.sparse.linalg.LinearOperator(
            operator.shape,
            matvec=lambda x: products.append(1) or operator.matvec(x),
            dtype=np.float64,
        )

    monkeypatch.setattr(arpack, "aslinearoperator", counted)
    for seed in range(4):  # it converges on some, by luck
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((60, 300))
        C /= np.linalg.norm(C, axis=0)
        vectors.lanczos(-C.T @ C, rng.standard_normal(300))  # 240 times 0
    assert 0 < len(products) < 4 * 2 * 300


def test_eigenvalues_beside_entries_whose_squares_underflow():
    """LAPACK, asked for no eigenvectors, is off by 0.28 of the largest entry."""
    a, b, c = 8.9e-162, 1.1e-161, 8.7e-165
    A = np.array(
        [
            [1.0, c, c / 1000, a, 0.75, -a],
            [c, b, 0.75, 1.2345678, -a, -1.0],
            [c / 1000, 0.75, 0.0, 0.0, c, 0.0],
            [a, 1.2345678, 0.0, -a, c, c],
            [0.75, -a, c, c, -c / 1000, a],
            [-a, -1.0, 0.0, c, a, b],
        ]
    )
    rng = np.random.default_rng(0)
    for _ in range(200):
        order, sizes = rng.permutation(6), rng.uniform(0.2, 5.0, size=(6, 6))
        B = A * np.minimum(sizes, sizes.T)
        B = (B + B.T)[np.ix_(order, order)]
        plain = np.where(np.abs(B) < 1e-100, 0.0, B)
        expected = np.linalg.eigh(plain)[0]
        np.testing.assert_allclose(symmetric_eigenvalues(B), expected, atol=1e-13)
        both = symmetric_eigenvalues(np.array([B, plain]))
        np.testing.assert_allclose(both, [expected, expected], atol=1e-13)


def test_eigenvalues_where_products_of_entries_are_as_small():
    """Entries of 1e-30 are enough: the tridiagonal form has products of them."""
    f = 3.1554436208840472e-30
    entries = [
        *((0, 0, -f), (1, 0, -1.0), (10, 0, f), (1, 1, 2 * f), (4, 1, 2.0)),
        *((5, 1, 3 * f), (9, 1, -f), (3, 2, f), (4, 2, -2 * f), (6, 3, -3 * f)),
        *((7, 3, 2.0), (4, 4, 2 * f), (7, 4, f), (9, 4, -3.0), (9, 5, -2 * f)),
        *((10, 6, -f), (9, 9, -3 * f)),
    ]
    A = np.zeros((11, 11))
    for i, j, value in entries:
        A[i, j] = A[j, i] = value
    values = symmetric_eigenvalues(A)
    assert (values**2).sum() == pytest.approx((A**2).sum(), rel=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_one_lanczos_for_vectors_and_for_estimates(scale):
    X = np.random.default_rng(3).normal(size=(400, 320)) * np.geomspace(1, 9, 320)
    A = scale * np.cov(X.T)
    size, value, x = vectors.largest_by_lanczos(A)
    assert size == np.abs(A).max()
    assert value * size == pytest.approx(np.linalg.eigvalsh(A / scale)[-1] * scale)
    assert np.array_equal(vectors.with_sign(x), vectors.leading_eigenvector(A))


def test_lanczos_has_nothing_to_say_of_zero_and_infinity():
    for A in (np.zeros((320, 320)), np.full((320, 320), np.inf)):
        assert vectors.largest_by_lanczos(A) is None
