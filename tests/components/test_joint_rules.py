"""The bound of the first component speaks of those whose rules are as strict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.components import solve as solve_module
from blockspca.components.variance import adjusted_variance
from blockspca.constraint_rules import Rules

A = np.diag([1.0, 1.0, 10.0, 10.0, 10.0, 10.0, 0.1, 0.1, 0.1, 0.1])
for i, j, value in ((0, 1, 0.5), (2, 3, 5.0), (2, 4, 4.9), (3, 5, 4.9)):
    A[i, j] = A[j, i] = value


def found() -> bs.Components:
    rules = bs.Constraints(overlap_with=[0, 1, 6, 7, 8, 9], min_overlap=2)
    return bs.solve_components(
        A, k=[2, 4, 4], n_components=3, constraints=rules, scheme=bs.DisjointSupports()
    )


def test_an_overlap_leaves_later_components_more_room() -> None:
    """Room is k less the overlap: the first had none, the others may have two."""
    components = found()
    V = np.zeros((3, 10))
    V[0, :2] = V[1, [2, 4]] = V[2, [3, 5]] = 2**-0.5
    reached = float(adjusted_variance(V @ A @ V.T).sum())  # 30.9; the bound was 26.5
    assert components.joint_upper_bound >= reached
    components.verify(A)


def test_a_bound_that_speaks_of_other_rules_is_refused() -> None:
    components = found()
    first = components[0].upper_bound
    forged = replace(
        components,
        joint_upper_bound=3 * first,
        joint_bound_name="components",
        joint_proof=None,
    )
    with pytest.raises(bs.VerificationError):
        forged.verify(A)


def test_a_joint_bound_below_its_components_is_a_defect(monkeypatch) -> None:
    monkeypatch.setattr(
        solve_module, "joint_claim", lambda *given, **more: (1.0, "components", None)
    )
    components = bs.solve_components(A, 2, 2)
    with pytest.warns(RuntimeWarning, match="is a defect"):
        assert components.joint_upper_bound == np.inf


@pytest.mark.parametrize(
    ("stricter", "other", "expected"),
    [
        (Rules(4, exclude=(1, 2)), Rules(4, exclude=(1,)), True),
        (Rules(4, exclude=(1,)), Rules(4, exclude=(1, 2)), False),
        (Rules(4), Rules(4, include=(0,)), False),
        (Rules(4, include=(0,)), Rules(4, include=(0,)), True),
        (Rules(4), Rules(4, nonnegative=True), False),
        (Rules(4, nonnegative=True), Rules(4), True),
        (Rules(4), Rules(4, label=(0, 0, -1, -1), room=(1,)), False),
        (
            Rules(4, label=(0, 0, -1, -1), room=(1,)),
            Rules(4, label=(0, 0, -1, -1), room=(2,)),
            True,
        ),
        (
            Rules(4, label=(0, 0, -1, -1), room=(2,)),
            Rules(4, label=(0, 0, -1, -1), room=(1,)),
            False,
        ),
        (
            Rules(4, label=(0, 0, 0, -1), room=(1,)),
            Rules(4, label=(0, 0, -1, -1), room=(1,)),
            False,
        ),
    ],
)
def test_which_rules_imply_which(stricter: Rules, other: Rules, expected: bool) -> None:
    assert stricter.implies(other) is expected
