"""Every prover against brute force on a few problems of each kind, and within ulps.

Plain functions without fixtures: `benchmarks/mutation.py` runs them on mutants, with
kernels as Python, so that they are to take a second or two in all.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

import judge
import zoo
from blockspca.certify import path as path_module
from blockspca.certify.screening import Screening
from blockspca.covariance.covariance import Covariance
from blockspca.search.parts import connected_parts

FAMILIES = [name for name in zoo.FAMILIES if name != "threshold_chain"]
# Where the optimum is no difference of larger numbers
PLAIN = ["gaussian", "correlation", "low_rank", "indefinite", "integer", "blocks"]


def assert_nothing_wrong(
    judges: dict[judge.Judge, int],
    changes: list,
    seeds: int = 1,
    families: list[str] = FAMILIES,
) -> None:
    """Assert that nothing is wrong on one small problem of each family and change."""
    for which, name in enumerate(families):
        for change in changes:
            for seed in range(seeds):
                rng = np.random.default_rng([which, seed])
                A = change(zoo.FAMILIES[name](int(rng.integers(4, 7)), rng), rng)
                problem = zoo.from_matrix((A + A.T) / 2, name)
                wrong = judge.judge(problem, seed, judges)
                assert wrong == [], (name, change.__name__, seed, wrong)


def test_searches() -> None:
    judges = {judge.refutations: 1, judge.trees: 1, judge.plain_searches: 1}
    assert_nothing_wrong(judges, [zoo.as_it_is, zoo.within_ulps])
    assert_nothing_wrong(
        {judge.trees: 1}, [zoo.as_it_is], 8, ["blocks", "spiked", "sparse"]
    )


def test_what_is_dropped() -> None:
    judges = {judge.screenings: 1, judge.parts: 1, judge.spectral: 1}
    assert_nothing_wrong(judges, [zoo.as_it_is, zoo.within_ulps])


def test_formulas() -> None:
    assert_nothing_wrong(
        {judge.closed_forms: 1}, [zoo.as_it_is, zoo.within_ulps, zoo.scaled]
    )


def test_bounds_of_paths() -> None:
    judges = {judge.path_by_every_argument: 1, judge.path_within_limits: 1}
    assert_nothing_wrong(judges, [zoo.within_ulps], families=PLAIN)


def test_a_pair_that_is_above_by_less_than_an_ulp_is_connected() -> None:
    """λ = u + e > τ exactly, where τ − u rounds up to e."""
    rng = np.random.default_rng(0)
    met = 0
    for _ in range(2000):
        u, tau = -rng.uniform(0, 1), rng.uniform(1, 2)
        e = tau - u
        if Fraction(u) + Fraction(e) > Fraction(tau):
            met += 1
            A = np.array([[u, e], [e, u]])
            assert [len(p) for p in connected_parts(A, 2, tau, u)] == [2], (u, tau)
    assert met > 100


def test_an_unread_feature_that_wins_by_an_ulp_is_read() -> None:
    """Two features that are fully correlated: λ = v + p, and τ is just below."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        p = rng.uniform(1, 2)
        v = rng.uniform(0, 1) * p
        tau = v + p
        while Fraction(tau) >= Fraction(v) + Fraction(p):
            tau = float(np.nextafter(tau, 0.0))
        row = SimpleNamespace(
            diagonal=np.array([p]),
            values=np.zeros((1, 1)),
            indices=np.full((1, 1), -1),
            rounding=0.0,
        )
        seen = Screening(row, 1.0, np.array([0]), np.array([p, v]))
        assert seen.unscanned(2, tau, p) == 1, (v, p)


def test_stopped_before_the_scan() -> None:
    """The variances, the largest entry of each row or λmax bound every k."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6, 7)) * rng.gamma(2.0, size=7)
    indefinite = zoo.indefinite(7, rng) * 3 - np.eye(7)
    data, matrix = Covariance.from_data(X), Covariance.from_matrix(indefinite)
    for cov in (data, matrix):
        error = 0.25 if cov is data else 0.0
        with (
            patch.object(
                path_module, "AdaptiveScreening", side_effect=KeyboardInterrupt
            ),
            patch.object(Covariance, "entry_error", error),
        ):
            steps = path_module.certified_path(cov, 5)
        A = cov.submatrix(slice(None))
        diagonal = np.diagonal(A)
        strongest = np.abs(A - np.diag(diagonal)).max(axis=1)
        for k, step in steps.items():
            known = [float(np.linalg.eigvalsh(A)[-1])]
            if cov is data:
                known.append(np.sort(diagonal)[-k:].sum())
            else:
                known.append((diagonal + (k - 1) * strongest).max())
            upper = (diagonal.max() if k == 1 else min(known)) + k * error
            assert upper <= step.upper_bound <= upper * (1 + 1e-12), k
            assert step.upper_bound >= step.objective
            assert (str(step.status) == "optimal") == (k == 1 and cov is matrix)
    with (
        patch.object(path_module, "AdaptiveScreening", side_effect=KeyboardInterrupt),
        patch.object(Covariance, "in_memory", False),
    ):
        steps = path_module.certified_path(matrix, 3)
    assert [step.upper_bound for step in steps.values()][1:] == [np.inf, np.inf]
