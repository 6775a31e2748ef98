"""Groups of samples by label, which all pictures share."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explore.conftest import make_dataset

from blockspca import plotting
from blockspca.explore.pictures import Samples
from blockspca.explore.state import State
from blockspca.plotting._layout import MAX_GROUPS, SHADES, label_groups, shades
from blockspca.report.scores import drawn_groups


def test_many_labels_become_other():
    values = [f"kind {i}" for i in range(30) for _ in range(31 - i)]
    found = label_groups(values)
    assert len(found.names) == MAX_GROUPS
    assert found.names[0] == "kind 0"
    assert found.names[-1] == f"other ({30 - MAX_GROUPS + 1} labels)"
    assert found.of.max() == MAX_GROUPS - 1
    assert found.of[0] == 0
    assert sum(found.sizes) == len(values)


def test_what_is_missing_is_no_label():
    pandas = pytest.importorskip("pandas")
    gaps = [None, float("nan"), pandas.NA, pandas.NaT, ""]
    found = label_groups(np.array(["None", "b", "b", *gaps], dtype=object))
    assert found.names == ("b", "None")
    assert found.of.tolist() == [1, 0, 0, -1, -1, -1, -1, -1]
    assert found.sizes == [2, 1]


@pytest.mark.parametrize("kind", [float, str])
def test_numbers_become_shades(kind):
    found = label_groups([kind(value) for value in np.linspace(0, 1, 100)])
    assert found.values is not None
    assert found.of[0] == 0
    assert found.of[-1] == SHADES - 1
    assert found.names[0] == "0 to 0.1"
    with_gap = shades(np.array([1.0, np.nan, 2.0]))
    assert with_gap.of.tolist() == [0, -1, SHADES - 1]
    assert shades(np.full(4, 2.0)).of.tolist() == [0] * 4
    assert shades(np.full(4, np.nan)).of.tolist() == [-1] * 4


@pytest.mark.parametrize(
    "labels",
    [
        [f"kind {i % 14}" for i in range(60)],
        [i % 14 for i in range(60)],
        [str(i % 14 / 7) for i in range(60)],
        [i % 3 or None for i in range(60)],
        [float("nan") if i % 3 else 1.5 for i in range(60)],
    ],
    ids=["texts", "counts", "numbers as text", "gaps", "nan"],
)
def test_a_table_looks_the_same_in_every_picture(labels):
    """Explorer, report and matplotlib had limits, and gaps, of their own."""
    pytest.importorskip("matplotlib").use("Agg")
    found = label_groups(labels)
    scores = np.random.default_rng(0).normal(size=(60, 2))
    dataset = make_dataset(labels={"kind": labels})
    explored = Samples.of(dataset, State(label="kind"), scores).colours
    assert explored.names == found.names
    np.testing.assert_array_equal(explored.of, found.of)
    texts = tuple("" if one is None or one != one else str(one) for one in labels)
    groups, of = drawn_groups(texts)
    assert tuple(group.name for group in groups[: len(found.names)]) == found.names
    np.testing.assert_array_equal(np.where(of < len(found.names), of, -1), found.of)
    ax = plotting.plot_scores(scores, color=labels)
    drawn = sum(len(dots.get_offsets()) for dots in ax.collections)
    assert drawn == len(labels)
    is_scale = ax.get_legend() is None
    assert is_scale == (found.values is not None)
    if not is_scale:
        shown = [text.get_text() for text in ax.get_legend().get_texts()]
        assert set(shown) - {"no label"} == set(found.names)


@pytest.mark.parametrize("pair", [(-1, 0), (0, -1), (0, 2), (0,), (0.0, 1.0), "ab", 3])
def test_axes_that_are_no_components(pair):
    """(-1, 0) drew an axis "component 0"."""
    with pytest.raises(ValueError, match="pass two of those, counted from 0"):
        plotting.plot_scores(np.eye(4)[:, :2], components=pair)
