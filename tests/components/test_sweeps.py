"""Sweeps: no total falls, and every certificate is about the set that is returned."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.certificate import restated
from blockspca.components.in_turn import Call
from blockspca.components.scheme import NoComponent
from blockspca.components.sweeps import (
    NotAmongTheOthers,
    SweepGoal,
    others,
    swept,
    total,
)
from component_problems import SCHEMES, ids, matrix

SOLVE_AGAIN = "blockspca.components.in_turn.Call.__call__"


def best_disjoint_pairs(A: np.ndarray) -> float:
    def top(pair: tuple[int, ...]) -> float:
        return float(np.linalg.eigvalsh(A[np.ix_(pair, pair)])[-1])

    pairs = list(combinations(range(len(A)), 2))
    return max(top(p) + top(q) for p in pairs for q in pairs if not set(p) & set(q))


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
@pytest.mark.parametrize("seed", range(2))
def test_totals_do_not_fall_and_proofs_hold(scheme, seed):
    rng = np.random.default_rng(seed)
    A = np.cov((rng.normal(size=(12, 9)) * rng.gamma(2.0, size=9)).T)
    cov = bs.Covariance.from_matrix(A)
    before = bs.solve_components(cov, 3, 3, scheme=scheme)
    totals = [total(cov, before.results, scheme)]
    for sweeps in (1, 6):
        found = bs.solve_components(cov, 3, 3, scheme=scheme, sweeps=sweeps)
        totals.append(total(cov, found.results, scheme))
        assert all(check.complete for check in found.verify(cov))
        for j, result in enumerate(found.results):
            assert len(result.support) <= 3
            problem = found.problem(j, cov).submatrix(slice(None))
            assert result.x @ problem @ result.x == pytest.approx(result.objective)
    assert min(totals[1:]) >= totals[0] - 1e-12 * abs(totals[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scheme", SCHEMES[:1], ids=ids[:1])
def test_swept_components_are_each_the_best_given_the_others(scheme, seed, brute_force):
    A = np.cov(np.random.default_rng(seed).normal(size=(15, 8)).T)
    found = bs.solve_components(A, 2, 3, scheme=scheme, sweeps=10)
    for j, result in enumerate(found.results):
        used = np.unique(
            np.concatenate([*found.supports[:j], *found.supports[j + 1 :]])
        )
        free = np.setdiff1d(np.arange(8), used)
        best = brute_force(A[np.ix_(free, free)], 2)
        assert result.status is bs.Status.OPTIMAL
        assert result.objective == pytest.approx(best)


@pytest.mark.parametrize("disjoint", [False, True])
def test_swept_residual_components_are_each_the_best_given_the_others(
    disjoint, brute_force
):
    """Where the product of variances rises with their sum; it did not, by the sum."""
    scheme, proved = bs.ResidualDeflation(disjoint=disjoint), 0
    for seed in range(8):
        A = np.cov(np.random.default_rng(seed).normal(size=(12, 9)).T)
        before = bs.solve_components(A, 2, 3, scheme=scheme)
        found = bs.solve_components(A, 2, 3, scheme=scheme, sweeps=20)
        least = before.adjusted_explained_variance.sum() * (1 - 1e-12)
        assert found.adjusted_explained_variance.sum() >= least
        assert all(check.complete for check in found.verify(A))
        if {*found.statuses} != {bs.Status.OPTIMAL}:
            continue
        proved += 1
        for j, result in enumerate(found.results):
            problem = found.problem(j, A).submatrix(slice(None))
            free = np.arange(9)
            if disjoint:
                rest = [*found.supports[:j], *found.supports[j + 1 :]]
                free = np.setdiff1d(free, np.concatenate(rest))
            best = brute_force(problem[np.ix_(free, free)], 2)
            assert result.objective == pytest.approx(best)
    assert proved >= 3


def test_where_the_sum_falls_with_the_product_the_sum_is_raised():
    """Eisen's genes fell from 71.40 to 71.20 %, and are raised to 71.42."""
    raised = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) @ rng.standard_normal((9, 9))
        cov = bs.Covariance.from_data(X * rng.gamma(2.0, size=9))
        before = bs.solve_components(cov, 2, 3, scheme="residual")
        found = bs.solve_components(cov, 2, 3, scheme="residual", sweeps=20)
        assert found.first is not None
        assert found.joint_total >= before.joint_total * (1 - 1e-12)
        by_sum = {*found.statuses} != {bs.Status.OPTIMAL}
        raised += by_sum and found.joint_total > before.joint_total * (1 + 1e-6)
    assert raised >= 2


@pytest.mark.parametrize("seed", [0, 11])
def test_the_sum_is_raised_where_a_score_adds_nothing(seed):
    """Three directions for four components: the product is 0, and nothing raised it."""
    A = np.cov(np.random.default_rng(seed).normal(size=(4, 10)).T)
    before = bs.solve_components(A, 2, 4, scheme="residual")
    found = bs.solve_components(A, 2, 4, scheme="residual", sweeps=5)
    assert found.joint_total > before.joint_total + 1e-3


@pytest.mark.parametrize("at", range(6))
def test_ctrl_c_in_sweeps_is_told_wherever_it_comes(at, monkeypatch):
    """Lost in the last proofs, and where the sum was to be raised after that."""
    solve_again, calls = Call.__call__, []

    def interrupted(self, index, given, x, last):
        result = solve_again(self, index, given, x, last)
        calls.append(last)
        if len(calls) == at + 1:
            self.interrupted = True
            result = restated(result, status=bs.Status.INTERRUPTED)
        return result

    A = np.cov(np.random.default_rng(1).normal(size=(12, 9)).T)
    plain = bs.solve_components(A, 2, 3, scheme="residual")
    monkeypatch.setattr(Call, "__call__", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        found = bs.solve_components(A, 2, 3, scheme="residual", sweeps=2)
    assert {*found.statuses} == {bs.Status.INTERRUPTED}
    assert found.joint_total >= plain.joint_total * (1 - 1e-12)


@pytest.mark.parametrize("seed", [0, 3])
def test_after_ctrl_c_components_found_in_turn_are_not_called_swept(seed):
    """The sum had fallen with the product: those in turn were named as of the sweep."""
    rng, mixed = (np.random.default_rng(seed + more) for more in (0, 50))
    X = rng.normal(size=(30, 7)) @ mixed.normal(size=(7, 7))
    cov, told = bs.Covariance.from_data(X), []

    def stop(event):
        told.append(event)
        if len(told) == 30:
            raise KeyboardInterrupt

    options = {"scheme": "residual", "n_jobs": 1}
    with pytest.warns(UserWarning, match="interrupted"):
        found = bs.solve_components(cov, 3, 3, sweeps=2, progress=stop, **options)
    plain = bs.solve_components(cov, 3, 3, **options)
    assert found.first is None
    assert np.array_equal(found.components, plain.components)
    assert {*found.statuses} == {bs.Status.INTERRUPTED}
    assert all(check.complete for check in found.verify(cov))


@pytest.mark.data
def test_a_swept_set_of_real_data_is_proved_and_better(load):
    cov = bs.Covariance.from_data(load("srbct_khan"))
    before = bs.solve_components(cov, 10, 5, scheme="residual")
    found = bs.solve_components(cov, 10, 5, scheme="residual", sweeps=10)
    assert [status.value for status in found.statuses] == ["optimal"] * 5
    gained = found.adjusted_explained_variance.sum()
    assert gained > 1.07 * before.adjusted_explained_variance.sum()
    assert found.r2 > before.r2


def test_loadings_that_must_not_be_negative_stay_so_in_sweeps():
    A = matrix(1, 9)
    rules = bs.Constraints(nonnegative=True)
    options = {"scheme": "residual", "constraints": rules}
    before = bs.solve_components(A, 3, 3, **options)
    found = bs.solve_components(A, 3, 3, sweeps=4, **options)
    assert (found.components >= 0).all()
    assert found.joint_total >= before.joint_total * (1 - 1e-12)


def test_a_set_that_no_single_component_can_leave_stays():
    """A set that no single component can leave stays, and is proved to be one."""
    A = np.array([[4.0, 0, 1.9, 0], [0, 4, 0, 0], [1.9, 0, 4, 0], [0, 0, 0, 3.9]])
    A[1, 3] = A[3, 1] = 1.85
    A[0, 1] = A[1, 0] = 2.0
    plain = bs.solve_components(A, 2, 2, scheme="disjoint")
    assert plain.explained_variance.sum() < best_disjoint_pairs(A) - 0.05
    # {0, 1} and {2, 3}: each is the best while the other stays, so sweeps end there.
    again = bs.solve_components(A, 2, 2, scheme="disjoint", sweeps=5)
    assert again.explained_variance.sum() == plain.explained_variance.sum()
    assert [status.value for status in again.statuses] == ["optimal", "optimal"]


def test_a_sweep_improves_what_came_first():
    improved = 0
    for seed in range(2):
        A = np.cov(np.random.default_rng(seed).normal(size=(10, 9)).T)
        for scheme in SCHEMES:
            options = {"scheme": scheme, "certify": False}
            before = bs.solve_components(A, 3, 3, **options)
            after = bs.solve_components(A, 3, 3, sweeps=3, **options)
            cov = bs.Covariance.from_matrix(A)
            gain = total(cov, after.results, scheme) - total(
                cov, before.results, scheme
            )
            assert gain >= -1e-12
            improved += gain > 1e-6
    assert improved > 1


def test_order_is_by_what_components_add_and_k_keeps_its_place():
    A = np.cov(np.random.default_rng(3).normal(size=(10, 9)).T)
    found = bs.solve_components(A, 3, 3, sweeps=4)
    assert (np.diff(found.explained_variance) <= 1e-12).all()
    found = bs.solve_components(A, [2, 3, 1], 3, sweeps=4)
    assert [result.k for result in found.results] == [2, 3, 1]


def test_certificates_name_the_problem_and_cannot_be_mistaken(tmp_path):
    A = np.cov(np.random.default_rng(0).normal(size=(10, 9)).T)
    found = bs.solve_components(A, 3, 2, sweeps=2)
    text = found[0].certificate.to_json()
    assert bs.Certificate.from_json(text) == found[0].certificate
    assert "given the others" in found[0].certificate.scheme
    with pytest.raises(ValueError, match="component 1 of several"):
        bs.verify(found[0], A)
    assert bs.verify(found[0], found.problem(0, A)).complete
    with pytest.raises(bs.VerificationError, match="another place or scheme"):
        replace(found, first=None).verify(A)


def test_the_joint_bound_rests_on_the_first_component_of_all():
    A = np.cov(np.random.default_rng(0).normal(size=(10, 9)).T)
    found = bs.solve_components(A, 3, 2, sweeps=2)
    step = found.first.certificate.steps[-1]
    claim = 0.999 * found.first.objective
    steps = (
        *found.first.certificate.steps[:-1],
        replace(step, upper_bound=claim, bound_name=BoundName.VARIANCES),
    )
    lower = replace(
        found.first.certificate,
        upper_bound=found.first.objective,
        status=bs.Status.FEASIBLE,
        steps=steps,
    )
    first = replace(
        found.first,
        status=bs.Status.FEASIBLE,
        upper_bound=found.first.objective,
        bound_name=lower.bound_name,
        certificate=lower,
    )
    with pytest.raises(bs.VerificationError):
        replace(found, first=first).verify(A)


def test_limits_and_interrupts_leave_valid_claims():
    A = np.cov(np.random.default_rng(0).normal(size=(20, 16)).T)
    cov = bs.Covariance.from_matrix(A)
    for limits in (bs.Limits(nodes=1), bs.Limits(time=0.0), bs.Limits(gap=0.5)):
        found = bs.solve_components(cov, 4, 3, sweeps=2, limits=limits)
        assert len(found) == 3
        found.verify(cov)
    plain = bs.solve_components(cov, 4, 3, scheme="disjoint")

    def interrupted(index, given, x, last):
        result = bs.solve(bs.DisjointSupports().problem(cov, given), 4)
        return restated(result, status=bs.Status.INTERRUPTED) if index == 1 else result

    results = swept(
        cov, plain.results, SweepGoal(bs.DisjointSupports()), 3, interrupted
    )
    assert {result.status for result in results} == {bs.Status.INTERRUPTED}
    for j, result in enumerate(results):
        problem = bs.DisjointSupports().problem(cov, others(cov, results, j))
        assert bs.verify(result, problem).complete


@pytest.mark.parametrize("sweeps", [-1, 1.5, True, "2", None])
def test_sweeps_that_are_none(sweeps):
    with pytest.raises((ValueError, TypeError), match=r"sweeps.*0 or more"):
        bs.solve_components(np.eye(3), 1, 2, sweeps=sweeps)


def test_the_estimator_sweeps():
    X = np.random.default_rng(1).normal(size=(20, 9))
    model = bs.SparsePCA(2, k=3, sweeps=3, scheme=bs.ResidualDeflation()).fit(X)
    plain = bs.SparsePCA(2, k=3, scheme=bs.ResidualDeflation()).fit(X)
    assert model.solution_.first is not None
    assert model.explained_variance_.sum() >= plain.explained_variance_.sum() - 1e-12


@pytest.mark.parametrize("scheme", ["orthogonal", "uncorrelated"])
def test_a_set_to_begin_with_has_no_more_features_than_k(scheme):
    """With as many conditions as features it had one more, called optimal at 1.7."""
    A = np.eye(3)
    A[0, 1] = A[1, 0] = 0.7
    found = bs.solve_components(A, 1, 2, scheme=scheme, sweeps=1)
    assert [len(support) for support in found.supports] == [1, 1]
    assert all(check.complete for check in found.verify(A))


def test_components_that_close_features_to_each_other_are_not_swept():
    """Each is one of its own problem: three features were claimed for k = 2."""
    A = np.array(
        [
            [0.0, 0, 1, 2, -2],
            [0, 0, 2, -1, -1],
            [1, 2, 0, 2, -1],
            [2, -1, 2, 0, -2],
            [-2, -1, -1, -2, 0],
        ]
    )
    with pytest.warns(UserWarning, match="pass n_components below 3, or sweeps=0"):
        found = bs.solve_components(A, 3, 3, scheme="residual", sweeps=1)
    assert all(len(result.support) <= result.k == 3 for result in found.results)
    assert found.first is None
    assert found.verify(A)


@pytest.mark.parametrize("interrupted", [False, True])
def test_sweeps_that_find_no_component_keep_the_set(interrupted, monkeypatch):
    """The error of the last component took all others with it, and Ctrl-C as well."""

    def refuse(*given, **options):
        if interrupted:
            raise NotAmongTheOthers(interrupted=True)
        raise NoComponent("rounding leaves the score correlated")

    module = "blockspca.components.sweep_goal.swept" if interrupted else SOLVE_AGAIN
    monkeypatch.setattr(module, refuse)
    A = np.cov(np.random.default_rng(3).normal(size=(20, 8)).T)
    with pytest.warns(UserWarning, match="sweeps = 2: given all others"):
        found = bs.solve_components(A, 3, 2, scheme="uncorrelated", sweeps=2)
    monkeypatch.undo()
    plain = bs.solve_components(A, 3, 2, scheme="uncorrelated")
    for result, before in zip(found.results, plain.results, strict=True):
        assert np.array_equal(result.x, before.x)
        status = bs.Status.INTERRUPTED if interrupted else before.status
        assert result.status is status


@pytest.mark.parametrize("scheme", ["disjoint", "orthogonal"])
def test_nothing_is_left_of_rank_one_to_search(scheme):
    """A − BB' is zero to the last bit, and the joint search ended in an IndexError."""
    A = np.outer([1.0, 2, 3, 4], [1.0, 2, 3, 4])
    found = bs.solve_components(A, 2, 2, scheme=scheme, sweeps=1)
    assert found.joint_total == pytest.approx(30)
    assert found.joint_upper_bound >= 30 * (1 - 1e-15)
    assert all(check.complete for check in found.verify(A))


def test_features_to_include_that_are_closed_leave_the_components_as_they_are():
    # two directions for three components: one adds nothing, and closes feature 0
    A = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]])
    rules = bs.Constraints(include=[0])
    found = bs.solve_components(A, 2, 3, scheme="residual", constraints=rules)
    with pytest.warns(UserWarning, match="sweeps = 2: given all others"):
        again = bs.solve_components(
            A, 2, 3, scheme="residual", sweeps=2, constraints=rules
        )
    assert np.array_equal(again.components, found.components)


@pytest.mark.parametrize("scheme", ["disjoint", "residual", "orthogonal", "hotelling"])
def test_one_component_has_no_others_to_be_solved_given(scheme: str) -> None:
    """Its certificate was for what others leave, and `verify` refused the matrix."""
    A = np.diag([5.0, 4.0, 3.0]) + 1.0
    found = bs.solve_components(A, 2, 1, scheme=scheme, sweeps=2)
    assert found.first is None
    assert all(check.complete for check in found.verify(A))
