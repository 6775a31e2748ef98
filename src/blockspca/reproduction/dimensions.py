"""Dimensions and shares of non-zero entries of the paper's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..datasets.catalogue import PAPER_SETS
from .measurements import COUNTED_BY_TILES, Measurements, zero_share
from .printed_values import Verdict, match, printed_rows
from .rows import missing_notes
from .table import ReproducedTable, make_table

NAME = "dimensions"


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
    if cov.n_features <= COUNTED_BY_TILES:
        share, reason = 1 - zero_share(cov, 0.0), "counted"
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
