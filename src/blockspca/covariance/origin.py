"""Identifies the data of a matrix A for proofs: their hash and how A is made of them.

`docs/proof-format.md` defines A and the hash from the numbers that were passed in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._validation import is_sparse, numeric_array
from .fingerprint import DataChangedError
from .ingest import Preparation, dense_data
from .sources import DenseDataSource, MappedDataSource, Source, SparseDataSource
from .sparse_chunks import SparseChunksSource

_BLOCK = 2**16  # numbers that are hashed at a time: 512 KiB, which stay in cache


def data_sha256(Y: Any) -> str:
    """Return the SHA-256 of an array of numbers, as the proof format defines it.

    The text "blockspca-data-1 n d" and a newline, then all numbers row by row as
    little-endian float64, −0.0 as 0.0. Sparse data have the hash of the same numbers
    written out.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance.origin import data_sha256
    >>> data_sha256(np.eye(2))[:16]
    '7f0e72b2e8f342ac'
    """
    n, d = Y.shape
    digest = hashlib.sha256(f"blockspca-data-1 {n} {d}\n".encode("ascii"))
    for block in _row_blocks(Y, max(1, _BLOCK // d)):
        # adding 0.0 makes 0.0 of −0.0 and changes no other number
        digest.update(np.add(block, 0.0, dtype="<f8", order="C").data)
    return digest.hexdigest()


def _row_blocks(Y: Any, step: int) -> Iterator[np.ndarray]:
    rows = Y.tocsr() if is_sparse(Y) else Y
    for start in range(0, Y.shape[0], step):
        block = rows[start : start + step]
        yield np.asarray(block.toarray() if is_sparse(Y) else block, dtype=np.float64)


class GivenData:
    """Dense data as they were passed in, hashed only when a proof asks for it.

    A hash takes as long as a small solve. As the user may have changed the data since,
    the source is computed from them again and must be the same, bit for bit.
    """

    def __init__(self, X: Any, source: DenseDataSource, prepare: Preparation) -> None:
        self._kept: tuple[Any, DenseDataSource, Preparation] | None
        self._kept = X, source, prepare
        self._sha256: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the hash, and not the data a second time."""
        with suppress(DataChangedError):
            self.sha256()
        return {"_kept": None, "_sha256": self._sha256}

    def sha256(self) -> str:
        """Return the hash; from then on the data are not held on to."""
        if self._sha256 is None:
            self._sha256 = self._hash()
            self._kept = None
        return self._sha256

    def _hash(self) -> str:
        if self._kept is not None:
            X, source, prepare = self._kept
            # without a second warning about constant columns
            prepare = replace(prepare, constant="ignore")
            with suppress(TypeError, ValueError):  # no longer data to be solved
                values = numeric_array(X, "X")
                found = data_sha256(values)
                if source.is_same(dense_data(values, prepare)):
                    return found
        raise DataChangedError(
            "X has changed since Covariance.from_data read it, so that a proof cannot "
            "name its numbers. Make the covariance again, and leave X as it is until "
            "a call with proof=True has begun."
        )


@dataclass(frozen=True, eq=False)
class Origin:
    """The data that A was made from, and how, as the proof format states them."""

    kind: str  #: {"matrix", "data"}
    #: The hash of the data; or the data, to be hashed on demand: the array itself if
    #: it is kept anyway, otherwise `GivenData`.
    numbers: Any = field(repr=False)
    n: int
    d: int
    #: `center`, `scale`, `ddof`: of data; see `Covariance.from_data`.
    center: bool = True
    scale: bool = False
    ddof: int = 1

    @property
    def kept(self) -> Any:
        """The data, if they are kept unchanged; else None."""
        return None if isinstance(self.numbers, (str, GivenData)) else self.numbers

    def refuse_changed(self) -> None:
        """Raise if data in memory have changed; afterwards they may be changed."""
        if isinstance(self.numbers, GivenData):
            self.numbers.sha256()

    def sha256(self) -> str:
        """Return the hash of the data."""
        if isinstance(self.numbers, GivenData):
            return self.numbers.sha256()
        return self.numbers if self.kept is None else data_sha256(self.kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the entries about the data in the header of a proof."""
        said: dict[str, Any] = {
            "sha256": self.sha256(),
            "kind": self.kind,
            "n": self.n,
            "d": self.d,
        }
        if self.kind == "data":
            said |= {"center": self.center, "scale": self.scale, "ddof": self.ddof}
        return said


def matrix_origin(given: Any, own: Any, is_same: bool) -> Origin:
    """Return the origin of a matrix: hashed later from our copy, if that is equal."""
    d = own.shape[0]
    if is_sparse(own):
        return Origin("matrix", given, d, d)
    numbers = own if is_same else data_sha256(numeric_array(given, "A"))
    return Origin("matrix", numbers, d, d)


def data_origin(X: Any, source: Source, prepare: Preparation) -> Origin | None:
    """Return the origin of data X; None if the proof format does not cover their kind.

    X is kept where the source does not hold its numbers unchanged.
    """
    numbers: Any = None
    if isinstance(source, SparseChunksSource):
        return None
    if isinstance(source, SparseDataSource):
        numbers = X if prepare.scale or _is_changed(source) else source.X
    elif isinstance(source, MappedDataSource):
        numbers = X
    elif isinstance(source, DenseDataSource):
        numbers = GivenData(X, source, prepare)
    if numbers is None:
        return None
    center, scale, ddof = prepare.center, prepare.scale, int(prepare.ddof)
    n, d = X.shape
    return Origin("data", numbers, n, d, center, scale, ddof)


def _is_changed(source: SparseDataSource) -> bool:
    """Tell whether columns were centred in place, as full ones are, or rescaled."""
    stored = np.diff(source.X.indptr)
    scaled = bool((source.factor != source.factor[0]).any())
    return scaled or bool((stored == source.n_samples).any())
