"""A small data set with awkward names, groups, labels and a background."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.explore.dataset import Dataset, Source
from blockspca.io import Table

SCRIPT = "<script>document.title = 'owned'</script>"
MARKUP = "<b>7</b> &lt; <a href='x'>%{x}</a>"  # what a picture's text could mean by it


def make_dataset(n: int = 60, d: int = 12, **more) -> Dataset:
    """Two factors, of four features each, and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:, :4] += 2 * rng.normal(size=(n, 1))
    X[:, 4:8] += 1.5 * rng.normal(size=(n, 1))
    names = [
        SCRIPT,
        "<img src=x onerror=alert(1)>",
        *(f"gene {j}" for j in range(2, d)),
    ]
    samples = tuple(MARKUP if i == 7 else f"sample {i}" for i in range(n))
    table = Table(X, tuple(names), samples)
    given = {
        "name": "toy",
        "labels": {"kind": ["a" if x > 0 else "b" for x in X[:, 0]], "dose": X[:, 1]},
        "groups": [f"group {j // 2}" for j in range(d)],
        "background": Table(rng.normal(size=(n, d)), tuple(names)),
        "source": Source(file="toy.csv"),
    }
    return Dataset(table, **{**given, **more})


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return make_dataset()
