"""Searches, number by number: trees, growth, paths, what is dropped."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import judge
import zoo
from blockspca._kernels import averaging as kernel
from blockspca._kernels import selection
from blockspca.certify import path as path_module
from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.certify.provers import ProofOptions
from blockspca.certify.steps import TreeStatistics
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Budget, Deadline, LimitReached, Limits
from blockspca.progress import Event
from blockspca.proof_settings import ProofSettings
from blockspca.search import averaging as growth
from blockspca.search import reference as plain_proof
from blockspca.search import schur_tree as proof_tree
from blockspca.search import spectral
from blockspca.search.parts import connected_parts
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

LARGE_EPS_OF_GROWTH = 3e-3  # or no count would change
LESS_EPS_OF_GROWTH = 3e-4  # with the first, there is nothing left to include
LARGE_EPS_OF_PATHS = 1e-12  # larger, and nothing would be proved


def step_numbers(step: Any) -> list[Any]:
    return [
        listed(step.support),
        listed(step.survivors),
        list(vars(step.statistics).values()),
        [step.bound_name, str(step.status), step.source],
        float(step.upper_bound),
        float(step.tau),
        float(step.upper_previous),
        float(step.upper_bound - step.tau),
        float(step.tolerance),
    ]


def paths() -> Numbers:
    found: Numbers = {}
    limits = [None, Limits(nodes=3), Limits(gap=0.05), Limits(memory=2500)]
    for name, A in matrices():
        cov = Covariance.from_matrix(A)
        for which, limit in enumerate(limits):
            events: list[Event] = []
            steps = path_module.certified_path(
                cov,
                len(A) - 2,
                limits=limit,
                options=ProofOptions(callback=events.append),
            )
            found[f"{name} {which}"] = [step_numbers(s) for s in steps.values()]
            survivors = [event.survivors for event in events if event.stage == "proof"]
            found[f"{name} {which} events"] = survivors
        for first in (2, 99):
            settings = judge.every_argument(first)
            steps = path_module.certified_path(
                cov, 5, options=ProofOptions(settings=settings)
            )
            found[f"{name} from {first}"] = [step_numbers(s) for s in steps.values()]
    for which, X in enumerate((*data(), by_variance())):
        steps = path_module.certified_path(
            Covariance.from_data(X),
            3,
            options=ProofOptions(settings=judge.every_argument()),
        )
        found[f"data {which}"] = [step_numbers(s) for s in steps.values()]
    return found


def by_variance() -> np.ndarray:
    """Samples of forty features, a part of which will be read."""
    rng = np.random.default_rng(14)
    return rng.standard_normal((8, 40)) * np.exp(rng.normal(0, 0.8, 40))


def coarse() -> Numbers:
    """Bounds that need no proof, and proofs of a wide gap."""
    found: Numbers = {}
    for name, A in matrices():
        cov = Covariance.from_matrix(A)
        for limits in (Limits(nodes=1), Limits(gap=0.4)):
            steps = path_module.certified_path(cov, 5, limits=limits)
            found[f"{name} {limits.gap}"] = [step_numbers(s) for s in steps.values()]
    return found


def resisting() -> Numbers:
    """A k that is not proved in its first turn gets a bound without the chain.

    How often a bound is told again, between slices of a tree, is a matter of the clock.
    """
    found: Numbers = {}
    settings = ProofSettings(
        first_nodes=1,
        probe_nodes=0,
        first_seconds=0.0,
        growth_share=0.0,
        chainless_from_gap=0.0,  # or a round of the tree would do
        chainless_seconds=600.0,  # of a busy machine two may be too few
    )
    for name, A in matrices():
        events: list[list[float]] = []

        def note(event: Event, events: list[list[float]] = events) -> None:
            told = [event.k, float(event.upper_bound)]
            if told not in events[-1:]:
                events.append(told)

        path_module.certified_path(
            Covariance.from_matrix(A),
            5,
            options=ProofOptions(callback=note, settings=settings),
        )
        found[name] = events
    return found


def deep() -> tuple[np.ndarray, np.ndarray]:
    """A matrix whose trees have some fifty nodes, and its chain."""
    A = np.eye(14) + zoo.indefinite(14, np.random.default_rng(2))
    steps = path_module.certified_path(Covariance.from_matrix(A), 6)
    return A, np.array([np.inf, *(s.upper_bound for s in steps.values())])


def turns() -> Numbers:
    """The tree and growth in turns, few nodes at a time, on one thread and on two."""
    found: Numbers = {}
    for name, A in matrices():
        for above in (1e-7, 0.02, -0.03):
            for k, tau, upper in by_k(A, above):
                if k > 1:  # below what k − 1 may reach no proof is asked for
                    tau = max(tau, float(upper[k - 1]))
                for first, n_jobs in ((99, 1), (2, 1), (99, 2)):
                    for many in (-99, 40):
                        statistics = TreeStatistics()
                        budget = Budget(Limits())
                        settings = ProofSettings(
                            first_nodes=2,
                            probe_nodes=1,
                            first_seconds=600.0,
                            spectral_from=first,
                            spectral_first=first,
                            many_survivors=many,
                        )
                        proof = Portfolio(
                            k,
                            upper,
                            statistics,
                            budget,
                            n_jobs,
                            lambda _: None,
                            settings,
                        )
                        proof.screening_failed = True
                        said = [proof.search(A, tau, t) for t in (0, 1, None)]
                        key = f"{name} {above} {k} {first} {n_jobs} {many}"
                        found[key] = [
                            [s.exhausted, listed(s.counterexample), s.argument]
                            for s in said
                        ] + [list(vars(statistics).values()), budget.nodes]
    return found


def limited() -> Numbers:
    """Growth counts its sets as nodes and stops where they end."""
    found: Numbers = {}
    A = dict(matrices())["flat"]
    for nodes in (1, 5, 20, 10**6):
        for k, tau, _ in by_k(A, 0.02):
            statistics, meter = TreeStatistics(), Budget(Limits(nodes=nodes))
            upper = np.full(k + 1, np.inf)
            upper[k - 1] = tau  # no less, as below it nothing may be asked
            settings = ProofSettings(first_nodes=1, probe_nodes=0, first_seconds=600.0)
            proof = Portfolio(k, upper, statistics, meter, 1, lambda _: None, settings)
            proof.screening_failed = True
            with patch.object(growth, "_SLICE", 2):
                try:
                    said = proof.search(A, tau, 1).exhausted
                except LimitReached as reached:
                    said = str(reached.status)
            found[f"{nodes} {k}"] = [said, meter.nodes, statistics.grown]
    return found


def branches() -> Numbers:
    """A search that two threads finish has as many nodes as one alone."""
    found: Numbers = {}
    A, upper = deep()
    advance = ProofTree.advance

    def slowly(tree: ProofTree, nodes: int) -> int:
        time.sleep(0.01)  # so that the threads are asked whether to go on
        return advance(tree, nodes)

    for threads, allowed in ((1, 10**6), (2, 10**6), (2, 0)):
        asked: list[int] = []

        def may_go_on(nodes: int, asked: list[int] = asked, most: int = allowed) -> int:
            asked.append(nodes)
            return 10**6 if len(asked) < 8 else most

        tree = ProofTree(A, 6, upper[6], upper, 10**6)
        statistics = TreeStatistics()
        with (
            patch.multiple(
                proof_tree,
                _SERIAL_NODES=2,
                _FIRST_ENTRIES=1,
                _PARALLEL_SLICE=1,
                _SLICE_SECONDS=1e-3,
            ),
            patch.object(ProofTree, "advance", slowly),
            patch.object(
                proof_tree, "ThreadPoolExecutor", wraps=proof_tree.ThreadPoolExecutor
            ) as pool,
        ):
            said = proof_tree.run_tree(tree, statistics, may_go_on, threads)
        found[f"{threads} {allowed}"] = [said.exhausted, pool.called]
    for serial in (2, 20):
        for factor in (1.0, 0.99):
            tau = factor * upper[6]
            statistics = TreeStatistics()
            tree = ProofTree(A, 6, tau, upper, 10**6)
            with patch.multiple(
                proof_tree,
                _SERIAL_NODES=serial,
                _FIRST_ENTRIES=1,
                _PARALLEL_SLICE=3,
                _SLICE_SECONDS=1e-3,
            ):
                said = proof_tree.run_tree(tree, statistics, lambda _: 10**6, 2)
            members = said.counterexample
            block = A if members is None else A[np.ix_(members, members)]
            above = bool(np.linalg.eigvalsh(block)[-1] > tau)
            nodes = statistics.nodes if said.exhausted else 0
            found[f"{serial} {factor}"] = [said.exhausted, above, nodes]
    tree = ProofTree(A, 6, upper[6], upper, 10**6)
    tree.advance(0)
    found["open"] = tree.open_branches()
    return found


def trees() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        for above in (1e-7, 0.05, -0.05):
            for k, tau, upper in by_k(A, above):
                for memory in (10**6, 200):
                    tree = ProofTree(A, k, tau, upper, memory)
                    codes = [tree.advance(2), tree.advance(10**6)]
                    key = f"{name} {above} {k} {memory}"
                    found[key] = [codes, listed(tree.state), listed(tree.found)]
                    assert len(tree._blocks) <= max(memory, 3 * len(A) ** 2)
                alone = ProofTree(A, k, tau, np.full(k + 1, np.inf), 10**6)
                alone.advance(10**6)
                found[f"{name} {above} {k} alone"] = listed(alone.state)
    # Where trees are deeper
    A, upper = deep()
    for k in (4, 5, 6):
        for factor in (1.0, 1.02):
            tree = ProofTree(A, k, factor * upper[k], upper[: k + 1].copy(), 10**6)
            tree.advance(10**6)
            found[f"deep {k} {factor}"] = listed(tree.state)
    return found


def grown() -> Numbers:
    found: Numbers = {}
    for strong, capacity in ((None, None), (100.0, 1), (100.0, 1000)):
        with ExitStack() as stack:
            if strong is not None:
                stack.enter_context(patch.object(growth, "_STRONG_PAIR", strong))
                stack.enter_context(patch.object(growth, "_CAPACITY", capacity))
            for name, A in matrices():
                for above in (1e-4, 0.2, -0.02):
                    for k, tau, _ in by_k(A, above):
                        said = growth.no_support_above(A, k, tau)
                        found[f"{name} {above} {k} {strong} {capacity}"] = [
                            said.refuted,
                            said.sets,
                            said.inclusions,
                            listed(said.support),
                        ]
    A = dict(matrices())["flat"]
    with patch.object(growth, "_SLICE", 3):
        for limit in (1, 4, 9):
            said = growth.no_support_above(A, 4, 1.6, set_limit=limit)
            found[f"limit {limit}"] = [said.refuted, said.sets, listed(said.support)]
        late = growth.no_support_above(A, 4, 1.6, deadline=Deadline(0.0))
        found["no time"] = late.sets
        for k, tau, _ in by_k(A, 0.1):
            said = growth.no_support_above(A, k, tau, deadline=Deadline(600.0))
            found[f"slices {k}"] = [said.refuted, said.sets, listed(said.support)]
    return found


def dropped() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        candidates = AdaptiveScreening(Covariance.from_matrix(A), len(A), lambda: None)
        unit = candidates.unit
        found[f"{name} promising"] = listed(candidates.initial_pool(3))
        for k, tau, upper in by_k(A):
            for factor in (1.0, 1.2):
                here = f"{name} {k} {factor}"
                stay = candidates.survivors(k, factor * tau / unit, upper[k - 1] / unit)
                found[here] = listed(stay)
                split = connected_parts(A, k, factor * tau, upper[k - 1])
                found[f"{here} parts"] = [listed(part) for part in split]
                for p in (1, 2, 3):
                    said = spectral.spectral_fixing(A, k, factor * tau, p)
                    found[f"{here} spectral {p}"] = [
                        listed(said.candidates),
                        listed(said.fixed_in),
                        said.bound,
                    ]
            below = spectral.spectral_fixing(A, k, 0.97 * tau, 2)
            found[f"{name} {k} below"] = [
                listed(below.candidates),
                listed(below.fixed_in),
            ]
            found[f"{name} {k} bounds"] = [
                value for value, _ in candidates.bounds(k, upper[k - 1] / unit)
            ]
            rows = candidates.screening.row_supports(k, 2)
            found[f"{name} {k} rows"] = np.asarray(rows).tolist()
    # Lists of partners that end before all of them are named
    rng = np.random.default_rng(13)
    A = np.cov((rng.standard_normal((12, 30)) * np.exp(-np.arange(30) / 8)).T)
    steps = path_module.certified_path(Covariance.from_matrix(A), 8)
    for k in (2, 3, 5, 8):
        candidates = AdaptiveScreening(Covariance.from_matrix(A), k, lambda: None)
        unit, previous = candidates.unit, steps[k - 1].upper_bound
        for share in (0.01, 0.1, 0.3, 0.6, 1.0, 2.0):
            tau = previous + share * (steps[k].objective - previous)
            stay = candidates.survivors(k, tau / unit, previous / unit)
            found[f"narrow {k} {share}"] = listed(stay)
    for which, X in enumerate((*data(), by_variance())):
        settings = judge.every_argument()
        cov = Covariance.from_data(X)
        candidates = AdaptiveScreening(cov, 3, lambda: None, settings=settings)
        top = float(candidates.variances.max())
        for k in (1, 2, 3):
            values = candidates.bounds(k, top)
            found[f"data {which} {k} bounds"] = [value for value, _ in values]
        for k in (1, 2, 3):
            for factor in (9.0, 3.0, 1.5, 1.02, 1.0, 0.9):
                here = f"data {which} {k} {factor}"
                unscanned = candidates.screening.unscanned(k, factor * top, top)
                stay = candidates.survivors(k, factor * top, top)
                scanned = len(candidates.screening.diagonal)
                found[here] = [unscanned, listed(stay), scanned]
    return found


def plain() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        for k, tau, upper in by_k(A):
            for first in (2, 99):
                with patch.object(plain_proof, "SPECTRAL_FROM", first):
                    nodes = plain_proof.prove_none_above(A, k, tau, upper[:k], 10**5)
                found[f"{name} {k} {first}"] = nodes
            try:
                plain_proof.prove_none_above(A, k, 0.98 * tau, upper[:k], 10**5)
                found[f"{name} {k} below"] = "none"
            except (plain_proof.Refuted, plain_proof.Undecided):
                found[f"{name} {k} below"] = "refuted"
    return found


def plain_rounding() -> Numbers:
    """What the plain search sets aside, and what it says just below and above τ."""
    found: Numbers = {}
    for name, A in matrices():
        for k, tau, upper in by_k(A):
            within = A[:k, :k]
            top = float(np.linalg.eigvalsh(within)[-1])
            search = plain_proof._Search(A, k, tau, 0.25, upper[:k], 1, None)
            found[f"{name} {k}"] = [
                float(plain_proof.search_rounding(A, k, tau)),
                float(plain_proof.search_rounding(A, k, -abs(tau))),
                float(plain_proof.search_rounding(np.diag(np.diagonal(A)), k, tau)),
                float(search.tau),
                [float(value) for value in search.upper[1:]],
                [
                    plain_proof.reaches(within, top - share * abs(top))
                    for share in (-1e-3, 1e-9, 5e-6, 1e-4, 1e-2)
                ],
            ]
            for share in (0.0, 1e-5, 1e-4, 1e-3):
                above = tau + share * abs(tau)
                try:
                    nodes = plain_proof.prove_none_above(A, k, above, upper[:k], 10**4)
                except (plain_proof.Refuted, plain_proof.Undecided) as ended:
                    nodes = type(ended).__name__
                found[f"{name} {k} {share:g}"] = nodes
    return found


def selections() -> Numbers:
    """Of the Python sources: these kernels have no wrapper for Python."""
    names = (
        "move_largest_first",
        "sum_of_largest",
        "_first_gap",
        "sort_front",
        "sort_descending",
        "insert_value",
    )
    sources = {name: vars(selection)[name] for name in names}
    sources = {name: getattr(f, "py_func", f) for name, f in sources.items()}
    with patch.multiple(selection, **sources):
        return _selections()


def _selections() -> Numbers:
    found: Numbers = {}
    rng = np.random.default_rng(11)
    for count in (1, 2, 5, 9, 40):
        values = rng.integers(0, 2 * count, size=count).astype(float)
        for q in (0, 1, count // 2, count - 1, count, count + 1):
            scratch = values.copy()
            found[f"{count} {q}"] = float(selection.sum_of_largest(scratch, count, q))
            if 0 < q < count:
                scratch = values.copy()
                selection.move_largest_first(scratch, count, q)
                found[f"{count} {q} first"] = sorted(scratch[:q].tolist())
        front, keys = values.copy(), values.copy()
        selection.sort_front(front, count)
        orders = np.arange(count)[None].copy()
        selection.sort_descending(keys, 0, orders, count)
        largest = np.zeros(count)
        for position, value in enumerate(values):
            selection.insert_value(largest, position + 1, value)
        found[f"{count} inserted"] = largest.tolist()
        found[f"{count} sorted"] = [front.tolist(), keys.tolist(), orders.tolist()]
    return found


def inclusions() -> Numbers:
    """What is set aside for rounding when features are fixed, and when sets grow."""
    said: list[list[float]] = []

    def run(_: object, part: Any, m: int, largest: float) -> bool:
        said.append([m, len(part.N), float(part.error), float(largest)])
        return True

    def grow(N: np.ndarray, m: int, allowance: float, *_: object) -> int:
        said.append([m, len(N), float(allowance)])
        return int(kernel.FINISHED)

    search = growth._Search(deadline=Deadline(None), sets_left=np.inf)
    rng = np.random.default_rng(7)
    found: Numbers = {}
    for members in ([0, 1], [0, 1, 2], [0, 1, 2, 3, 4]):
        for error in (0.0, 1e-6):
            N = rng.uniform(-0.15, 0.15, size=(9, 9))
            N = (N + N.T) / 2
            np.fill_diagonal(N, 0.0)
            said.clear()
            with patch.object(growth._Search, "run", run):
                part = growth._Part(N, np.arange(9), [], error)
                search.fix_features(part, 7, members)
            with patch.object(kernel, "grow", grow):
                for m in (2, 5):
                    search.grow(part, m)
            found[f"{len(members)} {error}"] = list(said)
    return found


GROUPS: Groups = {
    "inclusions": inclusions,
    "inclusions, large eps": enlarged(inclusions, 1e-7),
    "selections": selections,
    "dropped": dropped,
    "trees": trees,
    "grown": grown,
    "plain": plain,
    "plain, large eps": enlarged(plain_rounding),
    "turns": turns,
    "branches": branches,
    "limited": limited,
    "paths": paths,
    "dropped, large eps": enlarged(dropped),
    "grown, large eps": enlarged(grown, LARGE_EPS_OF_GROWTH),
    "grown, less eps": enlarged(grown, LESS_EPS_OF_GROWTH),
    "coarse, large eps": enlarged(coarse, 1e-4),
    "resisting": resisting,
    "paths, large eps": enlarged(paths, LARGE_EPS_OF_PATHS),
}


def test_inclusions() -> None:
    assert_as_written(__file__, GROUPS, "inclusions")


def test_inclusions_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "inclusions, large eps")


def test_selections() -> None:
    assert_as_written(__file__, GROUPS, "selections")


def test_what_is_dropped() -> None:
    assert_as_written(__file__, GROUPS, "dropped")


def test_trees() -> None:
    assert_as_written(__file__, GROUPS, "trees")


def test_growth() -> None:
    assert_as_written(__file__, GROUPS, "grown")


def test_plain_searches() -> None:
    assert_as_written(__file__, GROUPS, "plain")


def test_rounding_of_plain_searches() -> None:
    assert_as_written(__file__, GROUPS, "plain, large eps")


def test_paths() -> None:
    assert_as_written(__file__, GROUPS, "paths")


def test_what_is_dropped_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "dropped, large eps")


def test_growth_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "grown, large eps")


def test_paths_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "paths, large eps")


def test_turns() -> None:
    assert_as_written(__file__, GROUPS, "turns")


def test_branches() -> None:
    assert_as_written(__file__, GROUPS, "branches")


def test_limited() -> None:
    assert_as_written(__file__, GROUPS, "limited")


def test_growth_with_less_of_an_eps() -> None:
    assert_as_written(__file__, GROUPS, "grown, less eps")


def test_coarse_proofs_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "coarse, large eps")


def test_what_resists() -> None:
    assert_as_written(__file__, GROUPS, "resisting")
