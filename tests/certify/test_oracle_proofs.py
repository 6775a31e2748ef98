"""Proved optima on the real data sets, written down and checked in integers.

`benchmarks/proofs.py` has all sets, with times and sizes.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.checker.check import Verdict, check_proof, is_optimal

# Those whose exact check takes about a second, and the others; ALLAML takes a minute.
QUICK = (
    "pitprops",
    "normMiniBooNE",
    "normCommunities",
    "Eisen1Cov",
    "Eisen2Cov",
    "CovColon",
    "LymphomaCov1",
    "srbct_khan",
    "Leukemia",
    "Prostate",
    "Prostate_GE",
    "golub_raw",
    "Arcene_train_valid",
    "singh",
)
SLOW = (
    "Reddit2000",
    "madelon",
    "Lymphoma2",
    "BASEHOCK",
    "gordon",
    "alon_colon",
    "ALLAML",
)


def oracle(folder: Path, name: str) -> dict[int, float]:
    with open(folder / "proved_optima.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    return {int(row["k"]): float(row["objective"]) for row in rows}


def load(file: Path) -> bs.Covariance:
    with np.load(file) as archive:
        if "A" in archive:
            return bs.Covariance.from_matrix(archive["A"].astype(float))
        if "X" in archive:
            return bs.Covariance.from_data(archive["X"].astype(float))
    return bs.Covariance.from_data(sp.load_npz(file).astype(float))


def assert_proves_oracle(verdict: Verdict, expected: dict[int, float]) -> None:
    (section,) = verdict.sections
    claims = {claim.k: claim for claim in section.claims}
    for k, objective in expected.items():
        assert claims[k].objective == pytest.approx(objective, rel=1e-9)
        assert is_optimal(claims[k])


@pytest.mark.data
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_oracle_values_are_written_and_checked(
    name: str, data_dir: Path, oracle_dir: Path, tmp_path: Path
) -> None:
    file, expected = data_dir / f"{name}.npz", oracle(oracle_dir, name)
    path = bs.solve_path(load(file), max(expected), proof=True)
    proof = path.write_proof(tmp_path / "path.proof")
    assert_proves_oracle(check_proof(proof, file, exact=True), expected)
    assert path.proof is not None
    assert path.proof.message == ""


@pytest.mark.data
def test_one_k_is_written_and_checked(data_dir: Path, tmp_path: Path) -> None:
    file = data_dir / "Lymphoma2.npz"
    proof = bs.solve(load(file), 15, proof=True).write_proof(tmp_path / "one.proof")
    assert proof.stat().st_size < 8000
    verdict = check_proof(proof, file, floats=True)
    assert is_optimal(verdict.sections[0].claims[0])


@pytest.mark.data
def test_a_bound_that_magnifies_errors_is_checked_in_floats(
    data_dir: Path, tmp_path: Path
) -> None:
    """k = 20 of madelon: an error of A counts 2,500 times in one suffix bound."""
    file = data_dir / "madelon.npz"
    proof = bs.solve(load(file), 20, proof=True).write_proof(tmp_path / "one.proof")
    verdict = check_proof(proof, file, floats=True)
    assert is_optimal(verdict.sections[0].claims[0])


@pytest.mark.data
def test_a_tree_that_is_long_in_one_order_is_written_in_another(
    data_dir: Path, tmp_path: Path
) -> None:
    """k = 18 of Reddit2000: 50 nodes by variances, 20,000 and more by 2×2 bounds."""
    file = data_dir / "Reddit2000.npz"
    result = bs.solve(load(file), 20, proof=True)
    assert result.proof is not None
    assert result.proof.message == ""
    assert result.proof.nodes < 2000
    proof = result.write_proof(tmp_path / "one.proof")
    verdict = check_proof(proof, file, floats=True)
    assert is_optimal(verdict.sections[0].claims[0])


@pytest.mark.data
@pytest.mark.parametrize("k", [100, 200])
def test_large_k_is_written_and_checked(k: int, data_dir: Path, tmp_path: Path) -> None:
    file = data_dir / "Prostate.npz"
    result = bs.solve(load(file), k, proof=True)
    assert result.bound_name == "direction dual"
    proof = result.write_proof(tmp_path / "large.proof")
    verdict = check_proof(proof, file, floats=True)
    (claim,) = verdict.sections[0].claims
    assert is_optimal(claim)
    assert claim.upper_bound == result.upper_bound


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"), [("Prostate", "direction"), ("CovColon", "entry-tree")]
)
def test_large_k_is_checked_in_integers(
    name: str, rule: str, data_dir: Path, tmp_path: Path
) -> None:
    """Rounds of directions; and, of a matrix, a search by the entry dual instead."""
    file = data_dir / f"{name}.npz"
    result = bs.solve(load(file), 100, proof=True)
    assert result.bound_name == "direction dual"
    proof = result.write_proof(tmp_path / "large.proof")
    verdict = check_proof(proof, file, exact=True)
    assert verdict.sections[0].records[-1].rule == rule
    assert is_optimal(verdict.sections[0].claims[0])


@pytest.mark.data
@pytest.mark.slow
def test_hard_tree_is_checked_in_floats(
    data_dir: Path, oracle_dir: Path, tmp_path: Path
) -> None:
    file, expected = data_dir / "ALLAML.npz", oracle(oracle_dir, "ALLAML")
    path = bs.solve_path(load(file), 20, proof=True)
    proof = path.write_proof(tmp_path / "path.proof")
    assert_proves_oracle(check_proof(proof, file, floats=True), expected)
