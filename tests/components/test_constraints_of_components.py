"""Several components under constraints."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(5)
    signal = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 24))
    return signal + rng.normal(size=(80, 24))


@pytest.mark.parametrize("form", ["data", "matrix"])
@pytest.mark.parametrize(
    "scheme",
    [bs.DisjointSupports(), bs.ResidualDeflation(), bs.ProjectionDeflation()],
    ids=lambda scheme: type(scheme).__name__,
)
def test_every_component_keeps_them(X: np.ndarray, form: str, scheme: object) -> None:
    cov = bs.Covariance.from_data(X) if form == "data" else np.cov(X.T)
    groups = np.arange(24) // 4
    constraints = bs.Constraints(exclude=[0, 5], groups=groups, max_per_group=1)
    found = bs.solve_components(cov, 4, 2, scheme=scheme, constraints=constraints)
    for result in found.results:
        assert result.status is bs.Status.OPTIMAL
        assert not {0, 5} & set(result.support.tolist())
        assert len(set(groups[result.support].tolist())) == len(result.support)
    assert all(check.complete for check in found.verify(cov))


def test_include_in_several_components(X: np.ndarray) -> None:
    constraints = bs.Constraints(include=[3])
    scheme = bs.ResidualDeflation()
    found = bs.solve_components(X.T @ X, 4, 2, scheme=scheme, constraints=constraints)
    assert all(3 in result.support for result in found.results)
    with pytest.raises(ValueError, match="include with disjoint supports"):
        bs.solve_components(X.T @ X, 4, 2, constraints=constraints, scheme="disjoint")
    with pytest.raises(ValueError, match=r"constraints with Orthogonalised\(\)"):
        bs.solve_components(
            X.T @ X, 4, 2, constraints=constraints, scheme=bs.Orthogonalised()
        )


def test_disjoint_supports_may_run_out_of_groups(X: np.ndarray) -> None:
    groups = np.arange(24) % 2
    few = bs.Constraints(exclude=range(4, 24), groups=groups, max_per_group=1)
    options = {"scheme": "disjoint", "constraints": few}
    found = bs.solve_components(X.T @ X, 2, 2, **options)
    assert sorted(np.concatenate(found.supports).tolist()) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="leave no feature"):
        bs.solve_components(X.T @ X, 2, 3, **options)


def test_starts_for_each_component(X: np.ndarray) -> None:
    cov = bs.Covariance.from_data(X)
    first = bs.solve_components(cov, 4, 2)
    again = bs.solve_components(cov, 4, 2, start=first.supports)
    for a, b in zip(first.supports, again.supports, strict=True):
        assert a.tolist() == b.tolist()
    with pytest.raises(ValueError, match=r"start has 1 support\(s\) for 2"):
        bs.solve_components(cov, 4, 2, start=[[0]])


def test_the_estimator_passes_them_on(X: np.ndarray) -> None:
    constraints = bs.Constraints(exclude=[0], nonnegative=True)
    est = bs.SparsePCA(n_components=2, k=4, constraints=constraints).fit(X)
    assert est.components_.min() >= 0
    assert not est.components_[:, 0].any()
    start = est.supports_
    again = bs.SparsePCA(2, k=4, constraints=constraints, start=start).fit(X)
    np.testing.assert_allclose(again.components_, est.components_, atol=1e-7)
