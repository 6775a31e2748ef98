"""X'X and C'C in double on a GPU, by CuPy, for A of many samples (`formed`).

**Sparse.** A block of threads has a row of X'X, and takes the samples that have its
feature in the order of `_kernels.sparse_gram.add_rows`, the threads sharing out the
nonzeros of each: no entry is written by two at a time. Products and sums are rounded
one by one, as there, so that these are the numbers of the host to the last bit, and
what bounds their rounding, (block + 4) u for any number of samples, is proved there.

**Dense.** Products of blocks of samples by cuBLAS, whose order of additions and fused
operations are not known: with `block` samples in each, entries err by
`additions(n, block)` u at the most, whatever they are (`rounding`). That holds for
products in IEEE double. As the environment may ask cuBLAS for an emulation of them,
`refuse_less_than_double` tries what they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray

if TYPE_CHECKING:
    from .sparse_chunks import Tick

_ROWS_AT_ONCE = 1024  # rows of A in flight: 8 blocks on each of an H200's processors
_THREADS = 128  # of a row: about as many as a sample has nonzeros

_SOURCE = r"""
extern "C" __global__ void gram_rows(
    int start, int d, int block,
    const long long* sample_pointers, const int* sample_features,
    const double* sample_data,
    const long long* feature_pointers, const int* feature_samples,
    const double* feature_data,
    double* parts, double* rests, double* rows)
{
    int i = start + blockIdx.x;
    long long offset = (long long)blockIdx.x * d;
    double *part = parts + offset, *rest = rests + offset, *row = rows + offset;
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        row[j] = part[j] = rest[j] = 0.0;
    long long behind = feature_pointers[i + 1];
    for (long long first = feature_pointers[i]; first < behind; first += block) {
        long long last = min(first + block, behind);
        for (long long q = first; q < last; ++q) {
            __syncthreads();  // other threads have written what this one adds to
            double weight = feature_data[q];
            int s = feature_samples[q];
            long long end = sample_pointers[s + 1];
            for (long long p = sample_pointers[s] + threadIdx.x; p < end;
                 p += blockDim.x) {
                int j = sample_features[p];
                if (j >= i)
                    part[j] = __dadd_rn(part[j], __dmul_rn(weight, sample_data[p]));
            }
        }
        __syncthreads();
        for (int j = i + threadIdx.x; j < d; j += blockDim.x) {
            double before = row[j], added = part[j];
            double after = __dadd_rn(before, added);
            double back = __dsub_rn(after, before);
            double lost = __dadd_rn(
                __dsub_rn(before, __dsub_rn(after, back)), __dsub_rn(added, back));
            rest[j] = __dadd_rn(rest[j], lost);
            row[j] = after;
            part[j] = 0.0;
        }
    }
    __syncthreads();
    for (int j = i + threadIdx.x; j < d; j += blockDim.x)
        row[j] = __dadd_rn(row[j], rest[j]);
}
"""


def sparse_gram(given: tuple[np.ndarray, ...], block: int, tick: Tick) -> FloatArray:
    """The upper half of X'X, of which `given` are six arrays, by samples and features.

    They are those of `_kernels.sparse_gram.add_rows`, and so is the result.
    """
    import cupy

    kernel = cupy.RawModule(code=_SOURCE).get_function("gram_rows")
    there = tuple(cupy.asarray(array) for array in given)
    d = len(given[3]) - 1
    at_once = min(_ROWS_AT_ONCE, d)
    parts, rests, rows = (cupy.empty((at_once, d)) for _ in range(3))
    A = np.empty((d, d))
    for start in range(0, d, at_once):
        tick(start, d)
        count = min(at_once, d - start)
        numbers = (np.int32(start), np.int32(d), np.int32(block))
        kernel((count,), (_THREADS,), (*numbers, *there, parts, rests, rows))
        rows[:count].get(out=A[start : start + count])
    return A


def dense_gram(blocks: Iterable[FloatArray], d: int) -> FloatArray:
    """C'C, C in blocks of samples."""
    import cupy

    total = cupy.zeros((d, d))
    for block in blocks:
        there = cupy.asarray(block)
        total += double_product(there, there)
    return total.get()


def double_product(left: Any, right: Any) -> Any:
    """left' right on their device, after a test that its products are double."""
    case = (type(left), left.shape, right.shape)
    if case not in _tried:
        refuse_less_than_double(left, right)
        _tried.add(case)
    return left.T @ right


def refuse_less_than_double(left: Any, right: Any) -> None:
    """Refuse products that are not IEEE double, in the shapes to be used.

    Columns with a single nonzero, of 53 bits, are multiplied, so that each product is
    rounded once; then again with 2⁶⁰ beside them, which fixed-point units cannot
    represent as well. That detects single precision and fixed point. It misses the
    emulation of cuBLAS 13, whose single products err by 1.7 u on other numbers: if the
    environment asks for that, it is refused untested.
    """
    asked = os.environ.get("CUBLAS_EMULATE_DOUBLE_PRECISION", "0") not in ("", "0")
    if asked or not all(_rounds_once(left, right, above) for above in (0.0, 2.0**60)):
        raise RuntimeError(
            "this GPU multiplies in less than double precision, for which the rounding "
            "of A is not bounded; unset CUBLAS_EMULATE_DOUBLE_PRECISION and start "
            "again, or pass the data as NumPy arrays."
        )


def _rounds_once(left: Any, right: Any, above: float) -> bool:
    sides = []
    for given in (left, right):
        number = np.arange(given.shape[1], dtype=np.int64) * _ODD % 2**52
        numbers = np.asarray(1 + number * 2.0**-52, like=given)
        sides.append((np.zeros(given.shape, like=given), numbers))
    (one, own), (other, theirs) = sides
    other[0] = above
    one[-1], other[-1] = own, theirs
    return bool((one.T @ other == own[:, None] * theirs).all())


_ODD = 0x9E3779B97F  # so that numbers have all kinds of digits
_tried: set[tuple[Any, ...]] = set()  # kinds and shapes of products
