"""Proofs of bounds by compositions: written, checked, true, and nothing below them."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.bounds import compositions
from blockspca.bounds.compositions import Compositions, parts_above
from blockspca.certify import composition_records
from blockspca.certify.composition_records import CompositionWriter, records_by_counts
from blockspca.certify.proof_log import record_proof
from blockspca.certify.refusals import TreeLimits
from blockspca.checker.check import check_proof, is_optimal
from blockspca.checker.fields import ProofError
from blockspca.limits import Budget, Limits
from blockspca.numerics.rounding import power_of_two
from proof_builder import as_bytes, describe

MODES = ({"exact": True}, {"floats": True})


def best(A: np.ndarray, k: int) -> tuple[float, tuple[int, ...]]:
    sets = itertools.combinations(range(len(A)), k)
    return max((float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]), S) for S in sets)


def small_problem(seed: int) -> tuple[np.ndarray, int]:
    """Parts, and features in none of them, some with a large variance."""
    rng = np.random.default_rng(seed)
    own = zoo.modules([4, 4, 3], seed)
    d = len(own) + int(rng.integers(0, 4))
    A = 0.02 * rng.standard_normal((d, d))
    A = (A + A.T) / 2
    np.fill_diagonal(A, rng.choice([0.3, 0.9], size=d))
    A[: len(own), : len(own)] = own
    order = rng.permutation(d)
    return A[np.ix_(order, order)], int(rng.integers(3, 7))


def lines_of(
    A: np.ndarray, found: tuple[float, tuple[int, ...]], record: dict, tau: float
) -> list[dict]:
    value, S = found
    k = len(S)
    x = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -1]
    claim = {"k": k, "support": list(S), "x": [float(y).hex() for y in x]}
    claim |= {"objective": (value - 1e-9).hex(), "upper_bound": (tau + 1e-9).hex()}
    header = {"format": "blockspca-proof", "version": 9, "data": describe(A)}
    header |= {"row_list": k - 1, "claims": [claim]}
    return [header, {"k": k, "upper": tau.hex(), **record}, {"end": 1}]


@pytest.mark.parametrize("all_listed", [200, 0])
def test_records_of_small_problems_hold(all_listed: int, monkeypatch) -> None:
    """With the features of a case screened, or all of them listed."""
    monkeypatch.setattr(composition_records, "_ALL", all_listed)
    written = cases = dropped = 0
    for seed in range(40):
        A, k = small_problem(seed)
        cov = bs.Covariance.from_matrix(A)
        parts = parts_above(cov, 0.1)
        table = Compositions(cov, k, parts, 0.1, power_of_two(1.0))
        value, _ = found = best(A, k)
        tau = value * (1 + [1e-8, 0.02][seed % 2])
        limits = TreeLimits(1000, Budget())
        writer = CompositionWriter(table, np.full(k + 1, np.inf), limits)
        record = writer.record(k, tau)
        # nothing is written for what is not so
        assert writer.record(k, value * (1 - 1e-7)) is None
        if record is None:
            continue
        written += 1
        cases += len(record["cases"])
        listed = {i for case in record["cases"] for i in case["features"]}
        dropped += len(listed) < len(A)
        text = as_bytes(lines_of(A, found, record, tau))
        forged = as_bytes(lines_of(A, found, record, value * (1 - 1e-7)))
        for mode in MODES:
            check_proof(text, A, **mode)
            with pytest.raises(ProofError):
                check_proof(forged, A, **mode)
    assert written > 30
    assert cases > 30
    assert dropped > 10


def data_of(kind: str) -> tuple[np.ndarray, bs.Covariance]:
    A = zoo.modules([24, 24, 24, 24])
    if kind == "matrix":
        return A, bs.Covariance.from_matrix(A)
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(96), A, size=3000)
    X = np.concatenate([X, 0.5 * rng.standard_normal((3000, 9))], axis=1)
    return X, bs.Covariance.from_data(X)


@pytest.mark.parametrize("kind", ["matrix", "data"])
def test_a_solve_is_written_and_replayed(kind: str) -> None:
    Y, cov = data_of(kind)
    result = bs.solve(cov, 30, proof=True)
    assert result.bound_name == BoundName.COMPOSITIONS
    assert result.proof.message == ""
    text = result.proof.to_text().encode()
    *_, record, _ = map(json.loads, text.splitlines())
    assert record["rule"] == "compositions"
    for mode in MODES:
        (section,) = check_proof(text, Y, **mode).sections
        assert is_optimal(section.claims[0])
    assert any("replayed" in said for said in bs.verify(result, cov, data=Y).checks)


@pytest.mark.filterwarnings("error")
def test_nothing_is_written_from_a_table_that_says_nothing(monkeypatch) -> None:
    """Entries are out of range in units: there is no bound, and so no record."""
    A, cov = data_of("matrix")
    result = bs.solve(cov, 30)
    assert result.bound_name == BoundName.COMPOSITIONS
    (dual,) = (step.dual for step in result.certificate.steps if step.dual)
    unit, upper = power_of_two(1.0), np.full(31, np.inf)
    target = result.upper_bound / unit
    limits = TreeLimits(1000, Budget())
    assert records_by_counts(cov, 30, target, dual, unit, upper, limits)[0]
    monkeypatch.setattr(compositions, "_LARGEST", 0.01)
    assert records_by_counts(cov, 30, target, dual, unit, upper, limits) == ({}, 0)
    proof = record_proof(cov, [result])
    assert proof.message.startswith("k = 30: the proof shows at most")
    check_proof(proof.to_text().encode(), A)


def test_features_keep_their_numbers() -> None:
    A, _ = data_of("matrix")
    wider = np.pad(A, ((2, 0), (2, 0)))
    constraints = bs.Constraints(exclude=[0, 1])
    result = bs.solve(wider, 30, constraints=constraints, proof=True)
    text = result.proof.to_text().encode()
    *_, record, _ = map(json.loads, text.splitlines())
    assert record["rule"] == "compositions"
    assert [part[0] for part in record["parts"]] == [2, 26, 50, 74]
    for mode in MODES:
        check_proof(text, wider, **mode)


def test_without_nodes_a_weaker_bound_is_written() -> None:
    A, cov = data_of("matrix")
    result = bs.solve(cov, 30)
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    assert proof.message.startswith("k = 30: the proof shows at most")
    check_proof(proof.to_text().encode(), A)
    for limits in (Limits(time=0.0), Limits(memory=1)):
        with_nothing = record_proof(cov, [result], Budget(limits))
        check_proof(with_nothing.to_text().encode(), A)
