"""Swaps end in a local optimum: no exchange of one feature is better."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from blockspca import Status
from blockspca.limits import Deadline
from blockspca.solvers import Greedy, Limits, LocalSearch
from blockspca.solvers.greedy import best_addition
from strategies import problems
from zoo import largest_on as value


@given(problems(max_features=9))
@settings(deadline=None, max_examples=100)
def test_no_swap_improves(problem):
    A, k = problem
    x = LocalSearch().solve(A, k, limits=Limits()).x
    found = value(A, np.flatnonzero(x))
    greedy = Greedy().solve(A, k, limits=Limits()).x
    slack = 1e-9 * max(1.0, np.abs(A).max())
    assert found >= value(A, np.flatnonzero(greedy)) - slack
    if np.count_nonzero(x) == k:
        inside = np.flatnonzero(x)
        outside = np.setdiff1d(np.arange(len(A)), inside)
        for i, j in itertools.product(inside, outside):
            swapped = [*np.setdiff1d(inside, [i]), j]
            assert value(A, swapped) <= found + slack


@given(problems(max_features=9))
@settings(deadline=None, max_examples=60)
def test_best_addition(problem):
    A, k = problem
    support = np.arange(k - 1)
    j, best = best_addition(A, support, Deadline(None))
    values = {i: value(A, [*support, i]) for i in range(k - 1, len(A))}
    assert best == pytest.approx(max(values.values()), abs=1e-12)
    assert values[j] == pytest.approx(best, abs=1e-12)


def test_node_limit_counts_swaps():
    rng = np.random.default_rng(3)
    for _ in range(50):
        X = rng.normal(size=(10, 30))
        A = np.cov(X.T)
        free = LocalSearch().solve(A, 5, limits=Limits())
        if free.nodes > 1:
            break
    limited = LocalSearch().solve(A, 5, limits=Limits(nodes=1))
    assert limited.nodes == 1
    assert limited.status is Status.NODE_LIMIT
