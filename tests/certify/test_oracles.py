"""Every proved optimum on the real data sets."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca.certify.path import certified_path
from blockspca.covariance.covariance import Covariance
from blockspca.status import Status

NAMES = [
    "ALLAML",
    "Arcene_train_valid",
    "BASEHOCK",
    "CovColon",
    "Eisen1Cov",
    "Eisen2Cov",
    "Leukemia",
    "Lymphoma2",
    "LymphomaCov1",
    "Prostate",
    "Prostate_GE",
    "Reddit2000",
    "alon_colon",
    "golub_raw",
    "gordon",
    "madelon",
    "normCommunities",
    "normMiniBooNE",
    "pitprops",
    "singh",
    "srbct_khan",
]


def load(folder: Path, name: str) -> Covariance:
    with np.load(folder / f"{name}.npz") as file:
        if "A" in file:
            return Covariance.from_matrix(file["A"].astype(float))
        if "X" in file:
            return Covariance.from_data(file["X"].astype(float))
    return Covariance.from_data(sp.load_npz(folder / f"{name}.npz").astype(float))


@pytest.fixture(scope="module")
def proved(oracle_dir: Path) -> dict[str, dict[int, float]]:
    table: dict[str, dict[int, float]] = defaultdict(dict)
    with open(oracle_dir / "proved_optima.csv", newline="") as file:
        for row in csv.DictReader(file):
            table[row["dataset"]][int(row["k"])] = float(row["objective"])
    return table


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_proved_optima(
    name: str, data_dir: Path, proved: dict[str, dict[int, float]]
) -> None:
    steps = certified_path(load(data_dir, name), max(proved[name]))
    for k, objective in proved[name].items():
        assert steps[k].status is Status.OPTIMAL
        assert steps[k].objective == pytest.approx(objective, rel=1e-9)


@pytest.mark.data
def test_large_k_to_one_percent(data_dir: Path) -> None:
    from blockspca.solvers.base import Limits

    steps = certified_path(load(data_dir, "Prostate"), 60, limits=Limits(gap=0.01))
    assert all(step.gap <= 0.01 for step in steps.values())
