"""Which bounds are looked at, and that none reported is worse than an obvious one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blockspca.bound_names import BoundName
from blockspca.bounds import best
from blockspca.bounds.best import Effort, _Run, best_bound
from blockspca.bounds.closed_form import largest_eigenvalue_bound
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics import linalg
from blockspca.proof_settings import DEFAULT_SETTINGS


def spiked(d: int, seed: int = 0) -> np.ndarray:
    """A correlation matrix with a strong factor in a third of its features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * d, d))
    X[:, : d // 3] += 4 * rng.normal(size=(2 * d, 1))
    return np.corrcoef(X.T)


@pytest.mark.parametrize("d", [20, 299, 300, 420])
@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e160])
def test_lanczos_is_no_less_than_the_largest_eigenvalue(d: int, scale: float) -> None:
    A = scale * spiked(d)
    exact = np.linalg.eigvalsh(A)[-1]
    bound = largest_eigenvalue_bound(A, by_lanczos=True)
    assert exact <= bound <= exact * (1 + 1e-10)
    assert largest_eigenvalue_bound(np.zeros((d, d)), by_lanczos=True) == 0.0


def test_the_largest_eigenvalue_comes_before_the_searches() -> None:
    """With all features of the factor, it is within a thousandth of the optimum."""
    A = spiked(150)
    cov = Covariance.from_matrix(A)
    support = np.arange(60)
    objective = float(np.linalg.eigvalsh(A[:60, :60])[-1])
    largest = largest_eigenvalue_bound(A)
    found = best_bound(
        cov,
        60,
        support,
        target=objective,
        time_limit=30.0,
        effort=Effort(nodes=1, is_timed=True),
    )
    assert objective <= found.value <= largest * (1 + 1e-9)


def run_of(
    cov: Covariance,
    support: np.ndarray,
    target: float,
    effort: Effort = Effort(nodes=1),  # noqa: B008 (frozen)
) -> _Run:
    k, deadline = len(support), Deadline(600.0)
    return _Run(cov, k, support, target, deadline, None, effort, DEFAULT_SETTINGS, None)


def test_power_steps_say_whether_it_is_worth_its_price() -> None:
    A = spiked(60)
    run = run_of(Covariance.from_matrix(A), np.arange(20), -np.inf)
    exact = float(np.linalg.eigvalsh(A)[-1])
    assert 0.999 * exact <= run._reached_by_all() <= exact * (1 + 1e-12)
    run.by_eigenvalue()
    run.by_eigenvalue()  # once is enough
    names = [bound.name for bound in run.known]
    assert names.count(BoundName.LARGEST_EIGENVALUE) == 1


def test_where_lanczos_is_used(monkeypatch) -> None:
    """Of a matrix that is large and not zero; what is not finite has no estimate."""
    sizes: list[int] = []
    original = linalg.lanczos

    def counted(A: np.ndarray, start: np.ndarray) -> object:
        sizes.append(len(A))
        assert np.abs(A).max() == 1.0
        return original(A, start)

    monkeypatch.setattr(linalg, "lanczos", counted)
    for d in (299, 300):
        largest_eigenvalue_bound(3.0 * spiked(d), by_lanczos=True)
        largest_eigenvalue_bound(np.zeros((d, d)), by_lanczos=True)
        largest_eigenvalue_bound(np.full((d, d), np.inf), by_lanczos=True)
        largest_eigenvalue_bound(spiked(d))
    assert sizes == [300]


@pytest.mark.parametrize(("k", "hopeless"), [(5, True), (30, False)])
def test_directions_are_left_out_where_they_cannot_beat_the_trace(
    k: int, hopeless: bool
) -> None:
    """Of correlations with k < d/n, before the entry dual has said anything."""
    X = np.random.default_rng(0).normal(size=(8, 120))
    cov = Covariance.from_data(X, scale=True)
    run = run_of(cov, np.arange(k), 0.5 * k)
    assert run._directions_are_hopeless() is False  # nothing is known
    run.by_variances()
    assert run._directions_are_hopeless() is hopeless


@pytest.mark.parametrize(("share", "is_first"), [(0.5, False), (0.95, True)])
def test_far_from_the_target_it_comes_after_the_directions_of_data(
    share: float, is_first: bool
) -> None:
    X = np.random.default_rng(0).normal(size=(20, 60)) * np.linspace(1, 9, 60)
    cov = Covariance.from_data(X)
    target = share * largest_eigenvalue_bound(cov)
    run = run_of(cov, np.arange(51, 60), target, Effort())
    run.by_eigenvalue(0.5)
    assert (len(run.known) == 2) == is_first
    run.by_eigenvalue()
    assert run.known[-1].name == BoundName.LARGEST_EIGENVALUE


def factor_in_noise(strength: float = 2.0) -> tuple[Covariance, np.ndarray, float]:
    """Data of which the direction dual is near at once; a support and its objective."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 90)) * rng.uniform(0.5, 2.0, size=90)
    X[:, :15] += strength * rng.normal(size=(20, 1)) * rng.uniform(0.5, 2.0, size=15)
    cov = Covariance.from_data(X)
    leading = np.linalg.eigh(cov.submatrix(slice(None)))[1][:, -1]
    support = np.sort(np.argsort(-np.abs(leading))[:12])
    return cov, support, float(np.linalg.eigvalsh(cov.submatrix(support))[-1])


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The k of each run of an entry dual."""
    runs: list[int] = []

    class Watched(best.EntryDual):
        def run(self, *given: Any) -> Any:
            runs.append(self.k)
            return super().run(*given)

    monkeypatch.setattr(best, "EntryDual", Watched)
    return runs


@pytest.mark.parametrize("gap", [0.1, 0.0])
def test_for_a_gap_the_root_of_the_directions_comes_before_the_entries(
    gap: float, begun: list[int]
) -> None:
    cov, support, objective = factor_in_noise()
    found = best_bound(
        cov,
        12,
        support,
        target=1.1 * objective,
        time_limit=30.0,
        effort=Effort(nodes=7, gap=gap),
    )
    assert objective <= found.value <= 1.1 * objective
    assert (found.name is BoundName.DIRECTION_DUAL) == (gap > 0)
    assert begun == ([] if gap > 0 else [12])


@pytest.mark.parametrize("share", [0.8, 0.3])
def test_a_root_of_the_directions_with_twice_the_gap_is_split_before_the_entries(
    share: float, begun: list[int]
) -> None:
    """Of more than that, the entry dual has its turn after the root."""
    cov, support, objective = factor_in_noise(0.6)
    root = dual_bound(cov, 12, start=support, target=objective, nodes=1).value
    gap = share * (root / objective - 1)
    effort = Effort(nodes=7, gap=gap)
    target = (1 + gap) * objective
    found = best_bound(cov, 12, support, target=target, time_limit=30.0, effort=effort)
    if share > 0.5:
        assert objective <= found.value <= target
        assert found.nodes > 1
        assert begun == []
    else:
        assert begun
