"""What is taken off A beside columns (version 8): by fractions, and under attack."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from blockspca.checker.floats import FloatMatrix
from blockspca.checker.problem import Deflation, Problem, Vector
from blockspca.checker.taken import Deflated
from proof_builder import Json, as_bytes, describe
from proof_problems import DerivedBuilder, Sets, exact_matrix

MODES = ({"exact": True}, {"floats": True}, {})
rng = np.random.default_rng(8)
X = rng.standard_normal((7, 5)) * [4.0, 3.0, 2.0, 1.0, 1.0]
KINDS = {
    "matrix": (X.T @ X, {}),
    "data": (X, {}),
    "scaled": (X, {"scale": True}),
}


def vector(*entries: tuple[int, float], value: float | None = None) -> Json:
    support, x = zip(*entries, strict=True)
    said: Json = {"support": [*support], "x": [float(y).hex() for y in x]}
    return said if value is None else said | {"value": float(value).hex()}


FIRST, SECOND = ((0, 0.6), (1, 0.8)), ((1, -0.5), (2, 0.75))
HOTELLING: Json = {
    "how": "hotelling",
    "vectors": [vector(*FIRST, value=1.5), vector(*SECOND, value=0.25)],
}
ORTHOGONAL: Json = {
    "how": "orthogonal",
    "vectors": [vector(*FIRST), vector(*SECOND)],
    "penalty": (40.0).hex(),
}
WAYS = {"hotelling": HOTELLING, "orthogonal": ORTHOGONAL}


def proof_of(kind: str, deflated: Json, k: int = 2) -> tuple[list[Json], np.ndarray]:
    Y, options = KINDS[kind]
    data = describe(Y, "matrix" if kind == "matrix" else "data", **options)
    said = {"deflated": copy.deepcopy(deflated)}
    lines = DerivedBuilder(Y, data, said, np.random.default_rng(0)).build_one(k)
    assert lines is not None
    return lines, Y


def assert_refused(lines: list[Json], Y: np.ndarray, why: str = ".") -> None:
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), Y, **mode)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_what_the_attempts_begin_with_holds_and_is_true(way, kind):
    lines, Y = proof_of(kind, WAYS[way], 3)
    assert lines[0]["version"] == 8
    for mode in MODES:
        verdict = check_proof(as_bytes(lines), Y, **mode)
    said = {"hotelling": "multiple of vv'", "orthogonal": "orthogonal to 2"}[way]
    assert said in str(verdict)
    assert is_true(lines, Y)


def exact_taken(problem: Problem) -> list[list[Fraction]]:
    """T as the difference of two matrices of `exact_matrix`."""
    d = problem.d
    given = problem.deflated
    vectors = [vector(*zip(v.support, v.x, strict=True)) for v in given.vectors]
    for said, v in zip(vectors, given.vectors, strict=True):
        said["value"] = v.value.hex()
    header: Json = {"data": {"kind": "matrix"}}
    zero = np.zeros((d, d))
    header["deflated"] = {"how": given.how, "vectors": vectors}
    header["deflated"]["penalty"] = given.penalty.hex()
    return [[-a for a in row] for row in exact_matrix(header, zero)]


def random_taking(seed: int) -> Problem:
    made = np.random.default_rng(seed)
    how, d = ("hotelling", "orthogonal")[seed % 2], 5
    vectors = []
    for _ in range(int(made.integers(1, 4))):
        size = int(made.integers(1, d))
        support = tuple(sorted(made.choice(d, size, replace=False).tolist()))
        x = made.standard_normal(len(support)) * 10.0 ** made.integers(-6, 6)
        value = float(made.standard_normal() * 10.0 ** made.integers(-6, 6))
        vectors.append(Vector(support, tuple(x.tolist()), value * (how[0] == "h")))
    penalty = float(made.exponential()) if how == "orthogonal" else 0.0
    deflated = Deflation(how, tuple(vectors), penalty)
    return Problem("", "matrix", d, d, deflated=deflated)


def test_what_is_taken_is_exact_and_its_sizes_bound_it():
    """Of the matrix 0, in fractions and in float64."""
    checked = 0
    for seed in range(80):
        problem, zero = random_taking(seed), np.zeros((5, 5))
        places = range(problem.d)
        try:
            taken = Deflated(zero, problem, places)
        except ProofError:
            continue
        T = exact_taken(problem)
        checked += 1
        for i, j in itertools.product(places, places):
            found = sum(pair.c * pair.entry(i, j) for pair in taken.pairs)
            assert found == T[i][j]
            sizes = (
                sum(abs(pair.c * pair.entry(p, p)) for pair in taken.pairs)
                for p in (i, j)
            )
            assert T[i][j] ** 2 <= prod(sizes)
        x = {i: Fraction(i + 1, 2) for i in (0, 2, 3)}
        form = taken.form([*x], [float(value) for value in x.values()])
        assert form == -sum(x[i] * x[j] * T[i][j] for i in x for j in x)
        matrix = FloatMatrix(np.eye(5), replace(problem, kind="data", ddof=0))
        for i, j in itertools.product(places, places):
            pairs = zip(matrix.P.tolist(), matrix.Q.tolist(), strict=True)
            off = sum(
                Fraction(p[i]) * Fraction(q[j]) + Fraction(q[i]) * Fraction(p[j])
                for p, q in pairs
            )
            if problem.deflated.how == "hotelling":  # the other changes columns, too
                off -= T[i][j] * matrix.factor
                assert abs(off) <= matrix.e
    assert checked > 60


# -- attempts to smuggle a false claim through ----------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.0, -1.0, 0.5, 1 - 2.0**-20, -(2.0**60)])
def test_less_taken_off_makes_the_bound_false_and_is_refused(factor, kind):
    """A smaller a_l leaves more of A: the bound for the larger one is too small."""
    deflated = copy.deepcopy(HOTELLING)
    deflated["vectors"] = [vector((0, 1.0), value=-1.0), vector(*FIRST, value=3.0)]
    lines, Y = proof_of(kind, deflated)
    refused = 0
    for place in range(2):
        forged = copy.deepcopy(lines)
        said = forged[0]["deflated"]["vectors"][place]
        said["value"] = (factor * float.fromhex(said["value"])).hex()
        for mode in MODES:
            try:
                check_proof(as_bytes(forged), Y, **mode)
            except ProofError:
                refused += 1
                continue
            assert is_true(forged, Y), json.dumps(forged[0])
    assert refused > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_the_vector_is_measured_by_what_is_left(way, kind):
    """The objective that the same x has without the deflation is refused."""
    lines, Y = proof_of(kind, WAYS[way])
    plain = Sets({"data": lines[0]["data"]}, Y)
    claim = lines[0]["claims"][0]
    claim["support"], claim["x"] = [0, 1], [float(x).hex() for _, x in FIRST]
    x = np.array([0.6, 0.8])
    within = np.array([[float(plain.A[i][j]) for j in (0, 1)] for i in (0, 1)])
    claim["objective"] = float(0.99 * (x @ within @ x) / (x @ x)).hex()
    claim["upper_bound"] = (1e4).hex()
    assert_refused(lines, Y, "less than the objective")


def changed(lines: list[Json], change: Any) -> list[Json]:
    forged = copy.deepcopy(lines)
    change(forged[0]["deflated"])
    return forged


@pytest.mark.parametrize(
    ("way", "change", "why"),
    [
        ("hotelling", lambda d: d["vectors"][0].pop("value"), "keys are"),
        ("hotelling", lambda d: d.update(penalty="0x1p+0"), "keys are"),
        ("hotelling", lambda d: d.update(how="residual"), "keys are"),
        ("orthogonal", lambda d: d.pop("penalty"), "keys are"),
        ("orthogonal", lambda d: d.update(how="projection"), "keys are"),
        ("orthogonal", lambda d: d["vectors"][0].update(value="0x1p+0"), "keys are"),
        ("orthogonal", lambda d: d.update(penalty="-0x1p-1074"), "not be negative"),
        ("orthogonal", lambda d: d.update(penalty="-0x1p+0"), "not be negative"),
        ("orthogonal", lambda d: d.update(penalty=40), "a text is expected"),
        ("orthogonal", lambda d: d.update(penalty="nan"), "no hexadecimal float"),
        ("orthogonal", lambda d: d.update(penalty="inf"), "no hexadecimal float"),
        ("orthogonal", lambda d: d.update(penalty="0x1p+1024"), "too large"),
        ("orthogonal", lambda d: d.update(penalty=["0x1p+0"]), "a text is expected"),
        ("orthogonal", lambda d: d.update(how=["orthogonal"]), "keys are"),
        ("orthogonal", lambda d: d.update(vectors=d["vectors"][:1] * 2), "independent"),
        ("hotelling", lambda d: d["vectors"][0].update(value="nan"), "hexadecimal"),
        ("hotelling", lambda d: d["vectors"][0].update(value="-inf"), "hexadecimal"),
        ("hotelling", lambda d: d["vectors"][0].update(value="0x1p+1024"), "too large"),
        ("hotelling", lambda d: d["vectors"][0].update(value="0x1.8p-1074"), "float64"),
        ("hotelling", lambda d: d["vectors"][0].update(value=1), "a text is expected"),
        ("hotelling", lambda d: d["vectors"][0].update(value=True), "a text is"),
        ("hotelling", lambda d: d["vectors"][0].update(support=[-1, 1]), "ascending"),
        ("hotelling", lambda d: d["vectors"][0].update(support=[1, 0]), "ascending"),
        ("hotelling", lambda d: d["vectors"][0].update(support=[0, 0]), "ascending"),
        ("hotelling", lambda d: d["vectors"][0].update(support=[0, 5]), "ascending"),
        ("hotelling", lambda d: d["vectors"][0].update(support=[0]), "per feature"),
        ("hotelling", lambda d: d.update(vectors=[]), "vectors are needed"),
        ("hotelling", lambda d: d.update(how="Hotelling"), "one of residual"),
    ],
)
def test_headers_that_are_none_are_refused(way, change, why):
    for kind in KINDS:
        lines, Y = proof_of(kind, WAYS[way])
        assert_refused(changed(lines, change), Y, why)


@pytest.mark.parametrize("way", WAYS)
def test_an_earlier_version_does_not_know_the_ways(way):
    lines, Y = proof_of("data", WAYS[way])
    for version in range(1, 8):
        lines[0]["version"] = version
        assert_refused(lines, Y, "is of version 8")


def test_a_key_that_occurs_twice_is_refused():
    lines, Y = proof_of("data", ORTHOGONAL)
    text = as_bytes(lines)
    twice = text.replace(b'"penalty":', b'"penalty": "0x1p+80", "penalty":', 1)
    assert twice != text
    with pytest.raises(ProofError, match="twice"):
        check_proof(twice, Y)


@pytest.mark.parametrize("way", WAYS)
def test_rules_of_semidefinite_matrices_are_not_to_be_had(way):
    """With more taken off than there is, sums of variances bound nothing."""
    lines, Y = proof_of("data", WAYS[way])
    first = {"k": 1, "upper": (1e3).hex(), "rule": "variance"}
    claim = lines[0]["claims"][0] | {"upper_bound": (1e9).hex()}
    lines[0]["claims"] = [claim]
    direction = {"rule": "direction", "rho": "0x1p+0", "rest": "0x1p+0"}
    for rule in (
        {"rule": "variance"},
        {"rule": "average", "from": 1},
        direction | {"weights": [], "directions": []},
    ):
        record = {"k": 2, "upper": (1e8).hex(), **rule}
        assert_refused(
            [lines[0], first, record, {"end": 2}], Y, "variance|average|direction"
        )


def test_a_matrix_that_is_not_semidefinite_is_bounded_by_its_entries():
    """Cauchy's inequality of A_ii would screen away what −T_ij brings in."""
    Y = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 3.0]])
    deflated = {"how": "hotelling", "vectors": []}
    # T = −9 (e0 + e1)(e0 + e1)'/2 + 9 (e0 − e1)(e0 − e1)'/2: zero diagonal, T_01 = −9
    deflated["vectors"] = [
        vector((0, 1.0), (1, 1.0), value=-4.5),
        vector((0, 1.0), (1, -1.0), value=4.5),
    ]
    data = describe(Y, "data", center=False, ddof=0)
    truth = Sets({"data": data, "deflated": deflated}, Y)
    value, support, _ = truth.best(2)
    assert support == (0, 1)
    header: Json = {"format": "blockspca-proof", "version": 8, "data": data}
    claim = {"k": 2, "support": [2], "x": ["0x1p+0"], "objective": (2.9).hex()}
    bound = (3.0 + 1e-6).hex()
    header |= {"deflated": deflated, "row_list": 2}
    header["claims"] = [claim | {"upper_bound": bound}]
    one = {"k": 1, "upper": bound, "rule": "variance"}
    assert value > 3.1
    for features, tree in (([2], "L"), ([], "L"), ([0, 1, 2], "S0")):
        two = {"k": 2, "upper": bound, "rule": "tree", "features": features}
        assert_refused([header, one, two | {"tree": tree}, {"end": 2}], Y)


@pytest.mark.parametrize("way", WAYS)
def test_a_level_does_not_go_with_what_is_taken(way):
    lines, Y = proof_of("data", WAYS[way])
    lines[0] |= {"level": (1e4).hex()}
    said = {"include": lines[0]["claims"][0]["support"][:1]}
    lines[0]["constraints"] = said | {"groups": [], "nonnegative": False}
    assert_refused(lines, Y, "level does not go with")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["0x1p+1000", "0x1p+400", "0x1p-1074", "0x1p-600"])
def test_numbers_out_of_all_proportion_end_in_a_verdict(size, kind):
    """Never in an overflow, and never in a claim that is false."""
    for way, deflated in WAYS.items():
        forged = copy.deepcopy(deflated)
        if way == "hotelling":
            forged["vectors"][0]["value"] = size
        else:
            forged["penalty"] = size
        lines, Y = proof_of(kind, deflated)
        lines[0]["deflated"] = forged
        for mode in MODES:
            try:
                check_proof(as_bytes(lines), Y, **mode)
            except ProofError:
                continue
            assert is_true(lines, Y)
        forged["vectors"][0]["x"] = [size, size]
        for mode in MODES:
            try:
                check_proof(as_bytes(lines), Y, **mode)
            except ProofError:
                continue
            assert is_true(lines, Y)


def test_sections_in_another_order_are_about_their_own_vectors():
    """Each is checked by itself: what a reader compares is what the header names."""
    first, Y = proof_of("data", HOTELLING)
    second, _ = proof_of("data", ORTHOGONAL)
    for lines in ([*first, *second], [*second, *first]):
        for mode in MODES:
            check_proof(as_bytes(lines), Y, **mode)
    swapped = [second[0], *first[1:], first[0], *second[1:]]
    refused = 0
    for mode in MODES:
        try:
            check_proof(as_bytes(swapped), Y, **mode)
        except ProofError:
            refused += 1
    assert refused == len(MODES)


@pytest.mark.parametrize("dense", [[], [0], [0, 1]])
@pytest.mark.parametrize("weight", [0.0, 2.0**-40, 2.0**-10])
def test_variances_do_not_bound_entries_of_what_is_indefinite(dense, weight):
    """I − vv', v = (1, 1), has variances 0 and an entry −1, so that opt(2) = 1.

    For a positive semidefinite matrix a weight that exceeds the variances would do.
    """
    Y = np.eye(2)
    deflated = {"how": "hotelling", "vectors": [vector((0, 1), (1, 1), value=1.0)]}
    lines = DerivedBuilder(
        Y,
        describe(Y, "data", center=False),
        {"deflated": deflated},
        np.random.default_rng(0),
    ).build_one(2)
    assert lines is not None
    claim = lines[0]["claims"][0]
    claim |= {"support": [0], "x": [(1.0).hex()], "objective": (0.0).hex()}
    record: Json = {"k": 2, "rule": "entry", "weights": [weight.hex()] * 2}
    record |= {"core": [], "shares": [], "dense": dense}
    if len(dense) < 2:
        record["scaling"] = [(1.0).hex()] * 2
    for upper, holds in ((0.5, False), (1.25, True)):
        claim["upper_bound"] = (1.01 * upper).hex()
        said = [lines[0], record | {"upper": upper.hex()}, {"end": 1}]
        assert is_true(said, Y) == holds
        if not holds:
            assert_refused(said, Y)
            continue
        for mode in MODES:
            assert check_proof(as_bytes(said), Y, **mode)
