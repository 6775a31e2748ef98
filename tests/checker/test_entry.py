"""Rule "entry": true bounds are accepted, lower ones are not, in both arithmetics."""

from __future__ import annotations

import numpy as np
import pytest

import proof_mutations
from blockspca.checker import entry, sparse_positive
from blockspca.checker.check import check_proof
from blockspca.checker.data import as_data, data_hash
from blockspca.checker.fields import ProofError
from blockspca.checker.float_forms import FloatForms
from blockspca.checker.floats import FloatMatrix
from blockspca.checker.integer_forms import IntegerForms
from blockspca.checker.problem import Problem
from blockspca.checker.sparse_positive import (
    exact_product,
    is_shown_in_floats,
    is_shown_in_integers,
)
from proof_builder import (
    Json,
    Truth,
    as_bytes,
    describe,
    entry_proof,
    entry_value,
    float_matrix,
    random_problem,
)

MODES = ({"exact": True}, {"floats": True})
X = np.random.default_rng(0).standard_normal((6, 4))


def lowered(lines: list[Json], part: float) -> list[Json]:
    for line, key in ((lines[1], "upper"), (lines[0]["claims"][0], "upper_bound")):
        value = float.fromhex(line[key])
        line[key] = (value - part * abs(value)).hex()
    return lines


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_another_writer_hold_and_no_less(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 8))
    Y, data = random_problem(rng, d)
    k = int(rng.integers(1, d + 1))
    lines = entry_proof(Y, data, k, rng)
    for mode in MODES:
        check_proof(as_bytes(lines), Y, **mode)
    claim = lines[0]["claims"][0]
    numbers = (float.fromhex(claim[key]) for key in ("objective", "upper_bound"))
    assert Truth(Y, data).allows(k, *numbers)
    for mode in MODES:
        with pytest.raises(ProofError, match="not shown to"):
            check_proof(as_bytes(lowered(lines, 2.0**-28)), Y, **mode)


@pytest.mark.parametrize("kind", ["matrix", "data", "scaled"])
def test_factors_decide_for_more_features(kind):
    """Beyond 32 features integers, too, decide by a factor and no elimination."""
    rng = np.random.default_rng(len(kind))
    Y = rng.standard_normal((12, 50)) + 2 * rng.standard_normal((12, 1))
    if kind == "matrix":
        Y = Y.T @ Y - 30 * np.eye(50)  # indefinite
    data = (
        describe(Y) if kind == "matrix" else describe(Y, "data", scale=kind[0] == "s")
    )
    A = float_matrix(Y, data)
    w = np.sqrt(np.abs(A).max() / 10) * rng.uniform(0.5, 1, 50)
    record: Json = {"k": 2, "rule": "entry", "weights": [x.hex() for x in w.tolist()]}
    shares = rng.integers(-(2**14), 2**14, 40 * 39 // 2).tolist()
    record |= {"core": [*range(40)], "shares": shares, "dense": [*range(45)]}
    record["scaling"] = [x.hex() for x in rng.uniform(0.9, 1.1, 50).tolist()]
    needed = entry_value(A, record)
    record["upper"] = (needed + 2.0**-31 * abs(needed)).hex()
    lines = entry_proof(Y, data, 2, rng)
    lines[1] = record
    bound = (needed + 1e-9 * abs(needed)).hex()
    lines[0]["claims"][0]["upper_bound"] = bound
    for mode in MODES:
        check_proof(as_bytes(lines), Y, **mode)
    for mode in MODES:
        with pytest.raises(ProofError, match="not shown to"):
            check_proof(as_bytes(lowered(lines, 2.0**-28)), Y, **mode)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_accepted_is_true_to_the_last_digit(mode):
    """Bounds at what is needed, some ulps above and below; many are the optimum."""
    accepted = refused = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 7))
        Y, data = random_problem(rng, d)
        k = d if seed % 2 else int(rng.integers(1, d + 1))
        room = float(rng.choice([0, 2.0**-51, 2.0**-46, -(2.0**-51), -(2.0**-46)]))
        lines = entry_proof(Y, data, k, rng, room)
        claim, upper = lines[0]["claims"][0], float.fromhex(lines[1]["upper"])
        low = upper - abs(upper) - 1.0
        bound = upper + abs(upper) * float(rng.choice([0.0, 2.0**-50]))
        claim |= {"objective": low.hex(), "upper_bound": bound.hex()}
        try:
            check_proof(as_bytes(lines), Y, **mode)
        except ProofError:
            refused += 1
            continue
        accepted += 1
        assert Truth(Y, data).allows(k, low, bound), seed
    assert refused > 30
    assert accepted > (0 if "floats" in mode else 5)


def test_mutants_with_false_claims_are_refused():
    accepted, wrong = 0, []
    for seed in range(3, 123, 4):  # those of this rule
        more, false = proof_mutations.judge(seed, 12)
        accepted, wrong = accepted + more, wrong + false
    assert wrong == []
    assert accepted > 20


def nothing_beside(forms, bounds, k, upper, w, given):
    return np.zeros(len(given.dense)), np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (IntegerForms, "is_positive", lambda *given: True),
        (entry, "_rows_beside", nothing_beside),
        (FloatForms, "is_positive", lambda *given: True),
        (entry._ExactRows, "is_below", lambda *given: True),
    ],
)
def test_a_checker_that_leaves_out_a_step_is_found(owner, name, broken, monkeypatch):
    exact = owner in (IntegerForms, entry._ExactRows)
    monkeypatch.setattr(
        proof_mutations, "MODES", ({"exact": exact, "floats": not exact},)
    )
    monkeypatch.setattr(owner, name, broken)
    assert any(proof_mutations.judge(seed, 12)[1] for seed in range(3, 403, 4))


def changes() -> dict[str, tuple[Json, str]]:
    one, most = "0x1.0p+0", 2**14
    dense = {"core": [0, 1], "shares": [0], "dense": [0, 1]}
    scaling = {"scaling": [one] * 4}
    return {
        "a negative weight": ({"weights": [one, one, "-0x1.0p+0", one]}, "weight"),
        "a weight too few": ({"weights": [one] * 3}, "weight"),
        "a weight too many": ({"weights": [one] * 5}, "weight"),
        "a huge weight": ({"weights": [one, "0x1.0p+900", one, one]}, "proportion"),
        "a share above 1": ({"shares": [most + 1] * 6}, "share"),
        "a share that is no integer": ({"shares": ["0x1.0p+0"] * 6}, "integer"),
        "a share too few": ({"shares": [0] * 5}, "share"),
        "a core beside what is dense": ({**dense, "dense": [0, 2], **scaling}, "core"),
        "a core that is not ascending": ({"core": [1, 0, 2, 3]}, "ascending"),
        "a feature twice": ({"core": [0, 0, 1, 2]}, "ascending"),
        "a feature that is none": ({"dense": [0, 1, 2, 3, 4]}, "different"),
        "no scaling": (dense, "scaling"),
        "a scaling too few": ({**dense, "scaling": [one] * 3}, "scaling"),
        "a scaling of 0": ({**dense, "scaling": ["0x0.0p+0"] + [one] * 3}, "scaling"),
        "a scaling that underflows": (
            {**dense, "scaling": ["0x1.0p-1000"] * 4},
            "scaling",
        ),
        "a scaling of nothing": (scaling, "scaling"),
    }


@pytest.mark.parametrize("name", changes())
def test_what_is_not_of_the_format_is_refused(name):
    change, why = changes()[name]
    data = describe(X, "data")
    rng = np.random.default_rng(1)
    lines = entry_proof(X, data, 2, rng)
    A = float_matrix(X, data)
    whole: Json = {"core": [0, 1, 2, 3], "shares": [0] * 6, "dense": [0, 1, 2, 3]}
    record = {"k": 2, "rule": "entry", "weights": ["0x1.0p+0"] * 4, **whole}
    upper = 2 * entry_value(A, record)
    lines[1] = record | {"upper": upper.hex()}
    lines[0]["claims"][0]["upper_bound"] = (2 * upper).hex()
    check_proof(as_bytes(lines), X)
    lines[1] |= change
    for mode in (*MODES, {}):
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), X, **mode)


def test_an_older_version_does_not_have_it():
    lines = entry_proof(X, describe(X, "data"), 2, np.random.default_rng(0))
    lines[0]["version"] = 4
    with pytest.raises(ProofError, match="version 5"):
        check_proof(as_bytes(lines), X)


def test_the_bound_of_another_k_is_not_taken():
    """The same point with k − 1 in its place: a lower price for more features."""
    rng = np.random.default_rng(2)
    Y = np.ones((5, 5)) + np.eye(5)
    lines = entry_proof(Y, describe(Y), 2, rng)
    lines[1]["k"] = lines[0]["claims"][0]["k"] = 5
    for mode in MODES:
        with pytest.raises(ProofError, match="k = 5"):
            check_proof(as_bytes(lines), Y, **mode)


# -- factors ------------------------------------------------------------------------


def as_integers(N: np.ndarray) -> np.ndarray:
    return np.array([[int(x * 2**60) for x in row] for row in N], dtype=object)


@pytest.mark.parametrize("n", [1, 31, 33, 70, 150])
def test_a_factor_shows_what_is_positive_and_no_more(n):
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n, n))
    lowest = float(np.linalg.eigvalsh(B @ B.T)[0])
    N = B @ B.T - lowest * np.eye(n)
    size = float(np.abs(N).max()) or 1.0
    for k in (1, n):
        more = N + 1e-9 * size * np.eye(n)
        assert is_shown_in_floats(more, 1e-13 * size, k)
        assert is_shown_in_integers(as_integers(more), k)
    below = N - 1e-6 * size * np.eye(n)
    assert not is_shown_in_floats(below, 0.0, n)
    assert not is_shown_in_floats(N + 1e-9 * size * np.eye(n), 1e-6 * size, n)
    assert not is_shown_in_integers(as_integers(below), n)


def test_a_wrong_factor_shows_nothing(monkeypatch):
    N = np.array([[1.0, 2.0], [2.0, 1.0]])  # indefinite
    assert sparse_positive.cholesky(N) is None
    for wrong in (np.eye(2), np.zeros((2, 2)), np.full((2, 2), 1.2)):
        monkeypatch.setattr(sparse_positive, "cholesky", lambda X, L=wrong: L)
        assert not is_shown_in_floats(N, 0.0, 2)
        assert not is_shown_in_integers(np.array([[1, 2], [2, 1]], dtype=object), 2)


def test_vectors_of_few_entries_may_be_all_that_count():
    """1 on the diagonal and −1/2 beside it: x'Xx ≥ 0 for three entries, not four."""
    X = 1.5 * np.eye(5) - 0.5
    whole = np.array([[int(2 * x) << 40 for x in row] for row in X], dtype=object)
    for k, holds in ((2, True), (3, True), (4, False), (5, False)):
        found = is_shown_in_integers(whole + (np.eye(5, dtype=int) << 8), k)
        assert found <= holds  # true only of what holds for k entries
        assert is_shown_in_floats(X + 1e-9 * np.eye(5), 0.0, k) <= holds


def test_products_of_integers_are_exact():
    rng = np.random.default_rng(0)
    V = rng.integers(-(2**59) + 1, 2**59, (5, 100))
    V[0], V[1] = 2**59 - 1, 1 - 2**59
    exact = [[sum(int(a) * int(b) for a, b in zip(v, w)) for w in V] for v in V]  # noqa: B905
    assert exact_product(V).tolist() == exact


def test_features_without_entries_are_left_out_rightly():
    """Those that Cauchy's inequality leaves out have none by the entries themselves."""
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((8, 30)) * rng.gamma(1.0, size=30)
    Y = as_data(Y)
    problem = Problem(data_hash(Y), "data", 8, 30, True, False, 1)
    bounds = FloatMatrix(Y, problem).upper_bounds()
    w = np.sqrt(bounds.diagonal.max()) * rng.uniform(0.3, 1.0, 30)
    some = entry._has_entries(bounds, w)
    sizes = bounds.entries(np.arange(30))(np.arange(30), 30)
    np.fill_diagonal(sizes, 0.0)
    strong = (sizes > np.outer(w, w)).any(axis=1)
    assert not (strong & ~some).any()
    assert 0 < some.sum() < 30
