"""Lists of largest entries: complete and exact within `error`, for all forms of A."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from blockspca._kernels.sparse_rows import add_sparse_rows
from blockspca._kernels.tiles import COLUMNS, ROWS, tile_kernels
from blockspca.call import Stop, one_call
from blockspca.limits import Limits
from blockspca.scan import (
    block_lists,
    dense,
    factor_lists,
    matrix_lists,
    single,
    sparse_lists,
    stored_lists,
)


def judge(lists, A, *, single=0.0):
    """Compare lists with a matrix; `single` is how much near ties may be raised."""
    d = len(A)
    sizes = np.abs(A)
    error = lists.error
    for i in range(d):
        others = np.delete(np.arange(d), i)
        indices, values = lists.indices[i], lists.values[i]
        listed = indices[indices >= 0]
        assert len(set(listed)) == len(listed)
        assert i not in listed
        assert (np.diff(values) <= 0).all()
        assert (values[indices < 0] == 0).all()
        exact = sizes[i, listed]
        assert (exact <= values[: len(listed)] + error).all()
        assert (values[: len(listed)] <= exact + error + single).all()
        rest = np.setdiff1d(others, listed)
        assert (sizes[i, rest] <= values[-1] + error).all()
        best = np.sort(sizes[i, others])[::-1][: len(values)]
        assert (best <= values[: len(best)] + error).all()


@pytest.fixture(autouse=True)
def always_kernels(monkeypatch):
    use_kernels(monkeypatch, True)


def use_kernels(monkeypatch, is_on):
    """Make lists of small matrices by kernels, or by NumPy alone."""
    monkeypatch.setattr(dense, "FEW", 0 if is_on else 256)
    monkeypatch.setattr("blockspca.scan.sweep.FEW", 0 if is_on else 256)


@pytest.fixture
def small_tiles(monkeypatch):
    """Make several panels and waves of small problems."""
    monkeypatch.setattr(dense, "TILE", 4)
    monkeypatch.setattr(dense, "WAVE", 5)


@pytest.fixture
def always_single(monkeypatch):
    monkeypatch.setattr(single, "LEAST_FEATURES", 2)


def data(kind, n, d, seed=0):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, d))
    if kind == "raw":
        C *= rng.exponential(size=d) ** 3
    if kind == "ties":
        C = rng.integers(-1, 2, (n, d)).astype(float)
    if kind == "blocks":
        C = C * (np.arange(n)[:, None] % 3 == np.arange(d) % 3)
    if kind == "copies":
        C[:, d // 2 :] = C[:, [0]]
    if kind == "zeros":
        C[:, ::2] = 0
    return C


def of_factor(C, width, run, features=None):
    return factor_lists(lambda at: C[:, at], *C.shape, width, run, features)


def of_matrix(C, width, run, features=None):
    return matrix_lists(C.T @ C, width, run, features)


def of_blocks(C, width, run, features=None):
    A = C.T @ C
    return block_lists(lambda i, j: A[i[:, None], j], len(A), width, run, features)


def of_stored(C, width, run, features=None):
    return stored_lists(scipy.sparse.csr_array(C.T @ C), width, run, features)


def of_sparse(C, width, run, features=None):
    X, d = scipy.sparse.csc_array(C), C.shape[1]
    return sparse_lists(X, np.ones(d), np.zeros(d), width, run, features=features)


FORMS = [of_factor, of_matrix, of_blocks, of_stored, of_sparse]
KINDS = ["plain", "raw", "ties", "blocks", "copies", "zeros"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_tiles")
def test_lists_are_complete(form, kind):
    C = data(kind, 9, 60)
    with one_call(n_jobs=2) as run:
        lists = form(C, 5, run)
        A = C.T @ C
        judge(lists, A)
        features = np.array([50, 3, 8, 41, 0, 17, 22, 58, 31])
        part = form(C, 5, run, features)
    judge(part, A[features[:, None], features])
    assert part.features is features
    assert lists.features is None


@pytest.mark.parametrize("kind", KINDS)
def test_few_features_need_no_kernel(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "blockspca._kernels.tiles", None)
    use_kernels(monkeypatch, False)
    for form in (of_factor, of_matrix, of_blocks):
        test_lists_are_complete(form, kind)
        for d in (1, 2, 3):
            test_lists_that_are_longer_than_rows(form, d)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_lists_that_are_longer_than_rows(form, d):
    C = data("plain", 4, d)
    with one_call() as run:
        lists = form(C, 7, run)
    assert lists.values.shape == lists.indices.shape == (d, 7)
    assert ((lists.indices >= 0).sum(axis=1) == d - 1).all()
    judge(lists, C.T @ C)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_tiles", "always_single")
def test_single_precision_misses_nothing(kind):
    C = data(kind, 9, 60)
    with one_call(n_jobs=2) as run:
        lists = of_factor(C, 5, run)
    top = (C**2).sum(axis=0).max()
    judge(lists, C.T @ C, single=2 * single.single_error(9) * top)


@pytest.mark.parametrize("distance", [1e-6, 1e-8, 1e-12, 0.0])
@pytest.mark.usefixtures("small_tiles", "always_single")
def test_entries_that_single_precision_cannot_tell_apart(distance):
    # A feature and its many near copies: the order of entries is lost in rounding.
    rng = np.random.default_rng(1)
    C = rng.normal(size=(30, 1)) * (1 + distance * rng.normal(size=70))
    with one_call() as run:
        lists = of_factor(C, 3, run)
    A = C.T @ C
    judge(lists, A, single=2 * single.single_error(30) * A.max())


@pytest.mark.usefixtures("small_tiles", "always_single")
def test_well_separated_entries_are_exact_in_single_precision():
    C = data("raw", 12, 80)
    with one_call() as run:
        wide, narrow = of_factor(C, 6, run), of_matrix(C, 6, run)
    np.testing.assert_allclose(wide.values, narrow.values, rtol=1e-12)
    np.testing.assert_array_equal(wide.indices, narrow.indices)


@pytest.mark.usefixtures("small_tiles", "always_single")
def test_little_memory_takes_double_precision():
    C = np.random.default_rng(2).normal(size=(30, 1)) * (1 + np.arange(70) / 1e12)
    with one_call() as run:
        raised = of_factor(C, 3, run)
    with one_call(Limits(memory=8 * C.size)) as run:
        exact = of_factor(C, 3, run)
    judge(exact, C.T @ C)
    assert (raised.values > exact.values + exact.error).any()


@pytest.mark.parametrize("size", [2.0**-180, 2.0**180])
@pytest.mark.usefixtures("always_single")
def test_single_precision_in_other_units(size):
    C = data("raw", 6, 40)
    with one_call() as run:
        usual, scaled = of_factor(C, 4, run), of_factor(size * C, 4, run)
    np.testing.assert_array_equal(scaled.values / size / size, usual.values)


@pytest.mark.usefixtures("always_single")
def test_entries_that_vanish_in_single_precision_are_listed():
    C = np.zeros((3, 6))
    C[0] = [1.0, 1e-30, 1e-60, 0, 0, 0]
    C[1, 3:5] = 1e-70, 1e-65
    with one_call() as run:
        lists = of_factor(C, 3, run)
    judge(lists, C.T @ C, single=1e-5)
    np.testing.assert_allclose(lists.values[2], [1e-60, 1e-90, 0.0])
    np.testing.assert_allclose(lists.values[3], [1e-135, 0.0, 0.0])


@pytest.mark.parametrize("form", [of_factor, of_sparse, of_matrix])
@pytest.mark.parametrize("kind", ["ties", "copies", "raw"])
@pytest.mark.parametrize("mode", ["double", "single"])
@pytest.mark.usefixtures("small_tiles")
def test_lists_do_not_depend_on_the_number_of_cores(form, kind, mode, monkeypatch):
    monkeypatch.setattr(single, "LEAST_FEATURES", 2 if mode == "single" else 10**9)
    monkeypatch.setattr("blockspca.scan.sweep.ENTRIES", 300)
    monkeypatch.setattr("blockspca.scan.sparse.PAIRS", 100)
    C = data(kind, 8, 90)
    answers = []
    for jobs in (1, 2, 5):
        with one_call(n_jobs=jobs) as run:
            answers.append(form(C, 4, run))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.values, answers[0].values)
        np.testing.assert_array_equal(answer.indices, answers[0].indices)


@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(2, 12),
    st.integers(0, 2),
    st.booleans(),
)
def test_sparse_data_with_means_and_low_rank(seed, n, d, rank, is_nonnegative):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    dense = np.abs(dense) if is_nonnegative else dense
    factor = rng.exponential(size=d) * (rng.random(d) < 0.9)
    shift = dense.mean(axis=0) * factor * np.sqrt(n)
    left, right = rng.normal(size=(2, d, rank)) * 0.3
    A = factor[:, None] * (dense.T @ dense) * factor - np.outer(shift, shift)
    diagonal = A.diagonal().clip(0) if rank == 0 else None
    low_rank = (left, right) if rank else None
    A = A - left @ right.T - right @ left.T
    X = scipy.sparse.csr_array(dense)
    with one_call(n_jobs=1) as run:
        lists = sparse_lists(
            X, factor, shift, 3, run, low_rank=low_rank, diagonal=diagonal
        )
    # The oracle's own rounding, and variances that are zero but for rounding.
    slack = 1e-13 * (1 + np.abs(A).max() + shift.max() ** 2)
    for i in range(d):
        best = np.sort(np.abs(np.delete(A[i], i)))[::-1][:3]
        assert (best <= lists.values[i, : len(best)] + lists.error + slack).all()
        at = lists.indices[i][lists.indices[i] >= 0]
        np.testing.assert_allclose(
            lists.values[i, : len(at)], np.abs(A[i, at]), 0, slack
        )


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 6))
def test_error_bounds_exact_entries(seed, n, d):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, d)) * 2.0 ** rng.integers(-30, 30, d)
    exact = [[Fraction(float(value)) for value in row] for row in C.T]
    factor = rng.exponential(size=d)
    shift = rng.normal(size=d)
    with one_call(n_jobs=1) as run:
        plain = of_factor(C, d, run)
        shifted = sparse_lists(scipy.sparse.csc_array(C), factor, shift, d, run)
    f, s = ([Fraction(float(value)) for value in of] for of in (factor, shift))
    for i in range(d):
        for lists, with_means in ((plain, False), (shifted, True)):
            for value, j in zip(lists.values[i], lists.indices[i], strict=True):
                if j < 0:
                    continue
                product = sum(a * b for a, b in zip(exact[i], exact[j], strict=True))
                if with_means:
                    product = f[i] * f[j] * product - s[i] * s[j]
                assert abs(Fraction(value) - abs(product)) <= Fraction(lists.error)


@pytest.mark.parametrize("form", FORMS)
def test_scans_stop_at_limits_and_tell_progress(form):
    C = data("plain", 9, 60)
    heard = []
    with one_call(Limits(work=0), progress=heard.append) as run, pytest.raises(Stop):
        form(C, 5, run)
    with one_call(Limits(work=1e-9), progress=heard.append) as run:
        form(C, 5, run)
        assert run.work == 0  # reading A does not use up the work of a proof
    if form is not of_stored:
        assert heard[-1].ends_stage
        assert {event.stage for event in heard} == {"scan"}


@pytest.mark.parametrize("bits", [32, 64])
def test_tile_kernels_equal_their_python(bits):
    add_tile, merge, none = tile_kernels(bits)
    real, integer = (np.float32, np.int32) if bits == 32 else (np.float64, np.int64)
    rng = np.random.default_rng(bits)
    for round_number in range(20):
        tile = rng.integers(-3, 4, (6, 70)).astype(real) / 7
        rows = np.arange(10, 16)
        columns = np.arange(12, 82) if round_number % 2 else np.arange(40, 110)
        answers = []
        for function, join in ((add_tile, merge), (add_tile.py_func, merge.py_func)):
            own = np.zeros((6, 3), integer), np.full((6, 3), -1, integer)
            shared = np.zeros((110, 3), integer), np.full((110, 3), -1, integer)
            shared[0][:] = real(round_number % 3 / 7).view(integer)
            sides = [ROWS, COLUMNS, ROWS + COLUMNS][round_number % 3]
            floors = np.empty(70, integer)
            patterns = tile.view(integer)
            function(patterns, rows, columns, 10, *own, *shared, floors, sides, none)
            part = shared[0][10:16], shared[1][10:16]
            join(*part, *own, 45, 60)
            answers.append((*own, *shared))
        for compiled, plain in zip(*answers, strict=True):
            np.testing.assert_array_equal(compiled, plain)


def test_sparse_kernel_equals_its_python():
    rng = np.random.default_rng(0)
    for round_number in range(12):
        X = scipy.sparse.random(9, 14, 0.3, format="csc", random_state=round_number)
        csr = X.tocsr()
        features = np.abs(rng.normal(size=(14, 4)))
        features[:, 3] = np.sort(features[:, 3])[::-1]
        if round_number % 2:
            features[:, 2] = np.inf
        pair = rng.normal(size=(2, 14, round_number % 3))
        arrays = [
            array
            for M in (csr, X)
            for array in (M.indptr.astype(np.int64), M.indices, M.data)
        ]
        answers = []
        for function in (add_sparse_rows, add_sparse_rows.py_func):
            total, values = np.zeros(14), np.zeros((14, 4))
            indices = np.full((14, 4), -1)
            largest = np.inf if round_number % 3 else features[:, 0].max()
            with np.errstate(invalid="ignore", divide="ignore"):
                function(
                    2, 12, *arrays, features, *pair, largest, total, values, indices
                )
            answers.append((total, values, indices))
        for compiled, plain in zip(*answers, strict=True):
            np.testing.assert_allclose(compiled, plain, rtol=1e-14)
        assert not answers[0][0].any()
        assert not answers[0][1][:2].any()


def test_compiled_kernels_are_found_in_the_cache(tmp_path):
    script = (
        "from blockspca._kernels.tiles import tile_kernels\n"
        "from blockspca._kernels.sparse_rows import add_sparse_rows\n"
        "kernels = *tile_kernels(64)[:2], *tile_kernels(32)[:2], add_sparse_rows\n"
        "print(sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels))\n"
    )
    source = str(Path(dense.__file__).parents[2])
    environment = {
        **os.environ, "PYTHONPATH": source, "NUMBA_CACHE_DIR": str(tmp_path)
    }  # fmt: skip
    answers = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=200,
        ).stdout
        for _ in range(2)
    ]
    assert answers == ["0\n", "5\n"]
