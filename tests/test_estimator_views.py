"""A fitted model opens a page with sliders, which begins with its components."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

import blockspca as bs

pytest.importorskip("tornado")
pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    X[:, :3] += 2 * rng.normal(size=(40, 1))
    return X


def begun(page) -> dict:
    """The state that a page begins with, as a dict without what is default."""
    from blockspca.explore.state import State

    page.stop()
    state, blank = page._server.state.to_dict(), State().to_dict()
    return {name: value for name, value in state.items() if value != blank[name]}


def test_a_page_begins_with_the_fit(X):
    model = bs.SparsePCA(2, k=3, scale=True).fit(X)
    expected = {"k": 3, "n_components": 2, "scale": True}  # residual is the page's own
    assert begun(model.explore()) == expected
    coloured = begun(model.explore(color=["a", "b"] * 20))
    assert coloured == {**expected, "label": "color"}


def test_constraints_and_a_background_come_along(X):
    constraints = bs.Constraints(
        include=[1],
        exclude=[7],
        groups=list("aabbccdd"),
        max_per_group=1,
        nonnegative=True,
    )
    model = bs.SparsePCA(1, k=2, constraints=constraints, scheme="disjoint").fit(X)
    assert begun(model.explore()) == {
        "k": 2,
        "scheme": "disjoint",
        "include": (1,),
        "exclude": (7,),
        "max_per_group": 1,
        "nonnegative": True,
    }
    contrast = bs.SparsePCA(1, k=2, scheme="disjoint", background_weight=0.5)
    contrast.fit(X, background=X[::-1])
    assert begun(contrast.explore(background=X[::-1])) == {
        "k": 2,
        "scheme": "disjoint",
        "weight": 0.5,
    }


def test_names_of_a_frame_and_a_precomputed_matrix(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    page = bs.SparsePCA(1, k=2).fit(frame).explore()
    page.stop()
    dataset = page._server.engine.dataset
    assert dataset.names == tuple("abcdefgh")
    assert dataset.sample_names[3] == "3"
    page = bs.SparsePCA(1, k=2, covariance="precomputed").fit(np.cov(X.T)).explore()
    page.stop()
    assert page._server.engine.dataset.n_samples == 0


def test_what_is_not_on_the_page_is_said(X):
    estimated = bs.SparsePCA(1, k=2, covariance=LedoitWolf()).fit(X)
    with pytest.raises(ValueError, match="is not explored"):
        estimated.explore()
    whole = bs.Constraints(groups=list("aabbccdd"), whole_groups=True)
    with pytest.raises(ValueError, match="whole_groups"):
        bs.SparsePCA(1, k=2, constraints=whole).fit(X).explore()
    pickled = bs.SparsePCA(1, k=2).fit(X)
    pickled._data = None
    with pytest.raises(ValueError, match=r"explore\(X\)"):
        pickled.explore()
    assert begun(pickled.explore(X))["k"] == 2
