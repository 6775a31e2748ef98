"""After Ctrl-C, one warning says what was stopped and what is proved so far."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca import pipeline
from blockspca._messages import interruption
from blockspca.certificate import restated
from blockspca.certify import constrained
from blockspca.certify.constrained import solve_constrained
from blockspca.components.shared_search import SharedSearch
from blockspca.limits import Budget
from warned import warned

COV = np.cov(np.random.default_rng(0).normal(size=(30, 60)).T)


def stop(_event: bs.Event) -> None:
    raise KeyboardInterrupt


def test_solve_says_how_far_the_proof_has_come() -> None:
    found, said = warned(bs.solve, COV, 8, progress=stop)
    assert found.status is bs.Status.INTERRUPTED
    assert said == [interruption("solve", [found])]
    assert f"a proved gap of {found.gap:.2%}" in said[0]


def test_solve_with_constraints_warns_once() -> None:
    rules = bs.Constraints(include=[3])
    found, said = warned(bs.solve, COV, 8, progress=stop, constraints=rules)
    assert found.status is bs.Status.INTERRUPTED
    assert said == [interruption("solve", [found])]


def test_ctrl_c_in_the_problem_without_constraints_ends_the_other_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The price was stopped, and the proof under constraints began."""
    solve, asked = pipeline.solve, []

    def interrupted(*given: Any, **options: Any) -> bs.Result:
        return restated(solve(*given, **options), status=bs.Status.INTERRUPTED)

    def recorded(cov: Any, k: int, rules: Any, limits: Any, *given: Any, **named: Any):
        asked.append(limits.time)
        return solve_constrained(cov, k, rules, limits, *given, **named)

    monkeypatch.setattr(pipeline, "solve", interrupted)
    monkeypatch.setattr(constrained, "solve_constrained", recorded)
    rules = bs.Constraints(nonnegative=True)
    found, said = warned(solve, COV, 4, constraints=rules)
    assert asked == [0.0]
    assert found.status is bs.Status.INTERRUPTED
    assert (found.x >= 0).all()
    assert said == [interruption("solve", [found])]


def test_ctrl_c_in_a_search_of_shared_sets_keeps_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound of the root was all that was left."""
    monkeypatch.setattr("blockspca.components.shared_support.TREE_UP_TO", 0)
    X = np.random.default_rng(4).normal(size=(40, 20))
    cov, work, seen = bs.Covariance.from_data(X), SharedSearch._work, []

    def stopped(self: SharedSearch, node: Any) -> None:
        work(self, node)
        seen.append(node)
        if len(seen) == 30:
            raise KeyboardInterrupt

    root = bs.solve_shared(cov, 4, 2, limits=bs.Limits(nodes=1))
    best = bs.solve_shared(cov, 4, 2)
    assert best.nodes > 40
    monkeypatch.setattr(SharedSearch, "_work", stopped)
    found, said = warned(bs.solve_shared, cov, 4, 2)
    assert found.status is bs.Status.INTERRUPTED
    assert best.objective <= found.upper_bound * (1 + 1e-12)
    assert found.upper_bound < root.upper_bound
    assert len(said) == 1


def test_solve_path_counts_what_is_proved() -> None:
    path, said = warned(bs.solve_path, COV, 8, progress=stop)
    assert bs.Status.INTERRUPTED in {path[k].status for k in path}
    proved = sum(path[k].status is bs.Status.OPTIMAL for k in path)
    assert len(said) == 1
    assert said[0].startswith("solve_path was interrupted: ")
    assert f"{proved} of 8 are proved" in said[0]


def test_solve_components_counts_those_that_are_missing() -> None:
    found, said = warned(bs.solve_components, COV, 8, 3, progress=stop)
    assert found.statuses == (bs.Status.INTERRUPTED,)
    assert len(said) == 1
    assert "1 of 3 components are returned; 0 of 1 are proved" in said[0]


def test_an_estimator_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_self: Budget) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.limits.Budget.check", interrupt)
    X = np.random.default_rng(0).normal(size=(30, 80))
    _, said = warned(bs.SparsePCA(3, k=8).fit, X)
    assert len(said) == 1
    assert "Only 1 of 3 components were found" in said[0]


def interrupted_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt the second look at the limits; later ones are counted."""
    check, asked = Budget.check, []

    def interrupt(self: Budget) -> None:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        check(self)

    monkeypatch.setattr("blockspca.limits.Budget.check", interrupt)
    return asked


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_ctrl_c_ends_a_grid_search(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int | None
) -> None:
    """Each fit took it for itself, and the search went on."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    asked = interrupted_once(monkeypatch)
    X = np.random.default_rng(0).normal(size=(30, 80))
    pipeline = make_pipeline(bs.SparsePCA(2))
    search = GridSearchCV(pipeline, {"sparsepca__k": [4, 5, 6]}, cv=2, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X)
    assert len(asked) < 20  # of the first of seven fits


def test_ctrl_c_in_a_fit_of_ones_own_keeps_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sklearn.pipeline import make_pipeline

    X = np.random.default_rng(0).normal(size=(30, 80))
    for model in (bs.SparsePCA(2, k=5), make_pipeline(bs.SparsePCA(2, k=5))):
        with monkeypatch.context() as patched:
            interrupted_once(patched)
            with pytest.warns(UserWarning, match="interrupted"):
                model.fit(X)
        last = model[-1] if hasattr(model, "steps") else model
        assert "interrupted" in last.status_  # how a loop of one's own tells


def test_a_shared_path_ends_at_the_k_that_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.components.shared_support.closed_forms", interrupt)
    found, said = warned(bs.solve_shared, COV, 5, 2)
    assert found.status is bs.Status.INTERRUPTED
    assert said == [
        "solve_shared was interrupted: its best so far is returned, with "
        "no bound proved yet."
    ]
    path, said = warned(bs.solve_shared_path, COV, [5, 6, 7], 2)
    assert list(path) == [5]
    assert len(said) == 1
    assert "at k = 5," in said[0]


def test_what_is_finished_warns_of_nothing() -> None:
    assert warned(bs.solve, COV, 2)[1] == []
    assert warned(bs.solve_path, COV, 2)[1] == []
    assert warned(bs.solve_components, COV, 2, 2)[1] == []


@pytest.mark.parametrize(
    "given",
    [
        {"include": [1], "nonnegative": True},
        {"groups": np.arange(12) // 2, "whole_groups": True},
        {"overlap_with": [0, 1, 2], "min_overlap": 2},
    ],
)
def test_ctrl_c_between_two_searches_of_parts(
    monkeypatch: pytest.MonkeyPatch, given: dict
) -> None:
    """At whichever set: the result has a component that is allowed, and a bound."""
    from blockspca.certify.part_search import Run

    A = np.corrcoef(np.random.default_rng(3).normal(size=(9, 12)).T)
    A = (A + A.T) / 2
    constraints = bs.Constraints(**given)
    best = bs.solve(A, 4, constraints=constraints)
    offer = Run.offer
    for first in range(40):
        calls = 0

        def interrupt(run: Run, support: np.ndarray, first: int = first) -> float:
            nonlocal calls
            calls += 1
            if calls == first + 1:
                raise KeyboardInterrupt
            return offer(run, support)

        monkeypatch.setattr(Run, "offer", interrupt)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = bs.solve(A, 4, constraints=constraints)
        if calls <= first:
            break
        assert found.status is bs.Status.INTERRUPTED
        assert len(said) == 1
        assert found.objective <= best.upper_bound
        assert found.upper_bound >= best.objective
        assert bs.verify(found, A).complete
    assert first > 1


def test_ctrl_c_while_data_are_read_again_keeps_what_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a proof, all of a large file is read once more: that may take minutes."""
    monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(40, 12)))
    cov = bs.Covariance.from_data(np.load(tmp_path / "X.npy", mmap_mode="r"))
    expected = bs.solve(cov, 3)

    def stopped(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "blockspca.covariance.sources.MappedDataSource.check_unchanged", stopped
    )
    found, said = warned(bs.solve, cov, 3)
    assert found.status is bs.Status.INTERRUPTED
    assert found.objective == expected.objective
    assert "read again" in found.message
    assert len(said) == 1
    path, said = warned(bs.solve_path, cov, 3)
    assert len(said) == 1
    assert {path[k].status for k in path} == {bs.Status.INTERRUPTED}
    assert path[3].objective == expected.objective
