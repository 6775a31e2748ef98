"""Brute force: what small problems reach, for one component or several, with any rules.

Every value is a lower bound on an optimum, because it belongs to a vector or a set:
x'Ax / x'x in long doubles of the exact entries, less all that the sum may be off by.
LAPACK only proposes the vectors. Values of several components, and those under
W'x = 0, are float64 and good to about 1e-10 of the largest entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from zoo import EPS, Array, to_fractions, to_longdouble

TRIED = 3  # supports whose quotient is computed in long doubles
FINE = np.finfo(np.longdouble).eps


# -- which sets are allowed ------------------------------------------------------------


@lru_cache(maxsize=200)
def subsets(d: int, k: int) -> Array:
    """Return all k-sets of d features, one a row."""
    return np.array(list(combinations(range(d), k)), dtype=np.intp).reshape(-1, k)


@lru_cache(maxsize=2000)
def _allowed(d: int, k: int, rules: tuple[tuple[str, Any], ...]) -> Array:
    asked = dict(rules)
    include, exclude = set(asked.get("include", ())), set(asked.get("exclude", ()))
    groups, most = asked.get("groups"), asked.get("max_per_group")
    overlap = set(asked.get("overlap_with", ()))
    kept = []
    for support in subsets(d, k):
        members = set(support.tolist())
        labels = [groups[i] for i in members] if groups is not None else []
        if (
            include <= members
            and not exclude & members
            and all(labels.count(label) <= most for label in labels)
            and len(overlap & members) >= asked.get("min_overlap", 0)
        ):
            kept.append(support)
    return np.array(kept, dtype=np.intp).reshape(-1, k)


def allowed(d: int, k: int, rules: dict[str, Any] | None = None) -> Array:
    """Return the k-sets that keep the rules; a loading in them may be 0."""
    items = (rules or {}).items()
    frozen = [(key, tuple(v) if isinstance(v, list) else v) for key, v in items]
    return _allowed(d, k, tuple(sorted(frozen)))


def keeps(support: Sequence[int], d: int, k: int, rules: dict[str, Any]) -> bool:
    """Tell whether a support lies in an allowed k-set."""
    members = set(map(int, support))
    return any(members <= set(row.tolist()) for row in allowed(d, k, rules))


def renumbered(rules: dict[str, Any], order: Array) -> dict[str, Any]:
    """Return the rules for features of which number i was number order[i]."""
    position = {int(old): new for new, old in enumerate(order)}
    changed = dict(rules)
    for key in ("include", "exclude", "overlap_with"):
        if key in rules:
            changed[key] = sorted(position[i] for i in rules[key])
    if "groups" in rules:
        changed["groups"] = [rules["groups"][i] for i in order.tolist()]
    return changed


# -- one component ---------------------------------------------------------------------


def quotient_below(exact: Array, x: Array) -> float:
    """Return a float64 that is at most x'Ax / x'x."""
    used = np.flatnonzero(x)
    y = np.asarray(x, dtype=np.longdouble)[used]
    terms = exact[np.ix_(used, used)] * y * y[:, None]
    error = 8 * (terms.size + 8) * FINE * np.abs(terms).sum()
    return float_below((terms.sum() - error) / (y @ y))


def float_below(value: np.longdouble) -> float:
    rounded = float(value)
    return float(np.nextafter(rounded, -np.inf)) if rounded > value else rounded


def largest_below(exact: Array, supports: Array) -> tuple[float, Array]:
    """Return what is reached on the best of some supports, and by which x."""
    size = float(np.abs(exact).max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(size)) if size > 0 else 1.0
    A = (exact / unit).astype(np.float64)
    stack = A[supports[:, :, None], supports[:, None, :]]
    values, vectors = np.linalg.eigh(stack)
    values = values[:, -1]
    # A value is off by the norm of the block: the surest one may be another.
    sure = values - 8 * supports.shape[1] * EPS * np.abs(stack).max(axis=(1, 2))
    order = np.argsort(-values, kind="stable")[:TRIED].tolist()
    best, best_x = -np.inf, np.zeros(len(exact))
    for index in dict.fromkeys([*order, int(sure.argmax())]):
        S = supports[index]
        for x_S in (vectors[index][:, -1], _without_weights(stack[index])):
            x = np.zeros(len(exact))
            x[S] = x_S
            value = quotient_below(exact, x)
            if value > best:
                best, best_x = value, x
    return best, best_x


def _without_weights(block: Array) -> Array:
    """Return a leading vector that avoids features of large negative variance."""
    light = np.flatnonzero(np.diagonal(block) > -1e3 * max(block.max(), 0.0))
    x = np.zeros(len(block))
    if len(light):
        x[light] = np.linalg.eigh(block[np.ix_(light, light)])[1][:, -1]
    else:
        x[int(np.diagonal(block).argmax())] = 1.0
    return x


def best(
    exact: Array, k: int, rules: dict[str, Any] | None = None
) -> tuple[float, Array]:
    """Return a lower bound on opt(k) under rules, and an x that reaches it.

    opt(k) does not fall with k, so without rules smaller supports are tried too: the
    vectors of a large support with a variance of −1e14 are poor.
    """
    d, rules = len(exact), rules or {}
    if rules.get("nonnegative"):
        return _best_nonnegative(exact, k, rules)
    smaller = range(1, k + 1) if not rules else (k,)
    candidates = [allowed(d, q, rules) for q in smaller]
    return max(
        (largest_below(exact, sets) for sets in candidates if len(sets)),
        key=lambda pair: pair[0],
    )


def _best_nonnegative(
    exact: Array, k: int, rules: dict[str, Any]
) -> tuple[float, Array]:
    """Try every support T: a best x ≥ 0 is a leading vector where it is positive.

    If x is best and T is where x > 0, then x is a local maximum on the sphere of T, so
    a leading eigenvector of A_TT. A non-negative x of any T is a lower bound.
    """
    d = len(exact)
    masks = (1 << allowed(d, k, rules)).sum(axis=1)
    best_value, best_x = -np.inf, np.zeros(d)
    A = exact / np.abs(exact).max(initial=1e-300)
    for q in range(1, k + 1):
        supports = subsets(d, q)
        inside = (masks & (1 << supports).sum(axis=1)[:, None]) == (1 << supports).sum(
            axis=1
        )[:, None]
        supports = supports[inside.any(axis=1)]
        if not len(supports):
            continue
        stack = A[supports[:, :, None], supports[:, None, :]].astype(np.float64)
        vectors = np.abs(np.linalg.eigh(stack)[1][:, :, -1])
        values = np.einsum("si,sij,sj->s", vectors, stack, vectors)
        for index in np.argsort(-values, kind="stable")[:TRIED].tolist():
            x = np.zeros(d)
            x[supports[index]] = vectors[index]
            value = quotient_below(exact, x)
            if value > best_value:
                best_value, best_x = value, x
    return best_value, best_x


def values_of(exact: Array, supports: Array) -> tuple[Array, float]:
    """Return the largest eigenvalue of each support, and how far off it may be."""
    A = exact.astype(np.float64)
    values = np.linalg.eigh(A[supports[:, :, None], supports[:, None, :]])[0][:, -1]
    return values, 1e-13 * float(np.abs(A).max(initial=0.0))


# -- one set for r components ----------------------------------------------------------


def best_shared(
    exact: Array, k: int, r: int, rules: dict[str, Any] | None = None
) -> float:
    """Return a lower bound on the largest sum of r eigenvalues of a k-set."""
    sets = allowed(len(exact), k, rules)
    A = exact.astype(np.float64)
    values, vectors = np.linalg.eigh(A[sets[:, :, None], sets[:, None, :]])
    sums = values[:, -r:].sum(axis=1)
    reached = -np.inf
    for index in np.argsort(-sums, kind="stable")[:TRIED].tolist():
        S = sets[index]
        Q = _orthonormal(vectors[index][:, -r:].astype(np.longdouble))
        block = exact[np.ix_(S, S)]
        error = 64 * k**2 * r * FINE * np.abs(block).sum()
        reached = max(reached, float_below(((block @ Q) * Q).sum() - error))
    return reached


def _orthonormal(Q: Array) -> Array:
    """Return Gram-Schmidt of the columns, twice, in their own precision."""
    for _ in range(2):
        for j in range(Q.shape[1]):
            Q[:, j] -= Q[:, :j] @ (Q[:, :j].T @ Q[:, j])
            Q[:, j] /= np.sqrt(Q[:, j] @ Q[:, j])
    return Q


# -- what components leave of A --------------------------------------------------------


def residual(fractions: Array, V: Array) -> Array | None:
    """Return A − AV (V'AV)⁻¹ V'A in long doubles, computed in fractions.

    None if the scores of V are dependent, up to rounding: then A_V is not determined.
    """
    left = fractions.copy()
    for x in V:
        y = to_fractions(np.asarray(x, dtype=float))
        product = left @ y
        pivot = y @ product
        scale = y @ (np.diagonal(fractions) * y)
        if pivot <= Fraction(1, 10**6) * abs(scale):
            return None
        left = left - np.outer(product, product) / pivot
    return to_longdouble(left)


def best_conditioned(A: Array, k: int, W: Array, closed: Sequence[int] = ()) -> float:
    """Return what x reaches with k nonzeros and W x = 0 (W by rows), in float64."""
    return _conditioned(A.astype(np.float64), k, W, closed)[0]


def _conditioned(
    A: Array, k: int, W: Array, closed: Sequence[int]
) -> tuple[float, Array]:
    d = len(A)
    reached, best_x = -np.inf, np.zeros(d)
    for support in allowed(d, k, {"exclude": sorted(closed)} if len(closed) else None):
        conditions = W[:, support]
        size = np.linalg.norm(conditions, axis=1, keepdims=True)
        conditions = conditions[size[:, 0] > 0] / size[size[:, 0] > 0]
        basis = np.eye(k)
        if len(conditions):
            _, s, right = np.linalg.svd(conditions)
            rank = int((s > 1e-9 * s[0]).sum())
            basis = right[rank:].T
        if not basis.shape[1]:
            continue
        block = basis.T @ A[np.ix_(support, support)] @ basis
        values, vectors = np.linalg.eigh(block)
        if values[-1] > reached:
            reached, best_x = float(values[-1]), np.zeros(d)
            best_x[support] = basis @ vectors[:, -1]
    return reached, best_x


# -- several components together -------------------------------------------------------

#: what a set of components adds up: adjusted variances, or variances of components
#: that are disjoint or orthogonal
Kind = str


def adjusted(A: Array, V: Array) -> Array:
    """Return the variance of each score that the earlier ones do not explain."""
    G = (V @ A @ V.T).copy()
    pivots = np.zeros(len(V))
    for j in range(len(V)):
        pivots[j] = G[j, j]
        if G[j, j] > 1e-12 * abs(V[j] @ A @ V[j]):
            G = G - np.outer(G[j], G[j]) / G[j, j]
    return pivots


def total(A: Array, V: Array, kind: Kind) -> float:
    plain = kind in ("disjoint", "orthogonal")
    return float((V @ A * V).sum() if plain else adjusted(A, V).sum())


def best_joint(A: Array, ks: Sequence[int], kind: Kind, starts: int = 6) -> float:
    """Return what components with ks nonzeros reach together, by a local search.

    From several first supports, components are chosen in turn and then again, given
    all others, for as long as the sum rises.
    """
    A = A.astype(np.float64)
    firsts = allowed(len(A), ks[0])
    order = np.argsort(-values_of(A, firsts)[0], kind="stable")
    reached = -np.inf
    for index in order[:starts].tolist():
        V = np.zeros((1, len(A)))
        S = firsts[index]
        V[0, S] = np.linalg.eigh(A[np.ix_(S, S)])[1][:, -1]
        for k in ks[1:]:
            x = _next(A, V, k, kind)
            if x is None:
                break
            V = np.vstack([V, x])
        if len(V) < len(ks):
            continue
        value = total(A, V, kind)
        for _ in range(3):
            for j, k in enumerate(ks):
                x = _next(A, np.delete(V, j, axis=0), k, kind)
                if x is not None:
                    tried = np.delete(V, j, axis=0)
                    V = np.vstack([tried[:j], x, tried[j:]])
            if (new := total(A, V, kind)) <= value:
                break
            value = new
        reached = max(reached, value)
    return reached


def _next(A: Array, V: Array, k: int, kind: Kind) -> Array | None:
    """Return the best further component, given others."""
    if kind in ("disjoint", "orthogonal"):
        closed = np.flatnonzero(V.any(axis=0)).tolist() if kind == "disjoint" else ()
        x = _conditioned(A, k, V, closed)[1]
        return x if x.any() else None
    left = A
    for v in V:
        product = left @ v
        pivot = float(v @ product)
        if pivot > 1e-12 * abs(float(v @ A @ v)):
            left = left - np.outer(product, product) / pivot
    sets = allowed(len(A), k)
    values, vectors = np.linalg.eigh(left[sets[:, :, None], sets[:, None, :]])
    x = np.zeros(len(A))
    index = int(values[:, -1].argmax())
    x[sets[index]] = vectors[index][:, -1]
    return x
