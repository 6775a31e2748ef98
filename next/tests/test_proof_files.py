"""Proof files: written, read strictly, and refused with a sentence if they are bad."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from blockspca.checker.__main__ import main
from blockspca.checker.data import read_data, sha256
from blockspca.checker.reading import DataError

EXAMPLE = np.array(
    [
        [4.0, 2, 2, 1, 0],
        [2, 4, 0, 0, 1],
        [2, 0, 3, 1, 0],
        [1, 0, 1, 3, 1],
        [0, 1, 0, 1, 2],
    ]
)
PAGE = Path(__file__).resolve().parent.parent / "docs" / "proof-format.md"


def example():
    """Return the worked example of the page."""
    records = [
        {"rule": "variance", "k": 1, "upper": "0x1p+2"},
        {"rule": "rows", "k": 2, "upper": "0x1.8p+2"},
        {"rule": "tree", "k": 3, "upper": "0x1.bp+2", "features": [0, 1, 2]},
    ]
    records[2]["nodes"] = 1
    claim = {
        "k": 3,
        "support": [0, 1, 2],
        "x": ["0x1.8p+1", "0x1p+1", "0x1p+1"],
        "objective": "0x1.ap+2",
        "upper": "0x1.bp+2",
    }
    proof = {"problem": {"kind": "matrix"}, "claims": [claim], "records": records}
    return {
        "format": "blockspca-proof",
        "version": 1,
        "data": {"sha256": sha256(EXAMPLE), "samples": 5, "features": 5},
        "proofs": [proof],
    }


@pytest.fixture
def check(tmp_path, capsys):
    """Return a function that checks a document and returns (code, output)."""

    def run(document, *options, data=EXAMPLE):
        is_text = isinstance(document, str | bytes)
        text = document if is_text else json.dumps(document)
        proof = tmp_path / "a.proof"
        proof.write_bytes(text if isinstance(text, bytes) else text.encode())
        np.save(tmp_path / "data.npy", data)
        code = main([str(proof), str(tmp_path / "data.npy"), *options])
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize("options", [(), ("--exact",), ("--explain",)])
def test_the_example_of_the_page_holds(check, options):
    code, output = check(example(), *options)
    assert code == 0
    assert "ACCEPTED: 6.5 <= opt(3) <= 6.75 (gap 3.85 %)" in output
    assert ("integers" if "--exact" in options else "float64") in output
    assert ("opt(2) <= 6 by rows" in output) == ("--explain" in options)
    assert '"upper": "0x1.bp+2", "features": [0, 1, 2]' in PAGE.read_text()
    assert code == 0


def test_the_command_needs_numpy_only(tmp_path):
    (tmp_path / "a.proof").write_text(json.dumps(example()))
    np.save(tmp_path / "data.npy", EXAMPLE)
    code = (
        "import sys, runpy; sys.argv = ['checker', 'a.proof', 'data.npy']\n"
        "try: runpy.run_module('blockspca.checker', run_name='__main__')\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = {'scipy', 'numba', 'sklearn', 'pandas'} & sys.modules.keys()\n"
        "sys.exit(code or ', '.join(heavy) or 0)"
    )
    end = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert end.returncode == 0, end.stderr
    assert "ACCEPTED" in end.stdout


def put(document, path, value):
    """Set the value at a path of keys; the value `del` deletes it."""
    for key in path[:-1]:
        document = document[key]
    if value is del_:
        del document[path[-1]]
    else:
        document[path[-1]] = value


del_ = object()
PROOF = ("proofs", 0)
CLAIM, TREE = (*PROOF, "claims", 0), (*PROOF, "records", 2)
ROWS = (*PROOF, "records", 1)

BAD = {
    "no format": (("format",), del_),
    "other format": (("format",), "proof"),
    "version 2": (("version",), 2),
    "version true": (("version",), True),
    "unknown key": (("more",), 1),
    "huge integer": (("version",), 10**400),
    "large integer": ((*TREE, "k"), 10**17),
    "k 0": ((*TREE, "k"), 0),
    "k beyond d": ((*TREE, "k"), 6),
    "negative nodes": ((*TREE, "nodes"), -1),
    "float nodes": ((*TREE, "nodes"), 1.0),
    "NaN": ((*TREE, "nodes"), float("nan")),
    "infinity": ((*ROWS, "upper"), float("inf")),
    "upper as number": ((*ROWS, "upper"), 6),
    "upper nan": ((*ROWS, "upper"), "nan"),
    "upper inf": ((*ROWS, "upper"), "inf"),
    "upper out of range": ((*ROWS, "upper"), "0x1p5000"),
    "upper too small": ((*ROWS, "upper"), "0x1.8p-1074"),
    "upper decimal": ((*ROWS, "upper"), "6.5"),
    "upper with a newline": ((*ROWS, "upper"), "0x1p+4\n"),
    "upper list": ((*ROWS, "upper"), [[[]]]),
    "upper null": ((*ROWS, "upper"), None),
    "same feature": ((*TREE, "features"), [0, 0]),
    "feature beyond": ((*TREE, "features"), [5]),
    "nested features": ((*TREE, "features"), [[0]]),
    "no features": ((*TREE, "features"), del_),
    "unknown rule": ((*TREE, "rule"), "trust me"),
    "rule list": ((*TREE, "rule"), []),
    "dual": ((*TREE, "rule"), "dual"),
    "record number": (TREE, 3),
    "record key": ((*ROWS, "nodes"), 3),
    "low upper": ((*TREE, "upper"), "0x1.a8p+2"),
    "low claim": ((*CLAIM, "upper"), "0x1.aep+2"),
    "high objective": ((*CLAIM, "objective"), "0x1.a9p+2"),
    "zero x": ((*CLAIM, "x"), ["0x0p+0"] * 3),
    "short x": ((*CLAIM, "x"), ["0x1p+0"] * 2),
    "huge x": ((*CLAIM, "x"), ["0x1p+1023"] * 3),
    "descending support": ((*CLAIM, "support"), [2, 1, 0]),
    "large support": ((*CLAIM, "k"), 2),
    "no claims": ((*PROOF, "claims"), []),
    "no proofs": (("proofs",), []),
    "other kind": ((*PROOF, "problem", "kind"), "gram"),
    "kind list": ((*PROOF, "problem", "kind"), ["data"]),
    "ddof of a matrix": ((*PROOF, "problem", "ddof"), 1),
    "include": ((*PROOF, "problem", "include"), [0]),
    "without all": ((*PROOF, "problem", "without"), [0, 1, 2, 3, 4]),
    "without the support": ((*PROOF, "problem", "without"), [0]),
    "overlapping groups": (
        (*PROOF, "problem", "groups"),
        [{"most": 1, "features": [0, 1]}, {"most": 1, "features": [1]}],
    ),
    "full group": (
        (*PROOF, "problem", "groups"),
        [{"most": 1, "features": [0, 1]}],
    ),
    "group of none": ((*PROOF, "problem", "groups"), [{"most": 0, "features": [0]}]),
    "residual of itself": (
        (*PROOF, "problem", "residual"),
        [{"support": [0], "x": ["0x1p+0"]}] * 2,
    ),
    "more samples": (("data", "samples"), 6),
    "samples huge": (("data", "samples"), 10**18 - 1),
    "other hash": (("data", "sha256"), "0" * 64),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_a_sentence(check, name):
    document = example()
    put(document, *BAD[name])
    for options in ((), ("--exact",)):
        code, output = check(document, *options)
        assert code == 1
        assert output.startswith("NOT ACCEPTED: ")
        assert output.endswith(".\n")
        assert "Traceback" not in output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "[" * 100_000,
        '{"format": 1, "format": 1}',
        b"\xff\xfe",
        "NaN",
        '{"version": -}',
    ],
)
def test_text_that_is_no_proof_is_refused(check, text):
    code, output = check(text)
    assert code == 1
    assert output.startswith("NOT ACCEPTED: ")


def test_damaged_documents_end_in_a_verdict(check):
    """Cut, doubled and overwritten text: a verdict, and no false claim."""
    rng = np.random.default_rng(0)
    document = example()
    document["proofs"][0]["claims"][0]["upper"] = "0x1.a8p+2"  # 6.625 < 6.626
    text = json.dumps(document)
    for _ in range(300):
        at, length = rng.integers(len(text)), rng.integers(1, 9)
        middle = rng.choice(
            ["", "9", '"', "0x", "null", "-", "1e9", "[", text[at : at + 9]]
        )
        damaged = text[:at] + str(middle) + text[at + length :]
        code, output = check(damaged)
        assert code == 1, damaged
        assert output.startswith("NOT ACCEPTED: ")


def test_a_proof_of_other_data_is_refused(check):
    other = EXAMPLE.copy()
    other[0, 1] += 2.0**-40
    code, output = check(example(), data=other)
    assert code == 1
    assert "other data" in output


def test_data_are_the_numbers_however_they_are_stored(tmp_path):
    Y = np.array([[1.5, 0.0, -2.0], [0.0, 0.25, 3.0]])
    files = []

    def path(name):
        files.append(tmp_path / name)
        return files[-1]

    np.save(path("a.npy"), np.asfortranarray(Y))
    np.save(path("negative.npy"), np.where(Y == 0, -0.0, Y))
    np.savez(path("x.npz"), X=Y)
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(path(f"{kind}.npz"), sparse.coo_array(Y).asformat(kind))
    path("a.csv").write_text("a,b,c\n1.5,0,-2\n0,0.25,3\n")
    path("named.csv").write_text("gene,a,b,c\ns,1.5,0,-2\nt,0,0.25,3\n")
    path("a.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n% note\n2 3 4\n"
        "1 1 1.5\n1 3 -2\n2 2 0.25\n2 3 3\n"
    )
    assert len({sha256(read_data(file)) for file in files}) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00"),
        ("a.npy", b""),
        ("a.npz", b"PK\x03\x04 no archive"),
        ("a.csv", b"a,b\n1\n2,3\n"),
        ("a.csv", b"a,b\n1,x\n"),
        ("a.csv", b"a,b\n1,nan\n"),
        ("a.csv", b"\xff\xff"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n9 9 1\n"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n"),
        ("a.mtx", b"hello"),
        ("a.txt", b"1 2"),
        ("nothing.npy", None),
    ],
)
def test_bad_data_are_refused(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="data"):
        read_data(tmp_path / name)


def test_arrays_that_are_no_numbers_are_refused(tmp_path):
    for values in (
        np.array([["a", "b"]]),
        np.zeros((2, 0)),
        np.zeros(3),
        np.array([[1j]]),
        np.array([[np.inf]]),
        np.array([[None]]),
    ):
        np.save(tmp_path / "a.npy", values)
        with pytest.raises(DataError, match="data"):
            read_data(tmp_path / "a.npy")
