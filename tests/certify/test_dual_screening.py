"""Screening by the dual never removes a feature of a set above the level."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca.certify.dual_screening import dual_screen
from blockspca.covariance import Covariance
from strategies import KINDS, symmetric_matrix


def values(A: np.ndarray, k: int) -> dict[tuple[int, ...], float]:
    return {
        S: float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
        for S in itertools.combinations(range(len(A)), k)
    }


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    d=st.integers(3, 9),
    k=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.5, 1.0),
)
def test_no_set_above_the_level_loses_a_feature(
    kind: str, d: int, k: int, seed: int, share: float
) -> None:
    A = symmetric_matrix(kind, d, np.random.default_rng(seed))
    k = min(k, d)
    by_set = values(A, k)
    best = max(by_set, key=by_set.__getitem__)
    size = np.abs(A).max()
    level = share * by_set[best] - 1e-6 * size
    screening = dual_screen(A, k, level, start=best, iterations=20)
    left = set(screening.survivors.tolist())
    for S, value in by_set.items():
        if value > level:
            assert left.issuperset(S)
    assert screening.bound >= by_set[best] - 1e-12 * size


@pytest.mark.parametrize(("n", "d"), [(6, 30), (40, 12)])
def test_from_data_with_few_and_with_many_samples(n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)) * np.linspace(3, 0.1, d)
    cov = Covariance.from_data(X)
    by_set = values(cov.submatrix(slice(None)), 3)
    best = max(by_set, key=by_set.__getitem__)
    level = 0.97 * by_set[best]
    screening = dual_screen(cov, 3, level, start=best)
    left = set(screening.survivors.tolist())
    assert all(left.issuperset(S) for S, value in by_set.items() if value > level)
    assert len(left) < d or n > d
    above = dual_screen(cov, 3, 2 * by_set[best], start=best)
    assert len(above.survivors) == 0
    assert above.bound == 2 * by_set[best]


@pytest.mark.data
@pytest.mark.parametrize("name", ["CovColon", "Lymphoma2", "Prostate", "Eisen2Cov"])
def test_optimal_supports_survive(
    name: str, load: Callable[[str], np.ndarray], oracle_dir: Path
) -> None:
    data = load(name)
    cov = (
        Covariance.from_matrix(data)
        if data.shape[0] == data.shape[1]
        else Covariance.from_data(data)
    )
    with (oracle_dir / "proved_optima.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    for row in rows[2:]:
        support = np.array(row["support"].split(), dtype=int)
        level = float(row["objective"]) * (1 - 1e-7)
        screening = dual_screen(cov, int(row["k"]), level, start=support, time_limit=2)
        assert np.isin(support, screening.survivors).all()
