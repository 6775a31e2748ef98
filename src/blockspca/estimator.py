"""SparsePCA: several sparse components with proofs, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._estimator_output import publish, warn_if_not_proved
from ._samples import projected, total_squares
from ._sklearn import means_and_scales, validated
from ._validation import (
    FloatArray,
    check_n_jobs,
    check_names,
    is_sparse,
    split_names,
)
from .components import Components, solve_components
from .components.requests import chosen_scheme, is_disjoint
from .components.variance import adjusted_variance
from .constraints import Constraints
from .covariance.covariance import Covariance, refuse_constant
from .covariance.kinds import stays_in_place
from .limits import DEFAULT_LIMITS, Limits
from .model_selection.choose_k import (
    K_MAX,
    N_PERMUTATIONS,
    choose_by_permutation,
    choose_k,
)
from .numerics.threads import allowed_threads


class SparsePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse principal components with a chosen number of features and a proof.

    Component j maximises x'A_j x over unit vectors x with at most k nonzeros, where A_1
    is the covariance of the data and A_j what the scheme leaves of it after components
    1, …, j − 1.

    Parameters
    ----------
    n_components : int, default=2
        How many components.
    k : int, sequence of int or "auto", default="auto"
        How many features each component may use; a sequence has one number for each
        component. "auto" chooses one number for all by `choose_k`, from the first
        component's variance compared with that of permuted data.
    solver : Solver, callable or str, default=None
        The algorithm for a block, or its name in `blockspca.solvers.SOLVERS`.
        `LocalSearch()` by default.
    threshold : strategy or float, default=None
        How blocks are chosen; `BlockSearch()` by default.
    certify : bool, default=True
        False skips the proofs: components are those of the blocks, with the upper
        bound that the blocks give.
    limits : Limits or float, default=None
        When to stop, for all components together; a number is seconds. By default
        after 200 000 nodes of proof: seconds, or minutes where 30 of some thousand
        features are wanted. Whatever keeps a component from being proved, Ctrl-C too, a
        ConvergenceWarning says how far the proof has come. ``Limits()`` never stops.
    scale : bool, default=False
        Divide each feature by its standard deviation (PCA of correlations).
    missing : {"raise", "pairwise"}, default="raise"
        "pairwise" accepts NaN: each covariance is computed from the samples that have
        both features.
    constant : {"raise", "ignore"}, default="raise"
        What to do with features that are constant if `scale` is True: "ignore" gives
        them no loading, and scale_ 1.
    scheme : scheme, default=None
        How components relate: `ResidualDeflation()` by default; `DisjointSupports()`,
        `ProjectionDeflation()`, `Orthogonalised()`, `UncorrelatedScores()`,
        `HotellingDeflation()`.
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
        it.
    random_state : int, RandomState instance or None, default=None
        For k="auto" and for solvers that draw random numbers.
    verbose : bool or int, default=False
        Show a log with a progress bar.
    constraints : Constraints, default=None
        What every component must be besides sparse; see `solve`.
    start : sequence of supports, default=None
        One for each component to start from, such as `supports_` of an earlier fit.

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
        Proved: no components with the same k, however chosen, have a larger sum of
        `explained_variance_`.
    joint_gap_ : float
        (joint_upper_bound_ − sum of `explained_variance_`) / that sum: how far the set
        is from the best of all, at the most.
    k_ : list of int
        The k of each component.
    results_ : tuple of Result
        One for each component, with its certificate.
    solution_ : Components
        All of the above as one object.
    covariance_estimator_ : estimator
        The fitted one, if `covariance` is an estimator.
    choice_of_k_ : ChoiceOfK
        Why this k, if k="auto".
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
    >>> import numpy as np
    >>> from blockspca import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 12))
    >>> X[:, :4] += 3 * rng.normal(size=(50, 1))
    >>> X[:, 4:7] += 2 * rng.normal(size=(50, 1))
    >>> model = SparsePCA(n_components=2, k=[4, 3]).fit(X)
    >>> [support.tolist() for support in model.supports_]
    [[0, 1, 2, 3], [4, 5, 6]]
    >>> model.status_
    ['optimal', 'optimal']
    >>> model.transform(X).shape
    (50, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "k": [
            Interval(Integral, 1, None, closed="left"),
            "array-like",
            StrOptions({"auto"}),
        ],
        # Objects of these kinds are checked where they are used.
        "solver": "no_validation",
        "threshold": "no_validation",
        "certify": ["boolean"],
        "limits": [Limits, Interval(Real, 0, None, closed="left"), None],
        "scale": ["boolean"],
        "missing": [StrOptions({"raise", "pairwise"})],
        "constant": [StrOptions({"raise", "ignore"})],
        "scheme": "no_validation",
        "sweeps": [Interval(Integral, 0, None, closed="left")],
        "covariance": "no_validation",
        "transform_method": [StrOptions({"projection", "least-squares"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "constraints": [Constraints, None],
        "start": "no_validation",
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        k: int | Sequence[int] | Literal["auto"] = "auto",
        solver: Any = None,
        threshold: Any = None,
        certify: bool = True,
        limits: Limits | float | None = None,
        scale: bool = False,
        missing: Literal["raise", "pairwise"] = "raise",
        constant: Literal["raise", "ignore"] = "raise",
        scheme: Any = None,
        sweeps: int = 0,
        covariance: Any = None,
        transform_method: str = "projection",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        constraints: Constraints | None = None,
        start: Any = None,
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

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any = None, *, feature_names: Sequence[str] | None = None
    ) -> SparsePCA:
        """Find the components.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            With covariance="precomputed", the covariance matrix.
        y : ignored
        feature_names : sequence of str, optional
            Names for arrays and sparse matrices; a DataFrame has its own.

        Returns
        -------
        self
        """
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        precomputed = self._is_precomputed()
        _, self._column_names = split_names(X)
        X = self._validated(X, reset=True, ensure_min_samples=1 if precomputed else 2)
        if feature_names is not None:
            self._column_names = check_names(feature_names, X.shape[1])
        self._check_sizes()
        with allowed_threads(check_n_jobs(self.n_jobs)):
            cov = self._covariance_of(X, precomputed)
            sparsities = self._sparsities(X, cov, precomputed, int(seeds[0]))
        self.solution_: Components = solve_components(
            cov,
            sparsities,
            self.n_components,
            scheme=chosen_scheme(self.scheme),
            sweeps=self.sweeps,
            limits=DEFAULT_LIMITS if self.limits is None else self.limits,
            progress=True if self.verbose else None,
            solver=self.solver,
            threshold=self.threshold,
            certify=self.certify,
            n_jobs=self.n_jobs,
            rng=int(seeds[1]),
            constraints=self.constraints,
            start=self.start,
        )
        publish(self, self.solution_)
        wanted = int(self.n_components)
        if self.certify:
            warn_if_not_proved(self.results_, wanted, by_default=self.limits is None)
        return self

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
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        scores = self._project(X)
        total = total_squares(X, self.mean_, self.scale_)
        if total <= 0:
            return 0.0
        return float(adjusted_variance(scores.T @ scores).sum() / total)

    @property
    def loadings_(self) -> Any:
        """The loadings as a pandas DataFrame: features that are used × components."""
        check_is_fitted(self)
        return self.solution_.to_frame()

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _is_precomputed(self) -> bool:
        if self.covariance is None or hasattr(self.covariance, "fit"):
            return False
        if isinstance(self.covariance, str) and self.covariance == "precomputed":
            return True
        raise ValueError(
            f"covariance = {self.covariance!r} is not known; pass None, 'precomputed' "
            "or an estimator with fit and covariance_, such as LedoitWolf()."
        )

    def _validated(self, X: Any, **options: Any) -> Any:
        allow_nan = self.missing == "pairwise"
        is_matrix = options.get("reset", False) and self._is_precomputed()
        return validated(self, X, allow_nan=allow_nan, is_matrix=is_matrix, **options)

    def _check_sizes(self) -> None:
        d = self.n_features_in_
        sizes = np.asarray(self.k)  # what is not an integer is refused later
        largest = sizes.max(initial=0) if sizes.dtype.kind in "iu" else 1
        for name, value in (("n_components", self.n_components), ("k", largest)):
            if value > d:
                raise ValueError(
                    f"{name} = {value} is more than the {d} feature(s) of X; pass at "
                    "most that many."
                )

    def _names(self) -> Any:
        """The names of a DataFrame; scikit-learn keeps those that are strings only."""
        return getattr(self, "feature_names_in_", self._column_names)

    def _covariance_of(self, X: Any, precomputed: bool) -> Covariance:
        """Set mean_ and scale_; return the matrix whose components are wanted."""
        d = X.shape[1]
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if precomputed:
            if self.scale:
                raise ValueError(
                    "scale = True cannot be combined with covariance='precomputed'; "
                    "pass the correlation matrix and scale=False."
                )
            if X.shape[0] != d:
                raise ValueError(
                    f"X has shape {X.shape}; with covariance='precomputed' pass the "
                    "square covariance matrix to fit."
                )
            return Covariance.from_matrix(X, feature_names=self._names())
        cov = Covariance.from_data(
            X,
            scale=self.scale,
            missing=self.missing,
            constant=self.constant,
            feature_names=self._names(),
        )
        refuse_constant(cov)
        varies = cov.diagonal() > 0
        self.mean_, self.scale_ = means_and_scales(X, cov, self.scale)
        if self.covariance is None:
            return cov
        if is_sparse(X) or stays_in_place(X) or np.isnan(X).any():
            raise TypeError(
                f"covariance = {self.covariance!r} needs dense data without missing "
                "values; pass X.toarray(), fill the gaps, or use covariance=None."
            )
        estimator = clone(self.covariance)
        estimator.fit((X - self.mean_) / self.scale_)
        if not hasattr(estimator, "covariance_"):
            raise TypeError(
                f"covariance = {self.covariance!r} has no covariance_ after fit; pass "
                "an estimator such as LedoitWolf()."
            )
        self.covariance_estimator_ = estimator
        A = np.array(estimator.covariance_)
        if self.scale:  # shrinkage gives a variance even to a constant
            A[~varies], A[:, ~varies] = 0.0, 0.0
        return Covariance.from_matrix(A, feature_names=self._names())

    def _sparsities(self, X: Any, cov: Covariance, precomputed: bool, seed: int) -> Any:
        if not isinstance(self.k, str):
            return self.k
        d = refuse_constant(cov)  # features that vary
        k_max = min(K_MAX, d)
        if is_disjoint(chosen_scheme(self.scheme)):
            k_max = max(1, min(k_max, d // self.n_components))
        if precomputed or stays_in_place(X):  # nothing to permute
            self.choice_of_k_ = choose_k(cov, k_max)
            return self.choice_of_k_.k
        how = {name: getattr(self, name) for name in ("scale", "missing", "constant")}
        if self.covariance is not None:  # permuted data have no such estimate
            cov = Covariance.from_data(X, **how, feature_names=self._names())
        self.choice_of_k_ = choose_by_permutation(
            cov, X, k_max, N_PERMUTATIONS, how, self.n_jobs, seed
        )
        return self.choice_of_k_.k

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
