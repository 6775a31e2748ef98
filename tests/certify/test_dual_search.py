"""The direction dual's parts and its search: sums, decisions, wedges, proofs."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import blockspca as bs
from blockspca._kernels.sparse_columns import add_gram
from blockspca.certify import density as density_module
from blockspca.certify import dual_ascent, dual_view
from blockspca.certify import dual_bound as dual_bound_module
from blockspca.certify.columns import DenseColumns, SparseColumns, sparse_columns
from blockspca.certify.density import Density, Side, concentrated
from blockspca.certify.direction_dual import direction_bound, relax
from blockspca.certify.dual_ascent import Ascent
from blockspca.certify.dual_bound import dual_bound
from blockspca.certify.dual_decisions import Decisions
from blockspca.certify.dual_frame import Frame
from blockspca.certify.dual_node import Node, branches
from blockspca.certify.dual_problem import make_problem
from blockspca.certify.dual_view import compact
from blockspca.certify.eigenvalues import eigenvalue_ceiling, is_below
from blockspca.covariance import Covariance
from blockspca.large_k import truncated_power
from blockspca.limits import Deadline

Optimum = Callable[[np.ndarray, int], float]
DATA = ("wide", "tall", "copies", "constant", "sparse", "offset", "factor", "zeros")


def data(kind: str, rng: np.random.Generator, n: int = 7, d: int = 9) -> object:
    """Return samples of a kind that has broken something, or might."""
    X = rng.standard_normal((n, d)) * rng.gamma(2.0, size=d)
    if kind == "tall":
        X = rng.standard_normal((3 * d, d)) @ rng.standard_normal((d, d))
    elif kind == "copies":
        X[:, 3:6] = X[:, :3]
        X[:, 6] = -X[:, 0]
    elif kind == "constant":
        X[:, [1, 4]] = 2.0
    elif kind == "sparse":
        X = X * (rng.random((n, d)) < 0.4)
        X[0] += 0.1  # no constant columns
        return sp.csr_array(X)
    elif kind == "offset":
        return sp.csr_array(X + 50.0)
    elif kind == "factor":
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d)) + 0.1 * X
    elif kind == "zeros":
        X[: n - 2] = 0.0
    return X


def covariance(kind: str, rng: np.random.Generator) -> Covariance:
    return Covariance.from_data(data(kind, rng))


def random_density(n: int, r: int, rng: np.random.Generator) -> Density:
    Q = np.linalg.qr(rng.standard_normal((n, r)))[0]
    weights = np.sort(rng.gamma(1.0, size=r))[::-1] + 0.2
    rest = 0.1
    total = weights.sum() + (n - r) * rest
    return Density(Q, weights / total, rest / total)


def mean(density: Density, B: np.ndarray) -> float:
    """Return tr(XB)."""
    along = np.einsum("ij,ij->j", density.Q, B @ density.Q)
    rest = np.trace(B) - along.sum()
    return float(density.weights @ along + density.rest * rest)


@pytest.mark.parametrize("r", [1, 3, 6])
def test_the_sum_is_that_of_the_best_directions(r: int) -> None:
    rng = np.random.default_rng(r)
    n, p, penalty = 6, 15, 2.0
    C = rng.standard_normal((n, p))
    density = random_density(n, r, rng)
    X = (density.Q * density.weights) @ density.Q.T
    X += density.rest * (np.eye(n) - density.Q @ density.Q.T)
    assert np.trace(X) == pytest.approx(1.0)
    found = relax(DenseColumns(C), density, penalty)
    assert found is not None
    total, value = np.zeros((n, n)), 0.0
    for i in range(p):
        c = C[:, i]
        norm = c @ c
        if norm <= penalty:
            assert found.D[i] == found.mu[i] == found.shares[i] == 0
            continue
        mu = found.mu[i]
        z = np.linalg.solve(mu * np.eye(n) + penalty * X, c)
        assert c @ X @ z == pytest.approx(1.0, rel=1e-6)
        z /= np.linalg.norm(z)
        kappa = penalty * (norm - penalty) / (penalty - norm + (c @ z) ** 2)
        total += kappa * np.outer(z, z)
        value += mu
        assert mu == pytest.approx(kappa * z @ X @ z, rel=1e-5)
    np.testing.assert_allclose(found.total, total, rtol=1e-6, atol=1e-8)
    assert np.trace(found.total @ X) == pytest.approx(value, rel=1e-5)
    assert np.trace(total) <= found.size
    again = relax(DenseColumns(C), density, penalty, before=found)
    assert again is not None
    np.testing.assert_allclose(again.total, found.total, rtol=1e-5, atol=1e-6)
    assert relax(DenseColumns(C), density, penalty, deadline=Deadline(0.0)) is None


def test_sparse_columns_are_dense_ones() -> None:
    rng = np.random.default_rng(1)
    X = sp.random_array((12, 20), density=0.3, rng=rng).tocsc()
    factor = rng.gamma(2.0, size=20)
    mean = np.asarray(X.mean(axis=0)).ravel()
    index = np.array([3, 1, 17, 8, 9])
    C = ((X.toarray() - mean) * factor)[:, index]
    dense = DenseColumns(C)
    sparse = sparse_columns(X, mean, factor, index, dense.norms)
    Q, S = rng.standard_normal((12, 3)), rng.standard_normal((12, 12))
    weights = np.array([0.5, 0.0, 2.0, 1.0, 3.0])
    pairs = [(dense, sparse), (dense.take([4, 0]), sparse.take([4, 0]))]
    for one, other in [*pairs, (dense.head(3), sparse.head(3))]:
        assert one.shape == other.shape
        p = one.shape[1]
        np.testing.assert_allclose(one.project(Q), other.project(Q), atol=1e-12)
        W = rng.standard_normal((p, 2))
        np.testing.assert_allclose(one.combine(W), other.combine(W), atol=1e-12)
        gram = one.gram(weights[:p])
        np.testing.assert_allclose(gram, other.gram(weights[:p]), atol=1e-12)
        np.testing.assert_allclose(gram, (one.C * weights[:p]) @ one.C.T, atol=1e-12)
        np.testing.assert_allclose(one.forms(S + S.T), other.forms(S + S.T), atol=1e-12)
        assert (other.sizes >= one.sizes * (1 - 1e-12)).all()
    assert np.shares_memory(sparse.head(2).Y.data, sparse.Y.data)


def test_a_sparse_sum_is_the_dense_one_tile_by_tile() -> None:
    rng = np.random.default_rng(4)
    Y = sp.random_array((70, 9), density=0.3, format="csc", rng=rng)
    Y.indptr, Y.indices = Y.indptr.astype(np.int32), Y.indices.astype(np.int32)
    Y.sort_indices()
    weights, shift = rng.random(9) * ([1, 1, 0] * 3), rng.standard_normal(70)
    expected = (Y.toarray() * weights) @ Y.toarray().T - np.add.outer(shift, shift)
    for gram in (add_gram, add_gram.py_func):
        total = np.zeros((70, 70))
        gram(Y.indptr, Y.indices, Y.data, weights, shift, total)
        np.testing.assert_allclose(total, expected, atol=1e-12)


def test_sparse_data_stay_sparse_unless_their_means_are_large() -> None:
    rng = np.random.default_rng(2)
    X = sp.random_array((15, 40), density=0.2, rng=rng).tolil()
    X[0, :] = 1.0
    cov = Covariance.from_data(X.tocsr())
    problem = make_problem(cov, 3, None, None, short=True)
    assert problem is not None
    assert isinstance(problem.columns, SparseColumns)
    with pytest.warns(UserWarning, match="means that are large"):
        cov = Covariance.from_data(sp.csr_array(X.toarray() + 1e5))
    problem = make_problem(cov, 3, None, None, short=True)
    assert problem is not None
    assert isinstance(problem.columns, DenseColumns)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(DATA),
    k=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    exponent=st.sampled_from([0, 140, -140]),
)
def test_the_search_proves_the_optimum(
    kind: str, k: int, seed: int, exponent: int, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(seed)
    X = data(kind, rng)
    cov = Covariance.from_data(X * 2.0 ** (exponent / 2))
    A = cov.submatrix(slice(None))
    optimum = brute_force(A, k)
    target = optimum * (1 + 1e-8)
    bound = dual_bound(cov, k, target=target, time_limit=60, nodes=3000)
    assert optimum * (1 - 1e-12) <= bound.value
    # Means that are large cost digits, and the bound pays for them.
    assert bound.value <= target * (1 + (1e-6 if kind == "offset" else 1e-11))


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(DATA), k=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
def test_a_target_below_the_optimum_is_found_out(
    kind: str, k: int, seed: int, brute_force: Optimum
) -> None:
    cov = covariance(kind, np.random.default_rng(seed))
    A = cov.submatrix(slice(None))
    optimum = brute_force(A, k)
    for share in (0.5, 0.9, 0.999):
        bound = dual_bound(cov, k, target=share * optimum, time_limit=60, nodes=300)
        assert bound.value >= optimum * (1 - 1e-12)
        if bound.better is not None:
            within = A[np.ix_(bound.better, bound.better)]
            top = np.linalg.eigvalsh(within)[-1]
            assert len(bound.better) <= k
            assert share * optimum < top <= optimum * (1 + 1e-12)


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(DATA),
    k=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 30),
    share=st.sampled_from([0.7, 0.9, 0.98, 1.0]),
    leaning=st.booleans(),
)
def test_only_what_cannot_be_otherwise_is_decided(
    kind: str, k: int, seed: int, steps: int, share: float, leaning: bool
) -> None:
    cov = covariance(kind, np.random.default_rng(seed))
    problem = make_problem(cov, k, None, None, short=True)
    assert problem is not None
    p = problem.columns.shape[1]
    C = problem.columns.combine(np.eye(p))
    sets = list(combinations(range(p), min(k, p)))
    # The best y of each set, and its value
    best = [np.linalg.svd(C[:, chosen], full_matrices=False) for chosen in sets]
    values = np.array([s[0] ** 2 for _, s, _ in best])
    tau = share * float(values.max())
    root = Node(
        np.empty(0, np.intp),
        np.arange(p),
        concentrated(problem.leading, 0.87),
        problem.penalty,
        problem.columns.norms,
    )
    if p <= k:
        return
    Ascent(problem, root).run(steps, -np.inf, Deadline(None))
    # The root, and the parts of the sphere or the features that it is split into
    for node in [root, *branches(root)]:
        inside, undecided = set(node.inside.tolist()), set(node.undecided.tolist())
        better = [
            set(chosen)
            for chosen, (U, s, _) in zip(sets, best, strict=True)
            if s[0] ** 2 > tau * (1 + 1e-9)
            and inside <= set(chosen) <= inside | undecided
            and all(U[:, 0] @ q.matrix() @ U[:, 0] >= 0 for q in node.sides)
        ]
        if len(inside) == k:
            continue
        ascent = Ascent(problem, node)
        if ascent.run(steps, tau if leaning else -np.inf, Deadline(None)):
            assert not better
            continue
        if leaning:
            ascent.lean(Deadline(None))
            assert not better or ascent.proved() >= tau
        if ascent.decide(tau) < 0:
            assert not better
            continue
        inside, undecided = set(node.inside.tolist()), set(node.undecided.tolist())
        for chosen in better:
            assert inside <= chosen <= inside | undecided


def test_leaning_decides_more() -> None:
    """At the best density λmax(M) is multiple: little can be put inside by it."""
    counts = np.zeros((2, 2), dtype=int)
    for seed in range(20):
        C = np.random.default_rng(seed).standard_normal((12, 40))
        C[:, :8] *= 1.5
        problem = make_problem(Covariance.from_data(C), 8, None, None, short=True)
        assert problem is not None
        columns = problem.columns
        start = np.argsort(-(columns.project(problem.leading[:, None])[0] ** 2))[:8]
        tau = np.linalg.eigvalsh(columns.take(start).gram(np.ones(8)))[-1]
        for leaning in (0, 1):
            node = Node(
                np.empty(0, np.intp),
                np.arange(columns.shape[1]),
                concentrated(problem.leading, 0.87),
                problem.penalty,
                columns.norms,
            )
            ascent = Ascent(problem, node)
            if ascent.run(40, tau, Deadline(None)):
                continue
            assert ascent.best is not None
            best = ascent.best
            if leaning:
                before = np.linalg.eigvalsh(ascent.sum(best))[-2]
                ascent.lean(Deadline(None))
                assert node.density is best.density
                assert ascent.leaned is not None
                after = np.linalg.eigvalsh(ascent.sum(ascent.leaned))[-2]
                assert after <= before * (1 + 1e-9)
            ascent.decide(tau)
            counts[leaning] += len(node.inside), 40 - len(node.undecided)
    assert counts[1, 0] > counts[0, 0]
    assert counts[1, 1] > counts[0, 1]


@pytest.mark.parametrize("kind", ["wide", "sparse", "offset"])
def test_decisions_are_those_of_the_eigenvalues(kind: str) -> None:
    """λmax(M − κzz' + cc') and λmax(M − κzz') by LAPACK, a little above and below t."""
    rng = np.random.default_rng(11)
    made = [0, 0]
    for _ in range(10):
        cov = covariance(kind, rng)
        problem = make_problem(cov, 3, None, None, short=True)
        assert problem is not None
        columns = problem.columns
        p = columns.shape[1]
        found = relax(columns, concentrated(problem.leading, 0.9), problem.penalty)
        assert found is not None
        C = columns.combine(np.eye(p))
        Z = C.copy()
        Z[:, : found.H.shape[1]] += found.Q @ found.H
        decisions = Decisions(columns, found, found.total, 0.0, problem.leading)
        for i in range(p):
            without = found.total - found.D[i] * np.outer(Z[:, i], Z[:, i])
            inside = np.linalg.eigvalsh(without + np.outer(C[:, i], C[:, i]))[-1]
            outside = np.linalg.eigvalsh(without)[-1]
            assert not decisions.cannot_be_inside(inside * (1 - 1e-9))[i]
            assert not decisions.cannot_be_outside(outside * (1 - 1e-9))[i]
            made[0] += decisions.cannot_be_inside(inside * 1.001)[i]
            made[1] += decisions.cannot_be_outside(outside * 1.001)[i]
    assert min(made) > 5


@pytest.mark.parametrize("kind", ["wide", "sparse", "offset"])
def test_what_columns_reach_and_which_are_ruled_out(kind: str) -> None:
    """(c'y)² over y'My > θ, by sampling; λmax(M + cc') by LAPACK."""
    rng = np.random.default_rng(12)
    shorter = ruled_out = 0
    for _ in range(10):
        problem = make_problem(covariance(kind, rng), 3, None, None, short=True)
        assert problem is not None
        columns = problem.columns
        n, p = columns.shape
        found = relax(columns, concentrated(problem.leading, 0.9), problem.penalty)
        assert found is not None
        C, M = columns.combine(np.eye(p)), found.total
        decisions = Decisions(columns, found, M, 0.0, problem.leading)
        values, vectors = np.linalg.eigh(M)
        for share in (0.5, 0.9, 0.99):
            theta = share * values[-1]
            reach = decisions.reach(columns, theta)
            shorter += (reach < 0.9 * columns.norms).sum()
            for scale in (0.01, 0.1, 1.0):
                Y = vectors[:, -1:] + scale * rng.standard_normal((n, 300))
                Y /= np.linalg.norm(Y, axis=0)
                Y = Y[:, np.einsum("ij,ij->j", Y, M @ Y) > theta]
                squares = (C.T @ Y) ** 2
                assert (squares <= reach[:, None] * (1 + 1e-9)).all()
        for i in range(p):
            top = np.linalg.eigvalsh(M + np.outer(C[:, i], C[:, i]))[-1]
            assert not decisions.rules_out(columns, top * (1 - 1e-9))[i]
            ruled_out += decisions.rules_out(columns, top * 1.001)[i]
    assert min(shorter, ruled_out) > 20


def test_columns_out_of_play_change_no_proof(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    """Most columns are put out of play after a few steps, where there are many."""
    monkeypatch.setattr(dual_ascent, "_MANY", 3)
    fewer = []

    class Spy(Ascent):
        def decide(self, tau: float) -> int:
            before = len(self.at)
            decided = super().decide(tau)
            if decided >= 0 and self.is_interim:
                fewer.append(before - self.node.in_play())
            return decided

    monkeypatch.setattr(dual_bound_module, "Ascent", Spy)
    proved = proved_of_three(brute_force, range(15), (5, 14), 3.0, 3000, 0.9)
    assert proved == 15
    assert sum(fewer) > 5


def proved_of_three(
    brute_force: Optimum,
    seeds: range,
    shape: tuple[int, int],
    common: float = 2.0,
    nodes: int = 300,
    share: float = 0.95,
) -> int:
    """Count the problems with k = 3 that are proved; no bound may be wrong.

    Four features have a factor in common; the first target is a share of the optimum.
    """
    proved = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal(shape) * rng.gamma(2.0, size=shape[1])
        X[:, :4] += common * rng.standard_normal((shape[0], 1))
        cov = Covariance.from_data(X)
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        for target in (share * optimum, optimum * (1 + 1e-8)):
            bound = dual_bound(cov, 3, target=target, time_limit=60, nodes=nodes)
            assert bound.value >= optimum * (1 - 1e-12)
        proved += bound.value <= target * (1 + 1e-11)
    return proved


@pytest.mark.parametrize("most_within", [0, 10_000])
def test_steps_within_a_space_prove_the_same(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, most_within: int
) -> None:
    """As where n is large, with fewer directions so that a space is a part of it."""
    monkeypatch.setattr(density_module, "_SMALL", 3)
    monkeypatch.setattr(density_module, "OTHERS", 1)
    monkeypatch.setattr(dual_ascent, "OTHERS", 1)
    monkeypatch.setattr(density_module, "_MOST", 3)
    monkeypatch.setattr(dual_ascent, "_MOST_WITHIN", most_within)
    sizes = []
    space = Density.space

    def spy(self: Density, B: np.ndarray, *others: object) -> np.ndarray | None:
        found = space(self, B, *others)
        assert found is not None
        sizes.append(found.shape)
        return found

    monkeypatch.setattr(Density, "space", spy)
    assert proved_of_three(brute_force, range(12), (20, 12)) >= 11
    assert any(s < n for n, s in sizes)


@pytest.mark.parametrize("smallest", [0, 150])
def test_columns_in_coordinates_of_their_own_prove_the_same(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum, smallest: int
) -> None:
    """As where few columns are left, with and without steps within a space."""
    monkeypatch.setattr(dual_view, "is_large", lambda n: True)
    monkeypatch.setattr(density_module, "_SMALL", smallest)
    monkeypatch.setattr(dual_view, "_SMALLER", 1.0)
    shapes = []

    class Spy(Ascent):
        def decide(self, tau: float) -> int:
            if self.view.basis is not None:
                shapes.append((len(self.view.sides), *self.view.basis.shape))
            return super().decide(tau)

    monkeypatch.setattr(dual_bound_module, "Ascent", Spy)
    assert proved_of_three(brute_force, range(12), (20, 12)) >= 11
    assert {n for _, n, _ in shapes} == {12}  # by a factorization of 20 samples
    assert any(sides and m < n for sides, n, m in shapes)


@pytest.mark.parametrize("sparse", [False, True])
def test_coordinates_of_their_own_keep_what_they_say(sparse: bool) -> None:
    """(c'y)² ≤ (r'u)² + 3e s² with u = V'y, and the like for sides, in long doubles."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((40, 9)) * rng.gamma(1.0, size=9)
        columns: DenseColumns | SparseColumns = DenseColumns(C)
        if sparse:
            Y = sp.random_array((40, 9), density=0.3, format="csc", rng=rng)
            means = Y.mean(axis=0) * 1.01
            C = Y.toarray() - means
            columns = SparseColumns(Y, means, (C**2).sum(axis=0))
        sides = [Side(*np.linalg.qr(rng.standard_normal((40, 2)))[0].T)]
        seen = compact(columns, 4, sides, 3)
        assert seen.basis is not None
        assert seen.columns.shape == (11, 9)
        assert (seen.inside.tolist(), len(seen.undecided)) == ([0, 1, 2, 3], 5)
        assert 0 < seen.error < 1e-11
        sizes = np.sort(columns.sizes)[-3:]
        assert seen.lost == pytest.approx(3 * seen.error * (sizes**2).sum())
        R = seen.columns.dense().astype(np.longdouble)
        for y in rng.standard_normal((50, 40)).astype(np.longdouble):
            y = y / np.sqrt(y @ y)
            u = seen.basis.T.astype(np.longdouble) @ y
            assert u @ u <= 1 + seen.error
            before, after = (C.T.astype(np.longdouble) @ y) ** 2, (R.T @ u) ** 2
            assert (np.abs(before - after) <= 3 * seen.error * columns.sizes**2).all()
            (old,), (new,) = sides, seen.sides
            product = (old.a @ y) * (old.b @ y)
            assert abs(product - (new.a @ u) * (new.b @ u)) <= 3 * seen.error
        C[:, 0] *= 1e-300  # of a column that is nearly nothing
        assert np.isfinite(compact(DenseColumns(C), 4, sides, 3).error)


def test_coordinates_that_are_off_cost_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a factorization loses is measured, and paid for."""
    cov = Covariance.from_data(np.diag(np.arange(1.0, 10.0)), center=False)
    optimum = float(cov.diagonal().max())
    assert dual_bound(cov, 1).value <= 1.0005 * optimum
    monkeypatch.setattr(dual_view, "is_large", lambda n: True)
    monkeypatch.setattr(dual_view, "_SMALLER", 2.0)
    factorize = np.linalg.qr

    def sloppy(A: np.ndarray, **named: str) -> tuple[np.ndarray, np.ndarray]:
        Q, R = factorize(A, **named)
        return Q, R if named else R * (1 - 1e-3)

    monkeypatch.setattr(dual_view.np.linalg, "qr", sloppy)
    assert dual_bound(cov, 1).value >= optimum


def test_an_infinite_target_gives_the_bound_of_a_step() -> None:
    assert np.isfinite(dual_bound(np.diag([3.0, 2.0, 1.0]), 2, target=np.inf).value)


@pytest.mark.parametrize("inside", [0, 5])
@pytest.mark.parametrize("leaning", [False, True])
def test_sums_within_a_space(inside: int, leaning: bool) -> None:
    """V'MV and the trace of M, from V'C alone, are those of the whole."""
    rng = np.random.default_rng(inside)
    n, p, s = 30, 40, 9
    columns = DenseColumns(rng.standard_normal((n, p)))
    chosen = DenseColumns(rng.standard_normal((n, inside))) if inside else None
    space = np.linalg.qr(rng.standard_normal((n, s)))[0]
    density = random_density(s, 3, rng)
    density = replace(density, Q=space @ density.Q, rest=0.2 * density.rest)
    side = Side(space @ rng.standard_normal(s), space @ rng.standard_normal(s))
    tilt = space @ rng.standard_normal(s) if leaning else None
    whole = Frame(columns, chosen, [side]).leaning(tilt)
    frame = whole.within(space)
    seen = density.within(space)
    assert seen.order == n
    np.testing.assert_allclose(seen.outward(space).Q, density.Q, atol=1e-12)
    penalty = 0.8 * float(np.median(columns.norms))
    found, within = (
        relax(columns, density, penalty),
        relax(frame.columns, seen, penalty),
    )
    assert found is not None
    assert within is not None
    M = found.total
    if chosen is not None:
        M = M + chosen.C @ chosen.C.T
    if tilt is not None:
        M = M - np.outer(tilt, tilt)
    total, trace = frame.sum(within)
    assert total == pytest.approx(space.T @ M @ space, rel=1e-9, abs=1e-9)
    assert trace == pytest.approx(np.trace(M))
    assert frame.sides[0].matrix() == pytest.approx(space.T @ side.matrix() @ space)
    fixed = mean(density, M - found.total)
    assert frame.fixed_mean(seen) == pytest.approx(fixed, abs=1e-12)


def test_a_bound_on_the_largest_eigenvalue_is_proved_by_cholesky() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        B = rng.standard_normal((n, n))
        B = B + B.T
        top = float(np.linalg.eigvalsh(B)[-1])
        margin = 1e-9 * float(np.abs(B).sum())
        assert is_below(B, top + margin)
        assert not is_below(B, top - margin)
        for estimate in (top, 0.9 * top, 1.1 * top, -10.0):
            ceiling = eigenvalue_ceiling(B, estimate)
            assert ceiling >= top - margin
            if estimate == top:
                assert ceiling == pytest.approx(top, rel=1e-5, abs=1e-5)
        for estimate in (np.nan, np.inf, -np.inf):
            assert eigenvalue_ceiling(B, estimate) == eigenvalue_ceiling(B)
        assert not is_below(B, np.nan)
        B[0, 0] = np.nan
        assert not is_below(B, 1e9)


@pytest.mark.filterwarnings("error")
def test_sums_without_any_direction_make_no_density_that_is_not_a_number() -> None:
    """M = cI tells no direction from another, and all of a space may vanish."""
    bound = dual_bound(np.eye(300), 5, target=1 + 1e-6, nodes=5)
    assert 1 <= bound.value <= 1 + 1e-3


def test_nothing_reaches_anywhere_below_no_gap() -> None:
    columns = DenseColumns(np.eye(3))
    found = relax(columns, concentrated(np.eye(3)[0], 0.9), 0.5)
    assert found is not None
    decisions = Decisions(columns, found, np.eye(3), 0.0, np.eye(3)[0])
    for theta in (decisions.ceiling, 2.0):
        assert (decisions.reach(columns, theta) == 0).all()


def test_nothing_is_decided_by_rounding_alone() -> None:
    """With τ a few ulps above λmax the forms are nothing but rounding."""
    for seed in [830, *range(200)]:
        rng = np.random.default_rng(seed)
        X = np.outer(rng.standard_normal(4), rng.standard_normal(6))
        X += 0.1 * rng.standard_normal((4, 6))
        cov = Covariance.from_data(X, center=False)
        problem = make_problem(cov, 2, None, None, short=True)
        assert problem is not None
        p = problem.columns.shape[1]
        node = Node(
            np.empty(0, np.intp),
            np.arange(p),
            concentrated(problem.leading, 0.87),
            problem.penalty,
            problem.columns.norms,
        )
        ascent = Ascent(problem, node)
        ascent.run(1, -np.inf, Deadline(None))
        assert ascent.best is not None
        M, R = ascent.sum(ascent.best), ascent.best.relaxation
        rounding, q = ascent.rounding(ascent.best), ascent.density.Q[:, 0]
        decisions = Decisions(ascent.columns, R, M, rounding, q)
        C = ascent.columns.combine(np.eye(len(ascent.at)))
        for ulps in (1, 2, 3):
            t = decisions.ceiling + ulps * np.spacing(decisions.ceiling)
            for i in np.flatnonzero(decisions.cannot_be_inside(t)):
                z = C[:, i] + (R.Q @ R.H[:, i] if i < R.H.shape[1] else 0.0)
                forced = M - R.D[i] * np.outer(z, z) + np.outer(C[:, i], C[:, i])
                assert np.linalg.eigvalsh(forced)[-1] <= t


def test_a_sum_of_rank_one_does_not_stop_the_search() -> None:
    """Most of a space is then where the sum is zero."""
    X = np.eye(260, 270) * np.linspace(3, 1, 270)
    cov = Covariance.from_data(X, center=False)
    largest = float(cov.diagonal().max())
    bound = dual_bound(cov, 1, start=[0], target=0.9 * largest, nodes=7)
    assert bound.value >= largest


@pytest.mark.parametrize("guess", [0.0, 1e-3, 1.0, 1e3])
def test_multipliers_are_found_from_any_guess(guess: float) -> None:
    rng = np.random.default_rng(4)
    density = random_density(8, 4, rng)
    B = rng.standard_normal((8, 8))
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    for side in (Side(Q[:, 0], Q[:, 1]), Side(Q[:, 0], -Q[:, 1])):
        _, (eta,) = density.step(B + B.T, 0.5, 1e-3, [side], [0.0])
        kept, (found,) = density.step(B + B.T, 0.5, 1e-3, [side], [guess])
        assert found == pytest.approx(eta, rel=0.02, abs=1e-3)
        assert mean(kept, side.matrix()) > -1e-3


@pytest.mark.parametrize("count", [2, 3, 5])
def test_multipliers_of_several_sides_are_the_best(count: int) -> None:
    """They minimise log tr exp(H + Σ η_q B_q), as a general method finds it."""
    fallen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 7
        density = random_density(n, n, rng)
        B = rng.standard_normal((n, n))
        B = B + B.T
        sides = [Side(*rng.standard_normal((2, n))) for _ in range(count)]
        H = (density.Q * np.log(density.weights)) @ density.Q.T + B

        def height(eta: np.ndarray, H=H, sides=sides) -> float:
            pairs = zip(eta, sides, strict=True)
            logs = np.linalg.eigvalsh(H + sum(e * side.matrix() for e, side in pairs))
            return float(logs[-1] + np.log(np.exp(logs - logs[-1]).sum()))

        start = np.zeros(count)
        best = minimize(height, start, bounds=[(0, 50)] * count, method="L-BFGS-B")
        _, eta = density.step(B, 1.0, 1e-9, sides, start)
        assert height(np.array(eta)) <= best.fun + 0.02 * max(abs(best.fun), 1.0)
        fallen += height(start) > best.fun + 0.1 * max(abs(best.fun), 1.0)
    assert fallen > 1


def test_wedges_cover_the_sphere_and_exclude_the_density() -> None:
    rng = np.random.default_rng(3)
    density = random_density(5, 3, rng)
    node = Node(np.empty(0, np.intp), np.arange(4), density, 1.0, np.ones(4))
    node.shares = np.full(4, 0.5)
    children = branches(node)
    assert len(children) == 6
    for y in rng.standard_normal((500, 5)):
        inside = [y @ child.sides[0].matrix() @ y >= 0 for child in children]
        assert any(inside)
    for child in children:
        assert mean(density, child.sides[0].matrix()) < 0
        assert mean(child.density, child.sides[0].matrix()) > -1e-3
        assert child.bound == node.bound
        assert child.multipliers == [0.0]


def test_a_narrow_density_is_split_by_a_feature() -> None:
    density = concentrated(np.eye(5)[0], 0.99)
    node = Node(np.array([7]), np.arange(4), density, 1.0, np.ones(4))
    node.shares = np.array([0.1, 0.6, 0.99, 0.0])
    without, with_it = branches(node)
    assert without.inside.tolist() == [7]
    assert with_it.inside.tolist() == [7, 1]
    assert without.undecided.tolist() == with_it.undecided.tolist() == [0, 2, 3]


@pytest.mark.parametrize("n", [8, 30])
def test_a_step_stays_on_its_side(n: int) -> None:
    rng = np.random.default_rng(4)
    density = random_density(n, 4, rng)
    B = rng.standard_normal((n, n))
    B = B @ B.T / n
    side = Side(density.Q[:, 1] - 0.3 * density.Q[:, 0], density.Q[:, 0])
    free, none = density.step(B, 0.5, 1e-3)
    assert none == []
    kept, (eta,) = density.step(B, 0.5, 1e-3, [side], [0.0])
    assert eta > 0
    assert mean(density, side.matrix()) < 0
    assert mean(kept, side.matrix()) >= -1e-3
    for found in (free, kept):
        r = len(found.weights)
        assert found.weights.sum() + (n - r) * found.rest == pytest.approx(1.0)
        np.testing.assert_allclose(found.Q.T @ found.Q, np.eye(r), atol=1e-10)
        assert found.rest >= 0.99e-3 / n


def test_an_interrupt_keeps_the_bound(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    X = np.random.default_rng(5).standard_normal((8, 12))
    cov = Covariance.from_data(X)
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    for stop in (1, 2, 5, 40):
        calls = [0]

        def interrupted(*arguments, stop=stop, calls=calls, **named):
            calls[0] += 1
            if calls[0] == stop:
                raise KeyboardInterrupt
            return relax(*arguments, **named)

        monkeypatch.setattr(dual_ascent, "relax", interrupted)
        bound = dual_bound(cov, 4, target=optimum, nodes=1000)
        assert bound.interrupted == (calls[0] == stop)
        assert bound.value >= optimum
        assert np.isfinite(bound.value) == (stop > 1)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let small problems be worked on by as many threads as asked for."""
    monkeypatch.setattr(dual_bound_module, "is_large", lambda n: True)

    def use(count: int) -> None:
        monkeypatch.setattr(dual_bound_module, "thread_count", lambda: count)

    return use


def test_threads_change_nothing_but_the_time(
    threads: Callable[[int], None], brute_force: Optimum
) -> None:
    split = 0
    for seed in range(8):
        X = np.random.default_rng(seed).standard_normal((8, 14))
        cov = Covariance.from_data(X)
        optimum = brute_force(cov.submatrix(slice(None)), 4)
        for target in (0.97 * optimum, optimum * (1 + 1e-8)):
            found = []
            for count in (1, 3):
                threads(count)
                bound = dual_bound(cov, 4, target=target, nodes=60)
                assert bound.value >= optimum * (1 - 1e-12)
                better = None if bound.better is None else bound.better.tolist()
                found.append((bound.value, bound.nodes, bound.iterations, better))
            assert found[0] == found[1]
            split += bound.nodes > 12
    assert split > 3


@pytest.mark.parametrize("raised_in", ["worker", "main"])
def test_an_interrupt_stops_all_threads(
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[int], None],
    brute_force: Optimum,
    raised_in: str,
) -> None:
    cov = Covariance.from_data(np.random.default_rng(9).standard_normal((8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    threads(2)
    after, alive = 0, threading.active_count()
    for stop in (60, 100):
        calls = itertools.count(1)

        def interrupted(*arguments, stop=stop, calls=calls, **named):
            if next(calls) == stop:
                if raised_in == "worker":
                    raise KeyboardInterrupt
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return relax(*arguments, **named)

        monkeypatch.setattr(dual_ascent, "relax", interrupted)
        bound = dual_bound(cov, 4, target=0.9 * optimum, nodes=300)
        assert bound.interrupted
        assert bound.value >= optimum
        after += next(calls) - stop
    assert after < 400  # of some thousands
    assert threading.active_count() == alive


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_node_is_lost_between_two_lines(
    count: int, request: pytest.FixtureRequest, brute_force: Optimum
) -> None:
    """Wherever Ctrl-C strikes in the search itself, the bound stays one.

    One node at a time, two, or two with threads.
    """
    if count:
        request.getfixturevalue("threads")(count)
    cov = Covariance.from_data(np.random.default_rng(9).standard_normal((8, 14)))
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if not frame.f_code.co_filename.endswith(("dual_bound.py", "dual_ascent.py")):
            return None
        lines -= event == "line"
        if lines == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    told: list[tuple[float, int, int]] = []
    for stop in [*range(1, 100), *range(100, 3000, 37)]:
        lines = stop
        sys.settrace(trace)
        try:
            bound = dual_bound(
                cov,
                4,
                target=0.9 * optimum,
                nodes=12,
                report=lambda *news: told.append(news),
            )
        except KeyboardInterrupt:  # before there was anything to interrupt
            continue
        finally:
            sys.settrace(None)
        assert bound.value >= optimum
        if not bound.interrupted:
            break
    assert all(value >= optimum for value, _, _ in told)


def test_a_direct_solve_that_is_interrupted_has_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(6).standard_normal((20, 150))
    calls = [0]

    def interrupted(*arguments, **named):
        calls[0] += 1
        if calls[0] == 30:
            raise KeyboardInterrupt
        return relax(*arguments, **named)

    monkeypatch.setattr(dual_ascent, "relax", interrupted)
    result = bs.solve(bs.Covariance.from_data(X), 120)
    assert result.status == "interrupted"
    assert result.objective <= result.upper_bound < 2 * result.objective
    assert result.bound_name == "direction dual"


def test_time_is_kept_and_the_bound_holds(brute_force: Optimum) -> None:
    X = np.random.default_rng(7).standard_normal((9, 12))
    cov = Covariance.from_data(X)
    optimum = brute_force(cov.submatrix(slice(None)), 4)
    assert dual_bound(cov, 4, time_limit=-1.0, nodes=9).value == np.inf
    assert dual_bound(cov, 4, iterations=0, nodes=9).value == np.inf
    assert dual_bound(cov, 4, target=np.inf).value >= optimum
    some = dual_bound(cov, 4, target=optimum, nodes=2)
    more = dual_bound(cov, 4, target=optimum * (1 + 1e-8), nodes=500)
    assert optimum <= more.value <= some.value
    assert more.nodes > 1


def test_features_without_a_column_stay_in_the_bound(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    """Where there is no room for all columns, the rest are not ruled out by it."""
    monkeypatch.setattr("blockspca.certify.dual_problem._ENTRIES", 40)
    rng = np.random.default_rng(8)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cov = Covariance.from_data(rng.standard_normal((8, 12)))
        problem = make_problem(cov, 3, None, None, short=True)
        assert problem is not None
        assert problem.columns.shape[1] < 12
        assert problem.floor > 0
        optimum = brute_force(cov.submatrix(slice(None)), 3)
        bound = dual_bound(cov, 3, target=0.9 * optimum, nodes=300, time_limit=20)
        assert bound.value >= optimum


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.05, 1.2),
    r=st.integers(1, 6),
)
def test_the_sum_bounds_the_optimum_at_any_density(
    k: int, seed: int, share: float, r: int, brute_force: Optimum
) -> None:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((6, 9)) * rng.gamma(1.0, size=9)
    columns = DenseColumns(C)
    penalty = share * float(columns.norms.max())
    found = relax(columns, random_density(6, r, rng), penalty)
    assert found is not None
    value = k * penalty + np.linalg.eigvalsh(found.total)[-1]
    optimum = brute_force(C.T @ C, k)
    assert value >= optimum * (1 - 1e-12)
    directions = C.copy()
    directions[:, : found.H.shape[1]] += found.Q @ found.H
    plain = direction_bound(C, k, penalty, directions)
    assert value == pytest.approx(plain, rel=1e-6)


@pytest.mark.data
def test_a_thousand_of_a_hundred_thousand_features_proved(data_dir: Path) -> None:
    X = sp.load_npz(data_dir / "Dorothea_train.npz")
    cov = bs.Covariance.from_data(X)
    result = bs.solve(cov, 1000, limits=bs.Limits(time=120))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(6.4547, abs=5e-5)
    assert bs.verify(result, cov).complete


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "k", "nodes"),
    [
        ("Dorothea_train", 150, 60),
        ("Dorothea_train", 1000, 10),
        ("Prostate_GE", 100, 200),
    ],
)
def test_few_nodes_are_enough(name: str, k: int, nodes: int, data_dir: Path) -> None:
    """If ρ swings, steps are too long, or too little is left for other directions, the
    ascent stalls and nodes are split again and again."""
    if name.startswith("Dorothea"):
        X = sp.load_npz(data_dir / f"{name}.npz")
    else:
        X = np.load(data_dir / f"{name}.npz")["X"]
    cov = Covariance.from_data(X.astype(float))
    found = np.flatnonzero(truncated_power(cov, k).x)
    objective = float(np.linalg.eigvalsh(cov.submatrix(found))[-1])
    target = objective * (1 + 1e-9)
    bound = dual_bound(cov, k, start=found, target=target, time_limit=300, nodes=nodes)
    assert objective * (1 - 1e-12) <= bound.value <= target * (1 + 1e-12)


def test_ruling_out_the_features_without_a_column_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sets with them are then at or below the target: the bound cannot be less."""
    X = np.random.default_rng(5).standard_normal((8, 20))
    problem = make_problem(Covariance.from_data(X), 3, None, None, short=True)
    assert problem is not None
    search = dual_bound_module._Search(problem, 4.0, Deadline(None), None)
    node = search.open[0][2]
    node.others = True

    def rules_out_the_others(self: Ascent, tau: float) -> int:
        self.node.others = False
        return 0

    monkeypatch.setattr(Ascent, "decide", rules_out_the_others)
    outcome = search._work(node, 4.0, 1)
    assert not outcome.closed
    search._take_in(node, outcome)
    assert search.settled == 4.0


def test_a_search_tells_its_bound() -> None:
    X = np.random.default_rng(5).standard_normal((30, 160))
    told: list[tuple[float, int, int]] = []
    bound = dual_bound(
        X.T @ X, 20, target=0.0, nodes=9, report=lambda *news: told.append(news)
    )
    values = [value for value, _, _ in told]
    assert values[-1] == bound.value < values[0]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))
    assert [nodes for _, nodes, _ in told] == sorted(nodes for _, nodes, _ in told)
    assert told[-1][1] == bound.nodes > 1


def test_a_long_solve_shows_the_bound_coming_down() -> None:
    X = np.random.default_rng(5).standard_normal((30, 160))
    events: list[bs.Event] = []
    cov = Covariance.from_data(X)
    found = bs.solve(cov, 100, limits=bs.Limits(time=3.0), progress=events.append)
    inner = [e for e in events if e.stage == "proof" and e.status is None]
    assert len(inner) > 2
    assert inner[0].upper_bound >= inner[-1].upper_bound
    assert inner[-1].upper_bound >= found.upper_bound * (1 - 1e-12)
    assert {(e.k, e.objective) for e in inner} == {(100, inner[0].objective)}


@pytest.mark.data
def test_two_hundred_of_a_hundred_thousand_features_proved(data_dir: Path) -> None:
    """The relaxation leaves 0.7 %: it takes wedges, leaning and decisions."""
    X = sp.load_npz(data_dir / "Dorothea_train.npz").astype(float)
    cov = Covariance.from_data(X)
    found = bs.solve(cov, 200, limits=bs.Limits(time=300))
    assert found.status is bs.Status.OPTIMAL
    assert found.objective == pytest.approx(3.3453894, abs=1e-7)
    assert found.bound_name == "direction dual"
    assert found.nodes > 4
    assert bs.verify(found, cov).complete
