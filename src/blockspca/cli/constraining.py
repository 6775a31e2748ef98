"""Constraints and starting points as options of the commands that solve."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .declaring import option, whole
from .errors import UsageError
from .loading import Loaded

if TYPE_CHECKING:
    from ..constraints import Constraints
    from ..result import Result

_option = partial(option, panel="Constraints")
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="FILE_OR_COLUMN",
        rich_help_panel="Constraints",
        help="A text file with a feature and its group on each line, or, for an h5ad "
        "file, a column of var.",
    ),
]


@dataclass(frozen=True)
class ConstraintOptions:
    """Features in or out, groups, signs."""

    include: list[str] | None = _option(
        "Features to keep in, separated by commas; may be repeated.",
        None,
        metavar="NAMES",
    )
    exclude: list[str] | None = _option(
        "Features to leave out, separated by commas; may be repeated.",
        None,
        metavar="NAMES",
    )
    groups: Groups = None
    max_per_group: int | None = _option(
        "Largest number of features from each group.", None, **whole(0)
    )
    whole_groups: bool = _option("Use all features of a group or none.", False)
    nonnegative: bool = _option("Allow no negative loading.", False)
    start: str | None = _option(
        "Features to start from: the output of an earlier fit, a text file with one on "
        "each line, or names separated by commas.",
        None,
        metavar="FILE_OR_NAMES",
    )
    min_overlap: int | None = _option(
        "Keep at least this many features of --start.", None, **whole(1)
    )

    def starts(self, loaded: Loaded, n_components: int) -> list[list[Any]] | None:
        """Return supports to start from, one for each component; None without any."""
        if self.start is None:
            return None
        known = [support for support in self._supports(loaded) if support]
        return [*known, *([] for _ in range(n_components))][:n_components]

    def start_of_path(self, loaded: Loaded) -> list[Any] | None:
        """Return the one support that a path starts from; None without any."""
        return None if self.start is None else self._supports(loaded)[0]

    def _supports(self, loaded: Loaded) -> list[list[Any]]:
        from ..io.supports import read_supports

        assert self.start is not None
        names = loaded.cov.feature_names
        known = set(names if names is not None else range(loaded.cov.n_features))
        if self.start in known:  # a name may have commas
            return [[self.start]]
        supports = [
            [_feature(text, names is not None) for text in support]
            for support in read_supports(self.start)
        ]
        gone = [name for support in supports for name in support if name not in known]
        if gone:
            warnings.warn(
                f"--start {self.start} has {len(gone)} feature(s) that the "
                f"data do not have, such as {gone[0]!r}; they are left out.",
                stacklevel=2,
            )
        supports = [[name for name in each if name in known] for each in supports]
        if not any(supports):
            raise UsageError(f"--start {self.start} has no feature of the data")
        return supports

    def read(self, loaded: Loaded) -> Constraints | None:
        """Return the constraints, by the names of the features; None without any."""
        if replace(self, start=None) == ConstraintOptions():
            return None
        from ..constraints import Constraints
        from ..io.groups import read_groups

        if self.groups is None and (
            self.whole_groups or self.max_per_group is not None
        ):
            option = "--whole-groups" if self.whole_groups else "--max-per-group"
            raise UsageError(f"{option} needs --groups, the group of each feature")
        names = loaded.cov.feature_names
        named = names is not None
        groups: Any = None
        if self.groups is not None:
            groups = read_groups(self.groups, loaded.file, names)
            if isinstance(groups, dict):
                groups = {_feature(key, named): label for key, label in groups.items()}
        return Constraints(
            include=_features(self.include, names),
            exclude=_features(self.exclude, names),
            groups=groups,
            max_per_group=self.max_per_group,
            whole_groups=self.whole_groups,
            nonnegative=self.nonnegative,
            **self._overlap(loaded),
        )

    def _overlap(self, loaded: Loaded) -> dict[str, Any]:
        if self.min_overlap is None:
            return {}
        if self.start is None:
            raise UsageError(
                "--min-overlap needs --start, the features to overlap with"
            )
        supports = self._supports(loaded)
        if len(supports) > 1:
            raise UsageError(
                f"--min-overlap needs one set of features, and --start has "
                f"{len(supports)}; give one as --start a,b,c, or solve one component "
                "after the other in Python"
            )
        return {"overlap_with": supports[0], "min_overlap": self.min_overlap}


def _features(
    given: Sequence[str] | None, names: Sequence[str] | None
) -> list[int | str]:
    """Features as they are typed: a name as it is, or several with commas."""
    known, chosen = frozenset(names or ()), []
    for text in given or ():
        parts = [text] if text in known else text.split(",")
        chosen += [part.strip() if len(parts) > 1 else part for part in parts]
    return [_feature(text, names is not None) for text in chosen if text]


def _feature(text: str, named: bool) -> int | str:
    """A feature as it is typed: its name, or its number where there are no names."""
    return int(text) if not named and text.isdecimal() else text


def price_row(result: Result) -> dict[str, float] | None:
    """Return what the constraints cost, for JSON; None without constraints."""
    return None if result.price is None else asdict(result.price)


def price_lines(result: Result) -> list[str]:
    """Return a line on what the constraints cost, or none."""
    return [] if result.price is None else [f"  constraints cost {result.price}"]
