"""Steps of an ascent on a GPU, or on arrays that stand in for its own here."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.direction_dual.columns import (
    DenseColumns,
    DeviceColumns,
    in_space,
    to_host,
)
from blockspca.bounds.direction_dual.relaxation import relax
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.direction_dual.settings import DEFAULT
from blockspca.covariance.covariance import Covariance
from device_stand_in import DeviceArray, needs_gpu
from dual_problems import Optimum, random_density

# All ascents on the device; the second as those of many samples, within spaces.
EVERY = [
    replace(DEFAULT, device_entries=1),
    replace(DEFAULT, device_entries=1, dense_order=3, extra_directions=1),
]


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=needs_gpu)])
def device(request, monkeypatch) -> None:
    if request.param == "stand-in":
        use(monkeypatch, DeviceArray)


def use(monkeypatch, kind: type) -> None:
    """Let `import cupy` find arrays of this kind."""
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=kind))


def from_device(X: np.ndarray, **options) -> Covariance:
    cov = Covariance.from_data(X, **options)
    cov._source.on_device = True
    return cov


def factor(seed: int, n: int = 8, d: int = 11) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(0.3 * rng.normal(size=d))
    return X + 0.7 * rng.normal(size=(n, 1)) * (np.arange(d) < d // 2)


@pytest.mark.parametrize("r", [1, 3, 6])
@pytest.mark.parametrize("multiplier", [0.5, 5.0, 30.0])
def test_relaxations_equal_those_of_the_host(device, r, multiplier) -> None:
    rng = np.random.default_rng(r)
    here = DenseColumns(factor(r, 7, 40))
    there = DeviceColumns.of(here)
    assert there.shape == here.shape
    density = random_density(7, r, rng)
    expected = relax(here, density, multiplier)
    found = relax(there, density, multiplier)
    assert expected.is_from_host
    assert not found.is_from_host
    for name in ("total", "D", "mu", "relaxed_z", "H"):
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(to_host(one), other, rtol=1e-9, atol=1e-12)
    assert found.size == pytest.approx(expected.size)
    V = np.linalg.qr(np.hstack([density.Q, rng.normal(size=(7, 1))]))[0]
    spaces = [
        taken.to_subspace(V, in_space(columns, V)).total
        for columns, taken in ((here, expected), (there, found))
    ]
    np.testing.assert_allclose(spaces[1], spaces[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", EVERY)
@pytest.mark.parametrize("nodes", [1, 300])
def test_ascents_on_a_device_prove_what_those_of_the_host_prove(
    device, monkeypatch, brute_force: Optimum, settings, nodes
) -> None:
    made = []
    plain = DeviceColumns.of
    monkeypatch.setattr(DeviceColumns, "of", lambda c: made.append(c) or plain(c))
    for seed in range(4):
        cov = from_device(factor(seed))
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        target = optimum * (1 + 1e-8)
        words = {"target": target, "nodes": nodes, "time_limit": 60.0}
        there = dual_bound(cov, 3, settings=settings, **words)
        assert made
        made.clear()
        data = Covariance.from_data(factor(seed))
        here = dual_bound(data, 3, settings=settings, **words)
        assert not made
        assert optimum * (1 - 1e-12) <= there.value
        if nodes > 1:
            assert there.value <= target * (1 + 1e-11)
            assert here.value <= target * (1 + 1e-11)
        else:
            assert there.value == pytest.approx(here.value, rel=0.01)


class Wrong(DeviceArray):
    """A device that is wrong by a fifth."""

    def __matmul__(self, other):
        return DeviceArray(0.8 * (self._values @ other._values))

    def __getitem__(self, index):
        return Wrong(self._values[index])

    def __mul__(self, other):
        return Wrong(self._values * other._values)


@pytest.mark.parametrize(
    ("settings", "nodes"), [(EVERY[0], 1), (EVERY[0], 2), (EVERY[1], 1)]
)
def test_no_bound_relies_on_a_device(
    monkeypatch, brute_force: Optimum, settings, nodes
) -> None:
    use(monkeypatch, Wrong)
    for seed in range(2):
        cov = from_device(factor(seed))
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        for target in (-np.inf, optimum):
            words = {"target": target, "nodes": nodes, "time_limit": 60.0}
            bound = dual_bound(cov, 3, settings=settings, **words)
            assert bound.value >= optimum * (1 - 1e-12)


def test_sparse_data_and_small_ones_stay_on_the_host(monkeypatch) -> None:
    import scipy.sparse as sp

    def refuse(columns):
        raise AssertionError("copied to a device")

    monkeypatch.setattr(DeviceColumns, "of", refuse)
    small = from_device(factor(0))
    assert np.isfinite(dual_bound(small, 3).value)
    X = sp.random_array((20, 90), density=0.2, rng=np.random.default_rng(0))
    sparse = from_device(X.tocsc())
    assert np.isfinite(dual_bound(sparse, 3, settings=EVERY[0]).value)


@needs_gpu
def test_a_large_k_of_a_gpu() -> None:
    import cupy

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6000))
    X[:, :60] += rng.normal(size=(200, 1))
    here = bs.solve(Covariance.from_data(X), 40)
    there = bs.solve(Covariance.from_data(cupy.asarray(X)), 40)
    assert there.support.tolist() == here.support.tolist()
    assert there.status is here.status
