"""Limits of groups and an overlap together, against every set that keeps both."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import blockspca as bs
import zoo
from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from proof_problems import Sets

MODES = ({"exact": True}, {"floats": True})


def allowed_sets(
    d: int, k: int, groups: np.ndarray, most: int, kept: list[int], least: int
) -> list[tuple[int, ...]]:
    return [
        chosen
        for chosen in itertools.combinations(range(d), k)
        if np.bincount(groups[list(chosen)]).max() <= most
        and len({*chosen} & {*kept}) >= least
    ]


@pytest.mark.parametrize("seed", range(120))
def test_against_every_set(seed: int) -> None:
    problem = zoo.problem(seed, 3, 10)
    rng = np.random.default_rng([seed, 7])
    A, d = problem.exact.astype(float), problem.d
    k = int(rng.integers(1, min(d, 6) + 1))
    kept = rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist()
    least = int(rng.integers(0, min(k, len(kept)) + 1))
    groups, most = rng.integers(0, 1 + seed % 4, size=d), int(rng.integers(1, 4))
    sets = allowed_sets(d, k, groups, most, kept, least)
    constraints = bs.Constraints(
        groups=groups, max_per_group=most, overlap_with=kept, min_overlap=least
    )
    if not sets:
        with pytest.raises(ValueError, match="leave room for"):
            bs.solve(problem.cov, k, constraints=constraints)
        return
    result = bs.solve(problem.cov, k, constraints=constraints)
    support = {*np.flatnonzero(result.x).tolist()}
    assert any(support <= {*chosen} for chosen in sets)
    best = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets)
    slack = 1e-12 * np.abs(A).max() + k * problem.cov.entry_error
    assert result.upper_bound >= best - slack
    if result.status is bs.Status.OPTIMAL:
        assert result.objective >= best - 1e-8 * abs(best) - slack
    bs.verify(result, problem.cov)
    certificate = result.certificate
    assert bs.Certificate.from_json(certificate.to_json()) == certificate


def sectors() -> tuple[np.ndarray, bs.Constraints]:
    """The best set breaks a limit with a feature from outside the overlap."""
    x = np.array([1.0, 1.0, 1.0, 1.0, 0.9, 0.9, 0.8, 0.8])
    A = np.outer(x, x) + 0.1 * np.eye(8)
    return A, bs.Constraints(
        groups={"a": [0, 1, 4], "b": [2, 3, 5]},
        max_per_group=1,
        overlap_with=[0, 2, 6],
        min_overlap=2,
    )


def test_a_set_that_breaks_a_limit_is_taken_apart() -> None:
    A, constraints = sectors()
    result = bs.solve(A, 3, constraints=constraints)
    assert result.support.tolist() == [0, 2, 6]
    assert result.status is bs.Status.OPTIMAL
    assert any(part.void for part in result.certificate.parts)
    assert result.price.least > 0


def test_a_part_that_is_missing_is_noticed() -> None:
    from dataclasses import replace

    A, constraints = sectors()
    certificate = bs.solve(A, 3, constraints=constraints).certificate
    kept = [p for p in certificate.parts if not p.void]
    assert len(kept) > 1
    for part in kept:
        parts = tuple(p for p in certificate.parts if p is not part)
        with pytest.raises(bs.VerificationError):
            bs.verify(replace(certificate, parts=parts), A)


@pytest.mark.parametrize("options", [{"certify": False}, {"limits": 0.0}, {}])
def test_a_strong_feature_does_not_take_the_room_that_the_overlap_needs(
    options: dict,
) -> None:
    constraints = bs.Constraints(
        groups=[0, 0, 1], max_per_group=1, overlap_with=[1], min_overlap=1
    )
    result = bs.solve(np.diag([3.0, 2.0, 1.0]), 2, constraints=constraints, **options)
    assert {*np.flatnonzero(result.x).tolist()} <= {1, 2}


def test_a_further_component_keeps_its_overlap_or_there_is_none() -> None:
    A = np.cov(np.random.default_rng(0).normal(size=(30, 8)).T)
    overlap = bs.Constraints(overlap_with=[0, 1, 2], min_overlap=2)
    with pytest.raises(ValueError, match="leave room for 2 of 3 features of a further"):
        bs.solve_components(A, 3, 2, scheme="disjoint", constraints=overlap)


def drawn(seed: int, kind: str) -> tuple[np.ndarray, bs.Covariance, int, dict] | None:
    """Data, k and constraints that some set keeps."""
    rng = np.random.default_rng([seed, 7])
    d = int(rng.integers(4, 11))
    X = rng.standard_normal((12, d)) @ rng.standard_normal((d, d))
    k = int(rng.integers(1, min(d, 6) + 1))
    kept = rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist()
    least = int(rng.integers(0, min(k, len(kept)) + 1))
    groups, most = rng.integers(0, 1 + seed % 4, size=d), int(rng.integers(1, 4))
    sets = allowed_sets(d, k, groups, most, kept, least)
    if not sets:
        return None
    given: dict = {"groups": groups, "max_per_group": most, "min_overlap": least}
    given |= {"overlap_with": kept}
    if seed % 3 == 0:
        given["include"] = [int(sets[seed % len(sets)][0])]
    Y = X if kind == "data" else np.cov(X.T)
    make = bs.Covariance.from_data if kind == "data" else bs.Covariance.from_matrix
    return Y, make(Y), k, given


@pytest.mark.parametrize("kind", ["matrix", "data"])
def test_proofs_hold_and_are_true(kind: str) -> None:
    """In floats and in integers, by all sets; nothing below the optimum holds."""
    apart = weaker = 0
    for seed in range(120):
        found = drawn(seed, kind)
        if found is None:
            continue
        Y, cov, k, given = found
        result = bs.solve(cov, k, constraints=bs.Constraints(**given), proof=True)
        text = result.proof.to_text().encode()
        header, *records, end = map(json.loads, text.splitlines())
        sets = Sets(header, Y)
        (claim,) = header["claims"]
        low, high = (float.fromhex(claim[x]) for x in ("objective", "upper_bound"))
        assert sets.allows(k, low, high)
        for mode in MODES:
            check_proof(text, Y, **mode)
        weaker += bool(result.proof.message)
        apart += len(result.certificate.parts) > 1
        assert bs.verify(result, cov, data=Y).complete
        forged = (low * (1 - 1e-7)).hex()
        claim |= {"upper_bound": forged, "objective": forged}
        if "level" in header:
            header["level"] = forged
        if records:
            records[-1]["upper"] = forged
        lines = [header, *records, end]
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for mode in MODES:
            with pytest.raises(ProofError):
                check_proof(text, Y, **mode)
    assert apart > 2
    assert weaker <= 3  # sets that nothing can be added to have more than the best


def test_proofs_where_a_set_breaks_a_limit() -> None:
    A, constraints = sectors()
    cov = bs.Covariance.from_matrix(A)
    result = bs.solve(cov, 3, constraints=constraints, proof=True)
    assert len(result.certificate.parts) > 1
    assert result.proof.message == ""
    checked = bs.verify(result, cov, data=A)
    assert any("replayed" in said for said in checked.checks)
    path = bs.solve_path(cov, 4, constraints=constraints, proof=True)
    found = bs.solve_components(
        cov, 3, 2, scheme=bs.ResidualDeflation(), constraints=constraints, proof=True
    )
    for proof in (path.proof, found.proof):
        for mode in MODES:
            check_proof(proof.to_text().encode(), A, **mode)


def test_components_and_path() -> None:
    A, constraints = sectors()
    components = bs.solve_components(
        A, 3, 2, scheme=bs.ResidualDeflation(), constraints=constraints
    )
    for result in components:
        held = {*np.flatnonzero(result.x).tolist()}
        assert len(held & {0, 1, 4}) <= 1
        assert len(held & {2, 3, 5}) <= 1
        assert len(held - {0, 2, 6}) <= 1
    path = bs.solve_path(A, 4, constraints=constraints)
    assert path[4].support.tolist()[:2] == [0, 2]
    with pytest.raises(ValueError, match="not offered for a shared set"):
        bs.solve_shared(A, 3, 2, constraints=constraints)
