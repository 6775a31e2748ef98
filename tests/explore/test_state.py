"""States from JSON: what is right is kept, what is wrong is named."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blockspca.explore.state import MAX_TEXT, State, StateError


def read(**content) -> State:
    return State.from_json(json.dumps(content), n_features=20)


def test_a_state_survives_json():
    state = State(
        k=7,
        n_components=2,
        scheme="projection",
        scale=True,
        include=(1,),
        exclude=(2, 5),
        max_per_group=1,
        nonnegative=True,
        weight=0.5,
        seconds=2.0,
        label="kind",
        axes=(1, -1),
        epsilon=0.25,
    )
    different = [f.name for f in fields(state) if getattr(state, f.name) != f.default]
    assert len(different) == len(fields(state))  # no field is forgotten here
    assert State.from_json(json.dumps(state.to_dict()), n_features=20) == state


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"k": 0}, "k = 0 is outside 1 to 20"),
        ({"k": 21}, "outside"),
        ({"k": 2.5}, "not a whole number"),
        ({"k": True}, "not a whole number"),
        ({"k": "5"}, "not a whole number"),
        ({"n_components": 99}, "outside 1 to 8"),
        ({"scheme": "<script>"}, "not one of"),
        ({"scheme": ["disjoint"]}, "not one of"),
        ({"scale": 1}, "neither true nor false"),
        ({"include": [20]}, "outside 0 to 19"),
        ({"include": "12"}, "not a list"),
        ({"include": [3], "exclude": [3]}, "to include and to exclude"),
        ({"exclude": list(range(20)) * 60}, "at most 1000"),
        ({"weight": float("nan")}, "outside"),
        ({"weight": -1}, "outside"),
        ({"seconds": 1e9}, "outside"),
        ({"epsilon": float("inf")}, "outside"),
        ({"label": 5}, "label"),
        ({"label": "x" * 201}, "label"),
        ({"axes": [0]}, "two components"),
        ({"axes": [0, 8]}, "outside"),
        ({"__class__": 1}, "not a field"),
    ],
)
def test_what_cannot_be_is_named(content, said):
    with pytest.raises(StateError, match=said):
        read(**content)


@pytest.mark.parametrize("text", ["", "[]", "nul", "[" * 5000, "3", '"a"'])
def test_what_is_no_state_is_refused(text):
    with pytest.raises(StateError):
        State.from_json(text, 5)


def test_a_long_text_is_not_even_read():
    with pytest.raises(StateError, match="longer"):
        State.from_json(" " * (MAX_TEXT + 1), 5)


json_values = st.recursive(
    st.sampled_from([None, True, -1, 0, 3, 10**30, 0.5, float("nan"), "", "disjoint"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([f.name for f in fields(State)]), json_values))
def test_any_json_is_a_state_or_refused(content):
    try:
        state = State.checked(content, n_features=9)
    except StateError:
        return
    assert State.from_json(json.dumps(state.to_dict()), n_features=9) == state


def test_the_view_is_no_part_of_the_question():
    state = State(k=4, label="kind", axes=(1, 0), epsilon=0.1)
    assert state.question() == State(k=4)
    assert replace(state, exclude=(1,)).question() != State(k=4)
    assert replace(state, exclude=(1,)).unconstrained() == state
