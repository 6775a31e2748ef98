"""Deflated matrices, chosen features, groups and signs (version 7), by brute force."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.factor import factor, over_root, root_above, trace_of_inverse
from blockspca.checker.fields import ProofError
from blockspca.checker.floats import FloatMatrix
from blockspca.checker.integers import IntegerMatrix
from blockspca.checker.problem import Problem
from blockspca.checker.proof_file import read_proof
from blockspca.checker.taken import Deflated
from proof_builder import Json, as_bytes, describe
from proof_problems import Sets, derived_proof, exact_matrix, inverse, times

MODES = ({"exact": True}, {"floats": True}, {})


def made(seed: int) -> tuple[list[Json], np.ndarray] | None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 7))
    return derived_proof(rng, d, int(rng.integers(1, min(d, 4) + 1)))


def is_true(lines: list[Json], Y: np.ndarray) -> bool:
    truth = Sets(lines[0], Y)
    return all(
        truth.allows(
            c["k"], *(float.fromhex(c[x]) for x in ("objective", "upper_bound"))
        )
        for c in lines[0]["claims"]
    )


def has_no_scores(header: Json, Y: np.ndarray) -> bool:
    """V'AV of a matrix that is not positive semidefinite need not be either."""
    deflated = header.get("deflated", {"how": ""})
    if deflated["how"] != "residual" or header["data"]["kind"] == "data":
        return False
    V = np.zeros((Y.shape[1], len(deflated["vectors"])))
    for j, vector in enumerate(deflated["vectors"]):
        V[vector["support"], j] = [float.fromhex(x) for x in vector["x"]]
    return bool(np.linalg.eigvalsh(V.T @ (Y + Y.T) @ V)[0] <= 0)


def test_proofs_of_all_kinds_hold_in_both_arithmetics():
    kinds, refused = set(), 0
    for seed in range(150):
        found = made(seed)
        if found is None:
            continue
        lines, Y = found
        assert is_true(lines, Y)
        header = lines[0]
        if has_no_scores(header, Y):
            for mode in MODES:
                with pytest.raises(ProofError, match="no scores of their own"):
                    check_proof(as_bytes(lines), Y, **mode)
            refused += 1
            continue
        for mode in MODES:
            check_proof(as_bytes(lines), Y, **mode)
        kinds |= header.keys() & {"deflated", "raised", "level", "without"}
        said = header.get("constraints", {})
        kinds |= {key for key in ("include", "groups") if said.get(key)}
        kinds |= {header["deflated"]["how"]} if "deflated" in header else set()
    assert kinds == {
        *("deflated", "raised", "level", "without", "include", "groups"),
        *("residual", "projection", "hotelling", "orthogonal"),
    }
    assert refused < 15


def exact_section(
    header: Json, Y: np.ndarray, problem: Problem
) -> list[list[Fraction]]:
    """Return the matrix of the section on the features that are kept, in fractions."""
    A = exact_matrix(header, Y)
    if problem.raised is not None:
        pairs = {*problem.raised}
        for i in range(len(A)):
            for j in range(len(A)):
                if i != j and (min(i, j), max(i, j)) not in pairs:
                    A[i][j] = max(A[i][j], Fraction(0))
    kept, chosen = problem.kept, problem.chosen
    B = [[A[i][j] for j in kept] for i in kept]
    if chosen:
        level = Fraction(problem.level or 0.0)
        G = [[(level if i == j else 0) - A[i][j] for j in chosen] for i in chosen]
        cross = [[A[i][j] for j in chosen] for i in kept]
        more = times(
            times(cross, inverse(G)), [list(c) for c in zip(*cross, strict=True)]
        )
        B = [
            [a + b for a, b in zip(x, y, strict=True)]
            for x, y in zip(B, more, strict=True)
        ]
    return B


def float_entry(matrix: FloatMatrix, i: int, j: int) -> Fraction:
    """Ã_ij: of data the exact product of two columns, raised or not."""
    if matrix.is_matrix:
        found = Fraction(float(matrix.A[i, j]))
    else:
        g, h = (map(Fraction, matrix.A[:, p].tolist()) for p in (i, j))
        found = sum((a * b for a, b in zip(g, h, strict=True)), Fraction(0))
        for p, q in zip(matrix.P.tolist(), matrix.Q.tolist(), strict=True):
            found -= Fraction(p[i]) * Fraction(q[j]) + Fraction(q[i]) * Fraction(p[j])
    is_raised = (
        matrix.raised is not None and i != j and (i, j) not in matrix.raised.pairs
    )
    return max(found, Fraction(0)) if is_raised else found


def largest_error(matrix: Any, B: list[list[Fraction]]) -> Fraction:
    """What an entry is off by, in the error that is said."""
    worst = Fraction(0)
    for i in range(len(B)):
        for j in range(len(B)):
            if isinstance(matrix, FloatMatrix):
                off = float_entry(matrix, i, j) - matrix.factor * B[i][j]
            else:
                off = matrix.entry(i, j) - B[i][j] / Fraction(2) ** matrix.exponent
            worst = max(worst, abs(off))
    assert worst <= matrix.e
    return worst / matrix.e if matrix.e else worst


def hard_problem(rng: np.random.Generator) -> tuple[Json, np.ndarray]:
    """A header whose vectors are nearly dependent, or whose level is near."""
    d, n = int(rng.integers(3, 6)), int(rng.integers(4, 9))
    Y = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 3, d)
    if rng.random() < 0.5:
        Y += 10.0 ** rng.integers(0, 5)
    scale = bool(rng.random() < 0.5)
    header: Json = {"data": describe(Y, "data", scale=scale)}
    if rng.random() < 0.3:
        Y = np.round(Y, 3)
        Y = Y.T @ Y
        header = {"data": describe(Y)}
    x = rng.standard_normal((2, d))
    x[1] = x[0] + 10.0 ** -rng.integers(1, 7) * x[1]
    vectors = [{"support": [*range(d)], "x": [float(v).hex() for v in y]} for y in x]
    how = str(rng.choice(["residual", "projection", "hotelling", "orthogonal"]))
    takes = how in ("hotelling", "orthogonal") and rng.random() < 0.7
    if takes or (how in ("residual", "projection") and rng.random() < 0.7):
        header["deflated"] = {"how": how, "vectors": vectors}
        if how == "hotelling":
            for vector in vectors:
                vector["value"] = float(10.0 ** rng.integers(-3, 6)).hex()
        if how == "orthogonal":
            header["deflated"]["penalty"] = float(10.0 ** rng.integers(-3, 6)).hex()
    if not takes and (rng.random() < 0.7 or "deflated" not in header):
        include = sorted(int(i) for i in rng.choice(d, int(rng.integers(1, 3)), False))
        A = np.array([[float(a) for a in row] for row in exact_matrix(header, Y)])
        own = A[np.ix_(include, include)]
        least = float(np.linalg.eigvalsh(own)[-1])
        level = least + abs(least) * 10.0 ** -rng.integers(0, 5)
        level += 1e-9 * np.abs(A).max()
        header["constraints"] = {"include": include, "groups": [], "nonnegative": False}
        header["level"] = float(level).hex()
    return header, Y


def as_problem(header: Json) -> Problem:
    """Read the problem of a header that has no claims."""
    full = {"format": "blockspca-proof", "version": 8, "row_list": 1, **header}
    d = header["data"]["d"]
    chosen = header["constraints"]["include"] if "level" in header else [0]
    claim = {"k": len(chosen), "support": chosen, "x": ["0x1p+0"] * len(chosen)}
    full["claims"] = [claim | {"objective": "0x0p+0", "upper_bound": "0x0p+0"}]
    assert len(chosen) <= d
    return read_proof(as_bytes([full, {"end": 0}]))[0].problem


@pytest.mark.parametrize("arithmetic", [FloatMatrix, IntegerMatrix])
def test_entries_are_within_what_is_said_of_them(arithmetic):
    """And what is said is no more than a hundred thousand times what happens."""
    checked, closest = 0, Fraction(0)
    for seed in range(120):
        header, Y = hard_problem(np.random.default_rng(seed))
        problem = as_problem(header)
        try:
            matrix = arithmetic(Y, problem)
        except ProofError:
            continue
        B = exact_section(header, Y, problem)
        closest = max(closest, largest_error(matrix, B))
        checked += 1
    assert checked > 60
    assert closest > 1e-5


def test_entries_of_small_problems_are_within_what_is_said_of_them():
    checked = 0
    for seed in range(100):
        found = made(seed)
        if found is None:
            continue
        lines, Y = found
        problem = read_proof(as_bytes(lines))[0].problem
        for arithmetic in (FloatMatrix, IntegerMatrix):
            try:
                matrix = arithmetic(Y, problem)
            except ProofError:
                continue
            largest_error(matrix, exact_section(lines[0], Y, problem))
            checked += 1
    assert checked > 80


def test_columns_are_within_what_is_said_of_them():
    for seed in range(60):
        header, Y = hard_problem(np.random.default_rng(seed))
        header.pop("level", None)
        header.pop("constraints", None)
        how = header.get("deflated", {}).get("how")
        if header["data"]["kind"] == "matrix" or how not in ("residual", "projection"):
            continue
        problem = as_problem(header)
        A = exact_matrix(header, Y)
        try:
            columns = Deflated(Y, problem, list(problem.kept)).columns
        except ProofError:
            continue
        unit = columns.denominator * Fraction(2) ** columns.two_bits
        for i in problem.kept:
            g = columns.column(i)
            # of exact columns a: |‖g‖ − ‖a‖| ≤ error
            exact, found = A[i][i] * unit, Fraction(sum(y * y for y in g))
            longest = root_above(max(found, exact))
            assert abs(found - exact) <= columns.error * 2 * longest


def test_small_matrices_are_inverted_exactly():
    rng = np.random.default_rng(0)
    for p in (1, 2, 4):
        M = rng.integers(-3, 4, (p + 2, p))
        G = [[int(g) for g in row] for row in M.T @ M + np.eye(p, dtype=int)]
        exact = inverse([[Fraction(g) for g in row] for row in G])
        W, squares = factor(G)
        assert exact == [
            [
                sum(Fraction(w[i] * w[j], s) for w, s in zip(W, squares, strict=True))
                for j in range(p)
            ]
            for i in range(p)
        ]
        trace = sum(exact[i][i] for i in range(p))
        assert trace_of_inverse(W, squares) == trace
    assert factor([[1, 1], [1, 1]]) is None
    assert factor([[1, 2], [2, 1]]) is None


def test_quotients_by_roots_are_rounded_once():
    rng = np.random.default_rng(1)
    for _ in range(300):
        top, square = (
            int(x) << int(rng.integers(0, 900)) for x in rng.integers(1, 99, 2)
        )
        for sign in (1, -1):
            try:
                found = Fraction(over_root(sign * top, square))
            except OverflowError:
                continue
            if abs(found) < 2.0**-1000:  # of numbers that are far from one another
                continue
            unit = Fraction(101, 100) * Fraction(2) ** -53
            low, high = (found * (1 - unit)) ** 2, (found * (1 + unit)) ** 2
            assert found * sign > 0
            assert low * square <= top * top <= high * square


# -- attempts to smuggle a false claim through ----------------------------------------
A = np.array(
    [
        [4.0, 2, 2, 1, 0],
        [2, 4, 0, 0, 1],
        [2, 0, 3, 1, 0],
        [1, 0, 1, 3, 1],
        [0, 1, 0, 1, 2],
    ]
)


def header_of(**more: Any) -> Json:
    claim = {"k": 2, "support": [3, 4], "x": ["0x1p+0"] * 2, "objective": "0x1p+1"}
    header: Json = {"format": "blockspca-proof", "version": 7, "data": describe(A)}
    header |= {"row_list": 4, "claims": [claim | {"upper_bound": "0x1p+3"}]}
    free: Json = {"include": [], "groups": [], "nonnegative": False}
    if "constraints" in more:
        more["constraints"] = free | more["constraints"]
    return header | more


TRUE = [
    {"k": 1, "upper": "0x1p+2", "rule": "variance"},
    {"k": 2, "upper": "0x1.9p+2", "rule": "rows"},
]


def assert_refused(header: Json, why: str, records: list[Json] = TRUE) -> None:
    text = as_bytes([header, *records, {"end": len(records)}])
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(text, A, **mode)


def test_what_the_attempts_begin_with_holds():
    text = as_bytes([header_of(constraints={}), *TRUE, {"end": 2}])
    for mode in MODES:
        check_proof(text, A, **mode)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"constraints": {"include": [0]}}, "does not keep"),
        ({"constraints": {"include": [0, 3, 4]}}, "does not keep"),
        ({"constraints": {"groups": [{"most": 1, "features": [3, 4]}]}}, "not keep"),
        ({"constraints": {"groups": [{"most": 0, "features": [3]}]}}, "most >= 1"),
        ({"constraints": {"groups": [{"most": 1, "features": [3, 3]}]}}, "most >= 1"),
        ({"constraints": {"groups": [{"most": 1, "features": [9]}]}}, "most >= 1"),
        (
            {"constraints": {"groups": [{"most": 1, "features": [0]}] * 2}},
            "of their own",
        ),
        (
            {
                "constraints": {
                    "include": [0, 1],
                    "groups": [{"most": 1, "features": [0, 1]}],
                }
            },
            "more to include",
        ),
        # no set of two features is left: nothing above any bound, but x has one feature
        (
            {"constraints": {"groups": [{"most": 1, "features": [0, 1, 2, 3, 4]}]}},
            "k = 2 is not in 1 to 1",
        ),
        ({"constraints": {"include": [3]}, "without": [3]}, "none without"),
        ({"without": [3]}, "of those there are"),
        ({"level": "0x1p+3"}, "needs features"),
        ({"constraints": {"include": [0]}, "level": "0x1p+2"}, "does not keep"),
        ({"raised": []}, "not negative"),
        ({"raised": [[0, 1]], "constraints": {}}, "not negative"),
        ({"raised": [[1, 0]], "constraints": {"nonnegative": True}}, "pairs"),
        ({"raised": [[0, 0]], "constraints": {"nonnegative": True}}, "pairs"),
        ({"raised": [[0, 1, 2]], "constraints": {"nonnegative": True}}, "pairs"),
        (
            {
                "raised": [],
                "level": "0x1p+3",
                "constraints": {"include": [3], "nonnegative": True},
            },
            "does not go with",
        ),
        ({"deflated": {"how": "deflated", "vectors": []}}, "one of residual"),
        ({"deflated": {"how": "residual", "vectors": []}}, "vectors are needed"),
        (
            {"deflated": {"how": "residual", "vectors": [{"support": [], "x": []}]}},
            "ascending features",
        ),
        (
            {
                "deflated": {
                    "how": "residual",
                    "vectors": [{"support": [0], "x": ["0x0p+0"]}],
                }
            },
            "not all 0",
        ),
        (
            {
                "deflated": {
                    "how": "projection",
                    "vectors": [{"support": [0], "x": ["0x1p+0"]}] * 2,
                }
            },
            "not independent",
        ),
        (
            {
                "deflated": {
                    "how": "residual",
                    "vectors": [{"support": [0], "x": ["0x1p+0"]}] * 2,
                }
            },
            "no scores of their own",
        ),
    ],
)
def test_problems_that_are_none_are_refused(more, why):
    assert_refused(header_of(**more), why)


@pytest.mark.parametrize("key", ["constraints", "raised", "deflated", "level"])
def test_a_version_before_does_not_know_the_keys(key):
    empty: Json = {} if key == "constraints" else []
    assert_refused(header_of() | {"version": 6, key: empty}, "version|text")


def test_a_negative_loading_is_refused():
    header = header_of(constraints={"nonnegative": True})
    header["claims"][0]["x"] = ["0x1p+0", "-0x1p-30"]
    assert_refused(header, "negative entry")


def with_level(level: float, upper: float, records: list[Json]) -> list[Json]:
    header = header_of(constraints={"include": [0]}, level=level.hex())
    claim = {"k": 2, "support": [0, 1], "x": ["0x1p+0"] * 2, "objective": "0x1.8p+2"}
    header["claims"] = [claim | {"upper_bound": upper.hex()}]
    return [header, *records, {"end": len(records)}]


def test_the_level_bounds_what_a_claim_may_say():
    """opt(2) with feature 0 is 6, and B(7) has entries of at most 4 + 4/3."""
    record = {"k": 1, "upper": (16 / 3 + 1e-6).hex(), "rule": "variance"}
    for mode in MODES:
        check_proof(as_bytes(with_level(7.0, 7.0, [record])), A, **mode)
    refuse = [
        (with_level(7.0, 6.5, [record]), "below the level"),
        (with_level(5.9, 6.5, [record]), "below the sum"),  # B(5.9) has 6.1
        (with_level(4.0, 6.5, [record]), "level is not"),
        (with_level(3.0, 6.5, [record]), "level is not"),
        (with_level(-1.0, 6.5, [record]), "level is not"),
        (with_level(7.0, 7.0, []), "no record"),
        (with_level(7.0, 7.0, [{**record, "k": 2}]), "variance"),
    ]
    for lines, why in refuse:
        for mode in MODES:
            with pytest.raises(ProofError, match=why):
                check_proof(as_bytes(lines), A, **mode)


def test_one_set_is_bounded_by_the_level_alone():
    """{0, 1} has 6: a level of 6.5 shows it, one of 5.5 does not exist."""
    header = header_of(constraints={"include": [0, 1]}, level=(6.5).hex())
    claim = {"k": 2, "support": [0, 1], "x": ["0x1p+0"] * 2, "objective": "0x1.8p+2"}
    for level, upper, holds in ((6.5, 6.5, True), (6.5, 6.4, False), (5.5, 6.5, False)):
        header["level"] = level.hex()
        header["claims"] = [claim | {"upper_bound": upper.hex()}]
        for mode in MODES:
            if holds:
                check_proof(as_bytes([header, {"end": 0}]), A, **mode)
                continue
            with pytest.raises(ProofError, match="level"):
                check_proof(as_bytes([header, {"end": 0}]), A, **mode)


def test_directions_need_columns_that_the_file_can_name():
    """With chosen features columns are longer, and raised entries have none."""
    Y = np.random.default_rng(0).standard_normal((6, 4))
    record = {"k": 1, "upper": "0x1p+9", "rule": "direction", "rho": "0x1p+0"}
    record |= {"rest": "0x1p+0", "weights": [], "directions": []}
    claim = {"k": 2, "support": [0], "x": ["0x1p+0"], "objective": "-0x1p+9"}
    base: Json = {"format": "blockspca-proof", "version": 7, "row_list": 1}
    base |= {"data": describe(Y, "data"), "claims": [claim | {"upper_bound": "0x1p+9"}]}
    said: Json = {"include": [0], "groups": [], "nonnegative": True}
    for more in ({"level": "0x1p+9"}, {"raised": []}):
        lines = [base | {"constraints": said} | more, record, {"end": 1}]
        with pytest.raises(ProofError, match="direction is for data"):
            check_proof(as_bytes(lines), Y)


def test_raised_entries_have_no_rules_of_semidefinite_matrices():
    """A matrix that is raised need not be positive semidefinite."""
    Y = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [0.0, 0.0, 2.0]])
    claim = {"k": 2, "support": [0], "x": ["0x1p+0"], "objective": "-0x1p+9"}
    base: Json = {"format": "blockspca-proof", "version": 7, "row_list": 1}
    base |= {"data": describe(Y, "data"), "claims": [claim | {"upper_bound": "0x1p+9"}]}
    base["raised"] = []
    base["constraints"] = {"include": [], "groups": [], "nonnegative": True}
    first = {"k": 1, "upper": "0x1p+8", "rule": "variance"}
    for rule in ({"rule": "variance"}, {"rule": "average", "from": 1}):
        record = {"k": 2, "upper": "0x1p+8", **rule}
        for mode in MODES:
            with pytest.raises(ProofError, match=r"variance|average"):
                check_proof(as_bytes([base, first, record, {"end": 2}]), Y, **mode)


def test_groups_do_not_close_what_they_allow():
    """With room for two of a group the tree of room for one does not hold."""
    for seed in range(200):
        found = made(seed)
        if found is None or not found[0][0].get("constraints", {}).get("groups"):
            continue
        lines, Y = copy.deepcopy(found[0]), found[1]
        lines[0]["constraints"]["groups"] = []
        try:
            check_proof(as_bytes(lines), Y)
        except ProofError:
            continue
        assert is_true(lines, Y), json.dumps(lines[0])


def test_another_vector_is_another_matrix():
    """What is proved after one vector is not accepted after another, if it is false."""
    told = 0
    for seed in range(200):
        found = made(seed)
        if found is None or "deflated" not in found[0][0]:
            continue
        lines, Y = copy.deepcopy(found[0]), found[1]
        lines[0]["deflated"]["vectors"] = lines[0]["deflated"]["vectors"][:1]
        vector = lines[0]["deflated"]["vectors"][0]
        vector["x"] = [
            (float.fromhex(v) / 2**i).hex() for i, v in enumerate(vector["x"])
        ]
        try:
            check_proof(as_bytes(lines), Y)
        except ProofError:
            told += 1
            continue
        assert is_true(lines, Y), json.dumps(lines[0])
    assert told > 10
