"""Components for AnnData: scores in obsm, loadings in varm, the rest in uns."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import FloatArray
from ..components import Components
from .columnar import needed
from .writing import check_free, draft, naming, put_in_place

KEY = "spca"  # of the results, unless another is given


@dataclass(frozen=True)
class Entries:
    """The three values that are written, and their places."""

    key: str  #: of `uns`; the others are named after it, as scanpy's pictures expect
    scores: FloatArray  #: (n_cells, n_components)
    #: (n_genes, n_components); 0 for genes that were not chosen, or not asked about.
    loadings: FloatArray
    #: params, variance (of the scores), variance_ratio (adjusted), r2, objective with
    #: its upper_bound and gap, status, genes and certificates (JSON, for `verify`).
    facts: dict[str, Any]

    @property
    def obsm(self) -> str:
        return f"X_{self.key}"

    @property
    def varm(self) -> str:
        return "sPCs" if self.key == KEY else f"{self.key}_PCs"


def entries_of(
    found: Components,
    scores: FloatArray,
    among: FloatArray | Any,
    params: Mapping[str, Any],
    key: str = KEY,
) -> Entries:
    """Put components into the form of AnnData.

    Parameters
    ----------
    scores : array of shape (n_cells, n_components)
    among : array of bool of shape (n_genes,)
        The genes that the components are about, in their order.
    params : mapping
        What was asked for; numbers, texts and arrays.
    """
    loadings = np.zeros((len(among), len(found)))
    loadings[among] = found.components.T
    facts = {
        "params": {
            "n_comps": len(found),
            "k": np.array([result.k for result in found.results]),
            **params,
        },
        "variance": np.array(found.explained_variance),
        "variance_ratio": np.array(found.explained_variance_ratio),
        "r2": float(found.r2),
        "objective": np.array([result.objective for result in found.results]),
        "upper_bound": np.array(found.upper_bounds),
        "gap": np.array(found.gaps),
        "status": np.array([status.value for status in found.statuses]),
        "genes": np.array([", ".join(result.features) for result in found.results]),
        "certificates": np.array(
            [
                "" if result.certificate is None else result.certificate.to_json()
                for result in found.results
            ]
        ),
    }
    return Entries(key, scores, loadings, facts)


def write_into(source: Path, target: Path, entries: Entries, *, force: bool) -> Path:
    """Write a copy of an h5ad file that has the entries as well, whole or not at all.

    With `force`, the target may be the source itself.
    """
    h5py, anndata = needed(target, "h5py"), needed(target, "anndata")
    try:  # since 0.11
        from anndata.io import write_elem
    except ImportError:
        write_elem = anndata.experimental.write_elem
    check_free([target], force)
    with draft(target) as name:
        with naming(target):
            shutil.copyfile(source, name)
            with h5py.File(name, "r+") as file:
                for folder, key, value in (
                    ("obsm", entries.obsm, entries.scores),
                    ("varm", entries.varm, entries.loadings),
                    ("uns", entries.key, entries.facts),
                ):
                    if folder not in file:
                        write_elem(file, folder, {})
                    if key in file[folder]:
                        del file[folder][key]
                    write_elem(file[folder], key, value)
        put_in_place([(name, target)], force)
    return target
