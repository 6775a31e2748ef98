"""The checker accepts what holds and refuses what does not, by brute force."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from blockspca.checker import rows
from blockspca.checker.arithmetic import Floats as FloatSlack
from blockspca.checker.arithmetic import Integers
from blockspca.checker.check import check_proof
from blockspca.checker.entries import Floats, integer_block
from blockspca.checker.problem import Problem, Proof, Vector
from blockspca.checker.reading import ProofError
from blockspca.checker.records import Average, Rows, Sets, Tree, Variance
from small_proofs import best, covariance, honest_proof, problems

SEEDS = range(4)


def is_refused(Y, proof, exact=False):
    try:
        check_proof(Y, proof, exact)
    except ProofError:
        return True
    return False


def with_record(proof, place, record):
    records = list(proof.records)
    records[place] = record
    return replace(proof, records=tuple(records))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_honest_proofs_hold(seed, exact):
    rng = np.random.default_rng(seed)
    for Y, problem in problems(rng, int(rng.integers(4, 9))):
        proof = honest_proof(Y, problem, 6)
        assert len(check_proof(Y, proof, exact).steps) == len(proof.records)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_record_below_the_optimum_is_refused(seed, exact):
    rng = np.random.default_rng(seed)
    tried = 0
    for Y, problem in problems(rng, int(rng.integers(4, 9))):
        proof, A = honest_proof(Y, problem, 6), covariance(Y, problem)
        scale = np.abs(A).max()
        for place, record in enumerate(proof.records):
            optimum = best(A, record.k)[0]
            for share in (1e-2, 1e-4, 1e-6, 1e-8):
                upper = optimum - share * scale
                if upper == optimum or (share < 1e-6 and Y.max() > 1e5):
                    continue  # 1e6 as an offset leaves ten digits in the plain A
                for nodes in (0, 10**6):
                    lower = (
                        replace(record, upper=upper, nodes=nodes)
                        if isinstance(record, Tree)
                        else replace(record, upper=upper)
                    )
                    tried += 1
                    assert is_refused(Y, with_record(proof, place, lower), exact)
    assert tried > 200


@pytest.mark.parametrize("seed", range(12))
def test_no_change_of_a_record_shows_a_false_claim(seed):
    rng = np.random.default_rng(seed)
    accepted = 0
    for Y, problem in problems(rng, int(rng.integers(4, 8))):
        proof, A = honest_proof(Y, problem, 5), covariance(Y, problem)
        optima = {claim.k: best(A, claim.k) for claim in proof.claims}
        scale = max(np.abs(A).max(), 1e-3)
        for _ in range(15):
            records = list(proof.records)
            for _ in range(int(rng.integers(1, 4))):
                place = int(rng.integers(len(records)))
                records[place] = changed(records[place], rng, len(A))
            if rng.random() < 0.3:
                rng.shuffle(records)
            k = int(rng.choice(list(optima)))
            claim = next(c for c in proof.claims if c.k == k)
            upper = optima[k][0] - scale * 10.0 ** -rng.integers(1, 7)
            false = replace(claim, objective=upper - scale, upper=upper)
            changes = Proof(problem, (false,), tuple(records))
            assert is_refused(Y, changes)
            accepted += not is_refused(Y, replace(changes, claims=()))
    assert accepted  # some changed records are true


def changed(record, rng, d):
    """Return another record: a lower bound, other features, nodes, k or rule."""
    kind = int(rng.integers(6))
    k = int(rng.integers(1, d + 1))
    if kind == 0:
        return replace(record, k=k)
    if kind == 1:
        return replace(record, upper=record.upper - abs(record.upper) * rng.random())
    if kind == 2:
        return Average(record.k, record.upper, k)
    if kind == 3:
        return (Variance if rng.random() < 0.5 else Rows)(record.k, record.upper)
    features = tuple(rng.permutation(d)[: rng.integers(d + 1)].tolist())
    return Tree(record.k, record.upper * rng.choice([0.5, 1]), features, k)


@pytest.mark.parametrize("exact", [False, True])
def test_an_objective_that_x_does_not_reach_is_refused(exact):
    rng = np.random.default_rng(5)
    for Y, problem in problems(rng, 6):
        proof, A = honest_proof(Y, problem, 4), covariance(Y, problem)
        scale = np.abs(A).max()
        for claim in proof.claims:
            for more in (1e-3, 1e-7) if scale and Y.max() < 1e5 else ():
                larger = replace(claim, objective=claim.objective + more * scale)
                assert is_refused(Y, replace(proof, claims=(larger,)), exact)
            if claim.k > 1 and best(A, 1)[0] < claim.objective - 1e-6:
                x = (1.0, *[0.0] * (claim.k - 1))
                other = replace(claim, vector=Vector(claim.vector.support, x))
                assert is_refused(Y, replace(proof, claims=(other,)), exact)


def test_the_closed_forms_hold_with_equality():
    ones = np.ones((5, 5))
    matrix, data = Problem("matrix"), Problem("data", False, False, 0)
    Y = np.ones((4, 5))  # Y'Y/4 is exact
    error = 1e-14

    def accepts(Y, problem, *records):
        return not is_refused(Y, Proof(problem, (), records))

    assert accepts(ones, matrix, Rows(3, 3 + error))
    assert not accepts(ones, matrix, Rows(3, 3 - error))
    assert accepts(Y, data, Variance(3, 3 + 1e-13))
    assert not accepts(Y, data, Variance(3, 3 - error))
    assert not accepts(ones, matrix, Variance(3, 3.1))  # perhaps not semidefinite
    rows = Rows(2, 2 + error)
    assert accepts(ones, matrix, rows, Average(4, 4 + 4 * error, 2))
    assert not accepts(ones, matrix, rows, Average(4, 4 - error, 2))
    assert accepts(Y, data, Rows(2, 2 + 1e-13), Average(4, 4 + 1e-12, 2))
    assert not accepts(Y, data, Rows(2, 2 + 1e-13), Average(4, 4 - 1e-6, 2))
    assert not accepts(ones, matrix, Average(4, 4.1, 2), rows)  # in the wrong order
    large = Rows(4, 1.0)
    assert accepts(np.eye(5), matrix, large)
    for problem in (data, matrix):
        records = Variance(1, 1.25), Rows(4, 1.25), Average(2, 0.7, 4)
        assert not accepts(np.eye(5), problem, *records)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_sets_that_count(seed, exact):
    rng = np.random.default_rng(seed)
    d = 8
    Y = rng.standard_normal((12, d)) @ rng.standard_normal((d, d))
    groups = ((1, (0, 2, 5)), (2, (1, 3, 4, 7)))
    for sets in (Sets(groups=groups), Sets(without=(0, 6)), Sets((3,), (), groups)):
        problem = Problem("data", True, bool(seed % 2), 1, sets=sets)
        proof = honest_proof(Y, problem, 5)
        check_proof(Y, proof, exact)
        A = covariance(Y, problem)
        for place, record in enumerate(proof.records):
            lower = replace(record, upper=best(A, record.k, sets)[0] * (1 - 1e-7))
            assert is_refused(Y, with_record(proof, place, lower), exact)
        whole = replace(problem, sets=Sets())
        free = {k: best(A, k)[0] for k in range(1, 6)}
        for claim in proof.claims:
            if free[claim.k] > claim.upper * (1 + 1e-9):
                unlimited = replace(proof, problem=whole, claims=(claim,))
                assert is_refused(Y, unlimited, exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", ["data", "scaled", "matrix"])
def test_residuals(kind, exact):
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((14, 7)) @ rng.standard_normal((7, 7))
    if kind == "matrix":
        Y, problem = Y.T @ Y, Problem("matrix")
    else:
        problem = Problem("data", True, kind == "scaled", 1)
    vectors = (Vector((0, 3), (0.6, 0.8)), Vector((1, 3, 5), (0.5, -0.5, 0.7)))
    problem = replace(problem, residual=vectors)
    proof = honest_proof(Y, problem, 4)
    check_proof(Y, proof, exact)
    A = covariance(Y, problem)
    for place, record in enumerate(proof.records):
        lower = replace(record, upper=best(A, record.k)[0] * (1 - 1e-7))
        assert is_refused(Y, with_record(proof, place, lower), exact)
    for claim in proof.claims:
        larger = replace(claim, objective=claim.objective * (1 + 1e-7))
        assert is_refused(Y, replace(proof, claims=(larger,)), exact)
    same = replace(problem, residual=(vectors[0], vectors[0]))
    assert is_refused(Y, replace(proof, problem=same), exact)


def test_a_proof_of_other_data_is_refused():
    rng = np.random.default_rng(8)
    Y = rng.standard_normal((9, 6))
    proof = honest_proof(Y, Problem("data", True, False, 1), 4)
    for factor in (1.01, 1 + 1e-5):
        assert is_refused(factor * Y, proof)
    assert not is_refused(-Y, replace(proof, claims=()))


@pytest.mark.parametrize("exact", [False, True])
def test_small_entries_are_not_lost(exact):
    """Squares of 1e-200 underflow, and a bound of 1 is below 1 + 1e-200."""
    A = np.array([[1.0, 1e-200, 0.0], [1e-200, 1.0, 0.0], [0.0, 0.0, 1.0]])
    records = (Variance(1, 1.0), Tree(2, 1.0, (0, 1, 2), 9))
    assert is_refused(A, Proof(Problem("matrix"), (), records), exact)
    records = (Variance(1, 1.0), Tree(2, 1.0, (), 9))
    assert not is_refused(np.eye(3), Proof(Problem("matrix"), (), records), True)
    for size in (1e-250, 1e250):
        with pytest.raises(ProofError, match="scale the data"):
            check_proof(size * A, Proof(Problem("matrix"), (), ()), exact)
    Y = np.full((3, 2), 1e-200) * [[1.0, 2.0], [0.0, 1.0], [0.5, 0.0]]
    with pytest.raises(ProofError, match="scale the data"):
        check_proof(Y, Proof(Problem("data", True, False, 1), (), ()), exact)


@pytest.mark.parametrize("exact", [False, True])
def test_entries_err_by_no_more_than_is_said(exact):
    """Offsets, small columns, many samples: entries against exact fractions."""
    rng = np.random.default_rng(2)
    V = Vector((0, 2), (0.1, -(2.0**-60)))
    for n in (3, 40, 5000):
        X = rng.standard_normal((n, 4)) * [1.0, 1e-3, 5.0, 1.0] + [1e7, 0.0, 3.0, -1e3]
        for scale in (False, True):
            for residual in ((), (V,)):
                problem = Problem("data", True, scale, 1, residual)
                entries = Floats(X, problem)
                block = entries.block(np.arange(4))
                true, bits, error = integer_block(X, problem, np.arange(4))
                for i, j in np.ndindex(4, 4):
                    apart = abs(Fraction(block[i, j]) - Fraction(true[i, j], 2**bits))
                    assert apart <= entries.error + Fraction(error, 2**bits)
                assert entries.error < 1e-6 * entries.diagonal.max()
                assert (
                    np.abs(entries.diagonal - block.diagonal()).max() <= entries.error
                )


def test_a_tree_ends_at_twice_its_nodes():
    rng = np.random.default_rng(1)
    Y = rng.standard_normal((30, 12))
    problem = Problem("data", True, True, 1)
    proof = honest_proof(Y, problem, 5)
    check_proof(Y, proof)
    record = proof.records[-1]
    assert record.nodes > 16
    for exact in (False, True):
        short = with_record(proof, -1, replace(record, nodes=0))
        with pytest.raises(ProofError, match="more than 16 nodes"):
            check_proof(Y, short, exact)


def test_integers_see_what_rounding_hides():
    """[[a², ab], [ab, b² − 1]] has the determinant −a²."""
    rng = np.random.default_rng(3)
    numbers = Integers(2, 1.0, {}, np.array([[0]], dtype=object), 0, 0)
    for _ in range(50):
        a, b = (int(number) * 10**20 + 1 for number in rng.integers(1, 10**9, 2))
        for less, definite in ((1, False), (0, False), (-1, True)):
            G = np.array([[a * a, a * b], [a * b, b * b - less]], dtype=object)
            assert not numbers.is_semidefinite(G, 2) or definite
            wide = np.array([[a, 0], [0, b]], dtype=object)
            assert numbers.is_semidefinite(wide, 2)


def test_bounds_of_two_by_two_matrices_are_below_their_eigenvalues():
    rng = np.random.default_rng(4)
    floats = FloatSlack(2, 1.0, {}, np.zeros((1, 1)), 0.0, 0.0)
    whole = Integers(2, 1.0, {}, np.array([[0]], dtype=object), 0, 0)
    for _ in range(300):
        a, b, c = (Fraction(x) for x in 10.0 ** rng.uniform(-9, 3, 3))
        low = Fraction(floats.least(float(a), float(c), float(b)))
        assert low <= min(a, b)
        assert (a - low) * (b - low) >= c  # the characteristic polynomial
        a, b, c = (int(x * 2**60) for x in (a, b, c))
        low = whole.least(a, c, b)
        assert (a - low) * (b - low) >= c
        near = low + 2 + int(abs(low) * Fraction(1, 10**9))
        assert not (near <= min(a, b) and (a - near) * (b - near) >= c)


@pytest.mark.parametrize("is_psd", [True, False])
def test_short_lists_drop_no_feature_of_a_better_set(is_psd, monkeypatch):
    """Entries that are not in a list count as its last one."""
    monkeypatch.setattr(rows, "WHOLE", 2)
    rng = np.random.default_rng(6)
    dropped = 0
    for _ in range(60):
        M = rng.standard_normal((9, 9)) ** 3
        A = M @ M.T if is_psd else M + M.T
        k = int(rng.integers(2, 5))
        include = rng.permutation(9)[: rng.integers(0, k)]
        value, support, _ = best(A, k, Sets(include=tuple(include.tolist())))
        u = -np.inf
        if k - 1 >= len(include):
            u = best(A, k - 1, Sets(include=tuple(include.tolist())))[0]
        matrix = Floats(A, Problem("matrix"))
        matrix.is_psd = is_psd
        question = (k, value * (1 - 1e-9) - 1e-12, u)
        screening = rows.Screening(matrix, [question], include)
        screening._width = int(rng.integers(1, 4))
        features = screening.survivors(*question)
        dropped += 9 - len(features)
        assert set(support) <= set(features.tolist())
    assert dropped > 20
