"""Bounds of linear algebra against exact fractions, and the cache of kernels."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockspca.linalg import cost
from blockspca.linalg.eigen import (
    eigenvalue_ceiling,
    eigenvalue_floor,
    leading_pair,
    with_sign,
)
from blockspca.linalg.rounding import UNIT, above, gamma, norm_above, sum_above


def is_positive_definite(rows):
    """Decide exactly, by elimination of fractions."""
    rows = [row[:] for row in rows]
    for i in range(len(rows)):
        if rows[i][i] <= 0:
            return False
        for j in range(i + 1, len(rows)):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return True


def exceeds_all_eigenvalues(value, B):
    """Tell whether value + 10⁻³⁰ |value| + 10⁻³⁰⁰ exceeds λmax(B), exactly."""
    top = Fraction(value) + abs(Fraction(value)) / 10**30 + Fraction(1, 10**300)
    exact = [[-Fraction(float(entry)) for entry in row] for row in B]
    for i in range(len(B)):
        exact[i][i] += top
    return is_positive_definite(exact)


def symmetric(seed, n, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n)) * 2.0 ** rng.integers(-80, 80)
    if kind == "low rank":
        X[:, 1:] = 0
    if kind == "integers":
        X = rng.integers(-2, 3, (n, n)).astype(float)
    if kind == "graded":
        X *= 2.0 ** -np.arange(0, 10 * n, 10)
    B = X @ X.T if kind in ("low rank", "gram") else X + X.T
    return (B + B.T) / 2


KINDS = ["plain", "low rank", "gram", "integers", "graded"]


@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from(KINDS))
def test_ceilings_and_floors_hold_exactly_and_are_near(seed, n, kind):
    B = symmetric(seed, n, kind)
    size = max(float(np.abs(B).max()), 1e-300)
    ceiling, floor = eigenvalue_ceiling(B), eigenvalue_floor(B)
    assert exceeds_all_eigenvalues(ceiling, B)
    assert exceeds_all_eigenvalues(-floor, -B)
    eigenvalues = np.linalg.eigvalsh(B)
    assert ceiling - eigenvalues[-1] <= 1e-11 * size
    assert min(eigenvalues[0], 0.0) - floor <= 1e-10 * size


def test_wrong_guesses_make_no_wrong_bound():
    B = symmetric(1, 8, "plain")
    top = np.linalg.eigvalsh(B)[-1]
    for guess in (-10 * top, 0.0, top * (1 - 1e-9), top * (1 + 1e-9), 10 * top):
        assert exceeds_all_eigenvalues(eigenvalue_ceiling(B, guess), B)
    assert eigenvalue_ceiling(B, top * (1 - 1e-9)) - top < 1e-11 * top


def test_floor_for_sparse_vectors():
    B = symmetric(3, 60, "gram")
    everywhere, sparse = eigenvalue_floor(B), eigenvalue_floor(B, k=2)
    assert everywhere <= sparse <= 0
    diagonal = np.diag([1.0, -1.0])  # x = e_2 attains −1
    assert -1 - 1e-14 <= eigenvalue_floor(diagonal, k=1) <= -1


def test_bounds_of_numbers_that_are_not_finite():
    B = np.array([[1.0, np.nan], [np.nan, 1.0]])
    assert eigenvalue_floor(B) == -math.inf
    assert eigenvalue_ceiling(B, 1.0) == math.inf
    assert eigenvalue_ceiling(np.empty((0, 0))) == 0.0


@pytest.mark.parametrize("n", [1, 2, 63, 65, 299, 310])
@pytest.mark.parametrize("kind", ["plain", "gram"])
def test_leading_pair(n, kind):
    B = symmetric(n, n, kind)
    value, x = leading_pair(B)
    largest = np.linalg.eigvalsh(B)[-1]
    assert value == pytest.approx(largest, rel=1e-12)
    assert np.linalg.norm(x) == pytest.approx(1)
    assert x[np.abs(x).argmax()] > 0
    np.testing.assert_allclose(B @ x, value * x, atol=1e-9 * abs(largest))


@pytest.mark.parametrize("B", [np.eye(400), np.zeros((400, 400)), -np.eye(70)])
def test_leading_pair_of_repeated_eigenvalues(B):
    value, x = leading_pair(B)
    assert value == pytest.approx(B[0, 0])
    assert np.linalg.norm(x) == pytest.approx(1)


def test_sign_of_tied_entries():
    np.testing.assert_array_equal(with_sign(np.array([-1.0, 1.0])), [1.0, -1.0])


@given(st.lists(st.floats(-1e50, 1e50), min_size=1, max_size=30))
def test_sums_and_norms_are_rounded_up(numbers):
    exact = [Fraction(number) for number in numbers]
    assert Fraction(sum_above(numbers)) >= sum(exact)
    square = sum(number**2 for number in exact)
    norm = norm_above(np.array(numbers))
    assert Fraction(norm) ** 2 >= square or square < Fraction(1e-290)
    assert norm <= math.hypot(*numbers) * (1 + 1e-12) + 1e-150


def test_gamma():
    for n in (1, 10, 10**6):
        assert Fraction(gamma(n)) >= n * Fraction(UNIT) / (1 - n * Fraction(UNIT))
    assert gamma(2**52) == math.inf
    assert above(-1.0) > -1.0


def test_work_grows_with_the_operation():
    assert cost.product(10, 20, 30) == pytest.approx(12000 / cost.PRODUCTS)
    for work in (cost.cholesky, cost.eigen, cost.ceiling, cost.fixing):
        assert work(200) == pytest.approx(8 * work(100))
    assert cost.scan(10, 200) == 4 * cost.scan(10, 100)


def test_kernels_run_where_no_cache_can_be_written(tmp_path):
    script = (
        "from numba.core import caching\n"
        "def refuse(self, *arguments, **options):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "caching.CacheImpl.__init__ = refuse\n"
        "from numba import types\n"
        "from blockspca._kernels.options import njit\n"
        "@njit(types.int64(types.int64))\n"
        "def twice(number):\n"
        "    return 2 * number\n"
        "print(twice(21))\n"
    )
    source = tmp_path / "script.py"
    source.write_text(script)
    path = str(Path(cost.__file__).parents[2])
    answer = subprocess.run(
        [sys.executable, str(source)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert answer.stdout == "42\n", answer.stderr
