"""Screening, closed forms, supports and the chain: theorems, limits, Ctrl-C."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from sklearn.datasets import load_wine

import blockspca as bs
from blockspca import Covariance, Limits, Status, solve, solve_path
from blockspca._kernels import screen as kernel
from blockspca.bounds.closed_form import average_bound, variance_bound
from blockspca.call import one_call
from blockspca.constraints.rules import FREE, Rules
from blockspca.prove import chain as chain_module
from blockspca.prove.chain import Chain
from blockspca.prove.screening import Screening, levels
from blockspca.supports import supports as supports_module
from blockspca.supports.moves import extended, swapped
from blockspca.supports.power import power_support
from blockspca.supports.supports import Supports

FAMILIES = ("data", "correlation", "indefinite", "ties", "blocks", "negative", "scale")


def matrix(family: str, seed: int, d: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(d + 3, d))
    square = G[:d] + G[:d].T
    return {
        "data": lambda: np.cov((G * rng.gamma(2.0, size=d)).T),
        "correlation": lambda: np.corrcoef(G.T),
        "indefinite": lambda: square,
        "ties": lambda: np.round(square),
        "blocks": lambda: np.kron(np.eye(3), np.ones((3, 3)))[:d, :d],
        "negative": lambda: square - 1e6 * np.diag(rng.random(d)),
        "scale": lambda: np.cov(G.T) * 2.0 ** rng.integers(-199, 195),
    }[family]()


def best(A, k) -> float:
    every = combinations(range(len(A)), k)
    return max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] for S in every)


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_are_proved_optimal(family):
    for seed in range(25):
        A = matrix(family, seed)
        size = np.abs(A).max()
        for k, result in solve_path(A, 7).items():
            optimum = best(A, k)
            assert result.upper_bound >= optimum - 1e-14 * size
            assert result.objective == pytest.approx(optimum, abs=1e-9 * size)
            assert result.status is Status.OPTIMAL or optimum == 0
            assert result.x @ A @ result.x == pytest.approx(
                result.objective, abs=1e-12 * size
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_solve_equals_the_path(family):
    A = matrix(family, 1)
    path = solve_path(A, 5)
    result = solve(A, 5)
    assert result.support.tolist() == path[5].support.tolist()
    assert result.upper_bound == path[5].upper_bound


def test_a_bound_an_ulp_away():
    # Two pairs whose values differ by one ulp of the larger.
    A = np.diag([1.0, 1, 1, 1])
    A[0, 1] = A[1, 0] = 0.5
    A[2, 3] = A[3, 2] = np.nextafter(0.5, 1)
    result = solve(A, 2)
    assert result.upper_bound >= 1 + np.nextafter(0.5, 1)
    assert result.status is Status.OPTIMAL


def test_flat_matrices_are_proved_by_strong_sets(monkeypatch):
    monkeypatch.setattr(chain_module, "SLICE", 1)
    monkeypatch.setattr(chain_module, "HEAD_START", 0)
    rng = np.random.default_rng(0)
    noise = np.triu(rng.normal(scale=0.1, size=(70, 70)), 1)
    A = np.eye(70) + noise + noise.T
    path = solve_path(A, 4)
    assert path[4].upper_bound >= best(A[:, :25][:25], 4)
    assert [path[k].status for k in path] == [Status.OPTIMAL] * 4
    assert path[4].bound.name == "subsets"
    cov = Covariance.from_matrix(A)
    assert "strong sets" in bs.verify(path[4], cov).steps[-1]
    record = path[4].bound.evidence[-1]
    with pytest.raises(bs.VerificationError, match="more than"):
        bs.verify(with_last(path[4], replace(record, nodes=20)), cov)
    low = path[4].objective * (1 - 1e-9)
    with pytest.raises(bs.VerificationError, match="may be above"):
        bs.verify(with_last(path[4], replace(record, upper=low)), cov)


def with_last(result, record):
    """Return the result with another last record, and its bound."""
    evidence = (*result.bound.evidence[:-1], record)
    return replace(result, bound=replace(result.bound, evidence=evidence))


# -- screening -------------------------------------------------------------------------


def screening(A, k_max, run, rules=FREE) -> Screening:
    return Screening(Covariance.from_matrix(A), k_max, rules, run)


@pytest.mark.parametrize("family", FAMILIES)
def test_screening_keeps_every_set_above_tau(family):
    dropped = 0
    with one_call() as run:
        for seed in range(20):
            A = matrix(family, seed)
            lists = screening(A, 6, run)
            for k in range(2, 7):
                upper, room = best(A, k - 1), 1e-9 * np.abs(A).max()
                tau = max(best(A, k) - room, upper)
                stay = set(lists.survivors(k, tau, upper).tolist())
                dropped += len(A) - len(stay)
                for S in combinations(range(len(A)), k):
                    if np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] > tau + room / 2:
                        assert set(S) <= stay
    assert dropped > 0 or family == "negative"  # λ of two is near one variance


def test_equality_in_the_inequality_of_screening():
    # r² = (τ − A_ii)(τ − upper) exactly: the feature is in no set above τ.
    A = np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
    with one_call() as run:
        lists = screening(A, 2, run)
        at, above = 3.0, np.nextafter(3.0, 4)
        assert len(lists.survivors(2, above * (1 + 1e-14), 1.0)) == 0
        assert lists.survivors(2, np.nextafter(3.0, 0), 1.0).tolist() == [0, 1]
        assert lists.level(2, 1.0) == pytest.approx(at, rel=1e-11)
        assert lists.level(2, 1.0) >= at


def test_a_root_is_never_dropped():
    A = np.diag([9.0, 8, 7, 1])
    with one_call() as run:
        lists = screening(A, 3, run, Rules(root=np.array([3])))
        assert 3 in lists.survivors(2, 8.5, 1.0)


def test_the_level_bounds_the_optimum():
    for family in FAMILIES:
        with one_call() as run:
            for seed in range(10):
                A = matrix(family, seed)
                lists = screening(A, 7, run)
                for k in range(2, 8):
                    level = lists.level(k, best(A, k - 1))
                    assert level >= best(A, k) - 1e-13 * np.abs(A).max()
    assert levels(np.zeros(1), np.zeros(1), 0.0).tolist() == [0.0]


def test_wide_raw_data_are_scanned_in_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6000)) * np.exp(rng.normal(0, 1.5, 6000))
    X[:, :3] += 300 * rng.normal(size=(30, 1))
    with one_call() as run:
        cov = Covariance.from_data(X)
        lists = Screening(cov, 3, FREE, run)
        value = np.linalg.eigvalsh(cov.submatrix([0, 1, 2]))[-1]
        pair = max(
            np.linalg.eigvalsh(cov.submatrix(list(S)))[-1]
            for S in combinations(range(3), 2)
        )
        stay = lists.survivors(3, 0.99 * value, pair)
        assert set(stay) == {0, 1, 2}
        assert lists.features is not None
        assert len(lists.features) < 3000
    assert solve(X, 3).support.tolist() == [0, 1, 2]
    assert solve(X, 3).status is Status.OPTIMAL


def test_the_kernel_of_screening_equals_its_python_function():
    rng = np.random.default_rng(3)
    A = np.corrcoef(rng.normal(size=(8, 20)).T)
    with one_call() as run:
        lists = screening(A, 6, run)
        for k, tau in [(2, 1.4), (4, 2.5), (5, 2.2)]:
            found = []
            for function in (kernel.screen, kernel.screen.py_func):
                out = np.zeros(20, dtype=np.int64)
                count = function(
                    lists.diagonal,
                    lists.values,
                    lists.indices,
                    lists._squares,
                    k,
                    tau,
                    0.9 * tau,
                    1e-12,
                    np.zeros(20, dtype=np.int64),
                    out,
                )
                found.append(out[:count].tolist())
            assert found[0] == found[1]


# -- closed forms ----------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_closed_forms_hold(family):
    for seed in range(10):
        A = matrix(family, seed)
        d, size = len(A), np.abs(A).max()
        is_psd = family in ("data", "correlation", "blocks", "scale")
        upper = np.array([0.0, *(best(A, m) for m in range(1, d))])
        for k in range(2, d):
            optimum = best(A, k) - 1e-13 * size
            assert variance_bound(A.diagonal(), k, is_psd) >= optimum
            bound, _ = average_bound(k, upper[:k], A.diagonal().min(), is_psd)
            assert bound >= optimum


def test_closed_forms_are_equalities_for_ones():
    A = np.ones((5, 5))
    assert variance_bound(A.diagonal(), 4, True) == 4
    assert average_bound(4, np.array([0, 1.0, 2, 3]), 1.0, False)[0] == 4
    assert average_bound(4, np.array([0, 1.0, 2, 3]), 1.0, True)[0] == 4
    assert variance_bound(A.diagonal(), 4, False) == math.inf


# -- supports --------------------------------------------------------------------------


def test_swaps_reach_a_set_that_no_swap_betters():
    for seed in range(10):
        A = matrix("data", seed, 9)
        S, value, x, _ = swapped(A, extended(A, np.empty(0, dtype=np.int64), 4))
        assert np.linalg.norm(x) == pytest.approx(1)
        assert value == pytest.approx(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
        for i in range(4):
            for j in set(range(9)) - set(S.tolist()):
                T = np.append(np.delete(S, i), j)
                other = np.linalg.eigvalsh(A[np.ix_(T, T)])[-1]
                assert other <= value * (1 + 1e-6)


@pytest.mark.parametrize("known_psd", [True, False])
def test_power_steps_find_a_planted_set(known_psd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300))
    planted = np.arange(100, 130)
    X[:, planted] += 1.2 * rng.normal(size=(80, 1))
    X[:, :5] *= 1.5  # features of large variance that lead elsewhere
    cov = Covariance.from_data(X)
    if not known_psd:
        A = cov.submatrix(slice(None)) - 0.2 * np.eye(300)
        cov = Covariance.from_matrix(A)
    with one_call() as run:
        support = power_support(cov, 30, np.array([110]), run)
        assert run.work > 0
    assert len(np.intersect1d(support, planted)) >= 28
    with one_call(Limits(work=0)) as run:
        assert len(power_support(cov, 30, planted[:1], run)) == 30


def test_supports_keep_rules():
    A = matrix("data", 5, 9)
    rules = Rules(
        np.array([8]), np.array([0, 0, 0, 1, 1, 1, -1, -1, -1]), np.ones(2, int)
    )
    with one_call() as run:
        found = Supports(
            Covariance.from_matrix(A), 4, rules, run, np.arange(9, dtype=np.int64)
        )
        found.find()
    for k in range(1, 5):
        features = found.best[k].features
        assert len(features) == k
        assert 8 in features
        assert (np.bincount(rules.label[features] + 1)[1:] <= 1).all()


# -- the chain -------------------------------------------------------------------------


def noise(n=30, d=60, seed=0) -> np.ndarray:
    return np.corrcoef(np.random.default_rng(seed).normal(size=(n, d)).T)


def a_chain(A, k, run) -> Chain:
    cov = Covariance.from_matrix(A)
    lists = Screening(cov, k, FREE, run)
    found = Supports(cov, k, FREE, run, np.arange(len(A), dtype=np.int64))
    found.find()
    return Chain(cov, k, FREE, lists, found, run)


def test_advance_never_loosens_a_bound(monkeypatch):
    monkeypatch.setattr(chain_module, "SLICE", 2000)
    A, k = noise(12, 14), 6
    with one_call(Limits()) as run:
        chain = a_chain(A, k, run)
        bounds = [chain.bound.value]
        pauses = 0
        while not chain.closed:
            left = chain.left
            chain.advance(1e-6)
            pauses += 1
            assert chain.left <= left
            bounds.append(chain.bound.value)
        chain.finish()
    assert pauses > 10
    assert all(b <= a for a, b in pairwise(bounds))
    assert bounds[-1] == pytest.approx(best(A, k), rel=1e-8)
    assert bounds[-1] >= best(A, k)


def test_a_chain_that_is_cut_short_has_a_bound_and_evidence(monkeypatch):
    monkeypatch.setattr(chain_module, "SLICE", 20_000)
    A = noise()
    cov = Covariance.from_matrix(A)
    before = math.inf
    for work in (0.0, 4e-4, 4e-3):
        result = solve(cov, 7, limits=Limits(work=work))
        assert result.upper_bound >= result.objective
        assert result.upper_bound <= before
        before = result.upper_bound
        bs.verify(result, cov)
        assert result.status is Status.WORK_LIMIT
        assert result.stopped is Status.WORK_LIMIT
    assert before < 7


def test_a_limit_on_time_stops_between_slices():
    import time

    A = noise(40, 150)
    solve(A[:20, :20], 3)
    started = time.perf_counter()
    result = solve(A, 12, limits=0.5)
    assert time.perf_counter() - started < 2
    assert result.status is Status.TIME_LIMIT
    assert result.objective > 1
    assert math.isfinite(result.upper_bound)


def test_a_gap_ends_the_proof():
    A = noise()
    result = solve(A, 6, limits=Limits(gap=0.2))
    assert result.gap <= 0.2
    assert result.status in (Status.GAP, Status.OPTIMAL)
    exact = solve(A, 6)
    assert exact.status is Status.OPTIMAL
    assert result.upper_bound >= exact.objective
    assert result.work < exact.work


class Press:
    """A listener that presses Ctrl-C once, at the first event of a stage."""

    def __init__(self, stage):
        self.stage, self.pressed = stage, False

    def __call__(self, event):
        if event.stage == self.stage and not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["scan", "supports", "proof"])
def test_ctrl_c_returns_the_best_so_far(stage):
    X = np.random.default_rng(0).normal(size=(40, 2500))
    press = Press(stage)
    path = solve_path(X, 12, progress=press)
    assert press.pressed
    assert path[12].status is Status.INTERRUPTED
    for k, result in path.items():
        assert len(result.support) == k
        assert result.upper_bound >= result.objective > 0
        assert result.objective >= path[max(1, k - 1)].objective


@pytest.mark.parametrize("call", range(2, 9))
@pytest.mark.parametrize("place", ["extended", "swapped", "among"])
def test_ctrl_c_inside_the_search_for_supports(monkeypatch, place, call):
    """What is half done counts as not begun."""
    owner = Rules if place == "among" else supports_module
    function, calls = getattr(owner, place), []

    def interrupted(*arguments, **options):
        calls.append(place)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    monkeypatch.setattr(owner, place, interrupted)
    A = matrix("indefinite", 1, 30)
    path = solve_path(A, 8, constraints=bs.Constraints(include=[3]))
    for k, result in path.items():
        assert len(result.support) == k
        assert result.x @ A @ result.x == pytest.approx(result.objective)
        assert bs.verify(result, Covariance.from_matrix(A))


def test_a_limit_on_memory_leaves_a_bound():
    A = noise()
    result = solve(A, 6, limits=Limits(memory=32 * 50**2))
    assert result.status is Status.MEMORY_LIMIT
    assert result.upper_bound >= solve(A, 6).objective


def test_without_a_proof_nothing_is_searched():
    A = noise()
    result = solve(A, 6, certify=False)
    proved = solve(A, 6)
    assert result.nodes == 0 < proved.nodes
    assert result.upper_bound >= proved.objective
    assert proved.objective * (1 + 1e-12) >= result.objective
    assert result.work <= proved.work
    bs.verify(result, Covariance.from_matrix(A))


def test_work_and_answer_do_not_depend_on_the_cores():
    X = np.random.default_rng(1).normal(size=(40, 300))
    results = [solve(X, 5, n_jobs=n) for n in (1, 2, 4, 1)]
    assert len({tuple(r.support.tolist()) for r in results}) == 1
    assert len({r.status for r in results}) == 1
    assert max(r.upper_bound for r in results) <= results[0].upper_bound * (1 + 1e-9)
    assert results[0].work == results[3].work


def test_a_start_is_used():
    A = noise()
    best_support = solve(A, 6).support
    result = solve(A, 6, start=best_support, limits=Limits(work=0))
    assert result.support.tolist() == best_support.tolist()
    with pytest.raises(ValueError, match="start has 7 features"):
        solve(A, 6, start=range(7))


def test_components_without_a_proof_are_good():
    correlations = np.corrcoef(load_wine().data.T)
    quick = solve_path(correlations, 6, certify=False)
    proved = solve_path(correlations, 6)
    assert quick.objectives == pytest.approx(proved.objectives)
    assert sum(result.nodes for result in quick.results) == 0


def test_a_start_has_indices_or_names():
    X = np.random.default_rng(0).normal(size=(30, 4))
    cov = Covariance.from_data(X, feature_names=["acid", "ash", "hue", "sugar"])
    by_name = solve(cov, 2, start=["ash"], limits=Limits(work=0))
    by_index = solve(cov, 2, start=[1], limits=Limits(work=0))
    assert by_name.support.tolist() == by_index.support.tolist()
    for start, words in [
        ([99], r"start has the index 99, which must be from 0 to 3"),
        ([-1], r"start has the index -1"),
        ([1.7], r"start has 1.7 and must have names or integers"),
        (5, r"start = 5 must be a list; use start=\[5\]"),
        (["ahs"], r"start has the name 'ahs', which matches no feature; use 'ash'"),
        ("ash", r"start = 'ash' must be a list"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            solve(cov, 2, start=start)
    assert solve_path(cov, 2, start=[["ash"], [0, 1]])[2].k == 2
    for start, words in [
        (5, r"start = 5 must be a list of supports"),
        ([[0], 1], r"start\[1\] = 1 must be a list"),
        ([["ash", 9]], r"start\[0\] has the index 9"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            solve_path(cov, 2, start=start)


def test_events_and_the_path_in_words():
    events = []
    path = solve_path(noise(), 3, progress=events.append)
    assert events[-1].ends_stage
    assert events[-1].stage == "proof"
    frame = path.to_frame()
    assert frame.index.tolist() == [1, 2, 3]
    assert frame["status"].tolist() == ["optimal"] * 3
    assert (path.explained == path.objectives / 60).all()
    assert "3 of 3 proved optimal" in repr(path)
    assert len(path.to_dict()["results"]) == 3
