"""The entry dual with a sum of eigenvalues, against brute force, and its check."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.components.joint_entries import (
    JointEntries,
    joint_entries,
    proved_value,
)
from blockspca.limits import Deadline
from component_problems import correlated, matrix


def best_orthogonal(A: np.ndarray, supports: tuple, rng: np.random.Generator) -> float:
    """A good value of orthonormal vectors on given supports: one after the other."""
    d, best = len(A), -np.inf
    for _ in range(3):
        V = [np.zeros(d) for _ in supports]
        for _ in range(6):
            for j, support in enumerate(supports):
                others = [v for i, v in enumerate(V) if i != j and v.any()]
                start = rng.normal(size=(d, d)) if not others else None
                W = np.array(others).T if others else np.zeros((d, 0))
                at = np.array(support)
                left, sizes, _ = np.linalg.svd(W[at])
                null = left[:, int((sizes > 1e-9).sum()) :]
                if null.shape[1] == 0:
                    continue
                if start is not None:  # any direction to begin with
                    x = null @ rng.normal(size=null.shape[1])
                else:
                    inner = null.T @ A[np.ix_(at, at)] @ null
                    x = null @ np.linalg.eigh(inner)[1][:, -1]
                V[j] = np.zeros(d)
                V[j][at] = x / np.linalg.norm(x)
        if all(v.any() for v in V):
            X = np.array(V)
            if np.abs(X @ X.T - np.eye(len(V))).max() < 1e-9:
                best = max(best, float(np.trace(X @ A @ X.T)))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_no_orthogonal_components_exceed_the_bound(seed):
    d, k = 5, 2
    A = matrix(seed, d)
    cov = bs.Covariance.from_matrix(A)
    rng = np.random.default_rng(seed)
    sets = list(combinations(range(d), k))
    for m in (2, 3):
        best = max(
            best_orthogonal(A, supports, rng)
            for supports in (
                product(sets, repeat=m) if m == 2 else combinations(sets, m)
            )
        )
        found = joint_entries(cov, k, m, best, Deadline(None))
        assert found.upper_bound >= best
        assert found.upper_bound <= np.linalg.eigvalsh(A)[::-1][:m].sum() + 1e-6 * abs(
            best
        )
        assert found.proved(cov) <= found.upper_bound


@pytest.mark.parametrize("seed", range(8))
def test_every_point_is_a_bound(seed):
    """Weights and shares at random, against disjoint components by brute force."""
    d, k, m = 6, 2, 2
    A = matrix(seed, d)
    cov = bs.Covariance.from_matrix(A)
    rng = np.random.default_rng(seed)
    best = max(
        sum(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in (first, second))
        for first, second in combinations(combinations(range(d), k), 2)
        if not set(first) & set(second)
    )
    same = max(np.trace(A[np.ix_(s, s)]) for s in combinations(range(d), k))
    unit = 4.0 ** np.floor(np.log(max(best, same)) / np.log(4))
    for _ in range(20):
        weights = rng.gamma(1.0, size=d) * np.sqrt(np.abs(A).max() / unit)
        shares = np.clip(2 * rng.normal(size=(d, d)), -1, 1)
        shares = np.triu(shares, 1)
        record = EntryRecord.of(weights, unit, np.arange(d), shares + shares.T)
        assert proved_value(cov, k, m, record) >= max(best, same)


def test_an_exact_bound():
    A = np.kron(np.diag([3.0, 2.0, 1.0]), np.ones((3, 3)))
    found = joint_entries(bs.Covariance.from_matrix(A), 3, 2, 15.0, Deadline(None))
    assert found.upper_bound == pytest.approx(15.0, rel=1e-6)
    assert found.upper_bound >= 15.0


SCHEMES = (bs.Orthogonalised(), bs.DisjointSupports())


@pytest.fixture(scope="module")
def orthogonal() -> bs.Components:
    return bs.solve_components(correlated(), 5, 3, scheme=bs.Orthogonalised())


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_the_joint_gap_of_orthogonal_components(scheme):
    A = correlated()
    found = bs.solve_components(A, 5, 3, scheme=scheme)
    assert found.joint_bound_name == "entry dual"
    assert isinstance(found.joint_proof, JointEntries)
    plain = found.explained_variance.sum()
    assert found.joint_total == plain
    assert found.joint_gap == pytest.approx(found.joint_upper_bound / plain - 1)
    assert found.joint_gap < 0.05
    found.verify(A)


def test_what_is_claimed_is_checked(orthogonal):
    A, found = correlated(), orthogonal
    proof = found.joint_proof
    lower = replace(found, joint_upper_bound=found.joint_upper_bound * (1 - 1e-6))
    with pytest.raises(bs.VerificationError, match="joint bound by entry dual"):
        lower.verify(A)
    for other in ({"k": 4}, {"n_components": 2}):
        changed = replace(found, joint_proof=replace(proof, **other))
        with pytest.raises(bs.VerificationError, match="not for these components"):
            changed.verify(A)
    forged = replace(proof.record, shares=(3 * proof.record.shares).astype(np.int16))
    with pytest.raises(bs.VerificationError, match="joint bound"):
        replace(found, joint_proof=replace(proof, record=forged)).verify(A)


def test_it_is_not_for_components_that_are_not_orthogonal(orthogonal):
    """Adjusted variances of such components can be above the bound."""
    A = correlated()
    found = bs.solve_components(A, 5, 3, scheme=bs.ResidualDeflation(), limits=0.5)
    assert found.joint_bound_name != "entry dual"
    taken = replace(
        found,
        joint_bound_name="entry dual",
        joint_proof=orthogonal.joint_proof,
        joint_upper_bound=orthogonal.joint_upper_bound,
    )
    with pytest.raises(bs.VerificationError, match="not for these components"):
        taken.verify(A)


def test_an_ascent_goes_on_while_steps_gain_little():
    """The target may be far below the bound, so that steps gain little of the gap."""
    A = np.cov(np.random.default_rng(0).normal(size=(20, 12)).T)
    target = np.linalg.eigvalsh(A)[-3:].sum() / 2
    found = joint_entries(bs.Covariance.from_matrix(A), 4, 3, target, Deadline(None))
    assert found.upper_bound < 6.468  # 6.474 after steps as for one component
