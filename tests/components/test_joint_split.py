"""What orthogonal components share, split off: a bound, against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.log import SearchLog, SearchRecord
from blockspca.components import joint
from blockspca.components import joint_split as joint_split_module
from blockspca.components.joint import joint_claim
from blockspca.components.joint_entries import joint_entries
from blockspca.components.joint_split import (
    JointSplit,
    _is_exact,
    _joined,
    _rounded,
    _without,
    joint_split,
)
from blockspca.limits import Budget, Deadline
from component_problems import correlated, matrix


def leading(A: np.ndarray, support: tuple[int, ...]) -> float:
    return float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])


def best_pair(A: np.ndarray, k: int) -> float:
    """Two orthogonal components of k features, disjoint or on the same features."""
    sets = list(combinations(range(len(A)), k))
    apart = max(
        leading(A, first) + leading(A, second)
        for first, second in combinations(sets, 2)
        if not set(first) & set(second)
    )
    same = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-2:].sum() for s in sets)
    return max(apart, float(same))


@pytest.mark.parametrize("seed", range(5))
def test_no_pair_exceeds_the_bound(seed):
    A = matrix(seed, 7)
    cov = bs.Covariance.from_matrix(A)
    for k in (2, 3):
        best = best_pair(A, k)
        entries = joint_entries(cov, k, 2, best, Deadline(None))
        found = joint_split(cov, entries, [np.arange(k)], 100, Budget())
        assert found.upper_bound >= best
        assert found.proved(cov) <= found.upper_bound


@pytest.mark.parametrize("seed", range(10))
def test_any_directions_give_a_bound(seed):
    """With the exact optimum of what is left, by brute force."""
    A = matrix(seed, 6)
    cov = bs.Covariance.from_matrix(A)
    rng = np.random.default_rng(seed)
    best = best_pair(A, 2)
    for columns in (0, 1, 2, 5):
        B = _rounded(rng.normal(size=(6, columns)) * np.sqrt(np.abs(A).max()))
        problem, error = _without(cov, B)
        left = problem.submatrix(slice(None))
        exact = max(leading(left, s) for s in combinations(range(6), 2))
        assert _joined(exact, error, B, 2, 2) >= best * (1 - 1e-15)
        whole = np.zeros((6, 6))
        for column in B.T[::-1]:  # in another order, without rounding
            whole = whole + np.outer(column, column)
        np.testing.assert_array_equal(B @ B.T, whole)


@pytest.fixture(scope="module")
def swept() -> bs.Components:
    return bs.solve_components(correlated(), 5, 3, scheme=bs.Orthogonalised(), sweeps=1)


def test_sweeps_are_followed_by_a_search(swept):
    assert isinstance(swept.joint_proof, JointSplit)
    assert swept.joint_bound_name == "split entry dual"
    assert swept.joint_gap < 0.03
    swept.verify(correlated())


@pytest.mark.parametrize("scheme", ["disjoint", "orthogonal", "residual-disjoint"])
def test_nothing_is_searched_that_nobody_would_see(scheme, monkeypatch):
    """Where the bounds leave less than 0.01 %, and for adjusted variances."""

    def refuse(*_: object) -> None:
        raise AssertionError("a search for nothing")

    monkeypatch.setattr(joint, "joint_split", refuse)
    A = np.kron(np.diag([3.0, 2.0, 1.0]), np.full((3, 3), 0.9) + 0.1 * np.eye(3))
    A[:3, 3:6] = A[3:6, :3] = 1e-5
    found = bs.solve_components(A, 3, 2, scheme=scheme, sweeps=1)
    assert found.joint_gap < 1e-4
    if scheme == "residual-disjoint":
        A = np.cov(np.random.default_rng(2).normal(size=(20, 8)).T)
        assert (
            bs.solve_components(A, 2, 2, scheme=scheme, sweeps=1).joint_gap > joint.SEEN
        )


def test_nodes_of_all_searches_are_within_the_limit_and_counted(swept, monkeypatch):
    """With 23 of 80 left, two searches took 17 and 23, and none were counted."""
    search, taken = joint_split_module.entry_bound, []

    def counted(*arguments, **options):
        found = search(*arguments, **options)
        taken.append(found.nodes)
        return found

    monkeypatch.setattr(joint_split_module, "entry_bound", counted)
    cov, budget = bs.Covariance.from_matrix(correlated()), Budget(bs.Limits(nodes=80))
    budget.nodes = 57
    plain = float(swept.explained_variance.sum())
    proof = joint_claim(
        cov,
        swept.results,
        swept.first,
        swept.scheme,
        (plain, plain),
        budget,
        prove=True,
    )[2]
    assert isinstance(proof, JointSplit)
    assert 17 <= sum(taken) <= 23
    assert 57 + sum(taken) <= budget.nodes <= 80


def test_limits_reach_the_search_behind_the_joint_bound(swept):
    A, claimed = correlated(), swept.joint_upper_bound
    first, *_, last = swept.verify(A)
    assert last.complete
    for limits in ({"max_nodes": 1}, {"time_limit": 1e-6}):
        first, *_, last = swept.verify(A, **limits)
        (left,) = [words for words in last.unchecked if "joint bound" in words]
        assert f"at most {claimed:.12g}, by split entry dual: more nodes" in left
        assert last.upper_bound == np.inf
    assert not any("joint" in words for words in first.unchecked)
    low = replace(swept.joint_proof, upper_bound=0.9 * swept.joint_total)
    claim = replace(swept, joint_proof=low, joint_upper_bound=low.upper_bound)
    with pytest.raises(bs.VerificationError, match="more than the joint"):
        claim.verify(A, max_nodes=1)


def test_what_is_claimed_is_checked(swept):
    A, proof = correlated(), swept.joint_proof
    lower = replace(swept, joint_upper_bound=swept.joint_upper_bound * (1 - 1e-6))
    with pytest.raises(bs.VerificationError, match="joint bound by split"):
        lower.verify(A)
    fewer = replace(proof, directions=proof.directions / 2)
    inexact = replace(proof, directions=proof.directions * (1 + 2.0**-40))
    many = replace(proof, directions=np.tile(proof.directions, 8))
    for changed, message in (
        (fewer, "joint bound by split"),
        (inexact, "24 digits"),
        (many, "split nothing off"),
        (replace(proof, k=4), "not for these"),
        (replace(proof, n_components=4), "not for these"),
    ):
        with pytest.raises(bs.VerificationError, match=message):
            replace(swept, joint_proof=changed).verify(A)


def test_the_point_of_a_dual_proves_as_well():
    """Where there are no nodes, a record of weights takes the place of a search."""
    A = correlated()
    cov = bs.Covariance.from_matrix(A)
    B = np.zeros((len(A), 1))
    bound = entry_bound(cov, 4, np.arange(4))
    proof = JointSplit(np.inf, 4, 2, B, bound.record)
    assert proof.proved(cov) == pytest.approx(2 * bound.value, rel=1e-9)


@pytest.mark.parametrize("scheme", ["disjoint", "orthogonal"])
def test_verified_as_often_as_one_likes(scheme):
    """A log is read from its beginning each time."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 14))
    X[:, :5] += 1.2 * rng.normal(size=(40, 1))
    X[:, 3:9] += 1.2 * rng.normal(size=(40, 1))
    cov = bs.Covariance.from_matrix(np.cov(X.T))
    found = bs.solve_components(cov, 3, 2, scheme=scheme, sweeps=2)
    for _ in range(2):
        assert all(check.complete for check in found.verify(cov))


def test_a_record_that_nobody_has_read_is_checked():
    A = np.diag([100.0, 90.0, 80, 1, 1, 1])
    for i, j, value in ((0, 1, 5), (2, 3, 3), (1, 4, 7), (0, 2, 11)):
        A[i, j] = A[j, i] = value
    cov = bs.Covariance.from_matrix(A)
    found = bs.solve_components(cov, 2, 2, scheme="disjoint")
    repeated = np.full(6, 5, dtype=np.intp)
    record = SearchRecord(6, 1.0, 1.0, repeated, SearchLog([], []))
    forged = replace(
        found,
        joint_proof=JointSplit(20.0, 6, 2, np.zeros((6, 1)), record),
        joint_upper_bound=20.0,
        joint_bound_name=BoundName.SPLIT_ENTRY_DUAL,
    )
    with pytest.raises(bs.VerificationError):
        forged.verify(cov)


def test_slopes_that_underflow_end_no_ascent():
    A = np.diag([100.0, 90.0, 80, 1, 1, 1])
    A[0, 1] = A[1, 0] = 5
    found = bs.solve_components(A, 2, 2, scheme="disjoint")
    assert found.joint_upper_bound >= found.explained_variance.sum()


def test_directions_whose_products_underflow_are_refused():
    """2⁻⁵³⁷ squared is the least number; half of it squared is none."""
    least = 2.0**-537 * 2.0**23  # the largest entry that has this unit
    assert _is_exact(np.array([[least], [0.0]]))
    assert not _is_exact(np.array([[least / 2], [0.0]]))
    assert _is_exact(np.zeros((2, 1)))


def test_components_above_their_joint_bound_refute_it():
    found = bs.solve_components(np.diag([3.0, 2.0, 1.0]), 1, 2, scheme="disjoint")
    assert all(check.complete for check in found.verify(np.diag([3.0, 2.0, 1.0])))
    low = np.nextafter(found.joint_total * (1 - 1e-6), 0)
    forged = replace(found, joint_upper_bound=float(low))
    with pytest.raises(bs.VerificationError):
        forged.verify(np.diag([3.0, 2.0, 1.0]))
