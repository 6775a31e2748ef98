"""The oracle of the other tests, against another way to enumerate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blockspca import Status
from blockspca.solvers import Exhaustive, Limits
from conftest import brute_force
from strategies import KINDS, symmetric_matrix


@pytest.mark.parametrize("kind", KINDS)
def test_against_brute_force(kind):
    rng = np.random.default_rng(11)
    for d in range(1, 9):
        A = symmetric_matrix(kind, d, rng)
        for k in range(1, d + 1):
            solution = Exhaustive().solve(A, k, limits=Limits())
            best = brute_force(A, k)
            if abs(best) > 1e-9:  # nothing is within a share of 0
                assert solution.status is Status.OPTIMAL
            assert solution.nodes == math.comb(d, k)
            assert solution.upper_bound == pytest.approx(best, abs=1e-12)


def test_stopped_early_the_bound_still_holds(monkeypatch):
    monkeypatch.setattr("blockspca.solvers.exhaustive.WORK_AT_ONCE", 3 * 4**3)
    A = symmetric_matrix("indefinite", 9, np.random.default_rng(1))
    optimum = brute_force(A, 4)
    for nodes in range(1, math.comb(9, 4), 7):
        solution = Exhaustive().solve(A, 4, limits=Limits(nodes=nodes))
        assert solution.nodes == nodes
        assert solution.status is Status.NODE_LIMIT
        assert solution.upper_bound >= optimum


@pytest.mark.data
def test_published_optima_of_pitprops(load, oracle_dir):
    table = np.genfromtxt(
        oracle_dir / "proved_optima.csv", delimiter=",", dtype=str, skip_header=1
    )
    A = load("pitprops")
    rows = [row for row in table if row[0] == "pitprops"]
    assert len(rows) == 9
    for row in rows:
        solution = Exhaustive().solve(A, int(row[2]), limits=Limits())
        assert solution.upper_bound == pytest.approx(float(row[3]), rel=1e-9)
