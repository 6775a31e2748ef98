"""Rule "signs": bounds for x ≥ 0, by trees and by what may be added to A."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from proof_builder import Json, as_bytes, describe
from proof_problems import Sets
from proof_signs import sign_proof

MODES = ({"exact": True}, {"floats": True})

#: {0, 1} has 1.9 with both signs, and 1 without; {0, 2} and {1, 2} have 1.5.
FOUR = np.array(
    [
        [1.0, -0.9, 0.5, 0.0],
        [-0.9, 1.0, 0.5, 0.0],
        [0.5, 0.5, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.25],
    ]
)
UPPER = 1.51
TREE = "S2 0 1 S1 1 N0 L"


def lines_of(**more: Any) -> list[Json]:
    said: Json = {"include": [], "groups": [], "nonnegative": True}
    said |= more.pop("constraints", {})
    claim = {"k": 2, "support": [0, 2], "x": ["0x1p+0", "0x1p+0"]}
    claim |= {"objective": (1.5 - 1e-9).hex(), "upper_bound": UPPER.hex()}
    claim |= more.pop("claim", {})
    header: Json = {"format": "blockspca-proof", "version": 9, "data": describe(FOUR)}
    header |= {"constraints": said, "row_list": 2, "claims": [claim]}
    header |= more.pop("header", {})
    record = {"k": 2, "upper": UPPER.hex(), "rule": "signs", "features": [0, 1, 2]}
    record |= {"tree": TREE, "added": [{"features": [0, 1], "numbers": [(0.9).hex()]}]}
    first = {"k": 1, "upper": (1.0).hex(), "rule": "variance"}
    return [header, first, record | more, {"end": 2}]


def assert_refused(lines: list[Json], why: str) -> None:
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), FOUR, **mode)


def assert_holds(lines: list[Json]) -> None:
    for mode in MODES:
        check_proof(as_bytes(lines), FOUR, **mode)


def test_numbers_close_what_raising_does_not():
    assert_holds(lines_of())
    assert Sets(lines_of()[0], FOUR).allows(2, 1.49, UPPER)
    # of more features than are needed, in another order
    zero, most = (0.0).hex(), (0.9).hex()
    more = {"features": [2, 1, 0], "numbers": [zero, zero, most]}
    assert_refused(lines_of(added=[more]), "N is not shown")  # all three have more
    more = {"features": [3, 1, 0], "numbers": [zero, zero, most]}
    assert_holds(lines_of(features=[0, 1, 2, 3], added=[more]))
    assert_holds(lines_of(features=[0, 1, 2, 3]))
    # where negative entries are raised the pair is closed as any other
    assert_holds(lines_of(header={"raised": []}, tree="S0"))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"header": {"version": 8}}, "version 9"),
        ({"constraints": {"nonnegative": False}}, "for no negative loadings"),
        ({"added": []}, "token 'N0'"),
        ({"tree": "S2 0 1 S1 1 N1 L"}, "token 'N1'"),
        ({"tree": "S2 0 1 S1 1 N L"}, "token 'N'"),
        ({"tree": "S2 0 1 S1 1 N00 L"}, "token 'N00'"),
        ({"added": [{"features": [0, 1], "numbers": []}]}, "per pair"),
        ({"added": [{"features": [0, 1], "numbers": ["-0x1p-1"]}]}, "negative"),
        ({"added": [{"features": [0, 1], "numbers": ["nan"]}]}, "hexadecimal"),
        ({"added": [{"features": [0, 0], "numbers": ["0x1p-1"]}]}, "different"),
        ({"added": [{"features": [0, 9], "numbers": ["0x1p-1"]}]}, "different"),
        ({"added": [{"features": [0, 1], "numbers": [(0.3).hex()]}]}, "N is not shown"),
        ({"added": [{"features": [0, 1], "numbers": [(1.5).hex()]}]}, "N is not shown"),
        ({"added": [{"features": [0, 2], "numbers": [(0.9).hex()]}]}, "N without all"),
        (
            {"added": [{"features": [0, 3], "numbers": [(0.9).hex()]}]},
            "N with features",
        ),
        ({"added": [{"features": [0], "numbers": []}]}, "N without all"),
        ({"tree": "S2 0 1 S1 1 L L"}, "L in a bare node"),
        ({"tree": "S2 0 1 S1 1 P L"}, "P in a bare node"),
        ({"tree": "S2 0 1 S1 1 S0 L"}, "all features are chosen"),
        ({"tree": "S2 0 1 S0 L"}, "position 1 is not open"),
        ({"tree": "S1 1 L"}, "position 0 is not open"),
        ({"tree": "L"}, "L with m = 2|larger eigenvalue"),
        ({"features": [1, 2]}, "cannot be dropped|not shown to drop"),
        ({"upper": (1.49).hex(), "claim": {"upper_bound": (1.49).hex()}}, "k = 2"),
        ({"features": [0, 1], "constraints": {"include": [2]}}, "that fits is not"),
        (
            {"features": [0, 1, 2, 3], "constraints": {"include": [2]}},
            "features of include",
        ),
    ],
)
def test_what_is_not_so_is_refused(more: Json, why: str):
    assert_refused(lines_of(**more), why)


def with_three(record: Json) -> list[Json]:
    """A record of k = 3 after those of 1 and 2, and its claim."""
    lines = lines_of()
    claim = {"k": 3, "support": [0, 2], "x": ["0x1p+0", "0x1p+0"]}
    claim |= {"objective": (1.0).hex(), "upper_bound": record["upper"]}
    lines[0]["claims"] = [claim]
    lines[3:] = [record, {"end": 3}]
    return lines


def test_nothing_but_signs_rests_on_signs():
    """The eigenvalue of {0, 1, 2} is 1.9, with both signs; x ≥ 0 has less."""
    upper = (1.75).hex()
    tree = {"k": 3, "upper": upper, "rule": "tree", "features": [0, 1, 2], "tree": "L"}
    assert_refused(with_three(tree), "screening needs U of k - 1")
    average = {"k": 3, "upper": (3.0).hex(), "rule": "average", "from": 2}
    assert_refused(with_three(average), "average needs a record")
    full = tree | {"features": [0, 1, 2, 3], "tree": "D S0"}
    assert_refused(with_three(full), "U of k - 1")


def test_in_a_schur_complement_no_bound_by_signs_counts():
    """D at the root may use it, and D in a child may not."""
    upper = (1.75).hex()
    record: Json = {"k": 3, "upper": upper, "rule": "signs", "features": [0, 1, 2]}
    number = [(0.9).hex(), (0.0).hex(), (0.0).hex()]
    record["added"] = [{"features": [0, 1, 2], "numbers": number}]
    assert_holds(with_three(record | {"tree": "N0"}))
    assert_holds(with_three(record | {"tree": "D N0"}))
    assert_holds(with_three(record | {"tree": "S1 0 N0"}))
    lines = with_three(record | {"tree": "S1 0 D N0"})
    assert_refused(lines, "bare")
    lines[0]["raised"] = []  # with which the node has a matrix
    assert_refused(lines, "U of k - 1")
    lines[3]["tree"] = "D S1 0 N0"
    assert_holds(lines)


def test_proofs_of_random_problems_hold_and_lower_ones_do_not():
    kinds: set[str] = set()
    held = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 7))
        k = int(rng.integers(2, min(d, 4) + 1))
        found = sign_proof(rng, d, k)
        if found is None:
            continue
        lines, Y = found
        try:
            check_proof(as_bytes(lines), Y)
        except ProofError as error:
            assert "scores" in str(error)  # noqa: PT017
            continue
        held += 1
        kinds |= {token[0] for token in lines[-2]["tree"].split()}
        kinds |= {*lines[0]} & {"raised", "deflated", "without"}
        kinds |= {"include"} if lines[0]["constraints"]["include"] else set()
        kinds |= {"screened"} if len(lines[-2]["features"]) < d else set()
        forged = copy.deepcopy(lines)
        value = Sets(lines[0], Y).best(k)[0]
        low = value - 1e-6 * max(abs(value), float(np.abs(Y).max()))
        forged[0]["claims"][0] |= {"upper_bound": low.hex(), "objective": low.hex()}
        forged[-2]["upper"] = low.hex()
        for mode in MODES:
            with pytest.raises(ProofError):
                check_proof(as_bytes(forged), Y, **mode)
    assert held > 90
    assert {"L", "S", "N", "raised", "deflated", "include", "screened"} <= kinds


@pytest.mark.parametrize("mode", MODES)
def test_a_bound_of_a_few_least_float64_is_not_rounded_down(mode):
    # In units of 2⁻¹⁰⁷⁴, M has 4.89 > 4: in float64 each v_i v_j of an elimination is
    # rounded to a unit. −0.75 is the largest entry, and has no room beside feature 0.
    M = np.array([[0, 1, 1, 2], [1, 1, 2, 2], [1, 2, 2, 0], [2, 2, 0, 0]])
    Y = np.zeros((5, 5))
    Y[:4, :4] = M * 2.0**-1074
    Y[4, 4] = -0.75
    upper = (4 * 2.0**-1074).hex()
    group = {"most": 1, "features": [0, 4]}
    claim: Json = {"k": 4, "support": [0, 1, 2, 3], "x": ["0x1p+0"] * 4}
    claim |= {"objective": upper, "upper_bound": upper}
    header: Json = {"format": "blockspca-proof", "version": 9, "data": describe(Y)}
    said = {"include": [0], "groups": [group], "nonnegative": True}
    header |= {"constraints": said, "row_list": 1, "claims": [claim]}
    record: Json = {"k": 4, "upper": upper, "rule": "signs", "features": [1, 2, 3]}
    added = {"features": [0, 1, 2, 3], "numbers": ["0x0p+0"] * 6}
    record |= {"tree": "N0", "added": [added]}
    with pytest.raises(ProofError):
        check_proof(as_bytes([header, record, {"end": 1}]), Y, **mode)
