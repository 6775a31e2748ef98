"""What a fitted `SparsePCA` shows: pictures, a page, and a page with sliders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._estimator_input import is_precomputed
from ._validation import is_sparse
from .components.scheme_names import IN_TURN, as_scheme
from .components.schemes import in_turn_only, scheme_name
from .constraints import Constraints, checked

if TYPE_CHECKING:
    from .components import Components
    from .explore import Explorer
    from .explore.state import State


class Views:
    """The methods of `SparsePCA` that draw."""

    if TYPE_CHECKING:  # what the estimator has
        covariance: Any
        solution_: Components
        _data: Any

        def transform(self, X: Any) -> Any: ...

    def plot(
        self,
        X: Any = None,
        *,
        color: Sequence[Any] | None = None,
        components: tuple[int, int] = (0, 1),
    ) -> Any:
        """Draw the samples on two components, beside the loadings (matplotlib).

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, optional
            Samples; those of the fit by default. A pickled model is without them: then
            only loadings are drawn.
        color : sequence, optional
            A label or number for each sample.
        components : pair of int
            Counted from 0.

        Returns
        -------
        array of Axes

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca import SparsePCA
        >>> X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 1, 1, 2, 1, 1]
        >>> len(SparsePCA(2, k=2).fit(X).plot())
        3
        """
        from .plotting.components import plot_components

        check_is_fitted(self)
        X = self._data if X is None else X
        no_samples = X is None or (X is self._data and is_precomputed(self.covariance))
        scores = None if no_samples else self.transform(X)
        return plot_components(
            self.solution_, scores, color=color, components=components
        )

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        color: Sequence[Any] | None = None,
        title: str = "",
        force: bool = False,
    ) -> Path:
        """Write one HTML page about the fit: components, blocks, path, certificates.

        Parameters
        ----------
        path : str or Path
            A name that ends with .html.
        X : array, sparse matrix or DataFrame, optional
            What `fit` was given. It is needed for a model that was pickled; one that
            is still as fitted keeps it, and does not copy it.
        color : sequence, optional
            A label for each sample, which the scores are coloured by.
        title : str
            The heading.
        force : bool
            Replace a file that exists.

        Examples
        --------
        >>> import numpy as np
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from blockspca import SparsePCA
        >>> X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 1, 1, 2, 1, 1]
        >>> model = SparsePCA(2, k=2).fit(X)
        >>> with TemporaryDirectory() as folder:
        ...     model.report(Path(folder) / "components.html").name
        'components.html'
        """
        from ._estimator_output import write_report

        check_is_fitted(self)
        return write_report(self, path, X, color, title, force)

    def explore(
        self,
        X: Any = None,
        *,
        color: Sequence[Any] | None = None,
        background: Any = None,
        port: int = 0,
    ) -> Explorer:
        """Serve a page with sliders, which begins with the components of the fit.

        The page is for this machine only, and lives as long as this process, or until
        ``stop()`` of what is returned. A notebook shows its address as a link.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, optional
            What `fit` was given; needed for a model that was pickled.
        color : sequence, optional
            A label or number for each sample.
        background : array, sparse matrix or DataFrame, optional
            What `fit` was given; it can be weighed, or left out, on the page.
        port : int
            0 takes a free one.

        Returns
        -------
        Explorer
            Its `url` is where the page is.

        Examples
        --------
        >>> import numpy as np
        >>> from blockspca import SparsePCA
        >>> X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 1, 1, 2, 1, 1]
        >>> page = SparsePCA(2, k=2).fit(X).explore()
        >>> page.url.startswith("http://127.0.0.1:")
        True
        >>> page.stop()
        """
        check_is_fitted(self)
        data = self._data if X is None else X
        if data is None:
            raise ValueError(
                "the data are not part of a pickled model; pass them as explore(X)."
            )
        return open_explorer(self, data, color, background, port)


def open_explorer(
    estimator: Any, data: Any, color: Any, background: Any, port: int
) -> Explorer:
    """Serve the data of a fitted estimator, from the state that it was fitted in."""
    from .explore import explore_table
    from .explore.dataset import Dataset

    given = estimator.covariance
    matrix = is_precomputed(given)
    if given is not None and not matrix:
        raise ValueError(
            f"covariance = {given!r} is not explored, as its matrix does not come with "
            "a scale or a resample; fit with covariance='precomputed' and its matrix."
        )
    names = estimator.results_[0].feature_names
    dataset = Dataset(
        table=_as_table(data, names, matrix),
        name=type(data).__name__,
        missing=estimator.missing,
        constant="ignore",
        background=None if background is None else _as_table(background, names, matrix),
        groups=None if estimator.constraints is None else estimator.constraints.groups,
        labels={} if color is None else {"color": list(color)},
    )
    return explore_table(
        dataset,
        _state_of(estimator, background is not None, color is not None),
        port=port,
        n_jobs=1 if estimator.n_jobs is None else estimator.n_jobs,
    )


def _as_table(data: Any, names: tuple[str, ...], matrix: bool) -> Any:
    from .io import Table

    index = getattr(data, "index", None)  # of a pandas DataFrame
    return Table(
        values=data if is_sparse(data) else np.asarray(data, dtype=np.float64),
        feature_names=names,
        sample_names=None if index is None or matrix else tuple(map(str, index)),
        is_matrix=matrix,
    )


def _state_of(estimator: Any, contrast: bool, coloured: bool) -> State:
    """What a fit was asked for, as far as the page can ask for it."""
    from .explore.state import MAX_COMPONENTS, MAX_K, State

    d, known = estimator.n_features_in_, estimator.constraints or Constraints()
    if known.whole_groups or known.overlap_with is not None:
        raise ValueError(
            "constraints with whole_groups or overlap_with are not on the page; fit "
            "without them to explore."
        )
    rules = checked(known, d, estimator.results_[0].feature_names, None)
    # The page solves one after the other, and looks for no set that dominates.
    wanted = scheme_name(in_turn_only(as_scheme(estimator.scheme)))
    scheme = next(
        (name for name in IN_TURN if scheme_name(as_scheme(name)) == wanted), None
    )
    if scheme is None:
        raise ValueError(
            f"scheme = {estimator.scheme!r} is not on the page; fit with one of "
            f"{sorted(IN_TURN)}."
        )
    most = known.max_per_group
    asked = {
        "k": min(max(estimator.k_), MAX_K),
        "n_components": min(len(estimator.components_), MAX_COMPONENTS),
        "scheme": scheme,
        "scale": bool(estimator.scale),
        "include": list(rules.include),
        "exclude": list(rules.exclude),
        "max_per_group": int(most) if isinstance(most, (int, np.integer)) else None,
        "nonnegative": bool(known.nonnegative),
        "weight": float(estimator.background_weight) if contrast else None,
        "label": "color" if coloured else None,
    }
    return State.checked(asked, d)
