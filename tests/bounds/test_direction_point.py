"""The point of the direction dual that proofs write down, against the format page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.direction_dual.point import RootProof
from blockspca.certify.proof_log import record_proof
from blockspca.certify.proof_records import DIRECTION_ROOM
from blockspca.limits import Deadline

Terms = tuple[float, np.ndarray, np.ndarray]


def terms_by_the_page(record: dict[str, Any], C: np.ndarray) -> Terms:
    """ρ, and unit vectors z_i with κ_i (0 where none is needed), in columns."""
    number = float.fromhex
    rho, rest = number(record["rho"]), number(record["rest"])
    weights = np.array([number(w) for w in record["weights"]])
    Q = np.array([[number(v) for v in q] for q in record["directions"]])
    Q = Q.reshape(len(weights), len(C))
    Z, kappa = np.zeros_like(C), np.zeros(C.shape[1])
    for i, c in enumerate(C.T):
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
        Z[:, i], kappa[i] = z / np.linalg.norm(z), rho * (a - rho) / room
    return rho, Z, kappa


def bound_by_the_page(record: dict[str, Any], C: np.ndarray, k: int) -> float:
    """kρ + λmax(M), with directions made as docs/proof-format.md says."""
    rho, Z, kappa = terms_by_the_page(record, C)
    return k * rho + float(np.linalg.eigvalsh((Z * kappa) @ Z.T)[-1])


def is_psd(A: np.ndarray) -> bool:
    return float(np.linalg.eigvalsh(A)[0]) >= -1e-12 * float(np.abs(A).max())


def assert_rounds_hold(record: dict[str, Any], C: np.ndarray, k: int) -> None:
    """Check every condition of rounds as the page says it, feature by feature."""
    tau, eye = float.fromhex(record["upper"]), np.eye(len(C))
    chosen, free = [], [*range(C.shape[1])]
    for step in record["rounds"]:
        m = k - len(chosen)
        rho, Z, kappa = terms_by_the_page(step, C[:, free])
        M = C[:, chosen] @ C[:, chosen].T + (Z * kappa) @ Z.T
        assert not set(step["in"]) & set(step["free"])
        for at, i in enumerate(free):
            own = kappa[at] * np.outer(Z[:, at], Z[:, at])
            if i in step["in"]:
                assert is_psd((tau - m * rho) * eye - M + own)
            elif i not in step["free"]:
                with_i = M - own + np.outer(C[:, i], C[:, i])
                assert is_psd((tau - (m - 1) * rho) * eye - with_i)
        chosen, free = chosen + step["in"], step["free"]
    m = k - len(chosen)
    if len(free) <= m:
        chosen, free, m = chosen + free, [], 0
    M, rho = C[:, chosen] @ C[:, chosen].T, 0.0
    if m:
        rho, Z, kappa = terms_by_the_page(record, C[:, free])
        M = M + (Z * kappa) @ Z.T
    assert is_psd((tau - m * rho) * eye - M)


@pytest.mark.parametrize(("scale", "k"), [(False, 6), (True, 9)])
def test_bound_is_that_of_the_page(scale, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(15, 60)) + 2 * rng.normal(size=(15, 1)) * (np.arange(60) < 12)
    cov = bs.Covariance.from_data(X, scale=scale)
    C = (X - X.mean(axis=0)) / np.sqrt(14)
    if scale:
        C /= np.linalg.norm(C, axis=0)
    start = np.arange(k)
    point = RootProof(cov, k, start, Deadline(None)).point(-np.inf)
    found = bound_by_the_page(point.to_dict(), C, k)
    assert found == pytest.approx(point.value, rel=1e-9)
    assert point.value >= found
    best = bs.solve(cov, k).objective
    assert best <= point.value <= 1.3 * best


def test_point_of_a_matrix_or_of_a_formed_one_is_none():
    deadline = Deadline(None)
    A = bs.Covariance.from_matrix(np.diag([3.0, 2.0, 1.0]))
    assert RootProof(A, 2, [0, 1], deadline).point(0.0) is None
    X = np.random.default_rng(0).normal(size=(40, 5))
    cov = bs.Covariance.from_data(X)
    assert RootProof(cov, 2, [0, 1], deadline).point(0.0) is None
    assert RootProof(cov.formed(), 2, [0, 1], deadline).point(0.0) is None


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


def test_rounds_leave_one_set():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20, 90)) * np.linspace(1.5, 0.7, 90)
    X += 2 * rng.normal(size=(20, 1)) * (np.arange(90) < 30)
    cov, k = bs.Covariance.from_data(X), 25
    best = bs.solve(cov, k)
    found = RootProof(cov, k, best.support, Deadline(None)).rounds(best.upper_bound)
    assert found is not None
    rounds, last = found
    assert rounds
    record = {**last.to_dict(), "rounds": [step.to_dict() for step in rounds]}
    record["upper"] = best.upper_bound.hex()
    C = (X - X.mean(axis=0)) / np.sqrt(19)
    assert_rounds_hold(record, C, k)
    # a bound below the optimum is not proved by the same rounds
    record["upper"] = (best.objective * (1 - 1e-6)).hex()
    with pytest.raises(AssertionError):
        assert_rounds_hold(record, C, k)


def test_rounds_do_not_prove_what_is_false():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(12, 30)) + rng.normal(size=(12, 1)) * (np.arange(30) < 9)
    cov, k = bs.Covariance.from_data(X), 6
    best = bs.solve(cov, k)
    below = best.objective * (1 - 1e-4)
    assert RootProof(cov, k, best.support, Deadline(None)).rounds(below) is None
