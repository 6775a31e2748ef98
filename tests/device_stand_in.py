"""Arrays that behave as CuPy's do, over NumPy: for tests where there is no GPU.

As strict as CuPy: no implicit conversion to NumPy, and no operation with one of its
arrays. `get` copies to the host; `np.asarray(values, like=there)` the other way.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

_MAKE = (np.asarray, np.array, np.zeros, np.empty, np.ones, np.full, np.arange)
_METHODS = ("astype", "copy", "sum", "mean", "max", "min", "all", "any")
_METHODS += ("reshape", "transpose", "squeeze")


def _has_gpu() -> bool:
    if find_spec("cupy") is None:
        return False
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


needs_gpu = pytest.mark.skipif(not _has_gpu(), reason="no CuPy with a GPU here")


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A stand-in for cupy.ndarray."""

    def __init__(self, values: Any) -> None:
        self._values = np.array(values)

    def get(self) -> np.ndarray:
        return self._values.copy()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        given, options = _inside(inputs), _inside(kwargs)
        return _outside(getattr(ufunc, method)(*given, **options))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _MAKE:
            return DeviceArray(func(*args, **kwargs))
        return _outside(func(*_inside(args), **_inside(kwargs)))

    def __getitem__(self, index: Any) -> Any:
        return _outside(self._values[_index(index)])

    def __setitem__(self, index: Any, values: Any) -> None:
        self._values[_index(index)] = _inside(values)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize"):
            return getattr(self._values, name)
        if name == "T":
            return DeviceArray(self._values.T)
        if name in _METHODS:
            method = getattr(self._values, name)
            return lambda *args, **kwargs: _outside(
                method(*_inside(args), **_inside(kwargs))
            )
        raise AttributeError(name)

    def __dask_tokenize__(self) -> Any:
        return ("device", self._values.tobytes(), self.shape)

    def __reduce__(self) -> Any:
        return DeviceArray, (self._values,)


class DeviceSparse:
    """A stand-in for cupyx.scipy.sparse.csr_matrix: it can come to the host."""

    def __init__(self, values: Any) -> None:
        self._values = sp.csr_matrix(values)
        self.shape, self.dtype = self._values.shape, self._values.dtype
        self.ndim = 2

    def get(self) -> Any:
        return self._values.copy()

    def __getitem__(self, index: Any) -> DeviceSparse:
        return DeviceSparse(self._values[index])


def _inside(value: Any) -> Any:
    """What NumPy computes with; refuses arrays that are not on the device."""
    if isinstance(value, DeviceArray):
        return value._values
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(_inside(item) for item in value)
    if isinstance(value, dict):
        return {name: _inside(item) for name, item in value.items()}
    return value


def _index(value: Any) -> Any:
    """An index, which may be an array of NumPy's as well: CuPy copies it."""
    if isinstance(value, tuple):
        return tuple(_index(item) for item in value)
    return value if isinstance(value, np.ndarray) else _inside(value)


def _outside(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_outside(item) for item in value)
    return DeviceArray(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _take(array: DeviceArray, indices: np.ndarray, axis: int) -> DeviceArray:
    return DeviceArray(np.take(array._values, indices, axis=axis))


def host_gram(given: Any, block: int, tick: Any) -> np.ndarray:
    """What the GPU's kernel of X'X computes, by that of the host."""
    from blockspca._kernels.sparse_gram import add_rows

    tick(0, 1)
    d = len(given[3]) - 1
    A = np.zeros((d, d))
    add_rows(0, d, block, *given, np.empty(d), np.empty(d), A)
    return A


def use_stand_in(monkeypatch: Any) -> None:
    """Let `import cupy` find this, and dask join these arrays as it does CuPy's."""
    monkeypatch.setattr("blockspca.covariance.device_gram.sparse_gram", host_gram)
    dask = pytest.importorskip("dask")
    # Workers of a cluster would not find it.
    monkeypatch.setitem(dask.config.config, "scheduler", "synchronous")
    from dask.array.backends import _numel_arraylike
    from dask.array.dispatch import concatenate_lookup, numel_lookup, take_lookup
    from dask.sizeof import sizeof

    concatenate_lookup.register(DeviceArray, np.concatenate)
    numel_lookup.register(DeviceArray, _numel_arraylike)
    take_lookup.register(DeviceArray, _take)
    sizeof.register((DeviceArray, DeviceSparse), lambda value: 1000)
    module = SimpleNamespace(
        ndarray=DeviceArray,
        asarray=DeviceArray,
        zeros=lambda shape: DeviceArray(np.zeros(shape)),
        matmul=np.matmul,
        newaxis=None,
        # What dask registers for CuPy by itself, older versions at first sight of it.
        concatenate=np.concatenate,
        take=_take,
        tensordot=np.tensordot,
        einsum=np.einsum,
    )
    monkeypatch.setitem(sys.modules, "cupy", module)


for made in (DeviceArray, DeviceSparse):  # told by the name of the library
    made.__module__ = {"DeviceArray": "cupy", "DeviceSparse": "cupyx.scipy.sparse"}[
        made.__name__
    ]
