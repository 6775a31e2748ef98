"""Target minus background."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.components.shared_bounds import closed_forms
from blockspca.limits import Deadline

rng = np.random.default_rng(8)
TARGET = rng.normal(size=(30, 9)) * np.linspace(1, 2, 9)
BACKGROUND = rng.normal(size=(25, 9)) * np.linspace(1.5, 0.5, 9)
FORMS = {
    "matrix": lambda X: np.cov(X.T),
    "dense": bs.Covariance.from_data,
    "sparse": lambda X: bs.Covariance.from_data(sp.csr_array(X)),
}


def best(A: np.ndarray, k: int) -> float:
    sets = map(list, itertools.combinations(range(len(A)), k))
    return max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weight", [0.0, 0.7, 3.0])
def test_against_all_sets(form: str, weight: float) -> None:
    A = np.cov(TARGET.T) - weight * np.cov(BACKGROUND.T)
    make = FORMS[form]
    cov = bs.contrastive(make(TARGET), make(BACKGROUND), weight)
    np.testing.assert_allclose(cov.submatrix(slice(None)), A, atol=1e-12)
    np.testing.assert_allclose(cov.diagonal(), np.diagonal(A), atol=1e-12)
    x = rng.normal(size=9)
    np.testing.assert_allclose(cov.matvec(x), A @ x, atol=1e-11)
    error = np.abs(cov.submatrix(slice(None)) - A).max()
    assert error <= 2 * cov.entry_error + 1e-14
    for k in (1, 3, 5):
        result = bs.solve(cov, k)
        assert result.status is bs.Status.OPTIMAL
        assert result.objective == pytest.approx(best(A, k), rel=1e-9)
        assert bs.verify(result, cov).complete


def test_both_kinds_together_and_under_constraints() -> None:
    cov = bs.contrastive(
        bs.Covariance.from_data(TARGET),
        bs.Covariance.from_data(sp.csr_array(BACKGROUND)),
        0.5,
    )
    result = bs.solve(cov, 3, constraints=bs.Constraints(include=[0]))
    assert 0 in result.support
    assert bs.verify(result, cov).complete


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_no_bound_exceeds_the_target_s(form: str) -> None:
    """However heavy the background, and whatever was searched."""
    make = FORMS[form]
    target = make(rng.normal(size=(20, 60)))
    background = make(rng.normal(size=(25, 60)))
    for weight in (0.5, 3.0, 1e6):
        cov = bs.contrastive(target, background, weight)
        for k in (1, 4, 30):
            most = bs.solve(target, k, limits=bs.Limits(nodes=1)).upper_bound
            for limits in (bs.Limits(nodes=1), bs.Limits(time=0.0)):
                result = bs.solve(cov, k, limits=limits)
                obvious = target.diagonal()[np.argsort(-target.diagonal())[:k]].sum()
                assert result.objective <= result.upper_bound
                assert result.upper_bound <= obvious * (1 + 1e-12)
                bs.verify(result, cov)
            assert result.objective <= most


def test_a_bound_of_the_target_needs_a_background_without_negative_variance() -> None:
    """A given matrix may be indefinite; what is subtracted may then add."""
    target = np.diag([1.0, 0.5, 0.25, 0.1])
    background = np.diag([0.0, 0.0, 0.0, -5.0])
    cov = bs.contrastive(target, background, 1.0)
    assert cov.dominance.excess >= 5.0
    result = bs.solve(cov, 1)
    assert result.objective == pytest.approx(5.1)
    held = bs.Covariance.from_data(np.diag([2.0, 1.0, 1.0, 1.0]))
    contrast = bs.contrastive(bs.Covariance.from_matrix(target), held, 1e3)
    claim = bs.solve(contrast, 2, limits=bs.Limits(nodes=1))
    forged = [
        replace(step, upper_bound=0.9, bound_name=BoundName.TARGET)
        for step in claim.certificate.steps
    ]
    with pytest.raises(bs.VerificationError, match=r"no contrast|0\.9"):
        bs.verify(replace(claim.certificate, steps=tuple(forged), upper_bound=0.9), cov)


def test_what_is_formed_is_the_same_contrast() -> None:
    """Of more samples than features, A is formed once, as without a background."""
    tall = [bs.Covariance.from_data(X) for X in (TARGET, BACKGROUND)]
    cov = bs.contrastive(*tall, 0.7)
    formed = cov.formed()
    assert not cov.in_memory
    assert formed.in_memory
    assert cov.formed() is formed
    assert formed.dominance.matrix.in_memory
    error = np.abs(formed.submatrix(slice(None)) - cov.submatrix(slice(None))).max()
    assert error <= cov.entry_error + formed.entry_error
    assert cov.formed(memory=8 * 9 * 9) is formed  # it is there already
    again = bs.contrastive(*(bs.Covariance.from_data(X) for X in (TARGET, TARGET)), 1)
    assert again.formed(memory=8 * 9 * 9) is again  # three of them do not fit
    wide = bs.Covariance.from_data(TARGET[:5])
    half = bs.contrastive(tall[0], wide, 0.7).formed()
    assert not half.in_memory
    assert half.dominance.matrix.in_memory


@pytest.mark.parametrize("form", FORMS)
def test_shared_sets_of_a_contrast(form: str) -> None:
    """The sum of two eigenvalues of a set is at most that of the target."""
    make = FORMS[form]
    for weight in (0.7, 1e5):
        cov = bs.contrastive(make(TARGET), make(BACKGROUND), weight)
        A = cov.submatrix(slice(None))
        sets = [list(s) for s in itertools.combinations(range(9), 4)]
        sums = [np.linalg.eigvalsh(A[np.ix_(s, s)])[-2:].sum() for s in sets]
        known = closed_forms(cov, 4, 2, Deadline(None))
        assert known["target"] >= max(sums)
        of_target = closed_forms(cov.dominance.matrix, 4, 2, Deadline(None))
        assert known["target"] == pytest.approx(min(of_target.values()), rel=1e-6)
        found = bs.solve_shared(cov, 4, 2)
        assert found.objective == pytest.approx(max(sums))
        assert found.verify(cov).complete


def test_a_path_of_weights() -> None:
    path = bs.contrastive_path(np.cov(TARGET.T), np.cov(BACKGROUND.T), 3)
    values = [result.objective for result in path.values()]
    assert list(path) == sorted(path)
    assert (np.diff(values) <= 1e-9).all()  # the background takes away, more and more


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="pass two of the same features"):
        bs.contrastive(np.eye(3), np.eye(4))
    a = bs.Covariance.from_matrix(np.eye(2), feature_names=["a", "b"])
    b = bs.Covariance.from_matrix(np.eye(2), feature_names=["b", "a"])
    with pytest.raises(ValueError, match="feature 0 is 'a' in cov_target and 'b'"):
        bs.contrastive(a, b)
    with pytest.raises(ValueError, match="weight"):
        bs.contrastive(a, a, -1)
    for form in FORMS.values():
        with pytest.raises(ValueError, match=r"weight = 1e\+308 is too large"):
            bs.contrastive(form(TARGET), form(TARGET), 1e308)
