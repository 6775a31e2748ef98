"""How many components carry more than permuted data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs


def factors(count: int, n: int = 80, d: int = 15, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(count):
        X[:, 4 * j : 4 * j + 4] += (2.5 - 0.3 * j) * rng.normal(size=(n, 1))
    return X


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_planted_factors_are_counted(count):
    choice = bs.choose_n_components(factors(count), 4, 5, rng=0)
    assert choice.n_components == count
    assert choice.variances.shape == (5,)
    assert choice.reference.shape == (20, 5)
    assert (choice.p_values[:count] <= 0.05).all()


def test_one_factor_is_not_counted_twice():
    """Eight features of one factor: disjoint components would repeat it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 15))
    X[:, :8] += 3 * rng.normal(size=(80, 1))
    assert bs.choose_n_components(X, 4, 3, rng=0).n_components == 1


def test_sparse_data_and_seeds_give_the_same():
    X = np.where(np.abs(factors(2)) > 1, factors(2), 0.0)
    dense = bs.choose_n_components(X, 4, 3, rng=1)
    again = bs.choose_n_components(X, 4, 3, rng=1)
    np.testing.assert_array_equal(dense.reference, again.reference)
    sparse = bs.choose_n_components(sp.csr_array(X), 4, 3, rng=1)
    assert dense.n_components == sparse.n_components == 2
    np.testing.assert_allclose(sparse.variances, dense.variances, rtol=1e-9)
    # Zeros are not permuted apart from the rest, so that these are other draws.
    np.testing.assert_array_equal(
        sparse.reference, bs.choose_n_components(sp.csr_array(X), 4, 3, rng=1).reference
    )
    np.testing.assert_allclose(
        sparse.reference.mean(axis=0), dense.reference.mean(axis=0), rtol=0.05
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_permutations": 5}, "cannot give a p-value"),
        ({"significance": 0.0}, "significance"),
        ({"significance": "a"}, "significance = 'a' is of type str; pass a number"),
        ({"significance": None}, "significance = None"),
        ({"n_max": 0}, "n_max"),
        ({"n_max": 99}, "n_components"),
        ({"k": 99}, "k = 99"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bs.choose_n_components(factors(1), **({"k": 4} | changes))


@pytest.mark.parametrize("call", [0, 3])
def test_an_interruption_ends_the_choice(call, monkeypatch):
    """Of the data or of a permutation: fewer sets would be another choice."""
    calls = []

    def interrupted(*args, **options):
        calls.append(len(calls))
        found = bs.solve_components(*args, **options)
        if calls[-1] < call:
            return found
        stopped = replace(found.results[-1], status=bs.Status.INTERRUPTED)
        return replace(found, results=(*found.results[:-1], stopped))

    monkeypatch.setattr(
        "blockspca.model_selection.choose_n_components.solve_components", interrupted
    )
    with pytest.raises(KeyboardInterrupt):
        bs.choose_n_components(factors(2), 4, 3, rng=0)
    assert len(calls) == call + 1
