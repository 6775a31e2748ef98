"""The picture of the scores: groups by label, arrows, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs

pytest.importorskip("jinja2")

from blockspca.plotting._layout import MAX_GROUPS
from blockspca.report import Report, build_report
from blockspca.report.scores import (
    MAX_POINTS,
    ScorePicture,
    arrows,
    drawn_groups,
)


def report(n: int, labels: tuple[str, ...] | None = None) -> tuple[Report, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    X[:, :3] += rng.normal(size=(n, 1))
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 2, 2)
    scores = (X - X.mean(axis=0)) @ found.components.T
    return Report(cov=cov, components=found, scores=scores, labels=labels), X


def test_groups_are_the_labels_by_size():
    groups, of = drawn_groups(("b", "a", "b", "", "b", "a"))
    assert [(g.name, g.size) for g in groups] == [("b", 3), ("a", 2), ("no label", 1)]
    assert of.tolist() == [0, 1, 0, 2, 0, 1]
    assert len({(g.style, g.shape) for g in groups}) == 3


def test_no_two_labels_are_drawn_alike():
    groups, _ = drawn_groups(tuple(f"kind {i}" for i in range(MAX_GROUPS)))
    assert len({(g.style, g.shape) for g in groups}) == MAX_GROUPS


def test_more_labels_than_one_can_tell_apart_are_gathered():
    labels = tuple(f"kind {i % 30}" for i in range(100)) + ("kind 0",) * 5
    groups, of = drawn_groups(labels)
    unlabelled = drawn_groups((*labels, ""))[0][-1]
    assert (unlabelled.style, unlabelled.shape) not in {
        (g.style, g.shape) for g in groups
    }
    assert len(groups) == MAX_GROUPS
    assert groups[0].name == "kind 0"
    assert groups[-1].name == f"other ({30 - MAX_GROUPS + 1} labels)"
    assert sum(group.size for group in groups) == 105
    assert np.bincount(of).tolist() == [group.size for group in groups]


def test_numbers_are_shades():
    values = np.linspace(-1, 3, 50)
    groups, of = drawn_groups((*(str(v) for v in values), ""))
    assert [group.style for group in groups] == [f"q{j}" for j in range(10)] + ["gx"]
    assert groups[0].name == "-1 to -0.6"
    assert (np.diff(of) >= 0).all()
    assert sum(group.size for group in groups) == 51
    few, _ = drawn_groups(("1", "2", "1"))
    assert [group.name for group in few] == ["1", "2"]


def test_small_groups_are_not_lost_among_many_samples():
    n = 2 * MAX_POINTS + 10
    labels = ["rare" if i % 1001 == 500 else "common" for i in range(n)]
    about, _ = report(n, tuple(labels))
    picture = ScorePicture(about)
    assert len(picture.shown) <= MAX_POINTS + 2
    assert "rare" in {labels[i] for i in picture.shown}
    assert picture.caption() == f"{len(picture.shown)} of {n} samples, evenly chosen."
    data = picture.data()
    assert {len(column) for column in data["columns"]} == {len(picture.shown)}


def test_arrows_are_correlations_with_the_scores():
    about, X = report(50)
    for arrow in arrows(about):
        feature = X[:, int(arrow["name"])]
        expected = [np.corrcoef(feature, score)[0, 1] for score in about.scores.T]
        np.testing.assert_allclose(arrow["values"], expected, atol=1e-3)
        assert arrow["of"] == [
            j
            for j, x in enumerate(about.components.components)
            if x[int(arrow["name"])]
        ]


def test_labels_must_fit_the_samples():
    with pytest.raises(ValueError, match="2 values and there are scores of 20 samples"):
        report(20, ("a", "b"))
    about, _ = report(20)
    with pytest.raises(ValueError, match="no scores"):
        Report(cov=about.cov, components=about.components, labels=("a",))


def test_the_page_names_the_labels():
    about, _ = report(20, tuple("ab" * 10))
    page = build_report(about)
    assert page.count('class="key"') == 2
    assert page.count('class="sample g1"') == 10
