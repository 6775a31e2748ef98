"""SparsePCA: several sparse components with proofs, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._estimator_input import (
    PARAMETER_CONSTRAINTS,
    chosen_ks,
    column_labels,
    components_wanted,
    is_precomputed,
    learnt_from,
    less_background,
)
from ._estimator_output import publish, warn_if_chosen_together, warn_if_not_proved
from ._estimator_views import Views
from ._samples import projected, total_squares
from ._sklearn import validated
from ._validation import FloatArray, check_n_jobs, check_names
from ._warnings import is_one_of_many_fits, warn_caller
from .components import solve_components
from .components.requests import features_wanted, is_chosen_together
from .components.scheme_names import as_scheme
from .components.variance import adjusted_variance
from .constraints import Constraints
from .limits import Budget, Limits, as_limits
from .numerics.threads import allowed_threads
from .scheme_defaults import DEFAULT_COMPONENTS, DEFAULT_K
from .status import Status


class SparsePCA(
    Views, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Sparse principal components with a chosen number of features and a proof.

    Component j maximises x'A_j x over unit vectors x with at most k nonzeros, where A_1
    is the covariance of the data and A_j what the scheme leaves of it after components
    1, …, j − 1.

    Parameters
    ----------
    n_components : int or None, default=2
        How many components. None is as many as there can be, as in scikit-learn's PCA:
        the lesser of samples and features, or one for each number in `k`.
    k : int, float, sequence or "auto", default=10
        How many features each component may use; a sequence has one number for each
        component, and 0.05 is a share of the features. Where `k` or `n_components` is
        more than there can be, as many are used, with a warning unless it is the
        default, as by scikit-learn's `SelectKBest`: a grid over k, or a step before
        that leaves fewer features, does not end a search.
        (`solve` and `solve_components` refuse it: k is a part of what they claim.)
        "auto" chooses a number up to 30 for each component by the rule of `choose_k`,
        from its variance compared with that of permuted data; a warning says where
        the data do not decide it.
    solver : Solver, callable or str, default=None
        The algorithm for a block, or its name in `blockspca.solvers.SOLVERS`.
        `LocalSearch()` by default.
    threshold : strategy or float, default=None
        How blocks are chosen; `BlockSearch()` by default.
    certify : bool, default=True
        False skips the proofs: components are found in blocks, and by power steps
        from there, with the upper bound that the blocks give.
    limits : Limits or float, default=None
        When to stop, for all components together; a number is seconds. By default
        after 20 seconds or 200 000 nodes of proof. Whatever keeps a component from
        being proved, Ctrl-C too, a ConvergenceWarning says how far the proof has come;
        inside a search of `sklearn.model_selection` Ctrl-C ends the search. A gap alone
        leaves that limit as it is; ``Limits()`` never stops.
    scale : bool, default=False
        Divide each feature by its standard deviation (PCA of correlations).
    missing : {"raise", "pairwise"}, default="raise"
        "pairwise" accepts NaN: each covariance is computed from the samples that have
        both features.
    constant : {"warn", "ignore", "raise"}, default="warn"
        What to do with features that are constant if `scale` is True: ignored, they
        get no loading, and scale_ 1.
    scheme : scheme or str, default=None
        How components relate: "residual" by default (`ResidualDeflation()`, each
        component the best that the earlier ones leave); "auto", which is "residual"
        unless another set has no less adjusted variance and clearly more R²;
        "predictive", "disjoint", "residual-disjoint", "projection", "orthogonal",
        "uncorrelated", "hotelling", or an object such as `DisjointSupports()`; see
        `solve_components`.
    sweeps : int, default=0
        How often every component is solved again, given all others, unless nothing
        improves; see `solve_components`.
    covariance : None, "precomputed" or estimator, default=None
        None is the sample covariance, whose d × d matrix is never formed. An estimator,
        such as ``LedoitWolf()``, is fitted and its ``covariance_`` used. With
        "precomputed", `fit` is given the covariance matrix instead of data.
    transform_method : {"projection", "least-squares"}, default="projection"
        What `transform` returns; see there.
    n_jobs : int, default=None
        Most blocks (joblib) and threads, those of BLAS included, that work at a time;
        see `solve`. With 1, one core does all the work. The answer does not depend on
        it, but for how far a proof gets under a limit on time.
    random_state : int, RandomState instance or None, default=None
        For k="auto" and for solvers that draw random numbers. With None, too, the same
        data give the same components.
    verbose : bool or int, default=False
        Show a log with a progress bar. Otherwise a line shows after five seconds where
        somebody watches, a terminal or notebook, and is gone at the end.
    constraints : Constraints, default=None
        What every component must be besides sparse; see `solve`.
    start : sequence of supports, default=None
        One for each component to start from, such as `supports_` of an earlier fit.
    background_weight : float, default=1.0
        How heavily a background counts that is given to `fit`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Unit vectors, as rows; the largest loading is positive.
    supports_ : list of arrays of int
        The features of each component.
    explained_variance_ : array of shape (n_components,)
        Variance of each score that the earlier scores do not explain (Zou, Hastie and
        Tibshirani's adjusted variance): nothing is counted twice.
    explained_variance_ratio_ : array of shape (n_components,)
        The same, as a share of the total variance.
    r2_ : float
        The share of the variance of all features, also those without a loading, that
        linear regression on the scores predicts.
    upper_bound_ : array of shape (n_components,)
        Proved: no unit vector with as few nonzeros has a larger objective in the
        problem of that component.
    gap_ : array of shape (n_components,)
        (upper bound − objective) / |objective|, of each component's problem.
    status_ : list of str
        "optimal" where the objective was proved to be the largest possible.
    joint_upper_bound_ : float
        Proved: no components with the k asked for, however chosen, have a larger sum of
        `explained_variance_`; of disjoint or orthogonal ones, no orthogonal components
        have a larger sum of variances.
    joint_gap_ : float
        (joint_upper_bound_ − sum of `explained_variance_`) / that sum: how far the set
        is from the best of all, at the most. Of `DisjointSupports` and
        `Orthogonalised`, the sum is that of the variances as they are.
    k_ : list of int
        The k of each component.
    results_ : tuple of Result
        One for each component, with its certificate.
    solution_ : Components
        All of the above as one object.
    covariance_estimator_ : estimator
        The fitted one, if `covariance` is an estimator.
    choices_of_k_ : tuple of ChoiceOfK
        Why these k, if k="auto": one for each component. `choice_of_k_` is the first.
    mean_, scale_ : arrays of shape (n_features,)
        What is subtracted and divided by; zeros and ones for "precomputed".
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    solve_components : The same without scikit-learn.
    choose_k : The rule behind k="auto".

    Examples
    --------
    >>> from blockspca import SparsePCA
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine()
    >>> model = SparsePCA(n_components=2, k=[4, 3], scale=True).fit(wine.data)
    >>> [wine.feature_names[i] for i in model.supports_[1]]
    ['alcohol', 'color_intensity', 'proline']
    >>> model.status_
    ['optimal', 'optimal']
    >>> model.transform(wine.data).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = PARAMETER_CONSTRAINTS

    def __init__(
        self,
        n_components: int | None = DEFAULT_COMPONENTS,
        *,
        k: int | float | Sequence[int] | Literal["auto"] = DEFAULT_K,
        solver: Any = None,
        threshold: Any = None,
        certify: bool = True,
        limits: Limits | float | None = None,
        scale: bool = False,
        missing: Literal["raise", "pairwise"] = "raise",
        constant: Literal["warn", "ignore", "raise"] = "warn",
        scheme: Any = None,
        sweeps: int = 0,
        covariance: Any = None,
        transform_method: str = "projection",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        constraints: Constraints | None = None,
        start: Any = None,
        background_weight: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.k = k
        self.solver = solver
        self.threshold = threshold
        self.certify = certify
        self.limits = limits
        self.scale = scale
        self.missing = missing
        self.constant = constant
        self.scheme = scheme
        self.sweeps = sweeps
        self.covariance = covariance
        self.transform_method = transform_method
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.constraints = constraints
        self.start = start
        self.background_weight = background_weight

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        background: Any = None,
    ) -> SparsePCA:
        """Find the components.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Or what `Covariance.from_data` reads in place: a file, a dask array; or has
            on a GPU.
            With covariance="precomputed", the covariance matrix.
        y : ignored
        feature_names : sequence of str, optional
            Names for arrays and sparse matrices; a DataFrame has its own.
        background : array, sparse matrix or DataFrame, optional
            Samples of the same features (or their covariance matrix, if X is one) in
            which the components should not vary: `background_weight` times their
            covariance is taken off that of X. See `contrastive`.

        Returns
        -------
        self
        """
        budget = Budget(as_limits(self.limits))
        # One for the choice of k and one for the fit, so that the fit is the same for a
        # k that is passed. None is what None is in `choose_k` and `solve_components`.
        of_choice = of_fit = None
        if self.random_state is not None:
            random = check_random_state(self.random_state)
            of_choice, of_fit = random.randint(2**31 - 1, size=2).tolist()
        labels = column_labels(X, feature_names)
        # On a copy: a fit that fails leaves the model as it was.
        seen = copy(self)
        seen._labels = labels
        samples = 1 if is_precomputed(self.covariance) else 2
        given = X  # what is validated has lost its index and its names
        X = seen._validated(X, reset=True, ensure_min_samples=samples)
        names = check_names(labels, X.shape[1])
        scheme = as_scheme(self.scheme)
        with allowed_threads(check_n_jobs(self.n_jobs)), budget.ending():
            with budget.reading():
                learnt = learnt_from(self, X, names, given=given)
                cov = learnt.cov
                if background is not None:
                    # On a copy again: the names of features are those of X.
                    other = copy(seen)._validated(background)
                    cov = less_background(self, cov, other)
            m = components_wanted(self.n_components, self.k, X.shape, cov, scheme)
            start, chosen = self.start, None
            if isinstance(self.k, str):
                chosen = chosen_ks(self, X, cov, m, scheme, budget, of_choice)
                ks = chosen.ks
                if start is None and self.constraints is None:
                    start = chosen.supports
            else:
                k: Any = self.k
                if np.ndim(k) and self.n_components is not None:
                    k = k[: m + len(k) - self.n_components]  # those of components cut
                ks = features_wanted(k, m, scheme, cov)
        found = solve_components(
            cov,
            ks,
            m,
            scheme=scheme,
            sweeps=self.sweeps,
            limits=budget.left(),
            progress=self._progress(),
            solver=self.solver,
            threshold=self.threshold,
            certify=self.certify,
            n_jobs=self.n_jobs,
            rng=of_fit,
            constraints=self.constraints,
            start=start,
        )
        if Status.INTERRUPTED in found.statuses and is_one_of_many_fits():
            raise KeyboardInterrupt  # which is meant for all of them
        seen._data, seen._seconds = given, budget.elapsed()
        publish(self, seen, learnt, chosen, found)
        if chosen is not None and chosen.doubt:
            warn_caller(chosen.doubt)
        if self.certify:
            warn_if_chosen_together(found)
            warn_if_not_proved(
                self.results_,
                m,
                by_default=self.limits is None,
                by_choice=is_chosen_together(found),
                seconds=self._seconds,
            )
        return self

    def _progress(self) -> bool | None:
        """The log of a fit: one of many has none, or lines would come and go."""
        if self.verbose:
            return True
        return False if is_one_of_many_fits() else None

    def transform(self, X: Any) -> FloatArray:
        """Return the scores of samples on the components.

        With C = (X − mean_) / scale_ and V = components_,

            projection:     Z = C V'
            least-squares:  Z = C V' (V V')⁻¹, the weights with C ≈ Z V

        The two agree where components are orthonormal, as with disjoint supports. A
        missing value (missing="pairwise") counts as the mean of its feature.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca import SparsePCA
        >>> X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 1, 1, 2, 1, 1]
        >>> model = SparsePCA(2, k=2).fit(X)
        >>> model.transform(X[:3]).shape
        (3, 2)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        scores = self._project(X)
        if self.transform_method == "least-squares":
            scores = scores @ self._inverse_gram()
        return scores

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return the data that scores stand for, the best in the span of V.

        With Z the scores, `transform_method` deciding which, and V = components_,

            projection:     X̂ = Z (V V')⁻¹ V · scale_ + mean_
            least-squares:  X̂ = Z V · scale_ + mean_

        so that ``inverse_transform(transform(X))`` is, in scaled units, the point of
        the components' span nearest to each sample, for either method.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Scores Z.

        Returns
        -------
        array of shape (n_samples, n_features)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from blockspca import SparsePCA
        >>> flowers = load_iris().data
        >>> model = SparsePCA(1, k=2).fit(flowers)
        >>> model.inverse_transform(model.transform(flowers))[0].round(1).tolist()
        [4.9, 3.1, 1.5, 1.2]
        """
        check_is_fitted(self)
        Z = check_array(X, dtype=np.float64)
        if Z.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {Z.shape[1]} column(s), but there are {len(self.components_)} "
                "components; pass scores as transform returns them."
            )
        if self.transform_method == "projection":
            Z = Z @ self._inverse_gram()
        return Z @ self.components_ * self.scale_ + self.mean_

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the variance of X that the components explain.

        The sum of the adjusted variances of the scores of X, about mean_, over
        Σ ‖(x − mean_) / scale_‖² / n. On the data of `fit` this is
        ``explained_variance_ratio_.sum()``, unless `covariance` is given or values are
        missing.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            At most 1; larger is better.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from blockspca import SparsePCA
        >>> flowers = load_iris().data
        >>> round(SparsePCA(2, k=2).fit(flowers[::2]).score(flowers[1::2]), 3)
        0.848
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        scores = self._project(X)
        total = total_squares(X, self.mean_, self.scale_)
        if total <= 0:
            return 0.0
        return float(adjusted_variance(scores.T @ scores).sum() / total)

    @property
    def joint_upper_bound_(self) -> float:
        """What no components with these k exceed, computed when it is first read."""
        check_is_fitted(self)
        return self.solution_.joint_upper_bound

    @property
    def joint_gap_(self) -> float:
        """How far the set is from the best of all, at the most."""
        check_is_fitted(self)
        return self.solution_.joint_gap

    @property
    def loadings_(self) -> Any:
        """The loadings as a pandas DataFrame: features that are used × components."""
        check_is_fitted(self)
        return self.solution_.to_frame(self._labels)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _validated(self, X: Any, **options: Any) -> Any:
        allow_nan = self.missing == "pairwise"
        is_matrix = options.get("reset", False) and is_precomputed(self.covariance)
        return validated(self, X, allow_nan=allow_nan, is_matrix=is_matrix, **options)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles are without the data, which `report` and `plot` use."""
        return {**super().__getstate__(), "_data": None}

    def _project(self, X: Any) -> FloatArray:
        """(X − mean_) / scale_ times V', with gaps as means; sparse X stays sparse."""
        weights = (self.components_ / self.scale_).T
        return projected(X, self.mean_, weights)

    def _inverse_gram(self) -> FloatArray:
        return np.linalg.pinv(self.components_ @ self.components_.T, hermitian=True)

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {
            "allow_nan": self.missing == "pairwise",
            "X_types": ["2darray", "sparse"],
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "pairwise"
        return tags
