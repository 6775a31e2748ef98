"""How often each feature is selected when the samples are drawn again.

Components are solved exactly, so that what varies is the data and not the solver.
Bootstrap draws n samples with replacement (Efron 1979), subsampling half of them
without (Meinshausen and Bühlmann 2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._arguments import Subject, value_error
from .._validation import (
    FloatArray,
    as_generator,
    as_rows,
    check_n_jobs,
    check_positive_integer,
    names_of,
    split_names,
)
from .._warnings import is_nested_call, warn_caller
from ..components import Scheme, solve_components
from ..components.requests import check_sparsities
from ..components.scheme_names import as_scheme
from ..constraints import Constraints
from ..covariance.covariance import Covariance
from ..limits import DEFAULT_LIMITS, Budget, Limits, as_limits
from ..numerics.threads import allowed_threads, jobs_at_once, parallel_map
from ..status import PROVED, Status

_Z = 1.959963984540054  # of a two-sided interval of 95 %

#: The features of one resample, and whether its components are proved.
_Selected = tuple[NDArray[np.intp], bool]


@dataclass(frozen=True, eq=False)
class Stability:
    """How often each feature was selected.

    Attributes
    ----------
    frequency : array of shape (n_features,)
        The share of the resamples in which a feature has a loading.
    low, high : arrays of shape (n_features,)
        Wilson's interval of 95 % for the frequency, given so many resamples.
    supports : tuple of arrays
        The features selected in each resample.
    proved : float
        The share of the resamples in which every component is proved optimal.
    k : int, or tuple of int, one for each component
        How many features they could have; of a share of all features what it was.
    n_components : int
    method : str
    feature_names : tuple of str or None
    interrupted : bool
        Whether Ctrl-C ended it: there are fewer resamples than were asked for.

    Examples
    --------
    >>> import blockspca as bs
    >>> from sklearn.datasets import load_iris
    >>> found = bs.stability(load_iris().data, k=2, n_resamples=20)
    >>> found.n_resamples, found.stable(0.5).tolist(), round(found.overlap, 2)
    (20, [2, 0], 0.74)
    """

    frequency: FloatArray
    low: FloatArray
    high: FloatArray
    supports: tuple[NDArray[np.intp], ...]
    proved: float
    k: int | tuple[int, ...]
    n_components: int
    method: str
    feature_names: tuple[str, ...] | None = None
    interrupted: bool = False

    @property
    def n_resamples(self) -> int:
        return len(self.supports)

    def stable(self, least: float = 0.8) -> NDArray[np.intp]:
        """Features selected in at least this share, the most frequent first."""
        order = np.argsort(-self.frequency, kind="stable")
        return order[self.frequency[order] >= least]

    @property
    def overlap(self) -> float:
        """How many features two resamples share, of k, on average over all pairs.

        Σ_i c_i (c_i − 1) over m (m − 1) times the size of a support, c_i being how
        often feature i was selected: 1 if all supports are the same.
        """
        m = self.n_resamples
        sizes = sum(len(support) for support in self.supports) / m
        counts = self.frequency * m
        if m < 2 or sizes == 0:
            return math.nan
        return float((counts * (counts - 1)).sum() / (m * (m - 1) * sizes))

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict for each feature that was ever selected, most frequent first."""
        order = self.stable(1e-12)
        return [
            {
                "feature": name,
                "frequency": float(self.frequency[i]),
                "low": float(self.low[i]),
                "high": float(self.high[i]),
            }
            for i, name in zip(order, names_of(order, self.feature_names), strict=True)
        ]

    def __str__(self) -> str:
        k = self.k if isinstance(self.k, int) else ", ".join(map(str, self.k))
        lines = [
            f"{self.n_resamples} resamples ({self.method}), k = {k}; two of them "
            f"share {self.overlap:.0%} of their features"
        ]
        lines += [
            f"  {row['feature']}: {row['frequency']:.0%} "
            f"({row['low']:.0%} to {row['high']:.0%})"
            for row in self.to_rows()[:20]
        ]
        return "\n".join(lines)


def stability(
    X: Any,
    k: int | float | Sequence[int | float],
    n_resamples: int = 50,
    *,
    method: Literal["bootstrap", "subsample"] = "bootstrap",
    n_components: int = 1,
    scheme: Scheme | str | None = None,
    center: bool = True,
    scale: bool = False,
    constraints: Constraints | None = None,
    limits: Limits | float | None = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Return how often each feature is selected over resamples of the samples.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n, d)
    k : int, float, or sequence of these
        One for all components, or one for each; 0.05 is a share of all features.
    n_resamples : int
    method : {"bootstrap", "subsample"}
        n samples with replacement, or half of them without.
    n_components : int
        A feature counts as selected if one of so many components has it.
    scheme : scheme or str, optional
        As in `solve_components`.
    center, scale : bool
        As in `Covariance.from_data`; columns that are constant in a resample have no
        loading there.
    constraints : Constraints, optional
    limits : Limits, optional
        For all resamples together. Each gets an equal share of the time and nodes;
        when one has run out, those that were done are returned. By default each
        resample has the default limits for itself.
    n_jobs : int, optional
        Resamples solved at a time (threads, by joblib). The answer does not depend on
        it.
    rng : int or Generator, optional
        0 by default.
    progress : callable, optional
        Called with how many resamples are done, and of how many.

    Returns
    -------
    Stability
        After Ctrl-C, of the resamples that were done, with a warning.

    Examples
    --------
    >>> import blockspca as bs
    >>> from sklearn.datasets import load_iris
    >>> found = bs.stability(load_iris().data, k=2, n_resamples=20)
    >>> found.frequency, found.stable().tolist()
    (array([0.55, 0.  , 1.  , 0.45]), [2])
    """
    n_resamples = check_positive_integer(n_resamples, "n_resamples")
    if method not in ("bootstrap", "subsample"):
        raise ValueError(
            f"method = {method!r} is not known; pass 'bootstrap' or 'subsample'."
        )
    n_jobs = check_n_jobs(n_jobs)
    values, names = as_rows(X), split_names(X)[1]
    n, d = values.shape
    if n < 4:
        raise ValueError(f"X has {n} samples; pass at least 4 to draw from.")
    how: dict[str, Any] = {"center": center, "scale": scale, "constant": "ignore"}
    how["feature_names"] = names
    scheme = as_scheme(scheme)
    with allowed_threads(n_jobs):
        whole = Covariance.from_data(values, **how)
    ks = check_sparsities(k, n_components, whole, scheme)
    generator = as_generator(rng)
    draws = [_draw(generator, n, method) for _ in range(n_resamples)]
    # A share of what one call has by default would leave a resample no time.
    by_default = limits is None
    budget = Budget(Limits() if by_default else as_limits(limits))

    def selected(draw: NDArray[np.intp], left: Limits) -> _Selected:
        limits = DEFAULT_LIMITS if by_default else left
        cov = Covariance.from_data(values[draw], **how)
        options: dict[str, Any] = {"scheme": scheme, "constraints": constraints}
        found = solve_components(
            cov, ks, n_components, limits=limits, n_jobs=1, **options
        )
        budget.nodes += sum(result.nodes for result in found.results)
        # A set that Ctrl-C cut short is none of a resample, and ends all of them.
        if Status.INTERRUPTED in found.statuses:
            raise KeyboardInterrupt
        support = np.flatnonzero(found.components.any(axis=0))
        return support, all(status in PROVED for status in found.statuses)

    with allowed_threads(n_jobs):
        done, interrupted = _in_time(selected, draws, budget, n_jobs, progress)
    if not done:
        raise value_error(
            f"limits.time = {budget.limits.time} did not suffice for one resample; "
            "pass more.",
            Subject("limits.time"),
        )
    if interrupted and not is_nested_call():
        warn_caller(
            f"stability was interrupted: {len(done)} of {n_resamples} resamples are "
            "returned."
        )
    supports = tuple(support for support, _ in done)
    counts = np.bincount(np.concatenate(supports), minlength=d)
    proved = float(np.mean([is_proved for _, is_proved in done]))
    return Stability(
        counts / len(done),
        *wilson(counts, len(done)),
        supports,
        proved,
        ks[0] if np.ndim(k) == 0 else tuple(ks),
        n_components,
        method,
        names,
        interrupted,
    )


def _in_time(
    selected: Callable[[NDArray[np.intp], Limits], _Selected],
    draws: Sequence[NDArray[np.intp]],
    budget: Budget,
    n_jobs: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[_Selected], bool]:
    """What is selected in each draw that the limits do for, several at once.

    And whether Ctrl-C has ended it.
    """
    given, m = budget.limits, len(draws)
    at_once = jobs_at_once(n_jobs)
    done: dict[int, _Selected] = {}

    def one(number: int) -> _Selected | None:
        if budget.stop_reason() is not None:
            return None
        left = budget.left()
        if left.time is not None and given.time is not None:
            left = replace(left, time=min(left.time, given.time * at_once / m))
        if left.nodes is not None and given.nodes is not None:
            # Of what was given, not of what is left: the same for every n_jobs.
            left = replace(left, nodes=min(left.nodes, max(1, given.nodes // m)))
        done[number] = selected(draws[number], left)
        return done[number]

    def tell(number: int) -> None:
        if progress is not None:
            progress(number, m)

    try:
        work = parallel_map(one, range(m), n_jobs, in_threads=True, tell=tell)
        return [found for found in work if found is not None], False
    except KeyboardInterrupt:
        if not done:  # processes, unlike threads, keep what they have to themselves
            raise
        return [done[number] for number in sorted(done)], True


def _draw(rng: np.random.Generator, n: int, method: str) -> NDArray[np.intp]:
    if method == "bootstrap":
        return rng.integers(0, n, size=n)
    return np.sort(rng.permutation(n)[: n // 2])


def wilson(counts: NDArray[Any], m: int) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of 95 % for shares counts / m."""
    share = counts / m
    middle = (share + _Z**2 / (2 * m)) / (1 + _Z**2 / m)
    spread = np.sqrt(share * (1 - share) / m + _Z**2 / (4 * m**2))
    half = _Z / (1 + _Z**2 / m) * spread
    low = np.where(counts == 0, 0.0, np.maximum(middle - half, 0.0))
    high = np.where(counts == m, 1.0, np.minimum(middle + half, 1.0))
    return low, high
