"""What a fitted model draws and writes: plot, report, and what a pickle leaves out."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.covariance import LedoitWolf

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

import blockspca as bs
from blockspca import SparsePCA, plotting
from blockspca._estimator_output import warn_if_not_proved
from blockspca._messages import proof_in_words
from blockspca.certificate import is_left_by_rounding
from blockspca.limits import DEFAULT_LIMITS
from blockspca.status import is_within_gap


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8)) + 5
    X[:, :3] += 3 * rng.normal(size=(40, 1))
    return X


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_page_from_a_model(X, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(8)])
    frame.index = [f"patient {i}" for i in range(40)]
    model = SparsePCA(2, k=[3, 2]).fit(frame)
    kinds = ["ill", "well"] * 20
    path = model.report(tmp_path / "x.html", title="My genes", color=kinds)
    text = path.read_text()
    assert "well" in text
    assert "<title>My genes" in text
    assert "gene 0" in text
    assert "patient 7" in text
    with pytest.raises(OSError, match="exists"):
        model.report(path)
    assert model.report(path, force=True) == path
    with pytest.raises(ValueError, match=r"must end with \.html"):
        model.report(tmp_path / "x.pdf")


@pytest.mark.parametrize("kind", ["sparse", "matrix", "estimator", "scaled"])
def test_pages_of_all_kinds_of_fits(X, tmp_path: Path, kind: str) -> None:
    data = {"sparse": sp.csr_array(X), "matrix": np.cov(X.T)}.get(kind, X)
    options = {
        "matrix": {"covariance": "precomputed"},
        "estimator": {"covariance": LedoitWolf()},
        "scaled": {"scale": True},
    }
    model = SparsePCA(1, k=2, **options.get(kind, {})).fit(data)
    assert "proved optimal" in model.report(tmp_path / "x.html").read_text()


def test_a_pickle_is_without_the_data(X, tmp_path: Path) -> None:
    model = SparsePCA(1, k=2).fit(X)
    stored = pickle.dumps(model)
    larger = pickle.dumps(SparsePCA(1, k=2).fit(np.tile(X, (50, 1))))
    assert len(larger) < 1.1 * len(stored)
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.components_, model.components_)
    with pytest.raises(ValueError, match=r"not part of a pickled model; pass them"):
        again.report(tmp_path / "x.html")
    with pytest.raises(ValueError, match="X is not what the model was fitted to"):
        again.report(tmp_path / "x.html", X + np.arange(40)[:, None])
    assert again.report(tmp_path / "x.html", X).exists()
    assert len(again.plot()) == 1
    assert len(again.plot(X)) == 2


def test_plot(X) -> None:
    labels = np.where(np.arange(40) < 20, "ill", "well")
    model = SparsePCA(2, k=3).fit(X)
    scores, *loadings = model.plot(color=labels)
    assert len(loadings) == 2
    shown = [text.get_text() for text in scores.get_legend().get_texts()]
    assert shown == ["ill", "well"]
    assert loadings[0].get_title().startswith("component 1: ")
    assert len(SparsePCA(1, k=2, covariance="precomputed").fit(np.cov(X.T)).plot()) == 1
    drawn = scores.collections[0].get_offsets()
    np.testing.assert_allclose(drawn, model.transform(X)[:20])


def test_colours_of_numbers_and_of_labels(X) -> None:
    numbers = plotting.plot_scores(X[:, :2], color=X[:, 3])
    assert numbers.get_legend() is None
    assert len(numbers.figure.axes) == 2  # a scale of colours beside it
    few = plotting.plot_scores(X[:, :2], color=np.arange(40) % 3)
    assert len(few.get_legend().get_texts()) == 3
    mixed = pd.Series(["a", None] * 20, dtype=object)
    assert len(plotting.plot_scores(X[:, :2], color=mixed).collections) == 2
    with pytest.raises(ValueError, match=r"color has shape \(3,\) for 40 samples"):
        plotting.plot_scores(X[:, :2], color=["a", "b", "c"])


def warning_of(*results: bs.Result, wanted: int = 1, **more: Any) -> str:
    """The warning; it has a sentence on what happened and one on what to do."""
    with pytest.warns(ConvergenceWarning) as said:
        warn_if_not_proved(results, wanted, **{"by_default": True, **more})
    (warning,) = said
    text = str(warning.message)
    assert text.count(". ") == 1
    assert text.endswith(".")
    return text


def test_a_proof_that_ended_by_itself_says_nothing_of_time() -> None:
    ended = bs.Result(
        x=np.array([1.0, 0.0]),
        support=np.array([0]),
        objective=1.0,
        upper_bound=1.0 + 3e-5,
        status=bs.Status.FEASIBLE,
        k=1,
        n_features=2,
    )
    text = warning_of(ended)
    assert "the proof ended by itself, with a gap of 3e-05. Accept such a gap" in text
    assert text.endswith(", for example limits=Limits(gap=4e-05).")
    text = warning_of(replace(ended, upper_bound=2.0), seconds=70.0)
    assert text.endswith("for example limits=Limits(time=700).")


def test_advice_after_a_limit() -> None:
    """Who had waited for 273 s was told to give the proof 60."""
    stopped = bs.Result(
        x=np.array([1.0, 0.0]),
        support=np.array([0]),
        objective=1.0,
        upper_bound=1.03,
        status=bs.Status.NODE_LIMIT,
        k=1,
        n_features=2,
    )
    nodes = DEFAULT_LIMITS.nodes
    text = warning_of(stopped, seconds=273.0)
    # It had a share of the limit, which was not reached.
    assert f"used up their share of the default limit of {nodes:,} nodes, after" in text
    all_of_them = warning_of(replace(stopped, nodes=nodes), wanted=2)
    assert "Only 1 of 2 components were found, and 1 of 1 " in all_of_them
    assert f": the default limit of {nodes:,} nodes was reached, with" in all_of_them
    for advice in (text, all_of_them):
        assert (
            f"Raise the limit, for example limits=Limits(nodes={10 * nodes})" in advice
        )
        (gap,) = re.findall(r"limits=Limits\(gap=(.*)\)\.", advice)
        assert is_within_gap(1.0, 1.03, float(gap))
        assert float(gap) <= 0.04
    interrupted = replace(stopped, status=bs.Status.INTERRUPTED, upper_bound=np.inf)
    assert warning_of(interrupted).endswith("Let the fit run longer.")


def test_a_lack_of_memory_is_no_lack_of_time() -> None:
    stopped = bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1)
    stopped = replace(
        stopped, status=bs.Status.MEMORY_LIMIT, upper_bound=3.0, certificate=None
    )
    text = warning_of(stopped, by_default=False)
    assert text.endswith("Raise limits.memory, or accept a gap, for example gap=0.6.")


def test_a_gap_that_rounding_leaves_is_called_so():
    """Eight factors, each 1/30 of the one before: the fourth is near rounding."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(200, 8)) * 30.0 ** -np.arange(8)
    X = factors @ rng.normal(size=(8, 60)) + 0.001 * rng.normal(size=(200, 60))
    with pytest.warns(ConvergenceWarning) as said:
        model = SparsePCA(5, k=3).fit(X)
    assert model.status_[0] == "optimal"
    assert model.status_[-1] == "feasible"
    assert is_left_by_rounding(model.results_[-1])
    assert not is_left_by_rounding(replace(model.results_[-1], certificate=None))
    text = str(said[-1].message)
    assert "the proof ended within rounding, with a gap of " in text
    assert text.endswith("Accept such a gap, for example limits=Limits(gap=2e-05).")
    assert "0.000 %" not in proof_in_words(model.results_[-1])
