"""What the page says about alternatives, stability, importance, gaps and prices."""

from __future__ import annotations

import re

import numpy as np
import pytest

import blockspca as bs

pytest.importorskip("jinja2")

from blockspca.report import Report, build_report
from blockspca.report.inspection import about_alternatives, importance_rows
from blockspca.report.text import gap_in_words

A = np.diag([3.0, 2.0, 2.0, 1.0])
A[0, 1] = A[1, 0] = A[0, 2] = A[2, 0] = 1.0


def test_alternatives_in_words():
    found = bs.alternatives(A, 2, within=0.01)
    said = about_alternatives(found)
    assert said[0].startswith("2 sets of 2 features")
    assert "proved: there is no other." in said[0]
    assert said[1:] == ["In all of them: 0.", "In some of them: 1, 2."]
    alone = about_alternatives(bs.alternatives(np.diag([3.0, 2.0, 1.0]), 1))
    assert alone[0].startswith("Proved: no other set of 1 features comes within 1.0 %")
    stopped = about_alternatives(bs.alternatives(A, 2, within=0.9, max_sets=1))
    assert "more may be." in stopped[0]


def test_importance_says_what_comes_instead():
    rows = importance_rows(bs.feature_importance(A, bs.solve(A, 2)))
    assert rows[0]["feature"] == "0"
    by_feature = {row["feature"]: row for row in rows}
    assert by_feature["1"]["instead"] == "2"
    assert by_feature["1"]["loss"] == "< 0.1 %"
    assert all(row["proved"] for row in rows)


def test_gaps_are_explained():
    assert "no other 2 features reach more" in gap_in_words(bs.solve(A, 2))
    noise = np.cov(np.random.default_rng(0).normal(size=(50, 100)).T)
    open_one = bs.solve(noise, 12, limits=bs.Limits(nodes=5))
    said = gap_in_words(open_one, given=True)
    assert f"at most {open_one.upper_bound:.6g}" in said
    assert "given the components before it" in said
    assert re.search(r"could gain [\d.]+ % at the very most", said)


def test_the_page_has_what_was_asked_for_and_no_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    X[:, :2] += 2 * rng.normal(size=(30, 1))
    cov = bs.Covariance.from_data(X, feature_names=list("abcdef"))
    rules = bs.Constraints(exclude=["a"])
    found = bs.solve_components(cov, 2, 1, constraints=rules)
    plain = build_report(Report(cov=cov, components=found))
    assert 'id="sure"' not in plain
    assert "price of the constraints" in plain
    page = build_report(
        Report(
            cov=cov,
            components=found,
            preprocessing="Before, the features were centred.",
            alternatives=bs.alternatives(cov, 2),
            stability=bs.stability(X, 2, 5),
            importance=(bs.feature_importance(cov, found[0]),),
        )
    )
    for text in (
        "Before, the features were centred.",
        "How sure the selection is",
        "drawn again 5 times",
        "What the features of component 1 are worth",
        'download="stability.csv"',
    ):
        assert text in page


def test_what_is_said_under_constraints_is_about_sets_that_keep_them():
    """Sets that break them may reach more, and a later component has another rival."""
    A = np.cov(np.random.default_rng(0).normal(size=(30, 8)).T)
    limits = bs.Constraints(groups=[0, 0, 0, 1, 1, 1, 2, 2], max_per_group=1)
    found = bs.solve_components(A, 2, 3, scheme="disjoint", constraints=limits)
    first = found.results[0]
    assert bs.solve(A, 2).objective > first.objective
    assert "no other 2 features that keep the constraints reach" in gap_in_words(first)
    assert first.price is not None
    assert [result.price for result in found.results[1:]] == [None, None]
