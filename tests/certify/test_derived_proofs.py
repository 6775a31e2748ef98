"""Proofs of constrained and of deflated components, written, checked and true."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify.proof_log import record_proof
from blockspca.checker.check import check_proof, is_optimal
from blockspca.checker.fields import ProofError
from blockspca.checker.proof_file import read_proof
from blockspca.limits import Budget, Limits
from blockspca.status import OPTIMAL_GAP
from proof_problems import Sets

MODES = ({"exact": True}, {"floats": True})
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2]
CONSTRAINTS = {
    "include": bs.Constraints(include=[1, 4]),
    "exclude": bs.Constraints(exclude=[0, 2]),
    "both": bs.Constraints(include=[5], exclude=[0]),
    "groups": bs.Constraints(groups=LABELS, max_per_group=1),
    "full group": bs.Constraints(include=[0], groups=LABELS, max_per_group=1),
    "two of a group": bs.Constraints(include=[3, 4], groups=LABELS, max_per_group=2),
    "overlap": bs.Constraints(overlap_with=[6, 7, 8], min_overlap=2),
    "all places": bs.Constraints(include=[0, 3, 8]),
    "signs": bs.Constraints(nonnegative=True),
    "signs and groups": bs.Constraints(
        nonnegative=True, groups=LABELS, max_per_group=1
    ),
    "signs and include": bs.Constraints(nonnegative=True, include=[2]),
}
SCHEMES = (
    bs.ResidualDeflation(),
    bs.ResidualDeflation(disjoint=True),
    bs.ProjectionDeflation(),
    bs.HotellingDeflation(),
)
#: A search under conditions, or a bound by an earlier component, may say more.
CONDITIONED = (bs.Orthogonalised(), bs.UncorrelatedScores())


def data_of(kind: str, seed: int = 0) -> tuple[np.ndarray, bs.Covariance]:
    rng = np.random.default_rng(seed)
    X = (
        rng.standard_normal((12, 9))
        @ rng.standard_normal((9, 9))
        * rng.gamma(2.0, size=9)
    )
    if kind == "matrix":
        A = np.cov(X.T)
        return A, bs.Covariance.from_matrix(A)
    return X, bs.Covariance.from_data(X, scale=kind == "scaled")


def assert_true(text: bytes, Y: np.ndarray) -> None:
    """Every claim of every section is true, by all sets, in fractions."""
    lines = [json.loads(line) for line in text.decode().splitlines()]
    for header in (line for line in lines if "claims" in line):
        truth = Sets(header, Y)
        for claim in header["claims"]:
            low, high = (float.fromhex(claim[x]) for x in ("objective", "upper_bound"))
            assert truth.allows(claim["k"], low, high)


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_proofs_under_constraints_hold(name, kind):
    Y, cov = data_of(kind)
    constraints = CONSTRAINTS[name]
    result = bs.solve(cov, 3, constraints=constraints, proof=True)
    text = result.proof.to_text().encode()
    for mode in MODES:
        (section,) = check_proof(text, Y, **mode).sections
        assert is_optimal(section.claims[0]) == (not result.proof.message)
    assert_true(text, Y)
    assert section.problem.constraints.include == tuple(constraints.include)
    assert section.claims[0].support == tuple(result.support)
    assert result.proof.message == ""
    checked = bs.verify(result, cov, data=Y)
    assert checked.complete
    # the level of a single set is a little above its bound
    is_replayed = name != "all places"
    assert any("replayed" in said for said in checked.checks) == is_replayed


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
def test_signs_that_are_taken_apart_are_proved_by_one_tree(kind):
    """In floats and in integers, by all sets; a bound below the optimum is refused."""
    apart = 0
    for seed in range(12):
        Y, cov = data_of(kind, seed)
        more = ({}, {"include": [2]}, {"groups": LABELS, "max_per_group": 2})[seed % 3]
        rules = bs.Constraints(nonnegative=True, **more)
        result = bs.solve(cov, 4, constraints=rules, proof=True)
        assert result.proof.message == ""
        text = result.proof.to_text().encode()
        for mode in MODES:
            (section,) = check_proof(text, Y, **mode).sections
        assert is_optimal(section.claims[0])
        assert_true(text, Y)
        assert bs.verify(result, cov, data=Y).complete
        parts = len(result.certificate.parts)
        apart += parts > 1
        lines = [json.loads(line) for line in text.decode().splitlines()]
        low = float.fromhex(lines[0]["claims"][0]["objective"]) * (1 - 1e-7)
        lines[0]["claims"][0] |= {"upper_bound": low.hex(), "objective": low.hex()}
        lines[-2]["upper"] = low.hex()
        forged = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for mode in MODES:
            with pytest.raises(ProofError):
                check_proof(forged, Y, **mode)
    assert apart > 0


def test_signs_that_take_too_many_nodes_have_a_weaker_bound():
    Y, cov = data_of("matrix", 0)
    rules = bs.Constraints(nonnegative=True)
    result = bs.solve(cov, 4, constraints=rules)
    assert len(result.certificate.parts) > 1
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    assert proof.message.startswith("k = 4: the proof shows at most")
    for mode in MODES:
        check_proof(proof.to_text().encode(), Y, **mode)
    assert_true(proof.to_text().encode(), Y)


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_proofs_of_components_hold(scheme, kind):
    Y, cov = data_of(kind)
    found = bs.solve_components(cov, 3, 3, scheme=scheme, proof=True)
    assert found.proof.message == ""
    text = found.proof.to_text().encode()
    for mode in MODES:
        sections = check_proof(text, Y, **mode).sections
        assert all(is_optimal(section.claims[0]) for section in sections)
    assert_true(text, Y)
    assert [len(section.problem.vectors) for section in sections] == [0, 1, 2]
    for j, section in enumerate(sections):
        for vector, result in zip(section.problem.vectors, found.results, strict=False):
            assert vector.support == tuple(np.flatnonzero(result.x))
            assert vector.x == tuple(result.x[list(vector.support)])
        value = section.claims[0].objective
        assert value == pytest.approx(found.results[j].objective, rel=1e-9)
    checks = found.verify(cov, data=Y)
    assert all(check.complete for check in checks)
    assert all("replayed" in " ".join(check.checks) for check in checks)
    # a proof of other components is left, and the certificates are checked
    other = bs.solve_components(cov, 3, 3, scheme=bs.DisjointSupports(), proof=True)
    forged = replace(found, proof=other.proof)
    told = [
        "replayed" in " ".join(check.checks) for check in forged.verify(cov, data=Y)
    ]
    assert not any(told[1:])
    shorter = replace(found.proof, sections=found.proof.sections[:1])
    told = replace(found, proof=shorter).verify(cov, data=Y)
    assert ["replayed" in " ".join(check.checks) for check in told] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("scheme", [*SCHEMES, bs.DisjointSupports()], ids=str)
def test_components_that_were_swept_are_about_all_others(scheme):
    Y, cov = data_of("data", seed=7)
    found = bs.solve_components(cov, 2, 3, scheme=scheme, sweeps=3, proof=True)
    text = found.proof.to_text().encode()
    for mode in MODES:
        sections = check_proof(text, Y, **mode).sections
    assert_true(text, Y)
    for j, section in enumerate(sections):
        # a sweep keeps what makes the whole set better, and says so
        best = found.results[j].status is bs.Status.OPTIMAL
        assert is_optimal(section.claims[0]) == best
        assert section.claims[0].support == tuple(found.supports[j])
        others = [tuple(s) for i, s in enumerate(found.supports) if i != j]
        if isinstance(scheme, bs.DisjointSupports):
            assert section.problem.without == tuple(sorted(sum(others, ())))
        else:
            assert [vector.support for vector in section.problem.vectors] == others


def test_components_under_constraints_have_both():
    Y, cov = data_of("data")
    constraints = bs.Constraints(groups=LABELS, max_per_group=1)
    for scheme in (bs.ResidualDeflation(), bs.DisjointSupports()):
        found = bs.solve_components(
            cov, 2, 3, scheme=scheme, constraints=constraints, proof=True
        )
        text = found.proof.to_text().encode()
        for mode in MODES:
            sections = check_proof(text, Y, **mode).sections
        assert_true(text, Y)
        assert all(is_optimal(section.claims[0]) for section in sections)
        assert all(section.problem.constraints.groups for section in sections)


def test_a_path_under_constraints_has_a_section_for_all_k_where_it_can():
    Y, cov = data_of("data")
    for name, sections in (("groups", 1), ("exclude", 1), ("include", 2)):
        path = bs.solve_path(cov, 3, constraints=CONSTRAINTS[name], proof=True)
        text = path.proof.to_text().encode()
        for mode in MODES:
            verdict = check_proof(text, Y, **mode)
        assert len(verdict.sections) == sections
        assert_true(text, Y)
        claims = [claim for section in verdict.sections for claim in section.claims]
        assert [claim.k for claim in claims] == list(path)
        assert all(map(is_optimal, claims))


def test_scores_that_depend_on_others_are_left_out():
    """Two components of one feature each, which are the same feature twice."""
    X = np.random.default_rng(0).standard_normal((10, 4)) * [4, 3, 2, 1]
    X[:, 1] = X[:, 0]
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(
        cov, 1, 3, scheme=bs.ResidualDeflation(disjoint=True), proof=True
    )
    text = found.proof.to_text().encode()
    for mode in MODES:
        check_proof(text, X, **mode)


def test_an_interrupted_run_records_the_bound_that_it_has():
    Y, cov = data_of("data")
    for name in ("include", "groups", "signs"):
        result = bs.solve(
            cov, 3, constraints=CONSTRAINTS[name], limits=Limits(nodes=1), proof=True
        )
        text = result.proof.to_text().encode()
        check_proof(text, Y)
        assert_true(text, Y)


def test_a_proof_of_other_constraints_is_not_replayed():
    Y, cov = data_of("data")
    one = bs.solve(cov, 3, constraints=CONSTRAINTS["groups"], proof=True)
    other = bs.solve(cov, 3, constraints=CONSTRAINTS["include"])
    forged = replace(other, proof=one.proof)
    assert not any("replayed" in said for said in bs.verify(forged, cov, data=Y).checks)
    free = replace(bs.solve(cov, 3), proof=one.proof)
    assert not any("replayed" in said for said in bs.verify(free, cov, data=Y).checks)


def test_no_claim_of_a_constrained_proof_can_be_lowered():
    """The bound, and all records with it, below the optimum: refused."""
    Y, cov = data_of("data")
    for name in ("include", "groups", "all places"):
        result = bs.solve(cov, 3, constraints=CONSTRAINTS[name], proof=True)
        lines = [json.loads(line) for line in result.proof.to_text().splitlines()]
        low = (result.objective * (1 - 1e-9)).hex()
        lines[0]["claims"][0]["upper_bound"] = low
        if "level" in lines[0]:
            lines[0]["level"] = low
        if len(lines) > 2:
            lines[-2]["upper"] = low
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for mode in MODES:
            with pytest.raises(ProofError):
                check_proof(text, Y, **mode)


def test_without_time_there_is_nothing_to_record_of_a_constrained_result():
    Y, cov = data_of("data")
    result = bs.solve(cov, 3, constraints=CONSTRAINTS["include"])
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    section = read_proof(proof.to_text().encode())[0]
    assert section.claims[0].upper_bound >= result.objective
    check_proof(proof.to_text().encode(), Y)


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
@pytest.mark.parametrize("scheme", CONDITIONED, ids=lambda one: type(one).__name__)
def test_proofs_of_components_under_conditions_bound_them(scheme, kind):
    """By the matrix without the conditions: optimal, or said to be weaker."""
    most = 1e-3 if isinstance(scheme, bs.Orthogonalised) else 0.1
    for seed in range(2):
        Y, cov = data_of(kind, seed)
        found = bs.solve_components(cov, 4, 3, scheme=scheme, proof=True)
        text = found.proof.to_text().encode()
        for mode in MODES:
            sections = check_proof(text, Y, **mode).sections
        assert_true(text, Y)
        assert [len(section.problem.vectors) for section in sections] == [0, 1, 2]
        for section, result in zip(sections, found.results, strict=True):
            (claim,) = section.claims
            assert claim.objective == pytest.approx(result.objective, rel=1e-8)
            assert claim.upper_bound >= result.upper_bound * (1 - 1e-12)
            if claim.upper_bound > result.upper_bound * (1 + OPTIMAL_GAP):
                assert f"says {result.upper_bound:.6g} by" in found.proof.message
            assert claim.upper_bound < result.upper_bound * (1 + most)
        checks = found.verify(cov, data=Y)
        assert all(check.complete for check in checks)


def test_a_bound_under_conditions_is_that_of_all_orthogonal_vectors():
    """Of every set and any penalty, by brute force on the null space."""
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((8, 5))
    cov = bs.Covariance.from_data(Y)
    found = bs.solve_components(cov, 3, 2, scheme=bs.Orthogonalised(), proof=True)
    A, v = np.cov(Y.T), found.results[0].x
    best = 0.0
    for S in itertools.combinations(range(5), 3):
        null = np.linalg.svd(v[list(S)][None])[2][int(v[list(S)].any()) :].T
        within = null.T @ A[np.ix_(S, S)] @ null
        best = max(best, float(np.linalg.eigvalsh(within)[-1]))
    (claim,) = read_proof(found.proof.to_text().encode())[1].claims
    assert best <= claim.upper_bound * (1 + 1e-12)
    assert claim.objective <= best * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
def test_proofs_of_whole_groups_hold(kind):
    """Each is optimal, true by all sets, and a bound below the optimum is refused."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Y, cov = data_of(kind, seed)
        labels = rng.integers(0, 4, 9).tolist()
        more = ({}, {"include": [0]}, {"exclude": [8]})[seed % 3]
        if labels[0] == labels[8]:
            more = {}
        rules = bs.Constraints(groups=labels, whole_groups=True, **more)
        k = int(rng.integers(max(np.bincount(labels)), 10))
        result = bs.solve(cov, k, constraints=rules, proof=True)
        assert result.proof.message == ""
        text = result.proof.to_text().encode()
        for mode in MODES:
            (section,) = check_proof(text, Y, **mode).sections
        assert is_optimal(section.claims[0])
        assert_true(text, Y)
        assert bs.verify(result, cov, data=Y).complete
        lines = [json.loads(line) for line in text.decode().splitlines()]
        low = float.fromhex(lines[0]["claims"][0]["objective"]) * (1 - 1e-6)
        lines[0]["claims"][0] |= {"upper_bound": low.hex(), "objective": low.hex()}
        lines[1]["upper"] = low.hex()
        forged = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for mode in MODES:
            with pytest.raises(ProofError):
                check_proof(forged, Y, **mode)


def test_whole_groups_that_take_too_many_nodes_have_a_weaker_bound():
    Y, cov = data_of("data", 2)
    rules = bs.Constraints(groups=LABELS, whole_groups=True)
    result = bs.solve(cov, 6, constraints=rules)
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    assert proof.message.startswith("k = 6: the proof shows at most")
    check_proof(proof.to_text().encode(), Y, exact=True)
    # and what no k features of all can have is said where k is more than there are
    rules = bs.Constraints(groups=LABELS, whole_groups=True, exclude=[0, 1, 2])
    result = bs.solve(cov, 8, constraints=rules)
    proof = record_proof(cov, [result], Budget(Limits(nodes=1)))
    check_proof(proof.to_text().encode(), Y, exact=True)
    assert_true(proof.to_text().encode(), Y)


def test_a_path_and_components_of_whole_groups_can_be_written():
    Y, cov = data_of("data", 4)
    rules = bs.Constraints(groups=LABELS, whole_groups=True)
    path = bs.solve_path(cov, 6, constraints=rules, proof=True)
    found = bs.solve_components(cov, 3, 2, constraints=rules, proof=True)
    for proof in (path.proof, found.proof):
        for mode in MODES:
            check_proof(proof.to_text().encode(), Y, **mode)
        assert_true(proof.to_text().encode(), Y)


@pytest.mark.parametrize("seed", range(4))
def test_proofs_hold_where_errors_of_entries_are_large_beside_what_is_left(seed):
    """1e-12 of the variance is left: records of computed entries were refused."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(20, 3))
    Y[:, 2] = Y[:, 1] + 1e-6 * Y[:, 2]
    wide = Y @ rng.normal(size=(3, 6)) + 1e-7 * rng.normal(size=(20, 6))
    for data, k, m in ((Y, 1, 3), (wide, 2, 4)):
        cov = bs.Covariance.from_data(data)
        found = bs.solve_components(cov, k, m, scheme="residual", proof=True)
        text = found.proof.to_text().encode()
        for mode in MODES:
            sections = check_proof(text, data, **mode).sections
        assert_true(text, data)
        for section, result in zip(sections, found.results, strict=True):
            if section.claims[0].upper_bound > result.upper_bound * (1 + 1e-8):
                assert f"says {result.upper_bound:.6g} by" in found.proof.message
