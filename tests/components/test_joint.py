"""The joint bound by the features that components use together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import blockspca as bs
from blockspca.components.joint import joint_claim, joint_proof
from blockspca.components.variance import adjusted_variance, joint_bounds
from blockspca.limits import Budget

SCHEMES = (bs.UncorrelatedScores(), bs.ResidualDeflation())


def flat_factors(seed: int = 0, d: int = 40) -> np.ndarray:
    """Many small groups: single components add up to more than features can carry."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, d))
    X[:, :12] += 2 * rng.normal(size=(30, 1))
    X[:, 12:16] += rng.normal(size=(30, 1))
    return X


@cache
def solved(scheme: bs.components.Scheme) -> tuple[bs.Covariance, bs.Components]:
    """Three components of eight features, with their joint bound."""
    cov = bs.Covariance.from_data(flat_factors())
    return cov, bs.solve_components(cov, 8, 3, scheme=scheme)


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_the_bound_by_shared_features_is_less_and_is_checked(scheme):
    cov, found = solved(scheme)
    assert found.joint_bound_name == "shared support"
    assert found.joint_proof.k == 24
    single = 3 * found[0].upper_bound
    assert found.joint_upper_bound < single
    assert found.adjusted_explained_variance.sum() <= found.joint_upper_bound
    found.verify(cov)
    lower = replace(found, joint_upper_bound=found.joint_upper_bound * (1 - 1e-6))
    with pytest.raises(bs.VerificationError, match="joint bound by shared support"):
        lower.verify(cov)
    smaller = replace(found, joint_proof=bs.solve_shared(cov, 20, 3))
    with pytest.raises(bs.VerificationError, match="not for these components"):
        smaller.verify(cov)
    with pytest.raises(bs.VerificationError, match="does not exist"):
        replace(found, joint_proof=None).verify(cov)


@pytest.mark.parametrize("seed", range(6))
def test_no_components_exceed_the_joint_bound(seed):
    """Every pair of supports, with loadings that a local search makes good."""
    rng = np.random.default_rng(seed)
    A = np.cov((rng.normal(size=(9, 6)) * rng.gamma(2.0, size=6)).T)
    bound = bs.solve_components(A, 2, 2, scheme=bs.ResidualDeflation())
    best = 0.0
    for first, second in combinations(combinations(range(6), 2), 2):
        for a, b in ((first, second), (second, first)):
            for angle in np.linspace(0, np.pi, 60):
                V = np.zeros((2, 6))
                V[0, list(a)] = np.cos(angle), np.sin(angle)
                left = A - np.outer(A @ V[0], A @ V[0]) / (V[0] @ A @ V[0])
                _, vectors = np.linalg.eigh(left[np.ix_(b, b)])
                V[1, list(b)] = vectors[:, -1]
                best = max(best, float(adjusted_variance(V @ A @ V.T).sum()))
    assert best <= bound.joint_upper_bound * (1 + 1e-12)


def test_the_estimator_says_the_joint_gap():
    model = bs.SparsePCA(3, k=8).fit(flat_factors())
    total = model.explained_variance_.sum()
    assert model.joint_gap_ == pytest.approx(model.joint_upper_bound_ / total - 1)


def test_without_proofs_there_is_none():
    found = bs.solve_components(np.cov(flat_factors().T), 8, 3, certify=False)
    assert found.joint_proof is None


def test_a_limit_on_nodes_reaches_the_joint_bound():
    cov, found = solved(SCHEMES[1])
    results = found.results
    nearly = sum(result.objective for result in results)
    proofs = []
    for left in (0, 1, 5):
        budget, sums = Budget(bs.Limits(nodes=9)), (nearly, 1e9)
        budget.nodes = 9 - left
        found = joint_claim(cov, results, None, SCHEMES[1], sums, budget, prove=True)
        proofs.append(found[2])
    assert proofs[0] is None
    assert proofs[1].nodes == 1
    assert proofs[2].nodes == 5


def test_nodes_of_the_joint_bound_are_counted():
    cov, found = solved(SCHEMES[1])
    budget = Budget(bs.Limits())
    root = joint_proof(cov, found.results, budget, (0.0, np.inf))
    assert budget.nodes == root.nodes == 1
    searched = joint_proof(cov, found.results, budget, (root.objective, np.inf))
    assert searched.nodes > 1
    assert budget.nodes == 1 + searched.nodes  # the root is not made twice


def test_limits_reach_the_branch_and_bound_behind_the_joint_bound():
    cov, found = solved(SCHEMES[1])
    shared = found.joint_proof
    near = joint_proof(cov, found.results, Budget(), (shared.objective, np.inf))
    assert near.bound_name == "branch and bound"
    bound = near.upper_bound * (1 + 1e-12)  # rounded once more
    claimed = {"joint_proof": near, "joint_upper_bound": bound}
    found = replace(found, **claimed)
    assert found.verify(cov)[-1].complete
    for limits in ({"max_nodes": 1}, {"time_limit": 1e-6}):
        left = found.verify(cov, **limits)[-1].unchecked
        assert any("joint bound" in words and "nodes" in words for words in left)


def test_nodes_are_for_a_root_that_lowers_the_bound_or_for_sweeps():
    """They were most of the time of two components, and gained nothing."""
    cov, found = solved(SCHEMES[1])
    budget = Budget(bs.Limits())
    root = joint_proof(cov, found.results, budget, (0.0, np.inf))
    assert root.nodes == 1
    total = root.objective  # so that there is a gap to close
    for known, is_swept, searched in (
        (root.upper_bound * (1 + 1e-6), False, True),
        (root.upper_bound * (1 - 1e-6), False, False),
        (root.upper_bound * (1 - 1e-6), True, True),
    ):
        between = (total, known)
        proof = joint_proof(cov, found.results, budget, between, is_swept)
        assert (proof.nodes > 1) == searched


def test_a_branch_and_bound_is_made_where_it_can_close_the_gap():
    cov, found = solved(SCHEMES[1])
    shared = found.joint_proof
    assert shared.nodes == 1  # adjusted variances are far below what features carry
    budget = Budget(bs.Limits())
    near = joint_proof(cov, found.results, budget, (shared.objective, np.inf))
    assert near.nodes > 1
    assert near.upper_bound < shared.upper_bound
    # What is known may be below all that features that are shared can prove.
    used = np.unique(np.concatenate(found.supports))
    reached = np.linalg.eigvalsh(cov.submatrix(used))[-3:].sum()
    known = (0.0, reached * (1 - 1e-9))
    assert joint_proof(cov, found.results, budget, known) is None


def blocks_of_two() -> np.ndarray:
    """Three features are taken by the first component, and two by a better one."""
    A = np.kron(np.eye(2), [[1.0, 0.9], [0.9, 1.0]])
    A[1, 2] = A[2, 1] = 0.05
    return A


@pytest.mark.parametrize("sweeps", [0, 2])
@pytest.mark.parametrize("scheme", ["disjoint", "residual-disjoint"])
def test_the_joint_bound_is_for_the_sparsities_that_were_asked_for(scheme, sweeps):
    """It was for three features and one, all that was left, and below another set."""
    A = blocks_of_two()
    found = bs.solve_components(A, 3, 2, scheme=scheme, sweeps=sweeps)
    assert [result.k for result in found.results] == [3, 1]
    assert found.sparsities == (3, 3)
    better = bs.solve_components(A, 2, 2, scheme=scheme)
    assert found.joint_upper_bound >= better.joint_total > found.joint_total
    assert all(check.complete for check in found.verify(A))
    fewer = replace(found, sparsities=(3, 0))
    with pytest.raises(bs.VerificationError, match="are not those of the components"):
        fewer.verify(A)


def test_a_joint_bound_for_fewer_features_than_were_asked_for_is_refuted():
    A = np.diag([4.0, 3.0, 2.0, 1.0]) + 0.1
    cov, found = (
        bs.Covariance.from_matrix(A),
        bs.solve_components(A, [2, 3], 2, scheme="disjoint"),
    )
    assert [result.k for result in found.results] == [2, 2]
    fewer = joint_bounds(cov, found[0], [2, 2], margin=1.0)["components"]
    claimed = {"joint_upper_bound": fewer, "joint_bound_name": "components"}
    lower = replace(found, **claimed)
    with pytest.raises(bs.VerificationError, match="joint bound by components"):
        lower.verify(A)
    # as in a set that was stored without the sparsities
    replace(lower, sparsities=()).verify(A)


def test_components_after_ctrl_c_have_the_sparsities_of_those_that_were_reached():
    A = np.cov(flat_factors().T)

    def stop(event: bs.Event) -> None:
        if event.component == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        found = bs.solve_components(A, [8, 7, 6], 3, progress=stop)
    assert found.sparsities == (8, 7, 6)[: len(found)]
    assert len(found) < 3
