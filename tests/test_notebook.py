"""What notebooks show, and frames: names are escaped, proofs are said."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca._html import table

NAMES = ["<script>alert(1)</script>", "a & b", "c", "d"]


@pytest.fixture
def cov() -> bs.Covariance:
    A = np.diag([3.0, 3.0, 2.0, 2.0])
    A[0, 1] = A[1, 0] = 1.0
    A[2, 3] = A[3, 2] = -0.5
    return bs.Covariance.from_matrix(A, feature_names=NAMES)


def test_names_are_escaped_everywhere(cov: bs.Covariance) -> None:
    shown = [
        bs.solve(cov, 2),
        bs.solve_path(cov, 3),
        bs.solve_components(cov, 2, 2),
    ]
    for each in shown:
        html = each._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert "proved optimal" in html


def test_a_gap_that_is_proved_prints_as_zero(cov: bs.Covariance) -> None:
    assert "(gap 0), optimal" in str(bs.solve(cov, 2))
    A = np.diag([3.0, 2.0, 2.0]) + 0.5
    stopped = bs.solve(A, 2, certify=False, solver=lambda A, k: np.eye(len(A))[1])
    assert stopped.gap > 0.1
    assert "(gap 0)" not in str(stopped)


def test_many_loadings_are_cut() -> None:
    html = bs.solve(np.ones((30, 30)), 25)._repr_html_()
    assert "(5 more)" in html
    assert html.count("<tr>") == 1 + 20 + 1


def test_frames(cov: bs.Covariance) -> None:
    frame = bs.solve(cov, 2).to_frame()
    assert frame.index.tolist() == NAMES[:2]
    assert frame["loading"].to_list() == pytest.approx([0.5**0.5] * 2)
    found = bs.solve_components(cov, 2, 2)
    frame = found.to_frame()
    assert frame.shape == (4, 2)
    assert frame.columns.tolist() == ["component 1", "component 2"]
    np.testing.assert_array_equal(frame.to_numpy().T, found.components)


def test_the_estimator_names_what_it_used() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * [1, 5, 1, 4, 1, 1]
    model = bs.SparsePCA(1, k=2).fit(X, feature_names=list("abcdef"))
    assert sorted(model.loadings_.index) == ["b", "d"]
    assert sorted(model.results_[0].features) == ["b", "d"]
    with pytest.raises(ValueError, match="feature_names"):
        bs.SparsePCA(1, k=2).fit(X, feature_names=["a"])


def test_numbers_are_set_to_the_right() -> None:
    html = table(["x"], [[1], ["-2.5"], ["3 %"], ["name"]])
    assert html.count("text-align:right") == 3


def test_seconds_and_names_stand_for_objects() -> None:
    A = np.diag([3.0, 2.0, 1.0])
    named = bs.solve(A, 2, limits=10, solver="greedy", threshold="search")
    assert named.solver == "greedy"
    assert bs.solve(A, 2, threshold="noise").status is bs.Status.OPTIMAL
    assert bs.SparsePCA(1, k=2, limits=5).fit(np.eye(9)[:, :4]).status_
    with pytest.raises(ValueError, match=r"solver = 'gready' is not known; pass one"):
        bs.solve(A, 2, solver="gready")
    with pytest.raises(ValueError, match=r"threshold = 'none' is not known"):
        bs.solve(A, 2, threshold="none")
    with pytest.raises(ValueError, match=r"limits = -1"):
        bs.solve(A, 2, limits=-1)
    with pytest.raises(TypeError, match=r"pass seconds, for example limits=10"):
        bs.solve(A, 2, limits="10")
