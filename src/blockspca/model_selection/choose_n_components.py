"""How many components carry more than those of data without correlations do."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from ..components import Scheme, solve_components
from ..components.scheme_names import as_scheme
from ..covariance.covariance import Covariance, refuse_constant
from ..numerics.threads import allowed_threads, parallel_map
from ..status import Status
from .choose_k import N_PERMUTATIONS, SIGNIFICANCE
from .permuting import permuted_columns

N_MAX = 10


@dataclass(frozen=True)
class ChoiceOfComponents:
    """How many components, and why.

    Attributes
    ----------
    n_components : int
        So many of the first components carry more than chance does; 0 if none.
    variances : array of shape (n_max,)
        Adjusted variance of each component of the data.
    reference : array of shape (n_permutations, n_max)
        The same of the data with every column permuted by itself.
    significance : float
        Largest p-value with which a component counts.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(80, 12))
    >>> X[:, :4] += 2 * np.random.default_rng(1).normal(size=(80, 1))
    >>> found = bs.choose_n_components(X, k=4, n_max=2, rng=0)
    >>> found.n_components, (found.p_values <= found.significance).tolist()
    (1, [True, False])
    """

    n_components: int
    variances: FloatArray
    reference: FloatArray
    significance: float

    @property
    def p_values(self) -> FloatArray:
        """Share of permutations, and the data, with as much in component j."""
        exceeding = (self.reference >= self.variances).sum(axis=0)
        return np.asarray((1 + exceeding) / (1 + len(self.reference)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{p:.3g}" for p in self.p_values)
        return (
            f"ChoiceOfComponents(n_components={self.n_components}, p_values=[{shown}])"
        )


def choose_n_components(
    X: Any,
    k: int,
    n_max: int | None = None,
    *,
    scheme: Scheme | str | None = None,
    n_permutations: int = N_PERMUTATIONS,
    significance: float = SIGNIFICANCE,
    scale: bool = False,
    missing: Literal["raise", "pairwise"] = "raise",
    constant: Literal["warn", "ignore", "raise"] = "warn",
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> ChoiceOfComponents:
    """Choose how many components of k features carry more than permuted data do.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n, d)
    k : int
        Features of each component.
    n_max : int, optional
        Most components; 10 by default, or as many as there are features.
    scheme : scheme or str, optional
        `ResidualDeflation()` by default, as in `SparsePCA`.
    n_permutations : int
        At least 1/significance − 1, or no p-value is small enough.
    significance : float
        Largest p-value with which a component counts.
    scale, missing, constant
        As in `Covariance.from_data`.
    n_jobs : int, optional
        Permutations at a time (joblib), and the most threads otherwise. The choice does
        not depend on it.
    rng : int or Generator, optional

    Returns
    -------
    ChoiceOfComponents

    Notes
    -----
    Horn's parallel analysis, with adjusted variances of sparse components in the place
    of eigenvalues: permuting every column by itself keeps the variances and removes
    what columns have to do with one another. Component j counts if, and only if, its
    adjusted variance is larger than that of the j-th component of nearly all permuted
    data, and if all before it count. Costs 1 + n_permutations sets of components,
    searched but not proved.

    References
    ----------
    J. L. Horn, "A rationale and test for the number of factors in factor analysis",
    Psychometrika, 1965.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 12))
    >>> X[:, :4] += 2 * rng.normal(size=(80, 1))
    >>> X[:, 4:8] += 2 * rng.normal(size=(80, 1))
    >>> bs.choose_n_components(X, k=4, n_max=4, rng=0).n_components
    2
    """
    how: dict[str, Any] = {"scale": scale, "missing": missing}
    n_jobs = check_n_jobs(n_jobs)
    with allowed_threads(n_jobs):
        cov = Covariance.from_data(X, **how, constant=constant)
    usable = refuse_constant(cov)
    k = check_sparsity(k, cov.n_features)
    m = min(N_MAX, usable) if n_max is None else check_positive_integer(n_max, "n_max")
    n_permutations = check_positive_integer(n_permutations, "n_permutations")
    significance = check_real(significance, "significance")
    # The least p-value of B permutations is 1 / (B + 1).
    if not 0 < significance < 1 or n_permutations + 1 < 1 / significance:
        raise ValueError(
            f"n_permutations = {n_permutations} cannot give a p-value of significance "
            f"= {significance}; pass at least 1/significance - 1, and 0 < significance "
            "< 1."
        )
    chosen = as_scheme(scheme)
    rows = as_rows(X)

    def variances(data: Covariance, n_jobs: int | None = None) -> FloatArray:
        found = solve_components(
            data, k, m, scheme=chosen, certify=False, n_jobs=n_jobs
        )
        if Status.INTERRUPTED in found.statuses:
            raise KeyboardInterrupt  # of the choice, which needs all sets
        return found.adjusted_explained_variance

    def permuted(generator: np.random.Generator) -> FloatArray:
        data = permuted_columns(rows, generator)
        # What is wrong with a column was said of the data themselves.
        return variances(Covariance.from_data(data, **how, constant="ignore"))

    generators = as_generator(rng).spawn(n_permutations)
    with allowed_threads(n_jobs):
        observed = variances(cov, n_jobs)
        reference = np.array(list(parallel_map(permuted, generators, n_jobs)))
    choice = ChoiceOfComponents(0, observed, reference, significance)
    counts = choice.p_values <= significance
    # Up to the first that chance explains: what later ones have is what deflation left.
    number = len(counts) if counts.all() else int(np.argmin(counts))
    return replace(choice, n_components=number)
