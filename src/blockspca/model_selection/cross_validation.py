"""Variance that a component explains on samples it has not seen, for every k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._samples import means_and_scales, projected, total_squares
from .._validation import (
    FloatArray,
    as_generator,
    as_rows,
    check_n_jobs,
    check_positive_integer,
)
from ..covariance.covariance import Covariance, refuse_constant
from ..numerics.threads import allowed_threads, parallel_map
from .choose_k import checked_k_max, smallest_within_error
from .searched_path import searched_path


@dataclass(frozen=True)
class CrossValidation:
    """Variance explained on samples that were not used to find the component.

    Attributes
    ----------
    ks : array of int
        1, 2, …, k_max.
    train, held_out : arrays of shape (n_folds, k_max)
        Share of the total variance that the component of the other folds has in those
        folds, and in the fold that was left out.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> found = bs.cross_validate(np.random.default_rng(0).normal(size=(20, 5)), 3)
    >>> found.held_out.shape, found.mean.shape
    ((5, 3), (3,))
    """

    ks: np.ndarray
    train: FloatArray
    held_out: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Held-out share for each k, over the folds."""
        return self.held_out.mean(axis=0)

    @property
    def standard_error(self) -> FloatArray:
        folds = len(self.held_out)
        return self.held_out.std(axis=0, ddof=1) / np.sqrt(folds)

    @property
    def best_k(self) -> int:
        """The smallest k with the largest held-out share."""
        return int(self.ks[np.argmax(self.mean)])

    @property
    def one_standard_error_k(self) -> int:
        """The smallest k within one standard error of the best."""
        return smallest_within_error(self.ks, self.mean, self.standard_error)

    def __repr__(self) -> str:
        return (
            f"CrossValidation(k = 1..{self.ks[-1]}, {len(self.held_out)} folds, "
            f"best_k = {self.best_k}, one_standard_error_k = "
            f"{self.one_standard_error_k})"
        )


def cross_validate(
    X: Any,
    k_max: int | None = None,
    *,
    n_folds: int = 5,
    scale: bool = False,
    missing: Literal["raise", "pairwise"] = "raise",
    constant: Literal["warn", "ignore", "raise"] = "warn",
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> CrossValidation:
    """Share of variance that the first component explains on samples left out.

    For a fold F and the component x found on the other samples, the share is
    Σ_F (x'(s − μ))² / Σ_F ‖s − μ‖², with the mean μ (and scaling) of the others.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n, d)
    k_max, scale, missing, constant, n_jobs, rng
        As in `choose_k`; rng decides the folds. A missing value counts as the mean of
        its feature in the sum over the fold.
    n_folds : int
        From 2 to the number of samples.

    Notes
    -----
    Held-out variance says how well a component generalises. It favours large k more
    than `choose_k` does: a feature that adds little still adds something.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8)) + 3 * rng.normal(size=(60, 1)) * (np.arange(8) < 3)
    >>> bs.cross_validate(X, k_max=6).one_standard_error_k
    3
    """
    n_jobs = check_n_jobs(n_jobs)
    X = as_rows(X)
    n, d = X.shape
    k_max = checked_k_max(k_max, d)
    n_folds = check_positive_integer(n_folds, "n_folds")
    if not 2 <= n_folds <= n:
        raise ValueError(
            f"n_folds = {n_folds} is outside 2..{n}; pass at least 2 folds, and no "
            "more than there are samples."
        )
    order = as_generator(rng).permutation(n)
    folds = np.array_split(order, n_folds)

    def shares(fold: np.ndarray) -> tuple[FloatArray, FloatArray]:
        others = np.setdiff1d(np.arange(n), fold)
        try:
            cov = Covariance.from_data(
                X[others], scale=scale, missing=missing, constant=constant
            )
            refuse_constant(cov)
        except ValueError as error:
            raise ValueError(
                f"with a fold of {len(fold)} sample(s) left out, {error}"
            ) from None
        path = searched_path(cov, k_max)
        vectors = np.array([result.x for result in path.values()])
        mean, size = means_and_scales(X[others], cov, scale)
        if scale:  # a constant counts for nothing, in the fold left out as well
            size[cov.diagonal() == 0] = np.inf
        scores = projected(X[fold], mean, (vectors / size).T)
        total = max(total_squares(X[fold], mean, size), np.finfo(float).tiny)
        train = path.objectives / float(cov.diagonal().sum())
        return train, (scores**2).sum(axis=0) / total

    with allowed_threads(n_jobs):
        if constant == "warn":  # once, of the whole, and not of every fold
            Covariance.from_data(X, scale=scale, missing=missing)
            constant = "ignore"
        found = list(parallel_map(shares, folds, n_jobs))
    return CrossValidation(
        np.arange(1, k_max + 1),
        np.array([train for train, _ in found]),
        np.array([held_out for _, held_out in found]),
    )
