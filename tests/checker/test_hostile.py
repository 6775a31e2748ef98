"""Attempts to smuggle a false claim, or a wrong file, through the checker.

Each has been tried by hand and is kept. Unless a test says otherwise, the proof has to
be refused in integers, in floats and in both.
"""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from blockspca.checker import integer_direction
from blockspca.checker.check import check_proof
from blockspca.checker.data import as_data, read_data
from blockspca.checker.proof_file import ProofError
from proof_builder import (
    EXAMPLE,
    FIVE,
    Builder,
    Json,
    as_bytes,
    best_set,
    describe,
    direction_proof,
    rounds_proof,
    sha256,
)

LINES = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
A = FIVE
MODES = ({"exact": True}, {"floats": True}, {})


def assert_refused(proof: bytes | list[Json], Y: np.ndarray = A, why: str = "") -> None:
    text = proof if isinstance(proof, bytes) else as_bytes(proof)
    for mode in MODES:
        with pytest.raises(ProofError) as caught:
            check_proof(text, Y, **mode)
        if mode == {"exact": True}:
            assert re.search(why, str(caught.value)), str(caught.value)


def changed(change: Callable[[list[Json]], Any]) -> list[Json]:
    lines = copy.deepcopy(LINES)
    change(lines)
    return lines


def with_field(line: int, *path: Any) -> list[Json]:
    """Return the example with the field at path[:-1] set to path[-1]."""

    def change(lines: list[Json]) -> None:
        place: Any = lines[line]
        for key in path[:-2]:
            place = place[key]
        place[path[-2]] = path[-1]

    return changed(change)


def matrix_proof(Y: np.ndarray, records: list[Json], claims: list[Json]) -> list[Json]:
    header: Json = {"format": "blockspca-proof", "version": 1, "data": describe(Y)}
    header |= {"row_list": 4, "claims": claims}
    return [header, *records, {"end": len(records)}]


def claim(k: int, upper: float, low: float = -1e9) -> Json:
    return {
        "k": k,
        "support": [0],
        "x": ["0x1p+0"],
        "objective": float(low).hex(),
        "upper_bound": float(upper).hex(),
    }


def tree(k: int, upper: float, features: list[int], text: str) -> Json:
    record = {"k": k, "upper": float(upper).hex(), "rule": "tree"}
    return record | {"features": features, "tree": text}


# -- the file -----------------------------------------------------------------------


def test_every_truncation_is_refused():
    text = EXAMPLE.read_bytes()
    for size in range(len(text) - 2):
        with pytest.raises(ProofError):
            check_proof(text[:size], A, exact=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "truncated"),
        (b"\n", "is not JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"\xef\xbb\xbf" + EXAMPLE.read_bytes(), "is not JSON"),
        (EXAMPLE.read_bytes() + b"\n", "is not JSON"),
        (EXAMPLE.read_bytes() + b'{"end": 3}\n', "keys"),
        (EXAMPLE.read_bytes() + b'{"end": 0}\n', "keys"),
        (EXAMPLE.read_bytes() * 2 + b"{}\n", "keys"),
        (EXAMPLE.read_bytes().replace(b"\n", b"\n\n"), "is not JSON"),
        (EXAMPLE.read_bytes().replace(b"\n", b"\x0b"), "is not JSON"),
        (EXAMPLE.read_bytes().replace(b'"end": 3', b'"end": 3.0'), "no integer"),
        (EXAMPLE.read_bytes().replace(b'"end": 3', b'"end": 2'), "the end says 2"),
        (b"[" * 100_000 + b"\n" + EXAMPLE.read_bytes(), "is not JSON"),
        (EXAMPLE.read_bytes().replace(b'"row_list": 2', b'"row_list": NaN'), "NaN"),
        (
            EXAMPLE.read_bytes().replace(
                b'"k": 3, "upper"', b'"k": 1, "k": 3, "upper"'
            ),
            "twice",
        ),
        (
            EXAMPLE.read_bytes().replace(b'"end": 3', b'"end": 1' + b"0" * 5000),
            "is not JSON",
        ),
    ],
)
def test_other_text_is_refused(text, why):
    assert_refused(text, why=why)


@pytest.mark.parametrize("line", range(5))
def test_a_key_more_or_less_is_refused(line):
    for key in [*LINES[line], "other"]:
        lines = changed(
            lambda lines, key=key: (
                lines[line].pop(key) if key in lines[line] else lines[line].update(x=1)
            )
        )
        assert_refused(lines)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (("format", "blockspca"), "version 1"),
        (("version", True), "integer"),
        (("version", 10), "version 1"),
        (("version", "1"), "integer"),
        (("row_list", 0), "row_list"),
        (("claims", []), "one claim"),
        (("claims", {}), "list"),
        (("claims", [LINES[0]["claims"][0]] * 2), "ascending"),
        (("data", "kind", "data"), "keys"),
        (("data", "kind", "covariance"), "not known"),
        (("data", "kind", None), "text"),
        (("data", "center", True), "keys"),
        (("data", "n", 4), "n = d"),
        (("data", {**LINES[0]["data"], "n": 10**30, "d": 10**30}), "the data are"),
        (("data", "d", True), "integer"),
        (("data", "sha256", LINES[0]["data"]["sha256"].upper()), "64 digits"),
        (("data", "sha256", "0" * 64), "other data"),
        (("claims", 0, "k", 0), "k = 0"),
        (("claims", 0, "k", 6), "k = 6"),
        (("claims", 0, "k", True), "integer"),
        (("claims", 0, "k", 2), "1 to k"),
        (("claims", 0, "k", 4), "no record"),
        (("claims", 0, "support", [0, 2, 1]), "ascending"),
        (("claims", 0, "support", [0, 1, 1]), "different"),
        (("claims", 0, "support", [-1, 0, 1]), "different"),
        (("claims", 0, "support", [0, 1, 5]), "different"),
        (("claims", 0, "support", []), "1 to k"),
        (("claims", 0, "support", [0, 1]), "number per feature"),
        (("claims", 0, "x", ["0x0p+0"] * 3), "not all 0"),
        (("claims", 0, "x", ["-0x0p+0"] * 3), "not all 0"),
        (("claims", 0, "x", ["0x1p+0", "0x1p+0", 1]), "text"),
        (("claims", 0, "objective", "0x1.b6db6db6db6dcp+2"), "less than the objective"),
        (("claims", 0, "upper_bound", "0x1.affffffffffffp+2"), "below U"),
        (("claims", 0, "upper_bound", "0x1.a8p+2"), "below U"),
    ],
)
def test_a_header_that_is_wrong_is_refused(path, why):
    assert_refused(with_field(0, *path), why=why)


@pytest.mark.parametrize(
    "number",
    [
        "nan",
        "inf",
        "0xinf",
        "10",
        "6.75",
        "0X1P+3",
        " 0x1p+3",
        "0x1p+3 ",
        "0x1p+3\n",
        "+0x1p+3",
        "0x2p+2",
        "0x1p+1024",
        "0x1p+9999",
        "0x1p-1080",  # rounds to 0
        "0x1.8p-1074",  # rounds to another
        "0x1.00000000000001p+3",  # 14 digits
        "0x1p+３",
        "",
        8,
        True,
        None,
        ["0x1p+3"],
    ],
)
def test_numbers_that_are_none_are_refused(number):
    assert_refused(with_field(3, "upper", number), why="line 4, upper|keys")
    assert_refused(with_field(0, "claims", 0, "upper_bound", number), why="upper_bound")


@pytest.mark.parametrize(
    ("line", "path", "why"),
    [
        (1, ("k", 0), "not in 1"),
        (1, ("k", -1), "not in 1"),
        (3, ("k", 6), "not in 1"),
        (3, ("k", 10**100), "not in 1"),
        (3, ("k", True), "integer"),
        (3, ("k", "3"), "integer"),
        (2, ("k", 1), "not above"),
        (2, ("k", 3), "not above"),
        (2, ("rule", "row sums"), "not known"),
        (2, ("rule", "variance"), "for data"),
        (3, ("features", [0, 1, 2, 2]), "different"),
        (3, ("features", [0, 1, -3]), "different"),
        (3, ("features", [0, 1, 5]), "different"),
        (3, ("features", [0, 1, True]), "integer"),
        (3, ("features", "012"), "list"),
        (3, ("features", [0, 1]), "feature 2 cannot be dropped"),
        (3, ("features", []), "position 0"),
        (1, ("upper", "0x1.fffffffffffffp+1"), "variances"),
        (2, ("upper", "0x1.7ffffffffffffp+2"), "row sum"),
        (3, ("upper", "0x1.a8p+2"), "k = 3"),
    ],
)
def test_a_record_that_is_wrong_is_refused(line, path, why):
    assert_refused(with_field(line, *path), why=why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "token"),
        ("L", "L with m = 3"),
        ("P", "^$"),
        ("D", "too early"),
        ("D D D", "too early"),
        ("S0", "position 0 is not open"),
        ("S1 0", "too early"),
        ("S1 0 L L", "too late"),
        ("S1 0 L ", "too late"),
        (" S1 0 L", "token"),
        ("S1  0 L", "positions"),
        ("S1 0\tL", "positions"),
        ("S1 0 l", "token"),
        ("S01 0 L", "token"),
        ("S+1 0 L", "token"),
        ("S-1 0 L", "token"),
        ("S１ 0 L", "token"),
        ("S1 00 L", "positions"),
        ("S1 -0 L", "positions"),
        ("S1 ０ L", "positions"),
        ("S1 3 L", "position 3"),
        ("S2 0 0 L L", "ascending"),
        ("S2 1 0 L L", "ascending"),
        ("S2 0 1 L", "too early"),
        ("S1 1 L", "position 0 is not open"),
        ("S1 0 S0", "^$"),
        ("S1 0 P", "^$"),
        ("S1 0 S1 1 S0", "S needs m"),
        ("S1 0 S1 1 D L", "D needs m"),
        ("S9999999999 0 L", "token"),
        ("S999999999 0 L", "positions|ascending"),
        ("S1 0 " * 5000 + "L", "deeper"),
    ],
)
def test_a_tree_that_is_wrong_is_refused(text, why):
    if why == "^$":  # another right proof of the same
        check_proof(as_bytes(with_field(3, "tree", text)), A, exact=True)
    else:
        assert_refused(with_field(3, "tree", text), why=why)


def test_a_node_of_a_dropped_feature_is_only_text():
    """The page allows it; the features that are not dropped must still be covered."""
    lines = with_field(3, "features", [0, 1, 2, 3])
    lines[3]["tree"] = "D S2 0 3 L S1 3 S1 3 S0"
    check_proof(as_bytes(lines), A, exact=True)
    lines[3]["tree"] = "D S2 0 3 S1 1 S0 L"
    assert_refused(lines, why="not open|S needs")


# -- sections and features that are left out ----------------------------------------


def without(names: list[int], version: int = 2) -> list[Json]:
    """Return a proof about A without features, by row sums: records of k = 1 and 2."""
    lines = copy.deepcopy(LINES)
    lines[0] |= {"version": version, "without": names, "claims": [claim(2, 6.0)]}
    lines[0]["claims"][0]["support"] = [3]
    return [*lines[:3], {"end": 2}]


def test_a_matrix_without_features_is_another_problem():
    lines = without([0, 1])
    lines[1]["upper"] = "0x1.8p+1"  # of features 2, 3, 4: variances 3, 3, 2
    lines[2]["upper"] = lines[0]["claims"][0]["upper_bound"] = "0x1p+2"
    lines[0]["claims"][0]["objective"] = "0x1.8p+1"
    verdict = check_proof(as_bytes(lines), A, exact=True)
    assert "without features 0 1" in str(verdict)
    assert "opt <= 4.0, features 3" in str(verdict)
    del lines[0]["without"]
    assert_refused(lines, why="variances")


@pytest.mark.parametrize(
    ("names", "version", "why"),
    [
        ([0, 1], 1, "version"),
        ([1, 0], 2, "ascending"),
        ([0, 0], 2, "ascending"),
        ([-1], 2, "ascending"),
        ([5], 2, "ascending"),
        ([0, 1, 2, 3, 4], 2, "not all"),
        ([True], 2, "integer"),
        ([3], 2, "different features"),
        ([0, 1, 2, 4], 2, "k = 2 is not in 1 to 1"),
    ],
)
def test_features_that_cannot_be_left_out(names, version, why):
    assert_refused(without(names, version), why=why)


def test_trees_cannot_name_features_that_are_left_out():
    lines = copy.deepcopy(LINES)
    lines[0] |= {"version": 2, "without": [4]}
    check_proof(as_bytes(lines), A, exact=True)
    lines[3]["features"] = [0, 1, 2, 4]
    assert_refused(lines, why="different features")


def test_every_section_must_hold():
    check_proof(as_bytes(LINES * 2), A, exact=True)
    for place in (0, 5):
        lines = copy.deepcopy(LINES) + copy.deepcopy(LINES)
        lines[place]["claims"][0]["upper_bound"] = "0x1.a8p+2"
        assert_refused(lines, why="below U")
        lines = copy.deepcopy(LINES) + copy.deepcopy(LINES)
        lines[place]["data"]["sha256"] = "0" * 64
        assert_refused(lines, why="other data")
    assert_refused([*LINES, *LINES[:-1]], why="truncated")
    assert_refused([*LINES, *LINES[1:]], why="keys")


def test_a_section_does_not_borrow_records_of_another():
    lines = [*LINES, LINES[0], LINES[3], {"end": 1}]
    assert_refused(lines, why="screening needs U")


# -- steps that do not follow -------------------------------------------------------


def test_screening_needs_the_record_before():
    """Without U_2, or with one above τ, nothing may be dropped."""
    lines = changed(lambda lines: lines.pop(2))
    lines[-1] = {"end": 2}
    assert_refused(lines, why="screening needs U of k - 1")
    assert_refused(with_field(2, "upper", "0x1.b8p+2"), why="at most τ")


def test_drops_need_the_record_before():
    lines = changed(lambda lines: lines.pop(2))
    lines[-1] = {"end": 2}
    lines[2] |= {"features": [0, 1, 2, 3, 4], "tree": "D L"}
    assert_refused(lines, why="D needs")


def test_the_chain_uses_no_record_that_comes_later():
    """U_3 cannot rest on U_2 of a record that follows, nor on itself."""
    lines = changed(lambda lines: lines.insert(2, lines.pop(3)))
    assert_refused(lines, why="not above")


@pytest.mark.parametrize("source", [0, -1, 3, 4, 2**70])
def test_an_average_of_what_is_not_there_is_refused(source):
    record = {"k": 3, "upper": "0x1p+6", "rule": "average", "from": source}
    lines = changed(lambda lines: lines.__setitem__(3, record))
    lines[0]["claims"][0]["upper_bound"] = "0x1p+6"
    assert_refused(lines, why="average needs")


def test_the_average_of_data_is_not_used_for_a_matrix():
    """U_1 k/m is no bound of an indefinite matrix: here opt(2) = 1 and U_1 = 0."""
    Y = np.array([[0.0, 1.0], [1.0, 0.0]])
    records = [
        {"k": 1, "upper": "0x0p+0", "rule": "variance"},
        {"k": 2, "upper": "0x0p+0", "rule": "average", "from": 1},
    ]
    assert_refused(matrix_proof(Y, records, [claim(2, 0.0)]), Y, "average over")


def test_an_average_below_the_least_variance_is_refused():
    """(U_m − a) < 0 would make the bound smaller with every k."""
    records = [{"k": 1, "upper": "0x1p+2", "rule": "variance"}]
    records += [{"k": 2, "upper": "0x1.8p+2", "rule": "rows"}]
    records += [{"k": 4, "upper": "0x1.bp+2", "rule": "average", "from": 2}]
    assert_refused(matrix_proof(A, records, [claim(4, 6.75)]), A, "average over")


def test_one_token_closes_only_what_it_bounds():
    """Three equal features, λ = 3: pairs are fine at τ = 2.5, triples are not."""
    Y = np.ones((3, 3))
    records = [{"k": 1, "upper": "0x1p+0", "rule": "variance"}]
    records += [{"k": 2, "upper": "0x1p+1", "rule": "rows"}]
    for text in ("L", "P", "S0", "D L", "S1 0 L", "S1 0 S0", "S2 0 1 L L", "S1 2 L"):
        lines = [*records, tree(3, 2.5, [0, 1, 2], text)]
        assert_refused(matrix_proof(Y, lines, [claim(3, 2.5)]), Y)


def test_a_pivot_of_zero_or_less_cannot_be_chosen():
    Y = np.array([[1.0, 1.0], [1.0, 1.0]])
    records = [{"k": 1, "upper": "0x1p+0", "rule": "variance"}]
    for upper in (1.0, 0.5):
        lines = [*records, tree(2, upper, [0, 1], "S1 0 L")]
        assert_refused(matrix_proof(Y, lines, [claim(2, upper)]), Y, "B_pp|not open")


@pytest.mark.parametrize("seed", range(30))
def test_bounds_an_ulp_too_low_are_refused(seed):
    """The exact optimum is between two float64; the lower one is not its bound."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(-4, 5, (3, 3)).astype(float)
    Y = np.tril(Y) + np.tril(Y, -1).T
    Y[0, 1] = Y[1, 0] = 3.0
    a, b = Y[0, 0], Y[1, 1]
    while round(((a - b) ** 2 + 36) ** 0.5) ** 2 == (a - b) ** 2 + 36:
        a += 1  # the eigenvalue was rational
    S = np.array([[a, 3.0], [3.0, b]])
    upper = float(np.linalg.eigvalsh(S.astype(np.longdouble).astype(float))[1])

    # Exact: upper is too low if and only if (upper − a)(upper − b) < 9.
    def too_low(value: float) -> bool:
        return (Fraction(value) - int(a)) * (Fraction(value) - int(b)) < 9

    while not too_low(upper):
        upper = float(np.nextafter(upper, -np.inf))
    part = np.ascontiguousarray(S)
    records = [{"k": 1, "upper": max(a, b).hex(), "rule": "variance"}]
    for text in ("L", "P", "S0", "S1 0 L", "S2 0 1 L L"):
        lines = [*records, tree(2, upper, [0, 1], text)]
        assert_refused(matrix_proof(part, lines, [claim(2, upper)]), part)
    above = upper
    while too_low(above):
        above = float(np.nextafter(above, np.inf))
    lines = [*records, tree(2, above, [0, 1], "L")]
    check_proof(
        as_bytes(matrix_proof(part, lines, [claim(2, above)])), part, exact=True
    )


def test_a_claim_does_not_borrow_the_bound_of_a_smaller_k():
    lines = with_field(0, "claims", 0, "k", 4)
    record = LINES[3] | {"k": 4, "tree": "S1 0 L", "features": [0, 1, 2]}
    lines.insert(4, record)
    lines[-1] = {"end": 4}
    assert_refused(lines, why="k = 4")


def test_a_larger_row_list_or_a_longer_x_changes_nothing():
    check_proof(as_bytes(with_field(0, "row_list", 10**18)), A, exact=True)
    lines = with_field(0, "claims", 0, "x", ["0x1.8p+1001", "0x1p+1001", "0x1p+1001"])
    check_proof(as_bytes(lines), A, exact=True)
    lines[0]["claims"][0]["objective"] = "0x1.b6db6db6db6dcp+2"
    assert_refused(lines, why="less than the objective")


@pytest.mark.parametrize("upper", ["0x1.fffffffffffffp+1023", "-0x1.fp+1023"])
def test_bounds_out_of_proportion_are_refused_without_a_crash(upper):
    for line in (1, 2, 3):
        assert_refused(with_field(line, "upper", upper))


# -- directions ---------------------------------------------------------------------


def direction_lines(**changes: Any) -> tuple[list[Json], np.ndarray]:
    rng = np.random.default_rng(2)
    Y = rng.standard_normal((4, 5))
    lines = direction_proof(Y, describe(Y, "data"), 2, rng)
    assert lines[1]["weights"]
    check_proof(as_bytes(lines), Y, exact=True)
    lines[1] |= changes
    return lines, Y


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rho": "0x0p+0"}, "positive"),
        ({"rho": "-0x1p+0"}, "positive"),
        ({"rho": "0x0.0000000000001p-1022"}, "k = 2"),
        ({"rho": "0x1p+10"}, "k = 2"),
        ({"rho": "0x1p+1000"}, "proportion"),
        ({"rest": "0x0p+0"}, "positive"),
        ({"rest": "0x1p+1023"}, "k = 2"),
        ({"weights": []}, "per weight"),
        ({"weights": ["-0x1p+0"]}, "positive"),
        ({"directions": []}, "per weight"),
        ({"directions": [["0x1p+0"]]}, "per weight"),
        ({"directions": "q"}, "list"),
        ({"k": 3}, "k = 3"),
    ],
)
def test_directions_that_are_wrong_are_refused(changes, why):
    lines, Y = direction_lines(**changes)
    assert_refused(lines, Y, why)


@pytest.mark.parametrize("size", ["0x0p+0", "0x1p+0", "0x1p+60", "0x1p+1023"])
def test_any_direction_proves_only_what_is_true(size):
    """They are hints: with nonsense in their place the bound is not shown, or holds."""
    lines, Y = direction_lines()
    lines[1]["directions"] = [[size] * len(q) for q in lines[1]["directions"]]
    for factor in (0.9, 0.5, 0.1):
        lower = copy.deepcopy(lines)
        for line, key in ((lower[1], "upper"), (lower[0]["claims"][0], "upper_bound")):
            line[key] = (float.fromhex(line[key]) * factor).hex()
        assert_refused(lower, Y)


def test_directions_are_of_version_3_and_for_data():
    lines, Y = direction_lines()
    lines[0]["version"] = 2
    assert_refused(lines, Y, "version 3")
    lines, Y = direction_lines()
    square = Y.T @ Y
    lines[0]["data"] = describe(square)
    assert_refused(lines, square, "for data")


def rounds_lines(seed: int = 0) -> tuple[list[Json], np.ndarray]:
    for start in range(1000 * seed, 1000 * seed + 1000):
        rng = np.random.default_rng(start)
        Y = rng.standard_normal((5, 9)) * [6, 5, 4, 3, 2, 1, 1, 1, 1]
        lines = rounds_proof(Y, describe(Y, "data"), 3, rng)
        if lines and lines[1]["rounds"][0]["in"]:
            check_proof(as_bytes(lines), Y, floats=True)
            return lines, Y
    raise AssertionError("no proof by rounds was found")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"in": [99]}, "different features"),
        ({"in": [True]}, "integer"),
        ({"free": [2, 1]}, "ascending"),
        ({"free": [1, 1]}, "different features"),
        ({"vector": []}, "vector of n"),
        ({"vector": ["0x1p+0"]}, "vector of n"),
        ({"rho": "0x0p+0"}, "positive"),
        ({"out": []}, "keys"),
    ],
)
def test_rounds_that_are_wrong_are_refused(changes, why):
    lines, Y = rounds_lines()
    lines[1]["rounds"][0] |= changes
    assert_refused(lines, Y, why)


def test_a_vector_is_a_help_that_integers_do_without():
    """What it helps to show is true: float64 then fails, and exact forms decide."""
    lines, Y = rounds_lines()
    lines[1]["rounds"][0]["vector"] = ["0x1p+1023"] * 5
    with pytest.raises(ProofError, match="round"):
        check_proof(as_bytes(lines), Y, floats=True)
    check_proof(as_bytes(lines), Y, exact=True)
    assert_false_is_refused(lines, Y)


@pytest.mark.parametrize("seed", range(4))
def test_a_round_cannot_name_what_it_does_not_show(seed):
    """Every feature moved from where it was shown to be: in, out or free."""
    lines, Y = rounds_lines(seed)
    first = lines[1]["rounds"][0]
    for i in range(9):
        for key in ("in", "free", None):
            other = copy.deepcopy(lines)
            one = other[1]["rounds"][0]
            for name in ("in", "free"):
                one[name] = sorted({*one[name]} - {i} | ({i} if name == key else set()))
            if key == "free" or i in first.get(key or "", []):
                continue  # a feature may stay free; later rounds may then fail or hold
            if key is None and i not in first["in"] + first["free"]:
                continue
            assert_false_is_refused(other, Y)


def assert_false_is_refused(lines: list[Json], Y: np.ndarray) -> None:
    """Lower the bound to below the optimum: then no rounds may be accepted."""
    value = best_set(np.cov(Y.T), 3)[0]
    lines[1]["upper"] = (value * (1 - 1e-6)).hex()
    lines[0]["claims"][0]["upper_bound"] = (value * (1 - 5e-7)).hex()
    lines[0]["claims"][0]["objective"] = (value * (1 - 1e-5)).hex()
    assert_refused(lines, Y)


@pytest.mark.parametrize("seed", range(8))
def test_rounds_never_show_less_than_the_optimum(seed):
    """All features out at once, all in, the best set forgotten: none is accepted."""
    lines, Y = rounds_lines(seed)
    S = list(best_set(np.cov(Y.T), 3)[1])
    rest = [i for i in range(9) if i not in S]
    one = lines[1]["rounds"][0]
    for needed, free in (([], []), ([], rest), (rest[:3], []), (S[:1], rest), (S, [])):
        lines[1]["rounds"] = [one | {"in": needed, "free": free}]
        assert_false_is_refused(lines, Y)


def test_rounds_whose_forms_are_not_looked_at_would_be_accepted(monkeypatch):
    """In integers: so that the refusals above are those of the forms."""
    lines, Y = rounds_lines()
    monkeypatch.setattr(integer_direction, "is_shown_in_integers", lambda *given: True)
    value = best_set(np.cov(Y.T), 3)[0]
    worst = [int(i) for i in np.argsort(np.var(Y, axis=0))[:3]]
    lines[1]["rounds"][0] |= {"in": [], "free": sorted(worst)}
    lines[1]["rounds"] = lines[1]["rounds"][:1]
    lines[1]["upper"] = (value * 0.99).hex()
    lines[0]["claims"][0]["upper_bound"] = (value * 0.995).hex()
    lines[0]["claims"][0]["objective"] = (value * 0.98).hex()
    check_proof(as_bytes(lines), Y, exact=True)
    monkeypatch.undo()
    assert_refused(lines, Y, "not shown to be out")


def test_rounds_are_of_version_4():
    lines, Y = rounds_lines()
    lines[0]["version"] = 3
    assert_refused(lines, Y, "version 4")


# -- data ---------------------------------------------------------------------------


def rehashed(Y: np.ndarray) -> list[Json]:
    lines = copy.deepcopy(LINES)
    lines[0]["data"] = describe(Y)
    return lines


def test_other_data_are_refused():
    assert_refused(
        LINES, A + np.diag([0, 0, 0, 0, 5e-324]) * 0 + np.eye(5), "other data"
    )
    assert_refused(LINES, A[::-1], "other data")
    assert_refused(LINES, A[:4], "the data are")
    assert_refused(LINES, np.asfortranarray(A[:, ::-1]), "other data")


def test_the_sign_of_zero_is_no_difference():
    check_proof(as_bytes(LINES), np.where(A == 0, -0.0, A), exact=True)


def test_a_hash_of_other_data_proves_nothing_about_them():
    """The proof of A, with the hash of a matrix that has more."""
    Y = A.copy()
    Y[3, 4] = Y[4, 3] = 5.0
    assert_refused(rehashed(Y), Y, "k = 2")


def test_half_of_a_matrix_does_not_count_twice():
    """A is (Y + Y')/2: with Y upper triangular its entries are halves of Y's."""
    Y = np.array([[1.0, 8.0], [0.0, 1.0]])
    records = [{"k": 1, "upper": "0x1p+0", "rule": "variance"}]
    records += [{"k": 2, "upper": (5.0).hex(), "rule": "rows"}]
    check_proof(as_bytes(matrix_proof(Y, records, [claim(2, 5.0)])), Y, exact=True)
    records[1]["upper"] = (4.9).hex()
    assert_refused(matrix_proof(Y, records, [claim(2, 4.9)]), Y, "row sum")


@pytest.mark.parametrize(
    "Y",
    [
        np.full((5, 5), np.nan),
        np.full((5, 5), np.inf),
        A.astype(complex),
        A.astype(object),
        A.astype(str),
        A.astype(np.longdouble),
        A[None],
        A[:0],
        np.zeros((2, 2), dtype=[("a", float)]),
        np.zeros((2, 2), dtype="datetime64[s]"),
    ],
)
def test_data_that_are_no_numbers_are_refused(Y):
    with pytest.raises(ProofError, match="data"):
        as_data(Y)


def test_pickles_are_not_read(tmp_path):
    np.save(tmp_path / "a.npy", A.astype(object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=A.astype(object))
    (tmp_path / "a.pkl").write_bytes(b"")
    (tmp_path / "b.npz").write_bytes(b"no archive")
    for name in ("a.npy", "a.npz", "a.pkl", "b.npz", "none.npy"):
        with pytest.raises(ProofError, match=r"a\.|none|b\."):
            read_data(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 0])},
        {"indices": np.array([0, -1])},
        {"indices": np.array([0, 9])},
        {"format": np.array(b"bsr")},
        {"data": np.array([1.0, np.nan])},
    ],
)
def test_sparse_data_that_hide_numbers_are_refused(change, tmp_path):
    whole = {
        "format": np.array(b"csr"),
        "shape": np.array([1, 3]),
        "data": np.array([1.0, 2.0]),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 2]),
    }
    np.savez(tmp_path / "good.npz", **whole)
    np.testing.assert_array_equal(read_data(tmp_path / "good.npz"), [[1.0, 2.0, 0.0]])
    np.savez(tmp_path / "bad.npz", **(whole | change))
    with pytest.raises(ProofError):
        read_data(tmp_path / "bad.npz")


def data_lines(Y: np.ndarray, upper: float, **options: Any) -> list[Json]:
    """A proof that the largest variance is at most `upper`, and that it is reached."""
    above = claim(1, upper + abs(upper) * 2.0**-50)
    records = [{"k": 1, "upper": float(upper).hex(), "rule": "variance"}]
    lines = matrix_proof(Y, records, [above])
    lines[0]["data"] = describe(Y, "data", **options)
    return lines


def test_cancellation_in_the_data_is_no_help():
    """Large means: a variance from products in float64 is wrong, even negative."""
    Y = np.array([[1e8], [1e8 + 1], [1e8 + 2]])
    naive = float((Y.T @ Y)[0, 0] - 3 * Y.mean() ** 2) / 2
    assert naive != 1.0  # it is 1
    for upper in (0.999999, min(naive, 0.0), float(np.nextafter(1.0, 0))):
        assert_refused(data_lines(Y, upper), Y)
    check_proof(as_bytes(data_lines(Y, 1.0 + 1e-12)), Y, exact=True)
    check_proof(as_bytes(data_lines(Y, 1.0 + 1e-12)), Y, floats=True)


def test_the_divisor_is_the_one_that_is_named():
    Y = np.array([[0.0], [2.0]])
    check_proof(as_bytes(data_lines(Y, 2.1, ddof=1)), Y)
    check_proof(as_bytes(data_lines(Y, 1.1, ddof=0)), Y)
    assert_refused(data_lines(Y, 1.1, ddof=1), Y, "variances")
    check_proof(as_bytes(data_lines(Y, 2.1, ddof=0, center=False)), Y)
    assert_refused(data_lines(Y, 1.1, ddof=0, center=False), Y, "variances")
    for ddof in (2, 3, -1, True):
        assert_refused(data_lines(Y, 99.0, ddof=ddof), Y, "ddof")
    for flag in (1, "true", None):
        assert_refused(data_lines(Y, 99.0, center=flag), Y, "true or false")


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-300, 1e-170, 1e-20])
def test_correlations_of_columns_that_hardly_vary(tiny):
    """A column that varies has variance 1 after scaling, however little it varies."""
    Y = np.array([[tiny, 1.0], [0.0, 2.0], [0.0, 4.0]])
    low = claim(1, 1.0 + 1e-9, 1.0 - 1e-9)
    lines = data_lines(Y, 1.0 + 1e-10, scale=True)
    lines[0]["claims"] = [low]
    if tiny:
        check_proof(as_bytes(lines), Y, exact=True)
        low["upper_bound"] = lines[1]["upper"] = (0.9).hex()
        low["objective"] = (0.5).hex()
        assert_refused(lines, Y, "variances")
    else:
        assert_refused(lines, Y, "less than the objective")


@pytest.mark.parametrize("size", [1e308, 1.7e308])
def test_sums_that_overflow_are_no_infinity(size):
    Y = np.array([[size, size], [-size, size]])
    records = [{"k": 1, "upper": float(size).hex(), "rule": "variance"}]
    lines = matrix_proof(Y, records, [claim(1, size * (1 + 2.0**-50))])
    check_proof(as_bytes(lines), Y, exact=True)
    lines[1]["upper"] = lines[0]["claims"][0]["upper_bound"] = (size / 2).hex()
    assert_refused(lines, Y, "variances")
    lines = data_lines(Y, 1e308)
    assert_refused(lines, Y)


def test_tiny_entries_beside_huge_ones_still_count():
    """A_12 = 1e-200 beside 1: what 64 bits of the unit lose is in e."""
    Y = np.array([[1.0, 1e-200], [1e-200, 1.0]])
    records = [{"k": 1, "upper": "0x1p+0", "rule": "variance"}]
    for text in ("L", "P", "S0"):
        lines = [*records, tree(2, 1.0, [0, 1], text)]
        assert_refused(matrix_proof(Y, lines, [claim(2, 1.0)]), Y)


def test_integers_beyond_the_floats_are_rounded_before_the_hash():
    """2⁵³ + 1 is read as 2⁵³: the hash and the matrix are of what was read."""
    whole = np.array([[2**53 + 1]])
    Y = as_data(whole)
    assert sha256(Y) == sha256(np.array([[2.0**53]]))
    records = [{"k": 1, "upper": (2.0**53).hex(), "rule": "variance"}]
    lines = matrix_proof(Y, records, [claim(1, 2.0**53)])
    check_proof(as_bytes(lines), whole)


def test_memory_order_and_type_do_not_change_the_data():
    for Y in (np.asfortranarray(A), A.astype(np.float16), A.astype(">f8"), A[::1]):
        check_proof(as_bytes(LINES), Y, exact=True)
    stream = io.BytesIO()
    np.save(stream, A.T.copy().T)
    stream.seek(0)
    check_proof(as_bytes(LINES), np.load(stream), exact=True)


def test_a_proof_of_one_kind_is_none_of_another():
    rng = np.random.default_rng(1)
    Y = rng.standard_normal((6, 4)) * [4, 1, 1, 1]
    lines = Builder(Y, describe(Y, "data", scale=True), rng).build(2)
    check_proof(as_bytes(lines), Y)
    lines[0]["data"]["scale"] = False
    assert best_set(np.cov(Y.T), 1)[0] > 1.5
    assert_refused(lines, Y)
