"""Whole groups, against every union of groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import BoundName
from blockspca.certify.whole_groups import group_norms
from blockspca.proof_settings import ProofSettings


def best_union(A: np.ndarray, groups: np.ndarray, k: int) -> float:
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    best = -np.inf
    for count in range(1, len(members) + 1):
        for chosen in itertools.combinations(members, count):
            at = np.concatenate(chosen)
            if len(at) <= k:
                best = max(best, np.linalg.eigvalsh(A[np.ix_(at, at)])[-1])
    return float(best)


@pytest.mark.parametrize("form", ["matrix", "data"])
@pytest.mark.parametrize("k", [3, 7, 9])
@pytest.mark.parametrize("seed", range(3))
def test_against_every_union(form: str, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + rng.normal(size=(30, 20))
    groups = rng.integers(0, 8, size=20)
    A = np.cov(X.T)
    cov = A if form == "matrix" else bs.Covariance.from_data(X)
    constraints = bs.Constraints(groups=groups, whole_groups=True)
    result = bs.solve(cov, k, constraints=constraints)
    assert result.status is bs.Status.OPTIMAL
    assert result.objective == pytest.approx(best_union(A, groups, k), rel=1e-9)
    chosen = set(groups[result.support].tolist())
    assert set(result.support.tolist()) == set(
        np.flatnonzero(np.isin(groups, [*chosen]))
    )
    assert len(result.support) <= k
    assert bs.verify(result, cov).complete


def test_include_takes_the_whole_group() -> None:
    A = np.cov(np.random.default_rng(1).normal(size=(30, 9)).T)
    groups = np.arange(9) // 3
    constraints = bs.Constraints(groups=groups, whole_groups=True, include=[4])
    result = bs.solve(A, 6, constraints=constraints)
    assert {3, 4, 5} <= set(result.support.tolist())
    assert result.status is bs.Status.OPTIMAL
    path = bs.solve_path(
        A, 6, constraints=bs.Constraints(groups=groups, whole_groups=True)
    )
    assert list(path) == [3, 4, 5, 6]


def test_norms_bound_every_union() -> None:
    rng = np.random.default_rng(2)
    A = rng.normal(size=(9, 9))
    A = A + A.T
    groups = [np.arange(0, 3), np.arange(3, 4), np.arange(4, 9)]
    N = group_norms(bs.Covariance.from_matrix(A), groups)
    for count in (1, 2, 3):
        for chosen in itertools.combinations(range(3), count):
            at = np.concatenate([groups[g] for g in chosen])
            own = np.linalg.eigvalsh(A[np.ix_(at, at)])[-1]
            assert own <= np.linalg.eigvalsh(N[np.ix_(chosen, chosen)])[-1]


@pytest.mark.parametrize(
    ("given", "k", "said"),
    [
        ({}, 2, "have 3 feature"),
        ({"include": [0, 3]}, 5, "include has 6 features for k = 5"),
        ({"include": [0], "exclude": [1]}, 5, "which is used as a whole"),
        ({"nonnegative": True}, 5, "is not offered"),
    ],
)
def test_what_cannot_be(given: dict, k: int, said: str) -> None:
    constraints = bs.Constraints(groups=np.arange(9) // 3, whole_groups=True, **given)
    with pytest.raises(ValueError, match=said):
        bs.solve(np.eye(9), k, constraints=constraints)


@pytest.mark.parametrize("exponent", [-560, -540, 500, 530])
def test_entries_whose_squares_vanish_or_overflow(exponent: int) -> None:
    """Norms, margins included, are those of A in other units; and so is the optimum."""
    rng = np.random.default_rng(6)
    A = rng.normal(size=(7, 7))
    A += A.T
    unit = 2.0**exponent
    label = np.array([2, 1, 1, 2, 2, 0, 2])
    groups = [np.flatnonzero(label == g) for g in range(3)]
    here = group_norms(bs.Covariance.from_matrix(unit * A), groups)
    there = group_norms(bs.Covariance.from_matrix(A), groups)
    assert (here == unit * there).all()
    limits = bs.Constraints(groups=label, whole_groups=True)
    scaled = bs.solve(unit * A, 5, constraints=limits)
    plain = bs.solve(A, 5, constraints=limits)
    assert scaled.status is bs.Status.OPTIMAL
    assert scaled.support.tolist() == plain.support.tolist()
    assert scaled.objective == pytest.approx(unit * plain.objective, rel=1e-13)
    assert bs.verify(scaled, unit * A).complete


def test_a_part_by_the_direction_dual_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins from a support, of which a part of whole groups has none of its own."""
    settings = ProofSettings(single_k_from=2, chain_up_to=1)
    monkeypatch.setattr("blockspca.pipeline.SETTINGS", settings)
    A = np.corrcoef(np.random.default_rng(15).normal(size=(12, 14)).T)
    A = (A + A.T) / 2
    limits = bs.Constraints(groups=np.arange(14) // 2, whole_groups=True)
    result = bs.solve(A, 4, constraints=limits, limits=bs.Limits(gap=0.02))
    steps = [step for part in result.certificate.parts for step in part.steps]
    assert BoundName.DIRECTION_DUAL in {step.bound_name for step in steps}
    assert bs.verify(result, A).complete
