"""Groups that are used as a whole (version 8), by brute force and under attack."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import proof_mutations
from blockspca.checker import group_tree, integer_tree
from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from blockspca.checker.group_tree import _unit_slack
from blockspca.checker.integer_tree import bits_too_many, shortened
from blockspca.checker.positive import largest_eigenvalues
from proof_builder import FIVE, Json, as_bytes, definite, describe
from proof_groups import group_proof
from proof_mutations import judge
from proof_problems import Sets

MODES = ({"exact": True}, {"floats": True}, {})


def made(seed: int) -> tuple[list[Json], np.ndarray] | None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 8))
    return group_proof(rng, d, int(rng.integers(1, d + 1)))


def is_true(lines: list[Json], Y: np.ndarray) -> bool:
    truth = Sets(lines[0], Y)
    return all(
        truth.allows(
            claim["k"],
            float.fromhex(claim["objective"]),
            float.fromhex(claim["upper_bound"]),
        )
        for claim in lines[0]["claims"]
    )


def test_proofs_of_all_kinds_hold_in_both_arithmetics():
    kinds, held = set(), 0
    for seed in range(150):
        found = made(seed)
        if found is None:
            continue
        lines, Y = found
        assert is_true(lines, Y)
        for mode in MODES:
            try:
                verdict = check_proof(as_bytes(lines), Y, **mode)
            except ProofError:  # V'AV of a matrix need not be positive definite
                assert lines[0]["deflated"]["how"] == "residual"
                continue
            held += 1
            assert "as a whole or not at all" in str(verdict)
            kinds |= {token[0] for token in lines[-2]["tree"].split() if token > "9"}
            kinds |= {key for key in ("without", "deflated") if key in lines[0]}
            kinds |= {"include"} if lines[0]["constraints"]["include"] else set()
    assert kinds == {"L", "P", "S", "without", "deflated", "include"}
    assert held > 300


def test_the_largest_eigenvalue_is_bounded_closely_and_from_above():
    rng = np.random.default_rng(0)
    for s in (1, 2, 3, 7, 20):
        for scale in (1e-150, 1.0, 1e100):
            B = rng.standard_normal((s, s))
            B = (B + B.T) * scale
            found = largest_eigenvalues(B[None])[0]
            exact = float(np.linalg.eigvalsh(B)[-1])
            size = float(np.abs(B).sum(axis=1).max())
            assert exact - 1e-14 * size <= found <= exact + 1e-6 * size
    assert largest_eigenvalues(np.zeros((2, 3, 3))).min() >= 0
    # of an eigenvalue of s and of one just below it
    ones = np.ones((8, 8))
    found = largest_eigenvalues(np.array([ones, -ones]))
    assert 8 <= found[0] < 8 + 1e-5
    assert 0 <= found[1] < 1e-5


def test_an_eigenvalue_whose_square_underflows_is_bounded():
    for scale in (1e-155, 1e-162, 1e-170, 1e-250, 5e-324):
        B = scale * np.array([[[0.0, 1.0], [1.0, 0.0]]])
        assert largest_eigenvalues(B)[0] >= scale


@pytest.mark.parametrize("mode", MODES)
def test_a_unit_far_below_the_largest_entry_is_bounded(mode):
    # {0, 1} has 1e-170, of which the square is 0 in float64; −1 is the largest entry
    Y = np.array([[0, 1e-170, 0], [1e-170, 0, 0], [0, 0, -1.0]])
    group = {"most": 2, "features": [0, 1]}
    said: Json = {"include": [], "groups": [group], "nonnegative": False, "whole": True}
    claim: Json = {"k": 2, "support": [0, 1], "x": ["0x1p+0", "0x1p+0"]}
    claim |= {"objective": (1e-171).hex(), "upper_bound": (1e-179).hex()}
    header: Json = {"format": "blockspca-proof", "version": 8, "data": describe(Y)}
    header |= {"constraints": said, "row_list": 1, "claims": [claim]}
    record = {"k": 2, "upper": (1e-180).hex(), "rule": "group-tree"}
    record |= {"features": [0, 2], "tree": "S0"}
    with pytest.raises(ProofError):
        check_proof(as_bytes([header, record, {"end": 1}]), Y, **mode)


def test_the_least_eigenvalue_in_integers_is_shown():
    rng = np.random.default_rng(1)
    for s in (1, 2, 5):
        for bits in (3, 40, 200):
            M = [[int(x) << bits for x in row] for row in rng.integers(-99, 99, (s, s))]
            M = [[M[i][j] + M[j][i] for j in range(s)] for i in range(s)]
            short, _ = shortened(M, 1)
            least = _unit_slack(M, 1, short, range(s))
            unit = 1 << bits_too_many(M)
            lower = [
                [x - least * unit * (i == j) for j, x in enumerate(row)]
                for i, row in enumerate(M)
            ]
            assert definite(lower)[0]
            exact = np.linalg.eigvalsh(np.array(M, dtype=float))[0]
            assert least * unit >= exact - 2 * unit - 1e-3 * max(abs(exact), 2.0**bits)


# -- attempts to smuggle a false claim through ----------------------------------------

#: {0, 2} has 3.5 + 2.06 = 5.56, {1, 3}: 4, {4}: 2; all five together more.
UPPER = 5.6


def lines_of(**more: Any) -> list[Json]:
    groups = [{"most": 2, "features": [0, 2]}, {"most": 2, "features": [1, 3]}]
    said: Json = {"include": [], "groups": groups, "nonnegative": False, "whole": True}
    said |= more.pop("constraints", {})
    claim = {"k": 3, "support": [0, 2], "x": ["0x1.4p+0", "0x1p+0"]}
    claim |= {"objective": (5.5).hex(), "upper_bound": (UPPER + 1e-6).hex()}
    header: Json = {"format": "blockspca-proof", "version": 8, "data": describe(FIVE)}
    header |= {
        "constraints": said,
        "row_list": 1,
        "claims": [claim | more.pop("claim", {})],
    }
    record = {"k": 3, "upper": UPPER.hex(), "rule": "group-tree", "features": [0, 1, 4]}
    record |= {"tree": "S2 0 1 S1 2 L S1 2 L"}
    record |= more.pop("record", {})
    return [header | more, record, {"end": 1}]


def assert_refused(lines: list[Json], why: str) -> None:
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), FIVE, **mode)


def test_what_the_attempts_begin_with_holds():
    for mode in MODES:
        check_proof(as_bytes(lines_of()), FIVE, **mode)
    assert is_true(lines_of(), FIVE)


GROUP = [{"most": 2, "features": [0, 2]}]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"constraints": {"whole": False}}, "whole is true"),
        ({"constraints": {"whole": 1}}, "true or false"),
        ({"constraints": {"nonnegative": True}}, "whole is true"),
        ({"constraints": {"groups": []}}, "every unit"),
        (
            {"constraints": {"groups": [{"most": 1, "features": [0, 2]}]}},
            "room for all",
        ),
        (
            {"constraints": {"groups": [{"most": 3, "features": [0, 2]}]}},
            "room for all",
        ),
        (
            {"constraints": {"groups": [{"most": 2, "features": [2, 0]}]}},
            "of their own",
        ),
        (
            {"constraints": {"groups": [{"most": 2, "features": [-2, 2]}]}},
            "of their own",
        ),
        ({"constraints": {"groups": GROUP * 2}}, "of their own"),
        ({"constraints": {"include": [0]}}, "in or out"),
        ({"without": [0]}, "in or out"),
        ({"level": "0x1p+3", "constraints": {"include": [0, 2]}}, "whole groups"),
        ({"raised": []}, "not negative"),
        ({"version": 7}, "is of version 8"),
        # x has a part of a group, whose other features count
        ({"claim": {"support": [0, 1], "x": ["0x1p+0"] * 2}}, "keep the constraints"),
        ({"claim": {"k": 2, "support": [1, 2]}}, "keep the constraints"),
        ({"claim": {"k": 1, "support": [0], "x": ["0x1p+0"]}}, "keep the constraints"),
        ({"claim": {"k": 6}}, "k = 6 is not in"),
        ({"claim": {"k": 4}}, "no record"),
        ({"record": {"k": 6}}, "k = 6 is not in"),
        ({"record": {"features": [0, 1]}}, "every unit"),
        ({"record": {"features": [0, 1, 4, 3]}}, "every unit"),
        ({"record": {"features": [0, 1, 3]}}, "every unit"),
        ({"record": {"features": [2, 1, 4]}}, "every unit"),
        ({"record": {"features": [0, 0, 1, 4]}}, "different features"),
        ({"record": {"features": [0, 1, 4], "tree": "D S0"}}, "'D' is not known"),
        ({"record": {"tree": "L"}}, "L with 3 units"),
        ({"record": {"tree": "P"}}, "P"),
        ({"record": {"tree": "S0"}}, "is not open"),
        ({"record": {"tree": "S1 1 S1 2 L"}}, "is not open"),
        ({"record": {"tree": "S2 0 1 L S1 2 L"}}, "L with 1 units"),
        ({"record": {"tree": "S1 0 S1 2 L", "upper": (5.0).hex()}}, "not open|τ"),
        (
            {"record": {"upper": (5.5).hex()}, "claim": {"upper_bound": (5.5).hex()}},
            "τ",
        ),
        (
            {"record": {"upper": (3.9).hex()}, "claim": {"upper_bound": (3.9).hex()}},
            "τ",
        ),
        ({"claim": {"upper_bound": (5.59).hex()}}, "below U"),
    ],
)
def test_what_is_not_so_is_refused(more, why):
    assert_refused(lines_of(**copy.deepcopy(more)), why)


def test_without_whole_groups_there_is_no_such_rule():
    lines = lines_of()
    del lines[0]["constraints"]["whole"]
    assert_refused(lines, "whole groups")
    lines[0].pop("constraints")
    assert_refused(lines, "whole groups")


def test_larger_k_is_another_question():
    """With four features {0, 2} and {1, 3} go together, and have more than 5.6."""
    lines = lines_of(record={"k": 4}, claim={"k": 4})
    assert not is_true(lines, FIVE)
    for tree in ("S2 0 1 S1 2 L S1 2 L", "S2 0 1 S2 1 2 L L S1 2 L", "S0", "P"):
        lines[1]["tree"] = tree
        assert_refused(lines, "k = 4")


def test_k_beyond_what_is_left_is_for_the_tree_alone():
    """Sets of at most k features: k may be more than there are."""
    more = {"without": [1, 3, 4], "claim": {"k": 4}}
    record = {"k": 4, "features": [0], "tree": "S1 0 L"}
    lines = lines_of(**more, record=record)
    for mode in MODES:
        check_proof(as_bytes(lines), FIVE, **mode)
    assert is_true(lines, FIVE)
    rows = {"k": 4, "upper": UPPER.hex(), "rule": "rows"}
    assert_refused([lines[0], rows, {"end": 1}], "k = 4 is not in 1 to 2")


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "average", "from": 2},
        {"rule": "tree", "features": [], "tree": "L"},
        {"rule": "tree", "features": [0, 1, 2, 3, 4], "tree": "D L"},
        {"rule": "entry-tree", "features": [], "nodes": [{"last": True}]},
    ],
)
def test_no_other_record_rests_on_one_of_whole_groups(rule):
    """Found by attack: of two features only {0, 2} and 4 count, {0, 1} has more."""
    groups = [{"most": 2, "features": [0, 2]}, {"most": 3, "features": [1, 3, 4]}]
    more: Json = {"constraints": {"groups": groups}, "claim": {"k": 3}}
    lines = lines_of(**more, record={"k": 2, "features": [0, 1], "tree": "S1 0 L"})
    header, two, _ = lines
    for upper in (5.6, 6.0, 7.0):  # opt(3) of all sets is 6.6
        three = {"k": 3, "upper": upper.hex(), **rule}
        header["claims"][0]["upper_bound"] = (upper + 1e-6).hex()
        assert_refused([header, two, three, {"end": 2}], "k = 3")


def diagonal_alone(M, q, short, part):
    return min(short[i][i] for i in part)


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (group_tree, "_unit_slack", diagonal_alone),
        (group_tree, "open_in_integers", lambda *given: []),
        (integer_tree, "is_positive_semidefinite", lambda *given: True),
    ],
)
def test_a_checker_that_leaves_out_a_step_is_found(owner, name, broken, monkeypatch):
    monkeypatch.setattr(proof_mutations, "MODES", ({"exact": True},))
    seeds = range(5, 2405, 8)
    monkeypatch.setattr(owner, name, broken)
    assert any(judge(seed, 30)[1] for seed in seeds)


def test_no_mutant_with_a_false_claim_is_accepted():
    accepted = 0
    for seed in range(5, 205, 8):
        more, wrong = judge(seed, 30)
        assert wrong == []
        accepted += more
    assert accepted > 20
