"""What the direction dual fixes, and how far columns project."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockspca.bounds.direction_dual import search as dual_bound_module
from blockspca.bounds.direction_dual.ascent import Ascent
from blockspca.bounds.direction_dual.columns import DenseColumns
from blockspca.bounds.direction_dual.density import concentrated
from blockspca.bounds.direction_dual.fixing import ReducedCostFixing
from blockspca.bounds.direction_dual.node import Fixed, branches
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.bounds.direction_dual.relaxation import relax
from blockspca.bounds.direction_dual.settings import DualSettings
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from dual_problems import DATA, Optimum, covariance, proved_of_three, root_of


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from(DATA),
    k=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 30),
    share=st.sampled_from([0.7, 0.9, 0.98, 1.0]),
    deflates=st.booleans(),
)
def test_only_what_cannot_be_otherwise_is_fixed(
    kind: str, k: int, seed: int, steps: int, share: float, deflates: bool
) -> None:
    cov = covariance(kind, np.random.default_rng(seed))
    problem = make_problem(cov, k, None, short=True)
    assert problem is not None
    p = problem.columns.shape[1]
    C = problem.columns.combine(np.eye(p))
    sets = list(combinations(range(p), min(k, p)))
    # The best y of each set, and its value
    every = np.moveaxis(C[:, np.array(sets)], 1, 0)
    U, s, _ = np.linalg.svd(every, full_matrices=False)
    directions, values = U[:, :, 0], s[:, 0] ** 2
    tau = share * float(values.max())
    root = root_of(problem)
    if p <= k:
        return
    ascent = Ascent(problem, root)
    root = root.ascended(ascent.run(steps, -np.inf, Deadline(None)))
    # The root, and the parts of the sphere or the features that it is split into
    for node in [root, *branches(root)]:
        fixed_in, free = set(node.fixed_in.tolist()), set(node.free.tolist())
        better = [
            set(chosen)
            for chosen, y, value in zip(sets, directions, values, strict=True)
            if value > tau * (1 + 1e-9)
            and fixed_in <= set(chosen) <= fixed_in | free
            and all(y @ q.matrix() @ y >= 0 for q in node.sectors)
        ]
        if len(fixed_in) == k:
            continue
        ascent = Ascent(problem, node)
        target = tau if deflates else -np.inf
        if ascent.run(steps, target, Deadline(None)).bound <= target:
            assert not better
            continue
        if deflates:
            ascent.deflate(Deadline(None))
            assert not better or ascent.proved() >= tau
        found = ascent.fix_variables(tau)
        if found is None:
            assert not better
            continue
        node = node.ascended(ascent.found).fixed(found)
        fixed_in, free = set(node.fixed_in.tolist()), set(node.free.tolist())
        for chosen in better:
            assert fixed_in <= chosen <= fixed_in | free


def test_deflation_fixes_more() -> None:
    """At the best density λmax(M) is multiple: little can be put inside by it."""
    counts = np.zeros((2, 2), dtype=int)
    for seed in range(20):
        C = np.random.default_rng(seed).standard_normal((12, 40))
        C[:, :8] *= 1.5
        problem = make_problem(Covariance.from_data(C), 8, None, short=True)
        assert problem is not None
        columns = problem.columns
        start = np.argsort(-(columns.project(problem.leading[:, None])[0] ** 2))[:8]
        tau = np.linalg.eigvalsh(columns.take(start).gram(np.ones(8)))[-1]
        for deflates in (0, 1):
            node = root_of(problem)
            ascent = Ascent(problem, node)
            if ascent.run(40, tau, Deadline(None)).bound <= tau:
                continue
            assert ascent.best is not None
            best = ascent.best
            if deflates:
                before = np.linalg.eigvalsh(ascent.sum(best))[-2]
                ascent.deflate(Deadline(None))
                assert ascent.found.density is best.density
                assert ascent.deflated is not None
                after = np.linalg.eigvalsh(ascent.sum(ascent.deflated))[-2]
                assert after <= before * (1 + 1e-9)
            found = ascent.fix_variables(tau)
            assert found is not None
            node = node.ascended(ascent.found).fixed(found)
            counts[deflates] += len(node.fixed_in), 40 - len(node.free)
    assert counts[1, 0] > counts[0, 0]
    assert counts[1, 1] > counts[0, 1]


@pytest.mark.parametrize("kind", ["wide", "sparse", "offset"])
def test_fixing_is_that_of_the_eigenvalues(kind: str) -> None:
    """λmax(M − κzz' + cc') and λmax(M − κzz') by LAPACK, a little above and below t."""
    rng = np.random.default_rng(11)
    made = [0, 0]
    for _ in range(10):
        cov = covariance(kind, rng)
        problem = make_problem(cov, 3, None, short=True)
        assert problem is not None
        columns = problem.columns
        p = columns.shape[1]
        found = relax(columns, concentrated(problem.leading, 0.9), problem.multiplier)
        assert found is not None
        C = columns.combine(np.eye(p))
        Z = C.copy()
        Z[:, : found.H.shape[1]] += found.Q @ found.H
        tests = ReducedCostFixing(columns, found, found.total, 0.0, problem.leading)
        for i in range(p):
            without = found.total - found.D[i] * np.outer(Z[:, i], Z[:, i])
            inside = np.linalg.eigvalsh(without + np.outer(C[:, i], C[:, i]))[-1]
            outside = np.linalg.eigvalsh(without)[-1]
            assert not tests.can_fix_out(inside * (1 - 1e-9))[i]
            assert not tests.can_fix_in(outside * (1 - 1e-9))[i]
            made[0] += tests.can_fix_out(inside * 1.001)[i]
            made[1] += tests.can_fix_in(outside * 1.001)[i]
    assert min(made) > 5


@pytest.mark.parametrize("kind", ["wide", "sparse", "offset"])
def test_what_columns_reach_and_which_are_ruled_out(kind: str) -> None:
    """(c'y)² over y'My > θ, by sampling; λmax(M + cc') by LAPACK."""
    rng = np.random.default_rng(12)
    shorter = ruled_out = 0
    for _ in range(10):
        problem = make_problem(covariance(kind, rng), 3, None, short=True)
        assert problem is not None
        columns = problem.columns
        n, p = columns.shape
        found = relax(columns, concentrated(problem.leading, 0.9), problem.multiplier)
        assert found is not None
        C, M = columns.combine(np.eye(p)), found.total
        tests = ReducedCostFixing(columns, found, M, 0.0, problem.leading)
        values, vectors = np.linalg.eigh(M)
        for share in (0.5, 0.9, 0.99):
            theta = share * values[-1]
            largest = tests.projection_bound(columns, theta)
            shorter += (largest < 0.9 * columns.norms).sum()
            for scale in (0.01, 0.1, 1.0):
                Y = vectors[:, -1:] + scale * rng.standard_normal((n, 300))
                Y /= np.linalg.norm(Y, axis=0)
                Y = Y[:, np.einsum("ij,ij->j", Y, M @ Y) > theta]
                squares = (C.T @ Y) ** 2
                assert (squares <= largest[:, None] * (1 + 1e-9)).all()
        for i in range(p):
            top = np.linalg.eigvalsh(M + np.outer(C[:, i], C[:, i]))[-1]
            assert not tests.rules_out(columns, top * (1 - 1e-9))[i]
            ruled_out += tests.rules_out(columns, top * 1.001)[i]
    assert min(shorter, ruled_out) > 20


def test_inactive_columns_change_no_proof(
    monkeypatch: pytest.MonkeyPatch, brute_force: Optimum
) -> None:
    """Most columns turn out to be inactive after a few steps, where there are many."""
    settings = DualSettings(reduce_from_columns=3)
    fewer = []

    class Spy(Ascent):
        def fix_variables(self, tau: float) -> Fixed | None:
            fixed = super().fix_variables(tau)
            if fixed is not None and self.stopped_to_reduce:
                node = self.node.ascended(self.found).fixed(fixed)
                fewer.append(len(self.active) - node.n_active())
            return fixed

    monkeypatch.setattr(dual_bound_module, "Ascent", Spy)
    proved = proved_of_three(brute_force, range(4), (5, 14), 3.0, 300, 0.9, settings)
    assert proved == 4
    assert sum(fewer) > 1


def test_nothing_projects_anywhere_below_no_gap() -> None:
    columns = DenseColumns(np.eye(3))
    found = relax(columns, concentrated(np.eye(3)[0], 0.9), 0.5)
    assert found is not None
    tests = ReducedCostFixing(columns, found, np.eye(3), 0.0, np.eye(3)[0])
    for theta in (tests.ceiling, 2.0):
        assert (tests.projection_bound(columns, theta) == 0).all()


def test_nothing_is_fixed_by_rounding_alone() -> None:
    """With τ a few ulps above λmax the forms are nothing but rounding."""
    for seed in [830, *range(200)]:
        rng = np.random.default_rng(seed)
        X = np.outer(rng.standard_normal(4), rng.standard_normal(6))
        X += 0.1 * rng.standard_normal((4, 6))
        cov = Covariance.from_data(X, center=False)
        problem = make_problem(cov, 2, None, short=True)
        assert problem is not None
        node = root_of(problem)
        ascent = Ascent(problem, node)
        ascent.run(1, -np.inf, Deadline(None))
        assert ascent.best is not None
        M, R = ascent.sum(ascent.best), ascent.best.relaxation
        rounding, q = ascent.rounding(ascent.best), ascent.density.Q[:, 0]
        tests = ReducedCostFixing(ascent.columns, R, M, rounding, q)
        C = ascent.columns.combine(np.eye(len(ascent.active)))
        for ulps in (1, 2, 3):
            t = tests.ceiling + ulps * np.spacing(tests.ceiling)
            for i in np.flatnonzero(tests.can_fix_out(t)):
                z = C[:, i] + (R.Q @ R.H[:, i] if i < R.H.shape[1] else 0.0)
                forced = M - R.D[i] * np.outer(z, z) + np.outer(C[:, i], C[:, i])
                assert np.linalg.eigvalsh(forced)[-1] <= t


def test_ruling_out_the_features_without_a_column_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sets with them are then at or below the target: the bound cannot be less."""
    X = np.random.default_rng(5).standard_normal((8, 20))
    problem = make_problem(Covariance.from_data(X), 3, None, short=True)
    assert problem is not None
    search = dual_bound_module._Search(problem, 4.0, Deadline(None), None)
    node = replace(search.open[0][2], has_short_columns=True)

    def rules_out_the_others(self: Ascent, tau: float) -> Fixed:
        nothing = np.zeros(len(self.node.free), dtype=bool)
        return Fixed(self.bound, nothing, nothing, short_columns=True)

    monkeypatch.setattr(Ascent, "fix_variables", rules_out_the_others)
    outcome = search._work(node, 4.0, 1)
    assert not outcome.closed
    assert not outcome.node.has_short_columns
    search._take_in(outcome)
    assert search.closed_bound == 4.0
