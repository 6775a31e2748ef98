"""scikit-learn and abess behind the contract: data from A, one form, clear errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from blockspca.solvers import (
    Abess,
    Limits,
    ScikitLearnMiniBatchSparsePCA,
    ScikitLearnSparsePCA,
    SolverError,
)
from blockspca.solvers._canonical import CanonicalForm
from blockspca.solvers.sklearn_adapters import data_with_gram
from strategies import symmetric_matrix


@pytest.mark.parametrize("kind", ["psd", "rank one", "duplicated", "zero rows", "zero"])
def test_data_with_gram(kind):
    A = symmetric_matrix(kind, 7, np.random.default_rng(0))
    X = data_with_gram(A)
    np.testing.assert_allclose(X.T @ X, A, atol=1e-12)
    np.testing.assert_allclose(X.sum(axis=0), 0, atol=1e-12)


def test_canonical_form():
    rng = np.random.default_rng(0)
    A = symmetric_matrix("psd", 7, rng)
    order, signs = rng.permutation(7), rng.choice([-1.0, 1.0], size=7)
    changed = 3.0 * (A * np.outer(signs, signs))[np.ix_(order, order)]
    form = CanonicalForm(A)
    np.testing.assert_allclose(form.matrix, CanonicalForm(changed).matrix, atol=1e-12)
    assert (form.matrix == form.matrix.T).all()
    x = rng.normal(size=7)
    restored = form.restore(x)
    assert restored @ A @ restored == pytest.approx(
        np.abs(A).max() * (x @ form.matrix @ x)
    )


@pytest.mark.parametrize(
    "solver", [ScikitLearnSparsePCA(), ScikitLearnMiniBatchSparsePCA()]
)
def test_scikit_learn_finds_a_strong_block_quietly(solver, recwarn):
    A = np.eye(20)
    A[3:7, 3:7] += 2.0
    x = solver.solve(A, 4, limits=Limits()).x
    assert np.flatnonzero(x).tolist() == [3, 4, 5, 6]
    assert not recwarn.list
    assert solver.requires_psd


def test_abess_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "abess", None)
    monkeypatch.setitem(sys.modules, "abess.decomposition", None)
    with pytest.raises(SolverError, match=r'pip install "blockspca\[abess\]"'):
        Abess().solve(np.eye(3), 1, limits=Limits())


def test_abess_where_it_alone_would_refuse_or_abort():
    pytest.importorskip("abess", reason="the extra 'abess' is not installed")
    rng = np.random.default_rng(0)
    for A in (
        np.zeros((3, 3)),
        np.cov(rng.normal(size=(5, 12)).T),  # singular
        symmetric_matrix("negative", 6, rng),
    ):
        x = Abess().solve(A, 2, limits=Limits()).x
        assert 1 <= np.count_nonzero(x) <= 2
