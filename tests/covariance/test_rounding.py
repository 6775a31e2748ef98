"""Entries of A against exact arithmetic: what rounding does is within entry_error."""

from __future__ import annotations

import warnings
from fractions import Fraction

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import blockspca.covariance.ingest as ingest_module
import blockspca.covariance.input_kinds as kinds_module
import blockspca.covariance.sources as sources_module
from blockspca import Covariance
from blockspca.covariance.derived import masked, restricted
from blockspca.covariance.rounding import SMALLEST_VARIANCE, split_mean
from exact_covariance import (
    exact_covariance,
    exact_optimum,
    hard_columns,
    worst_error,
)

KINDS = ("dense", "fortran", "sparse", "chunks", "mapped", "pairwise", "dask")

# Powers of ten of four columns: alike, far apart, below the smallest normal number.
SCALES = (
    (0, 0, 0, 0),
    (-140, -140, -140, -140),
    (130, 130, 130, 130),
    (0, -161, 0, -150),
    (-290, 280, -160, 160),
    (-320, 0, -310, 0),
)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Return a function (X, kind, options) → Covariance."""
    monkeypatch.setattr(kinds_module, "MAP_FROM", 0)
    monkeypatch.setattr(sources_module, "PART_BYTES", 128)  # several parts a file

    def build(X, kind, **options):
        with warnings.catch_warnings():  # sparse data with large means
            warnings.simplefilter("ignore")
            if kind == "chunks":
                return Covariance.from_chunks(np.array_split(X, 3), **options)
            if kind == "mapped":
                file = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
                np.save(file, X)
                data = np.load(file, mmap_mode="r")
            elif kind == "fortran":
                data = np.asfortranarray(X)
            elif kind == "sparse":
                data = sp.csr_array(X)
            elif kind == "dask":
                data = da.from_array(X, chunks=(3, 3))
            else:
                data = X
            return Covariance.from_data(data, missing="pairwise", **options)

    return build


def unless_refused(make, X, kind, **options):
    """The covariance, or None if float64 cannot hold its variances."""
    try:
        return make(X, kind, **options)
    except ValueError as error:
        if "rescale X" not in str(error):
            raise
        return None


def data_of(seed, exponents):
    rng = np.random.default_rng(seed)
    columns = hard_columns(rng, n=int(rng.integers(5, 14)))
    chosen = rng.choice(sorted(columns), 4, replace=False)
    X = np.stack([columns[name] for name in chosen], axis=1)
    return X * np.array([float(f"1e{e}") for e in exponents]), rng


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exponents", SCALES)
def test_entries_are_exact_to_within_entry_error(make, kind, exponents):
    checked = 0
    for seed in range(3 if kind == "dask" else 12):
        X, rng = data_of(seed, exponents)
        if kind == "pairwise":
            X[0, 0] = np.nan
        options = {
            "center": bool(rng.integers(4)),
            "scale": bool(rng.integers(2)),
            "ddof": int(rng.integers(2)),
        }
        cov = unless_refused(make, X, kind, **options, constant="ignore")
        if cov is None:
            assert not options["scale"]
            continue
        exact = exact_covariance(X, **options)
        error = Fraction(cov.entry_error)
        assert worst_error(cov.submatrix(slice(None)), exact) <= error
        assert worst_error(cov.rows(np.arange(4)), exact) <= error
        diagonal = [[exact[j][j] for j in range(4)]]
        assert worst_error(cov.diagonal()[None], diagonal) <= error
        checked += 1
    assert checked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exponent", [-300, -161, -157, 0, 160, 290])
def test_correlations_have_unit_diagonals_at_any_scale(make, kind, exponent):
    X = np.random.default_rng(3).standard_normal((30, 6)) + 2
    X[0, 0] = np.nan if kind == "pairwise" else X[0, 0]
    scaled = X * float(f"1e{exponent}")
    cov = make(scaled, kind, scale=True)
    np.testing.assert_allclose(cov.diagonal(), 1.0, rtol=0, atol=4e-15)
    plain = make(X, kind, scale=True).submatrix(slice(None))
    np.testing.assert_allclose(cov.submatrix(slice(None)), plain, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse", "chunks", "mapped", "dask"])
@pytest.mark.parametrize("mean", [1e6, 1e12, -1e15])
def test_a_mean_that_is_large_beside_the_deviation_costs_nothing(make, kind, mean):
    X = np.random.default_rng(1).standard_normal((40, 5)) + mean
    exact = exact_covariance(X)
    cov = make(X, kind)
    largest = float(max(exact[j][j] for j in range(5)))
    assert worst_error(cov.submatrix(slice(None)), exact) < 1e-14 * largest
    assert cov.entry_error < 1e-12 * largest


@pytest.mark.parametrize("kind", ["dense", "sparse", "chunks", "mapped", "dask"])
@pytest.mark.parametrize(
    ("exponents", "mean"),
    [
        (0, 1e12),
        (0, 1e15),
        (-140, 0.0),
        (-146, 0.0),
        (-157, 0.0),
        (-161, 0.0),
        (-170, 0.0),
        (150, 0.0),
        (160, 0.0),
        ((0, 0, 0, 0, -161, -161), 0.0),
        ((-161, -161, -161, -161, 0, -161), 0.0),
        ((-100, -100, -100, 0, 0, 0), 1e10),
    ],
)
@pytest.mark.parametrize("scale", [False, True])
def test_optima_at_extreme_scales(make, kind, exponents, mean, scale):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((9, 6)) @ rng.standard_normal((6, 6)) + mean
    X *= 10.0 ** np.array(exponents, dtype=float)
    cov = unless_refused(make, X, kind, scale=scale)
    if cov is None:
        assert not scale
        assert np.min(exponents) < -145 or np.max(exponents) > 150
        return
    exact = exact_covariance(X, scale=scale)
    for k in (2, 3):
        value, e = exact_optimum(exact, k)
        optimum = Fraction(value) * Fraction(2) ** e
        result = bs.solve(cov, k)
        assert Fraction(result.upper_bound) >= optimum * (1 - Fraction(1, 10**13))
        difference = abs(Fraction(result.objective) - optimum)
        assert difference <= optimum / 10**9
        assert bs.verify(result, cov).complete


def test_data_too_small_for_their_variances_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 4))
    edge = np.sqrt(SMALLEST_VARIANCE)
    Covariance.from_data(X * (4 * edge))
    for data in (X * (edge / 8), sp.csr_array(X * (edge / 8))):
        with pytest.raises(ValueError, match=r"underflows.*feature.*0, 1.*rescale X"):
            Covariance.from_data(data)
        assert Covariance.from_data(data, scale=True).n_features == 4


def test_one_small_column_does_not_matter():
    X = np.random.default_rng(0).standard_normal((20, 4))
    X[:, 1] *= 1e-161
    cov = Covariance.from_data(X)
    result = bs.solve(cov, 2)
    assert result.status is bs.Status.OPTIMAL
    assert 1 not in result.support


@pytest.mark.parametrize("size", [1.7e308, 1e308])
def test_sparse_matrices_whose_sums_overflow_are_refused(size):
    A = np.full((3, 3), size)
    for make_sparse in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        with pytest.raises(ValueError, match="overflows; divide A"):
            Covariance.from_matrix(make_sparse(A))


def test_matrices_of_numbers_that_are_not_normal_are_refused():
    A = np.diag([3e-310, 1e-310])
    for matrix in (A, sp.csr_array(A)):
        with pytest.raises(ValueError, match="fewer digits; multiply A"):
            Covariance.from_matrix(matrix)
    assert Covariance.from_matrix(np.zeros((2, 2))).max_abs() == 0


@pytest.mark.parametrize("scale", [2.0**-1010, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_matrices_at_extreme_scales(scale, kind):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((7, 7))
    A = (A + A.T) * scale
    matrix = sp.csr_array(A) if kind == "sparse" else A
    exact = [[Fraction(v) for v in row] for row in A]
    for k in (1, 3, 5):
        value, e = exact_optimum(exact, k)
        optimum = Fraction(value) * Fraction(2) ** e
        result = bs.solve(matrix, k)
        assert Fraction(result.upper_bound) >= optimum * (1 - Fraction(1, 10**13))
        assert abs(Fraction(result.objective) - optimum) <= optimum / 10**9


def test_the_two_parts_of_a_mean_add_up_exactly():
    rng = np.random.default_rng(0)
    start = rng.standard_normal(200) * 10.0 ** rng.integers(-20, 20, 200)
    offset = rng.standard_normal(200) * 10.0 ** rng.integers(-20, 20, 200)
    for a, b, high, low in zip(start, offset, *split_mean(start, offset), strict=True):
        assert Fraction(a) + Fraction(b) == Fraction(high) + Fraction(low)
        assert high == a + b


def test_factor_error_covers_the_columns():
    """λmax of the exact A against that of CC' and its allowance."""
    for seed in range(20):
        X, _ = data_of(seed, (0, 0, 0, 0))
        cov = Covariance.from_data(X)
        exact = exact_covariance(X)
        C = [[Fraction(v) for v in row] for row in cov.columns(np.arange(4))]
        for j in range(4):  # x = e_j: the norms of columns
            stored = sum(row[j] ** 2 for row in C)
            error = Fraction(cov.factor_error)
            bound = (
                stored + 2 * error * Fraction(float(stored) ** 0.5 * 1.01) + error**2
            )
            assert bound >= exact[j][j]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.bool_, np.uint16])
def test_other_types_of_numbers(dtype):
    X = (np.random.default_rng(2).standard_normal((12, 4)) * 40).astype(dtype)
    exact = exact_covariance(X.astype(float))
    for data in (X, sp.csr_array(X)):
        cov = Covariance.from_data(data)
        error = Fraction(cov.entry_error)
        assert worst_error(cov.submatrix(slice(None)), exact) <= error


@pytest.mark.parametrize("part", [1, 30, 640, 1300])
@pytest.mark.parametrize("options", [{}, {"scale": True}, {"center": False}])
def test_parts_of_rows_or_columns_make_no_difference(monkeypatch, part, options):
    X = np.random.default_rng(6).standard_normal((10, 150)) + 3
    X[:, 70] *= 1e-200
    X[:, 140] = 5.0
    X[:, 3] += 1e13
    if "scale" not in options:
        X[:, 70] *= 1e200
    expected = Covariance.from_data(X, constant="ignore", **options)
    monkeypatch.setattr(ingest_module, "PART_ENTRIES", part)
    cov = Covariance.from_data(X, constant="ignore", **options)
    error = cov.entry_error + expected.entry_error
    difference = cov.submatrix(slice(None)) - expected.submatrix(slice(None))
    assert np.abs(difference).max() <= error
    chosen = [3, 70, 139, 140]
    exact = exact_covariance(X[:, chosen], **options)
    assert worst_error(cov.submatrix(chosen), exact) <= Fraction(cov.entry_error)


@pytest.mark.parametrize("exponent", [-155, -158, -161])
def test_what_underflows_is_covered_where_nothing_else_is_left(exponent):
    """The small features alone: their products are short of digits, and say so."""
    small = [1, 2, 3]
    lost = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 4)) * rng.uniform(2, 5, 4)
        X[:, small] *= float(f"1e{exponent}")
        exact = exact_covariance(X[:, small])
        cov = Covariance.from_data(X)
        for left, index in (
            (restricted(cov, np.array(small)), [0, 1, 2]),
            (masked(cov, np.array([0])), small),
        ):
            error = worst_error(left.submatrix(index), exact)
            assert error <= Fraction(left.entry_error)
            relative = 20 * np.finfo(float).eps * left.diagonal().max()
            lost += error > Fraction(relative)
            value, e = exact_optimum(exact, 2)
            optimum = Fraction(value) * Fraction(2) ** e
            bound = Fraction(bs.solve(left, 2).upper_bound)
            assert bound >= optimum * (1 - Fraction(1, 10**12))
    assert lost or exponent == -155  # without underflow in the bound, they would be
