"""What a tab is told, without a browser or a server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from blockspca.explore import session as session_module
from blockspca.explore.engine import Engine
from blockspca.explore.jobs import Worker
from blockspca.explore.session import Session, relaxations
from blockspca.explore.state import State

from .conftest import SCRIPT, make_dataset

SOON = 300.0  # seconds; the first solve on a machine compiles


class Tab:
    """A tab that remembers what it was told, and waits for a kind of message."""

    def __init__(self, engine: Engine, worker: Worker) -> None:
        self.told: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.session = Session(engine, worker, self.hear)
        self.number = 0

    def hear(self, message: dict[str, Any]) -> None:
        with self.changed:
            self.told.append(message)
            self.changed.notify_all()

    def wait(self, kind: str) -> dict[str, Any]:
        """The latest message of a kind about the current question."""

        def found() -> list[dict[str, Any]]:
            now = [m for m in self.told if m["type"] == kind and m["id"] == self.number]
            return [m for m in now if m.get("complete", True)]

        with self.changed:
            assert self.changed.wait_for(found, SOON), [m["type"] for m in self.told]
            return found()[-1]

    def ask(self, **state) -> dict[str, Any]:
        self.number += 1
        content = {"seconds": 600, **state}
        self.session.receive({"type": "ask", "id": self.number, "state": content})
        return self.wait("components")

    def say(self, kind: str, reply: str, **more) -> dict[str, Any]:
        self.told.clear()
        self.session.receive({"type": kind, **more})
        return self.wait(reply)


@pytest.fixture(scope="module")
def engine():
    return Engine(make_dataset())


@pytest.fixture(scope="module")
def worker():
    running = Worker()
    yield running
    running.abandon()


@pytest.fixture
def tab(engine, worker):
    made = Tab(engine, worker)
    yield made
    made.session.close()


def test_an_answer_comes_with_all_that_is_seen(tab):
    shown = tab.ask(k=4, label="kind")
    (component,) = shown["components"]
    assert {feature[0] for feature in component["features"]} == {0, 1, 2, 3}
    sizes = [abs(value) for value in component["loadings"]]
    assert sizes == sorted(sizes, reverse=True)
    assert component["proved"]
    assert component["upper_bound"] >= component["objective"]
    scores = tab.wait("scores")
    assert scores["legend"] in (["a", "b"], ["b", "a"])
    assert len(scores["points"]["x"]) == 60
    assert scores["axes"] == [0, -1]
    assert tab.wait("path")["k"] == list(range(1, 13))
    tab.wait("settled")
    assert 0 < tab.wait("summary")["r2"] <= tab.wait("summary")["pca"]


def test_a_change_of_the_view_solves_nothing(tab, monkeypatch):
    tab.ask(k=4)
    tab.wait("settled")
    monkeypatch.setattr(tab.session.engine, "solve", None)  # would raise if called
    tab.ask(k=4, label="component 1", axes=[-1, 0])
    scores = tab.wait("scores")
    assert scores["ordered"]
    assert scores["axes"] == [-1, 0]


def test_constraints_have_a_price_each(tab):
    tab.ask(k=4, exclude=[0], include=[9])
    tab.wait("settled")
    rows = tab.wait("prices")["rows"]
    assert [row["constraint"] for row in rows] == [
        "all constraints together",
        "gene 9 kept in",
        f"{SCRIPT} left out",
    ]
    assert all(row["proved"] for row in rows)
    assert rows[0]["share"] >= max(row["share"] for row in rows[1:]) - 1e-9


def test_swaps_say_what_takes_the_place(tab):
    tab.ask(k=4)
    swaps = tab.say("swaps", "swaps")
    assert swaps["complete"]
    assert {row["without"][0] for row in swaps["rows"]} == {0, 1, 2, 3}
    assert all(row["cost"] > 0 for row in swaps["rows"])
    assert all(row["without"] in row["out"] for row in swaps["rows"])


def test_sets_nearly_as_good_begin_with_the_best(tab):
    tab.ask(k=2)
    sets = tab.say("sets", "sets", within=0.2)
    assert sets["complete"]
    assert sets["rows"][0]["cost"] == pytest.approx(0, abs=1e-12)
    tab.ask(k=2, exclude=[1])
    assert "without constraints" in tab.say("sets", "refused")["message"]


def test_stability_is_of_the_same_components(tab):
    tab.ask(k=3)
    found = tab.say("stability", "stability", resamples=4)
    assert found["resamples"] == 4
    assert max(found["frequency"]) <= 1
    assert [m["done"] for m in tab.told if m["type"] == "drawn"] == [1, 2, 3, 4]


def test_blocks_are_shown_with_levels(tab):
    tab.ask(k=3)
    blocks = tab.say("blocks", "blocks")
    assert len(blocks["names"]) == 12
    assert blocks["blocks"][0] == 1
    assert blocks["blocks"][-1] == 12


def test_searching_is_by_part_of_a_name(tab):
    found = tab.say("search", "found", text="GENE 1")
    assert [feature[1] for feature in found["features"]] == ["gene 10", "gene 11"]
    assert tab.say("search", "found", text=" ")["features"] == []
    named = tab.say("names", "names", features=[3, 0])
    assert [feature[1] for feature in named["features"]] == [SCRIPT, "gene 3"]


def test_a_lasso_counts_samples(tab):
    tab.ask(k=3, label="kind")
    left, right, low, high = tab.wait("scores")["ranges"]
    corners = [[left, low], [right, low], [right, high], [left, high]]
    inside = tab.say("lasso", "lasso", corners=corners)
    assert inside["count"] == 60
    assert len(inside["names"]) == 40
    assert sum(count for _, count in inside["colours"]) == 60


@pytest.mark.parametrize(
    "message",
    [
        {"type": "eval"},
        {},
        {"type": "ask", "id": 1, "state": 5},
        {"type": "ask", "id": "1", "state": {}},
        {"type": "ask", "id": 2, "state": {"k": -1}},
        {"type": "search", "text": "x" * 101},
        {"type": "search", "text": ["a"]},
        {"type": "lasso", "corners": [[0, 0]] * 2001},
        {"type": "lasso", "corners": [[0, 0, 0]] * 3},
        {"type": "lasso", "corners": [["a", "b"]] * 3},
        {"type": "cell", "cell": "0"},
        {"type": "names", "features": [99]},
        {"type": "stability", "resamples": 10**9},
        {"type": "sets", "within": 5},
        {"type": "swaps", "component": 7},
    ],
)
def test_what_makes_no_sense_is_refused_and_harms_nothing(tab, message):
    tab.ask(k=2)
    tab.session.receive(message)
    (refused,) = [m for m in tab.told if m["type"] == "refused"]
    assert refused["message"]
    assert tab.ask(k=3)["components"][0]["proved"]


def test_an_infeasible_question_is_refused_and_the_next_is_answered(tab):
    tab.number += 1
    state = {"k": 2, "include": [1, 2, 3]}
    tab.session.receive({"type": "ask", "id": tab.number, "state": state})
    assert "include has 3 features" in tab.wait("refused")["message"]
    assert tab.ask(k=3, include=[1, 2, 3])["components"][0]["proved"]


def test_two_tabs_do_not_mix(engine, worker):
    one, other = Tab(engine, worker), Tab(engine, worker)
    one.number, other.number = 100, 200
    one.ask(k=2)
    other.ask(k=6, n_components=2)
    one.wait("settled")
    other.wait("settled")
    assert {m["id"] for m in one.told} == {101}
    assert {m["id"] for m in other.told} == {201}
    assert all(len(m["components"]) == 1 for m in one.told if m["type"] == "components")
    one.session.close()
    other.session.close()


def test_a_question_that_is_overtaken_is_never_answered(tab, engine, monkeypatch):
    """The first solve waits for its interruption; only the second is told of."""
    begun, solve = threading.Event(), engine.solve

    def slow(state, tell, found):
        if state.k == 7:
            begun.set()
            while True:
                tell(session_module.Event("proof", 0, 1, 7, 1.0, 2.0))
        return solve(state, tell, found)

    monkeypatch.setattr(engine, "solve", slow)
    tab.number = 1
    state = {"k": 7, "weight": 0.125}
    tab.session.receive({"type": "ask", "id": 1, "state": state})
    assert begun.wait(SOON)
    assert tab.ask(k=5)["components"][0]["k"] == 5
    assert not [m for m in tab.told if m["id"] == 1 and m["type"] == "components"]
    assert [m for m in tab.told if m["id"] == 1 and m["type"] == "progress"]


def test_stopping_leaves_what_is_known(tab, engine, monkeypatch):
    begun, solve = threading.Event(), engine.solve

    def slow(state, tell, found):
        found(solve(state))
        begun.set()
        while True:
            tell(session_module.Event("proof", 0, 1, 7, 1.0, 2.0))

    monkeypatch.setattr(engine, "solve", slow)
    tab.number = 1
    state = {"k": 6, "weight": 0.25}
    tab.session.receive({"type": "ask", "id": 1, "state": state})
    assert begun.wait(SOON)
    tab.session.receive({"type": "stop"})
    tab.wait("stopped")
    monkeypatch.undo()
    assert tab.ask(k=2)["components"][0]["proved"]


def test_what_each_constraint_costs_is_found_without_it():
    state = State(k=3, include=(1,), exclude=(2,), max_per_group=2, nonnegative=True)
    rows = dict(relaxations(state, ("a", "b", "c")))
    assert list(rows) == [
        "all constraints together",
        "b kept in",
        "c left out",
        "at most 2 features of a group",
        "no negative loading",
    ]
    assert rows["all constraints together"] == State(k=3)
    assert rows["b kept in"].include == ()
    assert rows["b kept in"].exclude == (2,)
    assert not rows["no negative loading"].nonnegative
