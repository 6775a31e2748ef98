"""The pass on a device: the same steps in NumPy, and on a GPU where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import blockspca as bs
import blockspca.scan.device as device_module
import blockspca.scan.passes as passes_module
import blockspca.scan.single as single_module
from blockspca import Covariance
from blockspca.covariance.device_data import is_on_device, on_host
from blockspca.scan.device import CAPACITY, device_lists
from blockspca.scan.lists import scan
from device_stand_in import needs_gpu
from host_kernels import HostKernels

PLACES = ["host", pytest.param("gpu", marks=needs_gpu)]


def kernels_of(place: str):
    if place == "host":
        return HostKernels()
    from blockspca.scan.cuda_kernels import CudaKernels

    return CudaKernels()


@pytest.fixture(params=PLACES)
def on_device(request, monkeypatch):
    """Dense scans of data from a device go through its steps, in small tiles."""
    monkeypatch.setattr(passes_module, "SINGLE_FROM", 0)
    monkeypatch.setattr(device_module, "TILE_SIZE", 64)
    used: list[str] = []

    def kernels():
        used.append(request.param)
        return kernels_of(request.param)

    monkeypatch.setattr(passes_module, "CudaKernels", kernels)
    return used


def from_device(X: np.ndarray, **options) -> Covariance:
    cov = Covariance.from_data(X, **options)
    cov._source.on_device = True
    return cov


def clustered(seed: int = 0) -> np.ndarray:
    """More features alike than a list has room for, next to each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 400)) * np.exp(0.2 * rng.normal(size=400))
    X[:, 20:220] = X[:, [20]] + 0.01 * rng.normal(size=(12, 200))
    X[:, 300] = 1.0
    return X


@pytest.mark.parametrize("scale", [False, True])
def test_lists_equal_those_of_the_host(on_device, scale) -> None:
    X = clustered()
    options = {"scale": scale, "constant": "ignore"}
    found = scan(from_device(X, **options), 9)
    assert on_device
    cov = Covariance.from_data(X, **options)
    A = np.abs(cov.submatrix(slice(None)))
    np.fill_diagonal(A, 0.0)
    expected = -np.sort(-A, axis=1)[:, :9]
    close = 4 * single_module.single_error(12) * cov.diagonal().max()
    np.testing.assert_allclose(found.values, expected, atol=close)
    assert (found.values >= expected - found.rounding).all()
    assert found.rounding == 2 * cov.entry_error
    for i, row in enumerate(found.indices):
        listed = row[row >= 0]
        assert len(set(listed.tolist())) == len(listed)
        others = np.delete(A[i], listed)
        assert others.max() <= found.values[i, -1] + found.rounding


@pytest.mark.parametrize("place", PLACES)
def test_lists_that_overflow_lose_nothing(monkeypatch, place) -> None:
    """Ascending entries: each one exceeds all before it."""
    monkeypatch.setattr(device_module, "TILE_SIZE", 200)
    d = 400
    angles = np.linspace(0.0, 1.2, d)
    C = np.stack([np.cos(angles), np.sin(angles)])
    kernels = kernels_of(place)
    kernels.load(C, np.arange(d)[::-1].copy(), 1.0)
    ticks: list[int] = []
    lists = device_lists(kernels, d, 30, lambda done, total: ticks.append(done))
    indices, last, exact = kernels.listed(lists, 30)
    A = np.abs(C.T @ C)[::-1, ::-1].copy()
    np.fill_diagonal(A, 0.0)
    expected = -np.sort(-A, axis=1)[:, :30]
    np.testing.assert_allclose(exact, expected, atol=1e-6)
    np.testing.assert_allclose(exact, np.take_along_axis(A, indices, 1), atol=1e-14)
    np.testing.assert_allclose(last, expected[:, -1], atol=1e-6)
    assert ticks[-1] == 3
    assert d > CAPACITY


def test_the_same_survivors_and_certificate(on_device) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 150))
    X[:, :6] += 1.5 * rng.normal(size=(15, 1))
    there = bs.solve_path(from_device(X, scale=True), 4)
    assert on_device
    here = bs.solve_path(Covariance.from_data(X, scale=True), 4)
    for k in here:
        assert there[k].status is bs.Status.OPTIMAL
        assert there[k].certificate == here[k].certificate
    assert bs.verify(there[4], Covariance.from_data(X, scale=True)).complete


def test_what_deflation_leaves_is_scanned_on_the_device(on_device) -> None:
    X = np.random.default_rng(0).normal(size=(15, 60))
    found = bs.solve_components(from_device(X, scale=True), 3, 2)
    assert len(on_device) >= 2
    here = bs.solve_components(Covariance.from_data(X, scale=True), 3, 2)
    np.testing.assert_allclose(found.components, here.components, atol=1e-9)


def test_data_on_a_device_are_told_by_their_type(monkeypatch) -> None:
    """Stand-ins with the module names and methods of CuPy and torch."""
    X = np.arange(6.0).reshape(3, 2)
    get = {"get": lambda self: X}
    for module in ("cupy", "cupyx.scipy.sparse._csr"):
        made = type("Array", (), {**get, "__module__": module})()
        assert is_on_device(made)
        assert on_host(made) is X
    assert Covariance.from_data(made).on_device
    tensor = {
        "detach": lambda self: self,
        "cpu": lambda self: SimpleNamespace(numpy=lambda: X),
        "is_cuda": True,
        "__module__": "torch",
    }
    monkeypatch.setattr(
        "blockspca.covariance.device_data.find_spec", lambda name: object()
    )
    host = on_host(type("Tensor", (), tensor)())
    assert host is X
    assert is_on_device(type("Tensor", (), tensor)())
    assert not is_on_device(type("Tensor", (), {**tensor, "is_cuda": False})())
    monkeypatch.setattr("blockspca.covariance.device_data.find_spec", lambda n: None)
    with pytest.raises(ImportError, match=r"blockspca\[gpu\]"):
        on_host(type("Tensor", (), tensor)())
    assert on_host(X) is X
    assert not is_on_device(X)


@needs_gpu
def test_arrays_of_a_gpu() -> None:
    import cupy
    import cupyx.scipy.sparse

    X = np.random.default_rng(0).normal(size=(20, 5000))
    here = bs.solve(Covariance.from_data(X, scale=True), 3)
    there = bs.solve(Covariance.from_data(cupy.asarray(X), scale=True), 3)
    assert there.support.tolist() == here.support.tolist()
    sparse = cupyx.scipy.sparse.csr_matrix(cupy.asarray(np.where(X > 1, X, 0)))
    assert Covariance.from_data(sparse).sparse_data() is not None


TRY = """
import numpy as np
from blockspca.scan.cuda_kernels import CudaKernels
if {torch}:
    import torch
    torch.backends.cuda.matmul.allow_tf32 = True
    x = torch.ones(64, 64, device="cuda")
    (x @ x).sum().item()
for n, d in [(128, 8192), (20, 300), (12, 64)]:
    kernels = CudaKernels()
    kernels.load(np.ones((n, d)), np.arange(d), 1.0)
    kernels.product(slice(0, d), slice(0, d // 2))
"""


@needs_gpu
@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("", False),
        ("CUPY_TF32", True),
        ("NVIDIA_TF32_OVERRIDE", True),
        ("torch", False),  # has a handle of its own
    ],
)
def test_products_in_less_than_single_precision_are_refused(asked, refused) -> None:
    """In a process of its own, as libraries read the environment once."""
    code = TRY.format(torch=asked == "torch")
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | ({asked: "1"} if "TF32" in asked else {}),
        capture_output=True,
        text=True,
    )
    assert ("less than single precision" in ran.stderr) is refused, ran.stderr
    assert (ran.returncode == 0) is not refused
