"""The checker accepts what is right, by hand or by another writer."""

from __future__ import annotations

import itertools
import json
import sys
from fractions import Fraction

import numpy as np
import pytest

from blockspca.checker.__main__ import main
from blockspca.checker.check import check_proof
from blockspca.checker.data import as_data, data_hash, read_data
from blockspca.checker.floats import FloatMatrix
from blockspca.checker.integer_tree import is_positive_semidefinite
from blockspca.checker.integers import IntegerMatrix
from blockspca.checker.proof_file import Problem, ProofError, read_proof
from proof_builder import (
    EXAMPLE,
    FIVE,
    Builder,
    Truth,
    as_bytes,
    definite,
    describe,
    direction_proof,
    exact_forms,
    random_problem,
    rounds_proof,
    sha256,
)

A = FIVE


def test_the_worked_example_holds():
    verdict = check_proof(EXAMPLE, A, exact=True)
    assert verdict.arithmetic == ["integers (rows bounded in float64)"]
    assert (verdict.records, verdict.nodes) == (3, 2)
    assert "6.5 <= opt <= 6.75, features 0 1 2" in str(verdict)
    assert sha256(A) in str(verdict)


def test_what_floats_cannot_decide_is_decided_in_integers():
    """In the example U_2 is the row sum exactly: floats leave a margin."""
    with pytest.raises(ProofError, match="row sum of feature 0"):
        check_proof(EXAMPLE, A, floats=True)
    assert check_proof(EXAMPLE, A).arithmetic == ["integers (rows bounded in float64)"]


def test_features_are_named_by_their_numbers():
    """Also where some are left out, so that they are at other positions."""
    Y = np.eye(6)
    Y[1:, 1:] = A
    lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    lines[0] |= {"version": 2, "without": [0], "data": describe(Y)}
    lines[0]["claims"][0]["support"] = [1, 2, 3]
    lines[3]["features"] = [1, 2, 3]
    check_proof(as_bytes(lines), Y, exact=True)
    with pytest.raises(ProofError, match="row sum of feature 1 not shown"):
        check_proof(as_bytes(lines), Y, floats=True)
    lines[2]["upper"] = "0x1.7p+2"
    with pytest.raises(ProofError, match="the row sum of feature 1 is above U"):
        check_proof(as_bytes(lines), Y, exact=True)
    lines[2]["upper"] = "0x1.8p+2"
    lines[3] |= {"features": [2, 3], "tree": "L"}
    with pytest.raises(ProofError, match="k = 3: feature 1 cannot be dropped"):
        check_proof(as_bytes(lines), Y, exact=True)
    lines[2]["upper"] = "0x1.81p+2"
    with pytest.raises(ProofError, match="k = 3: feature 1 is not shown to drop"):
        check_proof(as_bytes(lines), Y, floats=True)
    lines[1] |= {"upper": "0x1.cp+1", "rule": "tree", "features": [1, 3], "tree": "L"}
    for mode in ({"floats": True}, {"exact": True}):
        with pytest.raises(ProofError, match="k = 1: feature 2 cannot be dropped"):
            check_proof(as_bytes(lines), Y, **mode)


def test_the_command_says_what_it_checked(tmp_path, capsys):
    np.save(tmp_path / "A.npy", A)
    assert main([str(EXAMPLE), str(tmp_path / "A.npy"), "--exact"]) == 0
    said = capsys.readouterr().out
    for part in (
        "The proof holds",
        "5 x 5",
        sha256(A),
        "3 records",
        "in integers (rows",
    ):
        assert part in said
    np.save(tmp_path / "A.npy", 2 * A)
    assert main([str(EXAMPLE), str(tmp_path / "A.npy")]) == 1
    assert "REFUSED: these are other data" in capsys.readouterr().out
    assert main([str(tmp_path / "none"), str(tmp_path / "A.npy")]) == 2
    said = capsys.readouterr()
    assert "none: No such file" in said.err
    assert "REFUSED" not in said.out
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    for data in ("none.npy", "A.txt.gz", "words.csv"):
        assert main([str(EXAMPLE), str(tmp_path / data)]) == 2
        said = capsys.readouterr()
        assert data in said.err
        assert "REFUSED" not in said.out


def test_the_command_begins_with_a_line_on_a_terminal(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "A.npy", A)
    words = [str(EXAMPLE), str(tmp_path / "A.npy"), "--exact"]
    assert main(words) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(words) == 0
    said = capsys.readouterr().err
    assert said == "checking 1 section of 3 records, in integers ...\n"


def test_ctrl_c_decides_nothing(tmp_path, monkeypatch, capsys):
    def interrupt(*_given: object, **_options: object) -> None:
        raise KeyboardInterrupt

    np.save(tmp_path / "A.npy", A)
    monkeypatch.setattr("blockspca.checker.__main__.check_proof", interrupt)
    assert main([str(EXAMPLE), str(tmp_path / "A.npy")]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "Interrupted: the proof is neither accepted nor refused.\n"


@pytest.mark.parametrize("seed", range(60))
def test_proofs_of_another_writer_hold(seed):
    """In integers always; in floats as long as no margin is met."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 8))
    Y, data = random_problem(rng, d)
    slack = float(rng.choice([0, 0.1, 0.5]))
    lines = Builder(Y, data, rng).build(int(rng.integers(1, min(d, 5) + 1)), slack)
    check_proof(as_bytes(lines), Y, exact=True)
    if seed != 29:  # there τ − u is a billionth of τ
        check_proof(as_bytes(lines), Y, floats=True)


@pytest.mark.parametrize("seed", range(40))
def test_directions_of_another_writer_hold(seed):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((int(rng.integers(3, 9)), 7)) * rng.gamma(2.0, size=7)
    Y[:, 3] *= seed % 4 != 0  # a column of zeros
    scale = seed % 3 == 0
    data = describe(Y, "data", center=seed % 5 > 0, scale=scale, ddof=seed % 2)
    lines = direction_proof(Y, data, int(rng.integers(1, 5)), rng)
    for mode in ({"exact": True}, {"floats": True}):
        check_proof(as_bytes(lines), Y, **mode)
    (section,) = read_proof(as_bytes(lines))
    claim = section.claims[0]
    assert Truth(Y, data).allows(claim.k, claim.objective, claim.upper_bound)
    # The bound is all that they show: with less the proof fails.
    for line, key in ((lines[1], "upper"), (lines[0]["claims"][0], "upper_bound")):
        line[key] = (float.fromhex(line[key]) * (1 - 2.0**-18)).hex()
    for mode in ({"exact": True}, {"floats": True}):
        with pytest.raises(ProofError, match="k = "):
            check_proof(as_bytes(lines), Y, **mode)


def test_rounds_of_another_writer_hold():
    """They end with one set or by their last inequality; both kinds occur."""
    kinds = set()
    for seed in range(70):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(3, 7)), 7
        Y = rng.standard_normal((n, d)) * rng.gamma(1.0, size=d) ** 2
        data = describe(Y, "data", scale=seed % 4 == 0, ddof=seed % 2)
        lines = rounds_proof(Y, data, int(rng.integers(1, 5)), rng)
        if not lines:
            continue
        for mode in ({"floats": True}, {"exact": True}):
            check_proof(as_bytes(lines), Y, **mode)
        (section,) = read_proof(as_bytes(lines))
        claim = section.claims[0]
        assert Truth(Y, data).allows(claim.k, claim.objective, claim.upper_bound)
        rounds = lines[1]["rounds"]
        count = sum(len(one["in"]) for one in rounds)
        kinds |= {"in"} if count else set()
        kinds |= {"one"} if len(rounds[-1]["free"]) == claim.k - count else {"more"}
    assert kinds == {"in", "one", "more"}


def test_all_rules_and_tokens_occur_in_those_proofs():
    seen = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Y, data = random_problem(rng, 6)
        for line in Builder(Y, data, rng).build(4)[1:-1]:
            seen |= {
                line["rule"],
                *(token[0] for token in line.get("tree", "").split()),
            }
    assert seen >= {"variance", "rows", "average", "tree", "L", "P", "D", "S"}


@pytest.mark.parametrize("twos", [-900, -300, 10, 500, 1000])
def test_units_do_not_matter(twos):
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((5, 5))
    Y += Y.T
    lines = Builder(Y, describe(Y), rng).build(3)
    Y *= 2.0**twos
    lines[0]["data"] = describe(Y)
    for line in [*lines[1:-1], *lines[0]["claims"]]:
        for key in {"upper", "upper_bound", "objective"} & {*line}:
            line[key] = (float.fromhex(line[key]) * 2.0**twos).hex()
    for mode in ({"exact": True}, {"floats": True}):
        check_proof(as_bytes(lines), Y, **mode)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("arithmetic", [IntegerMatrix, FloatMatrix])
def test_the_matrix_is_within_its_error(seed, arithmetic):
    """Ã, its diagonal and the bounds from above, against exact fractions."""
    rng = np.random.default_rng(seed)
    Y, data = random_problem(rng, 5)
    if seed % 3 == 0:
        Y = as_data(Y + 1e6)  # a large mean: what is left are differences
        data["sha256"] = sha256(Y)
    matrix = arithmetic(Y, Problem(**data))
    C, weights = exact_forms(Y, data)
    unit = getattr(matrix, "factor", None) or Fraction(2) ** -matrix.exponent
    bounds = matrix.upper_bounds()
    entries = bounds.entries(np.arange(5))(np.arange(5), 5)
    scale = Fraction(1, 2**64) if arithmetic is IntegerMatrix else Fraction(1)
    e = matrix.e
    assert isinstance(e, (int, Fraction))  # a float would round U + k e
    for i, j in itertools.product(range(5), repeat=2):
        norm = weights[i] * weights[j]  # A_ij² = C_ij²/norm
        upper = Fraction(float(entries[i, j])) / scale
        least = abs(C[i][j]) * unit - e * Fraction(float(np.sqrt(float(norm)))) * 2
        assert upper * upper * norm >= max(least, Fraction(0)) ** 2
        if bounds.roots is not None:
            product = Fraction(float(bounds.roots[i])) * Fraction(
                float(bounds.roots[j])
            )
            product = (product + Fraction(bounds.error)) / scale
            assert product * product * norm >= max(least, Fraction(0)) ** 2
        if arithmetic is IntegerMatrix and not data.get("scale"):
            assert abs(matrix.entry(i, j) - C[i][j] * unit) <= max(e, 1)


def test_positive_semidefinite_is_decided_exactly():
    rng = np.random.default_rng(0)
    answers = set()
    for _ in range(300):
        size = int(rng.integers(1, 5))
        G = rng.integers(-2, 3, (size, int(rng.integers(1, 5))))
        M = (G @ G.T - np.diag(rng.integers(0, 2, size) * rng.integers(0, 2))).tolist()
        expected = definite([[Fraction(value) for value in row] for row in M])[0]
        assert is_positive_semidefinite(M) == expected
        answers.add(expected)
    assert answers == {True, False}


def test_the_truth_of_the_tests_is_the_truth():
    truth = Truth(A, describe(A))
    assert truth.allows(3, 6.5, 6.75)
    assert truth.allows(1, 4.0, 4.0)
    assert not truth.allows(1, np.nextafter(4.0, 5), 5.0)
    assert not truth.allows(1, 3.0, np.nextafter(4.0, 3))


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "b.npz", "a.csv", "a.tsv", "a.txt"])
def test_data_are_read_from(name, tmp_path):
    path = tmp_path / name
    if name == "a.npy":
        np.save(path, np.asfortranarray(A).astype(np.int8))
    elif name == "a.npz":
        np.savez(path, X=A, names=np.array(list("abcde")))
    elif name == "b.npz":
        np.savez(path, whatever=A)
    else:
        separator = {"csv": ",", "tsv": "\t", "txt": " "}[name[-3:]]
        lines = [separator.join(map(repr, row)) for row in A.tolist()]
        head = [separator.join("abcde")] if name == "a.csv" else []
        path.write_text("\n".join([*head, *lines]) + "\n")
    assert data_hash(read_data(path)) == sha256(A)


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_columns_of_dates_are_left_out(tmp_path, place, names):
    rows = [[*map(repr, row)] for row in A.tolist()]
    for day, row in enumerate(rows, 1):
        row.insert(place, f"2026-01-{day:02}")
    head = list("abcde")
    head.insert(place, "day")
    lines = [head, *rows] if names else rows
    text = "\n".join(",".join(line) for line in lines)
    (tmp_path / "a.csv").write_text(text, encoding="utf-8-sig")
    np.testing.assert_array_equal(read_data(tmp_path / "a.csv"), A)


def test_text_that_is_not_a_table_of_numbers_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("day,a\n2026-01-01,red\n")
    with pytest.raises(ProofError, match="no column of numbers"):
        read_data(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("day,a\n2026-01-01,1\n2026-01-02,red\n")
    with pytest.raises(ProofError, match=r"cannot be read.*'red'"):
        read_data(tmp_path / "a.csv")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_data_are_read(form, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix(A).asformat(form))
    np.testing.assert_array_equal(read_data(tmp_path / "a.npz"), A)


def test_a_proof_is_read_as_it_is_written():
    (proof,) = read_proof(EXAMPLE)
    assert [record.upper for record in proof.records] == [4.0, 6.0, 6.75]
    assert proof.records[2].features == (0, 1, 2)
    assert [node.letter for node in proof.records[2].tree] == ["S", "L"]
    assert proof.records[2].depth == 1


def test_an_underscore_is_no_part_of_a_number(tmp_path):
    """As it is in Python: a line of names like 1_2 was taken for one of data."""
    path = tmp_path / "data.csv"
    path.write_text("1_1,1_2\n4,5\n6,7\n")
    assert read_data(path).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    path.write_text("1,2\n3_4,5\n")
    with pytest.raises(ProofError):
        read_data(path)
