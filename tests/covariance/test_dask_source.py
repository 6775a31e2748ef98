"""A dask array gives the same covariance and scan, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

import blockspca as bs
from blockspca.scan.lists import scan

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500)) * rng.lognormal(0, 1, size=500) + 5
    X[:, 40:60] += 4 * rng.normal(size=(60, 1))
    X[:, 7] = 0.1
    return X


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def assert_same_scan(cov: bs.Covariance, expected: bs.Covariance, width: int) -> None:
    found, reference = scan(cov, width), scan(expected, width)
    slack = found.rounding + reference.rounding
    np.testing.assert_allclose(found.values, reference.values, rtol=0, atol=slack)
    np.testing.assert_allclose(found.diagonal, reference.diagonal, rtol=1e-12)
    moved = found.indices != reference.indices
    # the order of entries that differ by rounding only is not defined
    assert moved.mean() < 0.01
    assert (found.indices[7] == -1).all()


@pytest.mark.parametrize("chunks", [(60, 500), (13, 120), (60, 77), (1, 500)])
@pytest.mark.parametrize("scale", [False, True])
def test_same_covariance(X, chunks, scale):
    if scale:
        X = np.delete(X, 7, axis=1)
    cov = bs.Covariance.from_data(da.from_array(X, chunks=chunks), scale=scale)
    dense = bs.Covariance.from_data(X, scale=scale)
    A = dense.rows(slice(None))
    close = {"rtol": 0, "atol": cov.entry_error}
    some = np.array([3, 490, 41, 7])
    np.testing.assert_allclose(cov.diagonal(), np.diag(A), **close)
    np.testing.assert_allclose(cov.submatrix(some), A[np.ix_(some, some)], **close)
    np.testing.assert_allclose(cov.rows(some), A[some], **close)
    x = np.linspace(-1, 1, len(A))
    np.testing.assert_allclose(cov.matvec(x), A @ x, rtol=1e-9, atol=1e-9)
    two = np.stack([x, x**2], axis=1)
    np.testing.assert_allclose(cov.matvec(two), A @ two, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cov.gram(x**2), dense.gram(x**2), rtol=1e-9, atol=1e-9)
    assert cov.known_psd
    assert cov.n_samples == 60


def test_bad_data(X):
    X = X.copy()
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"feature\(s\) 5"):
        bs.Covariance.from_data(da.from_array(X, chunks=(20, 100)))
    with pytest.raises(ValueError, match="too few"):
        bs.Covariance.from_data(da.from_array(X[:1], chunks=(1, 100)))


def test_same_result_on_two_workers(X, client):
    cov = bs.Covariance.from_data(da.from_array(X, chunks=(25, 130)))
    dense = bs.Covariance.from_data(X)
    assert_same_scan(cov, dense, 9)
    features = np.arange(30, 90)
    part = scan(cov, 9, features=features)
    expected = scan(dense, 9, features=features)
    np.testing.assert_allclose(part.values, expected.values, atol=1e-9)
    with joblib.parallel_config("dask"):
        here, there = bs.solve(dense, 8), bs.solve(cov, 8, n_jobs=2)
    np.testing.assert_array_equal(here.support, there.support)
    assert there.objective == pytest.approx(here.objective, rel=1e-12)
    assert there.status is bs.Status.OPTIMAL


def test_a_worker_killed_in_mid_scan(X):
    def slow(block):
        time.sleep(0.1)
        return block

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        chunked = da.from_array(X, chunks=(10, 100))
        cov = bs.Covariance.from_data(chunked)
        source = cov.dask_source()
        source.X = source.X.map_blocks(slow)  # 30 blocks: some seconds of work
        victim = next(iter(client.run(os.getpid).values()))
        kill = threading.Timer(0.7, os.kill, (victim, signal.SIGKILL))
        kill.start()
        start = time.perf_counter()
        found = scan(cov, 9)
        assert time.perf_counter() - start > 0.7  # it was killed in mid-scan
        assert victim not in client.run(os.getpid).values()
    expected = scan(bs.Covariance.from_data(X), 9)
    slack = found.rounding + expected.rounding
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=slack)
