"""Tools for AnnData, in the manner of scanpy's `tl`; scanpy is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._feature_names import meant
from ._validation import check_flag
from .covariance.input_kinds import opened, stays_in_place
from .estimator import SparsePCA
from .io.anndata_entries import KEY, entries_of
from .io.columnar import HIGHLY_VARIABLE
from .scheme_defaults import DEFAULT_K


class _Unset:
    """What `mask_var` is where nothing was passed."""

    def __repr__(self) -> str:
        return "highly variable genes, if they are marked"


_UNSET = _Unset()


def sparse_pca(
    adata: Any,
    n_comps: int = 4,
    *,
    k: Any = DEFAULT_K,
    layer: str | None = None,
    mask_var: Any = _UNSET,
    key_added: str = KEY,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Sparse PCA of an AnnData, written into it.

    Parameters
    ----------
    adata : AnnData
        Cells × genes, in memory or backed, dense or sparse. Usually normalised and
        logarithmised.
    n_comps : int
        How many components.
    k : int, sequence of int or "auto"
        How many genes each component may use, 10 by default.
    layer : str, optional
        The layer to use; `adata.X` by default.
    mask_var : array of bool, name of a column of `adata.var`, or None
        The genes that may be chosen. By default those that `adata.var` marks as
        "highly_variable", or all if none are marked; None is all.
    key_added : str
        Where the results go: ``obsm["X_KEY"]``, ``varm["KEY_PCs"]``, ``uns["KEY"]``.
    copy : bool
        Return a copy with the results instead of writing into `adata`.
    **options
        Of `SparsePCA`: scale, scheme, limits, n_jobs, random_state, …

    Returns
    -------
    AnnData or None
        The copy, if `copy`. With key_added="spca" these are written:

        - ``obsm["X_spca"]``: the scores, cells × components;
        - ``varm["sPCs"]``: the loadings, genes × components, 0 for genes not chosen;
        - ``uns["spca"]``: params, variance (of the scores), variance_ratio (of what the
          earlier scores leave), r2, status, genes, certificates (JSON, for `verify`),
          and objective, which upper_bound and gap are about: from the second component
          on, the variance that the earlier ones leave, by the default scheme.

    Notes
    -----
    With scanpy, ``sc.pl.embedding(adata, "spca", color=…)`` draws the scores, and
    ``sc.pl.ranking(adata, "varm", "sPCs", indices=[0, 1], n_points=10)`` the loadings,
    as ``sc.pl.pca_loadings`` does for ``varm["PCs"]``.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> cells = rng.normal(size=(60, 8))
    >>> cells[:, :3] += 2 * rng.normal(size=(60, 1))
    >>> adata = anndata.AnnData(cells)
    >>> bs.tl.sparse_pca(adata, n_comps=2, k=3)
    >>> adata.obsm["X_spca"].shape, adata.uns["spca"]["status"].tolist()
    ((60, 2), ['optimal', 'optimal'])
    >>> [int(i) for i in np.flatnonzero(adata.varm["sPCs"][:, 0])]
    [0, 1, 2]
    """
    _refuse_other_than_anndata(adata)
    if "n_components" in options:
        raise TypeError("n_components is called n_comps here, as in scanpy; pass that.")
    if check_flag(copy, "copy"):
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    X = _matrix(adata, layer)
    mask, mask_name = _mask(adata, mask_var)
    names = [str(name) for name in np.asarray(adata.var_names)[mask]]
    model = SparsePCA(n_comps, k=k, **options)
    used = _chosen(X, mask)
    model.fit(used, feature_names=names)
    chosen = {
        name: value
        for name, value in options.items()
        if isinstance(value, (str, bool, int, float))
    }
    params = {"layer": layer or "X", "mask_var": mask_name, **chosen}
    scores = model.transform(used)
    entries = entries_of(model.solution_, scores, mask, params, key_added)
    adata.obsm[entries.obsm] = entries.scores
    adata.varm[entries.varm] = entries.loadings
    adata.uns[entries.key] = entries.facts
    return adata if copy else None


def _refuse_other_than_anndata(adata: Any) -> None:
    needed = ("obsm", "varm", "uns", "var", "layers", "n_vars")
    if not all(hasattr(adata, name) for name in needed):
        raise TypeError(
            f"adata is of type {type(adata).__name__}; pass an AnnData, or give arrays "
            "and DataFrames to blockspca.SparsePCA."
        )


def _matrix(adata: Any, layer: str | None) -> Any:
    if layer is None:
        X = adata.X
        if X is None:
            raise ValueError("adata.X is None; pass the name of a layer.")
    elif layer in adata.layers:
        X = adata.layers[layer]
    else:
        raise KeyError(
            f"layer = {layer!r} is not among the layers; "
            + meant(layer, adata.layers.keys())
        )
    X = opened(X)  # a large backed one is read in blocks
    return X if hasattr(X, "tocsr") or stays_in_place(X) else np.asarray(X)


def _chosen(X: Any, mask: np.ndarray) -> Any:
    """Columns of X; some of those in a file are read into memory."""
    if mask.all():
        return X
    return (X.to_memory() if hasattr(X, "to_memory") else X)[:, mask]


def _mask(adata: Any, mask_var: Any) -> tuple[np.ndarray, str]:
    """Return which genes may be chosen, and what that is called."""
    if mask_var is _UNSET:
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in adata.var else None
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool), "all"
    name = "given"
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise KeyError(
                f"mask_var = {mask_var!r} is not a column of adata.var; "
                + meant(mask_var, map(str, adata.var.columns))
            )
        name, mask_var = mask_var, adata.var[mask_var]
    mask = np.asarray(mask_var)
    if mask.shape != (adata.n_vars,) or mask.dtype != bool:
        raise ValueError(
            f"mask_var = {name!r} has shape {mask.shape} and dtype {mask.dtype}; pass "
            f"{adata.n_vars} booleans, one for each gene; of names, "
            "adata.var_names.isin([...])."
        )
    if not mask.any():
        raise ValueError(f"mask_var = {name!r} leaves no gene; pass mask_var=None.")
    return mask, name
