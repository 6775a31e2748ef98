"""Which spellings of numbers a proof may have: docs/proof-format.md, section 2."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.fields import REAL, ProofError, integer, parse, real
from blockspca.checker.versions import NEWEST, VERSIONS
from proof_builder import Json, as_bytes

EXAMPLE = Path(__file__).parents[1] / "proofs" / "example-5x5.proof"
A = np.diag([4.0, 4, 3, 3, 2]) + np.diag([2.0, 0, 1, 1], 1) + np.diag([2.0, 0, 0], 2)
A[0, 3] = A[1, 4] = 1.0
A = np.triu(A) + np.triu(A, 1).T
PAGE = Path(__file__).parents[2] / "docs" / "proof-format.md"


def example() -> list[Json]:
    return [json.loads(line) for line in EXAMPLE.read_text().splitlines()]


def assert_refused(lines: list[Json], why: str) -> None:
    for mode in ({"exact": True}, {"floats": True}, {}):
        # Floats alone cannot decide a row sum of the example before they come to it.
        with pytest.raises(ProofError, match=why if mode != {"floats": True} else None):
            check_proof(as_bytes(lines), A, **mode)


def test_the_page_has_the_pattern():
    assert f"\n    {REAL.pattern}\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1.8p+1", 3.0),
        ("-0x1p-3", -0.125),
        ("0x0.0p+0", 0.0),
        ("-0x0p0", 0.0),
        ("0x1p-1074", 5e-324),
        ("0x0.8p-1073", 5e-324),
        ("0x0.0000000000001p-1022", 5e-324),
        ("0x1.0000000000001p-1022", 2.0**-1022 + 2.0**-1074),
        ("0x1.fffffffffffffp+1023", (2 - 2.0**-52) * 2.0**1023),
        ("0x1.8p01", 3.0),
    ],
)
def test_numbers(text, value):
    assert real(text, "here") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "10",
        "inf",
        "-inf",
        "nan",
        "0x",
        "0x1",
        "0x1.8",
        "0x1.p+0",
        "0x.8p+0",
        "0x2p+0",
        "0x10p+0",
        "0X1p+0",
        "0x1P+0",
        "0x1.Ap+0",
        "+0x1p+0",
        " 0x1p+0",
        "0x1p+0\n",
        "0x1p+ 0",
        "0x1_0p+0",
        "0x1.00000000000000p+0",  # 14 digits
        "0x1p+1024",  # too large
        "0x1.8p-1074",  # between two float64
        "0x1p-1075",
        "0x1.fffffffffffffp-1023",  # would be rounded up
        "0x1p+00000",
        "0x\u0661p+0",
    ],
)
def test_what_is_no_number(text):
    with pytest.raises(ProofError, match="here"):
        real(text, "here")


@pytest.mark.parametrize(
    "text", ["1.0", "1e2", "true", "null", '"1"', "01", "+1", "0x1", "1_0", "NaN", "-"]
)
def test_what_is_no_integer(text):
    with pytest.raises(ProofError):
        integer(parse(text, 1), "here")


@pytest.mark.parametrize("number", [1.5, 3, True, None, ["0x1p+0"]])
def test_real_numbers_are_texts(number):
    with pytest.raises(ProofError, match="a text"):
        real(number, "here")


@pytest.mark.parametrize("source", [0, -1, 3, 4, 2**70])
def test_an_average_is_over_sets_of_at_least_one_and_fewer_than_k(source):
    lines = example()
    lines[3] = {"k": 3, "upper": "0x1p+60", "rule": "average", "from": source}
    lines[0]["claims"][0]["upper_bound"] = "0x1p+61"
    assert_refused(lines, "average needs a record of m < k")


@pytest.mark.parametrize("k", [0, -1, 6])
def test_a_record_is_of_1_to_d_features(k):
    lines = example()
    lines[1]["k"] = k
    assert_refused(lines, f"k = {k} is not in 1 to 5")


def test_the_example_itself_is_right():
    check_proof(as_bytes(example()), A)


def test_versions_are_those_of_the_page():
    """What section 12 puts into code letters, line by line, is in the table."""
    page = PAGE.read_text("utf-8").split("## 12. Versions")[1]
    rows = re.findall(r"^\| (\d) \| (.+) \|$", page, re.MULTILINE)
    said: dict[str, int] = {}
    for version, what in rows:
        for name in re.findall(r"`\"?([a-z-]+)\"?`", what):
            said.setdefault(name, int(version))  # version 1 lacks what 2 has
    said["without"] = 2
    assert said == VERSIONS
    assert list(VERSIONS.values()) == sorted(VERSIONS.values())
    assert int(rows[-1][0]) == NEWEST
