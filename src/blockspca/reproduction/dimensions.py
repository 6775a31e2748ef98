"""Dimensions and shares of non-zero entries of the paper's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..covariance.covariance import Covariance
from ..datasets.paper_sets import PAPER_SETS
from .measurements import Measurements
from .printed_values import Verdict, match, printed_rows
from .rows import missing_notes
from .table import ReproducedTable, make_table

NAME = "dimensions"
LARGEST_COUNTED = 25_000  # features for which all entries are looked at


def dimensions(measurements: Measurements) -> ReproducedTable:
    """Count the features and the entries that are not zero."""
    rows = (_row(measurements, printed) for printed in printed_rows(NAME))
    return make_table(NAME, rows, notes=missing_notes(measurements, NAME))


def _row(measurements: Measurements, printed: dict[str, str]) -> dict[str, Any]:
    chosen = PAPER_SETS[printed["dataset"]]
    row: dict[str, Any] = {
        "dataset": chosen.name,
        "paper_d": printed["d"],
        "paper_nonzero": printed["nonzero"],
        "verdict": Verdict.NO_DATA,
    }
    if not measurements.is_present(chosen):
        return row
    measurements.settings.tell(f"{chosen.name}: entries that are not zero")
    cov = measurements.covariance(chosen)
    if cov.n_features <= LARGEST_COUNTED:
        share, reason = nonzero_share(cov), "counted"
    else:
        share = np.count_nonzero(cov.diagonal() > 0) / cov.n_features
        share, reason = share**2, "the square of the share of features that vary"
    verdict = match(printed["nonzero"], 100 * share)
    if str(cov.n_features) != printed["d"]:
        verdict = Verdict.OTHER
    elif verdict is Verdict.OTHER and chosen.name == "Reddit2000":
        verdict, reason = Verdict.SWAPPED, "counted; see the note"
    return row | {
        "d": cov.n_features,
        "nonzero": 100 * share,
        "verdict": verdict,
        "reason": reason,
    }


def nonzero_share(cov: Covariance) -> float:
    """Return the share of entries that are not zero."""
    count = 0
    for i0, _, j0, _, tile in cov.tiles():
        found = int(np.count_nonzero(tile))
        count += found if i0 == j0 else 2 * found
    return count / cov.n_features**2
