"""Results and certificates say the same, wherever Ctrl-C strikes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.certify import results
from blockspca.certify.provers import ProofOptions
from blockspca.certify.results import certified_results
from blockspca.numerics.threads import allowed_threads
from blockspca.pipeline import choose_prover
from blockspca.proof_settings import DEFAULT_SETTINGS, Prover


def interrupted_at(number: int, run: Any) -> tuple[Any, int]:
    """Run with Ctrl-C at an event; return the result and how many events there were."""
    events = 0

    def listen(event: Any) -> None:
        nonlocal events
        events += 1
        if events == number:
            raise KeyboardInterrupt

    return run(listen), events


def problems() -> list[tuple[bs.Covariance, int, bs.Limits | None]]:
    X = np.random.default_rng(0).normal(size=(25, 60)) * np.linspace(3, 0.3, 60)
    wide = np.random.default_rng(1).normal(size=(12, 1100)) * np.linspace(3, 0.1, 1100)
    noise = np.random.default_rng(2).normal(size=(40, 45))
    return [
        (bs.Covariance.from_data(X), 35, bs.Limits(gap=0.05)),  # the dual alone
        (bs.Covariance.from_data(noise), 31, bs.Limits(nodes=12)),  # dual, then chain
        (bs.Covariance.from_data(noise), 32, bs.Limits(time=0.5, nodes=12)),
        (bs.Covariance.from_data(X), 6, None),  # blocks and chain
        (bs.Covariance.from_matrix(np.cov(X.T)), 5, None),
        (bs.Covariance.from_data(wide), 4, None),  # a scan
    ]


@pytest.mark.parametrize("case", range(6))
def test_result_and_certificate_agree_after_an_interrupt(case: int) -> None:
    cov, k, limits = problems()[case]
    number, stopped = 1, 0
    while True:
        found, events = interrupted_at(
            number,
            lambda listen: bs.solve(cov, k, limits=limits, progress=listen),
        )
        certificate = found.certificate
        if certificate is not None:
            assert certificate.status is found.status
            assert certificate.upper_bound == found.upper_bound
            bs.verify(found, cov, time_limit=0.02)
        stopped += found.status is bs.Status.INTERRUPTED
        assert found.objective <= found.upper_bound
        if events < number:
            break
        number += 1 + number // 4  # each of the first four, then fewer
    assert number > 2
    assert stopped > 0


def test_the_chain_is_first_where_time_is_limited(monkeypatch) -> None:
    """It proves a block at once; where it may not, the duals have its component."""
    X = np.random.default_rng(0).normal(size=(60, 80))
    X[:, :32] += 3 * np.random.default_rng(1).normal(size=(60, 1))
    cov = bs.Covariance.from_data(X, scale=True)
    asked: list[Any] = []
    alone = results.prove_single_k

    def spy(cov: Any, k: int, limits: bs.Limits, given: Any, *rest: Any) -> Any:
        asked.append((limits.time, list(given)))
        return alone(cov, k, limits, given, *rest)

    monkeypatch.setattr(results, "prove_single_k", spy)
    found = bs.solve(cov, 32, limits=600, n_jobs=1)
    assert found.status is bs.Status.OPTIMAL
    assert asked == []
    assert bs.verify(found, cov).complete

    at_once = replace(DEFAULT_SETTINGS, chain_first_share=0.0)
    told: list[Any] = []
    limits = bs.Limits(time=600)
    options = ProofOptions(Prover.SINGLE_K_THEN_CHAIN, at_once, callback=told.append)
    with allowed_threads(1):
        only = certified_results(cov, range(32, 33), limits, {32: range(30)}, options)[
            32
        ]
    assert len(asked) == 1
    assert 590 < asked[0][0] < 600
    assert only.status is bs.Status.OPTIMAL
    assert only.support.tolist() == found.support.tolist()
    # the walk that was cut short settles nothing, and the last word is the proof
    statuses = [event.status for event in told if event.k == 32 and event.status]
    assert statuses == [bs.Status.OPTIMAL]
    assert bs.verify(only, cov).complete


def test_the_last_report_of_a_single_k_can_be_interrupted() -> None:
    """It was the result alone that heard of it, and `verify` refused the pair."""
    cov, k, limits = problems()[0]
    _, events = interrupted_at(0, lambda f: bs.solve(cov, k, limits=limits, progress=f))
    found, _ = interrupted_at(
        events, lambda f: bs.solve(cov, k, limits=limits, progress=f)
    )
    assert found.status is found.certificate.status is bs.Status.INTERRUPTED
    bs.verify(found, cov)


def test_components_and_paths_agree_as_well() -> None:
    cov, _, _ = problems()[2]
    for number in range(1, 12):
        found, _ = interrupted_at(
            number, lambda listen: bs.solve_components(cov, 4, 2, progress=listen)
        )
        path, _ = interrupted_at(
            number, lambda listen: bs.solve_path(cov, 5, progress=listen)
        )
        for result in (*found.results, *path.values()):
            if result.certificate is not None:
                assert result.certificate.status is result.status


def test_a_timed_k_that_the_chain_leaves_open_is_bounded_by_the_duals() -> None:
    """In noise the chain stands still; here it has no time at all."""
    X = np.random.default_rng(0).normal(size=(40, 60))
    cov, k = bs.Covariance.from_data(X), 12
    none = replace(DEFAULT_SETTINGS, chain_first_share_below=0.0)
    wide = bs.Limits(time=600, gap=0.3)
    timed, only = choose_prover(cov, k, k, timed=True), range(k, k + 1)
    with allowed_threads(1):
        found = certified_results(cov, only, wide, {}, ProofOptions(timed, none))[k]
    assert found.status is bs.Status.GAP_LIMIT
    assert str(found.bound_name) in ("entry dual", "direction dual")
    assert found.nodes <= 1  # of a dual's root
    bs.verify(found, cov)
    # Without a limit on time the chain decides, whatever the clock says.
    untimed = replace(wide, time=None)
    options = ProofOptions(choose_prover(cov, k, k), none)
    chained = certified_results(cov, only, untimed, {}, options)
    assert chained[k].status is bs.Status.GAP_LIMIT
    assert str(chained[k].bound_name) not in ("entry dual", "direction dual")


@pytest.mark.parametrize("off", [0.5, 2e-9, 5e-10])
@pytest.mark.parametrize("of_chain", [True, False])
def test_a_bound_below_what_the_other_prover_reaches_is_used_by_nobody(
    off: float, of_chain: bool, monkeypatch
) -> None:
    """Both ways round; within what searches leave open, 1e-9, there is no alarm."""
    X = np.random.default_rng(0).normal(size=(25, 40)) * np.linspace(3, 0.3, 40)
    cov, given = bs.Covariance.from_data(X), results.prove_single_k
    optimum = bs.solve(cov, 31).objective

    def wrong(*words: Any) -> Any:
        step = replace(given(*words), status=bs.Status.FEASIBLE)
        if of_chain:  # what it says to reach is above the chain's bound
            return replace(step, objective=optimum * (1 + off), upper_bound=np.inf)
        below = optimum * (1 - off)
        return replace(step, objective=below, upper_bound=below)

    monkeypatch.setattr(results, "prove_single_k", wrong)
    options = ProofOptions(prover=Prover.SINGLE_K_THEN_CHAIN)
    ks = range(31, 32)
    if off < 1e-9:
        found = certified_results(cov, ks, bs.Limits(), {}, options)[31]
        assert found.status is bs.Status.OPTIMAL
        return
    with pytest.warns(RuntimeWarning, match="no bound of this run is used"):
        found = certified_results(cov, ks, bs.Limits(), {}, options)[31]
    assert (found.upper_bound, found.status) == (np.inf, bs.Status.FEASIBLE)
