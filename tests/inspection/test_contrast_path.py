"""The contrast for a range of weights."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs

TARGET, BACKGROUND = np.diag([5.0, 4.0, 1.0]), np.diag([5.0, 0.0, 0.0])


def test_every_weight_is_the_contrast_of_it() -> None:
    path = bs.contrastive_path(TARGET, BACKGROUND, 2, np.array([1.0, 0.0, 1.0]))
    assert list(path) == [0.0, 1.0]
    for weight, found in path.items():
        exact = bs.solve(bs.contrastive(TARGET, BACKGROUND, weight), 2)
        assert found.status is bs.Status.OPTIMAL
        assert found.objective == pytest.approx(exact.objective)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (3, r"weights = 3 is no list; pass one, such as \[3\]"),
        ([], "weights is empty; pass at least one number"),
        ([-1.0], "weights = -1.0 is negative"),
        (["a"], "weights = 'a' is of type str"),
    ],
)
def test_weights_that_are_none(weights, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        bs.contrastive_path(TARGET, BACKGROUND, 1, weights)
