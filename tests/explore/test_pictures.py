"""Samples on axes: points or counted cells, colours, and what lies inside a lasso."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockspca.explore import pictures
from blockspca.explore.pictures import Samples, categories, in_polygon, shades
from blockspca.explore.state import State

from .conftest import make_dataset


@pytest.fixture(scope="module")
def many():
    """More samples than are sent as points."""
    n = pictures.MAX_POINTS + 1000
    dataset = make_dataset(n=n)
    scores = np.asarray(dataset.table.values[:, :2])
    return dataset, scores, Samples.of(dataset, State(label="kind"), scores)


def test_a_grid_counts_every_sample_once(many):
    dataset, scores, samples = many
    state = State(label="kind", n_components=2)
    grid = samples.message(dataset, state)["grid"]
    assert sum(grid["count"]) == len(scores)
    assert len(set(grid["cell"])) == len(grid["cell"])
    assert max(grid["cell"]) < grid["across"] * grid["up"]
    cell = grid["cell"][int(np.argmax(grid["count"]))]
    inside = samples.at(dataset, cell)
    assert inside["count"] == max(grid["count"])
    most = max(inside["colours"], key=lambda pair: pair[1])[1]
    code = grid["colour"][grid["cell"].index(cell)]
    legend = samples.colours.legend
    assert dict(map(tuple, inside["colours"]))[legend[code]] == most


def test_the_size_of_a_picture_does_not_grow_with_the_samples(many):
    dataset, _, samples = many
    state = State(label="kind", n_components=2)
    size = len(json.dumps(samples.message(dataset, state)))
    assert size < 25 * pictures.GRID[0] * pictures.GRID[1]


def test_a_polygon_agrees_with_a_count_by_hand(many):
    _, _, samples = many
    diamond = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    inside = in_polygon(samples.x, samples.y, diamond)
    assert inside.sum() > 10
    assert np.array_equal(inside, np.abs(samples.x) + np.abs(samples.y) < 1)
    assert not in_polygon(samples.x, samples.y, diamond[:2]).any()


def test_many_categories_become_other():
    values = [f"kind {i}" for i in range(30) for _ in range(31 - i)]
    found = categories(values)
    assert len(found.legend) == pictures.MAX_COLOURS
    assert found.legend[0] == "kind 0"
    assert found.legend[-1] == "other"
    assert found.codes.max() == pictures.MAX_COLOURS - 1
    assert found.codes[0] == 0


def test_numbers_become_shades():
    found = categories(np.linspace(0, 1, 100))
    assert found.ordered
    assert found.codes[0] == 0
    assert found.codes[-1] == pictures.SHADES - 1
    with_gap = shades(np.array([1.0, np.nan, 2.0]))
    assert with_gap.codes.tolist() == [0, -1, pictures.SHADES - 1]
    assert shades(np.full(4, 2.0)).codes.tolist() == [0] * 4


@pytest.mark.parametrize("label", ["component 9", "component x", "unknown", None])
def test_a_label_that_is_not_there_colours_nothing(label):
    dataset = make_dataset()
    samples = Samples.of(dataset, State(label=label), np.zeros((60, 1)))
    assert samples.colours.legend == ()
    assert (samples.colours.codes == -1).all()
    assert np.isfinite(samples.ranges()).all()
