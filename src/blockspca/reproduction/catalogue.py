"""Every table by name, in the order of the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .comparison import BranchAndBoundRows, ChanRows, Comparison
from .dimensions import dimensions
from .factors import factors
from .figure import figure
from .measurements import Measurements
from .parameters import effect_of
from .summaries import summary
from .synthetic import synthetic
from .table import ReproducedTable

Maker = Callable[[Measurements], ReproducedTable]


def _compared(rows: type[Comparison], titles: str, *sources: str) -> dict[str, Maker]:
    """Return a comparison, its statistics and its summaries by data set and by k."""

    def by(column: str, source: str) -> Maker:
        return lambda m: summary(rows(m).comparison(), column, source, titles)

    name = rows.name
    return {
        name: lambda m: rows(m).comparison(),
        f"{name}-statistics": lambda m: rows(m).statistics(),
        f"{name}-by-dataset": by("dataset", sources[0]),
        f"{name}-by-k": by("k", sources[1]),
    }


#: What can be reproduced, by the name on the command line.
TABLES: dict[str, Maker] = {
    "figure-1": figure,
    "factors": factors,
    "dimensions": dimensions,
    **_compared(
        BranchAndBoundRows,
        "Errors and speed-ups with branch and bound",
        "tab:summary_datasets",
        "tab:summary_k",
    ),
    "d0": partial(effect_of, "d0"),
    "delta": partial(effect_of, "delta"),
    **_compared(
        ChanRows,
        "Errors and speed-ups with Chan's algorithm",
        "tab:summary_datasets2",
        "tab:summary_k2",
    ),
    "synthetic": synthetic,
}


def reproduce(name: str, measurements: Measurements) -> ReproducedTable:
    """Measure one table of the paper.

    Parameters
    ----------
    name : str
        One of `TABLES`.
    measurements : Measurements
        Keeps the runs, so that tables which share them cost them once.

    Examples
    --------
    >>> from blockspca.reproduction import Measurements, Settings, reproduce
    >>> table = reproduce("factors", Measurements(Settings()))
    >>> {str(verdict) for verdict in table.verdicts} <= {"equal", "better"}
    True
    """
    if name not in TABLES:
        raise ValueError(
            f"name = {name!r} is not a table; there are {', '.join(TABLES)}."
        )
    return TABLES[name](measurements)
