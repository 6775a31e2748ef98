"""Rule "entry-tree": what is right is accepted, and nothing that is false."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import proof_mutations
from blockspca.checker.check import check_proof
from blockspca.checker.entry_tree import EntryTree
from blockspca.checker.fields import ProofError
from proof_builder import Json, Truth, as_bytes, describe, entry_tree_proof, sha256
from proof_builder import random_problem as problem

MODES = ({"floats": True}, {"exact": True})
SEEDS = range(7, 103, 8)  # those of this rule in `proof_mutations`


def proof_of(seed: int, d: int = 6) -> tuple[list[Json], np.ndarray]:
    rng = np.random.default_rng(seed)
    Y, data = problem(rng, d)
    return entry_tree_proof(Y, data, int(rng.integers(1, 5)), rng), Y


def test_searches_of_another_writer_hold():
    """All kinds of nodes occur; a lower bound does not hold."""
    kinds = set()
    for seed in range(30):
        lines, Y = proof_of(seed)
        for mode in MODES:
            check_proof(as_bytes(lines), Y, **mode)
        kinds |= {key for node in lines[1]["nodes"] for key in node if node[key]}
        claim = lines[0]["claims"][0]
        numbers = [float.fromhex(claim[key]) for key in ("objective", "upper_bound")]
        assert Truth(Y, lines[0]["data"]).allows(claim["k"], *numbers)
        for line, key in ((lines[1], "upper"), (claim, "upper_bound")):
            value = float.fromhex(line[key])
            line[key] = (value - abs(value) * 0.06).hex()  # below the optimum
        for mode in MODES:
            with pytest.raises(ProofError, match="k = "):
                check_proof(as_bytes(lines), Y, **mode)
    assert kinds >= {"close", "last", "split", "fix", "out", "in"}


def test_nodes_are_counted():
    lines, Y = proof_of(0)
    for mode in MODES:
        assert check_proof(as_bytes(lines), Y, **mode).nodes == len(lines[1]["nodes"])


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_mutants_with_false_claims_are_refused(mode, monkeypatch):
    monkeypatch.setattr(proof_mutations, "MODES", (mode,))
    accepted, wrong = 0, []
    for seed in SEEDS:
        more, false = proof_mutations.judge(seed, 30)
        accepted, wrong = accepted + more, wrong + false
    assert wrong == []
    assert accepted > 20


@pytest.mark.parametrize("name", ["close", "last", "check_out", "check_in"])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_checker_that_leaves_out_a_step_is_found(mode, name, monkeypatch):
    monkeypatch.setattr(proof_mutations, "MODES", (mode,))
    monkeypatch.setattr(EntryTree, name, lambda *given: None)
    assert any(proof_mutations.judge(seed, 30)[1] for seed in range(7, 1607, 8))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_bounds_within_ulps_of_the_optimum(mode):
    """One set is left, or a point closes: with less than the optimum neither holds."""
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(150):
        B = rng.integers(-3, 4, (4, 4)).astype(float)
        Y = B + B.T
        value = float(np.linalg.eigvalsh(Y)[-1])
        upper = value + abs(value) * float(rng.choice([-1, 0, 1, 3])) * 2.0**-50
        lines = entry_tree_proof(Y, describe(Y), 4, rng)
        lines[1] |= {"upper": upper.hex(), "nodes": [{"last": True}]}
        low = upper - abs(upper) - 1.0
        lines[0]["claims"][0] |= {"objective": low.hex(), "upper_bound": upper.hex()}
        true = Truth(Y, lines[0]["data"]).allows(4, low, upper)
        try:
            check_proof(as_bytes(lines), Y, **mode)
        except ProofError:
            assert not (true and "exact" in mode)  # which has no margins here
            continue
        accepted += 1
        assert true
    assert accepted < 20 or "exact" in mode  # float64 has margins


def test_screening_comes_first():
    """Features beside those of the search drop only by U of k − 1."""
    rng = np.random.default_rng(3)
    Y = np.diag([3.0, 3.0, 3.0, 0.1, 0.2]) + 0.01
    lines = entry_tree_proof(Y, describe(Y), 2, rng)
    upper = 3.2
    lines[1] |= {"upper": upper.hex(), "features": [0, 1, 2]}
    bound = {"k": 1, "upper": (3.05).hex(), "rule": "variance"}
    lines[1]["nodes"] = [{"split": 0}, {"split": 1}, {"last": True}]
    lines[1]["nodes"] += [{"split": 2}, {"last": True}, {"last": True}, {"last": True}]
    low = {"objective": (3.0).hex(), "upper_bound": (3.3).hex()}
    lines[0]["claims"][0] |= {**low, "support": [0, 1], "x": ["0x1.0p+0"] * 2}
    with pytest.raises(ProofError, match="screening needs U of k - 1"):
        check_proof(as_bytes(lines), Y, floats=True)
    lines = [lines[0], bound, lines[1], {"end": 2}]
    check_proof(as_bytes(lines), Y, floats=True)
    Y = Y.copy()
    Y[3, 4] = Y[4, 3] = 4.0  # the features that are left out are the best
    lines[0]["data"]["sha256"] = sha256(Y)
    with pytest.raises(ProofError, match="not shown to drop"):
        check_proof(as_bytes(lines), Y, floats=True)


def changes() -> dict[str, tuple[list[Json], str]]:
    one = "0x1.0p+0"
    point = {"ratio": one, "weights": [one] * 3, "shares": [0] * 3}
    fix: Json = {"fix": point, "out": [], "own": [], "prices": [], "in": []}
    last: Json = {"last": True}
    found = {
        "nothing": ([], "missing"),
        "one node too many": ([last, last], "after the last"),
        "a child missing": ([{"split": 0}, last], "missing"),
        "a fix at the end": ([fix], "missing"),
        "an unknown node": ([{"lost": True}], "a node is one of"),
        "two nodes in one": ([{"last": True, "split": 0}], "the keys are"),
        "last that is false": ([{"last": False}], "must be true"),
        "last of many sets": ([last], "more than one set"),
        "split by nobody": ([{"split": 7}, last, last], "of those there are"),
        "split by one inside": (
            [{"split": 0}, {"split": 0}, last, last, last],
            "not free",
        ),
        "out twice": ([fix | {"out": [0, 0]}, last], "ascending"),
        "out and in": (
            [fix | {"out": [0], "own": [one], "prices": [one], "in": [0]}, last],
            "both out and in",
        ),
        "no price": ([fix | {"out": [0], "own": [one]}, last], "prices"),
        "a price of 0": (
            [fix | {"out": [0], "own": [one], "prices": ["0x0.0p+0"]}, last],
            "positive",
        ),
        "a negative weight of its own": (
            [fix | {"out": [0], "own": ["-0x1.0p+0"], "prices": [one]}, last],
            "negative",
        ),
        "out without reason": (
            [fix | {"out": [0], "own": [one], "prices": [one]}, last],
            "not shown",
        ),
        "in without reason": (
            [fix | {"in": [0]}, {"split": 1}, last, last],
            "not shown",
        ),
        "a weight too few": ([{"close": point | {"weights": [one] * 2}}], "share"),
        "a point of fewer": (
            [{"close": {"ratio": one, "weights": [one], "shares": []}}],
            "weights for 3",
        ),
        "no ratio": ([{"close": point | {"ratio": "0x0.0p+0"}}], "ratio"),
        "a share of 2": ([{"close": point | {"shares": [2**15, 0, 0]}}], "share"),
        "close without reason": ([{"close": point}], "not shown"),
        "a weight that is huge": (
            [{"close": point | {"weights": [one, one, "0x1.0p+1000"]}}],
            "proportion",
        ),
        "a tiny ratio": ([{"close": point | {"ratio": "0x1.0p-1074"}}], "not shown"),
    }
    return found


@pytest.mark.parametrize("name", changes())
def test_what_is_wrong_is_refused(name):
    nodes, why = changes()[name]
    Y = np.eye(3) + 1.0  # opt(2) = 3
    lines = entry_tree_proof(Y, describe(Y), 2, np.random.default_rng(0))
    lines[1] |= {"nodes": copy.deepcopy(nodes), "upper": (3.1).hex()}
    lines[0]["claims"][0]["upper_bound"] = (3.2).hex()
    for mode in (*MODES, {}):
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), Y, **mode)


def test_many_splits_within_one_another_are_refused(monkeypatch):
    lines, Y = proof_of(1)
    lines[1]["nodes"] = [{"split": 0}] * 400 + [{"last": True}] * 401
    with pytest.raises(ProofError, match="splits deep"):
        check_proof(as_bytes(lines), Y)


def test_it_is_of_version_6():
    lines, Y = proof_of(2)
    lines[0]["version"] = 5
    with pytest.raises(ProofError, match="version 6"):
        check_proof(as_bytes(lines), Y)
