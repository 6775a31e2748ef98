"""One support for several components: bounds and optima against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.components.shared_bounds import closed_forms, screening_table
from blockspca.components.shared_heuristic import SharedSet
from blockspca.components.shared_problem import SharedProblem
from blockspca.components.shared_search import SharedSearch
from blockspca.limits import Budget, Deadline
from blockspca.numerics.upper_eigenvalues import ky_fan_ceiling


def top_sum(A: np.ndarray, r: int) -> float:
    return float(np.linalg.eigvalsh(A)[::-1][:r].sum())


def exhaustive(A: np.ndarray, k: int, r: int, include=()) -> float:
    return max(
        top_sum(A[np.ix_(s, s)], r)
        for s in combinations(range(len(A)), k)
        if set(include) <= set(s)
    )


def matrix(seed: int, d: int) -> np.ndarray:
    """Covariances, correlations, low rank, ties, factors, indefinite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(d + 4, d)) * rng.gamma(2.0, size=d)
    kinds = (
        lambda: np.cov(X.T),
        lambda: np.corrcoef(X.T),
        lambda: X[:2].T @ X[:2],
        lambda: np.eye(d) + 0.5 * (rng.random((d, 1)) < 0.5) @ np.ones((1, d)) * 0,
        lambda: np.cov((X @ np.diag(10.0 ** rng.integers(-6, 6, d))).T),
        lambda: np.cov(X.T) - 0.7 * np.cov(rng.normal(size=(d, d)).T),
    )
    A = kinds[seed % len(kinds)]()
    return (A + A.T) / 2


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize(("d", "k", "r"), [(6, 3, 2), (8, 4, 3), (10, 5, 2), (7, 2, 1)])
def test_the_optimum_by_brute_force(seed, d, k, r):
    A = matrix(seed, d)
    best = exhaustive(A, k, r)
    found = bs.solve_shared(A, k, r)
    scale = float(np.abs(A).max())
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-9 * scale)
    assert found.upper_bound >= best - 1e-13 * scale
    assert found.verify(A).complete
    assert len(found.support) == k
    np.testing.assert_allclose(
        found.components @ found.components.T, np.eye(r), atol=1e-12
    )
    if seed % 6 != 5:
        assert found.status is bs.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(24))
def test_every_bound_is_one(seed):
    d = 8
    A = matrix(seed, d)
    cov = bs.Covariance.from_matrix(A)
    for r in (1, 2, 3):
        table = screening_table(cov, 6, r)
        for k in range(r, 7):
            best = exhaustive(A, k, r)
            assert table[r, k] >= best * (1 - 1e-15)
            for bound in closed_forms(cov, k, r, Deadline(None), margin=1.0).values():
                assert bound >= best - 1e-15 * abs(best)
            start = SharedSet.of(cov, np.arange(k), r)
            shared = SharedProblem.of(cov, k, r)
            search = SharedSearch(shared, start, Budget(bs.Limits()))
            search.run(max_nodes=1)
            assert search.bound >= best - 1e-14 * abs(best)


def test_a_search_goes_on_from_where_it_was_stopped():
    cov = bs.Covariance.from_matrix(matrix(0, 12))
    shared = SharedProblem.of(cov, 5, 2)
    start = SharedSet.of(cov, np.arange(5), 2)
    at_once, in_parts = (SharedSearch(shared, start, Budget()) for _ in range(2))
    at_once.run()
    assert at_once.nodes > 9
    for most in (1, 4, 9, None):
        in_parts.run(most)
        assert most is None or in_parts.nodes in (most - 1, most)
    assert in_parts.nodes == at_once.nodes
    assert in_parts.bound == at_once.bound


@pytest.mark.usefixtures("searches")
def test_one_leaf_is_one_node():
    """All that vary: it was counted twice, so that its claim was that of a search."""
    cov = bs.Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    shared = SharedProblem.of(cov, 3, 2)
    search = SharedSearch(shared, SharedSet.of(cov, np.arange(3), 2), Budget())
    search.run()
    assert search.has_branched
    assert search.nodes == 1
    assert search.bound == pytest.approx(5.0)


def test_a_path_may_descend():
    """The set of three was given to k = 2, which refused it."""
    A = matrix(0, 8)
    for ks in ([3, 2], [4, 2, 3], [5, 5, 2]):
        path = bs.solve_shared_path(A, ks, 2, start=range(min(3, ks[0])))
        assert list(path) == list(dict.fromkeys(ks))
        for k, found in path.items():
            assert found.objective == pytest.approx(exhaustive(A, k, 2))
    with pytest.raises(ValueError, match="start has 3 features for k = 2"):
        bs.solve_shared_path(A, [2, 3], 2, start=range(3))


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_features_that_are_kept_in(seed):
    A = matrix(seed, 8)
    for include in ([0], [2, 5], [1, 3, 7]):
        found = bs.solve_shared(A, 4, 2, include=include)
        assert found.objective == pytest.approx(exhaustive(A, 4, 2, include))
        assert set(include) <= set(found.support.tolist())
        assert found.status is bs.Status.OPTIMAL
        assert found.verify(A).complete


def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200))
    for j in range(3):
        X[:, 20 * j : 20 * j + 30] += (2 - 0.3 * j) * rng.normal(size=(30, 1))
    return X


@pytest.mark.parametrize("kind", ["dense", "sparse", "matrix"])
def test_large_problems_have_a_bound_that_can_be_checked(kind):
    X = data()
    cov = {
        "dense": lambda: bs.Covariance.from_data(X),
        "sparse": lambda: bs.Covariance.from_data(sp.csr_array(X)),
        "matrix": lambda: bs.Covariance.from_matrix(np.cov(X.T)),
    }[kind]()
    found = bs.solve_shared(cov, 30, 3)
    assert found.bound_name == BoundName.DIRECTION_DUAL
    assert found.gap < 0.05
    assert found.verify(cov).complete
    point = found.certificate.dual.point
    lower = replace(
        found.certificate,
        upper_bound=found.objective * (1 + found.gap / 2),
    )
    with pytest.raises(bs.VerificationError, match="above the claimed"):
        replace(found, certificate=lower, upper_bound=lower.upper_bound).verify(cov)
    worse = replace(
        found.certificate,
        dual=replace(
            found.certificate.dual,
            point=replace(point, N=point.N / 2),
        ),
    )
    with pytest.raises(bs.VerificationError, match="above the claimed"):
        replace(found, certificate=worse).verify(cov)


def test_what_is_claimed_of_components_is_checked():
    A = matrix(0, 8)
    found = bs.solve_shared(A, 4, 2)
    for change in (
        {"objective": found.objective * 1.001, "status": bs.Status.FEASIBLE},
        {"components": found.components * 1.01},
        {"components": found.components[:, ::-1]},
        {"include": (int(np.setdiff1d(np.arange(8), found.support)[0]),)},
    ):
        with pytest.raises(bs.VerificationError):
            replace(found, **change).verify(A)


def test_limits():
    cov = bs.Covariance.from_data(data())
    assert bs.solve_shared(cov, 30, 3, limits=bs.Limits(gap=0.5)).status in (
        bs.Status.GAP_LIMIT,
        bs.Status.OPTIMAL,
    )
    for limits in (bs.Limits(time=0.0), bs.Limits(nodes=1)):
        found = bs.solve_shared(cov, 30, 3, limits=limits)
        assert found.upper_bound >= found.objective
        found.verify(cov)
    small = np.cov(np.random.default_rng(0).normal(size=(30, 25)).T)
    found = bs.solve_shared(small, 8, 3, limits=bs.Limits(nodes=5))
    assert found.nodes <= 5
    assert found.verify(small).complete


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("nodes", [2, 4, 7])
def test_a_limit_on_nodes_is_not_exceeded_by_the_second_of_two_children(nodes):
    A = np.cov(np.random.default_rng(0).normal(size=(30, 25)).T)
    found = bs.solve_shared(A, 8, 3, limits=bs.Limits(nodes=nodes))
    assert found.nodes in (nodes - 1, nodes)
    assert found.status is bs.Status.NODE_LIMIT


def test_a_path_over_k():
    A = matrix(0, 9)
    path = bs.solve_shared_path(A, [2, 3, 5], 2)
    for k, found in path.items():
        assert found.objective == pytest.approx(exhaustive(A, k, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 2, "n_components": 3}, "at most k"),
        ({"include": [9]}, r"outside 0\.\.5"),
        ({"include": [0.5]}, "include"),
        ({"include": [0, 1, 2, 3]}, "pass at most k"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"k": 3, "n_components": 2} | changes
    with pytest.raises((ValueError, TypeError), match=message):
        bs.solve_shared(np.eye(6), **arguments)


@pytest.mark.parametrize("seed", range(20))
def test_the_ky_fan_ceiling(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    B = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-8, 8)
    B = B + B.T if seed % 2 else np.round(B @ B.T, 1)
    for r in range(1, n + 2):
        exact = float(np.sort(np.linalg.eigvalsh(B.astype(float)))[::-1][:r].sum())
        ceiling = ky_fan_ceiling(B, r)
        size = float(np.abs(B).sum())
        assert exact - 1e-14 * size <= ceiling <= exact + 1e-11 * size


def test_eigenvalues_that_lapack_loses_are_no_bound():
    """λmax = 1.2345678; without eigenvectors it was found 1e-9 of it lower."""
    a, b, c = 2.9134143481250804e-157, 3.596807542253215e-157, 2.7784484368563475e-163
    A = np.array(
        [
            [-2.08383632764226e-163, 1.2345678, c, a],
            [1.2345678, -b, a, c],
            [c, a, -a, 0.0],
            [a, c, 0.0, 0.0],
        ]
    )
    assert bs.solve_shared(A, 3, 1).upper_bound >= 1.2345678
    # opt(2) = c²/a is no number, and above 0
    tiny = np.array([[-6e-91, 1.9e-211], [1.9e-211, 0.0]])
    assert bs.solve_shared(tiny, 2, 1).upper_bound > 0


def test_repr_says_what_is_chosen_and_how_well() -> None:
    found = bs.solve_shared(np.diag([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 6, 2)
    assert repr(found) == (
        "SharedSupport(k=6, n_components=2, objective=11, upper_bound=11, gap=0, "
        "status=optimal, features=['0', '1', '2', '3', '4']...)"
    )


@pytest.mark.parametrize("n", [6, 24])
def test_a_point_for_data_in_another_form_refutes_nothing(n: int):
    """The same matrix, by its entries or by no more samples than features."""
    X = np.random.default_rng(0).normal(size=(n, 24))
    data = bs.Covariance.from_data(X)
    entries = bs.Covariance.from_chunks([X[:3], X[3:]])
    for solved, other in ((data, entries), (entries, data)):
        found = bs.solve_shared(solved, 6, 2, limits=bs.Limits(nodes=1))
        assert found.bound_name == BoundName.DIRECTION_DUAL
        assert found.verify(solved).complete
        check = found.verify(other)
        assert not check.complete
        assert check.upper_bound == np.inf
        assert "another form" in check.unchecked[0]
        # in the same form it is to prove the bound
        dual = found.certificate.dual
        point = replace(dual.point, multiplier=3 * dual.point.multiplier)
        claim = replace(found.certificate, dual=replace(dual, point=point))
        with pytest.raises(bs.VerificationError, match="above the claimed"):
            replace(found, certificate=claim).verify(solved)


def test_a_joint_bound_of_as_many_samples_as_features_is_not_refuted_by_chunks():
    X = np.random.default_rng(1).normal(size=(6, 6))
    data = bs.Covariance.from_data(X)
    found = bs.solve_components(data, 2, 2, scheme="residual")
    assert found.joint_bound_name == BoundName.SHARED_SUPPORT
    assert all(check.complete for check in found.verify(data))
    last = found.verify(bs.Covariance.from_chunks([X[:3], X[3:]]))[-1]
    assert "another form" in last.unchecked[-1]
