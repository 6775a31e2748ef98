"""The leading eigenvector where LAPACK's search for one eigenvalue comes back empty."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.vectors import leading_eigenvector


def test_eigenvalues_that_differ_by_ulps():
    # An iterate of a semidefinite relaxation: three eigenvalues of 1/3, within rounding
    A = np.zeros((4, 4))
    A[0, 0] = 0.33333333333333415
    A[1, 1] = 1.6434602192104395e-32
    A[2, 1] = A[1, 2] = -7.400402612281691e-17
    A[3, 1] = A[1, 3] = 1.2668260791804486e-18
    A[2, 2] = 0.333333333333333
    A[3, 2] = A[2, 3] = -1.2391459093532902e-16
    A[3, 3] = 0.3333333333333328
    x = leading_eigenvector(A)
    assert np.linalg.norm(x) == pytest.approx(1)
    assert x @ A @ x == pytest.approx(1 / 3)
