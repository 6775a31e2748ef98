"""No feature of a set above τ is dropped, limits of groups or none."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import zoo
from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.constraint_rules import GroupLimits
from blockspca.covariance.covariance import Covariance


def sets_above(
    A: np.ndarray, k: int, tau: float, groups: GroupLimits | None
) -> set[int]:
    """All features of the allowed k-sets above τ."""
    found: set[int] = set()
    for chosen in combinations(range(len(A)), k):
        support = np.array(chosen)
        value = float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])
        if value > tau and (groups is None or groups.allows(support)):
            found |= set(chosen)
    return found


def best(A: np.ndarray, k: int, groups: GroupLimits | None) -> float:
    values = [
        float(np.linalg.eigvalsh(A[np.ix_(chosen, chosen)])[-1])
        for chosen in combinations(range(len(A)), k)
        if groups is None or groups.allows(np.array(chosen))
    ]
    return max(values, default=-np.inf)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(6, 10),
    k=st.integers(2, 5),
    more=st.integers(0, 6),
    n_groups=st.integers(0, 2),
    share=st.floats(0.7, 1.0),
)
def test_what_is_above_survives(
    seed: int, d: int, k: int, more: int, n_groups: int, share: float
) -> None:
    """At any τ from opt(k − 1) on, which is below opt(k): lists long and short."""
    rng = np.random.default_rng(seed)
    A = zoo.FAMILIES["correlation"](d, rng) if seed % 2 else zoo.indefinite(d, rng)
    groups = None
    if n_groups:
        label = rng.integers(0, n_groups, size=d)
        groups = GroupLimits(label, rng.integers(2, 4, size=n_groups))
    k = min(k, d - 1)
    top, previous = best(A, k, groups), best(A, k - 1, groups)
    if not np.isfinite(top) or previous > top:
        return
    cov = Covariance.from_matrix(A)
    longest = min(k + more, d)
    candidates = AdaptiveScreening(cov, longest, lambda: None, groups=groups)
    unit = candidates.unit
    upper = previous + 1e-9 * abs(previous)
    tau = max(previous + share * (top - previous), upper)
    left = set(candidates.survivors(k, tau / unit, upper / unit).tolist())
    assert sets_above(A, k, tau + 1e-9 * abs(tau), groups) <= left


def test_the_next_of_a_group_takes_the_place_of_one_that_is_dropped() -> None:
    """Features 1 and 4 filled the list of 0; 4 went, and 2 was forgotten.

    So {0, 1, 2}, the best of its size, lost a feature to the screening.
    """
    A = np.eye(10)
    for i, j, value in [
        (0, 1, 0.784), (0, 4, 0.717), (0, 2, 0.668), (1, 2, 0.868), (3, 0, 0.3),
        (2, 5, 0.4), (1, 6, 0.35), (4, 7, 0.1), (8, 9, 0.2), (0, 5, 0.1),
    ]:  # fmt: skip
        A[i, j] = A[j, i] = value
    groups = GroupLimits(np.zeros(10, dtype=int), np.array([3]))
    top = float(np.linalg.eigvalsh(A[:3, :3])[-1])
    candidates = AdaptiveScreening(
        Covariance.from_matrix(A), 6, lambda: None, groups=groups
    )
    unit = candidates.unit
    tau, upper = top * (1 - 1e-9), best(A, 2, groups)
    left = candidates.survivors(3, tau / unit, upper / unit)
    assert {0, 1, 2} <= set(left.tolist())


def test_limits_drop_what_they_forbid() -> None:
    """A row whose large entries are all of one group has few of them at once."""
    A = np.full((6, 6), 0.1)
    A[:4, :4] = 0.9
    np.fill_diagonal(A, 1.0)
    label = np.array([0, 0, 0, 0, -1, -1])
    left = {}
    for room in (1, 2, 3):
        groups = GroupLimits(label, np.array([room]))
        candidates = AdaptiveScreening(
            Covariance.from_matrix(A), 6, lambda: None, groups=groups
        )
        unit = candidates.unit
        left[room] = len(candidates.survivors(3, 2.0 / unit, 1.9 / unit))
    assert left == {1: 0, 2: 4, 3: 4}
