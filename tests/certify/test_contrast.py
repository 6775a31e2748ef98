"""The optimum of the target as a bound of a contrast."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import zoo
from blockspca.bound_names import BoundName
from blockspca.bounds.closed_form import above_target
from blockspca.bounds.entry_dual.pairs import seconds_of_pass
from blockspca.certificate import Certificate
from blockspca.certify import results
from blockspca.certify.contrast import Contrast
from blockspca.certify.provers import ProofOptions
from blockspca.components.rewrite import renumbered
from blockspca.covariance.derived import masked, restricted
from blockspca.progress import Event, silent
from blockspca.proof_settings import DEFAULT_SETTINGS, ProofSettings

rng = np.random.default_rng(3)
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "matrix": lambda X: np.cov(X.T),
    "dense": bs.Covariance.from_data,
    "sparse": lambda X: bs.Covariance.from_data(sp.csr_array(X)),
    "scaled": partial(bs.Covariance.from_data, scale=True),
    "scaled sparse": lambda X: bs.Covariance.from_data(sp.csr_array(X), scale=True),
    "correlations": lambda X: np.corrcoef(X.T),
    "chunks": lambda X: bs.Covariance.from_chunks([X[:4], X[4:]]),
    "formed": lambda X: bs.Covariance.from_data(np.vstack([X, 2 * X])).formed(),
}
ALONE = ProofOptions(n_jobs=1)
of_target = results.certified_results


def given_up(cov, ks, limits, incumbents, options):
    """A prover that has no time at all."""
    at_once = replace(limits, time=0.0)
    return results.own_results(cov, ks, at_once, incumbents, options)


def bounded(cov: bs.Covariance, k: int, tell: Any = silent, **limits: Any) -> bs.Result:
    """What the target says of a contrast that nothing was proved of."""
    contrast = Contrast(cov, bs.Limits(**limits), replace(ALONE, callback=tell))
    return contrast.solve(range(k, k + 1), {}, given_up, of_target)[k]


def best(A: np.ndarray, k: int) -> float:
    sets = map(list, itertools.combinations(range(len(A)), k))
    return max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets)


def data(n: int, d: int = 9, zeros: float = 0.3) -> np.ndarray:
    """Fewer samples than features: with more, `verify` forms A and rounds otherwise."""
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + rng.normal(size=(n, d))
    return X * (rng.random((n, d)) > zeros)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weight", [0.0, 1e-9, 0.4, 3.0, 1e7])
def test_the_bound_against_all_sets(form: str, weight: float) -> None:
    make, lowered = FORMS[form], 0
    for _ in range(3):
        target, background = make(data(8)), make(data(7))
        cov = bs.contrastive(target, background, weight)
        A = cov.submatrix(slice(None))
        T = bs.contrastive(target, target, 0.0).submatrix(slice(None))
        for k in (2, 4, 9):
            result = bounded(cov, k)
            rounding = 4 * k * cov.entry_error + 1e-13 * np.abs(A).max()
            assert result.upper_bound >= best(A, k) - rounding
            # no further up than the target's optimum, and what a background in floats
            # may lack of semidefinite
            room = 1e-12 * weight * 9 + 1e-9 * best(T, k)
            assert result.upper_bound <= max(best(T, k) + room, result.objective)
            check = bs.verify(result, cov)
            assert check.complete
            assert check.upper_bound <= result.upper_bound
            lowered += result.bound_name == BoundName.TARGET
            again = Certificate.from_json(result.certificate.to_json())
            assert again == result.certificate
            assert bs.verify(again, cov).complete
    assert lowered > 0 or cov.in_memory  # λmax of those is known at once


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_contrasts_of_the_zoo(first: int) -> None:
    """Matrices and data of all kinds and sizes, judged by all sets in long doubles."""
    drawn = np.random.default_rng(first)
    for seed in range(first, first + 20):
        problems = zoo.problem(seed, 3, 8), zoo.problem(seed + 10**6, 3, 8)
        d = min(problem.d for problem in problems)
        both = [restricted(problem.cov, np.arange(d)) for problem in problems]
        target, background = (p.exact[:d, :d].astype(np.longdouble) for p in problems)
        weight = float(np.abs(target).max() / (np.abs(background).max() or 1.0))
        weight *= float(drawn.choice([1e-6, 0.3, 1.0, 3.0, 1e4]))
        k = int(drawn.integers(1, d + 1))
        cov = bs.contrastive(*both, weight)
        A = target - np.longdouble(weight) * background
        most = zoo_best(A, k)
        for result in (bounded(cov, k), bs.solve(cov, k)):
            assert result.upper_bound >= most - 1e-14 * abs(most)
            assert bs.verify(result, cov).complete


def zoo_best(A: np.ndarray, k: int) -> float:
    """The optimum from below: x'Ax of every set's eigenvector, in long doubles."""
    most = -np.inf
    for s in itertools.combinations(range(len(A)), k):
        within = A[np.ix_(s, s)]
        scale = np.abs(within).max() or 1.0
        x = np.linalg.eigh((within / scale).astype(float))[1][:, -1]
        x = x.astype(np.longdouble)
        most = max(most, float(x @ within @ x / (x @ x)))
    return most


def is_at_least_the_optimum_of_two(bound: float, A: Any) -> bool:
    """Whether λmax of every pair is at most the bound, in rational numbers."""
    u = Fraction(bound)
    for i, j in itertools.combinations(range(len(A)), 2):
        a, c, b = u - A[i][i], u - A[j][j], A[i][j]
        if a < 0 or c < 0 or a * c < b * b:
            return False
    return True


@pytest.mark.parametrize("kind", ["semidefinite", "singular", "indefinite"])
def test_in_rational_numbers(kind: str) -> None:
    """Bounds that are only just true: the background adds nothing, or takes nothing.

    Matrices that are given are exact, and so is their contrast, in rational numbers.
    """
    used = 0
    for trial in range(60):
        d = 5
        T = rng.normal(size=(d, d))
        T = (T + T.T) * 10.0 ** rng.integers(-3, 4)
        size = d if kind == "semidefinite" else 2
        F = rng.normal(size=(size, d)) * 10.0 ** rng.integers(-8, 9)
        F[:, trial % d] = 0.0  # there the contrast is the target
        B = F.T @ F
        B = (B + B.T) / 2
        if kind == "indefinite":
            B -= np.diag(rng.random(d)) * np.abs(B).max()
        weight = float(rng.choice([1e-12, 0.3, 1.0, 1e9]) * rng.random())
        cov = bs.contrastive(T, B, weight)
        result = bounded(cov, 2)
        exact = [
            [Fraction(T[i, j]) - Fraction(weight) * Fraction(B[i, j]) for j in range(d)]
            for i in range(d)
        ]
        assert is_at_least_the_optimum_of_two(result.upper_bound, exact)
        excess = cov.dominance.excess
        # A_b + βI is positive semidefinite: its Cholesky factor exists, exactly
        assert _is_semidefinite(B, Fraction(excess) / Fraction(weight))
        used += result.bound_name == BoundName.TARGET
        assert bs.verify(result, cov).upper_bound <= result.upper_bound
    assert used > 0


def _is_semidefinite(B: np.ndarray, shift: Fraction) -> bool:
    """By elimination in rational numbers."""
    d = len(B)
    M = [
        [Fraction(B[i, j]) + (shift if i == j else 0) for j in range(d)]
        for i in range(d)
    ]
    for i in range(d):
        if M[i][i] < 0 or (M[i][i] == 0 and any(M[i][j] for j in range(i, d))):
            return False
        for r in range(i + 1, d):
            if M[i][i] == 0:
                continue
            factor = M[r][i] / M[i][i]
            for c in range(i, d):
                M[r][c] -= factor * M[i][c]
    return True


def test_an_indefinite_background_costs_what_it_may_add() -> None:
    target, background = np.diag([1.0, 0.5, 0.25, 0.1]), np.diag([0.0, 0.0, 0.0, -5.0])
    cov = bs.contrastive(target, background, 2.0)
    assert 10.0 <= cov.dominance.excess <= 10.0 + 1e-9
    assert above_target(1.0, cov.dominance) >= 11.0 >= bs.solve(cov, 1).objective
    assert bs.solve(cov, 1).objective == pytest.approx(10.1)
    assert bs.contrastive(target, background, 0.0).dominance.excess == 0.0


def test_what_is_forged_is_refused() -> None:
    target, background = (
        bs.Covariance.from_data(data(8)),
        bs.Covariance.from_data(data(6)),
    )
    cov = bs.contrastive(target, background, 3.0)
    certificate = bounded(cov, 4).certificate
    (step,) = certificate.steps
    assert step.target is not None
    lower = step.upper_bound * (1 - 1e-6)

    def forged(**changes: Any) -> Certificate:
        claim = replace(step, **changes)
        return replace(certificate, steps=(claim,), upper_bound=claim.upper_bound)

    steps = step.target.steps
    cases = [
        forged(upper_bound=lower),
        forged(
            upper_bound=lower,
            target=replace(
                step.target, steps=(*steps[:-1], replace(steps[-1], upper_bound=lower))
            ),
        ),
        forged(target=replace(step.target, steps=())),
        forged(target=replace(step.target, steps=steps[:-1])),
        forged(target=replace(step.target, support=())),
        forged(
            target=replace(
                step.target, steps=(replace(steps[-1], bound_name=BoundName.NONE),)
            )
        ),
    ]
    for case in cases:
        with pytest.raises(bs.VerificationError):
            bs.verify(case, cov)
    for other in (
        target,
        bs.contrastive(bs.Covariance.from_data(3 * data(8)), background),
    ):
        with pytest.raises((bs.VerificationError, ValueError)):
            bs.verify(replace(certificate, objective=0.0), other)
    content = json.loads(certificate.to_json())
    (said,) = content["steps"]
    for _ in range(30):
        said["target"] = {"support": [0], "steps": [dict(said)]}
    with pytest.raises(ValueError, match="without end"):
        Certificate.from_json(json.dumps(content))


def test_under_constraints_and_on_a_path() -> None:
    """Without some features the target is without them, too."""
    X, Y = data(20, 30, 0.0), data(15, 30, 0.0)
    target, background = bs.Covariance.from_data(X), bs.Covariance.from_data(Y)
    cov = bs.contrastive(target, background, 2.0)
    keep = np.setdiff1d(np.arange(30), [0, 4])
    part = restricted(cov, keep)
    np.testing.assert_array_equal(
        part.dominance.matrix.submatrix(slice(None)), target.submatrix(keep)
    )
    settings = ProofSettings(target_share=1.0)  # nothing is left for the contrast
    for constraints in (
        bs.Constraints(exclude=[0, 4]),
        bs.Constraints(groups=np.arange(30) // 3, max_per_group=1),
    ):
        path = bs.solve_path(cov, 4, constraints=constraints)
        for result in path.values():
            assert bs.verify(result, cov).complete
    assert settings.beside_target(bs.Limits(time=4.0, nodes=10)).time == 0.0


def test_groups_hold_for_the_target() -> None:
    target, background = (
        bs.Covariance.from_data(data(8)),
        bs.Covariance.from_data(data(6)),
    )
    cov = bs.contrastive(target, background, 5.0)
    rules = bs.Constraints(groups=[0, 0, 0, 1, 1, 1, 2, 2, 2], max_per_group=1)
    result = bs.solve(cov, 3, constraints=rules)
    sets = list(itertools.product((0, 1, 2), (3, 4, 5), (6, 7, 8)))
    A = cov.submatrix(slice(None))
    most = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets)
    assert result.objective == pytest.approx(most)
    assert bs.verify(result, cov).complete


def test_the_share_of_the_target() -> None:
    settings = ProofSettings(target_share=0.25)
    own = settings.beside_target(bs.Limits(time=8.0, nodes=100, gap=0.1))
    assert (own.time, own.nodes, own.gap) == (6.0, 75, 0.1)
    assert settings.beside_target(bs.Limits()) == bs.Limits()
    left = settings.of_target(bs.Limits(time=2.0, gap=0.1))
    assert (left.time, left.gap) == (2.0, None)
    assert settings.of_target(bs.Limits()).time == settings.target_seconds
    assert settings.of_target(bs.Limits(nodes=5)).time is None


def test_no_time_is_spent_where_it_cannot_help() -> None:
    """Proved, or with features that reach more of the target than the bound."""
    A = np.cov(data(8).T)
    cov = bs.contrastive(A, A, 0.5)  # half of the target: its own bound is less
    asked = []

    def counted(*args: Any) -> Any:
        asked.append(args)
        return of_target(*args)

    contrast = Contrast(cov, bs.Limits(), ALONE)
    proved = contrast.solve(range(3, 4), {}, results.own_results, counted)[3]
    assert proved.status is bs.Status.OPTIMAL
    assert asked == []
    Contrast(cov, bs.Limits(time=0.0), ALONE).solve(range(3, 4), {}, given_up, counted)
    assert asked == []


def test_events_and_interrupts() -> None:
    cov = bs.contrastive(
        bs.Covariance.from_data(data(8)), bs.Covariance.from_data(data(6)), 4.0
    )
    heard: list[Event] = []
    result = bounded(cov, 4, heard.append)
    assert result.bound_name == BoundName.TARGET
    settled = [event for event in heard if event.status is not None]
    assert [event.k for event in settled] == [4]

    def on_the_way(*args: Any) -> Any:
        late = Event("proof", 2, 4, 2, 1.0, 2.0, status=bs.Status.TIME_LIMIT)
        args[-1].callback(late)
        return given_up(*args)

    told: list[Event] = []
    contrast = Contrast(cov, bs.Limits(), replace(ALONE, callback=told.append))
    contrast.solve(range(4, 5), {}, on_the_way, of_target)
    assert [(e.k, e.upper_bound) for e in told if e.status is not None] == [
        (2, 2.0),
        (4, result.upper_bound),
    ]
    assert settled[0].upper_bound == result.upper_bound
    assert settled[0].status is result.status

    def stopped(*args: Any) -> Any:
        raise KeyboardInterrupt

    contrast = Contrast(cov, bs.Limits(), ALONE)
    result = contrast.solve(range(4, 5), {}, given_up, stopped)[4]
    assert result.status is bs.Status.INTERRUPTED
    assert result.certificate.status is bs.Status.INTERRUPTED
    bs.verify(result, cov)


def test_the_target_comes_first_where_the_contrast_is_long_to_read() -> None:
    cov = bs.contrastive(
        bs.Covariance.from_data(data(8)), bs.Covariance.from_data(data(6)), 4.0
    )
    order: list[tuple[str, float | None]] = []

    def noted(name: str, walk: Any) -> Any:
        def call(*args: Any) -> Any:
            order.append((name, args[2].time))
            return walk(*args)

        return call

    def solve(settings: ProofSettings, target: Any, **limits: Any) -> bs.Result:
        order.clear()
        contrast = Contrast(cov, bs.Limits(**limits), replace(ALONE, settings=settings))
        own = noted("own", given_up)
        return contrast.solve(range(4, 5), {}, own, noted("target", target))[4]

    first = ProofSettings(target_first_from=0.0)
    result = solve(first, of_target, time=60.0)
    assert [name for name, _ in order] == ["target", "own"]
    assert order[0][1] == 12.0
    assert result.bound_name == BoundName.TARGET
    assert bs.verify(result, cov).complete
    solve(first, of_target)  # no time to share out
    assert [name for name, _ in order] == ["own", "target"]
    solve(DEFAULT_SETTINGS, of_target, time=60.0)  # nine features are read at once
    assert [name for name, _ in order] == ["own", "target"]

    def stopped(*args: Any) -> Any:
        raise KeyboardInterrupt

    result = solve(first, stopped, time=60.0)
    assert order[1] == ("own", 0.0)
    assert result.status is bs.Status.INTERRUPTED
    bs.verify(result, cov)


def test_a_contrast_of_a_contrast() -> None:
    first = bs.contrastive(
        bs.Covariance.from_data(data(8)), bs.Covariance.from_data(data(6)), 1.0
    )
    cov = bs.contrastive(first, bs.Covariance.from_data(data(5)), 2.0)
    A = cov.submatrix(slice(None))
    result = bounded(cov, 3)
    assert result.upper_bound >= best(A, 3) * (1 - 1e-12)
    assert bs.verify(result, cov).complete


def test_components_of_a_contrast() -> None:
    cov = bs.contrastive(
        bs.Covariance.from_data(data(10, 12)), bs.Covariance.from_data(data(8, 12)), 1.5
    )
    for scheme in (bs.DisjointSupports(), bs.ProjectionDeflation()):
        found = bs.solve_components(cov, 3, 2, scheme=scheme)
        assert all(check.complete for check in found.verify(cov))


def test_a_claim_of_the_target_without_features_that_are_used() -> None:
    """Numbers of features change with it, and `verify` finds the target again."""
    cov = bs.contrastive(
        bs.Covariance.from_data(data(10, 12)), bs.Covariance.from_data(data(8, 12)), 3.0
    )
    used = np.array([0, 3, 7])
    keep = np.setdiff1d(np.arange(12), used)
    part = bounded(restricted(cov, keep), 3)
    assert part.bound_name == BoundName.TARGET
    lifted = renumbered(part, keep, None, 12)
    problem = masked(cov, used)
    assert bs.verify(lifted, problem).complete
    (step,) = lifted.certificate.steps
    assert step.features() <= set(keep.tolist())
    lower = replace(step, upper_bound=step.upper_bound * (1 - 1e-6))
    forged = replace(lifted.certificate, steps=(lower,), upper_bound=lower.upper_bound)
    with pytest.raises(bs.VerificationError, match="target"):
        bs.verify(forged, problem)


def test_a_pass_over_a_contrast_costs_one_over_either() -> None:
    """Entries are computed from few samples: the entry dual can afford them."""
    target, background = (
        bs.Covariance.from_data(data(8)),
        bs.Covariance.from_data(data(6)),
    )
    cov = bs.contrastive(target, background, 1.0)
    both = seconds_of_pass(target) + seconds_of_pass(background)
    assert seconds_of_pass(cov) == both
    assert seconds_of_pass(restricted(cov, np.arange(5))) == both
