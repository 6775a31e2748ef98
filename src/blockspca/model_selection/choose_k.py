"""Choosing k: a reference without correlations, and a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import numpy as np

from .._validation import (
    FloatArray,
    as_generator,
    as_rows,
    check_n_jobs,
    check_positive_integer,
    check_real,
    check_sparsity,
)
from ..covariance.covariance import Covariance, refuse_constant
from ..limits import Deadline
from ..numerics.threads import allowed_threads, parallel_map
from ..sparsity_path import SparsityPath
from .permuting import Columns, permuted_units
from .searched_path import searched, searched_path

K_MAX = 30
FRACTION = 0.9
N_PERMUTATIONS = 20  # 19 is the least for a p-value of 0.05
FEW = 4  # permutations that are tried first; most data need no more
FEWER = 2  # where the spread is known from an earlier component
# The usual one, which N_PERMUTATIONS can show.
SIGNIFICANCE = 0.05
LITTLE = "k says little"  # what a reason says where the unit of a feature decides
DOMINANT = 0.5  # share of the variance from which one feature decides every curve


@dataclass(frozen=True)
class PermutationReference:
    """The objectives of the data beside those of data without correlations.

    Attributes
    ----------
    ks : array of int
        1, 2, …, k_max.
    objectives : array of shape (k_max,)
        Of the data.
    reference : array of shape (n_permutations, k_max)
        Of the data with every column permuted by itself: the variances are the same,
        what the columns have to do with one another is gone.
    earlier : PermutationReference or None
        That of an earlier component of the same samples, whose spread is taken for
        this one's: two permutations then do for a mean.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :3] += 3 * np.random.default_rng(1).normal(size=(60, 1))
    >>> found = bs.permutation_reference(X, k_max=6)
    >>> found.best_k, found.reference.shape
    (3, (20, 6))
    """

    ks: np.ndarray
    objectives: FloatArray
    reference: FloatArray
    earlier: PermutationReference | None = None

    @property
    def gap_statistic(self) -> FloatArray:
        """log objective(k) − mean of log reference(k); 0 at k = 1."""
        if self.objectives[0] <= 0:
            return np.zeros(len(self.ks))
        return np.log(self.objectives) - np.log(self.reference).mean(axis=0)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of log reference(k)."""
        if self.objectives[0] <= 0:
            return np.zeros(len(self.ks))
        if self.earlier is not None:
            return self.earlier.spread
        return np.log(self.reference).std(axis=0, ddof=1)

    @property
    def standard_error(self) -> FloatArray:
        """Of the mean log reference(k): spread / sqrt(n_permutations)."""
        return self.spread / np.sqrt(len(self.reference))

    @property
    def p_value(self) -> float:
        """How often permuted data look as structured as the data, over all k.

        (1 + b) / (1 + n_permutations), where b counts the permutations whose largest
        gap statistic, against the other permutations and in units of the spread, is at
        least that of the data.
        """
        observed = _largest_excess(self.objectives, self.reference)
        n = len(self.reference)
        others = [
            _largest_excess(self.reference[b], np.delete(self.reference, b, axis=0))
            for b in range(n)
        ]
        return (1 + sum(other >= observed for other in others)) / (1 + n)

    @property
    def is_clear(self) -> bool:
        """Whether so few permutations show already that the data are structured.

        With B permutations, log objective(k) of one more is, if it is normal like
        theirs, above their mean by t s √(1 + 1/B) with probability α, where s is their
        spread and t the 1 − α quantile of Student's distribution with B − 1 degrees of
        freedom. That is asked of the data with α = 0.05 / (k_max − 1) at some k > 1, so
        that over all k noise is called structured at most once in twenty times. With
        an `earlier` reference, s and its degrees of freedom are those of that one.
        """
        from scipy.stats import t as student

        few, tests = len(self.reference), len(self.ks) - 1
        if few < 2 or tests < 1 or self.objectives[0] <= 0:
            return False
        measured = self.reference if self.earlier is None else self.earlier.reference
        quantile = float(student.ppf(1 - SIGNIFICANCE / tests, len(measured) - 1))
        # Permutations of very large data differ by less than rounding shows.
        excess = self.gap_statistic[1:] / np.maximum(self.spread[1:], 1e-12)
        return bool(excess.max() > quantile * (1 + 1 / few) ** 0.5)

    @property
    def best_k(self) -> int:
        """The smallest k with the largest gap statistic, up to a standard error."""
        return smallest_within_error(self.ks, self.gap_statistic, self.standard_error)

    def __repr__(self) -> str:
        return (
            f"PermutationReference(k = 1..{self.ks[-1]}, {len(self.reference)} "
            f"permutations, best_k = {self.best_k}, p_value = {self.p_value:.3g})"
        )


@dataclass(frozen=True)
class ChoiceOfK:
    """A choice of k with its reason.

    Attributes
    ----------
    k : int
    reason : str
        One sentence.
    reference : PermutationReference or None
        None if no data were given to permute.

    Examples
    --------
    >>> import blockspca as bs
    >>> bs.choose_k(bs.Covariance.from_matrix([[2.0, 1.0], [1.0, 2.0]])).reason
    'k = 2: the smallest that reaches 0.9 of the largest eigenvalue.'
    """

    k: int
    reason: str
    reference: PermutationReference | None = None


def choose_k(
    data: Any,
    k_max: int | None = None,
    *,
    n_permutations: int | None = None,
    fraction: float = FRACTION,
    scale: bool = False,
    missing: Literal["raise", "pairwise"] = "raise",
    constant: Literal["warn", "ignore", "raise"] = "warn",
    feature_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> ChoiceOfK:
    """Choose k by the rule behind ``SparsePCA(k="auto")``.

    With data: the smallest k whose gap statistic (log objective(k) minus the mean of
    log objective(k) over copies of the data with permuted columns) is within a standard
    error of the largest; and k = 1 if the permuted data look as structured as the data
    (`PermutationReference.p_value` above 0.05, and not `is_clear`).

    With a `Covariance` there is nothing to permute: the smallest k that reaches
    `fraction` of the largest eigenvalue, or k_max if none does.

    Parameters
    ----------
    data : array, sparse matrix or DataFrame of shape (n, d), or Covariance
    k_max : int, optional
        The largest k considered; 30, or d if that is smaller, by default.
    n_permutations : int, optional
        With data only. At least 2; with fewer than 19, no p-value is below 0.05. By
        default 4, and 20 where 4 do not show clearly that the data are structured.
    fraction : float
        With a `Covariance` only.
    scale, missing, constant, feature_names
        With data only, as in `Covariance.from_data`.
    n_jobs : int, optional
        Permutations at a time (joblib), and the most threads otherwise. The choice does
        not depend on it.
    rng : int or Generator, optional
        0 by default.

    Returns
    -------
    ChoiceOfK

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 20))
    >>> X[:, :5] += 2 * rng.normal(size=(80, 1))  # five features share a factor
    >>> bs.choose_k(X).k
    5
    """
    with allowed_threads(check_n_jobs(n_jobs)):
        how: dict[str, Any] = {"scale": scale, "missing": missing}
        more: dict[str, Any] = {"constant": constant, "feature_names": feature_names}
        if isinstance(data, Covariance):
            _refuse_given(
                {**how, **more, "n_permutations": n_permutations},
                "a Covariance: pass the data themselves, or leave it out",
            )
            return choose_by_fraction(data, k_max, fraction)[0]
        _refuse_given(
            {"fraction": fraction},
            "data, which are permuted instead: pass a Covariance, or leave it out",
        )
        cov = Covariance.from_data(data, **how, **more)
        rows = as_rows(data)
        rng = as_generator(rng)
        columns = Columns(rows, how, units=permuted_units(rows, rng))
        clock = Deadline(None)
        found, path = reference_of(
            cov, columns, k_max, n_permutations, n_jobs, rng, clock
        )
        return choose_by_reference(cov, found, path, clock, scaled=scale)


def _refuse_given(values: dict[str, Any], why: str) -> None:
    """Refuse what would not be looked at, unless it has its default."""
    defaults = signature(choose_k).parameters
    for name, value in values.items():
        if not np.all(value == defaults[name].default):  # names may be an array
            raise ValueError(f"{name} = {value!r} with {why}.")


def choose_by_reference(
    cov: Covariance,
    found: PermutationReference,
    path: SparsityPath,
    clock: Deadline,
    *,
    scaled: bool,
) -> ChoiceOfK:
    """Choose k on the path of a matrix, beside permuted columns.

    Where the time did not suffice for the permutations that it takes, k is chosen by
    the share of the largest eigenvalue.
    """
    if clock.passed() and not found.is_clear:
        k_max = int(found.ks[-1])
        return choose_by_fraction(cov, k_max, path=path, why="the time was up; ")[0]
    hidden = "" if scaled else _about_one_variance(cov)
    if not found.is_clear and found.p_value > SIGNIFICANCE:
        reason = (
            f"k = 1: with their columns permuted, the data look as structured as they "
            f"are (p = {found.p_value:.2g}), so no set of features stands out."
        )
        return ChoiceOfK(1, reason + hidden, found)
    k = found.best_k
    ratio = float(np.exp(found.gap_statistic[k - 1]))
    # A ratio of 1.00 would read as none.
    digits = 3 if ratio >= 1.01 else 6
    reason = (
        f"k = {k}: its variance is {ratio:.{digits}g} times that of permuted data, the "
        f"largest ratio among k = 1, …, {found.ks[-1]}, up to a standard error."
    )
    if k == found.ks[-1]:
        reason += " More features may belong to it: the ratio still grows."
    return ChoiceOfK(k, reason + hidden, found)


def _about_one_variance(cov: Covariance) -> str:
    """Say so if one feature has most of the variance: its unit then decides on k."""
    variances = cov.diagonal()
    largest = int(np.argmax(variances))
    share = float(variances[largest] / variances.sum())
    if cov.n_features < 3 or share <= DOMINANT:
        return ""
    return (
        f" Feature {cov.names_of([largest])[0]!r} alone has {share:.1%} of the "
        f"variance, so that {LITTLE} about the others; pass scale=True to give "
        "every feature the same variance."
    )


def choose_by_fraction(
    cov: Covariance,
    k_max: int | None,
    fraction: float = FRACTION,
    *,
    seconds: float | None = None,
    path: SparsityPath | None = None,
    why: str = "",
) -> tuple[ChoiceOfK, SparsityPath]:
    """Choose the smallest k with a share of λmax(A); return the path of it too."""
    fraction = check_real(fraction, "fraction", minimum=0)
    k_max = checked_k_max(k_max, cov.n_features)
    if path is None:
        path = searched_path(cov, k_max, seconds)
    try:
        k = path.smallest_k(fraction)
    except ValueError:
        if fraction > 1:
            raise
        share = path[k_max].objective / path.ceiling if path.ceiling > 0 else 0.0
        reason = f"k = {k_max}: the largest allowed, with {share:.3g} of the ceiling."
        return ChoiceOfK(k_max, why + reason), path
    reason = (
        f"k = {k}: the smallest that reaches {fraction:g} of the largest eigenvalue."
    )
    return ChoiceOfK(k, why + reason), path


def permutation_reference(
    X: Any,
    k_max: int | None = None,
    *,
    n_permutations: int = N_PERMUTATIONS,
    scale: bool = False,
    missing: Literal["raise", "pairwise"] = "raise",
    constant: Literal["warn", "ignore", "raise"] = "warn",
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> PermutationReference:
    """Objectives for k = 1, …, k_max, of the data and of the data permuted.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n, d)
    k_max, n_permutations, scale, missing, constant, n_jobs, rng
        As in `choose_k`.

    Returns
    -------
    PermutationReference

    Notes
    -----
    Costs 1 + n_permutations paths, searched but not proved. Gaps stay where they are,
    and a sparse matrix stays sparse.

    References
    ----------
    R. Tibshirani, G. Walther, T. Hastie, "Estimating the number of clusters in a data
    set via the gap statistic", JRSS B, 2001. D. Witten, R. Tibshirani, "A framework for
    feature selection in clustering", JASA, 2010, use it for a sparsity parameter.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8)) + 3 * rng.normal(size=(60, 1)) * (np.arange(8) < 3)
    >>> bs.permutation_reference(X, k_max=6).best_k
    3
    """
    how: dict[str, Any] = {"scale": scale, "missing": missing}
    with allowed_threads(check_n_jobs(n_jobs)):
        cov = Covariance.from_data(X, **how, constant=constant)
        rows = as_rows(X)
        rng = as_generator(rng)
        columns = Columns(rows, how, units=permuted_units(rows, rng))
        clock = Deadline(None)
        return reference_of(cov, columns, k_max, n_permutations, n_jobs, rng, clock)[0]


def reference_of(
    cov: Covariance,
    columns: Columns,
    k_max: int | None,
    n_permutations: int | None,
    n_jobs: int | None,
    rng: int | np.random.Generator | None,
    clock: Deadline,
) -> tuple[PermutationReference, SparsityPath]:
    """Walk the paths of a matrix and of permuted columns; None takes few if clear.

    Permutations that the clock leaves no time for are left out, the last ones first.
    """
    most = N_PERMUTATIONS
    if n_permutations is not None:
        most = check_positive_integer(n_permutations, "n_permutations")
    if most < 2:
        raise ValueError("n_permutations = 1 has no spread; pass at least 2.")
    k_max = checked_k_max(k_max, cov.n_features)
    # One for each permutation, whether it is needed or not: b is the same data for
    # every n_jobs and for every number of them.
    generators = as_generator(rng).spawn(most)

    def objectives(b: int) -> FloatArray | None:
        if clock.passed():
            return None
        if columns.units is None:
            permuted = columns.permuted(generators[b])
        else:
            permuted = columns.units.covariance(b, cov.diagonal())
        refuse_constant(permuted)
        path = searched(permuted, k_max, clock.remaining())
        # Of a path that the clock has cut short the rest is no reference.
        return None if clock.passed() else np.array([f.objective for f in path])

    # First the data alone: what is wrong with them is said once, and plainly.
    refuse_constant(cov)
    path = searched_path(cov, k_max, clock.remaining())
    ks, observed = np.arange(1, k_max + 1), path.objectives
    earlier = columns.earlier
    few = FEW if earlier is None else FEWER
    # A number that was asked for is kept, however clear the first ones are.
    few = few if n_permutations is None else most
    reference = list(parallel_map(objectives, range(few), n_jobs))
    found = PermutationReference(ks, observed, _rows(reference, k_max), earlier)
    if few < most and not found.is_clear:
        reference += parallel_map(objectives, range(few, most), n_jobs)
        found = PermutationReference(ks, observed, _rows(reference, k_max))
    return found, path


def _rows(reference: list[FloatArray | None], k_max: int) -> FloatArray:
    """The curves of the permutations that there was time for."""
    known = [curve for curve in reference if curve is not None]
    return np.array(known).reshape(len(known), k_max)


def smallest_within_error(ks: np.ndarray, curve: FloatArray, error: FloatArray) -> int:
    """Return the smallest k whose value is within one error of the largest one's."""
    best = int(np.argmax(curve))
    return int(ks[np.argmax(curve >= curve[best] - error[best])])


def checked_k_max(k_max: int | None, d: int) -> int:
    """Check the largest k, 30 by default."""
    return min(K_MAX, d) if k_max is None else check_sparsity(k_max, d, "k_max")


def _largest_excess(objectives: FloatArray, reference: FloatArray) -> float:
    """The largest gap statistic over k > 1, in units of its spread."""
    if objectives[0] <= 0 or len(objectives) == 1 or len(reference) < 2:
        return 0.0
    logs = np.log(reference[:, 1:])
    excess = np.log(objectives[1:]) - logs.mean(axis=0)
    return float((excess / np.maximum(logs.std(axis=0, ddof=1), 1e-12)).max())
