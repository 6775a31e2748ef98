"""What is claimed of a set of components can be refuted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.certificate import StepClaim, restated
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
    found = bs.solve_components(A, 4, 2, scheme="disjoint")
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


@pytest.mark.parametrize("name", [BoundName.CONDITIONS, BoundName.EARLIER_COMPONENT])
def test_what_is_left_open_of_the_first_component_alone_is_said(name):
    """A bound that nothing proved made the joint one, and all was called checked."""
    B = np.random.default_rng(0).normal(size=(9, 7))
    A = B.T @ B
    found = bs.solve_components(A, 2, 2, scheme="residual", sweeps=2)
    claimed = found.joint_total / 2
    assert claimed < bs.solve(A, 2).objective
    weak = int(np.argmin(np.diagonal(A)))
    first = restated(
        found.first,
        support=(weak,),
        loadings=(1.0,),
        objective=float(A[weak, weak]),
        steps=(StepClaim(2, claimed, name, statistics={"component": 1}),),
        upper_bound=claimed,
        status=bs.Status.FEASIBLE,
        tolerance=1e-9 * A[weak, weak],
    )
    lower = replace(
        found,
        first=first,
        joint_upper_bound=found.joint_total * (1 + 1e-12),
        joint_bound_name="components",
        joint_proof=None,
    )
    *_, last = lower.verify(A)
    assert any(words.startswith("alone: k = 2") for words in last.unchecked)
    assert last.upper_bound == np.inf


def lowered(
    found: bs.Components, upper_bound: float, *before: StepClaim
) -> bs.Components:
    """Claim less of the first component for k = 1, and for the set by that."""
    result = found[0]
    last = result.certificate.steps[-1]
    steps = (*before, last) if before else result.certificate.steps
    first = restated(
        result,
        steps=tuple(
            replace(step, upper_bound=upper_bound) if step.k == 1 else step
            for step in steps
        ),
    )
    return replace(
        found,
        results=(first, *found.results[1:]),
        joint_upper_bound=(result.upper_bound + upper_bound) * (1 + 1e-12),
        joint_bound_name="components",
        joint_proof=None,
    )


def test_a_smaller_k_that_the_joint_bound_rests_on_is_checked_beside_a_replay():
    """Replayed was the bound for k = 3, and that for k = 1 was taken as it stood."""
    rng, mixed = (np.random.default_rng(seed) for seed in (1, 2))
    X = rng.normal(size=(12, 7)) @ mixed.normal(size=(7, 7))
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, [3, 1], 2, scheme="disjoint", proof=True)
    assert found.joint_bound_name == "components"
    checks = found.verify(cov, data=X)
    assert all(check.complete for check in checks)
    assert "replayed" in checks[0].checks[-2]
    false = lowered(found, found.joint_total - found[0].upper_bound)
    with pytest.raises(bs.VerificationError, match=r"k = 1: .* above the claimed"):
        false.verify(cov, data=X)


def test_under_constraints_no_smaller_k_of_a_certificate_bounds_the_set():
    """Its parts are checked, and nothing proves what further steps would say."""
    A = np.cov(np.random.default_rng(0).normal(size=(20, 8)).T)
    rules = bs.Constraints(nonnegative=True)
    found = bs.solve_components(A, [3, 1], 2, scheme="residual", constraints=rules)
    missing = [StepClaim(k, np.inf, "none") for k in (1, 2)]
    false = lowered(found, found.joint_total - found[0].upper_bound, *missing)
    assert false[0].certificate.steps[0].upper_bound < A.diagonal().max()
    with pytest.raises(bs.VerificationError, match="joint bound by components"):
        false.verify(A)
