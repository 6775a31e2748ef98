"""Every table by name, in the order of the paper."""

from __future__ import annotations

from collections.abc import Callable

from . import branch_and_bound, chan
from .dimensions import dimensions
from .factors import factors
from .figure import figure
from .measurements import Measurements
from .parameters import effect_of_d0, effect_of_delta
from .summaries import summary
from .synthetic import synthetic
from .table import ReproducedTable

_BB = "Errors and speed-ups with branch and bound"
_CHAN = "Errors and speed-ups with Chan's algorithm"


def _bb_by_dataset(measurements: Measurements) -> ReproducedTable:
    compared = branch_and_bound.comparison(measurements)
    return summary(compared, "dataset", "tab:summary_datasets", _BB)


def _bb_by_k(measurements: Measurements) -> ReproducedTable:
    compared = branch_and_bound.comparison(measurements)
    return summary(compared, "k", "tab:summary_k", _BB)


def _chan_by_dataset(measurements: Measurements) -> ReproducedTable:
    compared = chan.comparison(measurements)
    return summary(compared, "dataset", "tab:summary_datasets2", _CHAN)


def _chan_by_k(measurements: Measurements) -> ReproducedTable:
    return summary(chan.comparison(measurements), "k", "tab:summary_k2", _CHAN)


#: What can be reproduced, by the name on the command line.
TABLES: dict[str, Callable[[Measurements], ReproducedTable]] = {
    "figure-1": figure,
    "factors": factors,
    "dimensions": dimensions,
    "branch-and-bound": branch_and_bound.comparison,
    "branch-and-bound-statistics": branch_and_bound.statistics,
    "branch-and-bound-by-dataset": _bb_by_dataset,
    "branch-and-bound-by-k": _bb_by_k,
    "d0": effect_of_d0,
    "delta": effect_of_delta,
    "chan": chan.comparison,
    "chan-statistics": chan.statistics,
    "chan-by-dataset": _chan_by_dataset,
    "chan-by-k": _chan_by_k,
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
