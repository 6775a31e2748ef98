"""The point of the direction dual that proofs write down, against the format page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.direction_dual.point import direction_point
from blockspca.certify.proof_log import DIRECTION_ROOM, record_proof
from blockspca.limits import Deadline


def bound_by_the_page(record: dict[str, Any], C: np.ndarray, k: int) -> float:
    """kρ + λmax(M), with directions made as docs/proof-format.md says."""
    number = float.fromhex
    rho, rest = number(record["rho"]), number(record["rest"])
    weights = np.array([number(w) for w in record["weights"]])
    Q = np.array([[number(v) for v in q] for q in record["directions"]])
    M = np.zeros((len(C), len(C)))
    for c in C.T:
        a = c @ c
        if a <= rho:
            continue
        g = Q @ c
        w, squares = np.append(weights, rest), np.append(g**2, max(0.0, a - g @ g))
        low, high = 0.0, w.max() * a
        for _ in range(200):
            mu = (low + high) / 2
            above = (w * squares / (mu + rho * w)).sum() > 1
            low, high = (mu, high) if above else (low, mu)
        z = c + (g * ((mu + rho * rest) / (mu + rho * weights) - 1)) @ Q
        room = rho - a + (c @ z) ** 2 / (z @ z)
        if room <= 1e-7 * rho:
            z, room = c, rho
        M += rho * (a - rho) / room * np.outer(z, z) / (z @ z)
    return k * rho + float(np.linalg.eigvalsh(M)[-1])


@pytest.mark.parametrize(("scale", "k"), [(False, 6), (True, 9)])
def test_bound_is_that_of_the_page(scale, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(15, 60)) + 2 * rng.normal(size=(15, 1)) * (np.arange(60) < 12)
    cov = bs.Covariance.from_data(X, scale=scale)
    C = (X - X.mean(axis=0)) / np.sqrt(14)
    if scale:
        C /= np.linalg.norm(C, axis=0)
    start = np.arange(k)
    point = direction_point(cov, k, start, -np.inf, Deadline(None))
    found = bound_by_the_page(point.to_record(), C, k)
    assert found == pytest.approx(point.value, rel=1e-9)
    assert point.value >= found
    best = bs.solve(cov, k).objective
    assert best <= point.value <= 1.3 * best


def test_point_of_a_matrix_or_of_a_formed_one_is_none():
    deadline = Deadline(None)
    A = bs.Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    assert direction_point(A, 2, [0, 1], 0.0, deadline) is None
    X = np.random.default_rng(0).normal(size=(40, 5))
    cov = bs.Covariance.from_data(X)
    assert direction_point(cov, 2, [0, 1], 0.0, deadline) is None
    assert direction_point(cov.formed(), 2, [0, 1], 0.0, deadline) is None


def test_proof_of_one_large_k_needs_no_chain():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 300)) + 3 * rng.normal(size=(20, 1)) * (
        np.arange(300) < 90
    )
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 60, limits=bs.Limits(gap=0.05))
    assert result.bound_name == "direction dual"
    (section,) = record_proof(cov, [result]).sections
    assert section.header["version"] == 3
    assert [record["rule"] for record in section.records] == ["direction"]
    (record,) = section.records
    C = (X - X.mean(axis=0)) / np.sqrt(19)
    found = bound_by_the_page(record, C, 60)
    upper = float.fromhex(record["upper"])
    assert found < upper <= found * (1 + 2 * DIRECTION_ROOM)
    claim = section.header["claims"][0]
    assert float.fromhex(claim["upper_bound"]) <= 1.05 * result.objective
