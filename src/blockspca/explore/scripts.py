"""A state as a Python script that finds the same components again."""

from __future__ import annotations

from collections.abc import Sequence

from ..io import Table
from .dataset import Dataset, Source
from .state import State


def script(dataset: Dataset, state: State) -> str:
    """Return a Python script that finds the components of a state again.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore import dataset, scripts, state
    >>> from blockspca.io import Table
    >>> text = scripts.script(dataset.Dataset(Table(np.eye(4))), state.State(k=2))
    >>> "cov = bs.Covariance.from_data(X)" in text
    True
    """
    source, table, background = dataset.source, dataset.table, dataset.background
    lines = ['"""Sparse components, with proofs; written by blockspca explore."""', ""]
    lines += ["import blockspca as bs"]
    if source.file or source.background:
        lines += ["from blockspca.io import read_table"]
    lines += [""]
    more = _arguments(table, dataset, state)
    name = "A" if table.is_matrix else "X"
    if not source.file:
        lines += [f"# {name} is what was explored; it was in memory."]
        if table.feature_names is not None and (state.include or state.exclude):
            lines += [f"names = {list(table.feature_names)!r}"]
            more = [*more, "feature_names=names"]
    lines += [f"cov = {_covariance(table, source.file, name, more, source)}"]
    if state.weight is not None and background is not None:
        if not source.background:
            lines += ["# B is the background; it was in memory."]
        more = _arguments(background, dataset, state)
        made = _covariance(background, source.background, "B", more, source)
        lines += [f"background = {made}"]
        lines += [f"cov = bs.contrastive(cov, background, {state.weight!r})"]
    lines += _solving(dataset, state)
    lines += [
        "print(found)",
        "for check in found.verify(cov):",
        "    print(check)",
    ]
    return "\n".join(lines) + "\n"


def _covariance(
    table: Table, file: str, name: str, more: list[str], source: Source
) -> str:
    """The covariance of a table, in a file or, without one, in a variable."""
    if file:
        given = [repr(file), *(f"{key}={v!r}" for key, v in source.reading.items())]
        return f"read_table({', '.join(given)}).covariance({', '.join(more)})"
    kind = "matrix" if table.is_matrix else "data"
    return f"bs.Covariance.from_{kind}({', '.join([name, *more])})"


def _arguments(table: Table, dataset: Dataset, state: State) -> list[str]:
    """The arguments of a covariance that are not default."""
    if table.is_matrix:
        return []
    given = {
        "center": dataset.center,
        "scale": state.scale,
        "missing": dataset.missing,
        "constant": dataset.constant,
    }
    default = {"center": True, "scale": False, "missing": "raise", "constant": "raise"}
    return [
        f"{name}={value!r}" for name, value in given.items() if value != default[name]
    ]


def _solving(dataset: Dataset, state: State) -> list[str]:
    lines = []
    if state.max_per_group is not None:
        lines += [f"groups = {list(dataset.group_labels)!r}"]
        if "" in dataset.group_labels:  # features without a group
            lines += [
                "groups = {i: label for i, label in enumerate(groups) if label}",
            ]
    lines += ["found = bs.solve_components("]
    lines += [f"    cov, k={state.k}, n_components={state.n_components},"]
    lines += [f"    scheme={state.used_scheme!r},"]
    lines += [f"    limits={state.seconds!r},"]
    constraints = _constraints(dataset, state)
    if constraints:
        lines += [f"    constraints=bs.Constraints({', '.join(constraints)}),"]
    return [*lines, ")"]


def _constraints(dataset: Dataset, state: State) -> list[str]:
    words = []
    for name, chosen in (("include", state.include), ("exclude", state.exclude)):
        if chosen:
            words.append(f"{name}={_features(dataset, chosen)!r}")
    if state.max_per_group is not None:
        words.append(f"groups=groups, max_per_group={state.max_per_group}")
    if state.nonnegative:
        words.append("nonnegative=True")
    return words


def _features(dataset: Dataset, chosen: Sequence[int]) -> list[str] | list[int]:
    names = dataset.table.feature_names
    return list(chosen) if names is None else [names[i] for i in chosen]
