"""The direction dual's columns and sums, in all coordinates and in a space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca._kernels.sparse_columns import add_gram, quadratic_forms
from blockspca.bounds.direction_dual.columns import (
    DenseColumns,
    SparseColumns,
    sparse_columns,
)
from blockspca.bounds.direction_dual.coordinates import Coordinates
from blockspca.bounds.direction_dual.density import Sector
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.bounds.direction_dual.relaxation import relax
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling, is_below
from dual_problems import Optimum, direction_bound, mean, random_density


@pytest.mark.parametrize("r", [1, 3, 6])
def test_the_sum_is_that_of_the_best_directions(r: int) -> None:
    rng = np.random.default_rng(r)
    n, p, multiplier = 6, 15, 2.0
    C = rng.standard_normal((n, p))
    density = random_density(n, r, rng)
    X = (density.Q * density.weights) @ density.Q.T
    X += density.rest * (np.eye(n) - density.Q @ density.Q.T)
    assert np.trace(X) == pytest.approx(1.0)
    found = relax(DenseColumns(C), density, multiplier)
    assert found is not None
    total, value = np.zeros((n, n)), 0.0
    for i in range(p):
        c = C[:, i]
        norm = c @ c
        if norm <= multiplier:
            assert found.D[i] == found.mu[i] == found.relaxed_z[i] == 0
            continue
        mu = found.mu[i]
        z = np.linalg.solve(mu * np.eye(n) + multiplier * X, c)
        assert c @ X @ z == pytest.approx(1.0, rel=1e-6)
        z /= np.linalg.norm(z)
        kappa = multiplier * (norm - multiplier) / (multiplier - norm + (c @ z) ** 2)
        total += kappa * np.outer(z, z)
        value += mu
        assert mu == pytest.approx(kappa * z @ X @ z, rel=1e-5)
    np.testing.assert_allclose(found.total, total, rtol=1e-6, atol=1e-8)
    assert np.trace(found.total @ X) == pytest.approx(value, rel=1e-5)
    assert np.trace(total) <= found.size
    again = relax(DenseColumns(C), density, multiplier, before=found)
    assert again is not None
    np.testing.assert_allclose(again.total, found.total, rtol=1e-5, atol=1e-6)
    assert relax(DenseColumns(C), density, multiplier, deadline=Deadline(0.0)) is None


def test_columns_whose_squares_underflow_are_taken_as_much() -> None:
    """‖c‖⁴ is below any number where ‖c‖² is 2⁻⁵⁸⁰: what is taken was 0/0."""
    rng = np.random.default_rng(0)
    C, density, unit = (
        rng.standard_normal((6, 15)),
        random_density(6, 3, rng),
        2.0**-290,
    )
    found = relax(DenseColumns(C), density, 2.0)
    small = relax(DenseColumns(C * unit), density, 2.0 * unit**2)
    assert found is not None
    assert small is not None
    assert small.is_finite
    np.testing.assert_array_equal(small.relaxed_z, found.relaxed_z)


def test_sparse_columns_are_dense_ones() -> None:
    rng = np.random.default_rng(1)
    X = sp.random_array((12, 20), density=0.3, random_state=rng).tocsc()
    factor = rng.gamma(2.0, size=20)
    mean = np.asarray(X.mean(axis=0)).ravel()
    index = np.array([3, 1, 17, 8, 9])
    C = ((X.toarray() - mean) * factor)[:, index]
    dense = DenseColumns(C)
    sparse = sparse_columns(X, mean, factor, index, dense.norms)
    Q, S = rng.standard_normal((12, 3)), rng.standard_normal((12, 12))
    weights = np.array([0.5, 0.0, 2.0, 1.0, 3.0])
    pairs = [(dense, sparse), (dense.take([4, 0]), sparse.take([4, 0]))]
    for one, other in [*pairs, (dense.head(3), sparse.head(3))]:
        assert one.shape == other.shape
        p = one.shape[1]
        np.testing.assert_allclose(one.project(Q), other.project(Q), atol=1e-12)
        W = rng.standard_normal((p, 2))
        np.testing.assert_allclose(one.combine(W), other.combine(W), atol=1e-12)
        gram = one.gram(weights[:p])
        np.testing.assert_allclose(gram, other.gram(weights[:p]), atol=1e-12)
        np.testing.assert_allclose(gram, (one.C * weights[:p]) @ one.C.T, atol=1e-12)
        np.testing.assert_allclose(one.forms(S + S.T), other.forms(S + S.T), atol=1e-12)
        assert (other.sizes >= one.sizes * (1 - 1e-12)).all()
    assert np.shares_memory(sparse.head(2).Y.data, sparse.Y.data)


def test_a_sparse_sum_is_the_dense_one_tile_by_tile() -> None:
    rng = np.random.default_rng(4)
    Y = sp.random_array((70, 9), density=0.3, format="csc", random_state=rng)
    Y.indptr, Y.indices = Y.indptr.astype(np.int32), Y.indices.astype(np.int32)
    Y.sort_indices()
    weights, shift = rng.random(9) * ([1, 1, 0] * 3), rng.standard_normal(70)
    expected = (Y.toarray() * weights) @ Y.toarray().T - np.add.outer(shift, shift)
    for gram in (add_gram, add_gram.py_func):
        total = np.zeros((70, 70))
        gram(Y.indptr, Y.indices, Y.data, weights, shift, total)
        np.testing.assert_allclose(total, expected, atol=1e-12)
    S = rng.standard_normal((70, 70))
    S += S.T
    expected = np.einsum("ij,ik,kj->j", Y.toarray(), S, Y.toarray())
    for forms in (quadratic_forms, quadratic_forms.py_func):
        found = np.zeros(9)
        forms(Y.indptr, Y.indices, Y.data, S, found)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_sparse_data_stay_sparse_unless_their_means_are_large() -> None:
    rng = np.random.default_rng(2)
    X = sp.random_array((15, 40), density=0.2, random_state=rng).tolil()
    X[0, :] = 1.0
    cov = Covariance.from_data(X.tocsr())
    problem = make_problem(cov, 3, None, short=True)
    assert problem is not None
    assert isinstance(problem.columns, SparseColumns)
    large = rng.normal(size=(3000, 40)) + 1e6
    np.fill_diagonal(large, 0)  # a column without a zero is shifted, and stays sparse
    cov = Covariance.from_data(sp.csr_array(large))
    problem = make_problem(cov, 3, None, short=True)
    assert problem is not None
    assert isinstance(problem.columns, DenseColumns)


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.05, 1.2),
    r=st.integers(1, 6),
)
def test_the_sum_bounds_the_optimum_at_any_density(
    k: int, seed: int, share: float, r: int, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((6, 9)) * rng.gamma(1.0, size=9)
    columns = DenseColumns(C)
    multiplier = share * float(columns.norms.max())
    found = relax(columns, random_density(6, r, rng), multiplier)
    assert found is not None
    value = k * multiplier + np.linalg.eigvalsh(found.total)[-1]
    optimum = brute_force(C.T @ C, k)
    assert value >= optimum * (1 - 1e-12)
    directions = C.copy()
    directions[:, : found.H.shape[1]] += found.Q @ found.H
    plain = direction_bound(C, k, multiplier, directions)
    assert value == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("fixed", [0, 5])
@pytest.mark.parametrize("deflates", [False, True])
def test_sums_within_a_space(fixed: int, deflates: bool) -> None:
    """V'MV and the trace of M, from V'C alone, are those of the whole."""
    rng = np.random.default_rng(fixed)
    n, p, s = 30, 40, 9
    columns = DenseColumns(rng.standard_normal((n, p)))
    chosen = DenseColumns(rng.standard_normal((n, fixed))) if fixed else None
    space = np.linalg.qr(rng.standard_normal((n, s)))[0]
    density = random_density(s, 3, rng)
    density = replace(density, Q=space @ density.Q, rest=0.2 * density.rest)
    sector = Sector(space @ rng.standard_normal(s), space @ rng.standard_normal(s))
    q = space @ rng.standard_normal(s) if deflates else None
    whole = Coordinates(columns, chosen, [sector], deflation=q)
    inner = whole.within(space)
    seen = density.to_subspace(space)
    assert seen.order == n
    np.testing.assert_allclose(seen.from_subspace(space).Q, density.Q, atol=1e-12)
    multiplier = 0.8 * float(np.median(columns.norms))
    found, within = (
        relax(columns, density, multiplier),
        relax(inner.active, seen, multiplier),
    )
    assert found is not None
    assert within is not None
    M = found.total
    if chosen is not None:
        M = M + chosen.C @ chosen.C.T
    if q is not None:
        M = M - np.outer(q, q)
    total, trace = inner.sum(within)
    assert total == pytest.approx(space.T @ M @ space, rel=1e-9, abs=1e-9)
    assert trace == pytest.approx(np.trace(M))
    assert inner.sectors[0].matrix() == pytest.approx(space.T @ sector.matrix() @ space)
    expected = mean(density, M - found.total)
    assert inner.fixed_mean(seen) == pytest.approx(expected, abs=1e-12)


def test_a_bound_on_the_largest_eigenvalue_is_proved_by_cholesky() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        B = rng.standard_normal((n, n))
        B = B + B.T
        top = float(np.linalg.eigvalsh(B)[-1])
        margin = 1e-9 * float(np.abs(B).sum())
        assert is_below(B, top + margin)
        assert not is_below(B, top - margin)
        for estimate in (top, 0.9 * top, 1.1 * top, -10.0):
            ceiling = eigenvalue_ceiling(B, estimate)
            assert ceiling >= top - margin
            if estimate == top:
                assert ceiling == pytest.approx(top, rel=1e-5, abs=1e-5)
        for estimate in (np.nan, np.inf, -np.inf):
            assert eigenvalue_ceiling(B, estimate) == eigenvalue_ceiling(B)
        assert not is_below(B, np.nan)
        B[0, 0] = np.nan
        assert not is_below(B, 1e9)
