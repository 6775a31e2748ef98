"""What components must be, as options of the commands that solve."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .loading import Loaded
from .options import whole

if TYPE_CHECKING:
    from ..constraints import Constraints
    from ..result import Result

_PANEL = "Constraints"


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class ConstraintOptions:
    """Features in or out, groups, signs."""

    include: Annotated[
        list[str] | None,
        _option("A feature that must be in; may be repeated.", "--include"),
    ] = None
    exclude: Annotated[
        list[str] | None,
        _option("A feature that must stay out; may be repeated.", "--exclude"),
    ] = None
    groups: Annotated[
        str | None,
        _option(
            "A text file with a feature and its group a line, or, of an h5ad file, a "
            "column of var.",
            "--groups",
            metavar="FILE_OR_COLUMN",
        ),
    ] = None
    max_per_group: Annotated[
        int | None,
        _option("Most features of each group.", "--max-per-group", **whole(0)),
    ] = None
    whole_groups: Annotated[
        bool, _option("Use a group as a whole, or not at all.", "--whole-groups")
    ] = False
    nonnegative: Annotated[
        bool, _option("No loading may be negative.", "--nonnegative")
    ] = False

    def read(self, loaded: Loaded) -> Constraints | None:
        """Return the constraints, by the names of the features; None without any."""
        if self == ConstraintOptions():
            return None
        from ..constraints import Constraints
        from ..io.groups import read_groups

        named = loaded.cov.feature_names is not None
        groups: Any = None
        if self.groups is not None:
            groups = read_groups(self.groups, loaded.file)
            if isinstance(groups, dict):
                groups = {_feature(key, named): label for key, label in groups.items()}
        return Constraints(
            include=[_feature(text, named) for text in self.include or ()],
            exclude=[_feature(text, named) for text in self.exclude or ()],
            groups=groups,
            max_per_group=self.max_per_group,
            whole_groups=self.whole_groups,
            nonnegative=self.nonnegative,
        )


def _feature(text: str, named: bool) -> int | str:
    """A feature as it is typed: its name, or its number where there are no names."""
    return int(text) if not named and text.isdecimal() else text


def price_row(result: Result) -> dict[str, float] | None:
    """What the constraints cost, for JSON; None without any."""
    return None if result.price is None else asdict(result.price)


def price_lines(result: Result) -> list[str]:
    """Say what the constraints cost, if there were any."""
    return [] if result.price is None else [f"  constraints cost {result.price}"]
