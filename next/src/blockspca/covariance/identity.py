"""The identity of data: a fingerprint on entry, a hash when a proof is written.

No object keeps the data for it. The fingerprint has 64 bits for each column, and sums
of parts add up in any order (`_kernels/moments.py`); dense and sparse tables of the
same numbers have the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.uint64]
BLOCK = 2**20  # numbers that are hashed at a time: 8 MiB


class DataChangedError(RuntimeError):
    """Data that a covariance reads in place have changed."""


@dataclass(frozen=True, eq=False)
class Identity:
    """The data that A was made from, and how."""

    kind: str  #: "matrix" or "data"
    shape: tuple[int, int]
    marks: Marks = field(repr=False)
    center: bool = True
    scale: bool = False
    ddof: int = 1
    weighted: bool = False

    def refuse_change(self, marks: Marks) -> None:
        """Raise if a column has changed."""
        argument = "A" if self.kind == "matrix" else "X"
        changed = np.flatnonzero(marks != self.marks)
        if len(changed):
            raise DataChangedError(
                f"{argument} has changed since the covariance was made, in "
                f"{len(changed)} feature(s), the first being {changed[0]}; make the "
                "covariance again and leave the data as they are while it is used."
            )

    def sha256(self, data: Any) -> str:
        """Return the hash of `data` for a proof; refuse other data than on entry.

        It is the SHA-256 of the text "blockspca-data-1 n d" with a newline, then of all
        numbers row by row as little-endian float64, −0.0 as 0.0.

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca.covariance import Covariance
        >>> A = np.eye(2)
        >>> Covariance.from_matrix(A).identity.sha256(A)[:16]
        '7f0e72b2e8f342ac'
        """
        from .kinds import table_of
        from .moments import marks_of
        from .tables import ALL

        table, _ = table_of(data, "data")
        if table.shape != self.shape:
            raise DataChangedError(
                f"data has shape {table.shape} and must have {self.shape}; pass the "
                "data that the covariance was made from."
            )
        self.refuse_change(marks_of(table))
        n, d = table.shape
        digest = hashlib.sha256(f"blockspca-data-1 {n} {d}\n".encode("ascii"))
        for start in range(0, n, max(1, BLOCK // d)):
            block = table.take(ALL, slice(start, min(start + max(1, BLOCK // d), n)))
            # Adding 0.0 makes 0.0 of −0.0 and changes no other number.
            digest.update(np.add(block, 0.0, dtype="<f8", order="C").data)
        return digest.hexdigest()
