"""Lists of the largest entries of rows of A: the record that all scans return."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import FloatArray, Indices


@dataclass(frozen=True)
class Lists:
    """The largest |A_ij|, j ≠ i, of every row.

    No exact |A_ij| exceeds its listed value by more than `error`, nor, if j is not
    listed, the last value of row i. Ties with the last value are broken in any way, but
    always in the same way. Values are exact within `error` too, unless a scan in single
    precision raises some at the end of a list; see `factor_lists`.

    Attributes
    ----------
    values : array (rows, width)
        Descending. The place of an entry that does not exist, or is 0, has value 0.
    indices : array of int64 (rows, width)
        Columns of the entries, −1 for those that do not exist or are 0. If `features`
        is given, these are positions in `features`.
    error : float
        Bounds the rounding of values. A scan bounds its own rounding; a source of A
        adds what its numbers differ from exact ones.
    features : array of int64 or None
        The features of rows and columns; None is all of them.
    """

    values: FloatArray
    indices: Indices
    error: float
    features: Indices | None = None

    @property
    def width(self) -> int:
        """The length of a list."""
        return self.values.shape[1]

    @property
    def complete_above(self) -> float:
        """A level above which every |A_ij| is listed, in both its rows."""
        full = self.indices[:, -1] >= 0
        return float(self.values[full, -1].max(initial=0.0))
