"""Columns c_i with A = C'C, up to a shift, of the features that can matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...covariance.covariance import Covariance
from ...limits import Deadline, NotAffordable
from ...numerics import cost as _cost
from ...numerics.linalg import leading_eigenvector, vector_on
from ...numerics.rounding import EPS, TINY, above_from_units, power_of_four
from ...numerics.upper_eigenvalues import psd_shift
from .columns import DenseColumns, HostColumns, sparse_columns
from .settings import DEFAULT, DualSettings

_LARGEST_DENSE = 6000  # features of a matrix that are factorized at most
_ENTRIES = 2**26  # of a dense C that are held at most: 512 MiB
_LARGEST_MEAN = 1e3  # beside the deviation; above it, sparse columns lose digits
_LARGEST_INDEX = 2**31 - 1  # of the kernel of sparse sums, which has 32-bit indices
_MOST_ROWS = 4096  # of sparse columns: n × n arrays have to be held
_ARRAYS = 6  # of n × n entries that an ascent holds at once
_PAIRS = 3e8  # of nonzeros that a sum over sparse columns takes in a second


@dataclass(frozen=True)
class Problem:
    """Columns that matter; the others are no longer than √`min_multiplier`."""

    columns: HostColumns  #: in multiples of √unit, the longest first
    k: int
    min_multiplier: float  #: ρ must not be less
    multiplier: float  #: ρ to begin with: the Lagrange multiplier of |S| ≤ k
    leading: FloatArray  #: (n,); the direction of the start, a unit vector
    features: NDArray[np.intp]  #: to which the columns belong
    unit: float  #: a power of four near the largest variance
    #: `shift`, `slack`: C'C = A/unit + shift · I, up to an error that moves no optimum
    #: by more than slack.
    shift: float = 0.0
    slack: float = 0.0
    settings: DualSettings = DEFAULT
    #: The data came from a GPU, which then takes the steps of ascents.
    on_device: bool = False

    def to_columns(self, value: float) -> float:
        """Return a value of A as one of the columns', rounded downwards."""
        if not np.isfinite(value):
            return value
        value /= self.unit
        rounding = 8 * EPS * (abs(value) + self.shift + self.slack)
        return value + self.shift - self.slack - rounding

    def to_matrix(self, value: float) -> float:
        """Return a bound for the columns as one for A, rounded upwards."""
        if not np.isfinite(value):
            return value
        rounding = 4 * EPS * (abs(value) + self.shift + self.slack)
        value = value + self.slack - self.shift + rounding
        return above_from_units(float(value), self.unit)


def make_problem(
    cov: Covariance,
    k: int,
    start: Sequence[int] | NDArray[np.intp] | None,
    short: bool = False,
    deadline: Deadline | None = None,
    memory: int | None = None,
    settings: DualSettings = DEFAULT,
    features: Sequence[int] | None = None,
) -> Problem | None:
    """Choose the columns; None if A is not of a kind that has them.

    Parameters
    ----------
    start : sequence of int, optional
        A support to take ρ and the leading direction from.
    short : bool
        Choose columns that are shorter than √ρ too, if there is room: those of features
        that are to be fixed.
    deadline : Deadline, optional
        Columns are made only if there is time for them and for a first step with them;
        if there is not, the shorter ones are left out.
    memory : int, optional
        Bytes for the columns and for the n × n arrays of a step.
    settings : DualSettings
        For the search of the problem.
    features : sequence of int, optional
        Different features whose columns are taken, in this order: those of a bound that
        is computed again. Which ones a search takes, and in which order, hangs on the
        last digits of the variances.

    Raises
    ------
    NotAffordable
        If time or memory do not suffice.
    """
    deadline = deadline or Deadline(None)
    d = cov.n_features
    shift = 0.0
    if not cov.known_psd:
        if cov.n_features > _LARGEST_DENSE:
            return None
        shift = psd_shift(cov.submatrix(slice(None)), deadline)
        if shift == np.inf:
            raise NotAffordable
    # All digits of the sum may cancel: what is added keeps it above the exact one.
    diagonal = cov.diagonal() + shift + 2 * EPS * shift
    if not diagonal.max() > 0:
        return None
    unit = power_of_four(float(diagonal.max()))
    diagonal /= unit
    shift /= unit
    start = truncated_power_support(cov, k) if start is None else np.asarray(start)
    x = vector_on(start, leading_eigenvector(cov.submatrix(start) / unit), d)
    image = cov.matvec(x) / unit + shift * x
    scores = image**2 / max(float(x @ image), TINY)
    multiplier = float(np.partition(scores, d - k)[d - k])
    multiplier = max(multiplier, 1e-3 * float(np.sort(diagonal)[-k:].mean()))
    # By Cauchy's inequality no score exceeds its variance; of a matrix that is nothing
    # but rounding it may, and then no column would be left.
    multiplier = min(multiplier, float(diagonal.max()))
    order = np.argsort(-diagonal, kind="stable")
    if features is not None:
        taken = np.asarray(features, dtype=np.intp)
        order = np.concatenate([taken, order[~np.isin(order, taken)]])
    count = 0
    for least in (0.0, 0.8 * multiplier) if short else (0.8 * multiplier,):
        count = int((diagonal > least).sum()) if features is None else len(taken)
        sparse = _stays_sparse(cov, order[:count])
        if not sparse and features is None:
            count = min(count, _most_columns(cov, k, memory))
        costs = _Costs.of(cov, order[:count], sparse)
        fits = memory is None or costs.bytes <= memory
        if fits and deadline.affords(costs.seconds):
            break
    else:
        raise NotAffordable
    if sparse and not _kernel_is_ready(deadline):
        raise NotAffordable
    chosen = order[:count]
    shortest = max(float(diagonal[order[count:]].max(initial=0.0)), 0.0)
    shortest *= 1 + 8 * ((cov.n_samples or 0) + 4) * EPS
    lengths = diagonal[order[:count]]
    made = _make_columns(cov, chosen, lengths, unit, shift, sparse)
    if made is None:
        return None
    columns, slack = made
    leading = columns.combine(x[chosen][:, None])[:, 0]
    if not np.linalg.norm(leading) > 0:
        leading = columns.combine(np.eye(count, 1))[:, 0]
    leading /= np.linalg.norm(leading)
    multiplier = max(multiplier, shortest)
    return Problem(
        columns,
        k,
        shortest,
        multiplier,
        leading,
        chosen,
        unit,
        shift,
        slack,
        settings,
        cov.on_device,
    )


def _kernel_is_ready(deadline: Deadline) -> bool:
    """Load what sparse columns are summed by, which may have to be compiled."""
    from ..._kernels.loading import load

    return deadline.loads(load, "sparse_columns")


def _stays_sparse(cov: Covariance, chosen: NDArray[np.intp]) -> bool:
    """Tell whether the columns need not be filled, and lose no digits for it."""
    data = cov.sparse_data()
    if data is None or data[0].nnz > _LARGEST_INDEX:
        return False
    X, mean, factor = data
    if X.shape[0] > min(len(chosen), _MOST_ROWS):
        return False
    moments = X.shape[0] * (mean * factor)[chosen] ** 2
    return bool((moments <= _LARGEST_MEAN**2 * cov.diagonal()[chosen]).all())


def _most_columns(cov: Covariance, k: int, memory: int | None) -> int:
    if cov.has_columns and cov.n_samples is not None:
        entries = _ENTRIES if memory is None else min(_ENTRIES, memory // 16)
        return max(k, entries // cov.n_samples)
    return _LARGEST_DENSE


@dataclass(frozen=True)
class _Costs:
    """What columns, a first step with them and its proof take, at the most."""

    seconds: float
    bytes: int

    @classmethod
    def of(cls, cov: Covariance, chosen: NDArray[np.intp], sparse: bool) -> _Costs:
        count = len(chosen)
        if sparse:
            X = cov.sparse_data()[0]  # type: ignore[index]
            n = X.shape[0]
            nonzeros = np.diff(X.indptr)[chosen].astype(np.float64)
            step = float((nonzeros**2).sum()) / _PAIRS + _cost.passes(4, n * n)
            seconds = _cost.passes(4, float(nonzeros.sum())) + step
            entries = 2 * float(nonzeros.sum())
        else:
            rows = cov.n_samples if cov.has_columns else None
            n = min(rows or count, count)
            seconds = _cost.passes(3, (rows or count) * count)
            if rows is None:
                seconds += _cost.cholesky(count)
            elif rows > count:
                seconds += _cost.qr(rows, count)
            seconds += _cost.product(n, count, n)
            entries = 2 * (rows or count) * count
        seconds += _cost.cholesky(n)
        return cls(seconds, 8 * int(entries + _ARRAYS * n * n))


def _make_columns(
    cov: Covariance,
    chosen: NDArray[np.intp],
    diagonal: FloatArray,
    unit: float,
    shift: float,
    sparse: bool,
) -> tuple[HostColumns, float] | None:
    """Return the columns of the chosen features and the slack that they need."""
    count = len(chosen)
    rows = cov.n_samples if cov.has_columns else None
    if rows is not None:
        if sparse:
            X, mean, factor = cov.sparse_data()  # type: ignore[misc]
            root = np.sqrt(unit)
            return sparse_columns(X, mean, factor / root, chosen, diagonal), 0.0
        C = cov.columns(chosen) / np.sqrt(unit)
        if rows <= count:
            return DenseColumns(C), 0.0
        slack = 8 * (rows + count) * EPS * float(diagonal.sum())
        R: FloatArray = np.asarray(np.linalg.qr(C, mode="r"))
        return DenseColumns(R), slack
    # A little more on the diagonal, so that rounding cannot stop the factorization; and
    # A_ii + shift, of which all digits may cancel, is off by 2 eps of the shift.
    slack = 8 * (count + 4) * EPS * float(diagonal.sum()) + 4 * EPS * shift
    inner = cov.submatrix(chosen) / unit + (shift + slack) * np.eye(count)
    try:
        C = np.linalg.cholesky(inner).T
    except np.linalg.LinAlgError:  # indefinite after all, by more than rounding
        return None
    return DenseColumns(np.ascontiguousarray(C)), 2 * slack


def truncated_power_support(cov: Covariance, k: int) -> NDArray[np.intp]:
    """Truncated power steps from the feature of the largest variance.

    Until a support comes twice, which is enough to start from: a quarter of the
    products that `heuristics/power_iteration.py` takes to the end of all steps.
    """
    diagonal = cov.diagonal()
    x = np.zeros(cov.n_features)
    x[int(diagonal.argmax())] = 1.0
    chosen: NDArray[np.intp] = np.empty(0, np.intp)
    for _ in range(20):
        image = cov.matvec(x) + max(0.0, -float(diagonal.min())) * x
        image /= max(float(np.abs(image).max()), TINY)
        top = np.argpartition(-np.abs(image), k - 1)[:k]
        if np.array_equal(np.sort(top), chosen):
            break
        x[:] = 0.0
        x[top] = image[top] / max(float(np.linalg.norm(image[top])), TINY)
        chosen = np.sort(top)
    return chosen
