"""A k for each of several components: the rule of `choose_k`, one after the other.

Component j gets the k that its own problem asks for, which is what the scheme leaves of
A after the earlier components, each as found by a search, without proof. Its reference
are permuted data whose columns have the variances that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import FloatArray, as_generator, check_n_jobs
from ..components.scheme import BaseScheme
from ..covariance.covariance import Covariance, refuse_constant
from ..limits import Budget, Deadline
from ..numerics.threads import allowed_threads
from ..result import Result
from .choose_k import (
    FEWER,
    K_MAX,
    LITTLE,
    ChoiceOfK,
    choose_by_fraction,
    choose_by_reference,
    reference_of,
)
from .permuting import Columns, permuted_units

NEAR = 0.1  # of the most that may be chosen: a k so near to it is no choice
SHARE = 1 / 3  # of a limit on time that all choices may take; the rest is for the fit


@dataclass(frozen=True)
class Chosen:
    """The choices for components 1, 2, …, with the searched components behind them."""

    choices: tuple[ChoiceOfK, ...]
    #: Of the components as the search found them: supports to start a solve from.
    supports: tuple[list[int], ...]

    k_max: int = K_MAX

    @property
    def ks(self) -> list[int]:
        return [choice.k for choice in self.choices]

    @property
    def doubt(self) -> str:
        """Why these k are not to be relied on, and what to do; "" if they are."""
        little = [one.reason for one in self.choices if LITTLE in one.reason]
        return f"k was chosen as {self.ks}: {little[0]}" if little else self.cap

    @property
    def cap(self) -> str:
        """Why k is the most that may be chosen, and what to do; "" if it is less."""
        if max(self.ks) < (1 - NEAR) * self.k_max:
            return ""
        return (
            f"k was chosen as {self.ks}, where {self.k_max} is the most that may be: "
            "the data show no end of a component below that. Pass the number of "
            "features that can be read, such as 10, in the place of auto."
        )


def choose_each_k(
    cov: Covariance,
    X: Any,
    n_components: int,
    scheme: BaseScheme,
    *,
    how: dict[str, Any],
    budget: Budget,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Chosen:
    """Choose k for every component of a set.

    Parameters
    ----------
    cov : Covariance
        Of the data.
    X : array or sparse matrix, or None
        The data; without any, k is chosen by the share of the largest eigenvalue.
    how : dict
        How the covariance came from the data: scale and missing.
    budget : Budget
        A third of its time may be used.
    n_jobs, rng
        As in `choose_k`.

    Returns
    -------
    Chosen
        None of its k above 30, nor above what components with features of their own
        can have each.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> from blockspca.limits import Budget, Deadline
    >>> from blockspca.model_selection.choose_each_k import choose_each_k
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 20))
    >>> X[:, :6] += 3 * rng.normal(size=(80, 1))
    >>> X[:, 6:9] += 2 * rng.normal(size=(80, 1))
    >>> how = {"scale": False, "missing": "raise"}
    >>> cov = bs.Covariance.from_data(X)
    >>> scheme = bs.ResidualDeflation()
    >>> choose_each_k(cov, X, 2, scheme, how=how, budget=Budget(), rng=1).ks
    [6, 3]
    """
    usable = refuse_constant(cov)
    k_max = min(K_MAX, usable)
    if scheme.disjoint:
        # Otherwise the first components could leave no feature for the last.
        k_max = max(1, min(k_max, usable // n_components))
    *generators, shared = as_generator(rng).spawn(n_components + 1)
    ends = None if budget.limits.time is None else SHARE * budget.limits.time
    with allowed_threads(check_n_jobs(n_jobs)):
        cov = cov.formed(budget, budget.limits.memory)  # which the fit takes, too
        units = None if X is None else permuted_units(X, shared, kept=FEWER)
        earlier: list[Result] = []
        choices: list[ChoiceOfK] = []
        for j, generator in enumerate(generators):
            problem = scheme.problem(cov, earlier)
            left = None
            if ends is not None:  # every choice has an equal share of the time left
                left = max(0.0, ends - budget.elapsed()) / (n_components - j)
            if X is None:
                choice, path = choose_by_fraction(problem, k_max, seconds=left)
            else:
                same = j == 0 or units is not None
                factors = None if same else _factors(X, how, problem)
                known = choices[0].reference if choices else None
                columns = Columns(X, how, factors, known, units)
                clock = Deadline(left)
                found, path = reference_of(
                    problem, columns, k_max, None, n_jobs, generator, clock
                )
                choice = choose_by_reference(
                    problem, found, path, clock, scaled=bool(how["scale"])
                )
            choices.append(choice)
            earlier.append(path[choice.k])
    supports = tuple(result.support.tolist() for result in earlier)
    return Chosen(tuple(choices), supports, k_max)


def _factors(X: Any, how: dict[str, Any], problem: Covariance) -> FloatArray:
    """By what columns of X are multiplied to have the variances of a problem."""
    before = Covariance.from_data(X, missing=how["missing"]).diagonal()
    left = np.maximum(problem.diagonal(), 0.0)
    return np.sqrt(np.divide(left, before, out=np.zeros_like(left), where=before > 0))
