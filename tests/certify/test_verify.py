"""A true certificate passes, in NumPy alone; one that was tampered with does not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import blockspca as bs
import forging
import zoo
from blockspca.certificate import StepClaim
from blockspca.status import is_optimal_gap
from conftest import brute_force
from strategies import problems


@pytest.fixture(scope="module")
def A() -> np.ndarray:
    return zoo.graded(30)


@pytest.fixture(scope="module")
def result(A) -> bs.Result:
    result = bs.solve(A, 5)
    assert result.status is bs.Status.OPTIMAL
    return result


def altered(result: bs.Result, **changes: object) -> bs.Certificate:
    return replace(result.certificate, **changes)


def with_step(result: bs.Result, k: int, **changes: object) -> bs.Certificate:
    steps = list(result.certificate.steps)
    steps[k - 1] = replace(steps[k - 1], **changes)
    return replace(result.certificate, steps=tuple(steps))


@given(problems(max_features=9))
@settings(deadline=None, max_examples=150)
def test_every_result_is_verified(problem):
    A, k = problem
    result = bs.solve(A, k)
    outcome = bs.verify(result, A)
    assert outcome.complete
    assert outcome.upper_bound >= brute_force(A, k) - 1e-12 * np.abs(A).max()


def test_the_report_is_readable(result, A):
    outcome = bs.verify(result, A)
    assert outcome.complete
    assert len(outcome.checks) == 1 + 5 + 1
    assert "unit norm" in str(outcome)
    assert "status optimal" in str(outcome)


def test_data_and_its_covariance_verify_alike():
    X = np.random.default_rng(2).normal(size=(12, 40))
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 4)
    assert bs.verify(result, cov).complete
    assert bs.verify(result, np.cov(X.T)).complete


def test_no_kernel_is_used(result, A, tmp_path):
    np.save(tmp_path / "A.npy", A)
    (tmp_path / "certificate.json").write_text(result.certificate.to_json())
    code = f"""
import sys, numpy as np, pathlib
sys.modules["numba"] = None
import blockspca as bs
folder = pathlib.Path({str(tmp_path)!r})
certificate = bs.Certificate.from_json((folder / "certificate.json").read_text())
assert bs.verify(certificate, np.load(folder / "A.npy")).complete
kernels = [name for name in sys.modules if name.startswith("blockspca._kernels.")]
harmless = {{"loading", "tree_layout"}}  # loads them; names slots
assert {{name.rpartition(".")[2] for name in kernels}} <= harmless, kernels
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_matrix_is_rejected(result, A):
    with pytest.raises(bs.VerificationError, match="objective is"):
        bs.verify(result, A + np.eye(30))
    with pytest.raises(bs.VerificationError, match="30 features, the matrix has 29"):
        bs.verify(result, A[:29, :29])


def test_a_matrix_with_a_better_set_is_rejected(result, A):
    """One outside pair made strong: the objective stays, the bound does not hold."""
    outside = np.setdiff1d(np.arange(30), result.support)[:2]
    B = A.copy()
    B[outside[0], outside[1]] = B[outside[1], outside[0]] = 100.0
    with pytest.raises(bs.VerificationError):
        bs.verify(result, B)


def test_tampered_components_are_rejected(result, A):
    certificate = result.certificate
    x = np.array(certificate.loadings)
    worse = tuple(np.roll(np.abs(x), 1))
    cases = {
        "objective is": altered(
            result,
            objective=certificate.objective * 1.001,
            upper_bound=certificate.upper_bound * 1.001,
        ),
        "norm": altered(result, loadings=tuple(2 * x)),
        r"objective is \d": altered(result, loadings=worse),
        "nonzeros for k": replace(certificate, k=4, steps=certificate.steps[:4]),
    }
    for words, tampered in cases.items():
        with pytest.raises(bs.VerificationError, match=words):
            bs.verify(tampered, A)


def test_tampered_bounds_are_rejected(result, A):
    certificate = result.certificate
    lower = {"upper_bound": certificate.objective * 0.9, "status": bs.Status.FEASIBLE}
    with pytest.raises(bs.VerificationError, match="below the proved"):
        bs.verify(altered(result, **lower), A)
    for k in range(1, 6):
        step = certificate.steps[k - 1]
        with pytest.raises(bs.VerificationError):
            bs.verify(with_step(result, k, upper_bound=step.upper_bound * 0.99), A)
        with pytest.raises(bs.VerificationError, match="unknown bound"):
            bs.verify(with_step(result, k, bound_name="trust me"), A)
        with pytest.raises(bs.VerificationError):
            bs.verify(with_step(result, k, bound_name="none"), A)
        if step.tau is None:
            continue
        lower = {"tau": step.tau * 0.95, "upper_bound": step.upper_bound * 0.95}
        with pytest.raises(bs.VerificationError):
            bs.verify(with_step(result, k, **lower), A)
        with pytest.raises(bs.VerificationError):
            bs.verify(with_step(result, k, upper_previous=0.5 * step.tau), A)
        with pytest.raises(bs.VerificationError, match="what it proves"):
            bs.verify(with_step(result, k, tau=None), A)


def test_dropping_the_best_features_from_the_survivors_is_rejected(A):
    """A wrong optimum whose survivors leave out the true one."""
    result = bs.solve(A, 5)
    step = result.certificate.steps[-1]
    assert step.tau is not None
    fewer = tuple(i for i in step.survivors if i != result.support[0])
    between = (step.tau + step.upper_previous) / 2
    with pytest.raises(bs.VerificationError, match="not among the survivors"):
        bs.verify(with_step(result, 5, tau=between, survivors=fewer), A)


def forged(A: np.ndarray, k: int, support: tuple[int, ...], *steps: dict):
    """A certificate that claims a support of equal loadings to be optimal."""
    x = np.full(len(support), len(support) ** -0.5)
    objective = float(x @ A[np.ix_(support, support)] @ x)
    claims = tuple(
        StepClaim(k=j, **{"upper_bound": objective, **step})
        for j, step in enumerate(steps, 1)
    )
    return bs.Certificate(
        k=k,
        n_features=len(A),
        support=support,
        loadings=tuple(x),
        objective=objective,
        upper_bound=objective,
        status=bs.Status.OPTIMAL,
        tolerance=0.0,
        steps=claims,
    )


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_forged_certificates_are_rejected(scale):
    """Proofs below the previous bound, numbers that are none, squares that vanish."""
    A = scale * np.diag([5.0, 1.0, 1.0])
    first = {"bound_name": "variances", "upper_bound": 5.0 * scale}
    for tau in (scale * (1 + 1e-13), -np.inf, np.nan):
        step = {
            "bound_name": "screening",
            "tau": tau,
            "upper_previous": 5.0 * scale,
            "survivors": (),
        }
        with pytest.raises(bs.VerificationError):
            bs.verify(forged(A, 2, (1,), first, step), A)
    B = scale * (np.eye(4) + 1)
    first = {"bound_name": "variances", "upper_bound": 2.0 * scale}
    for name in ("nested 2×2", "row sums"):
        with pytest.raises(bs.VerificationError):
            bs.verify(forged(B, 2, (0,), first, {"bound_name": name}), B)


def test_certificates_that_are_none_are_rejected(result, A):
    certificate = result.certificate
    infinite = {"objective": np.inf, "upper_bound": np.inf}
    for changes in (
        {"steps": ()},
        {"support": (0,) * 5},
        {"upper_bound": np.nan},
        infinite,
    ):
        with pytest.raises(bs.VerificationError):
            bs.verify(altered(result, **changes), A)
    *others, last = certificate.steps
    for step in (replace(last, k=-1), replace(last, upper_previous=np.nan)):
        with pytest.raises(bs.VerificationError):
            bs.verify(altered(result, steps=(*others, step)), A)
    limited = bs.solve(A, 5, limits=bs.Limits(gap=0.5))
    shrunk = altered(limited, upper_bound=limited.objective)
    if limited.upper_bound > limited.objective:
        with pytest.raises(bs.VerificationError, match="below the proved"):
            bs.verify(shrunk, A)
    text = certificate.to_json().replace(
        f'"objective": {certificate.objective!r}', f'"objective": {10**400}'
    )
    with pytest.raises(ValueError, match="not finite"):
        bs.Certificate.from_json(text)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_scales_are_verified(A, scale):
    assert bs.verify(bs.solve(A * scale, 5), A * scale).complete


def test_repeated_eigenvalues_are_ordinary_input():
    A = -0.1 * np.ones((31, 31)) - np.eye(31)
    result = bs.solve(A, 30)
    assert result.objective == pytest.approx(-1.0)


def test_sparse_data_with_huge_means_claims_nothing_false():
    import scipy.sparse as sp

    rng = np.random.default_rng(2)
    X = np.zeros((4, 3000))
    basis = np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))[0]
    X[:, :5] = basis[:, 1:] @ rng.normal(size=(3, 5)) * 2
    X += rng.uniform(1e6, 3e6, size=3000)
    cov = bs.Covariance.from_data(sp.csr_array(X))
    assert cov.entry_error < 1e-12 * cov.diagonal().max()  # full columns are centred
    path = bs.solve_path(cov, 3, limits=bs.Limits(time=20))
    exact = bs.solve_path(bs.Covariance.from_data(X), 3)
    for k in (1, 2, 3):
        assert path[k].upper_bound >= exact[k].objective - 2 * k * cov.entry_error
        if path[k].status is bs.Status.OPTIMAL:
            assert path[k].objective == pytest.approx(exact[k].objective, rel=1e-6)


def test_a_status_that_was_not_proved_is_rejected():
    A = np.cov(np.random.default_rng(0).normal(size=(40, 60)).T)
    limited = bs.solve(A, 10, limits=bs.Limits(gap=0.5))
    assert limited.status is bs.Status.GAP_LIMIT
    assert bs.verify(limited, A).complete
    boast = altered(limited, status=bs.Status.OPTIMAL)
    with pytest.raises(bs.VerificationError, match="status is optimal, but"):
        bs.verify(boast, A)
    with pytest.raises(bs.VerificationError, match="tolerance"):
        bs.verify(altered(limited, tolerance=1.0), A)


def test_a_result_must_agree_with_its_certificate(result, A):
    higher = dict.fromkeys(("objective", "upper_bound"), result.objective + 1)
    with pytest.raises(bs.VerificationError, match="do not say the same"):
        bs.verify(forging.forged(result, **higher), A)
    with pytest.raises(ValueError, match=r"differ in objective, upper_bound; change"):
        replace(result, **higher)
    with pytest.raises(bs.VerificationError, match="certify=False"):
        bs.verify(bs.solve(A, 3, certify=False), A)


def test_the_node_cap_is_said(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 40))
    A = np.cov(X.T)
    result = bs.solve(A, 6)
    outcome = bs.verify(result, A, max_nodes=1)
    assert not outcome.complete
    assert "raise max_nodes = 1 and time_limit" in str(outcome)


def test_a_large_k_is_certified_without_the_chain():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 200)) + np.outer(rng.normal(size=40), np.ones(200))
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 60, limits=bs.Limits(gap=0.05))
    assert result.status is bs.Status.GAP_LIMIT
    assert result.bound_name in ("entry dual", "direction dual")
    assert [step.k for step in result.certificate.steps] == [60]
    assert bs.verify(result, cov).complete
    for share, words in ((0.9, "below the objective"), (1.0001, "above the claimed")):
        claimed = share * result.objective
        tampered = replace(
            with_step(result, 1, upper_bound=claimed), upper_bound=claimed
        )
        with pytest.raises(bs.VerificationError, match=words):
            bs.verify(tampered, cov)


def test_noise_is_certified_by_growth():
    A, _ = bs.datasets.noisy_blocks(n_blocks=6, block_size=20, rng=3)
    result = bs.solve(A, 5)
    assert result.status is bs.Status.OPTIMAL
    names = {step.bound_name for step in result.certificate.steps}
    assert names <= {"variances", "screening", "proof tree", "growth"}
    bs.verify(result, A, max_nodes=200)


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 1000, 10**6])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_component_that_is_not_of_unit_norm_is_rejected(result, A, steps, sign):
    """Its objective is that of x / ‖x‖, whatever x'Ax is."""
    x = np.array(result.certificate.loadings) * (1 + sign * steps * 1e-9)
    submatrix = A[np.ix_(result.support, result.support)]
    value = float(x @ submatrix @ x)
    bound = result.upper_bound
    for objective in (value, result.objective):
        upper_bound = max(bound, objective)
        if not is_optimal_gap(objective, upper_bound):
            continue
        with pytest.raises(bs.VerificationError, match=r"norm|objective is"):
            bs.verify(
                altered(
                    result,
                    loadings=tuple(x.tolist()),
                    objective=objective,
                    upper_bound=upper_bound,
                ),
                A,
            )


@pytest.mark.parametrize("share", [1e-6, 1e-9, 3e-10, 1e-11, 1e-12])
def test_an_objective_that_is_a_little_off_is_rejected(result, A, share):
    """The tolerance was 1e-9 of the largest entry; rounding is 1e-14."""
    for sign in (1, -1):
        objective = result.objective * (1 + sign * share)
        changes = {"objective": objective, "status": bs.Status.FEASIBLE}
        with pytest.raises(bs.VerificationError, match="objective is"):
            bs.verify(altered(result, **changes), A)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 0.5])
def test_nonzeros_outside_the_support_are_rejected(A, size):
    result = bs.solve(A, 3)
    x = np.array(result.x)
    outside = np.setdiff1d(np.arange(30), result.support)
    for count in (1, 10):
        x[outside[:count]] = size
        with pytest.raises(bs.VerificationError, match="outside the support"):
            bs.verify(forging.forged(result, x=x.copy()), A)
    with pytest.raises(bs.VerificationError, match="x has shape"):
        bs.verify(forging.forged(result, x=x[:20].copy()), A)


def test_an_entry_that_no_component_uses_loosens_nothing():
    """A[13, 13] = −1e9 made an objective 5 % below the optimum "optimal"."""
    rng = np.random.default_rng(1)
    A = np.zeros((14, 14))
    A[:13, :13] = np.cov(rng.normal(size=(30, 13)).T)
    A[13, 13] = -1e9
    for k in (2, 3, 5, 7):
        best = brute_force(A[:13, :13], k)
        result = bs.solve(A, k)
        bs.verify(result, A)
        if result.status is bs.Status.OPTIMAL:
            assert result.objective >= best * (1 - 1e-8)
        worse = result.support.copy()
        worse[0] = np.setdiff1d(np.arange(13), worse)[0]
        worse.sort()
        values, vectors = np.linalg.eigh(A[np.ix_(worse, worse)])
        assert values[-1] < 0.999 * best
        changes = {
            "support": tuple(worse.tolist()),
            "loadings": tuple(vectors[:, -1].tolist()),
            "objective": float(values[-1]),
        }
        assert bs.verify(
            altered(result, **changes, status=bs.Status.FEASIBLE, tolerance=0.0), A
        )
        with pytest.raises(bs.VerificationError, match="status is optimal, but"):
            bs.verify(altered(result, **changes, status=bs.Status.OPTIMAL), A)


@pytest.mark.data
@pytest.mark.parametrize(("name", "k"), [("CovColon", 15), ("Eisen2Cov", 10)])
def test_real_matrices(load, name, k):
    A = load(name)
    assert bs.verify(bs.solve(A, k), A).complete


def test_a_loose_bound_is_not_optimal(result, A):
    for loose in (10 * result.upper_bound, np.inf):
        with pytest.raises(bs.VerificationError, match="status is optimal, but"):
            bs.verify(altered(result, upper_bound=loose), A)


def test_the_nodes_of_a_bound_that_needs_no_chain_are_kept() -> None:
    """A limit on the chain leaves the dual's bound, whose search is repeated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 300))
    X[:, :40] += 0.6 * rng.normal(size=(40, 1))
    cov = bs.Covariance.from_data(X)
    events: list[bs.Event] = []
    limits = bs.Limits(nodes=20)
    found = bs.solve(cov, 40, limits=limits, progress=events.append)
    assert found.bound_name in ("entry dual", "direction dual")
    assert found.certificate.steps[-1].statistics["nodes"] > 1
    assert events[-1].upper_bound == found.upper_bound
    assert [event.k for event in events if event.status is not None].count(40) == 1
    assert bs.verify(found, cov).complete
