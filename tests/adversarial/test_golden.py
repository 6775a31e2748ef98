"""What the provers did on small problems, number by number, as it was written down.

A test that only asks whether a bound holds does not notice an inequality that was
turned so as to prune less, nor, on most matrices, an allowance for rounding that is
missing. Counts of nodes and survivors notice the first. For the second, eps is made
large: then what is set aside for rounding shows in the values.

After a change that is meant to alter a count, write the file again, and read the
difference before it is committed:

    python tests/adversarial/test_golden.py
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import judge
import zoo
from blockspca._kernels import selection
from blockspca.certify import certified_path as path_module
from blockspca.certify import growth, plain_proof, spectral
from blockspca.certify.best_bound import best_bound
from blockspca.certify.bounds import (
    best_threshold_bound,
    largest_eigenvalue_bound,
    threshold_bound,
    trace_bound,
)
from blockspca.certify.candidates import Candidates
from blockspca.certify.connected import connected_parts
from blockspca.certify.direction_dual import direction_bound
from blockspca.certify.dual_bound import dual_bound
from blockspca.certify.eigenvalues import eigenvalue_ceiling, is_below, psd_shift
from blockspca.certify.proof_tree import ProofTree, rounding_allowance
from blockspca.covariance import Covariance
from blockspca.limits import Limits

FILE = Path(__file__).with_name("golden.json")
LARGE_EPS = 1e-6
RELATIVE = 1e-6
Numbers = dict[str, Any]


def matrices() -> Iterator[tuple[str, np.ndarray]]:
    """Matrices whose searches differ, none of which hangs on an ulp."""
    for name, d in [("gaussian", 8), ("indefinite", 7), ("correlation", 8)]:
        yield name, zoo.FAMILIES[name](d, np.random.default_rng(d))
    noise = 0.2 * zoo.indefinite(9, np.random.default_rng(5))
    yield "flat", np.eye(9) + noise
    A = 0.02 * zoo.indefinite(9, np.random.default_rng(7)) + np.eye(9)
    A[:3, :3] += 0.4
    A[4:8, 4:8] += 0.35
    yield "two groups", A


def data() -> tuple[np.ndarray, np.ndarray]:
    """Samples: fewer than features with a factor in common, and more."""
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((6, 9)) * rng.gamma(2.0, size=9)
    wide[:, :4] += 2.0 * rng.standard_normal((6, 1))
    return wide, rng.standard_normal((20, 7)) @ rng.standard_normal((7, 7))


def by_k(A: np.ndarray, above: float = 1e-7) -> Iterator[tuple[int, float, np.ndarray]]:
    """Yield k, a τ that is a little above opt(k), and upper for the chain."""
    known = zoo.Reference(A)
    for k in range(2, len(A)):
        upper = np.full(k + 1, np.inf)
        for q in range(1, k):
            upper[q] = known.reached[q] * (1 + 1e-9)
        yield k, known.reached[k] + above * abs(known.reached[k]), upper


def listed(found: Any) -> list[int]:
    return [] if found is None else [int(i) for i in found]


# -- what is written down --------------------------------------------------------------


def step_numbers(step: Any) -> list[Any]:
    return [
        listed(step.support),
        listed(step.survivors),
        list(vars(step.statistics).values()),
        [step.bound_name, str(step.status), step.source],
        float(step.upper_bound),
        float(step.tau),
        float(step.upper_previous),
        float(step.allowance),
        float(step.tolerance),
    ]


def paths() -> Numbers:
    found: Numbers = {}
    limits = [None, Limits(nodes=3), Limits(gap=0.05), Limits(memory=2500)]
    for name, A in matrices():
        cov = Covariance.from_matrix(A)
        for which, limit in enumerate(limits):
            events: list[int] = []
            steps = path_module.certified_path(
                cov,
                len(A) - 2,
                limits=limit,
                callback=lambda event, events=events: events.append(event.survivors),
            )
            found[f"{name} {which}"] = [step_numbers(s) for s in steps.values()]
            found[f"{name} {which} events"] = events
        for first in (2, 99):
            with judge.every_argument(first):
                steps = path_module.certified_path(cov, 5)
            found[f"{name} from {first}"] = [step_numbers(s) for s in steps.values()]
    for which, X in enumerate(data()):
        with judge.every_argument():
            steps = path_module.certified_path(Covariance.from_data(X), 4)
        found[f"data {which}"] = [step_numbers(s) for s in steps.values()]
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
                alone = ProofTree(A, k, tau, np.full(k + 1, np.inf), 10**6)
                alone.advance(10**6)
                found[f"{name} {above} {k} alone"] = listed(alone.state)
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
                        said = growth.refute(A, k, tau)
                        found[f"{name} {above} {k} {strong} {capacity}"] = [
                            said.refuted,
                            said.sets,
                            said.inclusions,
                            listed(said.support),
                        ]
    A = dict(matrices())["flat"]
    with patch.object(growth, "_SLICE", 3):
        for limit in (1, 4, 9):
            said = growth.refute(A, 4, 1.6, set_limit=limit)
            found[f"limit {limit}"] = [said.refuted, said.sets, listed(said.support)]
        found["no time"] = growth.refute(A, 4, 1.6, time_limit=0.0).sets
    return found


def dropped() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        candidates = Candidates(Covariance.from_matrix(A), len(A), lambda: None)
        unit = candidates.unit
        found[f"{name} promising"] = listed(candidates.promising(3))
        for k, tau, upper in by_k(A):
            for factor in (1.0, 1.1, 1.5):
                here = f"{name} {k} {factor}"
                stay = candidates.survivors(k, factor * tau / unit, upper[k - 1] / unit)
                found[here] = listed(stay)
                split = connected_parts(A, k, factor * tau, upper[k - 1])
                found[f"{here} parts"] = [listed(part) for part in split]
                for p in (1, 2, 3):
                    said = spectral.tighten(A, k, factor * tau, p)
                    found[f"{here} spectral {p}"] = [
                        listed(said.kept),
                        listed(said.forced),
                        said.bound,
                    ]
            below = spectral.tighten(A, k, 0.97 * tau, 2)
            found[f"{name} {k} below"] = [listed(below.kept), listed(below.forced)]
            found[f"{name} {k} bounds"] = [
                value for value, _ in candidates.bounds(k, upper[k - 1] / unit)
            ]
            rows = candidates.screening.row_supports(k, 2)
            found[f"{name} {k} rows"] = np.asarray(rows).tolist()
    for which, X in enumerate(data()):
        with judge.every_argument():
            candidates = Candidates(Covariance.from_data(X), 4, lambda: None)
            top = float(candidates.variances.max())
            for k in (1, 2, 3, 4):
                values = candidates.bounds(k, top)
                found[f"data {which} {k} bounds"] = [value for value, _ in values]
            for k in (2, 3):
                for factor in (3.0, 1.5, 1.0):
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
            except plain_proof.Refuted:
                found[f"{name} {k} below"] = "refuted"
    return found


def formulas() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        top = float(np.linalg.eigvalsh(A)[-1])
        found[f"{name} λ"] = [
            eigenvalue_ceiling(A),
            eigenvalue_ceiling(A, 1.01 * top),
            eigenvalue_ceiling(A, 0.99 * top),
            eigenvalue_ceiling(A * 1e-200, np.inf),
            largest_eigenvalue_bound(A),
            [is_below(A, factor * top) for factor in (0.99, 1 + 1e-12, 1.01, np.inf)],
            psd_shift(A),
            psd_shift(A @ A),
        ]
        for k in (1, 2, 3, 5):
            found[f"{name} {k}"] = [
                trace_bound(np.diagonal(A), k, shift=0.5),
                threshold_bound(A, k, 0.15),
                threshold_bound(A, k, 0.15, soft=False),
                *best_threshold_bound(A, k, evaluations=6),
            ]
    wide, tall = data()
    for X in (wide, tall):
        found[f"data {len(X)}"] = largest_eigenvalue_bound(Covariance.from_data(X))
        for penalty in (0.3, 1.0, 4.0):
            C = X / np.sqrt(len(X))
            near = C + 0.3 * np.roll(C, 1, axis=1)
            found[f"direction {len(X)} {penalty}"] = [
                direction_bound(C, 3, penalty),
                direction_bound(C, 3, penalty, near),
                direction_bound(C, 3, penalty, np.ones_like(C)),
            ]
    found["allowance"] = [rounding_allowance(k) / zoo.EPS for k in (1, 2, 10)]
    return found


def duals() -> Numbers:
    found: Numbers = {}
    wide, tall = data()
    given = {
        "wide": Covariance.from_data(wide),
        "tall": Covariance.from_data(tall),
        "flat": Covariance.from_matrix(dict(matrices())["flat"]),
        "groups": Covariance.from_matrix(dict(matrices())["two groups"]),
    }
    for name, cov in given.items():
        A = np.ascontiguousarray(cov.submatrix(slice(None)))
        known = zoo.Reference((A + A.T) / 2)
        for k in (2, 4):
            for nodes in (1, 7):
                for above in (1e-6, -0.05):
                    target = known.reached[k] * (1 + above)
                    said = dual_bound(
                        cov, k, target=target, iterations=6, nodes=nodes, time_limit=60
                    )
                    found[f"{name} {k} {nodes} {above}"] = [
                        said.value,
                        said.iterations,
                        said.nodes,
                        listed(said.better),
                    ]
            few = dual_bound(cov, k, survivors=[0, 2, 3, 4, 5, 6], iterations=4)
            found[f"{name} {k} survivors"] = few.value
            for share in (1.0, 1.3):
                best = best_bound(
                    cov,
                    k,
                    known.best[k],
                    target=share * known.reached[k],
                    time_limit=60.0,
                    nodes=3,
                )
                found[f"{name} {k} best {share}"] = [best.value, best.name, best.nodes]
    return found


def selections() -> Numbers:
    """Of the Python sources: these kernels have no wrapper for Python."""
    names = ("move_largest_first", "sum_of_largest", "sort_front", "sort_descending")
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
        found[f"{count} sorted"] = [front.tolist(), keys.tolist(), orders.tolist()]
    return found


# -- with a large eps ------------------------------------------------------------------

_WITH_EPS = (
    "growth",
    "eigenvalues",
    "bounds",
    "direction_dual",
    "dual_decisions",
    "dual_problem",
    "dual_ascent",
    "proof_tree",
    "best_bound",
)


@contextmanager
def large_eps() -> Iterator[None]:
    """Let the provers believe that rounding is a million times what it is."""
    with ExitStack() as stack:
        for name in _WITH_EPS:
            module = importlib.import_module(f"blockspca.certify.{name}")
            if hasattr(module, "_EPS"):
                stack.enter_context(patch.object(module, "_EPS", LARGE_EPS))
        stack.enter_context(patch.object(spectral, "_ROUNDING", LARGE_EPS))
        for name in ("entry_error", "factor_error"):
            error = PropertyMock(return_value=1e-3)
            stack.enter_context(patch.object(Covariance, name, error))
        yield


def enlarged(numbers: Callable[[], Numbers]) -> Callable[[], Numbers]:
    def with_large_eps() -> Numbers:
        with large_eps():
            return numbers()

    return with_large_eps


GROUPS: dict[str, Callable[[], Numbers]] = {
    "selections": selections,
    "formulas": formulas,
    "dropped": dropped,
    "grown": grown,
    "trees": trees,
    "plain": plain,
    "paths": paths,
    "duals": duals,
    "formulas, large eps": enlarged(formulas),
    "dropped, large eps": enlarged(dropped),
    "grown, large eps": enlarged(grown),
    "paths, large eps": enlarged(paths),
    "duals, large eps": enlarged(duals),
}


def same(one: Any, other: Any) -> bool:
    """Compare what was written with what is, floats up to rounding."""
    if isinstance(one, float) or isinstance(other, float):
        if one is None or other is None or isinstance(one, str):
            return bool(one == other)
        a, b = float(one), float(other)
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if math.isinf(a) or math.isinf(b):
            return a == b
        return abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + 1e-300
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def compared(group: str) -> None:
    written = json.loads(FILE.read_text(encoding="utf-8"))[group]
    found = json.loads(json.dumps(GROUPS[group]()))
    assert written.keys() == found.keys()
    for key, numbers in written.items():
        assert same(numbers, found[key]), (key, numbers, found[key])


def test_selections() -> None:
    compared("selections")


def test_formulas() -> None:
    compared("formulas")


def test_what_is_dropped() -> None:
    compared("dropped")


def test_growth() -> None:
    compared("grown")


def test_trees() -> None:
    compared("trees")


def test_plain_searches() -> None:
    compared("plain")


def test_paths() -> None:
    compared("paths")


def test_formulas_with_a_large_eps() -> None:
    compared("formulas, large eps")


def test_what_is_dropped_with_a_large_eps() -> None:
    compared("dropped, large eps")


def test_growth_with_a_large_eps() -> None:
    compared("grown, large eps")


def test_paths_with_a_large_eps() -> None:
    compared("paths, large eps")


def test_duals() -> None:
    compared("duals")


def test_duals_with_a_large_eps() -> None:
    compared("duals, large eps")


def shortened(value: Any) -> Any:
    """Return the same with floats of as many digits as are compared, and two more."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(inner) for inner in value]
    return value


if __name__ == "__main__":
    content = {name: shortened(numbers()) for name, numbers in GROUPS.items()}
    FILE.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
