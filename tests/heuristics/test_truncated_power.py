"""Truncated power on a whole covariance, by products alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import blockspca as bs
import blockspca.heuristics.truncated_power as truncated_power_module
from blockspca.heuristics.truncated_power import (
    HITS,
    _lowest_eigenvalue,
    _most_of_row,
    _strong_rows,
    truncated_power,
)
from blockspca.limits import Deadline
from strategies import problems


@given(problem=problems(max_features=9))
@settings(deadline=None, max_examples=100)
def test_feasible_and_never_above_the_optimum(problem, brute_force):
    A, k = problem
    x = truncated_power(A, k).x
    assert np.count_nonzero(x) <= k
    assert np.linalg.norm(x) == pytest.approx(1)
    optimum = brute_force(A, k)
    assert x @ A @ x <= optimum + 1e-9 * max(1, abs(optimum))


def test_finds_a_planted_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 500))
    X[:, 100:130] += 3 * rng.normal(size=(40, 1))
    solution = truncated_power(bs.Covariance.from_data(sp.csr_array(X)), 30)
    assert np.flatnonzero(solution.x).tolist() == list(range(100, 130))
    assert solution.status is bs.Status.FEASIBLE


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["matrix", "data", "sparse"])
def test_finds_a_tight_group_beside_a_wide_factor_of_equal_variances(seed, kind):
    """Neither variances nor the leading eigenvector, of the factor, lead to it."""
    rng = np.random.default_rng(seed)
    d, k, n = 600, 20, 60
    X = rng.normal(size=(n, d))
    X[:, :400] += 0.9 * rng.normal(size=(n, 1))
    group = np.sort(rng.permutation(np.arange(400, d))[:k])
    X[:, group] = rng.normal(size=(n, 1)) + 0.35 * rng.normal(size=(n, k))
    A = np.corrcoef(X.T)
    if kind == "matrix":
        cov = bs.Covariance.from_matrix(A)
    else:
        given = X if kind == "data" else sp.csr_array(X)
        cov = bs.Covariance.from_data(given, scale=True)
    assert np.flatnonzero(truncated_power(cov, k).x).tolist() == group.tolist()


def test_rows_to_start_from_are_not_alike():
    """Three groups, each with the same strongest features in all of its rows."""
    A = np.kron(np.diag([3.0, 2.0, 1.0]), np.full((5, 5), 0.2)) + np.eye(15)
    cov = bs.Covariance.from_matrix(A)
    rows = _strong_rows(cov, 5, 3, 0.0, Deadline(None))
    assert [int(np.argmax(row)) // 5 for row in rows] == [0, 1, 2]
    assert len(_strong_rows(cov, 5, 2, 0.0, Deadline(None))) == 2
    assert _strong_rows(cov, 5, 3, 0.0, Deadline(0.0)) == []


@pytest.mark.parametrize("k", [1, 3, 12])
def test_rows_that_cannot_be_strong_are_not_computed(monkeypatch, k):
    """What k squares of a row come to is bounded; rows below the kept ones are left."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(9, 400)) * np.exp(1.5 * rng.normal(size=400))
    cov = bs.Covariance.from_data(X)
    A = cov.submatrix(slice(None))
    squares = np.sort(A * A, axis=1)[:, -k:].sum(axis=1)
    largest = float(np.linalg.eigvalsh(A)[-1])
    for about in (0.0, largest):
        assert (squares <= _most_of_row(cov, k, about) * (1 + 1e-12)).all()
    indefinite = bs.Covariance.from_matrix(A - largest / 2 * np.eye(400))
    assert (_most_of_row(indefinite, k, largest) == np.inf).all()
    computed = []
    plain = bs.Covariance.rows
    monkeypatch.setattr(truncated_power_module, "FIRST_CHUNK", 8 * 400)
    monkeypatch.setattr(
        bs.Covariance,
        "rows",
        lambda self, index: computed.extend(index) or plain(self, index),
    )
    rows = _strong_rows(cov, k, 1, largest, Deadline(None))
    sample = min(400, int(np.ceil(HITS * 400 / k)))
    assert len(computed) < sample / 2
    # The strongest of the sample is among those that were computed.
    whole = np.random.default_rng(0).permutation(400)[:sample]
    strongest = A[whole[np.argmax(squares[whole])]]
    assert np.allclose(rows[0], strongest, rtol=1e-12)  # another product, other ulps


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (bs.Limits(time=0.0), bs.Status.TIME_LIMIT),
        (bs.Limits(nodes=1), bs.Status.NODE_LIMIT),
    ],
)
def test_limits(limits, status):
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(9, 50)))
    solution = truncated_power(cov, 7, limits=limits)
    assert solution.status is status
    assert np.count_nonzero(solution.x) == 7


@pytest.mark.slow
@pytest.mark.data
def test_reaches_the_known_value_on_dorothea(data_dir):
    cov = bs.Covariance.from_data(sp.load_npz(data_dir / "Dorothea_train.npz"))
    x = truncated_power(cov, 200).x
    assert round(float(x @ cov.matvec(x)), 4) >= 3.3454


def test_a_singular_matrix_needs_no_shift_and_no_patience():
    """λmin = 0, many times over: Lanczos' method asked for it would not end."""
    X = np.random.default_rng(5).normal(size=(30, 400))
    cov = bs.Covariance.from_matrix(np.cov(X, rowvar=False))
    top = np.linalg.eigvalsh(cov.submatrix(slice(None)))[-1]
    assert abs(_lowest_eigenvalue(cov, Deadline(None))) < 1e-3 * top
    indefinite = bs.Covariance.from_matrix(
        cov.submatrix(slice(None)) - 0.3 * top * np.eye(400)
    )
    assert _lowest_eigenvalue(indefinite, Deadline(None)) == pytest.approx(
        -0.3 * top, rel=1e-2
    )
