"""One k by the parts of a matrix: the search, its certificate and their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.bounds.best import NamedBound
from blockspca.certificate import StepClaim
from blockspca.certify.claims import BoundChecks
from blockspca.certify.compositions import bound_by_compositions, level_of
from blockspca.limits import Deadline
from blockspca.proof_settings import ProofSettings


def optimum(A: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    reference = zoo.Reference(A, sizes=[k])
    return reference.reached[k], reference.best[k]


@pytest.fixture(scope="module")
def solved() -> tuple[bs.Covariance, bs.Result]:
    """Four parts of 24 features: 30 fill one of them and a quarter of another."""
    cov = bs.Covariance.from_matrix(zoo.modules([24, 24, 24, 24]))
    return cov, bs.solve(cov, 30)


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_proved_and_nothing_below_it(seed: int) -> None:
    A = zoo.modules([5, 5, 4], seed)
    value, support = optimum(A, 7)
    cov = bs.Covariance.from_matrix(A)
    settings = ProofSettings()

    def bound(target: float) -> float:
        found = bound_by_compositions(cov, 7, support, target, bs.Limits(), settings)
        return found.value

    assert value <= bound(value * (1 + 5e-10)) <= value * (1 + 1e-9)
    # a target below the optimum is never reached
    assert bound(0.9 * value) >= value


@pytest.mark.parametrize("seed", range(4))
def test_a_poor_support_is_replaced(seed: int) -> None:
    A = zoo.modules([5, 5, 4], seed)
    value, _ = optimum(A, 7)
    cov = bs.Covariance.from_matrix(A)
    poor = np.array([0, 1, 2, 3, 5, 6, 7])
    reached = float(np.linalg.eigvalsh(A[np.ix_(poor, poor)])[-1])
    found = bound_by_compositions(cov, 7, poor, reached, bs.Limits(), ProofSettings())
    assert found.value >= value
    assert found.better is not None
    S = found.better
    assert np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] > reached


def test_few_compositions_and_nodes_leave_a_bound() -> None:
    A = zoo.modules([5, 5, 4])
    value, support = optimum(A, 7)
    cov = bs.Covariance.from_matrix(A)
    for limits, settings in (
        (bs.Limits(), ProofSettings(most_compositions=0)),
        (bs.Limits(time=0), ProofSettings()),
        (bs.Limits(nodes=1), ProofSettings()),
        (bs.Limits(), ProofSettings(first_nodes=1)),
    ):
        found = bound_by_compositions(cov, 7, support, value, limits, settings)
        assert found.value >= value


def test_data_that_are_not_formed_are_left_alone() -> None:
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(5, 9)))
    found = bound_by_compositions(cov, 3, [0, 1, 2], 1.0, bs.Limits(), ProofSettings())
    assert found.value == np.inf


def test_solve_proves_a_k_that_fills_more_than_one_part(
    solved: tuple[bs.Covariance, bs.Result],
) -> None:
    cov, result = solved
    assert result.status is bs.Status.OPTIMAL
    assert result.bound_name == BoundName.COMPOSITIONS
    sizes = np.bincount(result.support // 24, minlength=4)
    assert sorted(sizes.tolist()) == [0, 0, 6, 24]
    checked = bs.verify(result, cov)
    assert not checked.unchecked


ONES = np.ones((24, 24))


@pytest.mark.parametrize(
    "A",
    [
        np.kron(np.eye(3), 0.3 * ONES) + np.eye(72),
        np.kron(np.eye(3), ONES),
        np.kron(np.eye(3) + 0.05, ONES) + np.eye(72),
    ],
    ids=["equal", "ones", "coupled"],
)
def test_what_the_counts_alone_prove_is_verified(A: np.ndarray) -> None:
    """Where the bound is the optimum up to rounding, no search at it could end."""
    cov = bs.Covariance.from_matrix(A)
    result = bs.solve(cov, 30)
    assert result.status is bs.Status.OPTIMAL
    assert not bs.verify(result, cov).unchecked
    # also where λmax says no less
    found = bound_by_compositions(
        cov, 30, result.support, result.objective, bs.Limits(), ProofSettings()
    )
    assert found.value <= result.objective * (1 + 1e-9)
    assert_counted(cov, found, result.support)


def assert_counted(cov: bs.Covariance, found: NamedBound, support: np.ndarray) -> None:
    """The claim that a certificate makes of a bound is confirmed without a search."""
    checks = BoundChecks(cov, 30, tuple(support), 1, Deadline(None))
    claim = StepClaim(30, found.value, BoundName.COMPOSITIONS, dual=found.dual)
    assert "by compositions" in checks.check(claim)
    assert not checks.unchecked


def test_what_is_left_of_a_search_is_verified() -> None:
    """A bound that no composition was searched for is counted again, not searched."""
    A = zoo.modules([24, 24, 24])
    cov = bs.Covariance.from_matrix(A)
    support = np.arange(30)
    none = ProofSettings(most_compositions=0)
    found = bound_by_compositions(cov, 30, support, 0.0, bs.Limits(), none)
    assert_counted(cov, found, support)


def test_more_nodes_allow_for_more_compositions(
    solved: tuple[bs.Covariance, bs.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    cov, result = solved
    monkeypatch.setattr(ProofSettings, "most_compositions", 0)
    assert "max_nodes" in bs.verify(result, cov, max_nodes=1).unchecked[0]
    assert not bs.verify(result, cov).unchecked


def test_tables_that_need_more_memory_are_not_made() -> None:
    A = zoo.modules([5, 5, 4])
    value, support = optimum(A, 7)
    cov, settings = bs.Covariance.from_matrix(A), ProofSettings()
    for memory, is_bounded in ((10**3, False), (10**6, True)):
        limits = bs.Limits(memory=memory)
        found = bound_by_compositions(cov, 7, support, value, limits, settings)
        assert np.isfinite(found.value) == is_bounded


def test_a_certificate_survives_json(solved: tuple[bs.Covariance, bs.Result]) -> None:
    _, result = solved
    again = bs.Certificate.from_json(result.certificate.to_json())
    assert again == result.certificate


def test_a_claim_below_what_is_reached_is_refused(
    solved: tuple[bs.Covariance, bs.Result],
) -> None:
    cov, result = solved
    step = result.certificate.steps[-1]
    checks = BoundChecks(cov, 30, tuple(result.support), 20_000, Deadline(None))
    checks.check(step)
    assert not checks.unchecked
    lower = replace(step, upper_bound=result.objective * (1 - 1e-6))
    with pytest.raises(bs.VerificationError, match="exists"):
        checks.check(lower)


@pytest.mark.parametrize("text", [None, "", "{}", '{"level": -1}', '{"level": "NaN"}'])
def test_a_certificate_without_a_level_is_refused(
    solved: tuple[bs.Covariance, bs.Result], text: str | None
) -> None:
    with pytest.raises(ValueError, match="names no level"):
        level_of(text)
    cov, result = solved
    step = replace(result.certificate.steps[-1], dual=text)
    forged = replace(result.certificate, steps=(step,))
    with pytest.raises(bs.VerificationError, match="level"):
        bs.verify(replace(result, certificate=forged), cov)


def test_another_level_is_no_proof(solved: tuple[bs.Covariance, bs.Result]) -> None:
    """At a level that makes one part of all, the claim is not confirmed."""
    cov, result = solved
    step = replace(result.certificate.steps[-1], dual='{"level": 0.001}')
    forged = replace(result.certificate, steps=(step,))
    checked = bs.verify(replace(result, certificate=forged), cov, max_nodes=50)
    assert checked.unchecked
