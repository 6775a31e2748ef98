"""Components that predict: what is raised, what is proved, what is refused."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.components import prediction
from blockspca.components import prediction_goal as goal_module
from blockspca.components.prediction import Prediction, varimax
from blockspca.components.prediction_core import Core
from blockspca.components.prediction_goal import Goal
from blockspca.components.prediction_search import more_predictive
from blockspca.components.variance import (
    adjusted_variance,
    predicted,
    score_covariance,
)
from blockspca.limits import Deadline
from component_problems import matrix, overlapping_factors

FOREVER = Deadline(None)
ROUNDING = 1e-9


def predicting(
    weight: float, disjoint: bool = False, above: bool = False
) -> bs.ResidualDeflation:
    return bs.ResidualDeflation(disjoint=disjoint, prediction=weight, above_lasso=above)


def value(A: np.ndarray, V: np.ndarray, weight: float) -> float:
    """J, by the functions that report adjusted variance and R²."""
    cov = bs.Covariance.from_matrix(A)
    adjusted = adjusted_variance(score_covariance(cov, V)).sum()
    return float(np.log(adjusted) + weight * np.log(predicted(cov, V)))


def total_value(A: np.ndarray, V: np.ndarray, weight: float) -> float:
    """J as `Prediction` has it, whose R² is not divided by the total variance."""
    return value(A, V, weight) + weight * float(np.log(np.trace(A)))


def psd(seed: int, d: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(d + 2, d)) @ matrix(0, d)
    return np.cov(X.T)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weight", [0.5, 2.5])
def test_one_component_is_that_of_brute_force(seed, weight):
    """Of pairs of features, loadings on a fine grid of angles."""
    A = psd(seed, 6)
    angles = np.linspace(0, np.pi, 2001)
    best = -np.inf
    for i, j in combinations(range(6), 2):
        V = np.zeros((len(angles), 6))
        V[:, i], V[:, j] = np.cos(angles), np.sin(angles)
        s = np.einsum("ni,ij,nj->n", V, A, V)
        rho = np.einsum("ni,ij,nj->n", V, A @ A, V) / s
        best = max(best, float((np.log(s) + weight * np.log(rho)).max()))
    start = np.eye(6)[:1]
    cov = bs.Covariance.from_matrix(A)
    V = more_predictive(cov, start, [2], predicting(weight), FOREVER)
    assert np.count_nonzero(V) <= 2
    assert total_value(A, V, weight) >= best - 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("disjoint", [False, True])
def test_a_set_is_measured_as_it_is_reported_and_never_falls(seed, disjoint):
    A = psd(seed, 12)
    cov = bs.Covariance.from_matrix(A)
    scheme = bs.ResidualDeflation(disjoint=disjoint)
    greedy = bs.solve_components(cov, 3, 3, scheme=scheme).components
    search = Prediction(cov, [3, 3, 3], disjoint, FOREVER)
    now = search.measure(greedy)
    reported = total_value(A / search.unit, now.V, 2.0)
    assert now.value(Goal(2.0)) == pytest.approx(reported, abs=1e-9)
    V = more_predictive(cov, greedy, [3, 3, 3], predicting(2.0, disjoint), FOREVER)
    assert value(A, V, 2.0) >= value(A, greedy, 2.0) - 1e-9
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0)
    assert (np.count_nonzero(V, axis=1) <= 3).all()
    if disjoint:
        assert (np.count_nonzero(V, axis=0) <= 1).all()


def test_two_components_are_those_of_brute_force():
    """Of pairs of features each, loadings on a grid of angles."""
    A, weight = psd(3, 5), 2.0
    angles = np.linspace(0, np.pi, 41)[:-1]
    pairs = []
    for i, j in combinations(range(5), 2):
        V = np.zeros((len(angles), 5))
        V[:, i], V[:, j] = np.cos(angles), np.sin(angles)
        pairs.append(V)
    V = np.concatenate(pairs)
    G, H = V @ A @ V.T, V @ A @ A @ V.T
    own, squares = np.diag(G), np.diag(H)
    left = own[None, :] - G**2 / own[:, None]  # of the second, after the first
    left = np.where(left > 1e-9 * own, left, np.inf)
    twice = squares[None, :] - 2 * H * G / own[:, None]
    twice = twice + squares[:, None] * (G / own[:, None]) ** 2
    predicted_ = squares[:, None] / own[:, None] + twice / left
    adjusted = np.where(np.isfinite(left), own[:, None] + left, 0.0)
    best = (np.log(np.maximum(adjusted, 1e-9)) + weight * np.log(predicted_)).max()
    cov = bs.Covariance.from_matrix(A)
    found = more_predictive(cov, np.eye(5)[:2], [2, 2], predicting(weight), FOREVER)
    assert (np.count_nonzero(found, axis=1) == 2).all()
    assert total_value(A, found, weight) >= best - 1e-9


def of_the_lasso(cov: bs.Covariance, disjoint: bool = False) -> np.ndarray:
    """Adjusted variance and R² of the set that is named; k = 4, three components."""
    search = Prediction(cov, [4] * 3, disjoint, FOREVER)
    sets = [search.measure(search.cut(V)) for V in search.lasso_sets()]
    named = max(sets, key=lambda one: one.predicted)
    total = float(cov.diagonal().sum()) / search.unit
    return np.array([named.adjusted, named.predicted]) / total


def reached(cov: bs.Covariance, V: np.ndarray) -> np.ndarray:
    adjusted = adjusted_variance(score_covariance(cov, V)).sum()
    return np.array([adjusted / cov.diagonal().sum(), predicted(cov, V)])


def both(found: bs.Components) -> np.ndarray:
    return np.array([found.explained_variance_ratio.sum(), found.r2])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("disjoint", [False, True])
def test_above_a_lasso_in_both_numbers(seed, disjoint):
    cov = bs.Covariance.from_data(overlapping_factors(seed=seed))
    scheme = bs.ResidualDeflation(disjoint, prediction=2.5, above_lasso=True)
    found = bs.solve_components(cov, 4, 3, scheme=scheme)
    assert (both(found) >= (1 - ROUNDING) * of_the_lasso(cov, disjoint)).all()
    assert all(len(support) == 4 for support in found.supports)
    assert all(check.complete for check in found.verify(cov))


@pytest.mark.parametrize("weight", [0.01, 2.5, 300.0])
def test_where_the_weight_alone_gives_up_too_much(weight):
    """R² by a small one, adjusted variance by a large one; the bound holds for all."""
    cov = bs.Covariance.from_data(overlapping_factors(seed=3))
    alone, above = (
        bs.solve_components(
            cov, 4, 3, scheme=bs.ResidualDeflation(prediction=weight, above_lasso=flag)
        )
        for flag in (False, True)
    )
    least = of_the_lasso(cov)
    assert (both(alone) < (1 - 1e-3) * least).any()
    assert (both(above) >= (1 - ROUNDING) * least).all()


@pytest.mark.parametrize("weight", [30.0, 3000.0])
def test_a_large_weight_is_no_way_below_the_bound(weight):
    """0.4943 of the variance were 0.4256 with 3000: costs did not grow with it."""
    cov = bs.Covariance.from_data(overlapping_factors(seed=2))
    scheme = bs.ResidualDeflation(prediction=weight, above_lasso=True)
    found = bs.solve_components(cov, 4, 3, scheme=scheme)
    assert (both(found) >= (1 - ROUNDING) * of_the_lasso(cov)).all()


def test_where_nothing_holds_it_is_the_lasso_that_is_raised(monkeypatch):
    """Costs of nothing leave all to the hard bound."""
    monkeypatch.setattr(goal_module, "COSTS", (0.0, 0.0))
    cov = bs.Covariance.from_data(overlapping_factors(seed=2))
    V = more_predictive(
        cov, np.eye(30)[:3], [4] * 3, predicting(300.0, above=True), FOREVER
    )
    assert (reached(cov, V) >= (1 - ROUNDING) * of_the_lasso(cov)).all()


def test_the_same_twice():
    cov = bs.Covariance.from_data(overlapping_factors())
    one, other = (bs.solve_components(cov, 4, 3, scheme="predictive") for _ in range(2))
    np.testing.assert_array_equal(one.components, other.components)


def test_a_core_finds_what_all_features_do(monkeypatch):
    """Features outside come in where they pull."""
    cov = bs.Covariance.from_data(overlapping_factors(40, 120))
    start = np.zeros((2, 120))
    start[0, 100:104] = start[1, 104:108] = 0.5
    found = []
    for whole in (512, 0):
        monkeypatch.setattr(prediction, "WHOLE", whole)
        found.append(more_predictive(cov, start, [4, 4], predicting(2.0), FOREVER))
    values = [value(cov.submatrix(slice(None)), V, 2.0) for V in found]
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_too_many_features_for_a_core(monkeypatch):
    monkeypatch.setattr(prediction, "WHOLE", 0)
    monkeypatch.setattr(prediction, "LARGEST", 6)
    cov = bs.Covariance.from_data(overlapping_factors())
    greedy = bs.solve_components(cov, 4, 3, scheme="residual").components
    V = more_predictive(cov, greedy, [4] * 3, predicting(2.0), FOREVER)
    np.testing.assert_allclose(np.abs(V @ greedy.T).max(axis=0), 1.0)


def test_more_weight_predicts_more():
    cov = bs.Covariance.from_data(overlapping_factors())
    found = [
        bs.solve_components(cov, 4, 3, scheme=bs.ResidualDeflation(prediction=weight))
        for weight in (0.0, 1.0, 4.0)
    ]
    assert found[0].r2 < found[1].r2 <= found[2].r2
    shares = [float(f.explained_variance_ratio.sum()) for f in found]
    assert shares[0] > shares[2]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("disjoint", [False, True])
def test_bounds_are_those_of_the_residual_problem(seed, disjoint, brute_force):
    A = psd(seed, 8)
    scheme = bs.ResidualDeflation(disjoint=disjoint, prediction=5.0)
    found = bs.solve_components(A, 2, 3, scheme=scheme)
    for j, result in enumerate(found.results):
        problem = found.problem(j, A).submatrix(slice(None))
        best = brute_force(problem, 2)
        assert result.upper_bound >= best * (1 - 1e-12)
        assert result.objective == pytest.approx(result.x @ problem @ result.x)
        is_best = result.objective >= best * (1 - 1e-8)
        assert (result.status is bs.Status.OPTIMAL) == is_best
    assert all(check.complete for check in found.verify(A))
    assert found.joint_upper_bound >= found.adjusted_explained_variance.sum()


def test_kinds_of_data_agree():
    da = pytest.importorskip("dask.array")
    X = overlapping_factors()
    X[np.abs(X) < 0.5] = 0.0
    kinds = [
        np.cov(X.T),
        X,
        sp.csr_array(X),
        da.from_array(X, chunks=(20, 30)),
    ]
    scheme = bs.ResidualDeflation(prediction=2.0)
    sets = []
    for kind in kinds:
        make = bs.Covariance.from_data if kind.shape[0] == 40 else np.asarray
        sets.append(bs.solve_components(make(kind), 4, 3, scheme=scheme))
    for other in sets[1:]:
        assert other.r2 == pytest.approx(sets[0].r2, rel=1e-6)
        for here, there in zip(sets[0].supports, other.supports, strict=True):
            np.testing.assert_array_equal(here, there)


def test_different_sparsities_keep_their_places():
    cov = bs.Covariance.from_data(overlapping_factors())
    scheme = bs.ResidualDeflation(prediction=2.0)
    found = bs.solve_components(cov, [5, 2, 3], 3, scheme=scheme)
    sizes = [len(support) for support in found.supports]
    assert all(size <= k for size, k in zip(sizes, (5, 2, 3), strict=True))


@pytest.mark.parametrize("kind", ["data", "matrix"])
@pytest.mark.parametrize("seed", [3, 4])
def test_more_components_than_there_are_directions(seed, kind):
    """The third has nothing but rounding to choose from."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2)) @ rng.normal(size=(2, 6))
    cov = bs.Covariance.from_data(X) if kind == "data" else np.cov(X.T)
    for weight in (0.0, 1.0):
        scheme = bs.ResidualDeflation(prediction=weight)
        found = bs.solve_components(cov, 2, 3, scheme=scheme)
        assert np.isfinite(found.components).all()
        found.verify(cov)


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**350])
def test_the_unit_of_the_data_changes_nothing(scale):
    X = overlapping_factors()
    scheme = bs.ResidualDeflation(prediction=2.0)
    found = [
        bs.solve_components(bs.Covariance.from_data(c * X), 4, 3, scheme=scheme)
        for c in (1.0, scale)
    ]
    np.testing.assert_allclose(*(f.components for f in found), atol=1e-9)


def test_without_time_components_are_those_before():
    cov = bs.Covariance.from_data(overlapping_factors())
    greedy = bs.solve_components(cov, 4, 3, scheme="residual").components
    V = more_predictive(cov, greedy, [4] * 3, predicting(2.0), Deadline(0.0))
    np.testing.assert_allclose(np.abs(V @ greedy.T).max(axis=0), 1.0)


class Looks(Deadline):
    """Passes after so many looks at it."""

    def __init__(self, looks: int) -> None:
        super().__init__(None)
        self.looks = looks

    def passed(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def affords(self, seconds: float) -> bool:
        return self.looks > 0


def products_until(looks: int, monkeypatch, above: bool) -> tuple[int, np.ndarray]:
    """Products with A, and components, of a search with so many looks."""
    cov = bs.Covariance.from_data(overlapping_factors(seed=2))
    start, made, product = np.eye(30)[:3], [], Prediction.product

    def counted(self, x):
        made.append(x.shape)
        return product(self, x)

    monkeypatch.setattr(Prediction, "product", counted)
    V = more_predictive(
        cov, start, [4] * 3, predicting(300.0, above=above), Looks(looks)
    )
    return len(made), V


@pytest.mark.parametrize("looks", [1, 5, 20])
def test_no_product_is_begun_when_time_is_up(looks, monkeypatch):
    """Eigenvectors and three lassos were computed whatever they took."""
    with pytest.warns(UserWarning, match="above_lasso=True: the time was up"):
        made, V = products_until(looks, monkeypatch, True)
    assert made <= looks
    np.testing.assert_array_equal(V, np.eye(30)[:3])


@pytest.mark.parametrize("looks", range(100, 340, 30))
def test_time_that_ends_at_any_place_leaves_both_numbers(looks, monkeypatch):
    """Once there is a lasso its set is there to be taken; before, it is said."""
    cov = bs.Covariance.from_data(overlapping_factors(seed=2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _, V = products_until(looks, monkeypatch, True)
    assert (np.count_nonzero(V, axis=1) <= 4).all()
    if said:
        np.testing.assert_array_equal(V, np.eye(30)[:3])
        return
    assert (reached(cov, V) >= (1 - ROUNDING) * of_the_lasso(cov)).all()


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Features of every core, as it grows."""
    found, extend = [0], Core.extend

    def noted(self, features):
        done = extend(self, features)
        found.append(len(self.features))
        return done

    monkeypatch.setattr(Core, "extend", noted)
    return found


@pytest.mark.parametrize("memory", [2**10, 2**16, 2**19])
def test_the_core_is_as_large_as_memory_allows(memory, sizes):
    cov = bs.Covariance.from_data(overlapping_factors(40, 120))
    start = np.eye(120)[:3]
    V = more_predictive(
        cov, start, [4] * 3, predicting(2.5, above=True), FOREVER, memory=memory
    )
    assert 4 * 8 * max(sizes) ** 2 <= memory / 2
    assert max(sizes) > 0 or memory == 2**10  # not even the features to begin with
    assert (reached(cov, V) >= (1 - ROUNDING) * of_the_lasso(cov)).all()


def test_a_limit_on_memory_is_that_of_the_core(sizes):
    cov = bs.Covariance.from_data(overlapping_factors(40, 120))
    limits = bs.Limits(memory=2**19)
    bs.solve_components(cov, 4, 3, scheme="predictive", limits=limits)
    assert 0 < max(sizes) <= 90


def test_no_lasso_in_units_that_are_not_positive():
    """Divided by a negative mean variance, A was its negative."""
    rng = np.random.default_rng(0)
    A = np.diag([3.0, 2.0, 1.0, -4.0, -5.0, -6.0])
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    for shift in (0.0, 1.5):  # the mean is −1.5, and 0
        cov = bs.Covariance.from_matrix(turn @ A @ turn.T + shift * np.eye(6))
        search = Prediction(cov, [2, 2], False, FOREVER)
        assert search.lasso_sets() == [] or cov.diagonal().mean() > 0
        found = bs.solve_components(cov, 2, 2, scheme="predictive")
        assert found.verify(cov)


def test_no_lasso_with_fewer_positive_eigenvalues_than_components():
    A = np.diag([9.0, 3.0, -1.0, -1.0, -1.0])
    search = Prediction(bs.Covariance.from_matrix(A), [2] * 3, False, FOREVER)
    assert search.lasso_sets() == []


@pytest.mark.parametrize("seed", [0, 7])
def test_variations_are_drawn_by_the_seed_that_is_passed(seed, monkeypatch):
    drawn = []

    def varied(self, now, rng):
        drawn.append(rng.bit_generator.state["state"]["state"])
        return now.V

    monkeypatch.setattr(Prediction, "varied", varied)
    monkeypatch.setattr(prediction, "TRIALS", 1)
    cov = bs.Covariance.from_data(overlapping_factors())
    scheme = bs.ResidualDeflation(prediction=2.0)
    bs.solve_components(cov, 4, 3, scheme=scheme, rng=seed)
    fresh = np.random.default_rng(seed).bit_generator.state["state"]["state"]
    assert drawn == [fresh]


@pytest.mark.parametrize("A", [np.eye(4), np.ones((5, 5)), np.diag([1.0, 1e-300, 1.0])])
def test_matrices_with_nothing_to_gain(A):
    scheme = bs.ResidualDeflation(prediction=2.5)
    found = bs.solve_components(A, 2, 2, scheme=scheme)
    assert len(found) == 2
    assert np.isfinite(found.components).all()


def test_a_contrast_has_components():
    A = matrix(3, 8)  # indefinite
    found = bs.solve_components(A, 3, 2, scheme="predictive")
    assert all(check.complete for check in found.verify(A))


def test_the_estimator_does_not_warn_of_what_is_chosen():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bs.SparsePCA(3, k=4, scheme="predictive").fit(overlapping_factors())
    assert "feasible" in model.status_
    assert (model.gap_ < 1).all()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), "much"])
def test_weights_are_checked(weight):
    with pytest.raises((TypeError, ValueError), match="prediction"):
        bs.ResidualDeflation(prediction=weight)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match="above_lasso=True with prediction = 0"):
        bs.ResidualDeflation(above_lasso=True)
    A = psd(0, 8)
    scheme = bs.ResidualDeflation(prediction=2.0)
    with pytest.raises(ValueError, match="sweeps = 1"):
        bs.solve_components(A, 2, 2, scheme=scheme, sweeps=1)
    with pytest.raises(ValueError, match="pass scheme='residual'"):
        bs.solve_components(
            A, 2, 2, scheme=scheme, constraints=bs.Constraints(exclude=[0])
        )


def test_certificates_name_the_weight():
    A = psd(0, 8)
    found = bs.solve_components(A, 2, 2, scheme=bs.ResidualDeflation(prediction=2.0))
    assert found[1].certificate.scheme == "ResidualDeflation(prediction=2)"


def test_varimax_finds_groups_that_are_mixed():
    groups = np.kron(np.eye(2), np.ones(3))
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    found = np.abs(varimax(turn @ groups))
    np.testing.assert_allclose(np.sort(found, axis=0)[0], 0.0, atol=1e-4)


def test_a_component_with_features_that_are_closed_to_it_is_not_taken():
    """Two features were claimed for k = 1, and called optimal."""
    A = np.array([[2.0, 2, 2], [2, -2, 2], [2, 2, -2]])
    found = bs.solve_components(A, 2, 3, scheme="predictive")
    assert all(len(result.support) <= result.k for result in found.results)
    assert found.verify(A)


def test_components_with_a_negative_variance_leave_no_slope():
    """Of a logarithm; its infinite inverse ended in a LinAlgError."""
    v = np.array([1.0, 2, -1, 3])
    A = np.outer(v, v) / 8 + np.diag([0.0, -0.5, 0.3, -1e3])
    A[1, 2] = A[2, 1] = 0.4
    for n_components in (2, 3):
        found = bs.solve_components(A, 3, n_components, scheme="predictive")
        assert found.verify(A)
        # A third that would lose a thousand is not taken for what it predicts.
        assert (found.adjusted_explained_variance > -1e-3).all()


@pytest.mark.parametrize("disjoint", [False, True])
def test_without_proofs_components_are_what_is_found_at_once(disjoint, monkeypatch):
    def not_again(*args, **options):
        raise AssertionError("solved again")

    monkeypatch.setattr("blockspca.components.in_turn.solve", not_again)
    cov = bs.Covariance.from_data(overlapping_factors())
    scheme = bs.ResidualDeflation(disjoint, prediction=2.5, above_lasso=True)
    found = bs.solve_components(cov, 4, 3, scheme=scheme, certify=False)
    assert {str(status) for status in found.statuses} == {"feasible"}
    np.testing.assert_allclose(
        [result.objective for result in found.results],
        found.adjusted_explained_variance,
    )
    assert all(result.upper_bound >= result.objective for result in found.results)
    assert (np.count_nonzero(found.components, axis=1) <= 4).all()
    if disjoint:
        assert (np.count_nonzero(found.components, axis=0) <= 1).all()
    else:
        least = (1 - ROUNDING) * of_the_lasso(cov)
        assert (reached(cov, found.components) >= least).all()


@pytest.mark.parametrize("disjoint", [False, True])
def test_supports_to_start_from_are_begun_with(disjoint):
    cov = bs.Covariance.from_data(overlapping_factors())
    scheme = bs.ResidualDeflation(disjoint, prediction=2.5)
    best = bs.solve_components(cov, 4, 3, scheme=scheme)
    start = [support.tolist() for support in best.supports]
    for given in (start, [start[0], start[0], []]):
        found = bs.solve_components(
            cov, 4, 3, scheme=scheme, certify=False, start=given
        )
        assert (np.count_nonzero(found.components, axis=1) <= 4).all()
        if disjoint:
            assert (np.count_nonzero(found.components, axis=0) <= 1).all()
    again = bs.solve_components(cov, 4, 3, scheme=scheme, certify=False, start=start)
    A = cov.submatrix(slice(None))
    least = value(A, best.components, 2.5)
    assert value(A, again.components, 2.5) >= least - 1e-6


def test_sets_that_do_not_fit_the_core_are_left_out(sizes):
    """One of them that was too large kept all from being begun with."""
    cov = bs.Covariance.from_data(overlapping_factors(40, 120))
    V = more_predictive(cov, None, [4] * 3, predicting(2.5), FOREVER, memory=2**15)
    assert V is not None
    assert 0 < max(sizes) <= 22
