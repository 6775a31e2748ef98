"""What every prover says about a problem, compared with brute force.

Each judge is a generator of `Wrong`: one for each statement that does not hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np

import blockspca as bs
from blockspca import pipeline
from blockspca._kernels import schur_tree as tree_kernel
from blockspca.bounds.best import best_bound
from blockspca.bounds.closed_form import (
    best_threshold_bound,
    largest_eigenvalue_bound,
    row_sum_bound,
    threshold_bound,
    trace_bound,
)
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.entry_dual.bound import entry_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.smaller_k import bound_from_smaller_k
from blockspca.certify.adaptive_screening import AdaptiveScreening
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling, is_below, psd_shift
from blockspca.proof_settings import ProofSettings
from blockspca.search import averaging as growth
from blockspca.search import reference as plain_proof
from blockspca.search.parts import connected_parts
from blockspca.search.schur_tree import ProofTree
from blockspca.search.spectral import spectral_fixing
from blockspca.solvers import BranchAndBound, Limits
from case import OPTIMAL_GAP, Case, Wrong, bound, solution
from zoo import EPS, Problem, Reference, from_data, rayleigh_below

__all__ = ["JUDGES", "Case", "Wrong", "judge", "solution"]

MAX_ENTRIES = 2**20
_GRID = 10  # values of an entry between which searches are compared


Judge = Callable[[Case], Iterator[Wrong]]


def path(case: Case) -> Iterator[Wrong]:
    """The certified path, for every k."""
    yield from _path(case, "solve_path")


def _path(case: Case, name: str, limits: Limits | None = None) -> Iterator[Wrong]:
    d = case.problem.d
    results = bs.solve_path(case.problem.cov, d, limits=limits)
    before = -np.inf
    for k in range(1, d + 1):
        result = results[k]
        yield from solution(case, name, k, result)
        if result.objective < before - case.floor(k) - OPTIMAL_GAP * abs(before):
            yield Wrong(name, k, f"less than {before!r}, for k − 1")
        before = result.objective


def every_argument(first: int = 2) -> ProofSettings:
    """Settings that let small problems use what only large ones get to, too."""
    return ProofSettings(
        spectral_from=2,
        spectral_first=first,
        probe_nodes=1,
        many_survivors=-99,
        scan_all_up_to=1,
        first_candidates=1,
    )


def path_by_every_argument(case: Case) -> Iterator[Wrong]:
    """The path with eigenvectors, connected parts and a scan by variance."""
    settings = every_argument(int(case.rng.choice([2, 99])))
    with (
        patch.object(pipeline, "SETTINGS", settings),
        patch.object(plain_proof, "SPECTRAL_FROM", 2),
    ):
        yield from _path(case, "solve_path, every argument")


def path_within_limits(case: Case) -> Iterator[Wrong]:
    """The path where a limit ends it, or a gap is all that is asked for."""
    if case.rng.random() < 0.5:
        asked, limits = "few nodes", Limits(nodes=int(case.rng.integers(1, 12)))
    else:
        gap = float(case.rng.choice([1e-6, 0.01, 0.3]))
        asked, limits = f"gap {gap:g}", Limits(gap=gap)
    yield from _path(case, f"solve_path, {asked}", limits)


def by_variance(case: Case) -> Iterator[Wrong]:
    """Data of forty features, of which only those of large variance are read."""
    rng, k_max = case.rng, 3
    X = rng.standard_normal((30, 40)) * np.exp(rng.normal(0, rng.uniform(0, 2), 40))
    if rng.random() < 0.5:  # three that win together, of less variance than others
        X = rng.standard_normal((60, 40))
        X = 1e-3 * X + (X - X.mean(axis=0)) / X.std(axis=0)
        X[:, -3:] = 0.9 * X[:, -1:] + 0.01 * X[:, -3:]
    problem = from_data(X, "by variance")
    truth = Reference(problem.exact, k_max)
    wide = Case(problem, truth, truth.unit, problem.A, truth, rng)
    with patch.object(pipeline, "SETTINGS", every_argument()):
        results = bs.solve_path(problem.cov, k_max)
    for k in range(1, k_max + 1):
        yield from solution(wide, "solve_path by variance", k, results[k])


def solve(case: Case) -> Iterator[Wrong]:
    """`solve`, which looks at blocks first."""
    k = case.some_k()
    yield from solution(case, "solve", k, bs.solve(case.problem.cov, k))


def refutations(case: Case) -> Iterator[Wrong]:
    """Averaging must not rule out what is reached."""
    for k in range(1, case.problem.d + 1):
        top, near, below, *one = case.levels(k)
        for tau in [top if case.rng.random() < 0.5 else near, below, *one]:
            said = growth.no_support_above(case.A, k, tau)
            if said.refuted:
                reached = case.matrix.reached[k]
                yield Wrong("growth", k, f"refutes {tau!r}, and {reached!r} is reached")
            if said.support is not None and len(set(said.support.tolist())) > k:
                yield Wrong("growth", k, f"found {len(said.support)} features")


def switches(case: Case) -> Iterator[Wrong]:
    """Growth where its search changes, to the ulp, as one entry grows.

    Wherever the thresholds are: the entry is bisected until neighbours make different
    searches, and τ is refuted there only if it is not reached.
    """
    d = case.problem.d
    k = max(3, case.some_k())
    top, size = case.matrix.reached[k], case.matrix.scale(k)
    tau = top - case.rng.uniform(0.01, 0.5) * size
    probe = _Probe(case.A, case.matrix.best[k], tau)
    i, j = np.sort(case.rng.permutation(d)[:2])
    grid = np.linspace(0.0, 1.5 * case.A[i, j], _GRID)
    searches = [probe.search(i, j, float(value)) for value in grid]
    for at in range(_GRID - 1):
        low, high, first = float(grid[at]), float(grid[at + 1]), searches[at]
        if first == searches[at + 1]:
            continue
        while (middle := low + (high - low) / 2) not in (low, high):
            same = probe.search(i, j, middle) == first
            low, high = (middle, high) if same else (low, middle)
        near = low + float(np.spacing(low)) * np.arange(-4, 5)
        yield from probe.wrong(i, j, near)


def chains(case: Case) -> Iterator[Wrong]:
    """Growth with a pair within ulps of half the threshold of three (see the zoo)."""
    if not case.problem.kind.startswith("threshold_chain, as_it_is"):
        return
    if case.truth.reached[3] > 1:
        near = 0.5 - np.arange(-10, 200) * EPS / 4
        probe = _Probe(case.problem.A, case.truth.best[3], 1.0)
        yield from probe.wrong(0, 1, near)


class _Probe:
    """Growth for one τ, on a matrix with one entry changed, S being above τ."""

    def __init__(self, A: np.ndarray, S: np.ndarray, tau: float) -> None:
        self.A, self.S, self.k, self.tau = A.copy(), S, len(S), tau

    def search(self, i: int, j: int, value: float) -> tuple[object, ...]:
        before = self.A[i, j]
        self.A[i, j] = self.A[j, i] = value
        said = growth.no_support_above(self.A, self.k, self.tau)
        self.A[i, j] = self.A[j, i] = before
        found = None if said.support is None else tuple(said.support)
        return said.refuted, said.sets, said.inclusions, found

    def wrong(self, i: int, j: int, values: np.ndarray) -> Iterator[Wrong]:
        for value in map(float, values):
            if not self.search(i, j, value)[0]:
                continue
            A = self.A.copy()
            A[i, j] = A[j, i] = value
            reached = Reference(A[self.S[:, None], self.S]).reached[self.k]
            if reached >= self.tau:
                yield Wrong(
                    "growth within ulps",
                    self.k,
                    f"refutes {self.tau!r}, and {self.S} reaches {reached!r}, with "
                    f"A[{i}, {j}] = {value!r}, in units",
                )


def trees(case: Case) -> Iterator[Wrong]:
    """The compiled search must come upon a set where one is above τ."""
    for k in range(1, case.problem.d + 1):
        for tau, upper in case.searched(k):
            tree = ProofTree(case.A, k, tau, upper, MAX_ENTRIES)
            if tree.advance(10**9) == tree_kernel.FINISHED:
                reached = case.matrix.reached[k]
                text = f"none above {tau!r}, and {reached!r} is reached"
                yield Wrong("proof tree", k, text)


def plain_searches(case: Case) -> Iterator[Wrong]:
    """So must the plain one."""
    k = case.some_k()
    for tau, upper in case.searched(k):
        for first in (2, 99):
            with patch.object(plain_proof, "SPECTRAL_FROM", first):
                try:
                    plain_proof.prove_none_above(case.A, k, tau, upper[:k], 10**6)
                except (plain_proof.Refuted, plain_proof.Undecided):
                    continue
            reached = case.matrix.reached[k]
            text = f"none above {tau!r}, and {reached!r} is reached"
            yield Wrong("plain proof", k, text)


def screenings(case: Case) -> Iterator[Wrong]:
    """No feature of a set above τ may be screened out."""
    d, unit = case.problem.d, case.unit
    found = AdaptiveScreening(case.problem.cov, d, lambda: None)
    for k in range(1, d + 1):
        margin = case.floor(k) / unit  # the path adds an allowance
        previous = case.upper(k)[k - 1] if k > 1 else -np.inf
        for value, name in found.bounds(k, previous * (unit / found.unit)):
            value += case.floor(k) / found.unit if k > 1 else 0.0
            yield from bound(case, f"path's {name}", k, value * found.unit)
        tau = max(case.levels(k)[2], previous)
        stay = found.survivors(
            k, tau * (unit / found.unit), previous * (unit / found.unit)
        )
        lost = case.matrix.above(k, tau + margin)[:, np.delete(np.arange(d), stay)]
        if lost.any():
            yield Wrong("screening", k, f"keeps {stay} at {tau!r}")


def parts(case: Case) -> Iterator[Wrong]:
    """A set above τ lies in one of the connected parts."""
    d = case.problem.d
    for k in {max(2, case.some_k()), max(2, case.some_k())}:
        previous = case.upper(k)[k - 1]
        tau = max(case.levels(k)[2], previous)
        lost = case.matrix.above(k, tau)
        for part in connected_parts(case.A, k, tau, previous):
            lost = lost[lost[:, np.delete(np.arange(d), part)].any(axis=1)]
        if len(lost):
            where = np.flatnonzero(lost[0])
            yield Wrong("connected parts", k, f"{where} is in none at {tau!r}")


def spectral(case: Case) -> Iterator[Wrong]:
    """A set above τ lies in the candidates and has what is fixed in."""
    d = case.problem.d
    for k in range(1, d + 1):
        tau = float(case.rng.choice(case.levels(k)))
        p = int(case.rng.integers(1, 4))
        said = spectral_fixing(case.A, k, tau, p)
        above = case.matrix.above(k, tau)
        dropped = above[:, np.delete(np.arange(d), said.candidates)].any()
        if dropped or not above[:, said.fixed_in].all():
            yield Wrong("spectral", k, f"p = {p} loses a set at {tau!r}")


def closed_forms(case: Case) -> Iterator[Wrong]:
    """Bounds by a formula, of the matrix as it is."""
    A, d = case.problem.A, case.problem.d

    def below(name: str, k: int, value: float) -> Iterator[Wrong]:
        reached = case.matrix.reached[k] * case.unit
        if not value >= reached:
            yield Wrong(name, k, f"{value!r}, and {reached!r} is reached")

    yield from below("eigenvalue_ceiling", d, eigenvalue_ceiling(A))
    yield from below("largest eigenvalue", d, largest_eigenvalue_bound(A))
    top = case.matrix.reached[d]
    if is_below(case.A, float(np.nextafter(top, -np.inf))):
        yield Wrong("is_below", d, f"λmax is {top!r}")
    shift = psd_shift(A)
    whole = case.matrix.exact * case.unit
    low = rayleigh_below(-whole, np.linalg.eigh(case.A)[1][:, 0])
    if shift < low:
        yield Wrong("psd_shift", d, f"λmin is {-low!r} and the shift {shift!r}")
    for k in {case.some_k(), case.some_k()}:
        epsilon = float(abs(case.rng.choice(A.ravel())) * case.rng.choice([1.0, 0.5]))
        trace = trace_bound(np.diagonal(A) + shift, k) - shift
        yield from below("row sums", k, row_sum_bound(A, k))
        yield from below("trace", k, trace)
        soft = threshold_bound(A, k, epsilon, Deadline(None))
        yield from below("soft threshold", k, soft)
        upper = np.full(k, np.inf)
        for m in range(1, k):
            above = case.matrix.reached[m] + 1e-13 * case.matrix.scale(m)
            upper[m] = above * case.unit
        lowest = float(np.diagonal(A).min())
        by_smaller = bound_from_smaller_k(k, upper, lowest, is_psd=shift == 0)
        yield from below("smaller k", k, by_smaller)


def best_thresholds(case: Case) -> Iterator[Wrong]:
    k = case.some_k()
    value = best_threshold_bound(case.A, k)[0]
    reached = case.matrix.reached[k]
    if not value >= reached:
        yield Wrong("best threshold", k, f"{value!r}, and {reached!r} is reached")


def dual(case: Case) -> Iterator[Wrong]:
    """The direction dual, at the root and in a search."""
    k = case.some_k()
    reached = case.truth.reached[k]
    target = reached + float(case.rng.choice([-0.1, 0.0, 1e-9, 0.1])) * abs(reached)
    nodes = int(case.rng.choice([1, 13]))
    said = dual_bound(
        case.problem.cov, k, target=target, iterations=12, nodes=nodes, time_limit=5.0
    )
    error = k * case.problem.cov.entry_error
    yield from bound(case, "direction dual", k, said.value + error)


def entry_dual(case: Case) -> Iterator[Wrong]:
    """The entry dual, and what its record proves of itself."""
    k, cov = case.some_k(), case.problem.cov
    said = entry_bound(cov, k, case.truth.best[k], iterations=20, time_limit=5.0)
    yield from bound(case, "entry dual", k, said.value)
    if said.record is not None:
        again = checked_value(cov, k, said.record)
        yield from bound(case, "record of the entry dual", k, again)


def named(case: Case) -> Iterator[Wrong]:
    """The best of the named bounds."""
    k = case.some_k()
    cov, S = case.problem.cov, case.truth.best[k]
    target = case.truth.reached[k]
    said = best_bound(cov, k, S, target=target, time_limit=5.0)
    yield from bound(case, f"best bound: {said.name}", k, said.value)


def branch_and_bound(case: Case) -> Iterator[Wrong]:
    k = case.some_k()
    solver = BranchAndBound()
    said = solver.solve_covariance(case.problem.cov, k, limits=Limits())
    yield from bound(case, "branch and bound", k, said.upper_bound)
    x = np.asarray(said.x)
    used = np.flatnonzero(x)
    value = float(rayleigh_below(case.problem.exact[np.ix_(used, used)], x[used]))
    reached = case.truth.reached[k]
    allowed = OPTIMAL_GAP * abs(value) + case.floor(k)
    if said.status is bs.Status.OPTIMAL and reached - value > allowed:
        yield Wrong("branch and bound", k, f"optimal is {reached!r}, not {value!r}")


def verification(case: Case) -> Iterator[Wrong]:
    """What is right is verified, and what is verified is right."""
    k = case.some_k()
    cov = case.problem.cov
    result = bs.solve_path(cov, k)[k]
    wrong = list(solution(case, "solve_path", k, result))
    try:
        said = bs.verify(result, cov)
    except bs.VerificationError as error:
        if not wrong:
            yield Wrong("verify", k, f"refuses what holds: {error}")
        return
    yield from bound(case, "verify", k, said.upper_bound)
    if wrong:
        yield Wrong("verify", k, f"accepts what is wrong: {wrong[0].text}")


#: Judges, and of how many matrices: one in so many.
JUDGES: dict[Judge, int] = {
    path: 1,
    refutations: 1,
    trees: 1,
    screenings: 1,
    parts: 1,
    closed_forms: 1,
    spectral: 3,
    chains: 1,
    switches: 16,
    path_by_every_argument: 3,
    path_within_limits: 4,
    plain_searches: 4,
    branch_and_bound: 8,
    verification: 8,
    best_thresholds: 16,
    solve: 16,
    by_variance: 64,
    dual: 64,
    entry_dual: 32,
    named: 64,
}


def judge(
    problem: Problem, seed: int, judges: dict[Judge, int] | None = None
) -> list[Wrong]:
    """Ask every prover, or those whose turn it is, and return what is wrong."""
    case = Case.of(problem, seed)
    wrong: list[Wrong] = []
    for ask, turn in (JUDGES if judges is None else judges).items():
        if case.rng.integers(turn) > 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=".*is a defect")
            try:
                wrong += ask(case)
            except Exception as error:  # as wrong as any other answer
                text = f"{type(error).__name__}: {error}"
                wrong.append(Wrong(getattr(ask, "__name__", str(ask)), 0, text))
    return wrong
