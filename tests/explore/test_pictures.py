"""Samples on axes: points or counted cells, colours, and what lies inside a lasso."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

from blockspca.explore import pictures
from blockspca.explore.pictures import Samples, in_polygon
from blockspca.explore.state import State
from blockspca.plotting._layout import MAX_GROUPS, SHADES

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
    legend = samples.colours.names
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


@pytest.mark.parametrize("label", ["component 9", "component x", "unknown", None])
def test_a_label_that_is_not_there_colours_nothing(label):
    dataset = make_dataset()
    samples = Samples.of(dataset, State(label=label), np.zeros((60, 1)))
    assert samples.colours.names == ()
    assert (samples.colours.of == -1).all()
    assert np.isfinite(samples.ranges()).all()


def test_every_group_has_a_colour_and_every_shade_one():
    style = (files("blockspca.explore") / "assets" / "style.css").read_text()
    assert all(f"--colour-{j}:" in style for j in range(MAX_GROUPS))
    assert all(f"--shade-{j}:" in style for j in range(SHADES))
