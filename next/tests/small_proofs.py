"""Small problems, their optima by brute force, and honest proofs of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from blockspca.checker.arithmetic import Floats
from blockspca.checker.check import Rules
from blockspca.checker.entries import Floats as Entries
from blockspca.checker.problem import Claim, Problem, Proof, Vector
from blockspca.checker.records import Sets, Tree, Variance
from blockspca.checker.tree import Search
from blockspca.proof.evidence import margin


def covariance(Y, problem):
    """Return A of the page in float64, the plain way."""
    if problem.kind == "matrix":
        A = (Y + Y.T) / 2
    else:
        Z = Y - Y.mean(axis=0) if problem.center else Y
        A = Z.T @ Z / (len(Y) - problem.ddof)
        if problem.scale:
            deviation = np.sqrt(A.diagonal())
            deviation[deviation < 1e-9 * np.abs(Y).max(initial=1e-300)] = np.inf
            A = A / np.outer(deviation, deviation)
    if problem.residual:
        V = np.zeros((len(A), len(problem.residual)))
        for j, vector in enumerate(problem.residual):
            V[list(vector.support), j] = vector.x
        A = A - A @ V @ np.linalg.solve(V.T @ A @ V, V.T @ A)
    return A


def best(A, k, sets=Sets()):  # noqa: B008
    """Return opt(k), a best set and its vector, by trying all sets that count."""
    kept = [i for i in range(len(A)) if i not in sets.without]
    subsets = [
        S
        for S in itertools.combinations(kept, k)
        if set(sets.include) <= set(S)
        and all(len(set(S) & set(group)) <= most for most, group in sets.groups)
    ]
    if not subsets:
        return None
    values, vectors = np.linalg.eigh(np.array([A[np.ix_(S, S)] for S in subsets]))
    at = int(values[:, -1].argmax())
    return float(values[at, -1]), subsets[at], vectors[at, :, -1]


def honest_proof(Y, problem, k_max):
    """Return a proof of all k up to k_max: variance, then trees at the optimum."""
    A, d = covariance(Y, problem), Y.shape[1]
    matrix = Entries(Y, problem)
    claims, records, previous = [], [], -np.inf
    lowest = float(matrix.diagonal.min())
    kept = [i for i in range(d) if i not in problem.sets.without]
    scale = np.abs(A).max()
    include = list(problem.sets.include)
    kept = include + [i for i in kept[::-1] if i not in include]
    for k in range(max(1, len(include)), min(k_max, len(kept)) + 1):
        optimum = best(A, k, problem.sets)
        if optimum is None:
            break
        value, support, x = optimum
        tau = max(value + 1e-11 * scale, previous)
        upper = previous = tau + margin(k, tau, lowest, matrix.error)
        objective = value - 1e-11 * scale
        claims.append(Claim(k, Vector(support, tuple(x.tolist())), objective, upper))
        is_first = k == 1 and not include
        record = Variance(1, upper) if is_first else Tree(k, upper, tuple(kept), 0)
        records.append(record)
    proof = Proof(problem, tuple(claims), tuple(records))
    return replace(proof, records=counted(matrix, proof, kept))


def counted(matrix, proof, kept):
    """Return the records with the nodes that a plain search needs, on all features."""
    records, smaller = [], {}
    label = np.full(matrix.size, -1)
    for group, (_, features) in enumerate(proof.problem.sets.groups):
        label[[kept.index(i) for i in features if i in kept]] = group
    places = [sorted(kept).index(i) for i in kept]
    include = len(proof.problem.sets.include)
    most = [most for most, _ in proof.problem.sets.groups]
    for record in proof.records:
        if isinstance(record, Tree):
            lowest = float(matrix.diagonal.min()) - matrix.error
            block = matrix.block(np.array(places))
            if record.k == include:
                block = block[:include, :include]
            arithmetic = Floats(
                record.k, record.upper, smaller, block, lowest, matrix.error
            )
            endless = replace(record, nodes=10**6)
            search = Search(endless, arithmetic, label, most)
            search.run(include)
            record = replace(record, nodes=search.nodes)
        records.append(record)
        smaller[record.k] = record.upper
    return tuple(records)


def problems(rng, d):
    """Yield data and problems: generic ones, ties, constants, offsets, not definite."""
    n = int(rng.integers(3, 2 * d))
    X = rng.standard_normal((n, d)) * rng.uniform(0.2, 3, d)
    ties = np.round(X)
    ties[:, 1] = ties[:, 0]
    M = rng.standard_normal((d, d))
    for Y in (X, ties, X + 1e6, np.where(np.arange(d) == 1, 1.0, X)):
        for scale in (False, True):
            yield Y, Problem("data", True, scale, 1)
    yield X, Problem("data", False, False, 0)
    signs = np.sign(M + M.T)
    for A in (M + M.T, signs, np.eye(d), np.ones((d, d)), -M @ M.T, np.zeros((d, d))):
        yield A, Problem("matrix")
    yield np.kron(np.eye(d // 2 + 1), np.ones((2, 2)))[:d, :d], Problem("matrix")


__all__ = ["Rules", "best", "covariance", "honest_proof", "problems"]
