"""The log of a search by the entry dual: its points and splits, and their text.

A log begins with the rows that the search is about; where these are not all features,
with the point that rules the others out (`screening.py`).  Points are kept as in
`record.py`: weights as float32, shares as multiples of 2⁻¹⁴, both exact in float64.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from .record import MOST_BYTES, MOST_RATIO, ONE, EntryRecord

MAGIC = b"ES01"
_SCREENED = b"ES02"  # the same, after a screen
_HEADER = struct.Struct("<4sqddqqq")
_SCREEN = struct.Struct("<dq")
_POINT = struct.Struct("<qd")
_NONE = -1  # the number of features of a point that is none


@dataclass(frozen=True)
class LoggedPoint:
    """Weights, shares and r of a node's matrix, as they are kept."""

    weights: NDArray[np.float32]
    shares: NDArray[np.int16]
    ratio: float

    @classmethod
    def of(cls, weights: FloatArray, shares: FloatArray, ratio: float) -> LoggedPoint:
        kept = np.rint(np.clip(shares, -1.0, 1.0) * ONE).astype(np.int16)
        kept = np.triu(kept, 1)
        return cls(weights.astype(np.float32), kept + kept.T, ratio)

    @property
    def shares_as_floats(self) -> FloatArray:
        return self.shares.astype(np.float64) / ONE

    def check(self) -> None:
        """Refuse what bounds nothing."""
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise ValueError("entry dual: a weight is negative, or not a number.")
        if np.abs(self.shares.astype(int)).max(initial=0) > ONE:
            raise ValueError("entry dual: a share is not between −1 and 1.")
        if not 1 / MOST_RATIO <= self.ratio <= MOST_RATIO:
            raise ValueError(
                f"entry dual: r = {self.ratio} is not between 1/{MOST_RATIO:g} and "
                f"{MOST_RATIO:g}."
            )


@dataclass
class SearchLog:
    """What was decided, in the order of the search."""

    #: None where there was no time for an ascent, and the node was left as it was.
    points: list[LoggedPoint | None] = field(default_factory=list)
    #: Positions, among the features of a node, of those that it was split by.
    splits: list[int] = field(default_factory=list)
    read_points: int = 0
    read_splits: int = 0

    def next_point(self) -> LoggedPoint | None:
        if self.read_points == len(self.points):
            return None
        self.read_points += 1
        return self.points[self.read_points - 1]

    def next_split(self) -> int | None:
        if self.read_splits == len(self.splits):
            return None
        self.read_splits += 1
        return self.splits[self.read_splits - 1]


@dataclass(frozen=True)
class Screen:
    """A point that rules features out, and ℓ, above which entries count, in units."""

    record: EntryRecord
    level: float

    def check(self) -> None:
        """Refuse what would leave strong entries out."""
        self.record.check()
        if not (np.isfinite(self.level) and self.level > 0):
            raise ValueError(f"entry dual: ℓ = {self.level} is not positive.")
        weights = self.record.weights.astype(np.float64)
        outside = len(self.record.core) < len(weights)
        if outside and (weights < np.sqrt(self.level)).any():
            raise ValueError("entry dual: a weight is below the level of the screen.")


@dataclass(frozen=True)
class SearchRecord:
    """A search that can be repeated: over which features, for which τ, and its log."""

    n_features: int  #: d
    #: `unit`, `tau`: τ in units, a power of four.
    unit: float
    tau: float
    features: NDArray[np.intp]  #: rows of the dense problem
    log: SearchLog
    #: What rules all others out; without one, features are all.
    screen: Screen | None = None

    def to_text(self) -> str:
        """Write it as text; `from_text` reads the same record."""
        points, splits = self.log.points, self.log.splits
        screened = b""
        if self.screen is not None:
            text = self.screen.record.to_text().encode("ascii")
            screened = _SCREEN.pack(self.screen.level, len(text)) + text
        parts = [
            _HEADER.pack(
                _SCREENED if screened else MAGIC,
                self.n_features,
                self.unit,
                self.tau,
                len(self.features),
                len(points),
                len(splits),
            ),
            screened,
            self.features.astype("<i8").tobytes(),
            np.array(splits, "<i8").tobytes(),
        ]
        for point in points:
            if point is None:
                parts.append(_POINT.pack(_NONE, 1.0))
                continue
            n = len(point.weights)
            parts.append(_POINT.pack(n, point.ratio))
            parts.append(point.weights.astype("<f4").tobytes())
            parts.append(point.shares[np.triu_indices(n, 1)].astype("<i2").tobytes())
        return base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii")

    @classmethod
    def from_text(cls, text: str, n_features: int) -> SearchRecord:
        """Read a record for so many features; ValueError if it is not one."""
        try:
            reader = _Bytes(text)
            magic, d, unit, tau, n, n_points, n_splits = reader.header()
            if magic not in (MAGIC, _SCREENED) or d != n_features or not 0 < n <= d:
                raise ValueError(
                    f"the log of an entry dual is for {d} features, where there are "
                    f"{n_features}."
                )
            screen = reader.screen(d) if magic == _SCREENED else None
            features = reader.array("<i8", n).astype(np.intp)
            splits = reader.array("<i8", n_splits).tolist()
            points = [reader.point(n) for _ in range(n_points)]
            reader.end()
        except (binascii.Error, zlib.error, struct.error) as error:
            raise ValueError(f"the log of an entry dual is damaged: {error}.") from None
        mantissa, exponent = np.frexp(unit)
        if not (mantissa == 0.5 and exponent % 2 == 1 and np.isfinite(tau)):
            raise ValueError(f"entry dual: unit = {unit} and τ = {tau} are no numbers.")
        ascending = bool((np.diff(features) > 0).all())
        if not (ascending and features[0] >= 0 and features[-1] < d):
            raise ValueError("entry dual: features must ascend and lie in 0..d − 1.")
        if screen is not None and screen.record.unit != unit:
            raise ValueError("entry dual: the screen has another unit than its search.")
        return cls(d, unit, tau, features, SearchLog(points, splits), screen)


class _Bytes:
    """A packed log, read from its beginning."""

    def __init__(self, text: str) -> None:
        packed = base64.b64decode(text, validate=True)
        self.content = zlib.decompressobj().decompress(packed, MOST_BYTES)
        self.at = 0

    def header(self) -> tuple[bytes, int, float, float, int, int, int]:
        self.at = _HEADER.size
        magic, d, unit, tau, n, n_points, n_splits = _HEADER.unpack_from(self.content)
        return magic, d, unit, tau, n, n_points, n_splits

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        size = np.dtype(kind).itemsize * count
        if count < 0 or self.at + size > len(self.content):
            raise ValueError("the log of an entry dual has the wrong length.")
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += size
        return found

    def screen(self, n_features: int) -> Screen:
        level, length = _SCREEN.unpack_from(self.content, self.at)
        self.at += _SCREEN.size
        text = bytes(self.array("<u1", length)).decode("ascii", "replace")
        screen = Screen(EntryRecord.from_text(text, n_features), level)
        screen.check()
        return screen

    def point(self, most: int) -> LoggedPoint | None:
        n, ratio = _POINT.unpack_from(self.content, self.at)
        self.at += _POINT.size
        if n == _NONE:
            return None
        if not 0 <= n <= most:
            raise ValueError("the log of an entry dual has a point that is too large.")
        weights = self.array("<f4", n).astype(np.float32)
        shares = np.zeros((n, n), np.int16)
        shares[np.triu_indices(n, 1)] = self.array("<i2", n * (n - 1) // 2)
        point = LoggedPoint(weights, shares + shares.T, ratio)
        point.check()
        return point

    def end(self) -> None:
        if self.at != len(self.content):
            raise ValueError("the log of an entry dual has the wrong length.")
