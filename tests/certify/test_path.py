"""The certified path against brute force, its invariances, limits and bookkeeping."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify import path as module
from blockspca.certify.path import certified_path
from blockspca.certify.provers import ProofOptions
from blockspca.covariance.covariance import Covariance
from blockspca.heuristics.swap import swapped
from blockspca.numerics.blas import all_threads, single_threaded
from blockspca.numerics.linalg import vector_on
from blockspca.proof_settings import ProofSettings
from blockspca.solvers.base import Limits
from blockspca.status import OPTIMAL_GAP, Status
from zoo import EVERY_KIND, brute_force, optima
from zoo import symmetric_matrix as make


def assert_exact(steps: dict, reference: np.ndarray, scale: float) -> None:
    """Feasible, consistent and honest, whatever the status."""
    for k, step in steps.items():
        best = reference[k - 1]
        rounding = 1e-13 * max(1.0, abs(best))
        assert len(step.support) == k
        assert np.linalg.norm(step.loadings) == pytest.approx(1, abs=1e-12)
        assert step.objective / scale <= best + rounding
        assert step.upper_bound / scale >= best - rounding
        if step.status is Status.OPTIMAL:
            tolerance = 1.001 * OPTIMAL_GAP * abs(best)
            assert step.objective / scale >= best - tolerance - rounding
            assert step.upper_bound / scale <= best + 2 * tolerance + rounding


def assert_proved(
    steps: dict, scale: float, statuses: tuple[Status, ...] = (Status.OPTIMAL,)
) -> None:
    """Every status is one of these, but where the optimum is 0.

    Nothing but an equal bound is within a share of 0, and rounding forbids that.
    """
    for step in steps.values():
        is_zero = abs(step.upper_bound) <= 1e-12 * scale
        assert is_zero or step.status in statuses


def different(kind: str, seeds: range, least: int) -> Iterator[np.ndarray]:
    """Yield matrices of a kind, of up to ten features; some kinds have one a size."""
    seen = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        A = make(kind, int(rng.integers(least, 11)), rng)
        if A.tobytes() not in seen:
            seen.add(A.tobytes())
            yield A


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_equals_brute_force(kind: str) -> None:
    for A in different(kind, range(40), 1):
        d = len(A)
        scale = float(np.abs(A).max()) or 1.0
        reference = optima(A / scale)
        steps = certified_path(Covariance.from_matrix(A), d)
        assert list(steps) == list(range(1, d + 1))
        assert_proved(steps, scale)
        assert_exact(steps, reference, scale)


@pytest.mark.parametrize("first", [2, 99])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_spectral_arguments_equal_brute_force(kind: str, first: int) -> None:
    """Small k never need eigenvectors; here they are made to use them."""
    settings = ProofSettings(
        spectral_from=2,
        spectral_first=first,
        probe_nodes=1,
        many_survivors=-99,  # connected parts for all sizes
    )
    for A in different(kind, range(100, 115), 3):
        scale = float(np.abs(A).max()) or 1.0
        steps = certified_path(
            Covariance.from_matrix(A), len(A), options=ProofOptions(settings=settings)
        )
        assert_proved(steps, scale)
        assert_exact(steps, optima(A / scale), scale)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "negative"])
def test_every_value_of_d_up_to_twelve(kind: str) -> None:
    rng = np.random.default_rng(3)
    for d in range(1, 13):
        A = make(kind, d, rng)
        scale = float(np.abs(A).max()) or 1.0
        assert_exact(
            certified_path(Covariance.from_matrix(A), d), optima(A / scale), scale
        )


@pytest.mark.parametrize("gap", [0.0, 1e-6, 0.01, 0.3])
def test_a_requested_gap_is_proved(gap: float) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        kind = EVERY_KIND[seed % len(EVERY_KIND)]
        A = make(kind, int(rng.integers(2, 11)), rng)
        scale = float(np.abs(A).max()) or 1.0
        steps = certified_path(
            Covariance.from_matrix(A), len(A), limits=Limits(gap=gap)
        )
        assert_exact(steps, optima(A / scale), scale)
        assert_proved(steps, scale, (Status.OPTIMAL, Status.GAP_LIMIT))
        for step in steps.values():
            assert step.status is not Status.GAP_LIMIT or step.gap <= gap


@pytest.mark.parametrize("kind", ["psd", "indefinite", "integer", "zero diagonal"])
@pytest.mark.parametrize("gap", [None, 0.05])
def test_bounds_hold_at_every_interruption(kind: str, gap: float | None) -> None:
    rng = np.random.default_rng(7)
    A = make(kind, 12, rng)
    scale = float(np.abs(A).max())
    reference = optima(A / scale)
    cov = Covariance.from_matrix(A)
    for nodes in range(1, 60):
        steps = certified_path(cov, 12, limits=Limits(nodes=nodes, gap=gap))
        assert_exact(steps, reference, scale)
        assert sum(step.nodes for step in steps.values()) <= nodes


@pytest.mark.parametrize("after", range(0, 40, 3))
def test_ctrl_c_returns_what_is_known(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = make("psd", 12, np.random.default_rng(5))
    calls = 0
    original = module.Budget.check

    def interrupt(self: module.Budget) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(module.Budget, "check", interrupt)
    steps = certified_path(Covariance.from_matrix(A), 12)
    scale = float(np.abs(A).max())
    assert_exact(steps, optima(A / scale), scale)
    assert len(steps) == 12
    assert {s.status for s in steps.values()} <= {Status.OPTIMAL, Status.INTERRUPTED}


def test_ctrl_c_in_the_scan_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 12))
    cov = Covariance.from_data(X)

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.certify.adaptive_screening.scan", interrupted)
    steps = certified_path(cov, 4)
    assert steps[1].status is Status.OPTIMAL  # the variances need no scan
    assert all(steps[k].status is Status.INTERRUPTED for k in (2, 3, 4))
    A = np.cov(X.T)
    assert_exact(steps, optima(A), 1.0)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "block-diagonal"])
def test_invariances(kind: str) -> None:
    rng = np.random.default_rng(11)
    A = make(kind, 10, rng)
    order = rng.permutation(10)
    signs = rng.choice([-1.0, 1.0], 10)
    base = certified_path(Covariance.from_matrix(A), 10)
    same = {
        "permuted": A[np.ix_(order, order)],
        "signs": A * np.outer(signs, signs),
        "scaled": A * 2.0**40,
    }
    for name, other in same.items():
        factor = 2.0**40 if name == "scaled" else 1.0
        steps = certified_path(Covariance.from_matrix(other), 10)
        for k, step in steps.items():
            assert step.objective / factor == pytest.approx(
                base[k].objective, rel=1e-9, abs=1e-9 * np.abs(A).max()
            )
            assert step.status is Status.OPTIMAL


def test_monotone_in_k() -> None:
    A = make("psd", 40, np.random.default_rng(2))
    steps = certified_path(Covariance.from_matrix(A), 6)
    values = [step.objective for step in steps.values()]
    assert (np.diff(values) >= -1e-12 * values[-1]).all()


def test_data_and_matrix_agree() -> None:
    rng = np.random.default_rng(4)
    # More features than are scanned at first, with variances of every size.
    X = rng.standard_normal((30, 1500)) * np.exp(rng.standard_normal(1500))
    X[:, ::7] += rng.standard_normal((30, 1)) * 2
    from_data = certified_path(Covariance.from_data(X), 5)
    from_matrix = certified_path(Covariance.from_matrix(np.cov(X.T)), 5)
    for k in range(1, 6):
        assert from_data[k].status is Status.OPTIMAL
        assert from_data[k].objective == pytest.approx(from_matrix[k].objective)


def test_equal_variances_are_scanned_in_full() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 1300))
    X[:, 1200:] += 2 * rng.standard_normal((40, 1))
    cov = Covariance.from_data(X, scale=True)
    steps = certified_path(cov, 4)
    other = certified_path(Covariance.from_matrix(np.corrcoef(X.T)), 4)
    for k in range(1, 5):
        assert steps[k].status is Status.OPTIMAL
        assert steps[k].objective == pytest.approx(other[k].objective)


def test_survivors_are_what_the_inequality_leaves() -> None:
    """The recorded screening can be redone from A, τ and the previous bound alone."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((25, 60)) * np.linspace(0.2, 2, 60)
    A = np.cov(X.T)
    steps = certified_path(Covariance.from_data(X), 6).values()
    screened = [s for s in steps if s.bound_name in ("proof tree", "screening")]
    assert len(screened) >= 3  # else nothing would be checked below
    for step in screened:
        alive = np.ones(60, dtype=bool)
        while True:
            squares = np.where(alive, A**2, 0.0)
            np.fill_diagonal(squares, 0)
            r2 = -np.sort(-squares, axis=1)[:, : step.k - 1].sum(axis=1)
            margin = max(step.tau - step.upper_previous, 0)
            keep = alive & (r2 > (1 + 1e-9) * margin * (step.tau - A.diagonal()))
            if (keep == alive).all():
                break
            alive = keep
        assert set(np.flatnonzero(alive)) <= set(step.survivors.tolist())


def test_incumbents_are_used() -> None:
    A = make("psd", 12, np.random.default_rng(1))
    steps = certified_path(Covariance.from_matrix(A), 4)
    given = {4: steps[4].support, 2: [0]}
    again = certified_path(Covariance.from_matrix(A), 4, incumbents=given)
    assert again[4].objective == pytest.approx(steps[4].objective)
    assert again[2].status is Status.OPTIMAL


def noise(d: int) -> Covariance:
    rng = np.random.default_rng(0)
    return Covariance.from_matrix(np.cov(rng.standard_normal((d + 5, d)).T))


def test_serial_node_counts_repeat_and_threads_agree() -> None:
    cov = noise(60)
    one = certified_path(cov, 5)
    two = certified_path(cov, 5)
    many = certified_path(cov, 5, options=ProofOptions(n_jobs=3))
    for k in range(1, 6):
        assert one[k].nodes == two[k].nodes
        assert many[k].objective == pytest.approx(one[k].objective, rel=1e-12)
        assert many[k].status is Status.OPTIMAL


def test_threads_take_over_a_long_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    from blockspca.search import schur_tree as proof_tree

    monkeypatch.setattr(proof_tree, "_SERIAL_NODES", 3)
    cov = noise(40)
    one = certified_path(cov, 6)
    many = certified_path(cov, 6, options=ProofOptions(n_jobs=4))
    for k in range(1, 7):
        assert many[k].objective == pytest.approx(one[k].objective, rel=1e-12)
        assert many[k].status is Status.OPTIMAL


def test_time_limit_is_kept() -> None:
    cov = noise(400)
    certified_path(noise(60), 6, limits=Limits(nodes=3000))  # compile
    steps = certified_path(cov, 12, limits=Limits(time=0.5))
    assert steps[12].status is Status.TIME_LIMIT
    assert steps[12].upper_bound > steps[12].objective


def test_memory_limit_is_reported() -> None:
    steps = certified_path(noise(100), 6, limits=Limits(memory=8 * 50 * 50))
    assert steps[6].status is Status.MEMORY_LIMIT
    assert steps[6].upper_bound >= steps[6].objective


def test_progress_is_reported() -> None:
    events = []
    certified_path(noise(30), 4, options=ProofOptions(callback=events.append))
    assert [event.k for event in events][-1] == 4
    assert all(event.upper_bound >= event.objective - 1e-9 for event in events)


@pytest.mark.parametrize("k_max", [0, 99])
def test_bad_k_is_refused(k_max: int) -> None:
    with pytest.raises(ValueError, match="k_max"):
        certified_path(noise(10), k_max)


def test_variances_first_equals_brute_force() -> None:
    settings = ProofSettings(scan_all_up_to=1, first_candidates=1)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((8, 40)) * np.exp(rng.normal(0, seed / 10, 40))
        A = np.cov(X.T)
        steps = certified_path(
            Covariance.from_data(X), 3, options=ProofOptions(settings=settings)
        )
        for k, step in steps.items():
            assert step.status is Status.OPTIMAL
            assert step.objective == pytest.approx(brute_force(A, k))


def test_blocks_smaller_than_k_finish() -> None:
    rng = np.random.default_rng(0)
    A = np.zeros((200, 200))
    for i in range(0, 200, 5):
        X = rng.standard_normal((9, 5))
        A[i : i + 5, i : i + 5] = X.T @ X
    steps = certified_path(Covariance.from_matrix(A), 20)
    assert all(step.status is Status.OPTIMAL for step in steps.values())
    assert steps[20].objective == pytest.approx(np.linalg.eigvalsh(A)[-1])


@pytest.mark.parametrize("event", range(1, 9))
def test_ctrl_c_while_the_end_is_told_loses_nothing(event: int) -> None:
    A = make("psd", 7, np.random.default_rng(0))
    seen = itertools.count(1)

    def interrupt(_: object) -> None:
        if next(seen) == event:
            raise KeyboardInterrupt

    path = bs.solve_path(A, 6, progress=interrupt, limits=Limits(nodes=1))
    assert list(path) == [1, 2, 3, 4, 5, 6]
    assert all(r.upper_bound >= r.objective for r in path.values())


def test_a_set_that_alone_survives_needs_no_tree():
    """Screening leaves exactly the incumbent: the certificate holds all the same."""
    noise = 0.2 * np.random.default_rng(0).standard_normal((40, 40))
    A = 0.5 * np.eye(40) + noise + noise.T
    A[:4, :4] += np.outer([2.0, 1.8, 1.6, 1.4], [2.0, 1.8, 1.6, 1.4])
    path = bs.solve_path(A, 4)
    step = path[4].certificate.steps[-1]
    assert step.survivors == (0, 1, 2, 3) == path[4].certificate.support
    assert step.statistics["nodes"] == 0
    assert path[4].status is bs.Status.OPTIMAL
    assert bs.verify(path[4], A).complete


def test_a_better_set_than_the_extension_is_found():
    """The support of k − 1 plus one feature is not optimal: swaps still come."""
    A = np.diag(np.r_[4.0, np.ones(30)])
    A[1:4, 1:4] += 2.5
    path = bs.solve_path(A, 3)
    assert path[1].support.tolist() == [0]
    assert path[3].support.tolist() == [1, 2, 3]
    assert path[3].objective == pytest.approx(8.5)
    assert all(result.status is bs.Status.OPTIMAL for result in path.values())


@pytest.mark.slow  # those run with all threads of BLAS, the others with one
def test_blas_has_its_threads_back():
    from threadpoolctl import threadpool_info

    def threads():
        found = threadpool_info()
        return [one["num_threads"] for one in found if one["user_api"] == "blas"]

    before = threads()
    with single_threaded():
        assert set(threads()) == {1}
        with all_threads():
            assert threads() == before
    assert threads() == before


def top(A: np.ndarray, features: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(A[np.ix_(features, features)])[-1])


@pytest.mark.parametrize("n", [7, 9, 20])
def test_no_single_swap_is_better(n: int) -> None:
    """Where the support is most of the matrix, and where it is a small part of it."""
    rng = np.random.default_rng(n)
    k = 6
    for _ in range(20):
        X = rng.standard_normal((8, n))
        A = X.T @ X
        start = rng.choice(n, k, replace=False)
        support, value, _ = swapped(A, start)
        assert value == pytest.approx(top(A, support))
        assert value >= top(A, start) * (1 - 1e-12)
        assert len(set(support.tolist())) == k
        for i in range(k):
            for j in set(range(n)) - set(support.tolist()):
                other = support.copy()
                other[i] = j
                assert top(A, other) <= value * (1 + 1e-6)


def test_the_objective_is_that_of_the_matrix() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 60)) * rng.gamma(1.0, size=60) * 1e3
    A = np.cov(X.T)
    for cov in (Covariance.from_data(X), Covariance.from_matrix(A)):
        for step in certified_path(cov, 6, incumbents={4: [1, 2, 3, 4]}).values():
            x = vector_on(step.support, step.loadings, len(A))
            assert step.objective == pytest.approx(x @ A @ x, rel=1e-12)


def test_rows_are_tried_before_the_survivors_are_too_many():
    """Of a poor incumbent nearly all survive, also where memory is for few."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2000))
    for start in range(0, 2000, 50):
        loading = rng.uniform(0.5, 0.95, size=50)
        group = slice(start, start + 50)
        X[:, group] *= np.sqrt(1 - loading**2)
        X[:, group] += rng.normal(size=(50, 1)) * loading
    cov = Covariance.from_data(X, scale=True)
    path = certified_path(cov, 20, limits=Limits(memory=10**6))
    assert all(step.status is Status.OPTIMAL for step in path.values())
    assert len(np.unique(path[20].support // 50)) == 1


def is_above(A: np.ndarray, S: tuple[int, ...], level: float) -> bool:
    """Whether λmax(A_SS) > level, by the pivots of level I − A_SS, in fractions."""
    M = [[Fraction(level) * (i == j) - Fraction(A[i, j]) for j in S] for i in S]
    left = list(range(len(S)))
    while left:
        p = max(left, key=lambda i: M[i][i])
        if M[p][p] <= 0:
            return any(M[i][j] for i in left for j in left)
        left.remove(p)
        for i in left:
            share = M[i][p] / M[p][p]
            for j in left:
                M[i][j] -= share * M[p][j]
    return False


@pytest.mark.parametrize(
    "A",
    [
        # variances 1e-320 of the largest covariance, where they have four digits
        [[1.1e-20, 1e300, 0.0], [1e300, 1.3e-20, 0.0], [0.0, 0.0, 1.2e-20]],
        [[-1.5e-271, 8e270, 1.0], [8e270, -8e270, 1.0], [1.0, 1.0, -2e-271]],
        # a covariance whose square, which is all that it adds, is no number
        [[0.0, 2.4e-181], [2.4e-181, -1.25]],
        # all that counts is below the normal numbers
        [[-8e-323, 6e-323, 8e-323], [6e-323, 0.0, 8.5e-314], [8e-323, 8.5e-314, -1.0]],
        # squares that vanish beside the largest entry, and do not without it
        [[-1.0, 0.75, 8.5e270], [0.75, 8.5e270, 1.0], [8.5e270, 1.0, 1.04e271]],
    ],
)
def test_bounds_hold_where_numbers_in_units_lose_their_digits(A: list) -> None:
    matrix = np.array(A)
    d = len(matrix)
    for k, result in bs.solve_path(matrix, d).items():
        within = matrix[np.ix_(result.support, result.support)]
        x = result.x[result.support]
        assert result.objective == pytest.approx(x @ within @ x, rel=1e-9, abs=1e-322)
        enough = result.objective + 1.001e-9 * abs(result.objective)
        for S in itertools.combinations(range(d), k):
            assert not is_above(matrix, S, result.upper_bound)
            if result.status is Status.OPTIMAL:
                assert not is_above(matrix, S, enough)
        assert bs.verify(result, matrix).checks
