"""The covariance matrix A of d features, however it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..call import Run
from ..messages import warn_caller
from ..validation import FloatArray, Indices, check_flag, check_integer, check_names
from .data import DenseData, SparseData
from .identity import Identity
from .kinds import table_of
from .matrix import refuse_rectangular, symmetric_copy
from .moments import NO_DIGITS, GapsError, Preparation, marks_of, moments_of
from .sources import Factor, Matrix, Source
from .tables import ALL, Index, SparseTable

if TYPE_CHECKING:
    from ..scan import Lists

CLOSING = 1e-9  # the gap that searches aim at; larger errors of entries keep it open


class Covariance:
    """A symmetric matrix of d features: given, or the covariance of data.

    Made by `from_matrix`, `from_data` and `from_chunks`.

    Attributes
    ----------
    feature_names : tuple of str or None
    identity : Identity or None
        The name of the data for a proof; None if A is derived from another one, or of
        data with gaps.
    mean, scale : arrays or None
        Means of the columns of data, and their divisors.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance import Covariance
    >>> cov = Covariance.from_data(np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 8.0]]))
    >>> cov.submatrix([0, 1]).round(12) + 0.0
    array([[ 1.,  0.],
           [ 0., 12.]])
    """

    def __init__(
        self,
        source: Source,
        feature_names: tuple[str, ...] | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._source = source
        self.feature_names = feature_names
        self.identity = identity
        self._diagonal: FloatArray | None = None
        self._formed: Covariance | None = None
        self.mean: FloatArray | None = None
        self.scale: FloatArray | None = None
        #: the data that entries are computed from, with their identity
        self.origins: tuple[tuple[Source, Identity], ...] = ()
        if identity is not None:
            self.origins = ((source, identity),)
        #: of a contrast: a matrix whose bounds bound this one's
        self.target: Covariance | None = None

    @classmethod
    def from_matrix(
        cls, A: Any, *, feature_names: Sequence[str] | None = None
    ) -> Covariance:
        """Return the covariance that is the symmetric matrix A.

        Parameters
        ----------
        A : array, scipy sparse matrix or DataFrame, d × d
            It is copied. Two halves that differ by rounding are averaged.
        feature_names : sequence of str, optional
            Distinct names; those of a DataFrame are the default.

        Examples
        --------
        >>> from blockspca.covariance import Covariance
        >>> Covariance.from_matrix([[2.0, 1.0], [1.0, 2.0]]).trace
        4.0
        """
        table, names = table_of(A, "A")
        refuse_rectangular(table.shape)
        if isinstance(table, SparseTable):
            symmetric, same = symmetric_copy(table.X)
        else:
            symmetric, same = symmetric_copy(table.take(ALL, slice(0, table.shape[0])))
        d = symmetric.shape[0]
        names = check_names(names if feature_names is None else feature_names, d)
        identity = Identity("matrix", (d, d), marks_of(table)) if same else None
        return cls(Matrix(symmetric), names, identity)

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
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> Covariance:
        """Return the covariance of the columns of X, A = (X − μ)'(X − μ) / (n − ddof).

        Parameters
        ----------
        X : array, sparse matrix, DataFrame, AnnData, file or dask array, n × d
            Rows are samples. X is read in place where that saves memory: leave it as
            it is until the last call that uses the covariance ends. A change is
            refused by `DataChangedError`.
        center : bool
            Subtract the mean of each column. False gives second moments.
        scale : bool
            Divide each column by its standard deviation; A is the correlation matrix.
        ddof : int
            The divisor is n − ddof.
        missing : {"raise", "pairwise"}
            How to treat NaN. "pairwise" computes A_ij from the samples that have both
            i and j; A may then be indefinite.
        constant : {"warn", "ignore", "raise"}
            How to treat constant columns if `scale` is True. They get no loading.
        sample_weight : array of n integers, optional
            How often each sample counts. The sum takes the place of n.
        feature_names : sequence of str, optional
            Distinct names; those of a DataFrame or AnnData are the default.

        Notes
        -----
        With `scale`, numbers of any size will do. Without, the largest variance must
        lie between 2⁻²⁰⁰ and 2²⁰⁰.

        Examples
        --------
        >>> import pandas as pd
        >>> from blockspca.covariance import Covariance
        >>> frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 0.0]})
        >>> Covariance.from_data(frame, scale=True).feature_names
        ('a', 'b')
        """
        prepare = preparation(center, scale, ddof, constant)
        check_choice(missing, "missing", ("raise", "pairwise"))
        table, names = table_of(X, "X")
        n, d = table.shape
        names = check_names(names if feature_names is None else feature_names, d)
        prepare = replace(prepare, names=names)
        weights = check_weights(sample_weight, n)
        try:
            m = moments_of(table, prepare, weights)
        except GapsError:
            if missing == "raise":
                raise
            from .pairwise import pairwise_source

            return cls(pairwise_source(table, prepare, weights), names)
        source: Source
        if table.sparse:
            source = SparseData(m, table)
        else:
            source = DenseData(m, table)
            if m.table.wants_factor:
                source = source.in_columns()
        check_digits(source)
        identity = Identity(
            "data", table.shape, m.marks, center, scale, ddof, weights is not None
        )
        cov = cls(source, names, identity)
        cov.mean, cov.scale = m.mean_and_scale
        return cov

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
    ) -> Covariance:
        """Return the covariance of samples that come in chunks, each read once.

        A itself, d × d, is added up in memory.

        Parameters
        ----------
        chunks : iterable of arrays, sparse matrices or DataFrames with d columns
        center, scale, ddof, constant, feature_names
            As in `from_data`.

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca.covariance import Covariance
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> cov = Covariance.from_chunks(X[i : i + 2] for i in range(0, 6, 2))
        >>> bool(np.allclose(cov.submatrix([0, 1]), np.cov(X.T)))
        True
        """
        from .chunks import accumulated

        prepare = preparation(center, scale, ddof, constant)
        source, names = accumulated(chunks, prepare, feature_names)
        check_digits(source)
        return cls(source, names)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return self._source.n_features

    @property
    def n_samples(self) -> int | None:
        """Samples of the data, None if they are not known."""
        return self._source.n_samples

    @property
    def known_psd(self) -> bool:
        """Whether A is positive semidefinite for certain."""
        return self._source.known_psd

    @property
    def entry_error(self) -> float:
        """Bound on |computed A_ij − A_ij| for all entries; 0 for a given matrix.

        Relative to exact arithmetic on the data as float64; `rounding.py` derives it.
        """
        return self._source.error()

    @property
    def trace(self) -> float:
        """The total variance."""
        return float(self.diagonal().sum())

    @property
    def factor(self) -> Factor | None:
        """C with A = C'C, if one is known: `columns`, `gram`, `n` and `error`."""
        return self._source.factor

    def __repr__(self) -> str:
        return f"Covariance(n_features={self.n_features}, n_samples={self.n_samples})"

    def diagonal(self) -> FloatArray:
        """Return the variances A_ii, read-only."""
        if self._diagonal is None:
            self._diagonal = self._source.diagonal()
            self._diagonal.flags.writeable = False
        return self._diagonal

    def block(self, rows: Any, columns: Any) -> FloatArray:
        """Return A[rows, columns] for integers or slices; do not write to it."""
        left = as_index(rows)
        return self._source.block(left, left if columns is rows else as_index(columns))

    def submatrix(self, indices: Any) -> FloatArray:
        """Return A[indices, indices]; do not write to it."""
        return self.block(indices, indices)

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return A x, for a vector or for the columns of a matrix."""
        x = np.asarray(x, dtype=np.float64)
        if len(x) != self.n_features:
            raise ValueError(
                f"x has length {len(x)} and must have {self.n_features}; use one entry "
                "for each feature."
            )
        return self._source.matvec(x)

    def lists(self, width: int, run: Run, features: Indices | None = None) -> Lists:
        """Return the `width` largest |A_ij| of each row; see `scan.Lists`."""
        return self._source.lists(width, run, features)

    def formed(self, run: Run) -> Covariance:
        """Return A as a matrix in memory if that saves work, else this object.

        The matrix is kept. Data that are read in place are checked once it is formed.
        """
        if self._formed is None:
            source = self._source.formed(run)
            if source is self._source:
                return self
            self.check_unchanged()
            self._formed = Covariance(source, self.feature_names, self.identity)
            self._formed.mean, self._formed.scale = self.mean, self.scale
            self._formed.target = self.target
            if not source.in_memory:
                self._formed.origins = self.origins
        return self._formed

    def subset(self, indices: Any) -> Covariance:
        """Return the covariance of some features."""
        index = np.arange(self.n_features)[as_index(indices)]
        result = self.derived(self._current.subset(index))
        if self.feature_names is not None:
            result.feature_names = tuple(self.feature_names[i] for i in index)
        return result

    @property
    def _current(self) -> Source:
        """The source, or A in memory if it has been formed."""
        return (self._formed or self)._source

    def derived(self, source: Source) -> Covariance:
        """Return the covariance of a view of this one, for the modules of the room."""
        result = Covariance(source, self.feature_names)
        result.origins = self.origins
        return result

    def check_unchanged(self) -> None:
        """Raise `DataChangedError` if data that are read in place have changed.

        One pass over such data, nothing for other ones. To be called before a result
        is called proved.
        """
        for source, identity in self.origins:
            marks = source.marks()
            if marks is not None:
                identity.refuse_change(marks)


def preparation(center: Any, scale: Any, ddof: Any, constant: Any) -> Preparation:
    """Check the arguments about columns: centre, scale, divisor, constants."""
    check_choice(constant, "constant", ("warn", "ignore", "raise"))
    return Preparation(
        check_flag(center, "center"),
        check_flag(scale, "scale"),
        check_integer(ddof, "ddof", minimum=0),
        constant,
    )


def check_choice(value: Any, argument: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not among the choices."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{argument} = {value!r} must be one of {words}; use one.")


def check_weights(weights: Any, n: int) -> FloatArray | None:
    """Return n frequencies as float64, or None."""
    if weights is None:
        return None
    array = np.asarray(weights)
    if array.shape != (n,) or array.dtype.kind not in "fiub":
        raise ValueError(
            f"sample_weight has shape {array.shape} and dtype {array.dtype} and must "
            f"be {n} integers; use one for each sample."
        )
    array = array.astype(np.float64)
    bad = np.flatnonzero(~((array >= 0) & (array == np.floor(array))))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] = {array[bad[0]]:g} must be an integer of at "
            "least 0; use how often each sample counts."
        )
    if not 0 < array.sum() < 2.0**53:
        raise ValueError(
            f"sample_weight has the sum {array.sum():g}, which must be above 0 and "
            "below 2**53; use how often each sample counts."
        )
    return array


def check_digits(source: Source) -> None:
    """Refuse data whose covariances have no digits; warn if they have few."""
    error, largest = source.error(), float(source.diagonal().max())
    if not error <= 0.01 * largest:
        raise ValueError(NO_DIGITS)
    if error > CLOSING * largest:
        warn_caller(
            "X has means that are large beside the deviations: covariances are "
            f"computed to {error / largest:.1g} of the largest only, which keeps "
            "proofs from closing; use a dense X, or subtract a constant."
        )


def as_index(indices: Any) -> Index:
    """Return indices as `ALL` or as integers."""
    if isinstance(indices, slice):
        return indices
    array = np.asarray(indices)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(
            f"indices have dtype {array.dtype} and must be integers; use "
            "numpy.flatnonzero(mask) for a mask."
        )
    return array.astype(np.intp)


def as_covariance(data: Any) -> Covariance:
    """Return a Covariance for the first argument of any public function.

    A symmetric matrix is a covariance. An array that is not square is samples ×
    features, with the defaults of `Covariance.from_data`. A square array that is not
    symmetric is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.covariance import as_covariance
    >>> as_covariance(np.eye(3)).n_samples, as_covariance(np.eye(3)[:2]).n_samples
    (None, 2)
    """
    if isinstance(data, Covariance):
        return data
    table, _ = table_of(data, "X")
    n, d = table.shape
    if n != d:
        return Covariance.from_data(data)
    return Covariance.from_matrix(data)
