"""A dask array gives the same covariance and scan, also when a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse

import blockspca as bs
from blockspca import Covariance
from blockspca.scan.lists import scan
from device_stand_in import DeviceArray, needs_gpu, use_stand_in
from exact_covariance import exact_covariance, worst_error

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 150)) * rng.lognormal(0, 1, size=150) + 5
    X[:, 40:60] += 4 * rng.normal(size=(60, 1))
    X[:, 7] = 0.1
    return X


@contextmanager
def cluster_of_two(processes: bool) -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=processes, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def workers() -> Iterator[Any]:
    """Two workers in this process: others take seconds to import all there is."""
    with cluster_of_two(processes=False) as client:
        yield client


@pytest.fixture
def mortals() -> Iterator[Any]:
    """Two workers that are processes, and can be killed."""
    with cluster_of_two(processes=True) as client:
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


@pytest.mark.parametrize("chunks", [(60, 150), (13, 40), (60, 77), (1, 150)])
@pytest.mark.parametrize("scale", [False, True])
def test_same_covariance(X, chunks, scale):
    if scale:
        X = np.delete(X, 7, axis=1)
    cov = bs.Covariance.from_data(da.from_array(X, chunks=chunks), scale=scale)
    dense = bs.Covariance.from_data(X, scale=scale)
    A = dense.rows(slice(None))
    close = {"rtol": 0, "atol": cov.entry_error}
    some = np.array([3, 140, 41, 7])
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


def on_gpu(values: np.ndarray, chunks: tuple[int, int], place: str, monkeypatch):
    """A dask array of CuPy arrays, or of stand-ins for them; it is computed here."""
    remote = da.from_array(values, chunks=chunks)
    if place == "gpu":
        import cupy

        return remote.map_blocks(cupy.asarray)
    use_stand_in(monkeypatch)
    return remote.map_blocks(DeviceArray)


PLACES = ["stand-in", pytest.param("gpu", marks=needs_gpu)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("scale", [False, True])
def test_chunks_on_gpus_give_the_same(X, scale, place, monkeypatch):
    """Products where the chunks are; NumPy's arrays never meet those of a GPU."""
    X, chunks = X[:, :120] * np.where(np.arange(120) == 3, 2.0**-450, 1.0), (25, 50)
    X = np.delete(X, 7, axis=1) if scale else X
    cov = Covariance.from_data(on_gpu(X, chunks, place, monkeypatch), scale=scale)
    here = Covariance.from_data(X, scale=scale)
    A = here.rows(slice(None))
    close = {"rtol": 0, "atol": cov.entry_error + here.entry_error}
    some = np.array([3, 90, 41, 7])
    np.testing.assert_allclose(cov.diagonal(), np.diag(A), **close)
    np.testing.assert_allclose(cov.submatrix(some), A[np.ix_(some, some)], **close)
    np.testing.assert_allclose(cov.rows(some), A[some], **close)
    x = np.linspace(-1, 1, len(A))
    for y in (x, np.stack([x, x**2], axis=1)):
        np.testing.assert_allclose(cov.matvec(y), A @ y, rtol=1e-9, atol=1e-9)
    found, expected = scan(cov, 9), scan(here, 9)
    slack = found.rounding + expected.rounding
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=slack)
    there, known = bs.solve_path(cov, 4), bs.solve_path(here, 4)
    for k in known:
        assert there[k].status is bs.Status.OPTIMAL
        assert there[k].objective == pytest.approx(known[k].objective, rel=1e-12)
        assert type(there[k].x) is np.ndarray
    assert there[4].support.tolist() == known[4].support.tolist()
    assert bs.verify(there[4], here).complete
    cov.check_unchanged()
    if not scale:
        found = bs.solve_components(cov, 3, 2)
        assert {status.value for status in found.statuses} == {"optimal"}


@pytest.mark.parametrize("place", PLACES)
def test_many_samples_on_gpus_are_formed_there(place, monkeypatch):
    X = np.random.default_rng(0).gamma(1.0, size=(90, 12))
    cov = Covariance.from_data(on_gpu(X, (13, 5), place, monkeypatch))
    formed = cov.formed()
    A = formed.submatrix(slice(None))
    assert worst_error(A, exact_covariance(X)) <= formed.entry_error < 1e-12
    assert (A == A.T).all()
    assert bs.solve(cov, 4).status is bs.Status.OPTIMAL


@needs_gpu
def test_sparse_chunks_on_gpus_are_formed_there():
    import cupy
    import cupyx.scipy.sparse

    X = np.random.default_rng(0).poisson(0.3, size=(500, 40)) * 0.1
    remote = da.from_array(X, chunks=(130, 40))
    here = Covariance.from_data(remote.map_blocks(scipy.sparse.csr_matrix))
    there = Covariance.from_data(
        remote.map_blocks(lambda x: cupyx.scipy.sparse.csr_matrix(cupy.asarray(x)))
    )
    A, B = (cov.formed().submatrix(slice(None)) for cov in (here, there))
    assert (A == B).all()


def test_bad_data(X):
    X = X.copy()
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"feature\(s\) 5"):
        bs.Covariance.from_data(da.from_array(X, chunks=(20, 50)))
    with pytest.raises(ValueError, match="too few"):
        bs.Covariance.from_data(da.from_array(X[:1], chunks=(1, 50)))


def test_same_result_on_two_workers(X, workers):
    cov = bs.Covariance.from_data(da.from_array(X, chunks=(25, 60)))
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


def test_a_worker_killed_in_mid_scan(X, mortals, tmp_path):
    armed = tmp_path / "armed"
    chunked = da.from_array(X, chunks=(20, 50))
    cov = bs.Covariance.from_data(chunked)
    source = cov.dask_source()
    source.X = source.X.map_blocks(fatal, str(armed))
    before = set(mortals.run(os.getpid).values())
    armed.touch()
    found = scan(cov, 9)
    assert not armed.exists()  # a block of the scan has killed its worker
    assert not before <= set(mortals.run(os.getpid).values())
    expected = scan(bs.Covariance.from_data(X), 9)
    slack = found.rounding + expected.rounding
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=slack)


@pytest.mark.parametrize("chunks", [(7, 12), (13, 5)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_many_samples_are_formed_by_tasks(chunks, sparse, scale):
    """X'X of each chunk where it is, added up by a tree; exact to entry_error."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (90, 12)).astype(float) * rng.random((90, 12))
    remote = da.from_array(X, chunks=chunks)
    if sparse:
        remote = remote.map_blocks(scipy.sparse.csr_matrix)
    cov = Covariance.from_data(remote, scale=scale)
    formed = cov.formed()
    exact = exact_covariance(X, scale=scale)
    for A, error in (
        (formed.submatrix(slice(None)), formed.entry_error),
        (cov.submatrix(slice(None)), cov.entry_error),
        (cov.submatrix(np.arange(12), np.arange(12)), cov.entry_error),
    ):
        assert worst_error(A, exact) <= error < 1e-12
    assert formed.in_memory
    np.testing.assert_allclose(
        cov.columns(np.array([3, 1]), 5, 40),
        Covariance.from_data(X, scale=scale).columns(np.array([3, 1]), 5, 40),
        atol=1e-12,
    )
    result = bs.solve(cov, 4)
    assert result.status is bs.Status.OPTIMAL
    assert bs.verify(result, cov).complete


def test_values_of_a_sparse_chunk_that_are_not_finite_are_refused():
    X = np.eye(6)
    X[2, 2] = np.nan
    remote = da.from_array(X, chunks=(3, 6)).map_blocks(scipy.sparse.csr_matrix)
    with pytest.raises(ValueError, match="NaN or infinite"):
        Covariance.from_data(remote)


def test_what_deflation_leaves_is_scanned_by_tasks(X, workers, monkeypatch):
    """Its rows are never asked for one strip at a time, each a pass over the data."""

    def refuse(self) -> None:
        raise AssertionError("strips of rows of a dask array")

    monkeypatch.setattr("blockspca.scan.passes.Pass.strips", refuse)
    X = X[:, :80]
    cov = Covariance.from_data(da.from_array(X, chunks=(30, 40)))
    scheme = bs.ResidualDeflation()
    found = bs.solve_components(cov, 4, 2, scheme=scheme)
    here = bs.solve_components(Covariance.from_data(X), 4, 2, scheme=scheme)
    assert {status.value for status in found.statuses} == {"optimal"}
    np.testing.assert_allclose(found.components, here.components, atol=1e-7)
    second = found.problem(1, cov)
    first = here.problem(1, Covariance.from_data(X))
    some = np.arange(0, 80, 7)
    there, expected = scan(second, 5, features=some), scan(first, 5, features=some)
    slack = there.rounding + expected.rounding
    np.testing.assert_allclose(there.values, expected.values, rtol=0, atol=slack)


def fatal(block, armed):
    """Kill the worker that computes this, once for every time it is armed."""
    try:
        os.remove(armed)
    except FileNotFoundError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_a_worker_killed_in_each_phase(tmp_path, mortals, sparse):
    """Moments, Gram, scan, deflation, dual, scores, fingerprint: the same answer."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (90, 12)).astype(float)
    X[:, :3] += rng.poisson(3, (90, 1))
    armed = str(tmp_path / "armed")
    deaths = []

    def with_a_death(work):
        (tmp_path / "armed").touch()
        result = work()
        deaths.append(not (tmp_path / "armed").exists())
        return result

    def remote(values):
        chunks = da.from_array(values, chunks=(30, values.shape[1]))
        if sparse:
            chunks = chunks.map_blocks(scipy.sparse.csr_matrix)
        return chunks.map_blocks(fatal, armed)

    tall = remote(X)
    here = bs.SparsePCA(2, k=3).fit(X)
    cov = with_a_death(lambda: Covariance.from_data(tall))
    formed = with_a_death(cov.formed)
    with_a_death(cov.check_unchanged)
    expected = Covariance.from_data(X).formed().submatrix(slice(None))
    np.testing.assert_allclose(formed.submatrix(slice(None)), expected, atol=1e-12)
    model = bs.SparsePCA(2, k=3).fit(tall)
    np.testing.assert_allclose(model.components_, here.components_, atol=1e-9)
    scores = with_a_death(lambda: model.transform(tall))
    np.testing.assert_allclose(scores, here.transform(X), atol=1e-9)
    if sparse:
        assert deaths == [True] * 4
        return
    across = Covariance.from_data(remote(X.T.copy()))
    found = with_a_death(lambda: scan(across, 4))
    near = scan(Covariance.from_data(X.T), 4)
    np.testing.assert_allclose(found.values, near.values, rtol=0, atol=1e-12)
    two = with_a_death(lambda: bs.solve_components(across, 4, 2))
    same = bs.solve_components(Covariance.from_data(X.T), 4, 2)
    np.testing.assert_allclose(two.components, same.components, atol=1e-7)
    # so large a k that the duals, which products and columns are asked for, come first
    limits = bs.Limits(nodes=50)
    large = with_a_death(lambda: bs.solve(across, 40, limits=limits))
    alike = bs.solve(Covariance.from_data(X.T), 40, limits=limits)
    np.testing.assert_allclose(large.objective, alike.objective, rtol=1e-9)
    np.testing.assert_allclose(large.upper_bound, alike.upper_bound, rtol=1e-6)
    assert deaths == [True] * 7
