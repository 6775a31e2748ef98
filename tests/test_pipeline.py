"""Which prover runs: one decision, the same for one k and for a path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import blockspca as bs
import zoo
from blockspca import pipeline
from blockspca.blocks.power_steps import improved_by_power_steps
from blockspca.bounds.closed_form import ObviousBounds
from blockspca.certify import path as certified_path
from blockspca.certify import results
from blockspca.certify.provers import ProofOptions
from blockspca.certify.results import certified_results
from blockspca.pipeline import choose_prover
from blockspca.proof_settings import DEFAULT_SETTINGS, ProofSettings, Prover

# First rounds so short that the chain does not prove at once what is small enough here
SHORT = {"probe_nodes": 1, "first_nodes": 1, "growth_up_to": 0}


def noise(n: int, d: int) -> bs.Covariance:
    return bs.Covariance.from_data(np.random.default_rng(2).normal(size=(n, d)))


def test_the_prover_depends_on_k_and_on_what_is_asked_for() -> None:
    data = noise(10, 600)
    matrix = bs.Covariance.from_matrix(np.eye(600))
    assert data.has_columns
    assert not matrix.has_columns
    for cov, first in ((data, 30), (matrix, 30)):
        assert choose_prover(cov, first - 1, first - 1) is Prover.SINGLE_K_THEN_CHAIN
        assert choose_prover(cov, 1, first - 1) is Prover.CHAIN
        assert choose_prover(cov, first, first) is Prover.SINGLE_K_THEN_CHAIN
        assert choose_prover(cov, 1, first) is Prover.CHAIN_THEN_SINGLE_K
        assert choose_prover(cov, 501, 501) is Prover.SINGLE_K
    # where the duals of a small k take longer than its chain
    wide = noise(10, 1001)
    assert choose_prover(wide, 14, 14) is Prover.CHAIN
    assert choose_prover(wide, 14, 14, timed=True) is Prover.SINGLE_K_THEN_CHAIN
    assert choose_prover(wide, 15, 15) is Prover.SINGLE_K_THEN_CHAIN
    assert choose_prover(wide, 30, 30) is Prover.SINGLE_K_THEN_CHAIN
    early = ProofSettings(single_k_from=3)
    assert choose_prover(wide, 3, 3, early) is Prover.SINGLE_K_THEN_CHAIN


def test_constant_features_do_not_change_which_search_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """990 features of noise, 2,000 nodes, k = 12: 6.1 with the duals, 7.3 without."""
    X = np.random.default_rng(2).normal(size=(10, 990))
    padded = np.column_stack([X[:, :500], np.zeros((10, 20)), X[:, 500:]])
    asked: list[int] = []
    first = ProofSettings.first_of_chain

    def spied(self: ProofSettings, k: int, n: int, limits: bs.Limits) -> object:
        asked.append(n)
        return first(self, k, n, limits)

    monkeypatch.setattr(ProofSettings, "first_of_chain", spied)
    for scale in (False, True):
        found = []
        for data in (X, padded):
            cov = bs.Covariance.from_data(data, scale=scale, constant="ignore")
            assert cov.n_varying == 990
            assert choose_prover(cov, 5, 5) is Prover.SINGLE_K_THEN_CHAIN
            found.append(bs.solve(cov, 2, limits=bs.Limits(nodes=500)))
        one, other = found
        assert (one.status, one.nodes) == (other.status, other.nodes)
        assert one.upper_bound == pytest.approx(other.upper_bound, rel=1e-12)
    assert set(asked) == {990}
    # nothing is known of what is beside a variance of 0 in any other matrix
    assert bs.Covariance.from_matrix(np.diag([1.0, 0.0])).n_varying == 2


def test_a_small_k_that_the_chain_leaves_open_is_proved_by_the_duals() -> None:
    """Digits, k = 25: 200,000 nodes of the chain alone left 9 %."""
    X = load_digits().data
    cov = bs.Covariance.from_data(X[:, X.std(axis=0) > 0], scale=True)
    found = bs.solve(cov, 25, limits=bs.Limits(nodes=200_000))
    assert found.status is bs.Status.OPTIMAL
    assert found.bound_name == "entry dual"
    assert found.nodes < 10_000
    assert bs.verify(found, cov).complete


@pytest.mark.parametrize("shape", [(200, 300), (40, 150)])
def test_no_walk_has_proved_more_than_is_claimed(shape, monkeypatch) -> None:
    """The first walk was forgotten, and the second had a quarter of its nodes."""
    X = np.random.default_rng(2).normal(size=shape)
    cov, proved = bs.Covariance.from_data(X, scale=True), []

    def recorded(*given, **options):
        steps = certified_path.certified_path(*given, **options)
        proved.append(steps[8].upper_bound)
        return steps

    monkeypatch.setattr(results, "certified_path", recorded)
    for limits in (bs.Limits(nodes=20_000), bs.Limits(time=0.3)):
        found = bs.solve(cov, 8, limits=limits, n_jobs=1)
        assert found.upper_bound <= min(proved)
        proved.clear()


def test_the_duals_have_what_a_path_leaves_open_before_sets_are_grown() -> None:
    """Digits, k ≤ 22: two million nodes, most of them sets that grow, proved 18."""
    X = load_digits().data
    cov = bs.Covariance.from_data(X[:, X.std(axis=0) > 0], scale=True)
    path = bs.solve_path(cov, 22, limits=bs.Limits(nodes=200_000))
    assert {result.status for result in path.values()} == {bs.Status.OPTIMAL}
    assert path[20].bound_name == "entry dual"
    assert ProofSettings().duals_before_growth(10, 200)
    assert not ProofSettings().duals_before_growth(9, 200)
    assert not ProofSettings().duals_before_growth(10, 201)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The k that the prover of a single k was given."""
    given: list[int] = []
    for module in (results, certified_path):
        original = module.prove_single_k

        def counted(cov, k, *arguments, original=original):
            given.append(k)
            return original(cov, k, *arguments)

        monkeypatch.setattr(module, "prove_single_k", counted)
    return given


def test_one_k_and_the_path_use_the_same_provers(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flat noise, which the chain does not prove at once."""
    cov = noise(40, 45)
    settings = ProofSettings(single_k_from=5, local_search_up_to=4, **SHORT)
    monkeypatch.setattr(pipeline, "SETTINGS", settings)
    alone = bs.solve(cov, 6)
    assert asked == [6]
    path = bs.solve_path(cov, 6)
    assert asked == [6, 6]
    assert path[6].status is alone.status is bs.Status.OPTIMAL
    assert path[6].support.tolist() == alone.support.tolist()
    assert bs.verify(path[6], cov, max_nodes=10**5).upper_bound >= path[6].objective
    own = [step.statistics["nodes"] for step in path[6].certificate.steps]
    assert path[6].nodes == sum(own)


def test_a_k_that_the_chain_proves_is_left_to_it(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = np.exp(-np.arange(30) / 3)
    X = np.random.default_rng(0).normal(size=(20, 30)) * scales
    monkeypatch.setattr(pipeline, "SETTINGS", ProofSettings(single_k_from=3))
    path = bs.solve_path(bs.Covariance.from_data(X), 4)
    assert path[4].status is bs.Status.OPTIMAL
    assert asked == []


@pytest.mark.parametrize("number", [1, 3, 5, 7])
def test_ctrl_c_reaches_the_path_through_the_prover_of_a_single_k(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cov = noise(40, 45)
    settings = ProofSettings(single_k_from=5, **SHORT)
    monkeypatch.setattr(pipeline, "SETTINGS", settings)
    heard = []

    def interrupt(event: bs.Event) -> None:
        if event.k == 6 and event.stage == "proof":
            heard.append(event)
            if len(heard) == number:
                raise KeyboardInterrupt

    path = bs.solve_path(cov, 6, progress=interrupt)
    assert len(heard) >= number
    for k in range(1, 7):
        assert path[k].certificate.status is path[k].status
        assert path[k].objective <= path[k].upper_bound
    if path[6].gap > 1e-6:
        assert path[6].status is bs.Status.INTERRUPTED


def test_a_search_without_a_proof_claims_none() -> None:
    """It finds components; only bounds that come by the way are handed out."""
    cov = noise(40, 45)
    found = certified_results(
        cov, range(1, 9), bs.Limits(), {}, ProofOptions(prove=False)
    )
    proved = bs.solve_path(cov, 8, limits=bs.Limits(gap=0.2))
    for k in range(1, 9):
        assert found[k].status in (bs.Status.FEASIBLE, bs.Status.OPTIMAL)
        assert found[k].certificate.gap is None
        assert found[k].objective >= 0.95 * proved[k].objective
        assert found[k].upper_bound >= proved[k].objective
    assert found[8].status is bs.Status.FEASIBLE
    assert sum(found[k].certificate.steps[-1].statistics["nodes"] for k in found) < 1000


@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_without_a_proof_no_bound_is_above_the_obvious_ones(threshold: float) -> None:
    """Blocks that are not solved leave (k − 1) times what lies between them."""
    A = zoo.FAMILIES["correlation"](9, np.random.default_rng(0))
    names = set()
    for shift in (0.0, -0.5):  # of the second, which is indefinite, no trace is known
        cov = bs.Covariance.from_matrix(A + shift * np.eye(9))
        known = zoo.Reference(A + shift * np.eye(9))
        for k in range(2, 9):
            found = bs.solve(
                cov, k, threshold=threshold, solver=one_feature, certify=False
            )
            obvious, _ = ObviousBounds(cov).least(k)
            assert known.reached[k] <= found.upper_bound <= obvious
            assert found.status is bs.Status.FEASIBLE
            names.add(found.bound_name)
    assert len(names) > 1  # or nothing was clipped


def one_feature(A: np.ndarray, k: int) -> np.ndarray:
    """Return a vector that proves nothing of its block."""
    return np.eye(len(A))[0]


def test_a_path_says_where_other_provers_prove_a_single_k():
    numbers = DEFAULT_SETTINGS.single_k_from, DEFAULT_SETTINGS.chain_up_to
    for number in (*numbers, DEFAULT_SETTINGS.duals_below_up_to):
        assert f" {number} " in bs.solve_path.__doc__
    cov = bs.Covariance.from_matrix(np.eye(9))
    for k, own in ((5, Prover.SINGLE_K_THEN_CHAIN), (501, Prover.SINGLE_K)):
        assert choose_prover(cov, k, k) is own
    assert choose_prover(cov, 1, 5) is Prover.CHAIN
    assert choose_prover(cov, 1, 501) is Prover.CHAIN_THEN_SINGLE_K


def test_without_a_proof_nothing_is_done_that_the_proof_does_not_need(monkeypatch):
    """Power steps took as long again as a proof that ends in some milliseconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    X[:, :5] += 2 * rng.normal(size=(40, 1))
    easy, hard = np.cov(X.T), np.cov(rng.normal(size=(20, 300)).T)
    steps = []

    def spy(*arguments):
        steps.append(arguments)
        return improved_by_power_steps(*arguments)

    monkeypatch.setattr("blockspca.pipeline.improved_by_power_steps", spy)
    found, proved = bs.solve(easy, 5, certify=False), bs.solve(easy, 5)
    assert found.support.tolist() == proved.support.tolist()
    assert found.certificate is None
    assert found.upper_bound >= proved.upper_bound - 1e-12
    assert not steps
    assert bs.solve(hard, 12, certify=False).certificate is None
    assert len(steps) == 1


def test_from_15_on_the_duals_have_their_turn_after_few_nodes_of_the_chain():
    """The chain alone had all nodes: srbct_khan, five components of 29 features, ended
    with two of them proved and a gap of 23 %, now with four and 0.9 %."""
    limits = bs.Limits(nodes=40_000)
    first = DEFAULT_SETTINGS.first_of_chain
    for k in (15, 29):
        assert first(k, 5000, limits).nodes == DEFAULT_SETTINGS.chain_first_most
        assert first(k, 10, limits).nodes == 1000
        assert first(k, 5000, bs.Limits(time=10.0)).time == pytest.approx(2.0)
    assert first(14, 5000, limits).nodes > 39_000
    assert first(30, 5000, limits) is None
