"""Searches under limits of groups, and those that list sets, number by number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.certify.chain import Chain
from blockspca.certify.path import certified_path
from blockspca.certify.provers import ProofOptions
from blockspca.certify.screening import limited_lists
from blockspca.certify.steps import TreeStatistics
from blockspca.constraint_rules import GroupLimits
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Budget, Limits
from blockspca.numerics.rounding import increased as plain_increased
from blockspca.proof_settings import ProofSettings
from blockspca.search import reference as plain_proof
from blockspca.search.portfolio import Portfolio
from blockspca.search.schur_tree import ProofTree
from golden import (
    Groups,
    Numbers,
    assert_as_written,
    by_k,
    data,
    enlarged,
    listed,
    matrices,
)


def labelled(d: int) -> Iterator[tuple[str, GroupLimits]]:
    """Two groups with little room and features that are free; one group in pairs."""
    some = np.array([0, 0, 0, 1, 1, -1, 1, -1, 0])[:d]
    for rooms in ((1, 2), (2, 1), (3, 3)):
        yield f"rooms {rooms}", GroupLimits(some, np.array(rooms))
    yield "pairs", GroupLimits(np.arange(d) // 2, np.ones((d + 1) // 2, dtype=int))


def best_values(A: np.ndarray, groups: GroupLimits) -> dict[int, float]:
    """The best value of each k over the sets that keep the limits."""
    best: dict[int, float] = {}
    for k in range(1, groups.capacity + 1):
        values = [
            float(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1])
            for support in map(np.array, combinations(range(len(A)), k))
            if groups.allows(support)
        ]
        best[k] = max(values)
    return best


def problems() -> Iterator[tuple[str, np.ndarray, GroupLimits, int, float, np.ndarray]]:
    """Yield a name, A, limits, k, opt(k), and upper for smaller k."""
    for name, A in matrices():
        for which, groups in labelled(len(A)):
            best = best_values(A, groups)
            for k in range(2, len(best) + 1):
                upper = np.full(k + 1, np.inf)
                for q in range(1, k):
                    upper[q] = best[q] + 1e-9 * abs(best[q])
                yield f"{name} {which} {k}", A, groups, k, best[k], upper


def above(value: float, share: float) -> float:
    return value + share * abs(value)


def trees() -> Numbers:
    """With the limits: nodes, what ended the search, and all the sets above τ."""
    found: Numbers = {}
    for key, A, groups, k, best, upper in problems():
        for share in (1e-7, -0.02):
            tau = max(above(best, share), float(upper[k - 1]))
            tree = ProofTree(A, k, tau, upper, 10**6, groups)
            code = tree.advance(10**6)
            found[f"{key} {share}"] = [code, listed(tree.state), listed(tree.found)]
        tau = max(above(best, -0.1), float(upper[k - 1]))
        for most in (3, 500):
            tree = ProofTree(A, k, tau, upper, 10**6, groups, lists=most)
            code = tree.advance(10**6)
            said = sorted(listed(row) for row in tree.listed)
            found[f"{key} lists {most}"] = [code, listed(tree.state), said]
    for name, A in matrices():
        for k, tau, upper in by_k(A, -0.05):
            level = max(tau, float(upper[k - 1]))
            tree = ProofTree(A, k, level, upper, 10**6, lists=500)
            code = tree.advance(10**6)
            said = sorted(listed(row) for row in tree.listed)
            found[f"{name} {k} lists"] = [code, listed(tree.state), said]
    return found


def plain() -> Numbers:
    """The search that `verify` repeats, above the optimum and below it."""
    found: Numbers = {}
    for key, A, groups, k, best, upper in problems():
        for first in (2, 99):
            for share in (1e-7, 1e-4, -0.02):
                with patch.object(plain_proof, "SPECTRAL_FROM", first):
                    try:
                        said: Any = plain_proof.prove_none_above(
                            A, k, above(best, share), upper[:k], 10**5, None, groups
                        )
                    except (plain_proof.Refuted, plain_proof.Undecided) as ended:
                        said = type(ended).__name__
                found[f"{key} {first} {share}"] = said
    return found


def wide() -> Numbers:
    """With an eps so large that sums of gains are raised visibly."""
    found: Numbers = {}
    for key, A, groups, k, best, upper in problems():
        for share in (0.1, 0.3, 0.6):
            try:
                said: Any = plain_proof.prove_none_above(
                    A, k, above(best, share), upper[:k], 10**5, None, groups
                )
            except (plain_proof.Refuted, plain_proof.Undecided) as ended:
                said = type(ended).__name__
            found[f"{key} {share}"] = said
    return found


def raised_sums() -> Numbers:
    """Sums of gains that the plain search compares with τ, raised for rounding."""
    found: Numbers = {}
    for name, A in matrices():
        for k, tau, upper in by_k(A, 0.02):
            said: list[float] = []

            def increased(value: Any, said: list[float] = said) -> Any:
                if np.ndim(value) == 0:
                    said.append(float(value))
                return plain_increased(value)

            with (
                patch.object(plain_proof, "increased", increased),
                patch.object(plain_proof, "SPECTRAL_FROM", 99),
            ):
                plain_proof.prove_none_above(A, k, tau, upper[:k], 10**4)
            found[f"{name} {k}"] = said
    return found


def turns() -> Numbers:
    """Trees after features were fixed by eigenvectors, from the first node on."""
    found: Numbers = {}
    for key, A, groups, k, best, upper in problems():
        for share in (1e-7, -0.02):
            tau = max(above(best, share), float(upper[k - 1]))
            statistics, budget = TreeStatistics(), Budget(Limits())
            settings = ProofSettings(
                first_nodes=10**4, probe_nodes=0, spectral_from=2, spectral_first=2
            )
            proof = Portfolio(k, upper, statistics, budget, 1, lambda _: None, settings)
            said = proof.search(A, tau, None, groups)
            assert said.exhausted == (tau >= best)
            found[f"{key} {share}"] = [
                said.exhausted,
                listed(said.counterexample),
                list(vars(statistics).values()),
            ]
    return found


def allowances() -> Numbers:
    """What the chain sets aside for errors of entries and for underflow."""
    found: Numbers = {}
    known_to = PropertyMock(return_value=0.01)
    for name, A in (*matrices(), ("diagonal", np.diag([3.0, 2.0, 1.0]))):
        cov = Covariance.from_matrix(A)
        with patch.object(Covariance, "entry_error", known_to):
            candidates = AdaptiveScreening(cov, 3, lambda: None)
            chain = Chain(cov, candidates, [-np.inf, 1.0, 1.5, 2.0])
            chain.is_psd = False
            chain.upper[1:3] = [1.0, 1.5]
            chain.bound_by_smaller_k(3)
            found[name] = [float(chain.upper[3]), candidates.unit]
        exact = Chain(cov, candidates, [-np.inf, 1.0])
        found[f"{name} underflow"] = exact.input_allowance(2) > 0
    return found


def paths() -> Numbers:
    """Survivors, nodes and bounds of every k under limits."""
    found: Numbers = {}
    given = [(name, Covariance.from_matrix(A)) for name, A in matrices()]
    given += [(f"data {len(X)}", Covariance.from_data(X)) for X in data()]
    for name, cov in given:
        for which, groups in labelled(cov.n_features):
            steps = certified_path(
                cov, min(5, groups.capacity), options=ProofOptions(groups=groups)
            )
            found[f"{name} {which}"] = [
                [
                    listed(step.support),
                    listed(step.survivors),
                    list(vars(step.statistics).values()),
                    float(step.upper_bound),
                    float(step.upper_bound - step.tau),
                ]
                for step in steps.values()
            ]
    return found


def lists() -> Numbers:
    """What is left of a list of largest entries, short or of all the others."""
    found: Numbers = {}
    for name, A in matrices():
        d = len(A)
        sizes = np.abs(A)
        np.fill_diagonal(sizes, -1.0)
        order = np.argsort(-sizes, axis=1, kind="stable")
        for width in (0, 2, 4, d - 1):
            indices = order[:, :width].copy()
            values = np.take_along_axis(sizes, indices, axis=1)
            if width > 2:  # a list that ends before its room does
                indices[0, -1], values[0, -1] = -1, 0.0
            for which, groups in labelled(d):
                for rows in (np.arange(d), np.arange(0, d, 2)):
                    after = limited_lists(values[rows], indices[rows], groups, rows)
                    found[f"{name} {width} {which} {len(rows)}"] = [
                        [float(value) for value in after[0].ravel()],
                        listed(after[1].ravel()),
                    ]
    return found


GROUPS: Groups = {
    "trees": trees,
    "plain": plain,
    "paths": paths,
    "lists": lists,
    "raised sums": enlarged(raised_sums, 1e-5),
    "turns": turns,
    "allowances": allowances,
    "plain, wide": enlarged(wide, 3e-3),
    "plain, large eps": enlarged(plain, 1e-5),
}


def test_lists() -> None:
    assert_as_written(__file__, GROUPS, "lists")


def test_trees() -> None:
    assert_as_written(__file__, GROUPS, "trees")


def test_raised_sums() -> None:
    assert_as_written(__file__, GROUPS, "raised sums")


def test_turns() -> None:
    assert_as_written(__file__, GROUPS, "turns")


def test_allowances() -> None:
    assert_as_written(__file__, GROUPS, "allowances")


def test_plain_with_a_very_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "plain, wide")


def test_plain() -> None:
    assert_as_written(__file__, GROUPS, "plain")


def test_paths() -> None:
    assert_as_written(__file__, GROUPS, "paths")


def test_plain_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "plain, large eps")
