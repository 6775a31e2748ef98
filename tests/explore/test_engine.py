"""Answers are those of the library, kept, and found again without solving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.components.solve import collect
from blockspca.explore import engine as engine_module
from blockspca.explore import messages
from blockspca.explore.engine import Engine
from blockspca.explore.state import State
from blockspca.status import Status


@pytest.fixture
def engine(dataset) -> Engine:
    return Engine(dataset)


def constraints_of(state: State, dataset) -> bs.Constraints | None:
    if not state.is_constrained:
        return None
    groups = None if state.max_per_group is None else dataset.groups
    return bs.Constraints(
        include=state.include,
        exclude=state.exclude,
        groups=groups,
        max_per_group=state.max_per_group,
        nonnegative=state.nonnegative,
    )


def in_short(state: State) -> str:
    blank = vars(State())
    named = {k: v for k, v in vars(state).items() if v not in (blank[k], 600.0)}
    return " ".join(f"{k}={v}" for k, v in named.items())


def asked(**fields) -> State:
    """A state with time for its proofs on any machine."""
    return State(**{"seconds": 600.0, **fields})


STATES = [
    asked(k=1),
    asked(k=4),
    asked(k=4, scale=True),
    asked(k=3, n_components=2),
    asked(k=3, n_components=3, scheme="residual"),
    asked(k=3, n_components=2, scheme="projection"),
    asked(k=3, n_components=2, scheme="uncorrelated"),
    asked(k=3, n_components=2, scheme="orthogonal"),
    asked(k=3, n_components=2, scheme="hotelling"),
    asked(k=3, n_components=2, scheme="residual-disjoint"),
    asked(k=4, exclude=(1, 2)),
    asked(k=4, include=(9, 10)),
    asked(k=4, nonnegative=True),
    asked(k=3, max_per_group=1),
    asked(k=3, max_per_group=1, exclude=(0,), n_components=2),
    asked(k=4, include=(9,), n_components=2, scheme="residual"),
    asked(k=4, weight=1.5),
]


# Certificates prove the rest; a look at the library's own loop is for what is around.
@pytest.mark.parametrize("state", [STATES[i] for i in (1, 3, 11, 16)], ids=in_short)
def test_components_are_those_of_the_library(engine, dataset, state):
    assert engine.known(state) is None
    told = []
    answer = engine.solve(state, found=lambda part: told.append(len(part.results)))
    assert told == list(range(1, state.n_components + 1))
    expected = bs.solve_components(
        dataset.covariance(state),
        state.k,
        state.n_components,
        scheme=state.scheme,
        constraints=constraints_of(state, dataset),
    )
    for ours, theirs in zip(answer.results, expected.results, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
        assert ours.status is theirs.status
    assert answer.r2 == pytest.approx(expected.r2, rel=1e-8, nan_ok=True)
    shares = expected.explained_variance_ratio  # NaN of a contrast
    assert answer.shares == pytest.approx(shares, rel=1e-8, nan_ok=True)
    again = engine.known(state)
    assert again.results == answer.results


@pytest.mark.parametrize("state", STATES, ids=in_short)
def test_certificates_hold(engine, dataset, state):
    answer = engine.solve(state)
    found = collect(answer.cov, answer.results, answer.scheme, prove=False)
    checks = found.verify(dataset.covariance(state))
    assert all(check.complete for check in checks)


def test_a_contrast_has_no_total_variance_to_be_a_share_of(engine):
    plain = messages.summary(engine.solve(asked(k=4)), None)
    assert 0 < plain["shares"][0] <= 1
    for state in (asked(k=4, weight=0.5), asked(k=4, weight=0.5, exclude=(1,))):
        said = messages.summary(engine.solve(state), np.ones(1))
        assert said["shares"] is said["r2"] is said["pca"] is None


def test_the_path_answers_every_k_without_solving(engine, monkeypatch):
    state = asked(k=3)
    path = engine.path(state)
    assert [result.k for result in path.values()] == list(range(1, 13))
    monkeypatch.setattr(engine_module, "solve_path", None)  # would raise if called
    for k in range(1, 13):
        known = engine.known(replace(state, k=k))
        assert known.results[0].status is Status.OPTIMAL
        assert known.results[0].objective == path[k].objective


def test_one_component_needs_no_scheme(engine):
    constrained = asked(k=3, exclude=(0,), scheme="uncorrelated")
    plain = engine.solve(replace(constrained, scheme="disjoint"))
    assert engine.solve(constrained).results == plain.results
    with pytest.raises(ValueError, match="UncorrelatedScores"):
        engine.solve(replace(constrained, n_components=2))


def test_a_price_is_that_of_the_library(engine, dataset):
    state = asked(k=4, exclude=(0,))
    cost = engine.price(state, state.unconstrained())
    expected = bs.solve(
        dataset.covariance(state), 4, constraints=bs.Constraints(exclude=[0])
    ).price
    assert cost.share == pytest.approx(expected.share, rel=1e-6)
    assert cost.share > 0


def test_an_interrupted_answer_is_not_kept(engine):
    def interrupt(event):
        raise KeyboardInterrupt

    state = asked(k=4, n_components=2)
    answer = engine.solve(state, interrupt)
    assert answer.results[-1].status is Status.INTERRUPTED
    assert not answer.complete
    assert engine.known(state) is None
    assert engine.solve(state).results[-1].status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (asked(k=2, include=(0, 1, 2)), "include has 3 features for k = 2"),
        (asked(k=8, max_per_group=1), "leave room for 6"),
        (asked(k=3, include=(0,), n_components=2, scheme="disjoint"), "disjoint"),
        (asked(k=6, n_components=3, scheme="disjoint"), "disjoint supports"),
    ],
)
def test_what_cannot_be_solved_is_an_error_in_words(engine, state, said):
    with pytest.raises(ValueError, match=said):
        engine.solve(state)


def test_what_is_kept_is_bounded(engine):
    for i in range(engine_module.MAX_PROBLEMS + 3):
        engine.problem(asked(k=2, exclude=(i % 12,), weight=float(i)))
    assert len(engine._problems) == engine_module.MAX_PROBLEMS
    assert len(engine._matrices) == engine_module.MAX_MATRICES


def test_pca_is_kept(engine):
    state = asked(k=2, n_components=2)
    assert engine.known_pca(state) is None
    values = engine.pca(state)
    assert np.array_equal(engine.known_pca(state), values)
    assert len(values) == 2
