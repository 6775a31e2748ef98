"""Results said again for other features: `verify` finds what was claimed."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.certificate import StepClaim, restated
from blockspca.components.rewrite import renumbered, with_bound, with_component
from blockspca.covariance.derived import masked, restricted


@pytest.mark.parametrize("nodes", [0, 20])
def test_an_entry_dual_without_features_that_are_used(nodes: int) -> None:
    """Its record has a weight for each feature that is left, or a log of a search."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 24)) + rng.normal(size=(30, 24))
    cov = bs.Covariance.from_data(X, scale=True)
    used = np.array([1, 5, 20])
    keep = np.setdiff1d(np.arange(24), used)
    part = restricted(cov, keep)
    result = bs.solve(part, 6)
    bound = entry_bound(part, 6, result.support, nodes=nodes)
    claim = StepClaim(6, bound.value, BoundName.ENTRY_DUAL, dual=bound.record.to_text())
    claimed = with_bound(result, bs.Status.FEASIBLE, claim)
    lifted = renumbered(claimed, keep, None, 24)
    assert bs.verify(lifted, masked(cov, used)).complete
    low = StepClaim(6, bound.value * (1 - 1e-6), claim.bound_name, dual=claim.dual)
    with pytest.raises(bs.VerificationError, match="k = 6"):
        bs.verify(with_bound(lifted, bs.Status.FEASIBLE, low), masked(cov, used))


def test_a_bound_that_another_component_exceeds_is_not_used() -> None:
    """It was raised to the objective, and that was called optimal."""
    A = np.diag([2.0, 1.0, 1.0])
    result = bs.solve(np.diag([1.0, 1.0, 1.0]), 1)
    with pytest.warns(RuntimeWarning, match="reaches; it is not used"):
        said = with_component(result, np.eye(3)[0], bs.Covariance.from_matrix(A))
    assert said.status is bs.Status.FEASIBLE
    assert said.upper_bound == np.inf
    assert said.bound_name == BoundName.NONE
    assert "internal error" in said.message
    said.certificate.check()


@pytest.mark.parametrize("share", [1e-6, 1e-10])
def test_a_bound_is_exceeded_by_rounding_alone(share: float) -> None:
    """Not by what "optimal" leaves open: `verify` refuses that."""
    result = bs.solve(np.eye(3), 1)
    A = np.diag([result.upper_bound * (1 + share), 1.0, 1.0])
    with pytest.warns(RuntimeWarning, match="it is not used"):
        said = with_component(result, np.eye(3)[0], bs.Covariance.from_matrix(A))
    assert said.status is bs.Status.FEASIBLE
    near = np.diag([result.upper_bound * (1 + 1e-15), 1.0, 1.0])
    kept = with_component(result, np.eye(3)[0], bs.Covariance.from_matrix(near))
    assert kept.status is bs.Status.OPTIMAL


def test_what_ended_a_search_is_said_without_its_bound() -> None:
    result = restated(bs.solve(np.eye(3), 1), status=bs.Status.INTERRUPTED)
    with pytest.warns(RuntimeWarning, match="it is not used"):
        said = with_component(
            result, np.eye(3)[0], bs.Covariance.from_matrix(2 * np.eye(3))
        )
    assert said.status is bs.Status.INTERRUPTED
    assert said.upper_bound == np.inf
