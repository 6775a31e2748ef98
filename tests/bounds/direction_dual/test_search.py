"""The direction dual's search: proofs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blockspca as bs
from blockspca.bounds.direction_dual import ascent
from blockspca.bounds.direction_dual.density import Density
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.bounds.direction_dual.relaxation import Relaxation
from blockspca.bounds.direction_dual.search import FirstLook, dual_bound
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.covariance.covariance import Covariance
from blockspca.heuristics.truncated_power import truncated_power
from dual_problems import DATA, Optimum, covariance, data, proved_of_three


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(DATA),
    k=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    exponent=st.sampled_from([0, 140, -140]),
)
def test_the_search_proves_the_optimum(
    kind: str, k: int, seed: int, exponent: int, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(seed)
    X = data(kind, rng)
    cov = Covariance.from_data(X * 2.0 ** (exponent / 2))
    A = cov.submatrix(slice(None))
    optimum = brute_force(A, k)
    target = optimum * (1 + 1e-8)
    bound = dual_bound(cov, k, target=target, time_limit=60, nodes=3000)
    assert optimum * (1 - 1e-12) <= bound.value
    # Means that are large cost digits, and the bound pays for them.
    assert bound.value <= target * (1 + (1e-6 if kind == "offset" else 1e-11))


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(DATA),
    k=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.5, 0.9, 0.999]),
)
def test_a_target_below_the_optimum_is_found_out(
    kind: str, k: int, seed: int, share: float, brute_force: Optimum
) -> None:
    cov = covariance(kind, np.random.default_rng(seed))
    A = cov.submatrix(slice(None))
    optimum = brute_force(A, k)
    bound = dual_bound(cov, k, target=share * optimum, time_limit=60, nodes=40)
    assert bound.value >= optimum * (1 - 1e-12)
    if bound.better is not None:
        within = A[np.ix_(bound.better, bound.better)]
        top = np.linalg.eigvalsh(within)[-1]
        assert len(bound.better) <= k
        assert share * optimum < top <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("most_within", [0, 10_000])
def test_steps_within_a_space_prove_the_same(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, most_within: int
) -> None:
    """As where n is large, with fewer directions so that a space is a part of it."""
    few = DualSettings(
        dense_order=3,
        extra_directions=1,
        max_directions=3,
        subspace_columns=most_within,
    )
    sizes = []
    space = Density.space

    def spy(self: Density, B: np.ndarray, *others: object) -> np.ndarray | None:
        found = space(self, B, *others)
        assert found is not None
        sizes.append(found.shape)
        return found

    monkeypatch.setattr(Density, "space", spy)
    shape, nodes = (20, 12), 80
    proved = proved_of_three(brute_force, range(2), shape, nodes=nodes, settings=few)
    assert proved == 2
    assert any(s < n for n, s in sizes)


def test_an_infinite_target_gives_the_bound_of_a_step() -> None:
    assert np.isfinite(dual_bound(np.diag([3.0, 2.0, 1.0]), 2, target=np.inf).value)


@pytest.mark.filterwarnings("error")
def test_sums_without_any_direction_make_no_density_that_is_not_a_number() -> None:
    """M = cI tells no direction from another, and all of a space may vanish."""
    bound = dual_bound(np.eye(300), 5, target=1 + 1e-6, nodes=5)
    assert 1 <= bound.value <= 1 + 1e-3


def test_a_sum_of_rank_one_does_not_stop_the_search() -> None:
    """Most of a space is then where the sum is zero."""
    X = np.eye(260, 270) * np.linspace(3, 1, 270)
    cov = Covariance.from_data(X, center=False)
    largest = float(cov.diagonal().max())
    bound = dual_bound(cov, 1, start=[0], target=0.9 * largest, nodes=7)
    assert bound.value >= largest


def test_features_without_a_column_stay_in_the_bound(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    """Where there is no room for all columns, the rest are not ruled out by it."""
    monkeypatch.setattr("blockspca.bounds.direction_dual.problem._ENTRIES", 40)
    rng = np.random.default_rng(8)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cov = Covariance.from_data(rng.standard_normal((8, 12)))
        problem = make_problem(cov, 3, None, short=True)
        assert problem is not None
        assert problem.columns.shape[1] < 12
        assert problem.min_multiplier > 0
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        bound = dual_bound(cov, 3, target=0.9 * optimum, nodes=300, time_limit=20)
        assert bound.value >= optimum


@pytest.mark.slow
@pytest.mark.data
def test_a_thousand_of_a_hundred_thousand_features_proved(data_dir: Path) -> None:
    X = sp.load_npz(data_dir / "Dorothea_train.npz")
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 1000, limits=bs.Limits(time=120))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(6.4547, abs=5e-5)
    assert bs.verify(result, cov).complete


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "k", "nodes"),
    [
        pytest.param("Dorothea_train", 150, 60, marks=pytest.mark.slow),
        pytest.param("Dorothea_train", 1000, 10, marks=pytest.mark.slow),
        pytest.param("Prostate_GE", 100, 200, marks=pytest.mark.slow),
    ],
)
def test_few_nodes_are_enough(name: str, k: int, nodes: int, data_dir: Path) -> None:
    """If ρ swings, steps are too long, or too little is left for other directions, the
    ascent stalls and nodes are split again and again."""
    if name.startswith("Dorothea"):
        X = sp.load_npz(data_dir / f"{name}.npz")
    else:
        X = np.load(data_dir / f"{name}.npz")["X"]
    cov = Covariance.from_data(X.astype(float))
    found = np.flatnonzero(truncated_power(cov, k).x)
    objective = float(np.linalg.eigvalsh(cov.submatrix(found))[-1])
    target = objective * (1 + 1e-9)
    bound = dual_bound(cov, k, start=found, target=target, time_limit=300, nodes=nodes)
    assert objective * (1 - 1e-12) <= bound.value <= target * (1 + 1e-12)


def test_a_search_tells_its_bound() -> None:
    X = np.random.default_rng(5).standard_normal((30, 160))
    told: list[tuple[float, int, int]] = []
    bound = dual_bound(
        X.T @ X, 20, target=0.0, nodes=9, report=lambda *news: told.append(news)
    )
    values = [value for value, _, _ in told]
    assert values[-1] == bound.value < values[0]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))
    assert [nodes for _, nodes, _ in told] == sorted(nodes for _, nodes, _ in told)
    assert told[-1][1] == bound.nodes > 1


def test_a_long_solve_shows_the_bound_coming_down() -> None:
    X = np.random.default_rng(5).standard_normal((30, 160))
    events: list[bs.Event] = []
    cov = Covariance.from_data(X)
    found = bs.solve(cov, 100, limits=bs.Limits(time=3.0), progress=events.append)
    inner = [e for e in events if e.stage == "proof" and e.status is None]
    inner = [e for e in inner if e.k == 100]  # the chain, if there is time, has others
    assert len(inner) > 2
    assert inner[0].upper_bound >= inner[-1].upper_bound
    assert inner[-1].upper_bound >= found.upper_bound * (1 - 1e-12)
    assert {(e.k, e.objective) for e in inner} == {(100, inner[0].objective)}


@pytest.mark.slow
@pytest.mark.data
def test_two_hundred_of_a_hundred_thousand_features_proved(data_dir: Path) -> None:
    """The relaxation leaves 0.7 %: it takes sectors, deflation and fixing."""
    X = sp.load_npz(data_dir / "Dorothea_train.npz").astype(float)
    cov = Covariance.from_data(X)
    found = bs.solve(cov, 200, limits=bs.Limits(time=300))
    assert found.status is bs.Status.OPTIMAL
    assert found.objective == pytest.approx(3.3453894, abs=1e-7)
    assert found.bound_name == "direction dual"
    assert found.nodes > 4
    assert bs.verify(found, cov).complete


@pytest.mark.parametrize("nodes", [1, 300])
def test_a_root_far_off_ends_the_search(brute_force: Optimum, nodes: int) -> None:
    rng = np.random.default_rng(1)
    cov = Covariance.from_data(rng.normal(size=(8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 3)
    words = {"target": optimum * (1 + 1e-8), "nodes": nodes, "time_limit": 60.0}
    root = dual_bound(cov, 3, **{**words, "nodes": 1})
    assert root.value > 1.001 * optimum
    far = dual_bound(cov, 3, first_look=FirstLook(0.999 * root.value, 60.0), **words)
    assert far.nodes == 1
    assert far.value == root.value
    near = dual_bound(cov, 3, first_look=FirstLook(root.value, 60.0), **words)
    assert near == replace(dual_bound(cov, 3, **words), elapsed=near.elapsed)
    assert (near.nodes > 1) is (nodes > 1)


def test_a_first_look_that_is_short_is_gone_on_with(brute_force: Optimum) -> None:
    """The clock of the look has passed before the first step."""
    cov = Covariance.from_data(np.random.default_rng(1).normal(size=(8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 3)
    target = optimum * (1 + 1e-8)
    look = FirstLook(0.0, 0.0)
    found = dual_bound(cov, 3, target=target, nodes=300, first_look=look)
    assert optimum * (1 - 1e-12) <= found.value <= target * (1 + 1e-11)


@pytest.mark.parametrize("steps", [0, 3])
def test_an_ascent_ends_where_values_are_not_finite(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, steps: int
) -> None:
    """The best bound so far is kept."""
    cov = Covariance.from_data(np.random.default_rng(1).normal(size=(8, 14)))
    relax, taken = ascent.relax, iter(range(100))

    def limited(*args: Any, **kwargs: Any) -> Relaxation | None:
        found = relax(*args, **kwargs)
        assert found is not None
        if next(taken) < steps:
            return found
        return replace(found, relaxed_z=np.full_like(found.relaxed_z, np.nan))

    monkeypatch.setattr(ascent, "relax", limited)
    found = dual_bound(cov, 3, nodes=1)
    assert found.value >= brute_force(cov.submatrix(slice(None)), 3)
    assert np.isfinite(found.value) == (steps > 0)


@pytest.mark.parametrize("size", [1.0, 2.0**900])
def test_the_shift_of_negative_variances_is_not_exact(size: float) -> None:
    """λmax = −1 + √2 · 2⁻⁶⁰: no digit of that is left beside a shift of 1."""
    tiny = 2.0**-60
    A = np.array([[-1.0, 0.0, -tiny], [0.0, -1.0, tiny], [-tiny, tiny, -1.0]])
    said = dual_bound(Covariance.from_matrix(size * A), 3, iterations=12, nodes=13)
    assert -size < said.value < -0.9 * size
