"""A state as a Python script that finds the same components again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dataset import Dataset
from .state import State


def script(dataset: Dataset, state: State) -> str:
    """Return a Python script that finds the components of a state again."""
    lines = ['"""Sparse components, with proofs; written by blockspca explore."""', ""]
    lines += ["import blockspca as bs"]
    source = dataset.source
    if source.file:
        lines += ["from blockspca.io import read_table", ""]
        lines += _read("table", source.file, source.reading)
        lines += ["cov = table.covariance(" + _arguments(dataset, state) + ")"]
    else:
        data = "from_matrix(A" if dataset.table.is_matrix else "from_data(X"
        name = "A" if dataset.table.is_matrix else "X"
        lines += ["", f"# {name} is what was explored; it was in memory."]
        more = _arguments(dataset, state)
        names = dataset.table.feature_names
        if names is not None and (state.include or state.exclude):
            lines += [f"names = {list(names)!r}"]
            more = ", ".join(filter(None, (more, "feature_names=names")))
        lines += [f"cov = bs.Covariance.{data}{', ' if more else ''}{more})"]
    if state.weight is not None:
        lines += _read("background", source.background or "BACKGROUND", source.reading)
        lines += [
            "cov = bs.contrastive(",
            f"    cov, background.covariance({_arguments(dataset, state)}),"
            f" {state.weight!r}",
            ")",
        ]
    lines += _solving(dataset, state)
    lines += [
        "print(found)",
        "for check in found.verify(cov):",
        "    print(check)",
    ]
    return "\n".join(lines) + "\n"


def _read(name: str, file: str, reading: Any) -> list[str]:
    arguments = "".join(f", {key}={value!r}" for key, value in reading.items())
    return [f"{name} = read_table({file!r}{arguments})"]


def _arguments(dataset: Dataset, state: State) -> str:
    """The arguments of a covariance that are not default."""
    if dataset.table.is_matrix:
        return ""
    given = {
        "center": dataset.center,
        "scale": state.scale,
        "missing": dataset.missing,
        "constant": dataset.constant,
    }
    default = {"center": True, "scale": False, "missing": "raise", "constant": "raise"}
    return ", ".join(
        f"{name}={value!r}" for name, value in given.items() if value != default[name]
    )


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
