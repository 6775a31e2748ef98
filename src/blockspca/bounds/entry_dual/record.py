"""What a certificate keeps of the entry dual: weights, core and shares, as text.

Weights are kept as float32 and shares as multiples of 2⁻¹⁴, both exact in float64: the
bound is computed from what is kept, so that nothing depends on how they were found.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import power_of_four

_HEADER = struct.Struct("<4sqqd")
_MAGIC = b"ED01"
ONE = 2**14  # the share 1 as an integer
#: Of the ratio of multipliers at a node of the search, either way.
MOST_RATIO = 16.0
MOST_BYTES = 2**30  # of a record; more is none of ours


def rounded_shares(shares: FloatArray) -> NDArray[np.int16]:
    """Shares as multiples of 2⁻¹⁴, symmetric with a zero diagonal."""
    kept = np.rint(np.clip(shares, -1.0, 1.0) * ONE).astype(np.int16)
    kept = np.triu(kept, 1)
    return kept + kept.T


def packed(parts: Iterable[bytes]) -> str:
    """Return bytes as compressed text; `Unpacker` reads them again."""
    return base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii")


def packed_triangle(shares: NDArray[np.int16]) -> bytes:
    """What is above the diagonal."""
    return shares[np.triu_indices(len(shares), 1)].astype("<i2").tobytes()


class Unpacker:
    """Packed text, read from its beginning; ValueError where it is damaged."""

    def __init__(self, text: str) -> None:
        try:
            content = base64.b64decode(text, validate=True)
            self.content = zlib.decompressobj().decompress(content, MOST_BYTES)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(
                f"the text of an entry dual is damaged: {error}."
            ) from None
        self.at = 0

    def _advanced(self, size: int) -> int:
        """Where the next bytes begin; raise if there are not as many."""
        begin = self.at
        if size < 0 or begin + size > len(self.content):
            raise ValueError("the text of an entry dual has the wrong length.")
        self.at += size
        return begin

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack_from(self.content, self._advanced(layout.size))

    def array(self, kind: str, count: int) -> NDArray[Any]:
        begin = self._advanced(np.dtype(kind).itemsize * count)
        return np.frombuffer(self.content, kind, count, begin)

    def shares(self, n: int) -> NDArray[np.int16]:
        """A symmetric matrix of order n, from what is above its diagonal."""
        upper = self.array("<i2", n * (n - 1) // 2)
        shares = np.zeros((n, n), np.int16)
        shares[np.triu_indices(n, 1)] = upper
        return shares + shares.T

    def end(self) -> None:
        if self.at != len(self.content):
            raise ValueError("the text of an entry dual has the wrong length.")


@dataclass(frozen=True)
class EntryRecord:
    """A point of the entry dual: U_ij = shares_ij w_i w_j in the core."""

    weights: NDArray[np.float32]  #: (d,); w in multiples of √unit
    unit: float  #: a power of four: w_i w_j · unit is in the units of A
    core: NDArray[np.intp]  #: ascending
    #: (m, m); V in multiples of 2⁻¹⁴, symmetric with a zero diagonal.
    shares: NDArray[np.int16]

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        unit: float,
        core: NDArray[np.intp],
        shares: FloatArray,
        level: float = 0.0,
    ) -> EntryRecord:
        """Round a point; no weight falls below the level by that."""
        rounded = weights.astype(np.float32)
        low = rounded.astype(np.float64) < level
        rounded[low] = np.nextafter(rounded[low], np.float32(np.inf))
        return cls(rounded, unit, core.astype(np.intp), rounded_shares(shares))

    def weights_in(self, unit: float) -> FloatArray:
        """w as multiples of the square root of another power of four."""
        return self.weights.astype(np.float64) * np.sqrt(self.unit / unit)

    @property
    def shares_as_floats(self) -> FloatArray:
        return self.shares.astype(np.float64) / ONE

    def to_text(self) -> str:
        """Write it as text; `from_text` reads the same record."""
        header = _HEADER.pack(_MAGIC, len(self.weights), len(self.core), self.unit)
        weights, core = self.weights.astype("<f4"), self.core.astype("<i8")
        shares = packed_triangle(self.shares)
        return packed([header, weights.tobytes(), core.tobytes(), shares])

    @classmethod
    def from_text(cls, text: str, n_features: int) -> EntryRecord:
        """Read a record for so many features; ValueError if it is not one."""
        reader = Unpacker(text)
        magic, d, m, unit = reader.numbers(_HEADER)
        if magic != _MAGIC or d != n_features or not 0 <= m <= d:
            raise ValueError(
                f"the record of an entry dual is for {d} features and a core of {m}, "
                f"where there are {n_features}."
            )
        weights = reader.array("<f4", d).astype(np.float32)
        core = reader.array("<i8", m).astype(np.intp)
        record = cls(weights, unit, core, reader.shares(m))
        reader.end()
        record.check()
        return record

    def check(self) -> None:
        """Refuse what bounds nothing: the inequalities that the theorem asks for."""
        d, m = len(self.weights), len(self.core)
        if self.unit != power_of_four(self.unit):
            raise ValueError(f"entry dual: unit = {self.unit} is not a power of four.")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise ValueError("entry dual: a weight is negative, or not a number.")
        ascending = bool((np.diff(self.core) > 0).all())
        if m and not (ascending and self.core[0] >= 0 and self.core[-1] < d):
            raise ValueError("entry dual: the core must ascend and lie in 0..d − 1.")
        if (
            self.shares.shape != (m, m)
            or np.abs(self.shares.astype(int)).max(initial=0) > ONE
        ):
            raise ValueError("entry dual: a share is not between −1 and 1.")
        if np.diagonal(self.shares).any():
            raise ValueError("entry dual: the diagonal of the shares is not zero.")
        if not np.array_equal(self.shares, self.shares.T):
            raise ValueError("entry dual: the shares are not symmetric.")
        if self.weights.dtype != np.float32 or self.shares.dtype != np.int16:
            raise ValueError("entry dual: weights or shares are of another type.")
