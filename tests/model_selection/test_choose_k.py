"""Choosing k: the permutation reference and the rule find the size of a factor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.model_selection.choose_k import FEW
from blockspca.model_selection.permuting import (
    PermutedUnits,
    permuted_columns,
    unit_columns,
)
from blockspca.model_selection.searched_path import searched_path


def with_factor(size: int, n: int = 60, d: int = 20, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, :size] += 2 * rng.normal(size=(n, 1))
    return X


@pytest.mark.parametrize("size", [2, 5, 9])
def test_the_size_of_a_factor_is_found(size):
    choice = bs.choose_k(with_factor(size), rng=2)
    assert choice.k == size
    assert len(choice.reference.reference) == FEW
    choice = bs.choose_k(with_factor(size), rng=1, n_permutations=20)
    assert choice.k == size
    assert choice.reference.p_value == pytest.approx(1 / 21)
    assert f"k = {size}:" in choice.reason


def test_most_noise_gets_k_1():
    chosen = [
        bs.choose_k(np.random.default_rng(seed).normal(size=(30, 15)), rng=seed)
        for seed in range(12)
    ]
    ones = [choice for choice in chosen if choice.k == 1]
    assert len(ones) >= 10
    assert "no set of features stands out" in ones[0].reason


def test_the_reference_has_the_variances_and_no_more():
    X = with_factor(5)
    found = bs.permutation_reference(X, k_max=8, n_permutations=5)
    assert found.ks.tolist() == list(range(1, 9))
    assert found.reference.shape == (5, 8)
    np.testing.assert_allclose(found.reference[:, 0], found.objectives[0])
    assert found.gap_statistic[0] == pytest.approx(0)
    assert (found.objectives[1:] > found.reference[:, 1:].max(axis=0)).all()
    assert "best_k = 5" in repr(found)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("size", [0, 5])
def test_the_search_is_nearly_optimal(size, scale):
    cov = bs.Covariance.from_data(with_factor(size), scale=scale)
    proved = bs.solve_path(cov, 8).objectives
    searched = searched_path(cov, 8)
    assert (searched.objectives >= 0.98 * proved).all()
    assert (searched.objectives <= proved * (1 + 1e-9)).all()


def test_it_depends_on_the_seed_only():
    X = with_factor(4)
    first = bs.permutation_reference(X, 5, n_permutations=4, rng=7)
    again = bs.permutation_reference(X, 5, n_permutations=4, rng=7, n_jobs=2)
    other = bs.permutation_reference(X, 5, n_permutations=4, rng=8)
    np.testing.assert_array_equal(first.reference, again.reference)
    assert not np.array_equal(first.reference, other.reference)


def test_permuted_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    X[rng.random(X.shape) < 0.4] = 0
    dense = permuted_columns(X, np.random.default_rng(1))
    sparse = permuted_columns(sp.csr_array(X), np.random.default_rng(1))
    for permuted in (dense, sparse.toarray()):
        np.testing.assert_array_equal(np.sort(permuted, axis=0), np.sort(X, axis=0))
        assert not np.array_equal(permuted, X)
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    permuted = permuted_columns(gaps, rng)
    np.testing.assert_array_equal(np.isnan(permuted), np.isnan(gaps))
    np.testing.assert_array_equal(np.sort(permuted, axis=0), np.sort(gaps, axis=0))


def test_kinds_of_data():
    X = with_factor(5)
    assert bs.choose_k(pd.DataFrame(X)).k == 5
    assert bs.choose_k(sp.csc_array(X)).k == 5
    assert bs.choose_k(X, scale=True).k == 5
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    assert bs.choose_k(gaps, missing="pairwise").k == 5
    still = np.column_stack([X, np.ones(len(X))])
    assert bs.choose_k(still, scale=True, constant="ignore").k == 5


def test_a_unit_that_decides_on_k():
    X = pd.DataFrame(with_factor(5)).add_prefix("g")
    X["g7"] *= 1000
    reason = bs.choose_k(X).reason
    assert "Feature 'g7' alone has 100.0% of the variance" in reason
    assert "pass scale=True" in reason
    assert "1 times" not in reason
    model = bs.SparsePCA(1, k="auto", random_state=0)
    with pytest.warns(UserWarning, match="k says little"):
        model.fit(X)
    assert "Feature 'g7' alone" in model.choice_of_k_.reason
    assert "alone" not in bs.choose_k(X, scale=True).reason


def test_a_matrix_has_nothing_to_permute():
    cov = bs.Covariance.from_data(with_factor(5))
    choice = bs.choose_k(cov)
    path = bs.solve_path(cov, 20)
    assert choice.k == path.smallest_k(0.9)
    assert choice.reference is None
    choice = bs.choose_k(cov, k_max=2)
    assert choice.k == 2
    assert "largest allowed" in choice.reason


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"k_max": 21}, "k_max = 21 is outside 1..20"),
        ({"k_max": 0}, "k_max = 0"),
        ({"n_permutations": 1}, "n_permutations = 1 has no spread"),
        ({"n_permutations": 0}, "n_permutations = 0"),
    ],
)
def test_bad_arguments(kwargs, words):
    with pytest.raises(ValueError, match=words):
        bs.choose_k(with_factor(5), **kwargs)


@pytest.mark.parametrize(
    "given",
    [
        {"scale": True},
        {"missing": "nonsense"},
        {"missing": "pairwise"},
        {"constant": "ignore"},
        {"n_permutations": 5},
        {"feature_names": ["a", "b"]},
        {"feature_names": np.array(["a", "b"])},
    ],
)
def test_what_a_covariance_has_no_use_for_is_refused(given):
    """It was not looked at."""
    cov = bs.Covariance.from_matrix(np.diag([2.0, 1.0]))
    name = next(iter(given))
    with pytest.raises(ValueError, match=rf"^{name} = .* with a Covariance: pass the"):
        bs.choose_k(cov, **given)


def test_a_fraction_of_data_is_refused():
    with pytest.raises(
        ValueError, match=r"fraction = 0\.5 with data, .* pass a Covariance"
    ):
        bs.choose_k(with_factor(5), fraction=0.5)
    assert bs.choose_k(with_factor(5), 2, fraction=0.9, n_permutations=2).k == 2


def test_bad_data():
    with pytest.raises(ValueError, match="missing='pairwise'"):
        bs.choose_k(np.array([[1.0, np.nan], [2.0, 1.0]]))
    with pytest.raises(ValueError, match=r"fraction = 2\.0 is above 1"):
        bs.choose_k(bs.Covariance.from_matrix(np.eye(2)), fraction=2.0)


def test_covariances_of_permuted_units():
    X = with_factor(5) * np.linspace(1, 1e-120, 20)
    X[:, 7] = 2.0
    units = unit_columns(X)
    variances = bs.Covariance.from_data(X, scale=True, constant="ignore").diagonal()
    again = PermutedUnits(units, np.random.default_rng(0), 0)
    permuted = again.covariance(0, variances)
    A = permuted.submatrix(np.arange(20))
    np.testing.assert_array_equal(np.diagonal(A), variances)
    again = permuted_columns(X, np.random.default_rng(0))
    again = bs.Covariance.from_data(again, scale=True, constant="ignore")
    spread = np.std(again.submatrix(np.arange(20))[np.triu_indices(20, 1)])
    assert np.std(A[np.triu_indices(20, 1)]) == pytest.approx(spread, rel=0.25)
    assert not A[7].any()
    assert unit_columns(X.T) is None  # more features than samples
    assert unit_columns(np.where(X > 1, np.nan, X)) is None


def test_permuted_units_are_permuted_each_by_itself():
    units = unit_columns(with_factor(5))
    found = PermutedUnits(units, np.random.default_rng(0), kept=1)
    first, second = found.permuted(0), found.permuted(1)
    for moved in (first, second):
        np.testing.assert_array_equal(np.sort(moved), np.sort(units))
        # An order that all columns had in common would keep their correlations.
        places = [np.argsort(np.argsort(row)).tolist() for row in moved]
        assert len({tuple(place) for place in places}) == len(units)
        assert np.abs(moved @ moved.T - units @ units.T)[:5, :5].max() > 0.5
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, found.permuted(0))
    assert found.correlations(0) is found.correlations(0)
    assert found.correlations(1) is not found.correlations(1)


def test_correlations_of_permuted_units_are_those_of_permutations():
    """Over permutations r has the mean 0 and the variance 1 / (n − 1); two b: 0."""
    rng = np.random.default_rng(0)
    n, times = 7, 4000
    units = unit_columns(rng.exponential(size=(n, 2)))
    pairs = np.empty((times, 2))
    for t in range(times):
        found = PermutedUnits(units, rng, kept=0)
        pairs[t] = [found.correlations(b)[0, 1] for b in (0, 1)]
    error = 5 / np.sqrt(times)
    assert (np.abs(pairs.mean(axis=0)) < error / np.sqrt(n - 1)).all()
    squares = pairs**2 * (n - 1)
    assert (np.abs(squares.mean(axis=0) - 1) < error * squares.std(axis=0)).all()
    product = pairs.prod(axis=1)
    assert abs(product.mean()) < error * product.std()


@pytest.mark.parametrize("scale", [False, True])
def test_the_reference_of_tall_data_is_that_of_their_covariance(scale):
    X = with_factor(5) * np.linspace(1, 3, 20) + 7
    found = bs.permutation_reference(X, 8, n_permutations=40, scale=scale)
    plain = []
    for seed in range(40):
        permuted = permuted_columns(X, np.random.default_rng(seed))
        cov = bs.Covariance.from_data(permuted, scale=scale)
        plain.append(searched_path(cov, 8).objectives)
    assert found.reference.shape == (40, 8)
    np.testing.assert_allclose(found.reference[:, 0], np.array(plain)[:, 0])
    means = [np.mean(np.log(curves), axis=0) for curves in (found.reference, plain)]
    error = np.std(np.log(plain), axis=0, ddof=1) * np.sqrt(2 / 40)
    assert (np.abs(means[0] - means[1]) < 4 * error + 1e-12).all()


def test_factors_of_one_strength_are_mostly_taken_apart() -> None:
    """As the page on choosing k says, with how often they are not."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 30))
        for j in range(3):
            X[:, 10 * j : 10 * j + 10] += rng.normal(size=(120, 1))
        found.append(bs.choose_k(X).k)
    together = [k for k in found if k != 10]
    assert 0 < len(together) <= 4
    assert min(together) >= 18
