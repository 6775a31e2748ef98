"""Provers at τ within ulps of an optimum that is known without rounding.

Each prover drops features and nodes by inequalities of its own, and what it drops is
proved by that inequality alone: rounding may cost an allowance in τ, never a set that
is above τ by more. (`test_averaging.py` has the one that is different: there a set is
left to its parent, and whether the parent is visited is another test.)
"""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca import Covariance
from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.search.parts import connected_parts
from blockspca.search.reference import Refuted, Undecided, prove_none_above
from blockspca.search.schur_tree import ProofTree, extent, rounding_allowance
from blockspca.search.spectral import spectral_fixing
from blockspca.solvers import BranchAndBound, Limits

FINISHED, FOUND = 0, 1


def integer_blocks(seed: int) -> tuple[np.ndarray, list[float]]:
    """A = vv' on blocks of small integers, and opt(1), opt(2), …: sums of squares."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, size=3)
    v = rng.integers(1, 6, size=sizes.sum()) * rng.choice([-1, 1], size=sizes.sum())
    block_of = np.repeat(np.arange(3), sizes)
    A = np.outer(v, v) * (block_of[:, None] == block_of) * 1.0
    squares = [np.sort(v[block_of == b] ** 2)[::-1] for b in range(3)]
    optima = [float(max(s[:k].sum() for s in squares)) for k in range(1, 7)]
    order = rng.permutation(len(A))
    return np.ascontiguousarray(A[np.ix_(order, order)]), optima


def around(value: float, reach: int = 4) -> list[float]:
    """The floating-point numbers next to a value, and some that are less near."""
    ulp = float(np.spacing(value))
    near = [value + i * ulp for i in range(-reach, reach + 1)]
    return [*near, value * (1 - 1e-12), value * (1 + 1e-12)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(30))
def test_trees_finish_only_above_the_optimum(seed: int) -> None:
    A, optima = integer_blocks(seed)
    for k in range(2, 7):
        optimum, previous = optima[k - 1], optima[k - 2]
        allowance = rounding_allowance(k, optimum, *extent(A))
        upper = np.array([-np.inf, *optima[: k - 1], np.inf])
        for tau in {*around(optimum), *around(previous), optimum - 2 * allowance}:
            if tau < previous:  # the chain says nothing there
                continue
            code = ProofTree(A, k, tau, upper, 10**6).advance(10**6)
            assert code in (FINISHED, FOUND)
            if code == FINISHED:
                assert optimum <= tau + allowance
            else:
                assert optimum > tau - allowance
            try:
                prove_none_above(A, k, tau, upper[:-1], 10**6)
            except (Refuted, Undecided):
                assert optimum > tau - allowance
            else:
                assert optimum <= tau + allowance


@pytest.mark.filterwarnings("error")
def test_plain_proof_with_a_feature_of_variance_tau_and_no_chain() -> None:
    A = np.full((4, 4), 0.6)
    A[0] = A[:, 0] = 0.0
    A[np.arange(4), np.arange(4)] = 1.0, 0.1, 0.1, 0.1  # features 1, 2, 3 reach 1.3
    unknown = np.array([-np.inf, 1.0, np.inf, np.inf])
    with pytest.raises((Refuted, Undecided)):
        prove_none_above(A, 4, 1.0, unknown, 10**6)
    assert prove_none_above(A, 4, 1.3 + 1e-9, unknown, 10**6) > 0
    A[0, 1] = A[1, 0] = 1e-4
    with pytest.raises((Refuted, Undecided)):
        prove_none_above(A, 2, 1.0, unknown[:2], 10**6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(30))
def test_screening_and_eigenvectors_keep_the_best_set(seed: int) -> None:
    A, optima = integer_blocks(seed)
    candidates = AdaptiveScreening(Covariance.from_matrix(A), 6, lambda: None)
    for k in range(2, 7):
        optimum, previous = optima[k - 1], optima[k - 2]
        if optimum == previous:  # there is no k-set above all smaller ones
            continue
        best = bs.solve(A, k).support
        assert len(best) == k
        for tau in (np.nextafter(optimum, 0), optimum * (1 - 1e-12), previous):
            scaled = [value / candidates.unit for value in (tau, previous)]
            kept = candidates.survivors(k, *scaled)
            assert set(best) <= set(kept.tolist())
            for p in (1, 2, 3):
                fixing = spectral_fixing(A, k, float(tau), p)
                assert set(best) <= set(fixing.candidates.tolist())
                assert len(fixing.fixed_in) <= k


@pytest.mark.parametrize("half", [2, 4])
def test_parts_keep_a_set_together_as_long_as_it_is_above(half: int) -> None:
    # Two blocks of ones, joined by 1/8 throughout: half and half · 9/8 are exact.
    d, k = 4 * 2 * half + 60, 2 * half
    A = np.zeros((d, d))
    A[:k, :k] = 0.125
    A[:half, :half] = A[half:k, half:k] = 1.0
    together = half * 1.125
    for tau in around(together, 20):
        parts = connected_parts(A, k, tau, float(half))
        if tau < together:
            assert [part.tolist() for part in parts] == [list(range(k))]
        if tau > together * (1 + 1e-11):
            assert parts == []


@pytest.mark.parametrize("seed", range(8))
def test_solvers_prove_what_is_so(seed: int) -> None:
    A, optima = integer_blocks(seed)
    path = bs.solve_path(A, 6)
    for k, optimum in enumerate(optima, start=1):
        assert path[k].status is bs.Status.OPTIMAL
        assert path[k].objective == pytest.approx(optimum, rel=1e-12)
        assert path[k].upper_bound >= optimum
        solution = BranchAndBound().solve(A, k, limits=Limits())
        assert solution.status is bs.Status.OPTIMAL
        assert optimum <= solution.upper_bound <= optimum * (1 + 1e-9)
