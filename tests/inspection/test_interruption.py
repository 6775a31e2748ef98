"""After Ctrl-C what is known is returned, with one warning, and nothing is begun."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import restated
from blockspca.search.schur_tree import ProofTree
from warned import warned

A = np.corrcoef(np.random.default_rng(3).normal(size=(9, 12)).T)
FLAT = np.eye(8) + 0.01 * np.corrcoef(np.random.default_rng(0).normal(size=(9, 8)).T)


def interrupted_at(monkeypatch: Any, module: str, name: str, call: int) -> list[Any]:
    """Interrupt one of the calls of a solve; the limits of each are recorded."""
    place = importlib.import_module(f"blockspca.inspection.{module}")
    whole, asked = getattr(place, name), []

    def solve(*given: Any, **options: Any) -> bs.Result:
        asked.append(options.get("limits"))
        found = whole(*given, **options)
        if len(asked) != call:
            return found
        return restated(found, status=bs.Status.INTERRUPTED)

    monkeypatch.setattr(place, name, solve)
    return asked


def test_weights_after_the_one_that_is_stopped_are_left_out(monkeypatch) -> None:
    """Fewer weights came back, and nothing said why."""
    asked = interrupted_at(monkeypatch, "contrast_path", "solve", 2)
    path, said = warned(bs.contrastive_path, A, np.eye(12), 3, [0.1, 0.2, 0.5])
    assert list(path) == [0.1, 0.2]
    assert len(asked) == 2
    assert len(said) == 1
    assert said[0].startswith("contrastive_path was interrupted: 2 of 3 components")


@pytest.mark.parametrize("call", [1, 2])
def test_the_second_problem_is_not_begun(monkeypatch, call: int) -> None:
    """It was, with half of the time, or with all of it."""
    asked = interrupted_at(monkeypatch, "restricted_isometry", "solve", call)
    Phi = np.random.default_rng(0).normal(size=(7, 10))
    found, said = warned(bs.restricted_isometry, Phi, 3, limits=bs.Limits())
    assert [limits.time for limits in asked] == [None, 0.0 if call == 1 else None]
    assert found.smallest.status is bs.Status.INTERRUPTED
    assert not found.proved
    assert len(said) == 1
    assert said[0].startswith("restricted_isometry was interrupted: its best so far")
    monkeypatch.undo()
    exact = bs.restricted_isometry(Phi, 3)
    assert found.lower <= exact.upper
    assert found.upper >= exact.lower


def test_features_after_the_one_that_is_stopped_are_left_out(monkeypatch) -> None:
    """All of them were lost."""
    result = bs.solve(A, 4)
    asked = interrupted_at(monkeypatch, "importance", "solve_constrained", 2)
    found, said = warned(bs.feature_importance, A, result)
    assert len(asked) == len(found.features) == len(found.results) == 2
    assert found.interrupted
    assert not found.complete
    assert len(found.to_rows()) == 2
    assert len(said) == 1
    assert said[0].startswith("feature_importance was interrupted: 2 of 4 components")


def test_alternatives_of_a_best_that_is_stopped(monkeypatch) -> None:
    interrupted_at(monkeypatch, "alternatives", "solve", 1)
    found, said = warned(bs.alternatives, A, 4, 0.1)
    assert len(found) == 1
    assert found.interrupted
    assert not found.complete
    assert said == [
        "alternatives was interrupted: what it has found is returned, 1 set."
    ]


def test_alternatives_one_by_one_end_at_the_set_that_is_stopped(monkeypatch) -> None:
    """The sets that were left were solved, one after the other."""
    every = bs.alternatives(FLAT, 2, 0.2)
    asked = interrupted_at(monkeypatch, "alternatives", "solve_constrained", 4)
    found, said = warned(bs.alternatives, FLAT, 2, 0.2)
    assert len(asked) == 4
    assert found.interrupted
    assert 1 < len(found) < len(every)
    assert len(said) == 1


def test_alternatives_of_a_tree_that_is_stopped_keep_what_it_has_listed(
    monkeypatch,
) -> None:
    """They were lost with a KeyboardInterrupt."""
    every = bs.alternatives(A, 4, 0.2)
    advance, slices = ProofTree.advance, []

    def interrupted(tree: ProofTree, nodes: int) -> int:
        if not len(tree._listed):  # of a proof
            return advance(tree, nodes)
        slices.append(nodes)
        if len(slices) > 3:
            raise KeyboardInterrupt
        return advance(tree, 1)

    monkeypatch.setattr(ProofTree, "advance", interrupted)
    found, said = warned(bs.alternatives, A, 4, 0.2)
    assert len(slices) == 4
    assert 1 < len(found) < len(every)
    assert not found.complete
    assert {tuple(s) for s in found.supports} < {tuple(s) for s in every.supports}
    assert len(said) == 1
