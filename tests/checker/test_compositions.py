"""Rule "compositions": proofs hold, and no count, part or case can be left out."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.composition_tables import CompositionTables
from blockspca.checker.fields import ProofError
from blockspca.checker.floats import FloatMatrix
from blockspca.checker.integers import IntegerMatrix
from blockspca.checker.proof_file import read_proof
from proof_builder import Json, Truth, as_bytes, describe
from proof_compositions import composition_proof

MODES = ({"exact": True}, {"floats": True})

#: Two parts, and a pair that is strong although it is in none.
SEVEN = np.full((7, 7), 0.1)
SEVEN[:3, :3], SEVEN[3:5, 3:5], SEVEN[5:, 5:] = 1.0, 1.2, 0.3
np.fill_diagonal(SEVEN, [2.0, 2.0, 2.0, 2.0, 2.0, 1.5, 1.5])


def proof_lines(k: int, upper: float, **more: Any) -> list[Json]:
    values, vectors = np.linalg.eigh(SEVEN[:k, :k])
    claim = {"k": k, "support": list(range(k))}
    claim |= {"x": [float(x).hex() for x in vectors[:, -1]]}
    claim |= {"objective": (float(values[-1]) - 1e-6).hex()}
    claim |= {"upper_bound": (upper + 1e-6).hex()}
    header: Json = {"format": "blockspca-proof", "version": 9, "data": describe(SEVEN)}
    header |= {"row_list": 2, "claims": [claim]} | more.pop("header", {})
    record = {"k": k, "upper": upper.hex(), "rule": "compositions"}
    record |= {"parts": [[0, 1, 2], [3, 4]], "level": (0.31).hex(), "bounds": [[], []]}
    record |= {"counts": "S0", "cases": []} | more
    return [header, record, {"end": 1}]


def assert_refused(lines: list[Json], why: str, Y: np.ndarray = SEVEN) -> None:
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), Y, **mode)


def assert_holds(lines: list[Json], Y: np.ndarray = SEVEN) -> None:
    for mode in MODES:
        check_proof(as_bytes(lines), Y, **mode)


def test_counts_alone():
    """k = 3: the first part has 4; two of it and one of the second have less."""
    assert_holds(proof_lines(3, 4.05))
    assert Truth(SEVEN, describe(SEVEN)).allows(3, 3.9, 4.05)
    assert_refused(proof_lines(3, 3.99), "counts")


def case(features: list[int], tree: str) -> Json:
    return {"features": features, "tree": tree}


def test_a_case_of_whole_parts_and_one_with_a_tree():
    # by the counts 2, 1, 0 and 3, 0, 0: the latter is one set
    one = {"counts": "S1 3 L", "cases": [case([], "L")]}
    assert_holds(proof_lines(3, 4.02, **one))
    assert_holds(proof_lines(3, 4.001, **one))
    assert_refused(proof_lines(3, 3.999, **one), "whole part|B_pp")
    # k = 2: the second part is whole and has 3.2; two of the first have 3
    two = {"counts": "S2 0 2 S1 2 L L", "cases": [case([], "L"), case([2, 0, 1], "L")]}
    lines = proof_lines(2, 3.201, **two)
    assert_holds(lines)
    lines[1]["cases"][1]["features"] = [0, 1]  # what is missing can be dropped
    assert_holds(lines)
    lines[1]["cases"][1] = case([0, 1, 3], "L")
    assert_refused(lines, "features that its counts leave out")
    lines[1]["cases"] = [case([], "L"), case([2, 0, 1], "S0")]
    assert_holds(lines)
    lines[1]["cases"] = [case([3], "S0"), case([2, 0, 1], "L")]
    assert_refused(lines, "features that its counts leave out")
    lines[1]["cases"] = [case([], "S0"), case([2, 0, 1], "L")]
    assert_refused(lines, "without a choice is closed by L")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"header": {"version": 8}}, "version 9"),
        ({"parts": []}, "1 to 100 parts"),
        ({"parts": [[0, 1, 2], []]}, "1 to 100 parts"),
        ({"parts": [[0, 1, 2], [2, 3]]}, "different features"),
        ({"parts": [[0, 2, 1], [3, 4]]}, "ascending"),
        ({"parts": [[0, 1, 1], [3, 4]]}, "ascending"),
        ({"parts": [[0, 1, 7], [3, 4]]}, "different features"),
        ({"parts": [[0, 1, 2], [-1, 3]]}, "different features"),
        ({"bounds": [[]]}, "a list of bounds"),
        ({"bounds": [[], [], []]}, "a list of bounds"),
        ({"bounds": [[{"t": "0x1p+2", "v": ["0x0p+0"]}], []]}, "v has a number"),
        ({"bounds": [[{"t": "nan", "v": ["0x0p+0"] * 3}], []]}, "hexadecimal"),
        ({"bounds": [[{"t": "0x1p+1", "v": ["0x0p+0"] * 3}], []]}, "not shown"),
        ({"bounds": [[{"t": "0x1p+1", "v": ["0x1p-1"] * 3}], []]}, "not shown"),
        ({"bounds": [[{"t": "-0x1p+60", "v": ["0x1p+30"] * 3}], []]}, "not shown"),
        ({"level": "inf"}, "hexadecimal"),
        ({"level": "-0x1p-1"}, "negative"),
        ({"level": (0.29).hex()}, "above the level"),
        ({"level": "0x0p+0"}, "above the level"),
        ({"counts": "P"}, "counts have S"),
        ({"counts": "D S0"}, "counts have S"),
        ({"counts": "L"}, "an L for each"),
        ({"counts": "L", "cases": [case([], "L")]}, "counts of the next part"),
        ({"counts": "S1 4 L", "cases": [case([], "L")]}, "position 4"),
        ({"counts": "S1 3 S0"}, "a case is expected"),
        (
            {"counts": "S1 0 S1 3 L", "cases": [case([], "L")]},
            "3 features of a part with room for 2",
        ),
        (
            {"counts": "S1 0 S1 0 S1 0 S0"},
            "the next part",
        ),
        (
            {"counts": "S1 3 L", "cases": [case([], "L"), case([], "L")]},
            "an L for each",
        ),
        ({"counts": "S1 3 L", "cases": [case([0], "L")]}, "its counts leave out"),
        ({"more": 1}, "the keys are"),
    ],
)
def test_what_is_not_so_is_refused(more: Json, why: str):
    assert_refused(proof_lines(3, 4.05, **more), why)


@pytest.mark.parametrize(
    ("parts", "level", "upper"),
    [
        ([[0, 1], [3, 4]], 0.31, 3.5),  # a feature of a strong part is left out
        ([[0, 1, 2]], 0.31, 4.05),
        ([[3, 4]], 0.31, 3.5),
        ([[0, 1, 2], [3, 4]], 0.2, 3.99),
    ],
)
def test_what_is_strong_must_be_in_a_part(parts, level, upper):
    more = {"parts": parts, "level": level.hex(), "bounds": [[] for _ in parts]}
    assert_refused(
        proof_lines(3, upper, **more), "above the level|not shown to be below"
    )


def test_a_feature_that_a_case_leaves_out_must_be_dropped():
    more: Json = {"parts": [[0, 1, 2, 3, 4]], "bounds": [[]], "counts": "S1 3 L"}
    tree = "S5 0 1 2 3 4 S4 1 2 3 4 L L L L S3 2 3 4 L L L S2 3 4 L L S1 4 L L"
    more["cases"] = [case([0, 1, 2, 3, 4], tree)]
    assert_holds(proof_lines(3, 4.3, **more))
    tree = "S4 0 1 2 3 S3 1 2 3 L L L S2 2 3 L L S1 3 L L"
    more["cases"] = [case([0, 1, 2, 3], tree)]
    assert_holds(proof_lines(3, 4.001, **more))  # 4 is in no such set
    more["cases"] = [case([1, 2, 3, 4], tree)]
    assert_refused(proof_lines(3, 4.001, **more), "drop")


def test_a_bound_of_another_k_is_no_case():
    """The chain is of fewer features, and of the record itself: nothing of k."""
    lines = proof_lines(3, 3.5, counts="S1 3 L", cases=[case([], "L")])
    lines.insert(1, {"k": 2, "upper": (3.4).hex(), "rule": "rows"})
    lines[-1] = {"end": 2}
    assert_refused(lines, "k = 3")


def test_every_pair_beside_the_parts_is_looked_at():
    for kind in ("matrix", "data"):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            Y = rng.standard_normal((9, 9)) * rng.gamma(1.0, size=9)
            Y = Y + Y.T if kind == "matrix" else Y
            claim = {"k": 1, "support": [0], "x": ["0x1p+0"]}
            claim |= {"objective": "-0x1p+9", "upper_bound": "0x1p+9"}
            header = {"format": "blockspca-proof", "version": 1, "row_list": 1}
            header |= {"data": describe(Y, kind), "claims": [claim]}
            problem = read_proof(as_bytes([header, {"end": 0}]))[0].problem
            for make in (FloatMatrix, IntegerMatrix):
                bounds = make(Y, problem).upper_bounds()
                rest = np.sort(rng.choice(9, 6, replace=False))
                found = bounds.entries(rest)(np.arange(6), 6)
                np.fill_diagonal(found, 0.0)
                largest = float(found.max())
                parts = [np.setdiff1d(np.arange(9), rest), rest]
                for level, holds in ((1 + 1e-9, True), (1 - 1e-6, False)):
                    level *= largest
                    tables = CompositionTables(bounds, parts, True, level, 3)
                    assert tables.is_level() == holds


def test_tables_bound_every_set():
    """u(k), and what counts have, in both kinds of numbers."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((7, 7)) * rng.choice([0.1, 1.0], size=7)
        Y = B + B.T
        header = proof_lines(3, 4.0)[0] | {"data": describe(Y)}
        problem = read_proof(as_bytes([header, {"end": 0}]))[0].problem
        parts = [np.array(part) for part in ((0, 3), (1, 2, 4), (5, 6))]
        level = float(np.abs(Y[5, 6])) * (1 + 1e-12)
        for make, bits in ((FloatMatrix, 0), (IntegerMatrix, 64)):
            matrix = make(Y, problem)
            factor = float(matrix.number(1.0)) / 2.0**bits
            bounds = matrix.upper_bounds()
            tables = CompositionTables(bounds, parts, True, level * factor, 4)
            tables.finish([[], [], []])
            for q in range(1, 5):
                best = max(
                    np.linalg.eigvalsh(Y[np.ix_(S, S)])[-1]
                    for S in itertools.combinations(range(7), q)
                )
                assert tables.most[0][q] / factor >= best - 1e-12
            for S in itertools.combinations(range(7), 4):
                held = [len({*S} & {*part.tolist()}) for part in parts]
                own = float(np.linalg.eigvalsh(Y[np.ix_(S, S)])[-1])
                tau = (own - 1e-9) * factor
                for g in range(3):
                    last = np.array(held[g : g + 1])
                    assert not tables.are_closed(held[:g], last, tau).any()


def test_proofs_of_random_problems_hold_and_lower_ones_do_not():
    kinds: set[str] = set()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 8))
        k = int(rng.integers(2, min(d, 5) + 1))
        lines, Y = composition_proof(rng, d, k)
        assert_holds(lines, Y)
        record, claim = lines[-2], lines[0]["claims"][0]
        kinds |= {"closed"} if "S0" in record["counts"] else set()
        kinds |= {token[0] for one in record["cases"] for token in one["tree"].split()}
        kinds |= {"whole" for one in record["cases"] if not one["features"]}
        forged = copy.deepcopy(lines)
        value = float.fromhex(claim["objective"])
        forged[-2]["upper"] = (value - 1e-6 * abs(value)).hex()
        forged[0]["claims"][0]["upper_bound"] = forged[-2]["upper"]
        assert_refused(forged, f"k = {k}", Y)
    assert {"closed", "whole", "L", "P", "S", "D"} <= kinds
