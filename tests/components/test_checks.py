"""What is claimed of a set of components can be refuted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.components.variance import joint_bounds
from component_problems import SCHEMES, overlapping_factors
from forging import forged


@pytest.fixture(scope="module")
def A() -> np.ndarray:
    return np.cov(overlapping_factors().T)


def tampered_x(found: bs.Components, j: int, x: np.ndarray) -> bs.Components:
    results = list(found.results)
    results[j] = forged(results[j], x=x)
    rows = np.array([result.x for result in results])
    return replace(found, results=tuple(results), components=rows)


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_the_joint_bound_is_checked(A, scheme):
    found = bs.solve_components(A, [4, 3, 5], 3, scheme=scheme)
    *_, last = found.verify(A)
    assert f"by {found.joint_bound_name}" in last.checks[-1]
    for share in (0.5, 1e-3, 1e-9, 1e-11):
        lower = replace(found, joint_upper_bound=found.joint_upper_bound * (1 - share))
        with pytest.raises(bs.VerificationError, match="joint bound by"):
            lower.verify(A)
    with pytest.raises(bs.VerificationError, match="'trust' does not exist"):
        replace(found, joint_bound_name="trust").verify(A)


@pytest.mark.parametrize("name", ["components", "eigenvalues", "variances"])
def test_every_joint_bound_is_held_to_its_name(A, name):
    found = bs.solve_components(A, 3, 2)
    bounds = joint_bounds(bs.Covariance.from_matrix(A), found[0], [3, 3], margin=1.0)
    claimed = {"joint_bound_name": name, "joint_upper_bound": bounds[name]}
    replace(found, **claimed).verify(A)
    claimed["joint_upper_bound"] *= 1 - 1e-12
    with pytest.raises(bs.VerificationError, match=f"joint bound by {name}"):
        replace(found, **claimed).verify(A)


def test_an_indefinite_matrix_has_no_joint_bound_by_eigenvalues():
    A = np.diag([3.0, 2.0, 1.0, -1e-3])
    found = bs.solve_components(A, 1, 2)
    assert found.joint_bound_name == "components"
    for name in ("eigenvalues", "variances"):
        with pytest.raises(bs.VerificationError, match="does not exist"):
            replace(found, joint_bound_name=name).verify(A)


@pytest.mark.parametrize("seed", range(5))
def test_joint_bounds_hold_for_random_components(seed):
    """No unit vectors of these sparsities have a larger sum of adjusted variances."""
    from blockspca.components.variance import adjusted_variance

    rng = np.random.default_rng(seed)
    A = np.cov(rng.normal(size=(6 + 6 * (seed % 2), 8)).T)
    cov = bs.Covariance.from_matrix(A)
    sparsities = [2, 3, 8]
    bounds = joint_bounds(cov, bs.solve(A, 2), sparsities, margin=1.0)
    vectors = np.linalg.eigh(A)[1][:, ::-1].T
    for trial in range(300):
        V = np.zeros((3, 8))
        for row, k, v in zip(V, sparsities, vectors, strict=False):
            kept = rng.permutation(8)[:k] if trial else np.argsort(-np.abs(v))[:k]
            row[kept] = v[kept] if trial % 2 == 0 else rng.normal(size=k)
            row /= np.linalg.norm(row)
        total = adjusted_variance(V @ A @ V.T).sum()
        assert all(total <= bound * (1 + 1e-12) for bound in bounds.values())


@pytest.mark.parametrize("angle", [1e-6, 1e-8, 0.1])
def test_components_that_are_not_orthogonal_are_rejected(A, angle):
    found = bs.solve_components(A, 6, 4, scheme=bs.Orthogonalised())
    *_, last = found.verify(A)
    assert any("orthogonal" in line for line in last.checks)
    rows = found.components
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    shared = {(i, j): np.flatnonzero(rows[i] * rows[j]) for i, j in pairs}
    (i, j), features = max(shared.items(), key=lambda item: len(item[1]))
    assert len(features)
    turned = rows[j].copy()
    turned[features[0]] += angle / abs(rows[i][features[0]])
    turned /= np.linalg.norm(turned)
    with pytest.raises(bs.VerificationError, match="inner product"):
        tampered_x(found, j, turned).verify(A)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 0.1])
def test_supports_that_are_not_disjoint_are_rejected(A, size):
    found = bs.solve_components(A, 4, 2)
    x = found.components[1].copy()
    x[found.supports[0][0]] = size
    with pytest.raises(bs.VerificationError, match="disjoint"):
        tampered_x(found, 1, x).verify(A)


def test_what_is_said_of_the_set_is_checked(A):
    found = bs.solve_components(A, 4, 2)
    for name, words in (
        ("explained_variance", "1: the explained variance"),
        ("adjusted_explained_variance", "1: the adjusted explained variance"),
    ):
        values = getattr(found, name) * (1 + 1e-7)
        with pytest.raises(bs.VerificationError, match=words):
            replace(found, **{name: values}).verify(A)
    with pytest.raises(bs.VerificationError, match="scores predict"):
        replace(found, r2=found.r2 * (1 + 1e-6)).verify(A)
    with pytest.raises(bs.VerificationError, match="total variance"):
        replace(found, total_variance=found.total_variance * (1 + 1e-12)).verify(A)
    with pytest.raises(bs.VerificationError, match="not those of the results"):
        replace(found, components=found.components[::-1].copy()).verify(A)


def test_certificates_in_another_order_or_of_another_scheme_are_rejected(A):
    found = bs.solve_components(A, 4, 2, scheme=bs.ProjectionDeflation())
    with pytest.raises(bs.VerificationError, match="another place or scheme"):
        replace(found, scheme=bs.HotellingDeflation()).verify(A)
    first, second = found.results
    swapped = replace(found, results=(second, first))
    with pytest.raises(bs.VerificationError, match="another place or scheme"):
        swapped.verify(A)


def test_a_share_that_overflows_is_no_other_number():
    """An indefinite matrix may have a trace that is tiny beside its entries."""
    A = np.diag([1e200, -1e200, 1e-150])
    found = bs.solve_components(A, 1, 2, scheme="residual")
    assert found.r2 == np.inf
    found.verify(A)
    with pytest.raises(bs.VerificationError, match="the scores predict"):
        replace(found, r2=0.5).verify(A)
