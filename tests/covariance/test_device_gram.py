"""A of many samples on a GPU: the numbers of the host; its steps, over NumPy, here."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import blockspca.covariance.device_gram as device_gram
from blockspca import Covariance
from blockspca.covariance.device_gram import double_product, refuse_less_than_double
from device_stand_in import (
    DeviceArray,
    DeviceSparse,
    host_gram,
    needs_gpu,
    use_stand_in,
)
from exact_covariance import exact_covariance, worst_error


def counts(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rates = (0.1 + rng.gamma(0.5, 1.0, d)) * (1 + 3 * (rng.integers(0, 3, (n, 1)) == 0))
    return np.log1p(rng.poisson(0.3 * rates))


@pytest.mark.parametrize("scale", [False, True])
def test_sparse_samples_of_a_gpu_are_formed_there(monkeypatch, scale) -> None:
    X = counts(300, 20)
    used = []

    def gram(*given):
        used.append(given)
        return host_gram(*given)

    monkeypatch.setattr(device_gram, "sparse_gram", gram)
    cov = Covariance.from_data(DeviceSparse(X), scale=scale)
    there = cov.formed()
    assert len(used) == 1
    here = Covariance.from_data(sp.csr_array(X), scale=scale).formed()
    assert (there.submatrix(slice(None)) == here.submatrix(slice(None))).all()
    assert there.entry_error == here.entry_error
    result = bs.solve(cov, 4)
    assert result.certificate == bs.solve(here, 4).certificate
    assert result.status is bs.Status.OPTIMAL


@pytest.mark.parametrize("scale", [False, True])
def test_dense_samples_of_a_gpu_are_formed_there(monkeypatch, scale) -> None:
    use_stand_in(monkeypatch)
    monkeypatch.setattr("blockspca.covariance.formed.block_size", lambda n: 7)
    X = counts(40, 6) + 100.0  # 40 samples: the last block is shorter
    ticks: list[int] = []
    cov = Covariance.from_data(DeviceArray(X), scale=scale)
    formed = cov.formed(tell=lambda event: ticks.append(event.done))
    A = formed.submatrix(slice(None))
    assert ticks == [0, 7, 14, 21, 28, 35]
    assert isinstance(A, np.ndarray)
    assert (A == A.T).all()
    exact = exact_covariance(X, scale=scale)
    assert worst_error(A, exact) <= formed.entry_error < 1e-12


class Rounded(DeviceArray):
    """Products of which fewer digits are right."""

    def __matmul__(self, other):
        return DeviceArray(self.cut(self._values) @ self.cut(other._values))

    def __getattr__(self, name):
        return type(self)(self._values.T) if name == "T" else super().__getattr__(name)

    def __array_function__(self, func, types, args, kwargs):
        return type(self)(func(*args, **kwargs))


class Single(Rounded):
    def cut(self, values):
        return values.astype(np.float32).astype(np.float64)


class LastBit(Rounded):
    """52 bits of each number."""

    def cut(self, values):
        return (values.view(np.int64) & ~1).view(np.float64)


class FixedPoint(Rounded):
    """55 bits in the unit of the largest number of all."""

    def cut(self, values):
        unit = 2.0 ** (np.frexp(np.abs(values).max())[1] - 55)
        return np.rint(values / unit) * unit


@pytest.mark.parametrize("kind", [Single, LastBit, FixedPoint])
def test_products_in_less_than_double_are_refused(kind) -> None:
    X = kind(np.ones((5, 3)))
    for _ in range(2):  # that it was refused once makes it no better
        with pytest.raises(RuntimeError, match="CUBLAS_EMULATE_DOUBLE_PRECISION"):
            double_product(X, X)
    for samples in (1, 2, 30):
        there = DeviceArray(np.random.default_rng(0).normal(size=(samples, 50)))
        expected = there.get().T @ there.get()
        assert (double_product(there, there).get() == expected).all()


def test_an_emulation_that_is_asked_for_is_refused(monkeypatch) -> None:
    there = DeviceArray(np.ones((4, 9)))
    monkeypatch.setenv("CUBLAS_EMULATE_DOUBLE_PRECISION", "0")
    refuse_less_than_double(there, there)
    monkeypatch.setenv("CUBLAS_EMULATE_DOUBLE_PRECISION", "1")
    with pytest.raises(RuntimeError, match="less than double precision"):
        refuse_less_than_double(there, there)


@needs_gpu
@pytest.mark.parametrize("d", [7, 300, 1500])
def test_the_kernel_of_a_gpu_equals_that_of_the_host(d) -> None:
    import cupyx.scipy.sparse

    rng = np.random.default_rng(d)
    X = sp.csr_matrix(counts(2 * d + 300, d) * rng.normal(size=(2 * d + 300, d)))
    there = Covariance.from_data(cupyx.scipy.sparse.csr_matrix(X)).formed()
    here = Covariance.from_data(X).formed()
    assert (there.submatrix(slice(None)) == here.submatrix(slice(None))).all()
    assert there.entry_error == here.entry_error


@needs_gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_dense_samples_on_a_gpu(library) -> None:
    array = pytest.importorskip(library)
    X = counts(5000, 300) + 7.0
    there = array.asarray(X) if library == "cupy" else array.tensor(X, device="cuda")
    formed = Covariance.from_data(there).formed()
    here = Covariance.from_data(X).formed()
    slack = formed.entry_error + here.entry_error
    apart = np.abs(formed.submatrix(slice(None)) - here.submatrix(slice(None)))
    assert apart.max() <= slack
    found, expected = bs.solve(formed, 5), bs.solve(here, 5)
    assert found.status is bs.Status.OPTIMAL
    assert found.support.tolist() == expected.support.tolist()


@needs_gpu
def test_products_of_this_gpu_are_double() -> None:
    import cupy

    for shape in [(1, 5), (300, 4000), (256, 512), (10, 3)]:
        ones = cupy.ones(shape)
        assert (double_product(ones, ones) == shape[0]).all()
