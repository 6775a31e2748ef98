"""The kernels of the scan, `device.Kernels`, for NVIDIA GPUs by CuPy.

Products are in IEEE single precision, not TF32. As the environment may make CuPy use
less, `product` tests it for every shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .device import CAPACITY, COLUMNS, ROWS, Lists

_ROWS_AT_ONCE = 32  # of a tile, by one thread, which has the floor of its column

_SOURCE = (
    f"""
#define CAPACITY {CAPACITY}
#define ROWS {ROWS}
#define COLUMNS {COLUMNS}
#define ROWS_AT_ONCE {_ROWS_AT_ONCE}
"""
    r"""
typedef unsigned long long Key;

extern "C" __global__ void append(
    const float* tile, long long stride, int r0, int r1, int c0, int c1,
    long long first_row, long long first_column, const unsigned* floors,
    int* counts, Key* keys, int sides, int* most)
{
    const unsigned none = 0x7fffffffu;
    int c = c0 + blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= c1) return;
    int r = r0 + blockIdx.y * ROWS_AT_ONCE;
    int behind = min(r + ROWS_AT_ONCE, r1);
    long long j = first_column + c;
    unsigned of_column = (sides & COLUMNS) ? floors[j] : none;
    for (; r < behind; ++r) {
        unsigned v = __float_as_uint(tile[r * stride + c]) & none;
        long long i = first_row + r;
        unsigned of_row = (sides & ROWS) ? floors[i] : none;
        if (v <= min(of_row, of_column) || i == j) continue;
        if (v > of_row) {
            int place = atomicAdd(counts + i, 1);
            if (place < CAPACITY) keys[i * CAPACITY + place] = ((Key)v << 32) | j;
            if (place >= CAPACITY / 2) atomicMax(most, place + 1);
        }
        if (v > of_column) {
            int place = atomicAdd(counts + j, 1);
            if (place < CAPACITY) keys[j * CAPACITY + place] = ((Key)v << 32) | i;
            if (place >= CAPACITY / 2) atomicMax(most, place + 1);
        }
    }
}

extern "C" __global__ void compact(
    Key* keys, int* counts, unsigned* floors, long long first, int width)
{
    __shared__ Key list[CAPACITY];
    long long i = first + blockIdx.x;
    int count = min(counts[i], CAPACITY);
    for (int p = threadIdx.x; p < CAPACITY; p += blockDim.x)
        list[p] = p < count ? keys[i * CAPACITY + p] : 0;
    for (int size = 2; size <= CAPACITY; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            int t = threadIdx.x;
            int p = 2 * apart * (t / apart) + t % apart;
            Key a = list[p], b = list[p + apart];
            if (((p & size) == 0) == (a < b)) { list[p] = b; list[p + apart] = a; }
        }
    __syncthreads();
    for (int p = threadIdx.x; p < width; p += blockDim.x)
        keys[i * CAPACITY + p] = list[p];
    if (threadIdx.x == 0) {
        counts[i] = min(count, width);
        if (count >= width) floors[i] = (unsigned)(list[width - 1] >> 32);
    }
}

extern "C" __global__ void listed(
    const double* data, int n, const Key* keys, const int* counts, int width,
    int* indices, double* values)
{
    // The order of `_kernels.single_tops.listed_entries`, without fused operations:
    // the same numbers to the last bit.
    long long i = blockIdx.x;
    for (int p = threadIdx.x; p < width; p += blockDim.x) {
        double part[4] = {0.0, 0.0, 0.0, 0.0};
        int j = -1;
        if (p < counts[i]) {
            j = (int)(keys[i * CAPACITY + p] & 0xffffffffu);
            const double* left = data + i * n;
            const double* right = data + (long long)j * n;
            for (int s = 0; s + 3 < n; s += 4)
                for (int q = 0; q < 4; ++q)
                    part[q] = __dadd_rn(
                        part[q], __dmul_rn(left[s + q], right[s + q]));
            for (int s = n - n % 4; s < n; ++s)
                part[0] = __dadd_rn(part[0], __dmul_rn(left[s], right[s]));
        }
        indices[i * width + p] = j;
        values[i * width + p] = fabs(
            __dadd_rn(__dadd_rn(part[0], part[1]), __dadd_rn(part[2], part[3])));
    }
}
"""
)


class CudaKernels:
    """The kernels of the current GPU; data and lists are held until this goes."""

    def __init__(self) -> None:
        import cupy

        self.xp = cupy
        module = cupy.RawModule(code=_SOURCE)
        self._append = module.get_function("append")
        self._compact = module.get_function("compact")
        self._listed = module.get_function("listed")
        self._tile: Any = None
        self._tried: set[tuple[int, ...]] = set()  # shapes of products
        self._most = cupy.zeros((), dtype=cupy.int32)

    def load(self, C: FloatArray, columns: NDArray[np.int64], unit: float) -> None:
        xp = self.xp
        whole = len(columns) == C.shape[1] and bool(
            (columns == np.arange(len(columns))).all()
        )
        given = xp.asarray(C if whole else np.ascontiguousarray(C[:, columns]))
        self.exact = xp.ascontiguousarray(given.T)
        self.exact /= unit
        del given
        self.data = self.exact.astype(xp.float32)

    def _refuse_less_than_single(self, shape: tuple[int, int]) -> None:
        """Multiply numbers of 24 bits as a tile of this shape is multiplied.

        A row is a number in one place, so that products are 0, or those of two numbers,
        rounded once; TF32 keeps 11 bits of each number.
        """
        xp, n = self.xp, self.data.shape[1]
        sides = []
        for size in shape:
            row = xp.arange(size)
            numbers = (1 + row * 2654435761 % 2**23 * 2.0**-23).astype(xp.float32)
            side = xp.zeros((size, n), dtype=xp.float32)
            side[row, row % n] = numbers
            sides.append((side, row % n, numbers))
        (left, at_rows, one), (right, at_columns, other) = sides
        expected = one[:, None] * other
        expected *= at_rows[:, None] == at_columns
        if not bool((self._multiply(left, right) == expected).all()):
            raise RuntimeError(
                "this GPU multiplies in less than single precision, for which the "
                "error of a scan is not bounded; unset CUPY_TF32 and "
                "NVIDIA_TF32_OVERRIDE and start again, or pass the data as a NumPy "
                "array."
            )
        self._tried.add(shape)

    def empty_lists(self, d: int) -> Lists:
        xp = self.xp
        return Lists(
            xp.zeros((d, CAPACITY), dtype=xp.uint64),
            xp.zeros(d, dtype=xp.int32),
            xp.zeros(d, dtype=xp.uint32),
        )

    def product(self, rows: slice, columns: slice) -> Any:
        left, right = self.data[rows], self.data[columns]
        shape = (len(left), len(right))
        if self._tile is None or self._tile.shape != shape:
            self._tile = self.xp.empty(shape, dtype=self.xp.float32)
        if shape not in self._tried:
            self._refuse_less_than_single(shape)
        return self._multiply(left, right)

    def _multiply(self, left: Any, right: Any) -> Any:
        """left right', in single precision, into the tile."""
        return self.xp.matmul(left, right.T, out=self._tile)

    def append(
        self, tile: Any, lists: Lists, corner: tuple[int, int], part: Any, sides: int
    ) -> Any:
        rows, columns = part
        self._most.fill(0)
        grid = (
            -(-(columns.stop - columns.start) // 256),
            -(-(rows.stop - rows.start) // _ROWS_AT_ONCE),
        )
        bounds = (rows.start, rows.stop, columns.start, columns.stop)
        place = [np.int64(tile.shape[1]), *(np.int32(bound) for bound in bounds)]
        place += [np.int64(i) for i in corner]
        given = (lists.floors, lists.counts, lists.keys, np.int32(sides), self._most)
        self._append(grid, (256,), (tile, *place, *given))
        return self._most

    def compact(self, lists: Lists, rows: slice, width: int) -> None:
        given = (lists.keys, lists.counts, lists.floors)
        sizes = (np.int64(rows.start), np.int32(width))
        count = rows.stop - rows.start
        self._compact((count,), (CAPACITY // 2,), (*given, *sizes))

    def listed(
        self, lists: Lists, width: int
    ) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        xp = self.xp
        d, n = self.exact.shape
        indices = xp.empty((d, width), dtype=xp.int32)
        values = xp.empty((d, width))
        given = (self.exact, np.int32(n), lists.keys, lists.counts, np.int32(width))
        self._listed((d,), (32,), (*given, indices, values))
        last = lists.floors.view(xp.float32).astype(xp.float64)
        return xp.asnumpy(indices), xp.asnumpy(last), xp.asnumpy(values)
