"""The kernels of the scan on a device, in NumPy: what those of a GPU do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockspca.scan.device import CAPACITY, COLUMNS, ROWS, Lists

FloatArray = NDArray[np.float64]
SIGN_OFF = np.uint32(0x7FFFFFFF)  # of the bits of a number in single precision


class HostKernels:
    """What `Kernels` asks for."""

    def load(self, C: FloatArray, columns: NDArray[np.int64], unit: float) -> None:
        self.exact = np.ascontiguousarray(C[:, columns].T / unit)
        self.data = self.exact.astype(np.float32)

    def empty_lists(self, d: int) -> Lists:
        return Lists(
            np.zeros((d, CAPACITY), dtype=np.uint64),
            np.zeros(d, dtype=np.int32),
            np.zeros(d, dtype=np.uint32),
        )

    def product(self, rows: slice, columns: slice) -> NDArray[np.float32]:
        return self.data[rows] @ self.data[columns].T

    def append(
        self, tile: Any, lists: Lists, corner: tuple[int, int], part: Any, sides: int
    ) -> Any:
        most = 0
        bits = np.ascontiguousarray(tile[part]).view(np.uint32) & SIGN_OFF
        at_row = corner[0] + part[0].start + np.arange(bits.shape[0])
        at_column = corner[1] + part[1].start + np.arange(bits.shape[1])
        for side, own, other, block in (
            (ROWS, at_row, at_column, bits),
            (COLUMNS, at_column, at_row, bits.T),
        ):
            if not sides & side:
                continue
            above = block > lists.floors[own][:, None]
            for a, b in zip(*np.nonzero(above), strict=True):
                i, j = own[a], other[b]
                if i == j:
                    continue
                place = lists.counts[i]
                lists.counts[i] += 1
                most = max(most, int(lists.counts[i]))
                if place < CAPACITY:
                    key = (np.uint64(block[a, b]) << np.uint64(32)) | np.uint64(j)
                    lists.keys[i, place] = key
        return np.array(most)

    def compact(self, lists: Lists, rows: slice, width: int) -> None:
        keys, counts = lists.keys[rows], lists.counts[rows]
        keys[np.arange(CAPACITY) >= counts[:, None]] = 0
        keys[:] = np.sort(keys, axis=1)[:, ::-1]
        counts[:] = np.minimum(counts, width)
        full = counts == width
        last = (keys[:, width - 1] >> np.uint64(32)).astype(np.uint32)
        lists.floors[rows] = np.where(full, last, lists.floors[rows])

    def listed(
        self, lists: Lists, width: int
    ) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        from blockspca._kernels.single_tops import listed_entries

        keys = lists.keys[:, :width]
        there = np.arange(width) < lists.counts[:, None]
        listed = (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)
        indices = np.where(there, listed, np.int32(-1))
        exact = np.empty(indices.shape)
        listed_entries(0, len(exact), self.exact, indices, exact)
        return indices, lists.floors.view(np.float32).astype(np.float64), exact
