"""The symmetric matrix A of sparse PCA, from a matrix or from data, entry on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from .._validation import (
    FloatArray,
    check_names,
    check_positive_integer,
    is_sparse,
    names_of,
    split_names,
)
from ..limits import Deadline
from ..progress import Event, Listener, silent
from .dask_source import DaskSource
from .dominance import Dominance
from .formed import form, worth_forming
from .ingest import NO_VARIANCE, Preparation, checked_sparse, refuse_overflow
from .ingest_chunks import accumulate
from .ingest_matrix import own_matrix, symmetric_sparse
from .input_kinds import source_of
from .origin import Origin, matrix_origin
from .sources import DenseDataSource, MatrixSource, Source

TILE_SIZE = 2048  # a float64 tile of 32 MiB: large enough for BLAS, small beside data


class Covariance:
    """A symmetric matrix A, seen through its diagonal, rows, submatrices and products.

    Nothing else in the library touches the numbers, so A need not exist in memory: made
    from data, its entries are computed when they are asked for.

    Make one with `from_data` or `from_matrix`.

    Attributes
    ----------
    n_features : int
        The number d of features, A being d × d.
    n_samples : int or None
        The number of samples, if made from complete data.
    feature_names : tuple of str or None
        The names, if they were given or came with a DataFrame.
    known_psd : bool
        True if A is positive semidefinite by construction. False means unknown.
    is_derived : bool
        True for what a scheme makes of another matrix; see `Components.problem`.
    is_contrast : bool
        True for a target less a background: there is no total variance.
    dominance : Dominance or None
        Of a contrast: its target D, and δ ≥ 0 such that D + δI − A is semidefinite.

    Examples
    --------
    >>> from blockspca import Covariance
    >>> cov = Covariance.from_data([[1.0, 2.0], [2.0, 4.0], [3.0, 9.0]])
    >>> cov.submatrix([0, 1])
    array([[ 1. ,  3.5],
           [ 3.5, 13. ]])
    """

    is_derived = False
    is_contrast = False
    dominance: Dominance | None = None
    _formed: Covariance | None = None
    #: how a proof names the data; None for data that the proof format does not cover
    data_origin: Origin | None = None

    def __init__(
        self,
        source: Source,
        feature_names: tuple[str, ...] | None = None,
        data_origin: Origin | None = None,
    ) -> None:
        self._source = source
        self.feature_names = feature_names
        self.data_origin = data_origin
        self._diagonal: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the formed A: it can be formed again."""
        return {key: value for key, value in vars(self).items() if key != "_formed"}

    @classmethod
    def from_matrix(
        cls, A: Any, *, feature_names: Sequence[str] | None = None
    ) -> Covariance:
        """Wrap a symmetric matrix; it may be indefinite.

        Parameters
        ----------
        A : array, DataFrame or scipy sparse matrix of shape (d, d)
            Covariance, correlation or any other symmetric matrix. It is copied, 8 d²
            bytes if dense, so that what is done to A later changes nothing here.
        feature_names : sequence of str, optional
            Distinct names; those of a DataFrame are used by default.

        Notes
        -----
        Entries that differ from their mirror image by rounding only, at most 1e-12 of
        max(|A_ij|, |A_ji|, sqrt(|A_ii A_jj|)), are averaged, which leaves every x'Ax as
        it is. A larger difference is an error, and so are entries whose sums overflow,
        or all of which are below 2.2e-308, where float64 has fewer digits.

        Examples
        --------
        >>> from blockspca import Covariance
        >>> cov = Covariance.from_matrix([[2.0, 1.0], [1.0, 3.0]])
        >>> cov.n_features, cov.known_psd
        (2, False)
        """
        if isinstance(A, cls):
            raise TypeError("A is a Covariance already; use it as it is.")
        A, names = split_names(A)
        if is_sparse(A):
            A = checked_sparse(A, "A")
            symmetric = symmetric_sparse(A)
            is_same = symmetric is A
        else:
            symmetric, is_same = own_matrix(A)
        d = symmetric.shape[0]
        names = check_names(names if feature_names is None else feature_names, d)
        origin = matrix_origin(A, symmetric, is_same)
        return cls(MatrixSource(symmetric), names, origin)

    @classmethod
    def from_data(
        cls,
        X: Any,
        *,
        center: bool = True,
        scale: bool = False,
        ddof: int = 1,
        missing: Literal["raise", "pairwise"] = "raise",
        constant: Literal["warn", "ignore", "raise"] = "warn",
        feature_names: Sequence[str] | None = None,
    ) -> Covariance:
        """Covariance of the columns of X: A = (X − μ)'(X − μ) / (n − ddof).

        Parameters
        ----------
        X : array, scipy sparse matrix, pandas or polars DataFrame, shape (n, d)
            Rows are samples. Data in memory are copied, and X may be changed later,
            except before a call with proof=True: a proof names the numbers of X, and
            raises `DataChangedError` if they are no longer the same. Sparse data stay
            sparse: the means are subtracted from the covariance, as a rank-one term.
            Tables in files of more than 256 MiB as float64 (memory-mapped arrays, X of
            a backed AnnData, arrays and groups of h5py and Zarr) are read in blocks of
            rows, and a dask array of dense or CSR chunks by dask tasks; if these change
            later, `solve` and `verify` raise `DataChangedError`. For arrays of CuPy,
            matrices of cupyx, CUDA tensors of torch and dask chunks of them, the scan
            and the forming of A run on their GPU (extra `gpu`).
        center : bool
            Subtract the mean of each column; False gives second moments.
        scale : bool
            Divide each column by its standard deviation: A is then the correlation
            matrix.
        ddof : int
            The divisor is n − ddof.
        missing : {"raise", "pairwise"}
            What to do with NaN. "pairwise" computes each A_ij from the samples that
            have both i and j; the result may be indefinite.
        constant : {"warn", "ignore", "raise"}
            What to do with columns that are constant if `scale` is True. Ignored, they
            have variance 0: they keep their index, and no component uses them.
        feature_names : sequence of str, optional
            Distinct names; those of a DataFrame are used by default.

        Notes
        -----
        The mean is subtracted, and then the mean of what is left, so that a mean that
        is large beside the deviation costs no digits. With `scale`, any size of data
        will do, from 1e-300 to 1e300. Without, the largest variance must lie between
        1e-292 and 1e308 / 4d; X is refused if not.

        Examples
        --------
        >>> import pandas as pd
        >>> from blockspca import Covariance
        >>> frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 0.0]})
        >>> Covariance.from_data(frame, scale=True).feature_names
        ('a', 'b')
        """
        prepare = Preparation(center, scale, ddof, None, constant)
        return cls(*source_of(X, prepare, missing, feature_names))

    def check_unchanged(self) -> None:
        """Raise `DataChangedError` if data read in place are not what they were.

        Called before a result is called proved. Takes one pass over data on disk or in
        a dask array, and no time otherwise, as all other data were copied.
        """
        self._source.check_unchanged()

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[Any],
        *,
        center: bool = True,
        scale: bool = False,
        ddof: int = 1,
        constant: Literal["warn", "ignore", "raise"] = "warn",
        feature_names: Sequence[str] | None = None,
        memory_limit: int | None = None,
    ) -> Covariance:
        """Covariance of samples that come in chunks of rows, each seen once.

        For n too large for memory and d moderate: A itself, d × d, is accumulated.

        Parameters
        ----------
        chunks : iterable of arrays, sparse matrices or DataFrames of shape (·, d)
        center, scale, ddof, constant, feature_names
            As in `from_data`.
        memory_limit : int, optional
            Bytes for A and the work on it; an error before any work if 16 d² exceed it.

        Notes
        -----
        Means and moments are updated by the formula of Chan, Golub and LeVeque, which
        does not lose digits to a mean that is large beside the deviation.

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca import Covariance
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> cov = Covariance.from_chunks(X[i : i + 2] for i in range(0, 6, 2))
        >>> bool(np.allclose(cov.submatrix([0, 1]), np.cov(X.T)))
        True
        """
        prepare = Preparation(center, scale, ddof, None, constant)
        source, names = accumulate(chunks, prepare, memory_limit)
        d = source.n_features
        names = check_names(names if feature_names is None else feature_names, d)
        return cls(refuse_overflow(source), names)

    @property
    def n_features(self) -> int:
        return self._source.n_features

    @property
    def n_varying(self) -> int:
        """How many features vary; d if A may be indefinite."""
        if not self.known_psd:  # a feature of variance 0 may have other entries
            return self.n_features
        return int(np.count_nonzero(self.diagonal()))

    @property
    def n_samples(self) -> int | None:
        return self._source.n_samples

    @property
    def known_psd(self) -> bool:
        return self._source.known_psd

    def formed(
        self,
        deadline: Deadline | None = None,
        memory: int | None = None,
        tell: Listener = silent,
    ) -> Covariance:
        """Return A as a matrix in memory, where that saves work; else this object.

        Data with more samples than features are read once, and A, d × d, is kept for
        every k and component, unless it takes more than 1 GiB, or than the limits on
        memory and time allow. `tell` gets events of the stage "scan".

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca import Covariance
        >>> cov = Covariance.from_data(np.random.default_rng(0).normal(size=(100, 5)))
        >>> cov.in_memory, cov.formed().in_memory
        (False, True)
        """
        if self._formed is None:
            made = self._form(deadline, memory, tell)
            if made is self:
                return self
            self._formed = made
        return self._formed

    def _form(
        self, deadline: Deadline | None, memory: int | None, tell: Listener
    ) -> Covariance:
        """Form A where that pays; `formed` keeps the result."""
        if self.is_derived or not worth_forming(self._source, deadline, memory):
            return self

        def tick(done: int, total: int) -> None:
            tell(Event("scan", done, total, 0, largest))

        largest = float(self.diagonal().max())
        made = form(self._source, tick)
        return Covariance(made, self.feature_names, self.data_origin)

    @property
    def in_memory(self) -> bool:
        """True if A is a dense array in memory: `rows` of a slice are then a view."""
        return isinstance(self._source, MatrixSource) and not self._source.sparse

    def __repr__(self) -> str:
        return (
            f"Covariance(n_features={self.n_features}, from {self._source.made_from})"
        )

    def diagonal(self) -> FloatArray:
        """Return the variances A_ii, as a read-only array."""
        if self._diagonal is None:
            diagonal = self._source.diagonal()
            diagonal.flags.writeable = False
            self._diagonal = diagonal
        return self._diagonal

    def rows(self, indices: Sequence[int] | np.ndarray | slice) -> FloatArray:
        """Return the rows A[indices, :], one per index; do not write to them."""
        return self._source.submatrix(_as_index(indices), slice(None))

    def submatrix(
        self,
        indices: Sequence[int] | np.ndarray | slice,
        columns: Sequence[int] | np.ndarray | slice | None = None,
    ) -> FloatArray:
        """Return A[indices, columns]; columns are the same indices by default.

        The result may be a view of the matrix that was passed in: do not write to it.
        """
        rows = _as_index(indices)
        return self._source.submatrix(
            rows, rows if columns is None else _as_index(columns)
        )

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return A x, for a vector or for the columns of a matrix."""
        if len(x) != self.n_features:
            raise ValueError(
                f"x has length {len(x)} for {self.n_features} features; pass one entry "
                "per feature."
            )
        return self._source.matvec(np.asarray(x, dtype=np.float64))

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return C diag(weights) C', n × n, where A = C'C comes from complete data."""
        return self._source.gram(weights)

    @property
    def entry_error(self) -> float:
        """Bound on the rounding error of an entry computed from data; 0 for a matrix.

        Relative to the covariance, in exact arithmetic, of the data as float64;
        `covariance/rounding.py` has the derivation. For what a scheme leaves, relative
        to the stored data that it starts from. Entries computed twice, in a tile and in
        a submatrix, differ by at most twice this. Proofs allow for it.
        """
        return self._source.entry_error()

    def sparse_data(self) -> tuple[Any, FloatArray, FloatArray] | None:
        """Return X, μ and D of A = D (X'X − n μμ') D if made from sparse data X."""
        return self._source.sparse_parts()

    def sparse_correction(self) -> tuple[Any, ...] | None:
        """Return X, μ, D, L and R if A is that of sparse data less L R' + R L'."""
        return self._source.sparse_correction()

    def dense_factor(self) -> FloatArray | None:
        """Return C of A = C'C if it is a dense array in memory; do not write to it."""
        source = self._source
        return source.C if isinstance(source, DenseDataSource) else None

    @property
    def on_device(self) -> bool:
        """True if the data came from a GPU, which then computes the scan."""
        return self._source.on_device

    def given_moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Means and divisors of the columns of data that are read in place, or None."""
        return self._source.given_moments

    def dask_source(self) -> DaskSource | None:
        """Return the source if the data are a dask array, else None."""
        return self._source if isinstance(self._source, DaskSource) else None

    def dask_correction(self) -> tuple[Any, FloatArray, FloatArray] | None:
        """Return the source, L and R if A is that of a dask array less L R' + R L'."""
        base = getattr(self._source, "base", None)
        if not isinstance(base, DaskSource) or not hasattr(self._source, "left"):
            return None
        source: Any = self._source
        return base, source.left, source.right

    def stored_entries(self) -> Any:
        """Return A itself (CSR) if it is a sparse matrix in memory, else None."""
        if isinstance(self._source, MatrixSource) and self._source.sparse:
            return self._source.A
        return None

    @property
    def has_columns(self) -> bool:
        """True if A = C'C and `columns` of C can be had."""
        return self._source.has_columns

    def columns(
        self, indices: np.ndarray, start: int = 0, stop: int | None = None
    ) -> FloatArray:
        """Return C[start:stop, indices], where A = C'C comes from complete data."""
        stop = (self.n_samples or 0) if stop is None else stop
        return self._source.columns(_as_index(indices), start, stop)

    @property
    def factor_error(self) -> float:
        """Bound on the spectral norm of the rounding error of C, where A = C'C."""
        return self._source.factor_error()

    def tiles(
        self, tile_size: int | None = None
    ) -> Iterator[tuple[int, int, int, int, FloatArray]]:
        """Pass once over the upper half of A.

        Yields
        ------
        i0, i1, j0, j1 : int
            Bounds of the tile, with i0 ≤ j0.
        tile : array
            A[i0:i1, j0:j1]; do not write to it.
        """
        if tile_size is None:
            size = TILE_SIZE
        else:
            size = check_positive_integer(tile_size, "tile_size")
        d = self.n_features
        for i0 in range(0, d, size):
            i1 = min(i0 + size, d)
            rows = slice(i0, i1)
            for j0 in range(i0, d, size):
                j1 = min(j0 + size, d)
                columns = rows if j0 == i0 else slice(j0, j1)
                yield i0, i1, j0, j1, self._source.submatrix(rows, columns)

    def max_abs(self) -> float:
        """Return ‖A‖∞ = max |A_ij|, by one pass over the tiles."""
        if self.known_psd:  # |A_ij| ≤ sqrt(A_ii A_jj) puts the maximum on the diagonal
            return float(self.diagonal().max())
        return max(
            max(float(tile.max()), -float(tile.min())) for *_, tile in self.tiles()
        )

    def names_of(self, indices: Sequence[int] | np.ndarray) -> list[str]:
        """Return the names of some features, or their indices as text."""
        return names_of(indices, self.feature_names)


def as_covariance(cov: Any) -> Covariance:
    """Accept a Covariance, or a square symmetric matrix in its place."""
    if isinstance(cov, Covariance):
        return cov
    return Covariance.from_matrix(cov)


def refuse_constant(cov: Covariance) -> int:
    """Refuse data in which nothing varies; return how many features can be used.

    Those are the features that vary; of a matrix, or of what deflation leaves, all d,
    as zero matrices are allowed.
    """
    if cov.is_derived or type(cov._source) is MatrixSource:
        return cov.n_features
    varying = int(np.count_nonzero(cov.diagonal()))
    if varying == 0:
        raise ValueError(NO_VARIANCE)
    return varying


def _as_index(indices: Sequence[int] | np.ndarray | slice) -> Any:
    if isinstance(indices, slice):
        return indices
    array = np.asarray(indices)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(
            f"indices have dtype {array.dtype}; pass integers (of a mask, "
            "numpy.flatnonzero(mask))."
        )
    return array.astype(np.intp)
