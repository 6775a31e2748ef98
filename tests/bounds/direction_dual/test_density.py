"""Densities: mirror steps, multipliers of their sectors, sectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from blockspca.bounds.direction_dual.density import Sector, concentrated
from blockspca.bounds.direction_dual.node import Node, branches
from dual_problems import mean, random_density


@pytest.mark.parametrize("guess", [0.0, 1e-3, 1.0, 1e3])
def test_multipliers_are_found_from_any_guess(guess: float) -> None:
    rng = np.random.default_rng(4)
    density = random_density(8, 4, rng)
    B = rng.standard_normal((8, 8))
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    for sector in (Sector(Q[:, 0], Q[:, 1]), Sector(Q[:, 0], -Q[:, 1])):
        _, (eta,) = density.step(B + B.T, 0.5, 1e-3, [sector], [0.0])
        kept, (found,) = density.step(B + B.T, 0.5, 1e-3, [sector], [guess])
        assert found == pytest.approx(eta, rel=0.02, abs=1e-3)
        assert mean(kept, sector.matrix()) > -1e-3


@pytest.mark.parametrize("count", [2, 3, 5])
def test_multipliers_of_several_sectors_are_the_best(count: int) -> None:
    """They minimise log tr exp(H + Σ η_q B_q), as a general method finds it."""
    fallen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 7
        density = random_density(n, n, rng)
        B = rng.standard_normal((n, n))
        B = B + B.T
        sectors = [Sector(*rng.standard_normal((2, n))) for _ in range(count)]
        H = (density.Q * np.log(density.weights)) @ density.Q.T + B

        def height(eta: np.ndarray, H=H, sectors=sectors) -> float:
            pairs = zip(eta, sectors, strict=True)
            logs = np.linalg.eigvalsh(
                H + sum(e * sector.matrix() for e, sector in pairs)
            )
            return float(logs[-1] + np.log(np.exp(logs - logs[-1]).sum()))

        start = np.zeros(count)
        best = minimize(height, start, bounds=[(0, 50)] * count, method="L-BFGS-B")
        _, eta = density.step(B, 1.0, 1e-9, sectors, start)
        assert height(np.array(eta)) <= best.fun + 0.02 * max(abs(best.fun), 1.0)
        fallen += height(start) > best.fun + 0.1 * max(abs(best.fun), 1.0)
    assert fallen > 1


@pytest.mark.parametrize("outside", [0, 22])
def test_a_step_stays_on_its_sector(outside: int) -> None:
    """In all coordinates, and within a space with directions outside of it."""
    rng = np.random.default_rng(4)
    n = 8 + outside
    density = random_density(n, 4, rng)
    B = rng.standard_normal((8, 8))
    B = B @ B.T / n
    if outside:
        Q = np.linalg.qr(rng.standard_normal((8, 4)))[0]
        density = replace(density, Q=Q, outside=outside)
    sector = Sector(density.Q[:, 1] - 0.3 * density.Q[:, 0], density.Q[:, 0])
    free, none = density.step(B, 0.5, 1e-3)
    assert none == []
    kept, (eta,) = density.step(B, 0.5, 1e-3, [sector], [0.0])
    assert eta > 0
    assert mean(density, sector.matrix()) < 0
    assert mean(kept, sector.matrix()) >= -1e-3
    for found in (free, kept):
        r = len(found.weights)
        assert found.weights.sum() + (n - r) * found.rest == pytest.approx(1.0)
        np.testing.assert_allclose(found.Q.T @ found.Q, np.eye(r), atol=1e-10)
        assert found.rest >= 0.99e-3 / n


def test_sectors_cover_the_sphere_and_exclude_the_density() -> None:
    rng = np.random.default_rng(3)
    density = random_density(5, 3, rng)
    fixed, halves = np.empty(0, np.intp), np.full(4, 0.5)
    node = Node(fixed, np.arange(4), density, 1.0, np.ones(4), relaxed_z=halves)
    children = branches(node)
    assert len(children) == 6
    for y in rng.standard_normal((500, 5)):
        inside = [y @ child.sectors[0].matrix() @ y >= 0 for child in children]
        assert any(inside)
    for child in children:
        assert mean(density, child.sectors[0].matrix()) < 0
        assert mean(child.density, child.sectors[0].matrix()) > -1e-3
        assert child.bound == node.bound
        assert child.etas == [0.0]


def test_a_narrow_density_is_split_by_a_feature() -> None:
    density = concentrated(np.eye(5)[0], 0.99)
    shares, every = np.array([0.1, 0.6, 0.99, 0.0]), np.arange(4)
    node = Node(np.array([7]), every, density, 1.0, np.ones(4), relaxed_z=shares)
    without, with_it = branches(node)
    assert without.fixed_in.tolist() == [7]
    assert with_it.fixed_in.tolist() == [7, 1]
    assert without.free.tolist() == with_it.free.tolist() == [0, 2, 3]
