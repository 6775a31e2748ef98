"""The record that all scans return: lists of the largest entries of rows of A."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import FloatArray, Indices


@dataclass(frozen=True)
class Lists:
    """The largest |A_ij|, j ≠ i, of every row.

    An exact |A_ij| exceeds its listed value by at most `error`. If j is not listed, it
    exceeds the last value of row i by at most `error`. Ties with the last value are
    always broken in the same way. Listed values exceed exact ones by at most `error`,
    too, unless a scan in single precision raised them; see `factor_lists`.

    Attributes
    ----------
    values : array (rows, width)
        In descending order. A row with fewer nonzero entries ends with zeros.
    indices : array of int64 (rows, width)
        Columns of the entries, or −1 after the last nonzero entry. If `features` is not
        None, they are positions in `features`.
    error : float
        Bound on the error of values. A scan bounds its own rounding, and the source of
        A adds the error of its entries.
    features : array of int64 or None
        The features of rows and columns; None is all of them.
    """

    values: FloatArray
    indices: Indices
    error: float
    features: Indices | None = None
