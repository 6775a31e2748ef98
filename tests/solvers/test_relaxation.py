"""The projections that the relaxations are built from, by what defines a projection."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockspca.solvers._relaxation import (
    onto_l1_ball,
    onto_l1_cones,
    onto_second_order_cones,
    onto_simplex,
    onto_spectrahedron,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 12))
def test_onto_simplex(seed, d):
    rng = np.random.default_rng(seed)
    v, other = rng.normal(size=d), rng.dirichlet(np.ones(d))
    projected = onto_simplex(v)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    assert (v - projected) @ (other - projected) <= 1e-12


@given(SEEDS, st.integers(1, 8))
def test_onto_spectrahedron(seed, d):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, d, d))
    X, other = (X + X.T) / 2, Y @ Y.T / np.trace(Y @ Y.T)
    projected = onto_spectrahedron(X)
    assert np.trace(projected) == pytest.approx(1)
    assert np.linalg.eigvalsh(projected)[0] >= -1e-12
    assert ((X - projected) * (other - projected)).sum() <= 1e-10


@given(SEEDS, st.integers(1, 8), st.floats(0.1, 20))
def test_onto_l1_ball(seed, d, radius):
    rng = np.random.default_rng(seed)
    Y, other = rng.normal(size=(2, d, d))
    other *= radius / np.abs(other).sum()
    projected = onto_l1_ball(Y, radius)
    assert np.abs(projected).sum() <= radius * (1 + 1e-12)
    assert ((Y - projected) * (other - projected)).sum() <= 1e-10


@pytest.mark.parametrize(
    ("project", "order", "dual_order"),
    [(onto_l1_cones, 1, np.inf), (onto_second_order_cones, 2, 2)],
)
@given(SEEDS, st.integers(1, 8))
def test_onto_cones(project, order, dual_order, seed, d):
    """Moreau: the remainder is in the polar cone and orthogonal to the projection."""
    rng = np.random.default_rng(seed)
    Y, s = rng.normal(size=(20, d)), 3 * rng.normal(size=20)
    Y[:2], s[2:4] = 0.0, 0.0
    inside, top = project(Y, s)
    assert (np.linalg.norm(inside, order, axis=1) <= top + 1e-12).all()
    rest, rest_top = Y - inside, s - top
    assert (np.linalg.norm(rest, dual_order, axis=1) <= -rest_top + 1e-12).all()
    np.testing.assert_allclose(
        (inside * rest).sum(axis=1) + top * rest_top, 0, atol=1e-9
    )
