"""SparsePCA: several components of data, each with a proof, by scikit-learn's rules."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from ..components import solve_components
from ..covariance import Covariance
from ..messages import warn_caller
from ..validation import FloatArray


class SparsePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse PCA with a proof of how good each component is.

    Each component maximises the variance that regression on the scores of the earlier
    components leaves, among unit vectors with at most k nonzeros.

    Parameters
    ----------
    n_components : int
    k : int, or a share of the features below 1
        Features of each component. If the data have fewer than 10 features, the
        default is their number.
    scale : bool
        Divide each column by its standard deviation: solve for correlations.
    limits : Limits or float, optional
        Of the whole fit; a number is seconds. The default is ``Limits(work=30)``. Each
        component gets an equal share of what the earlier ones leave.
    n_jobs : int, optional
        Number of cores; None is all.
    verbose : bool
        Write a log of the proof.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    solution_ : Components
    mean_, scale_ : arrays of shape (n_features,)
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        Variance of each score beyond those before it, and its share of the total.
        `solution_.explained_variance` is the plain variance of each score.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from blockspca import SparsePCA
    >>> model = SparsePCA(n_components=2, k=3, scale=True).fit(load_wine().data)
    >>> model.components_.shape, [r.status.value for r in model.solution_.results]
    ((2, 13), ['optimal', 'optimal'])
    """

    def __init__(
        self,
        n_components: int = 2,
        k: int | float = 10,
        *,
        scale: bool = False,
        limits: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.k = k
        self.scale = scale
        self.limits = limits
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find and prove the components of X, of shape (n_samples, n_features)."""
        kind = type(X).__name__
        if kind in ("AnnData", "Covariance"):
            raise TypeError(
                f"X is of type {kind} and must be samples × features; use "
                f"{'adata.X, or ' if kind == 'AnnData' else ''}"
                "blockspca.components.solve_components(X, n_components, k)."
            )
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_min_samples=2,
        )  # fmt: skip
        names = getattr(self, "feature_names_in_", None)
        cov = Covariance.from_data(X, scale=self.scale, feature_names=names)
        # Defaults adapt to data with few features; other numbers must fit.
        d = cov.n_features
        solution = solve_components(
            cov,
            min(2, d) if self.n_components == 2 else self.n_components,
            min(10, d) if self.k == 10 else self.k,
            limits=self.limits,
            n_jobs=self.n_jobs,
            progress=True if self.verbose else None,
        )
        self.solution_ = solution
        self.components_ = solution.components
        self.explained_variance_ = solution.adjusted_explained_variance
        self.explained_variance_ratio_ = solution.explained_variance_ratio
        self.mean_, self.scale_ = np.asarray(cov.mean), np.asarray(cov.scale)
        self._n_features_out = len(solution)
        results = list(enumerate(solution.results, 1))
        # Larger limits do not help a component that has nothing to explain.
        if empty := [j for j, r in results if r.message]:
            warn_caller(
                f"no variance is left for components {empty}; use "
                f"n_components={max(1, empty[0] - 1)}."
            )
        unproved = [
            j for j, r in results if r.status.value != "optimal" and not r.message
        ]
        if unproved:
            warn_caller(
                f"components {unproved} are not proved optimal; solution_ has the "
                "gaps. Use larger limits, for example limits=Limits(work=300)."
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def transform(self, X: Any) -> FloatArray:
        """Return the scores of X on the components, of shape (n_samples, m)."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        loadings = (self.components_ / self.scale_).T
        scores: FloatArray = X @ loadings - self.mean_ @ loadings
        return scores
