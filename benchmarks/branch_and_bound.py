"""Time, nodes and nodes per second of BranchAndBound, and of a plain transcription.

    BLOCKSPCA_DATA=.../data python benchmarks/branch_and_bound.py [--limit SECONDS]

The transcription is a simplified, compiled form of the published scheme: depth first,
row sums and trace as its only bounds, branching on the largest A_jj + Σ_{i in} |A_ij|,
no power iterations in the nodes. It needs a positive semidefinite A.
It is given the optimum to start from, whose finding is not in its time.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
from numba import njit

from blockspca import Covariance
from blockspca.solvers import BranchAndBound, Limits

MATRICES = {
    "pitprops": (3, 5, 8),
    "Eisen1Cov": (3, 5, 10, 20),
    "Eisen2Cov": (5, 10, 20),
    "CovColon": (3, 5, 10, 15),
    "LymphomaCov1": (3, 5, 10, 15),
    "Reddit2000": (3, 5, 10, 15),
}
DATA = {
    "Leukemia": (3, 5, 10, 15),
    "Lymphoma2": (3, 5, 10),
    "Prostate": (3, 5, 10, 15),
}
NOISE = ((60, 40, 8), (200, 40, 8), (60, 60, 10))  # samples, features, k


@njit(cache=True, error_model="numpy")
def transcription(A, order, k, tau, budget, states, size):
    """Explore up to `budget` nodes of the stack; return its size and the nodes done."""
    d = A.shape[0]
    done = 0
    while size > 0 and done < budget:
        size -= 1
        done += 1
        state = states[size]
        n_in = 0
        n_free = 0
        for j in range(d):
            n_in += state[j] == 1
            n_free += state[j] == 0
        need = k - n_in
        if need <= 0 or n_free <= need:
            if _largest_eigenvalue_exceeds(A, state, need > 0, tau):
                return -1, done
            continue
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
        trace = 0.0
        left = need
        for q in range(d):  # the last row of `order` sorts the diagonal
            j = order[d, q]
            if state[j] == 1:
                trace += A[j, j]
            elif state[j] == 0 and left > 0:
                trace += A[j, j]
                left -= 1
        if min(highest, trace) <= tau:
            continue
        branch = -1
        best = -1.0
        for j in range(d):
            if state[j] == 0:
                pull = A[j, j]
                for i in range(d):
                    if state[i] == 1:
                        pull += abs(A[i, j])
                if pull > best:
                    branch, best = j, pull
        for j in range(d):
            states[size + 1, j] = state[j]
        states[size, branch] = 2
        states[size + 1, branch] = 1
        size += 2
    return size, done


@njit(cache=True, error_model="numpy")
def _largest_eigenvalue_exceeds(A, state, with_free, tau):
    features = np.empty(A.shape[0], np.int64)
    count = 0
    for j in range(A.shape[0]):
        if state[j] == 1 or (with_free and state[j] == 0):
            features[count] = j
            count += 1
    L = np.empty((count, count))
    for i in range(count):
        for j in range(i + 1):
            total = -A[features[i], features[j]] + (tau if i == j else 0.0)
            for q in range(j):
                total -= L[i, q] * L[j, q]
            if i == j:
                if total <= 0.0:
                    return True
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return False


def run_transcription(
    A: np.ndarray, x: np.ndarray, k: int, limit: float
) -> tuple[str, int, float]:
    start = time.perf_counter()
    tau = float(x @ A @ x) * (1 + 1e-10)
    d = len(A)
    order = np.vstack([np.argsort(-np.abs(A), axis=1), np.argsort(-np.diagonal(A))])
    states = np.zeros((d + 2, d), dtype=np.uint8)
    size, nodes = 1, 0
    while size > 0 and time.perf_counter() - start < limit:
        size, done = transcription(A, order, k, tau, 2000, states, size)
        nodes += done
    verdict = {0: "optimal", -1: "improvable"}.get(size, "time_limit")
    return verdict, nodes, time.perf_counter() - start


def report(problem: str, method: str, status: str, nodes: int, seconds: float) -> None:
    rate = f"{nodes / seconds:10.0f}"
    print(f"{problem:24s} {method:14s} {status:12s} {nodes:9d} {seconds:9.2f} {rate}")


def run(problem: str, A: np.ndarray, k: int, limit: float, plain: bool) -> None:
    start = time.perf_counter()
    solution = BranchAndBound().solve(A, k, limits=Limits(time=limit))
    seconds = time.perf_counter() - start
    report(problem, "BranchAndBound", solution.status.value, solution.nodes, seconds)
    if plain:
        report(problem, "transcription", *run_transcription(A, solution.x, k, limit))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=60.0)
    limit = parser.parse_args().limit
    folder = Path(os.environ["BLOCKSPCA_DATA"])
    with open(folder.parent / "oracles" / "proved_optima.csv", newline="") as file:
        optima = {
            (r["dataset"], int(r["k"])): float(r["objective"])
            for r in csv.DictReader(file)
        }
    small = np.cov(np.random.default_rng(0).normal(size=(20, 9)).T)
    BranchAndBound().solve(small, 3, limits=Limits())  # compile
    run_transcription(small, np.eye(9)[0], 3, 1.0)
    print(
        f"{'problem':24s} {'method':14s} {'status':12s} {'nodes':>9s} {'s':>9s} nodes/s"
    )
    for n, d, k in NOISE:
        A = np.cov(np.random.default_rng(0).normal(size=(n, d)).T)
        run(f"noise {n}x{d} k={k}", A, k, limit, plain=True)
    for name, ks in MATRICES.items():
        with np.load(folder / f"{name}.npz") as file:
            A = file["A"].astype(float)
        for k in ks:
            run(f"{name} k={k}", A, k, limit, plain=k <= 5 and len(A) < 1000)
    for name, ks in DATA.items():
        with np.load(folder / f"{name}.npz") as file:
            cov = Covariance.from_data(file["X"].astype(float))
        for k in ks:
            start = time.perf_counter()
            solver = BranchAndBound()
            solution = solver.solve_covariance(cov, k, limits=Limits(time=limit))
            seconds = time.perf_counter() - start
            objective = float(solution.x @ cov.matvec(solution.x))
            assert objective <= optima[name, k] * (1 + 1e-9)
            status = solution.status.value
            report(f"{name} k={k}", "from data", status, solution.nodes, seconds)


if __name__ == "__main__":
    main()
