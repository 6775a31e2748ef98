"""Time, nodes and nodes per second of BranchAndBound, and of a plain transcription.

    BLOCKSPCA_DATA=.../data python benchmarks/run.py branch_and_bound

The transcription is the published scheme (Berk & Bertsimas 2019), written down in numba
as it stands: row sums, trace and largest eigenvalue bound a node; a truncated power
iteration in it looks for a better support, and its largest loading is branched on; the
first nodes are taken by the largest bound, the others depth first. Both start from the
array A and end with a component and the proof that none is better by more than 1e-10.
The transcription takes it for granted that A is positive semidefinite; BranchAndBound
finds out.

Times are medians of runs that alternate between the two, kernels compiled before. The
last column is the time of the transcription divided by ours; where it stopped at the
limit, it is a lower bound of that. A node of ours reduces a Schur complement until
nothing drops out: it costs more, and thousands fewer are needed. k ≤ 2 has no nodes.
OPENBLAS_NUM_THREADS=1 keeps other programs' load out of both.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import njit

from blockspca import Covariance
from blockspca.solvers import BranchAndBound, Limits
from common import DATA, Options, Report, load

MATRICES = {
    "pitprops": tuple(range(1, 13)),
    "Eisen1Cov": (3, 5, 10, 20),
    "Eisen2Cov": (5, 10, 20),
    "CovColon": (3, 5, 10, 15),
    "LymphomaCov1": (3, 5, 10, 15),
    "Reddit2000": (3, 5, 10, 15),
}
SAMPLES = {
    "Leukemia": (3, 5, 10, 15),
    "Lymphoma2": (3, 5, 10),
    "Prostate": (3, 5, 10, 15),
}
NOISE = ((60, 40, 8), (200, 40, 8), (60, 60, 10))  # samples, features, k
RANDOM = ((10, 2), (20, 4), (40, 5))  # features, k; with a planted component

TOLERANCE = 1e-10  # relative, as in BranchAndBound
BEST_FIRST = 1000  # nodes taken by the largest bound, before going depth first
EIGEN_SIZE = 64  # as in BranchAndBound: eigenvalues of larger nodes do not pay
AT_ONCE = 500  # nodes between two looks at the clock

REPEATS = 101
ENOUGH = 5.0  # seconds of a row after which it is not run again
LIMIT, QUICK_LIMIT = 5.0, 1.0  # seconds of a run
COLUMNS = {
    "problem": ("problem", ""),
    "d": ("d", ""),
    "k": ("k", ""),
    "status": ("ours", ""),
    "nodes": ("nodes", ""),
    "ms": ("ms", ".3f"),
    "rate": ("nodes/s", ".0f"),
    "plain_status": ("transcription", ""),
    "plain_nodes": ("nodes", ""),
    "plain_ms": ("ms", ".3f"),
    "plain_rate": ("nodes/s", ".0f"),
    "ratio": ("times ours", ".1f"),
}
DATA_COLUMNS = {
    "data": ("data", ""),
    "k": ("k", ""),
    "status": ("status", ""),
    "nodes": ("nodes", ""),
    "s": ("s", ".2f"),
}


@njit(cache=True, error_model="numpy")
def transcription(A, order, k, budget, states, bounds, support, progress):
    """Explore up to `budget` nodes; `progress` is the best value, stack and nodes."""
    d = A.shape[0]
    best = progress[0]
    size = int(progress[1])
    nodes = int(progress[2])
    features = np.empty(d, np.int64)
    chosen = np.empty(k, np.int64)
    x = np.empty(d)
    y = np.empty(d)
    loading = 0.0
    done = 0
    while size > 0 and done < budget:
        node = size - 1
        if nodes < BEST_FIRST:
            node = np.argmax(bounds[:size])
        state = states[node].copy()
        bound = bounds[node]
        size -= 1
        states[node] = states[size]
        bounds[node] = bounds[size]
        tau = best + TOLERANCE * abs(best)
        if bound <= tau:
            continue
        done += 1
        nodes += 1
        n_in = 0
        n_left = 0
        for j in range(d):
            n_in += state[j] == 1
            if state[j] != 2:
                features[n_left] = j
                n_left += 1
        need = k - n_in
        if need == 0 or n_left <= k:
            count = 0
            for q in range(n_left):
                if need > 0 or state[features[q]] == 1:
                    features[count] = features[q]
                    count += 1
            value = largest_eigenvalue(A, features, count)
            if value > best:
                best = value
                support[:count] = features[:count]
            continue
        bound = min(bound, row_sums(A, order, state, need))
        bound = min(bound, trace(A, order, state, need))
        if bound > tau and n_left <= EIGEN_SIZE:
            bound = min(bound, largest_eigenvalue(A, features, n_left))
        if bound <= tau:
            continue
        value = truncated_power(A, state, features, n_left, need, x, y)
        branch = -1
        count = 0
        for q in range(n_left):
            j = features[q]
            if x[q] != 0.0:
                chosen[count] = j
                count += 1
            if state[j] == 0 and (branch < 0 or abs(x[q]) > loading):
                branch, loading = j, abs(x[q])
        if value > tau:
            best = largest_eigenvalue(A, chosen, count)
            support[:count] = chosen[:count]
        for fixed in (2, 1):
            states[size] = state
            states[size, branch] = fixed
            bounds[size] = bound
            size += 1
    progress[0], progress[1], progress[2] = best, size, nodes


@njit(cache=True, error_model="numpy")
def row_sums(A, order, state, need):
    """max over rows i of A_ii + |A_ij| for j fixed in + the largest of the free."""
    d = A.shape[0]
    highest = -np.inf
    for i in range(d):
        if state[i] == 2:
            continue
        total = A[i, i]
        left = need - (state[i] == 0)
        for q in range(d):
            j = order[i, q]
            if j == i or state[j] == 2:
                continue
            if state[j] == 1:
                total += abs(A[i, j])
            elif left > 0:
                total += abs(A[i, j])
                left -= 1
        highest = max(highest, total)
    return highest


@njit(cache=True, error_model="numpy")
def trace(A, order, state, need):
    """Sum of A_jj over the features fixed in and the largest of the free."""
    d = A.shape[0]
    total = 0.0
    for q in range(d):  # the last row of `order` sorts the diagonal
        j = order[d, q]
        if state[j] == 1:
            total += A[j, j]
        elif state[j] == 0 and need > 0:
            total += A[j, j]
            need -= 1
    return total


@njit(cache=True, error_model="numpy")
def largest_eigenvalue(A, features, count):
    within = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            within[i, j] = A[features[i], features[j]]
    return np.linalg.eigvalsh(within)[-1]


@njit(cache=True, error_model="numpy")
def truncated_power(A, state, features, count, need, x, y):
    """Value found with the features fixed in kept; x its loadings, y = Ax."""
    start = 0
    for q in range(count):  # from the largest variance, of those fixed in if any
        better = A[features[q], features[q]] > A[features[start], features[start]]
        fixed, before = state[features[q]] == 1, state[features[start]] == 1
        if fixed > before or (fixed == before and better):
            start = q
    for q in range(count):
        y[q] = A[features[start], features[q]]
    value = -np.inf
    while True:
        ranked = np.argsort(-np.abs(y[:count]))
        x[:count] = 0.0
        left = need
        length = 0.0
        for r in range(count):
            q = ranked[r]
            if state[features[q]] == 1 or left > 0:
                left -= state[features[q]] == 0
                x[q] = y[q]
                length += y[q] * y[q]
        if length == 0.0:
            return value
        x[:count] /= np.sqrt(length)
        y[:count] = 0.0
        for r in range(count):
            if x[r] != 0.0:
                for q in range(count):
                    y[q] += x[r] * A[features[r], features[q]]
        previous, value = value, np.dot(x[:count], y[:count])
        if value - previous <= 1e-6 * abs(value):
            return value


Answer = tuple[str, int, np.ndarray]  # status, nodes, component


def transcribed(A: np.ndarray, k: int, limit: float) -> Answer:
    start = time.perf_counter()
    d = len(A)
    order = np.vstack([np.argsort(-np.abs(A), axis=1), np.argsort(-np.diagonal(A))])
    states = np.zeros((BEST_FIRST + d + 2, d), dtype=np.uint8)
    bounds = np.full(len(states), np.inf)
    support = np.zeros(k, dtype=np.int64)
    progress = np.array([-np.inf, 1.0, 0.0])
    while progress[1] > 0 and time.perf_counter() - start < limit:
        transcription(A, order, k, AT_ONCE, states, bounds, support, progress)
    x = np.zeros(d)
    x[support] = np.linalg.eigh(A[support[:, None], support])[1][:, -1]
    return "optimal" if progress[1] == 0 else "time_limit", int(progress[2]), x


def ours(A: np.ndarray, k: int, limit: float) -> Answer:
    solution = BranchAndBound().solve(A, k, limits=Limits(time=limit))
    return solution.status.value, solution.nodes, solution.x


def medians(
    methods: Sequence[Callable[[], Answer]],
) -> list[tuple[float, Answer]]:
    """Median seconds and last answer of each; the methods take turns."""
    times: list[list[float]] = [[] for _ in methods]
    answers: list[Answer] = []
    while not answers or (len(times[0]) < REPEATS and sum(map(sum, times)) < ENOUGH):
        answers = []
        for method, taken in zip(methods, times, strict=True):
            start = time.perf_counter()
            answers.append(method())
            taken.append(time.perf_counter() - start)
    return [(float(np.median(t)), a) for t, a in zip(times, answers, strict=True)]


def compare(problem: str, A: np.ndarray, k: int, limit: float) -> dict[str, Any]:
    """A row of the table; the values must agree where both are proved."""
    (mine, (status, nodes, x)), (plain, (plain_status, plain_nodes, y)) = medians(
        [lambda: ours(A, k, limit), lambda: transcribed(A, k, limit)]
    )
    value, plain_value = float(x @ A @ x), float(y @ A @ y)
    if status == plain_status == "optimal":
        assert abs(value - plain_value) <= 1e-9 * abs(value), problem
    return {
        "problem": problem,
        "d": len(A),
        "k": k,
        "status": status,
        "nodes": nodes,
        "ms": 1000 * mine,
        "rate": nodes / mine,
        "plain_status": plain_status,
        "plain_nodes": plain_nodes,
        "plain_ms": 1000 * plain,
        "plain_rate": plain_nodes / plain,
        "ratio": plain / mine,
    }


Problem = tuple[str, np.ndarray, tuple[int, ...]]


def generated() -> Iterator[Problem]:
    for d, k in RANDOM:
        yield f"planted d={d}", planted(d, k), (k,)
    for n, d, k in NOISE:
        A = np.cov(np.random.default_rng(0).normal(size=(n, d)).T)
        yield f"noise n={n}", A, (k,)


def matrices() -> Iterator[Problem]:
    for name, ks in MATRICES.items():
        # rows in order, as the kernels were compiled for
        yield name, np.ascontiguousarray(load(name)), ks


def planted(d: int, k: int) -> np.ndarray:
    """A sample covariance with one component of k features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4 * d, d))
    X[:, :k] += rng.normal(size=(4 * d, 1))
    return np.cov(X.T)


def from_data(limit: float) -> list[dict[str, Any]]:
    """The variant that forms A only where it matters; nothing to compare it with."""
    with open(DATA.parent / "oracles" / "proved_optima.csv", newline="") as file:
        optima = {
            (r["dataset"], int(r["k"])): float(r["objective"])
            for r in csv.DictReader(file)
        }
    rows = []
    for name, ks in SAMPLES.items():
        cov = Covariance.from_data(load(name))
        for k in ks:
            start = time.perf_counter()
            solver = BranchAndBound()
            solution = solver.solve_covariance(cov, k, limits=Limits(time=limit))
            taken = time.perf_counter() - start
            objective = float(solution.x @ cov.matvec(solution.x))
            assert objective <= optima[name, k] * (1 + 1e-9)
            status, nodes = solution.status.value, solution.nodes
            rows.append(
                {"data": name, "k": k, "status": status, "nodes": nodes, "s": taken}
            )
    return rows


def report(options: Options) -> Report:
    limit = QUICK_LIMIT if options.quick else LIMIT
    warm_up()
    chosen = [*generated()] if options.quick else [*generated(), *matrices()]
    rows = [compare(name, A, k, limit) for name, A, ks in chosen for k in ks]
    note = f"Time limit of a run: {limit:g} s."
    found = Report("Branch and bound", [note], seeds=[0])
    found.add("From a matrix", COLUMNS, rows)
    if not options.quick:
        found.add("From data", DATA_COLUMNS, from_data(limit))
    return found


def warm_up() -> None:
    """Compile, or load what is compiled."""
    small = np.cov(np.random.default_rng(0).normal(size=(20, 9)).T)
    ours(small, 3, 60.0)
    transcribed(small, 3, 60.0)
