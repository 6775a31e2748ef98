"""A true certificate passes, in NumPy alone; one that was tampered with does not."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import blockspca as bs
from blockspca.certify.certificate import StepClaim
from blockspca.certify.plain_proof import NodeCapReached, Refuted, prove_none_above
from conftest import brute_force
from strategies import problems, symmetric_matrix


@pytest.fixture(scope="module")
def A() -> np.ndarray:
    X = np.random.default_rng(6).normal(size=(25, 30)) * np.linspace(1, 3, 30)
    return np.cov(X.T)


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


def test_json_in_and_out(result, A):
    text = result.certificate.to_json()
    again = bs.Certificate.from_json(text)
    assert again == result.certificate
    assert bs.verify(again, A).complete


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
assert not any(name.startswith("blockspca._kernels.") for name in sys.modules)
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


def test_a_status_that_was_not_proved_is_rejected(A):
    limited = bs.solve(A, 5, limits=bs.Limits(gap=0.5))
    if limited.status is bs.Status.OPTIMAL:
        pytest.skip("proved exactly on the way")
    assert bs.verify(limited, A).complete
    boast = altered(limited, status=bs.Status.OPTIMAL)
    with pytest.raises(bs.VerificationError, match="status is optimal, but"):
        bs.verify(boast, A)
    with pytest.raises(bs.VerificationError, match="tolerance"):
        bs.verify(altered(limited, tolerance=1.0), A)


def test_a_result_must_agree_with_its_certificate(result, A):
    higher = dict.fromkeys(("objective", "upper_bound"), result.objective + 1)
    with pytest.raises(bs.VerificationError, match="do not say the same"):
        bs.verify(replace(result, **higher), A)
    with pytest.raises(bs.VerificationError, match="certify=False"):
        bs.verify(bs.solve(A, 3, certify=False), A)


def test_the_node_cap_is_said(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 40))
    A = np.cov(X.T)
    result = bs.solve(A, 6)
    outcome = bs.verify(result, A, max_nodes=1)
    assert not outcome.complete
    assert "raise max_nodes = 1 and time_limit" in str(outcome)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(format="other"), "format 'other'"),
        (lambda c: c.update(version=99), "version 99"),
        (lambda c: c.update(extra=1), "unknown fields"),
        (lambda c: c.pop("objective"), "objective is missing"),
        (lambda c: c.update(objective="7"), "wrong type"),
        (lambda c: c.update(objective=float("nan")), "not a number"),
        (lambda c: c.update(k=0), "below 1"),
        (lambda c: c.update(k=True), "wrong type"),
        (lambda c: c.update(n_features=2), "do not go together"),
        (lambda c: c.update(status="certain"), "not a status"),
        (lambda c: c.update(support=[1.5]), "list of integers"),
        (lambda c: c.update(support=[3, 1]), "loadings"),
        (lambda c: c.update(loadings=["a"]), "list of numbers"),
        (lambda c: c["support"].reverse(), "ascend"),
        (lambda c: c["support"].__setitem__(-1, 10**6), "ascend"),
        (lambda c: c["steps"].pop(), "steps must lead up"),
        (lambda c: c["steps"].append({}), r"steps\[5\].*missing"),
        (lambda c: c["steps"][0].update(surprise=1), "unknown fields"),
        (lambda c: c["steps"][0]["statistics"].update(nodes=0.5), "not an integer"),
        (lambda c: c.update(steps=None), "wrong type"),
    ],
)
def test_strict_parsing(result, change, words):
    content = json.loads(result.certificate.to_json())
    change(content)
    with pytest.raises(ValueError, match=words):
        bs.Certificate.from_json(json.dumps(content))


def test_text_that_is_no_certificate():
    for text in ("", "[]", "{", "null", "[" * 100_000):
        with pytest.raises(ValueError, match="certificate"):
            bs.Certificate.from_json(text)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "duplicated"])
def test_plain_proof_decides_like_brute_force(kind):
    rng = np.random.default_rng(4)
    for _ in range(40):
        d = int(rng.integers(2, 9))
        A = symmetric_matrix(kind, d, rng)
        optima = [brute_force(A, k) for k in range(1, d + 1)]
        for k in range(2, d + 1):
            upper = np.array([np.inf, *optima[: k - 1]]) + 1e-12
            above = optima[k - 1] + 1e-6 * (1 + abs(optima[k - 1]))
            assert prove_none_above(A, k, above, upper, 10**6) >= 1
            below = optima[k - 1] - 1e-6 * (1 + abs(optima[k - 1]))
            if below > optima[k - 2]:
                with pytest.raises(Refuted):
                    prove_none_above(A, k, below, upper, 10**6)
            with pytest.raises(NodeCapReached):
                prove_none_above(A, k, above, upper, 0)


def test_a_large_k_is_certified_without_the_chain():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 200)) + np.outer(rng.normal(size=40), np.ones(200))
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 60, limits=bs.Limits(gap=0.05))
    assert result.status is bs.Status.GAP_LIMIT
    assert result.bound_name == "direction dual"
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
    assert found.bound_name == "direction dual"
    assert found.certificate.steps[-1].statistics["nodes"] > 1
    assert events[-1].upper_bound == found.upper_bound
    assert [event.k for event in events if event.status is not None].count(40) == 1
    assert bs.verify(found, cov).complete
