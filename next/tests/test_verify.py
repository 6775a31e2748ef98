"""`verify` and `write_proof` on results whose proofs come from brute force."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from blockspca.checker.__main__ import main
from blockspca.checker.check import check_file
from blockspca.checker.problem import Problem, Vector
from blockspca.checker.reading import ProofError
from blockspca.checker.records import Average, Rows, Sets, Tree, Variance
from blockspca.constraints import Constraints
from blockspca.covariance import Covariance, residual
from blockspca.limits import Status
from blockspca.pipeline import solve
from blockspca.proof.verify import VerificationError, verify
from blockspca.proof.write import write_proof
from blockspca.result import Bound, Result
from small_proofs import covariance, honest_proof

RNG = np.random.default_rng(4)
X = RNG.standard_normal((15, 8)) @ RNG.standard_normal((8, 8))
GROUPS = ((1, (0, 2, 5)), (2, (1, 3, 4, 7)))
SETS = {
    "all": Sets(),
    "without": Sets(without=(1, 6)),
    "include": Sets(include=(5, 2)),
    "groups": Sets(groups=GROUPS),
    "together": Sets((6,), (4,), GROUPS),
}


def results(Y, problem, identity=None, k_max=4):
    """Return a result for each k, with its evidence."""
    proof = honest_proof(Y, problem, k_max)
    made = []
    for place, claim in enumerate(proof.claims):
        x = np.zeros(Y.shape[1])
        support = np.array(claim.vector.support)
        x[support] = claim.vector.x
        bound = Bound(claim.upper, "tree", proof.records[: place + 1])
        made.append(
            Result(
                x,
                support,
                claim.objective,
                bound,
                claim.k,
                sets=problem.sets,
                identity=identity,
            )
        )
    return made


def data_problem(scale=False, **more):
    return Problem("data", True, scale, 1, **more)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("scale", [False, True])
def test_every_result_is_verified_and_no_lower_bound(name, scale):
    cov = Covariance.from_data(X, scale=scale)
    for result in results(X, data_problem(scale, sets=SETS[name])):
        verification = verify(result, cov)
        assert verification.holds
        assert len(verification.claims) == 3
        *chain, last = result.bound.evidence
        for share in (1e-3, 1e-6, 1e-8):
            upper = result.objective * (1 - share)
            lower = Bound(upper, "", (*chain, replace(last, upper=upper)))
            with pytest.raises(VerificationError, match="not shown"):
                verify(replace(result, bound=lower), cov)
            lower = Bound(upper, "", (*chain, last))
            with pytest.raises(VerificationError, match="less than its evidence"):
                verify(replace(result, bound=lower), cov)


def test_matrices_and_residuals_are_verified():
    A = covariance(X, data_problem())
    vector = Vector((1, 4), (0.6, 0.8))
    V = np.zeros((8, 1))
    V[[1, 4], 0] = vector.x
    cases = [
        (A, Covariance.from_matrix(A), Problem("matrix")),
        (X, residual(Covariance.from_data(X), V), data_problem(residual=(vector,))),
        (
            A,
            residual(Covariance.from_matrix(A), V),
            Problem("matrix", residual=(vector,)),
        ),
    ]
    for Y, cov, problem in cases:
        for result in results(Y, problem):
            assert verify(result, cov).holds
            other = Covariance.from_matrix(1.001 * A)
            with pytest.raises(VerificationError):
                verify(result, other)


def test_wrong_vectors_and_objectives_are_refused():
    cov = Covariance.from_data(X)
    result = results(X, data_problem())[2]

    def refused(match, **changes):
        with pytest.raises(VerificationError, match=match):
            verify(replace(result, **changes), cov)

    refused("objective", objective=result.objective * (1 + 1e-8))
    refused("objective", objective=float("nan"))
    refused("cannot have", support=np.append(result.support, 8), k=4)
    twice = np.append(result.support, result.support[0])
    refused("objective", support=twice, k=4, objective=1.01 * result.objective)
    refused("not shown", bound=Bound(np.nan, "", (Variance(3, np.nan),)))
    refused("length", x=result.x * 1.001)
    refused("cannot have", x=result.x * np.nan)
    short = result.x.copy()
    short[result.support[0]] = np.nan
    refused("length", x=short)
    refused("cannot have", k=2)
    refused("cannot have", x=result.x[:-1])
    refused("cannot have", sets=Sets(without=(int(result.support[0]),)))
    outside = np.setdiff1d(np.arange(8), result.support)
    refused("must have", sets=Sets(include=(int(outside[0]),)))
    refused("cannot have", sets=Sets(groups=((1, tuple(range(8))),)))


def test_constraints_are_part_of_the_claim():
    """A bound for sets that include a feature is no bound for all sets."""
    cov = Covariance.from_data(X)
    for name in ("include", "groups", "without"):
        for result in results(X, data_problem(sets=SETS[name])):
            free = results(X, data_problem())[result.k - 1]
            if result.upper_bound < free.objective:
                with pytest.raises(VerificationError):
                    verify(replace(result, sets=Sets()), cov)


def test_no_average_over_sets_that_include_a_feature():
    cov = Covariance.from_data(X)
    result = results(X, data_problem(sets=SETS["include"]))[1]
    evidence = (*result.bound.evidence, Average(4, 1e9, 3))
    with pytest.raises(VerificationError, match="average"):
        verify(replace(result, k=4, bound=Bound(1e9, "", evidence)), cov)


def test_matrices_and_data_are_taken_as_everywhere():
    X = np.random.default_rng(0).normal(size=(30, 6)) * np.arange(1, 7)
    A = np.cov(X.T)
    assert verify(solve(A, 2), A).holds
    assert verify(solve(X, 2), X).holds
    scaled = solve(Covariance.from_data(X, scale=True, ddof=0), 2)
    assert verify(scaled, X).holds
    assert verify(scaled, np.corrcoef(X.T)).holds
    with pytest.raises(VerificationError, match="objective"):
        verify(solve(X, 2), np.corrcoef(X.T))


def test_a_bound_without_evidence_is_not_checked():
    cov = Covariance.from_data(X)
    result = replace(results(X, data_problem())[1], bound=Bound())
    verification = verify(result, cov)
    assert not verification.holds
    assert "not checked" in str(verification)


@pytest.mark.parametrize("options", [[], ["--exact"]])
@pytest.mark.parametrize("name", ["all", "without", "groups"])
def test_files_are_accepted(tmp_path, capsys, options, name):
    np.save(tmp_path / "X.npy", X)
    for scale in (False, True):
        cov = Covariance.from_data(X, scale=scale)
        path = results(X, data_problem(scale, sets=SETS[name]), cov.identity)
        write_proof(tmp_path / "a.proof", X, (path, ()))
        code = main([str(tmp_path / "a.proof"), str(tmp_path / "X.npy"), *options])
        output = capsys.readouterr().out
        assert code == 0, output
        assert output.count("ACCEPTED: ") == len(path)
        assert "gap 0)" in output
        assert [p.name for p in tmp_path.iterdir()].count("a.proof") == 1
        assert not list(tmp_path.glob("*.part"))


def test_a_file_has_a_proof_for_each_component(tmp_path, capsys):
    np.save(tmp_path / "X.npy", X)
    cov = Covariance.from_data(X)
    first = results(X, data_problem(), cov.identity)[2]
    support = tuple(first.support.tolist())
    vector = Vector(support, tuple(first.x[first.support].tolist()))
    second = results(X, data_problem(residual=(vector,)), cov.identity)[2]
    write_proof(
        tmp_path / "two.proof",
        X,
        ([first], ()),
        ([second], [(support, first.x[first.support])]),
    )
    assert main([str(tmp_path / "two.proof"), str(tmp_path / "X.npy")]) == 0
    output = capsys.readouterr().out
    assert output.count("ACCEPTED: ") == 2
    write_proof(tmp_path / "two.proof", X, ([second], ()))
    assert main([str(tmp_path / "two.proof"), str(tmp_path / "X.npy")]) == 1


PULL = np.array([[-1.0, 1.0, 0.3], [1.0, -1.0, 0.0], [0.3, 0.0, -3e14]])
HARD = {  # A, k, rules
    "terms that cancel": (-np.ones((5, 5)), 3, {}),
    "a term of 1e14 that counts for nothing": (PULL, 3, {}),
    "an optimum far below the largest entry": (np.diag([-1.0, 1e-40]), 2, {}),
    "entries of 2^190": (np.eye(3) * 2.0**190, 2, {}),
    "groups without a place": (
        np.diag([3.0, 2, 1]) + 1,
        2,
        {"overlap_with": [1, 2], "min_overlap": 2},
    ),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_files_of_hard_matrices_are_accepted(tmp_path, name, exact):
    A, k, rules = HARD[name]
    result = solve(A, k, constraints=Constraints(**rules) if rules else None)
    result.write_proof(tmp_path / "a.proof", A)
    np.save(tmp_path / "A.npy", A)
    (checked,) = check_file(tmp_path / "a.proof", tmp_path / "A.npy", exact)
    claim = checked.proof.claims[0]
    assert claim.upper == result.upper_bound
    assert claim.objective == pytest.approx(result.objective, 1e-9, 1e-9)
    poor = replace(result, objective=result.objective + 1e-8 * np.abs(A).max())
    poor.write_proof(tmp_path / "a.proof", A)
    with pytest.raises(ProofError, match="not reached"):
        check_file(tmp_path / "a.proof", tmp_path / "A.npy", exact)


def test_a_feature_to_include_counts_once():
    """Twice the same row would be a bound for sets of fewer features."""
    A = np.array([[0.0, 0, 0], [0, 1, 1], [0, 1, 1]])
    x = np.array([0.0, 1.0, 0.0])
    evidence = tuple(Tree(k, 1.0 + 1e-9, (0, 1, 2), 9) for k in (2, 3))
    twice = Sets(include=(0, 0))
    bound = Bound(1.0 + 1e-9, "", evidence)
    result = Result(x, np.arange(3), 1.0, bound, 3, sets=twice)
    with pytest.raises(VerificationError, match="above"):
        verify(result, Covariance.from_matrix(A))


def test_what_a_file_cannot_say_is_refused(tmp_path):
    cov = Covariance.from_data(X)
    result = results(X, data_problem(), cov.identity)[1]
    path = tmp_path / "a.proof"
    with pytest.raises(ValueError, match="include"):
        replace(result, sets=Sets(include=(0,))).write_proof(path, X)
    with pytest.raises(ValueError, match="evidence"):
        replace(result, bound=Bound()).write_proof(path, X)
    with pytest.raises(ValueError, match="verify"):
        replace(result, identity=None).write_proof(path, X)
    with pytest.raises(RuntimeError, match=r"chang|shape"):
        result.write_proof(path, X + 1e-9)
    assert not list(tmp_path.iterdir())


def test_status_and_gap_are_properties():
    x, support = np.array([1.0, 0]), np.array([0])

    def result(upper, **more):
        return Result(x, support, 2.0, Bound(upper), 1, **more)

    assert result(2 + 1.9e-6).status is Status.OPTIMAL
    assert result(2 + 2.1e-6).status is Status.FEASIBLE
    assert result(2.1, gap_wanted=0.1).status is Status.GAP
    assert result(2.1, gap_wanted=0.01).status is Status.FEASIBLE
    assert result(2.1, stopped=Status.TIME_LIMIT).status is Status.TIME_LIMIT
    assert result(2.0, stopped=Status.TIME_LIMIT).status is Status.OPTIMAL
    assert result(2 + 1e-9).gap == pytest.approx(5e-10)
    assert "gap 0)" in str(result(2 + 1e-9))
    assert "optimal" in str(result(2 + 1e-9))
    zero = Result(x, support, 0.0, Bound(1e-300), 1)
    assert zero.status is Status.FEASIBLE


def test_a_long_chain_can_be_pickled():
    evidence = tuple(Variance(k, 2.0) for k in range(1, 2000))
    result = Result(np.array([1.0, 0]), np.array([0]), 2.0, Bound(2, "", evidence), 1)
    assert pickle.loads(pickle.dumps(result)).bound == result.bound
    assert len(repr(result.bound)) < 100


def test_rows_use_the_lists_of_a_covariance():
    cov = Covariance.from_matrix(np.ones((6, 6)))
    x = np.where(np.arange(6) < 3, 3**-0.5, 0.0)
    result = Result(x, np.arange(3), 3.0, Bound(3.0, "rows", (Rows(3, 3.0),)), 3)
    assert verify(result, cov).holds
    low = Bound(2.9999999, "rows", (Rows(3, 2.9999999),))
    with pytest.raises(VerificationError, match="at least 3"):
        verify(replace(result, bound=low), cov)


def test_a_zero_matrix_with_features_to_include_is_verified():
    problem = Problem("matrix", sets=Sets(include=(1, 3)))
    for result in results(np.zeros((5, 5)), problem):
        assert verify(result, Covariance.from_matrix(np.zeros((5, 5)))).holds
