"""The log of a search by the entry dual: its points and splits, and their text.

A log begins with the rows that the search is about; where these are not all features,
with the point that rules the others out (`screening.py`).  Points are kept as in
`record.py`: weights as float32, shares as multiples of 2⁻¹⁴, both exact in float64.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...numerics.rounding import power_of_four
from .record import (
    MOST_RATIO,
    ONE,
    EntryRecord,
    Unpacker,
    packed,
    packed_triangle,
    rounded_shares,
)

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
        return cls(weights.astype(np.float32), rounded_shares(shares), ratio)

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
            parts.append(_POINT.pack(len(point.weights), point.ratio))
            parts.append(point.weights.astype("<f4").tobytes())
            parts.append(packed_triangle(point.shares))
        return packed(parts)

    @classmethod
    def from_text(cls, text: str, n_features: int) -> SearchRecord:
        """Read a record for so many features; ValueError if it is not one."""
        reader = Unpacker(text)
        magic, d, unit, tau, n, n_points, n_splits = reader.numbers(_HEADER)
        if magic not in (MAGIC, _SCREENED) or d != n_features or not 0 < n <= d:
            raise ValueError(
                f"the log of an entry dual is for {d} features, where there are "
                f"{n_features}."
            )
        screen = _read_screen(reader, d) if magic == _SCREENED else None
        features = reader.array("<i8", n).astype(np.intp)
        splits = reader.array("<i8", n_splits).tolist()
        points = [_read_point(reader, n) for _ in range(n_points)]
        reader.end()
        if not (unit == power_of_four(unit) and np.isfinite(tau)):
            raise ValueError(f"entry dual: unit = {unit} and τ = {tau} are no numbers.")
        ascending = bool((np.diff(features) > 0).all())
        if not (ascending and features[0] >= 0 and features[-1] < d):
            raise ValueError("entry dual: features must ascend and lie in 0..d − 1.")
        if screen is not None and screen.record.unit != unit:
            raise ValueError("entry dual: the screen has another unit than its search.")
        return cls(d, unit, tau, features, SearchLog(points, splits), screen)


def _read_screen(reader: Unpacker, n_features: int) -> Screen:
    level, length = reader.numbers(_SCREEN)
    text = bytes(reader.array("<u1", length)).decode("ascii", "replace")
    screen = Screen(EntryRecord.from_text(text, n_features), level)
    screen.check()
    return screen


def _read_point(reader: Unpacker, most: int) -> LoggedPoint | None:
    n, ratio = reader.numbers(_POINT)
    if n == _NONE:
        return None
    if not 0 <= n <= most:
        raise ValueError("the log of an entry dual has a point that is too large.")
    weights = reader.array("<f4", n).astype(np.float32)
    point = LoggedPoint(weights, reader.shares(n), ratio)
    point.check()
    return point
