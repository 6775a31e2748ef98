"""Densities: mirror steps, multipliers of their sides, wedges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from blockspca.bounds.direction_dual.density import Side, concentrated
from blockspca.bounds.direction_dual.node import Node, branches
from dual_problems import mean, random_density


@pytest.mark.parametrize("guess", [0.0, 1e-3, 1.0, 1e3])
def test_multipliers_are_found_from_any_guess(guess: float) -> None:
    rng = np.random.default_rng(4)
    density = random_density(8, 4, rng)
    B = rng.standard_normal((8, 8))
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    for side in (Side(Q[:, 0], Q[:, 1]), Side(Q[:, 0], -Q[:, 1])):
        _, (eta,) = density.step(B + B.T, 0.5, 1e-3, [side], [0.0])
        kept, (found,) = density.step(B + B.T, 0.5, 1e-3, [side], [guess])
        assert found == pytest.approx(eta, rel=0.02, abs=1e-3)
        assert mean(kept, side.matrix()) > -1e-3


@pytest.mark.parametrize("count", [2, 3, 5])
def test_multipliers_of_several_sides_are_the_best(count: int) -> None:
    """They minimise log tr exp(H + Σ η_q B_q), as a general method finds it."""
    fallen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 7
        density = random_density(n, n, rng)
        B = rng.standard_normal((n, n))
        B = B + B.T
        sides = [Side(*rng.standard_normal((2, n))) for _ in range(count)]
        H = (density.Q * np.log(density.weights)) @ density.Q.T + B

        def height(eta: np.ndarray, H=H, sides=sides) -> float:
            pairs = zip(eta, sides, strict=True)
            logs = np.linalg.eigvalsh(H + sum(e * side.matrix() for e, side in pairs))
            return float(logs[-1] + np.log(np.exp(logs - logs[-1]).sum()))

        start = np.zeros(count)
        best = minimize(height, start, bounds=[(0, 50)] * count, method="L-BFGS-B")
        _, eta = density.step(B, 1.0, 1e-9, sides, start)
        assert height(np.array(eta)) <= best.fun + 0.02 * max(abs(best.fun), 1.0)
        fallen += height(start) > best.fun + 0.1 * max(abs(best.fun), 1.0)
    assert fallen > 1


@pytest.mark.parametrize("others", [0, 22])
def test_a_step_stays_on_its_side(others: int) -> None:
    """In all coordinates, and within a space that others are outside of."""
    rng = np.random.default_rng(4)
    n = 8 + others
    density = random_density(n, 4, rng)
    B = rng.standard_normal((8, 8))
    B = B @ B.T / n
    if others:
        Q = np.linalg.qr(rng.standard_normal((8, 4)))[0]
        density = replace(density, Q=Q, others=others)
    side = Side(density.Q[:, 1] - 0.3 * density.Q[:, 0], density.Q[:, 0])
    free, none = density.step(B, 0.5, 1e-3)
    assert none == []
    kept, (eta,) = density.step(B, 0.5, 1e-3, [side], [0.0])
    assert eta > 0
    assert mean(density, side.matrix()) < 0
    assert mean(kept, side.matrix()) >= -1e-3
    for found in (free, kept):
        r = len(found.weights)
        assert found.weights.sum() + (n - r) * found.rest == pytest.approx(1.0)
        np.testing.assert_allclose(found.Q.T @ found.Q, np.eye(r), atol=1e-10)
        assert found.rest >= 0.99e-3 / n


def test_wedges_cover_the_sphere_and_exclude_the_density() -> None:
    rng = np.random.default_rng(3)
    density = random_density(5, 3, rng)
    node = Node(np.empty(0, np.intp), np.arange(4), density, 1.0, np.ones(4))
    node.shares = np.full(4, 0.5)
    children = branches(node)
    assert len(children) == 6
    for y in rng.standard_normal((500, 5)):
        inside = [y @ child.sides[0].matrix() @ y >= 0 for child in children]
        assert any(inside)
    for child in children:
        assert mean(density, child.sides[0].matrix()) < 0
        assert mean(child.density, child.sides[0].matrix()) > -1e-3
        assert child.bound == node.bound
        assert child.multipliers == [0.0]


def test_a_narrow_density_is_split_by_a_feature() -> None:
    density = concentrated(np.eye(5)[0], 0.99)
    node = Node(np.array([7]), np.arange(4), density, 1.0, np.ones(4))
    node.shares = np.array([0.1, 0.6, 0.99, 0.0])
    without, with_it = branches(node)
    assert without.inside.tolist() == [7]
    assert with_it.inside.tolist() == [7, 1]
    assert without.undecided.tolist() == with_it.undecided.tolist() == [0, 2, 3]
