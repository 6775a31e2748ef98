"""The columns c_i of C, A = C'C: dense, or sparse and centred without being filled.

Dense ones may be in the memory of a GPU, for the steps of an ascent.

`norms` are ‖c_i‖². `sizes` bound what goes into a column before the mean is taken off:
rounding errors are in proportion to them, not to the norms.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.blas import all_threads

Indices = NDArray[np.intp]

_WORK = 2**25  # multiplications from which on threads pay


class DenseColumns:
    """Columns of an array."""

    def __init__(self, C: FloatArray, norms: FloatArray | None = None) -> None:
        self.C = C
        self.norms = np.einsum("ij,ij->j", C, C) if norms is None else norms
        self.sizes = np.sqrt(self.norms)

    @property
    def shape(self) -> tuple[int, int]:
        return self.C.shape[0], self.C.shape[1]

    def take(self, index: Indices) -> DenseColumns:
        return DenseColumns(self.C[:, index])

    def head(self, count: int) -> DenseColumns:
        """Return the first columns, without a copy."""
        return DenseColumns(self.C[:, :count], self.norms[:count])

    def dense(self) -> FloatArray:
        """Return C."""
        return self.C

    def project(self, Q: FloatArray) -> FloatArray:
        """Return Q'C."""
        return Q.T @ self.C

    def combine(self, W: FloatArray) -> FloatArray:
        """Return CW."""
        return self.C @ W

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return C diag(weights) C'."""
        used = np.flatnonzero(weights)
        C = self.C if len(used) == len(weights) else self.C[:, used]
        with all_threads() if C.size * len(C) > _WORK else nullcontext():
            return (C * weights[used]) @ C.T

    def forms(self, S: FloatArray) -> FloatArray:
        """Return c_i'Sc_i for symmetric S."""
        with all_threads():
            image = S @ self.C
        return np.einsum("ij,ij->j", self.C, image)


class SparseColumns:
    """Columns y_i − m_i 1 with y_i sparse, their rows in ascending order."""

    def __init__(self, Y: Any, means: FloatArray, norms: FloatArray) -> None:
        self.Y = Y
        self.means = means
        self.norms = norms

    @cached_property
    def sizes(self) -> FloatArray:
        length = np.sqrt(np.asarray(self.Y.multiply(self.Y).sum(axis=0)).ravel())
        return np.asarray(length + np.abs(self.means) * np.sqrt(self.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        return self.Y.shape

    def take(self, index: Indices) -> SparseColumns:
        Y = self.Y[:, index].tocsc()
        Y.sort_indices()  # `add_gram` relies on it
        return SparseColumns(Y, self.means[index], self.norms[index])

    def head(self, count: int) -> SparseColumns:
        """Return the first columns, without a copy."""
        Y = self.Y
        end = Y.indptr[count]
        # Through the constructor scipy would copy what is less than half of an array.
        first = type(Y)((Y.shape[0], count))
        first.data, first.indices = Y.data[:end], Y.indices[:end]
        first.indptr = Y.indptr[: count + 1]
        head = SparseColumns(first, self.means[:count], self.norms[:count])
        head.sizes = self.sizes[:count]
        return head

    def dense(self) -> FloatArray:
        """Return C."""
        return np.asarray(self.Y.toarray() - self.means)

    def project(self, Q: FloatArray) -> FloatArray:
        """Return Q'C."""
        return np.ascontiguousarray((self.Y.T @ Q).T) - np.outer(
            Q.sum(axis=0), self.means
        )

    def combine(self, W: FloatArray) -> FloatArray:
        """Return CW."""
        return self.Y @ W - self.means @ W

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return C diag(weights) C'."""
        from ..._kernels.sparse_columns import add_gram

        Y, total = self.Y, np.zeros((self.shape[0],) * 2)
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        weighted = weights * self.means
        shift = Y @ weighted - weighted @ self.means / 2
        add_gram(Y.indptr, Y.indices, Y.data, weights, shift, total)
        return total

    def forms(self, S: FloatArray) -> FloatArray:
        """Return c_i'Sc_i for symmetric S."""
        from ..._kernels.sparse_columns import quadratic_forms

        Y, forms = self.Y, np.empty(self.shape[1])
        quadratic_forms(Y.indptr, Y.indices, Y.data, np.ascontiguousarray(S), forms)
        sums = S.sum(axis=0)
        return forms - 2 * self.means * (Y.T @ sums) + self.means**2 * sums.sum()


class DeviceColumns:
    """Dense columns in the memory of a GPU, which multiplies them, in double.

    For the steps of an ascent, which prove nothing: whatever a GPU makes of a product,
    bounds come from the same columns on the host (`ascent`).
    """

    def __init__(self, C: Any, norms: FloatArray) -> None:
        self.C = C
        self.norms = norms
        self.sizes = np.sqrt(norms)

    @classmethod
    def of(cls, columns: DenseColumns) -> DeviceColumns:
        """Copy columns of the host."""
        import cupy

        return cls(cupy.asarray(columns.C), columns.norms)

    @property
    def shape(self) -> tuple[int, int]:
        return self.C.shape[0], self.C.shape[1]

    def head(self, count: int) -> DeviceColumns:
        """Return the first columns, without a copy."""
        return DeviceColumns(self.C[:, :count], self.norms[:count])

    def project(self, Q: FloatArray) -> Any:
        """Return Q'C, which stays there."""
        return np.asarray(np.ascontiguousarray(Q.T), like=self.C) @ self.C

    def combine(self, W: Any) -> FloatArray:
        """Return CW, of a W that is there."""
        return to_host(self.C @ W)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return C diag(weights) C'."""
        return to_host((self.C * np.asarray(weights, like=self.C)) @ self.C.T)


HostColumns = DenseColumns | SparseColumns
Columns = HostColumns | DeviceColumns


def to_host(array: Any) -> FloatArray:
    """Return an array, which may be in the memory of a GPU, in that of the host."""
    found: FloatArray = array if isinstance(array, np.ndarray) else array.get()
    return found


def in_space(columns: Columns, V: FloatArray) -> DenseColumns | DeviceColumns:
    """Return V'C, where C is, with the norms of the columns of C."""
    kind = DeviceColumns if isinstance(columns, DeviceColumns) else DenseColumns
    return kind(columns.project(V), columns.norms)


def sparse_columns(
    X: Any, means: FloatArray, factors: FloatArray, index: Indices, norms: FloatArray
) -> SparseColumns:
    """Return columns factor_i (x_i − mean_i 1) of sparse X, for i in the index.

    `norms` are theirs.
    """
    Y = X[:, index].astype(np.float64).tocsc()
    Y.sort_indices()
    Y.data *= np.repeat(factors[index], np.diff(Y.indptr))
    # The kernels are compiled for one type of index.
    Y.indptr, Y.indices = Y.indptr.astype(np.int32), Y.indices.astype(np.int32)
    return SparseColumns(Y, means[index] * factors[index], norms)
