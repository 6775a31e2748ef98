"""What a certificate keeps of the entry dual: weights, core and shares, as text.

Weights are kept as float32 and shares as multiples of 2⁻¹⁴, both exact in float64: the
bound is computed from what is kept, so that nothing depends on how they were found.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray

_HEADER = struct.Struct("<4sqqd")
_MAGIC = b"ED01"
ONE = 2**14  # the share 1 as an integer
#: Of the ratio of multipliers at a node of the search, either way.
MOST_RATIO = 16.0
MOST_BYTES = 2**30  # of a record; more is none of ours


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
        kept = np.rint(np.clip(shares, -1.0, 1.0) * ONE).astype(np.int16)
        kept = np.triu(kept, 1)
        return cls(rounded, unit, core.astype(np.intp), kept + kept.T)

    def weights_in(self, unit: float) -> FloatArray:
        """w as multiples of the square root of another power of four."""
        return self.weights.astype(np.float64) * np.sqrt(self.unit / unit)

    @property
    def shares_as_floats(self) -> FloatArray:
        return self.shares.astype(np.float64) / ONE

    def to_text(self) -> str:
        """Write it as text; `from_text` reads the same record."""
        m = len(self.core)
        header = _HEADER.pack(_MAGIC, len(self.weights), m, self.unit)
        upper = self.shares[np.triu_indices(m, 1)]
        parts = (
            header,
            self.weights.astype("<f4").tobytes(),
            self.core.astype("<i8").tobytes(),
            upper.astype("<i2").tobytes(),
        )
        return base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii")

    @classmethod
    def from_text(cls, text: str, n_features: int) -> EntryRecord:
        """Read a record for so many features; ValueError if it is not one."""
        try:
            packed = base64.b64decode(text, validate=True)
            content = zlib.decompressobj().decompress(packed, MOST_BYTES)
            magic, d, m, unit = _HEADER.unpack_from(content)
        except (binascii.Error, zlib.error, struct.error) as error:
            raise ValueError(
                f"the record of an entry dual is damaged: {error}."
            ) from None
        if magic != _MAGIC or d != n_features or not 0 <= m <= d:
            raise ValueError(
                f"the record of an entry dual is for {d} features and a core of {m}, "
                f"where there are {n_features}."
            )
        pairs = m * (m - 1) // 2
        if len(content) != _HEADER.size + 4 * d + 8 * m + 2 * pairs:
            raise ValueError("the record of an entry dual has the wrong length.")
        weights = np.frombuffer(content, "<f4", d, _HEADER.size)
        core = np.frombuffer(content, "<i8", m, _HEADER.size + 4 * d).astype(np.intp)
        upper = np.frombuffer(content, "<i2", pairs, _HEADER.size + 4 * d + 8 * m)
        shares = np.zeros((m, m), np.int16)
        shares[np.triu_indices(m, 1)] = upper
        record = cls(weights.astype(np.float32), unit, core, shares + shares.T)
        record.check()
        return record

    def check(self) -> None:
        """Refuse what bounds nothing: the inequalities that the theorem asks for."""
        d, m = len(self.weights), len(self.core)
        mantissa, exponent = np.frexp(self.unit)
        if not (mantissa == 0.5 and exponent % 2 == 1):
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
