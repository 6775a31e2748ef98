"""What heuristics share: limits, Ctrl-C, completion of short vectors, bisection."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca import Status
from blockspca.solvers import Limits
from blockspca.solvers._heuristic import (
    Heuristic,
    keep_largest,
    shifted_to_psd,
    tuned_to_k,
)
from blockspca.solvers._relaxation import Relaxation
from blockspca.solvers.sklearn_adapters import _ScikitLearn
from strategies import symmetric_matrix


class Proposals(Heuristic):
    name = "proposals"

    def __init__(self, *vectors):
        self.vectors = vectors

    def _propose(self, A, k, run):
        for vector in self.vectors:
            if vector is None:
                raise KeyboardInterrupt
            yield np.asarray(vector, dtype=float)


A = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 1.9], [0.0, 1.9, 2.0]])


def test_the_best_proposal_wins():
    solution = Proposals([1, 1, 0], [0, -1, -1]).solve(A, 2, limits=Limits())
    np.testing.assert_allclose(solution.x, [0, 0.5**0.5, 0.5**0.5])
    assert solution.nodes == 2


def test_a_short_vector_is_completed_by_what_it_correlates_with():
    solution = Proposals([0, 1, 0]).solve(A, 2, limits=Limits())
    assert np.flatnonzero(solution.x).tolist() == [1, 2]


def test_no_proposal_leaves_the_largest_variances():
    for vectors in [(), ([0, 0, 0],)]:
        x = Proposals(*vectors).solve(A, 1, limits=Limits()).x
        np.testing.assert_array_equal(x, [1, 0, 0])


def test_node_limit_and_interrupt():
    solution = Proposals([1, 1, 0], [0, 1, 1]).solve(A, 2, limits=Limits(nodes=1))
    assert (solution.status, solution.nodes) == (Status.NODE_LIMIT, 1)
    solution = Proposals([0, 1, 1], None).solve(A, 2, limits=Limits())
    assert solution.status is Status.INTERRUPTED
    assert np.flatnonzero(solution.x).tolist() == [1, 2]
    solution = Proposals([0, 1, 1], [1, 0, 0]).solve(A, 2, limits=Limits(time=0.0))
    assert (solution.status, solution.nodes) == (Status.TIME_LIMIT, 1)


def test_tuned_to_k():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])

    def fit(level):
        return np.where(scores > level, scores, 0.0)

    for k in range(1, 5):
        *_, last = tuned_to_k(fit, k, 5.0)
        assert np.count_nonzero(last) == k
    # Two features that enter together: the search ends nevertheless
    assert len(list(tuned_to_k(lambda level: np.ones(2) * (level < 1), 1, 5.0))) == 40


def test_keep_largest_and_shift():
    kept = keep_largest(np.array([3.0, -4.0, 1.0]), 2)
    np.testing.assert_allclose(kept, [0.6, -0.8, 0])
    np.testing.assert_array_equal(keep_largest(np.zeros(3), 2), np.zeros(3))
    B = symmetric_matrix("indefinite", 6, np.random.default_rng(0))
    assert np.linalg.eigvalsh(shifted_to_psd(B))[0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(shifted_to_psd(np.eye(3)), np.eye(3), atol=1e-13)


@pytest.mark.parametrize("base", [Heuristic, Relaxation, _ScikitLearn])
def test_a_base_class_says_what_a_subclass_has_to_define(base):
    with pytest.raises(TypeError, match=r"_propose|_iterate|_estimator"):
        base()
