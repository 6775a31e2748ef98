"""The data of an explorer: read once, kept in this process, never sent as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .._validation import FloatArray
from ..covariance.contrast import contrastive
from ..covariance.covariance import Covariance, refuse_constant
from ..io import Table
from .state import State


@dataclass(frozen=True, eq=False)
class Source:
    """How the data would be read again, for exports; empty for data in memory."""

    #: `file`, `background`: where they came from.
    file: str = ""
    background: str = ""
    #: How, as arguments of `blockspca.io.read_table`.
    reading: Mapping[str, Any] = field(default_factory=dict)
    #: Given a state and the names of the features, returns the commands that find its
    #: components, and that check each certificate. None where there are none.
    commands: Callable[[State, tuple[str, ...]], list[str]] | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """The data of an explorer.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore.dataset import Dataset
    >>> from blockspca.io import Table
    >>> Dataset(Table(np.eye(3), ("a", "b", "c"))).search("B")
    [1]
    """

    table: Table  #: data, or a symmetric matrix
    name: str = "data"  #: what the page calls it
    center: bool = True
    #: `missing`, `constant`: as in `Covariance.from_data`.
    missing: str = "raise"
    constant: str = "raise"
    #: Data of the same features, whose covariance may be subtracted.
    background: Table | None = None
    #: A label for each feature, as in `Constraints`.
    groups: Sequence[Any] | Mapping[Any, Any] | None = None
    #: Columns to colour the samples by.
    labels: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        n = self.n_samples
        for name, column in self.labels.items():
            if len(column) != n:
                raise ValueError(
                    f"label {name!r} has {len(column)} values for {n} samples; pass "
                    "one for each sample."
                )

    @property
    def n_samples(self) -> int:
        """How many samples there are; 0 for a matrix."""
        return 0 if self.table.is_matrix else self.table.shape[0]

    @property
    def n_features(self) -> int:
        return self.table.shape[1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, or their numbers as text."""
        return self.table.feature_names or tuple(str(j) for j in range(self.n_features))

    @cached_property
    def sample_names(self) -> tuple[str, ...]:
        return self.table.sample_names or tuple(str(i) for i in range(self.n_samples))

    @cached_property
    def _by_column(self) -> Table:
        """The data in a format from which columns are read quickly."""
        values = self.table.values
        if hasattr(values, "tocsc"):
            return replace(self.table, values=values.tocsc())
        return self.table

    @cached_property
    def _lower_names(self) -> tuple[str, ...]:
        return tuple(name.casefold() for name in self.names)

    def search(self, text: str, most: int = 20) -> list[int]:
        """Features whose names hold a text: equal ones first, then beginnings."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        found = [
            (name != wanted, not name.startswith(wanted), i)
            for i, name in enumerate(self._lower_names)
            if wanted in name
        ]
        return [i for *_, i in sorted(found)[:most]]

    def covariance(self, state: State) -> Covariance:
        """Return the matrix that a state asks about."""
        cov = self._covariance_of(self.table, state.scale)
        refuse_constant(cov)
        if state.weight is None:
            return cov
        if self.background is None:
            raise ValueError("there is no background to subtract; open with one.")
        other = self._covariance_of(self.background, state.scale)
        return contrastive(cov, other, state.weight)

    def _covariance_of(self, table: Table, scale: bool) -> Covariance:
        if table.is_matrix and scale:
            raise ValueError("a matrix cannot be scaled; open the data instead.")
        return table.covariance(
            center=self.center,
            scale=scale,
            missing=self.missing,  # type: ignore[arg-type]
            constant=self.constant,  # type: ignore[arg-type]
        )

    def scores(self, components: FloatArray, scale: bool) -> FloatArray | None:
        """Return samples × components, or None for a matrix."""
        return self._by_column.scores(components, center=self.center, scale=scale)

    @cached_property
    def group_labels(self) -> tuple[str, ...]:
        """The group of each feature as text, "" for none; empty without groups."""
        if self.groups is None:
            return ()
        if not isinstance(self.groups, Mapping):
            return tuple(str(label) for label in self.groups)
        place = {name: i for i, name in enumerate(self.names)}
        labels = [""] * self.n_features
        for feature, label in self.groups.items():
            labels[place[str(feature)]] = str(label)
        return tuple(labels)
