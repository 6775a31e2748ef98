"""Constraints as they are written: every bad value gets its own sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.constraint_rules import GroupLimits
from blockspca.constraints import checked

NAMES = tuple("abcdef")


@pytest.mark.parametrize(
    ("given", "k", "sentence"),
    [
        ({"include": ["z"]}, 2, "include has 'z', which is not the name"),
        ({"include": [6]}, 2, r"include has the index 6, outside 0\.\.5"),
        ({"exclude": [-1]}, 2, "exclude has the index -1"),
        ({"include": [0, 0]}, 2, "include has 'a' twice"),
        ({"include": ["a"], "exclude": [0]}, 2, "include and exclude both have 'a'"),
        ({"include": [0, 1, 2]}, 2, "include has 3 features for k = 2"),
        ({"exclude": [0, 1, 2, 3]}, 3, "leave room for 2"),
        ({"exclude": list(range(6))}, 1, r"room for 0 feature\(s\); loosen them"),
        ({"groups": [0, 1], "max_per_group": 1}, 2, r"groups has 2 label\(s\) for 6"),
        (
            {"groups": [0, 0, 1, 1, 2, float("nan")], "max_per_group": 1},
            2,
            r"no label \(nan or None\) for feature 'f'",
        ),
        ({"groups": {"a": None}, "max_per_group": 1}, 2, "no label .* for feature 'a'"),
        ({"groups": [0] * 6, "max_per_group": -1}, 2, "max_per_group = -1 is negative"),
        (
            {"groups": [0] * 6, "max_per_group": {"x": 1}},
            2,
            "max_per_group has 'x', which is no group",
        ),
        ({"groups": [0] * 6, "max_per_group": 1}, 2, r"leave room for 1 feature"),
        (
            {"include": [0, 1], "groups": [0] * 6, "max_per_group": 1},
            2,
            "include has 'a', 'b', 2 of group '0', of which there may be 1",
        ),
        (
            {"overlap_with": [0, 1], "min_overlap": 3},
            3,
            "min_overlap = 3 for overlap_with of 2",
        ),
        ({"overlap_with": [0, 1, 2], "min_overlap": 3}, 2, "min_overlap = 3 for k = 2"),
        (
            {
                "groups": [0, 0, 0, 1, 1, 1],
                "max_per_group": {0: 1},
                "overlap_with": [0, 1, 2],
                "min_overlap": 2,
            },
            3,
            "min_overlap and max_per_group together leave room for 2 feature",
        ),
        (
            {
                "include": [3, 4],
                "groups": [0, 0, 0, 1, 1, 1],
                "max_per_group": 1,
                "overlap_with": [0, 1, 2],
                "min_overlap": 0,
            },
            2,
            "include has 'd', 'e', 2 of group '1', of which there may be 1",
        ),
        (
            {"groups": {"x": ["a", "b"], "y": ["b"]}, "max_per_group": 1},
            2,
            "groups has 'b' in 'x' and in 'y'",
        ),
    ],
)
def test_bad_values(given: dict, k: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        checked(bs.Constraints(**given), 6, NAMES, k)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"max_per_group": 1}, "without groups"),
        ({"groups": [1, 2]}, "without a limit"),
        ({"whole_groups": True}, "without groups"),
        ({"groups": [0], "whole_groups": True, "max_per_group": 1}, "one of the two"),
        ({"min_overlap": 2}, "go together"),
        (
            {
                "groups": [0],
                "whole_groups": True,
                "overlap_with": [0],
                "min_overlap": 1,
            },
            "not offered",
        ),
    ],
)
def test_what_does_not_go_together(given: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        bs.Constraints(**given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"include": "a"}, r"include = 'a' is a single feature; pass a list"),
        ({"include": [1.5]}, "include has 1.5 of type float"),
        ({"include": [True, False]}, "is a mask"),
        ({"include": 3}, "is a single feature"),
        ({"groups": "abcdef", "max_per_group": 1}, "is not a list of labels"),
    ],
)
def test_wrong_types(given: dict, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        checked(bs.Constraints(**given), 6, NAMES, 2)


def test_labels_that_are_no_labels() -> None:
    with pytest.raises(TypeError, match=r"groups has the label \[1\] of type list"):
        checked(bs.Constraints(groups=[[1]] * 6, max_per_group=1), 6, NAMES, 2)


def test_names_need_names() -> None:
    with pytest.raises(ValueError, match="the features have no names"):
        checked(bs.Constraints(include=["a"]), 6, None, 2)
    with pytest.raises(TypeError, match="pass for example"):
        bs.solve(np.eye(3), 2, constraints={"include": [0]})
    with pytest.raises(ValueError, match="leave solver and threshold out"):
        bs.solve(np.eye(3), 2, constraints=bs.Constraints(), threshold=0.1)


def test_groups_by_their_members() -> None:
    by_feature = {"a": "x", "c": "x", "b": "y"}
    found = [
        checked(bs.Constraints(groups=groups, max_per_group=1), 6, NAMES, 2)
        for groups in (by_feature, {"x": ["a", "c"], "y": {"b"}})
    ]
    assert found[0].label == found[1].label == (0, 1, 0, -1, -1, -1)


def test_groups_that_do_not_agree_with_those_beside_an_overlap() -> None:
    rules = checked(
        bs.Constraints(
            groups=[0, 0, 0, 1, 1, 1],
            max_per_group=2,
            overlap_with=[0, 1, 3],
            min_overlap=2,
        ),
        6,
        None,
        3,
    )
    assert rules.label == (1, 1, 0, 2, 0, 0)
    assert rules.room == (1, 2, 2)
    for change in (
        {"label": (2, 1, 0, 2, 0, 0)},
        {"room": (1, 2, 1)},
        {"beside": (0, 0, 0)},
        {"whole_groups": True},
    ):
        with pytest.raises(ValueError, match="beside"):
            replace(rules, **change)


def test_groups_without_room_are_excluded() -> None:
    groups = ["x", "x", "y", "y", "z", "z"]
    rules = checked(
        bs.Constraints(groups=groups, max_per_group={"x": 0, "z": 1}), 6, None, 3
    )
    assert rules.exclude == (0, 1)
    assert rules.limits is not None
    assert rules.limits.room.tolist() == [0, 2, 1]


def test_group_limits() -> None:
    limits = GroupLimits(np.array([0, 0, 1, -1]), np.array([1, 1]))
    assert limits.capacity == 3
    assert limits.allows(np.array([0, 2, 3]))
    assert not limits.allows(np.array([0, 1]))
    assert limits.closed_to(np.array([1])).tolist() == [True, True, False, False]
    assert limits.first(np.array([1, 0, 2, 3]), 3).tolist() == [1, 2, 3]
    swaps = limits.exchanges(np.array([0, 3]))
    assert swaps.tolist() == [[True, True, True, True], [False, False, True, True]]


def test_a_series_is_read_by_its_names() -> None:
    """Its order need not be that of the features."""
    pd = pytest.importorskip("pandas")
    labels = pd.Series(list("xxyyzz"), index=list(NAMES))
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4]):
        given = bs.Constraints(groups=labels.iloc[order], max_per_group=1)
        label = checked(given, 6, NAMES, 2).label
        assert [label[0] == label[1], label[2] == label[3], label[0] == label[2]] == [
            True,
            True,
            False,
        ]
    some = bs.Constraints(groups=labels.iloc[:2], max_per_group=1)
    assert checked(some, 6, NAMES, 2).label[2:] == (-1,) * 4
    numbered = bs.Constraints(groups=labels.reset_index(drop=True), max_per_group=1)
    assert checked(numbered, 6, NAMES, 2).label == (0, 0, 1, 1, 2, 2)
    more = pd.Series(list("xxyyzzw"), index=[*NAMES[::-1], "left out"])
    assert checked(bs.Constraints(groups=more, max_per_group=1), 6, NAMES, 2).names
    for index, sentence in ((["a", "a"], "groups has 'a' twice"), (["q"], "has 'q'")):
        wrong = pd.Series([0] * len(index), index=index)
        with pytest.raises(ValueError, match=sentence):
            checked(bs.Constraints(groups=wrong, max_per_group=1), 6, NAMES, 2)


@pytest.mark.parametrize("typed", ["G003", "g3", "G-0003", "g_03", "G00003"])
def test_a_name_is_known_without_case_signs_and_zeros(typed):
    cov = bs.Covariance.from_matrix(
        np.eye(12), feature_names=[f"G{i:04}" for i in range(12)]
    )
    with pytest.raises(ValueError, match=r"did you mean 'G0003'\?$"):
        bs.solve(cov, 2, constraints=bs.Constraints(include=[typed]))


def test_an_overlap_that_disjoint_components_cannot_have_names_the_fix():
    A = np.diag(np.arange(9.0, 0.0, -1.0)) + 0.1
    rules = bs.Constraints(overlap_with=[0, 1, 2, 3], min_overlap=3)
    with pytest.raises(ValueError, match="each with an overlap_with of its own"):
        bs.solve_components(A, 4, 2, scheme="disjoint", constraints=rules)
