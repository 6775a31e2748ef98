"""Trees by signs keep to their limits, also those that are not closed."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify import sign_records
from blockspca.certify.proof_log import record_proof
from blockspca.certify.refusals import TreeLimits
from blockspca.certify.sign_records import (
    NotClosed,
    SignWriter,
    SmallerBounds,
    added_at_optimum,
    added_matrix,
)
from blockspca.limits import Budget, LimitReached, Limits
from blockspca.status import Status


class Counted(Budget):
    """Ends after so many looks at it."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def check(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise LimitReached(Status.TIME_LIMIT)


def writer_of(A: np.ndarray, k: int, tau: float, limits: TreeLimits) -> SignWriter:
    raised = np.maximum(A, 0.0)
    np.fill_diagonal(raised, np.diagonal(A))
    nothing = SmallerBounds(np.full(k, np.inf), np.full(k, np.inf))
    return SignWriter(raised, A, 0, k, tau, nothing, [], limits)


def mixed(d: int, seed: int = 0) -> np.ndarray:
    return np.cov(np.random.default_rng(seed).standard_normal((d + 3, d)).T)


def best_of_signs(A: np.ndarray, k: int) -> float:
    rules = bs.Constraints(nonnegative=True)
    return bs.solve(A, k, constraints=rules).objective


@pytest.mark.parametrize("nodes", [20, 60])
def test_nodes_of_trees_that_fail_are_charged(nodes: int, monkeypatch) -> None:
    """Every tree that is begun counts, and all of them keep to the limit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 9)) @ rng.standard_normal((9, 9))
    cov = bs.Covariance.from_matrix(np.cov((X * rng.gamma(2.0, size=9)).T))
    result = bs.solve(cov, 4, constraints=bs.Constraints(nonnegative=True))
    begun: list[tuple[SignWriter, int]] = []  # and what was charged before

    class Failing(SignWriter):
        def write(self) -> str:
            begun.append((self, self.limits.budget.nodes))
            super().write()
            raise NotClosed

    monkeypatch.setattr(sign_records, "SignWriter", Failing)
    budget = Budget(Limits(nodes=nodes))
    record_proof(cov, [result], budget)
    assert len(begun) > 1
    charged = [before for _, before in begun[1:]] + [budget.nodes]
    for (writer, before), after in zip(begun, charged, strict=True):
        assert writer.nodes > 0
        assert after >= before + writer.nodes
    assert budget.nodes <= nodes


def test_a_tree_ends_with_the_nodes_that_it_has() -> None:
    A = mixed(9)
    tau = best_of_signs(A, 4) * (1 + 1e-6)
    whole = writer_of(A, 4, tau, TreeLimits(10_000, Budget()))
    whole.write()
    assert whole.nodes > 3
    writer_of(A, 4, tau, TreeLimits(whole.nodes, Budget())).write()
    short = writer_of(A, 4, tau, TreeLimits(whole.nodes - 1, Budget()))
    with pytest.raises(NotClosed):
        short.write()
    assert short.nodes == whole.nodes - 1


@pytest.mark.parametrize("looks", [0, 1, 10, 100])
def test_the_clock_is_looked_at_before_each_step(looks: int) -> None:
    """Of the splitting, which takes thousands of them for one set."""
    A = mixed(6)
    tau = best_of_signs(A, 6)
    taken = []

    def check() -> None:
        taken.append(0)
        if len(taken) > looks:
            raise LimitReached(Status.TIME_LIMIT)

    with pytest.raises(LimitReached):
        added_matrix(A, tau * (1 - 1e-3), 3_000, check)
    assert len(taken) == looks + 1


def test_the_clock_is_looked_at_where_the_best_has_zeros() -> None:
    A = np.array([[2.0, 1.0, -1.0], [1.0, 2.0, 0.0], [-1.0, 0.0, 1.0]])
    with pytest.raises(LimitReached):
        added_at_optimum(A, 3 + 1e-9, 100, Counted(0).check)


def test_each_node_looks_at_the_clock() -> None:
    A = mixed(9)
    tau = best_of_signs(A, 4) * (1 + 1e-6)
    for looks in range(5):
        writer = writer_of(A, 4, tau, TreeLimits(10_000, Counted(looks)))
        with pytest.raises(LimitReached):
            writer.write()
        assert writer.nodes <= looks + 1


@pytest.mark.parametrize("k", [5, 40, 60, 200, 400])
def test_steps_for_one_set_are_fewer_the_larger_it_is(k: int, monkeypatch) -> None:
    """The work of all of them is no more than that for 40 features."""
    asked: list[int] = []

    def nothing(A: np.ndarray, tau: float, steps: int, check: object) -> None:
        asked.append(steps)

    monkeypatch.setattr(sign_records, "added_matrix", nothing)
    monkeypatch.setattr(sign_records, "added_at_optimum", nothing)
    writer = writer_of(np.eye(k), k, 1.0, TreeLimits(10_000, Budget()))
    with pytest.raises(NotClosed):
        writer._node(list(range(k)), None, np.arange(0), 0, [])
    assert max(asked) <= 3_000
    assert max(asked) * k**3 <= 3_000 * 40**3
    assert (max(asked) == 3_000) == (k <= 40)
