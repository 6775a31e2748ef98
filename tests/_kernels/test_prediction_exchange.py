"""Turns of components, compiled and interpreted."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from blockspca._kernels import prediction_exchange, prediction_sets

GOALS = {
    "free": [2.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
    "bound": [2.0, 6.0, 9.0, 3.0, 1e-3, 5e-3, 10.0, 3.0, 0.0],
    "hard": [2.0, 2.0, 3.0, 3.0, 1e-5, 5e-5, 100.0, 30.0, 1.0],
}


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every compiled function by its Python source."""
    for module in (prediction_sets, prediction_exchange):
        for name, function in inspect.getmembers(module):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)


def turned(name: str, disjoint: bool) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 12))
    X[:, :5] += 2 * rng.normal(size=(20, 1))
    A = np.cov(X.T)
    supports = rng.permutation(12)[:9].reshape(3, 3)
    loadings = rng.normal(size=(3, 3))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    reached = prediction_exchange.take_turns(
        A,
        A @ A,
        np.array(GOALS[name]),
        prediction_sets.Components(supports, loadings, np.array([3, 2, 3])),
        False,
        disjoint,
        (0, 0, 12, 60, 40),
    )
    return supports, loadings, np.array(reached)


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("disjoint", [False, True])
def test_equals_its_python_source(
    name: str, disjoint: bool, request: pytest.FixtureRequest
) -> None:
    compiled = turned(name, disjoint)
    request.getfixturevalue("interpreted")
    for one, other in zip(compiled, turned(name, disjoint), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
