"""One contract for all forms of data: entries of A, their error, their identity."""

from __future__ import annotations

import math
import re
import tracemalloc
import warnings
from pathlib import Path
from types import SimpleNamespace

import anndata as ad
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import blockspca
from blockspca.call import one_call
from blockspca.covariance import (
    Covariance,
    DataChangedError,
    as_covariance,
    raised,
    residual,
)
from blockspca.covariance import files as files_module
from blockspca.covariance import tables as tables_module
from exact import exact_covariance, hard_columns, worst_error


def memmap(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def hdf5(X, folder):
    import h5py

    file = h5py.File(folder / f"{len(list(folder.iterdir()))}.h5", "w")
    return file.create_dataset("X", data=X)


def zarray(X, folder):
    import zarr

    path = str(folder / f"{len(list(folder.iterdir()))}.zarr")
    return zarr.create_array(store=path, data=X, chunks=(2, 3))


def group(X, folder):
    import anndata
    import h5py

    path = folder / f"{len(list(folder.iterdir()))}.h5ad"
    with h5py.File(path, "w") as file:
        anndata.io.write_elem(file, "X", X)
    return h5py.File(path)["X"]


def dask_array(X, folder, kind=np.asarray):
    import dask.array as da

    return da.from_array(X, chunks=(2, 3)).map_blocks(kind)


FORMS = {
    "dense": lambda X, folder: X,
    "fortran": lambda X, folder: np.asfortranarray(X),
    "list": lambda X, folder: X.tolist(),
    "float32": lambda X, folder: X.astype(np.float32),
    "csr": lambda X, folder: sp.csr_array(X),
    "csc": lambda X, folder: sp.csc_matrix(X),
    "csr32": lambda X, folder: sp.csr_array(X.astype(np.float32)),
    "memmap": memmap,
    "pandas": lambda X, folder: pd.DataFrame(X).add_prefix("x"),
    "polars": lambda X, folder: pl.DataFrame(X),
    "anndata": lambda X, folder: ad.AnnData(X),
    "hdf5": hdf5,
    "hdf5-csr": lambda X, folder: group(sp.csr_matrix(X), folder),
    "hdf5-csc": lambda X, folder: group(sp.csc_matrix(X), folder),
    "zarr": zarray,
    "dask": dask_array,
    "dask-csr": lambda X, folder: dask_array(X, folder, sp.csr_array),
}


@pytest.fixture(params=list(FORMS))
def form(request, tmp_path, monkeypatch):
    """Return a function X → the same numbers in another form, in several blocks."""
    monkeypatch.setattr(tables_module, "ENTRIES", 12)
    monkeypatch.setattr(tables_module, "STORED", 5)
    monkeypatch.setattr(files_module, "STORED", 5)
    monkeypatch.setattr(files_module, "SMALL", 0)
    convert = FORMS[request.param]
    return SimpleNamespace(
        name=request.param, make=lambda X: convert(np.array(X), tmp_path)
    )


def quietly(make, *args, **options):
    """Call without the warning of sparse data with large means."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **options)


def small(seed=0, n=9, d=5):
    """Data of float32 numbers, so that all forms hold the same ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    return (X + 1.5 * (np.arange(d) == 2)).astype(np.float32).astype(float)


@pytest.mark.parametrize("shape", [(9, 5), (4, 7)])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_all_forms_have_the_entries_of_the_exact_covariance(form, shape, center, scale):
    X = small(1, *shape)
    options = {"center": center, "scale": scale, "constant": "ignore"}
    cov = Covariance.from_data(form.make(X), **options)
    exact = exact_covariance(X, center=center, scale=scale)
    A = np.array([[float(v) for v in row] for row in exact])
    d, error = len(A), cov.entry_error
    assert error <= 1e-11 * A.max()
    assert worst_error(cov.submatrix(slice(None)), exact) <= error
    assert np.abs(cov.diagonal() - A.diagonal()).max() <= error
    assert np.abs(cov.block([3, 0], [1, 3]) - A[[3, 0]][:, [1, 3]]).max() <= error
    assert np.abs(cov.block([3, 0], slice(None)) - A[[3, 0]]).max() <= error
    assert np.abs(cov.block(slice(1, 3), slice(2, 4)) - A[1:3, 2:4]).max() <= error
    for x in (np.arange(d) - 1.5, np.eye(d)[:, :2]):
        np.testing.assert_allclose(cov.matvec(x), A @ x, atol=1e-12)
    C = cov.factor.columns(np.arange(d))
    assert C.shape == (cov.factor.n, d)
    np.testing.assert_allclose(C.T @ C, A, atol=1e-12)
    weights = np.arange(d, dtype=float)
    np.testing.assert_allclose(cov.factor.gram(weights), C * weights @ C.T, atol=1e-12)
    assert cov.known_psd
    assert cov.n_samples == shape[0]
    assert cov.trace == pytest.approx(A.trace())
    with one_call(n_jobs=2) as run:
        formed = cov.formed(run)
        assert (formed is cov) == (shape[0] <= shape[1])
        assert formed.formed(run) is formed
        assert worst_error(formed.submatrix(slice(None)), exact) <= formed.entry_error
    part = cov.subset([3, 1])
    assert np.abs(part.submatrix([0, 1]) - A[[3, 1]][:, [3, 1]]).max() <= error


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@pytest.mark.parametrize("name", ["dense", "csr", "float32"])
def test_errors_of_hard_columns_are_within_the_bound(name, seed, scale, center):
    rng = np.random.default_rng(seed)
    X = hard_columns(rng, n=int(rng.integers(3, 14)))
    X = X[:, rng.permutation(X.shape[1])[: rng.integers(2, 7)]]
    if not np.ptp(X, axis=0).any():
        return
    data = FORMS[name](X, None)
    if name == "float32":
        X = X.astype(np.float32).astype(float)
        if not np.ptp(X, axis=0).any():
            return
    weights = rng.integers(0, 4, size=len(X)) if seed % 2 else None
    options = {"scale": scale, "center": center}
    if weights is not None:
        weights[:2] += 1
        if not np.ptp(X[weights > 0], axis=0).any():
            return
    options["sample_weight"] = weights
    try:
        cov = quietly(Covariance.from_data, data, constant="ignore", **options)
    except ValueError as error:  # 1e16 ± 1 is refused where nμ² is subtracted
        if name == "csr" and "no digits" in str(error):
            return
        raise
    exact = exact_covariance(X, center=center, scale=scale, weights=weights)
    assert worst_error(cov.submatrix(slice(None)), exact) <= cov.entry_error
    diagonal = [float(exact[j][j]) for j in range(X.shape[1])]
    off = np.abs(cov.diagonal() - diagonal)
    assert off.max() <= cov.entry_error + 1e-15 * max(diagonal)
    with one_call(n_jobs=1) as run:
        formed = cov.formed(run)
    assert worst_error(formed.submatrix(slice(None)), exact) <= formed.entry_error


def test_large_means_cost_no_digits_of_dense_data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 3)) * 2**20) / 2**20
    A = Covariance.from_data(X)
    shifted = Covariance.from_data(X + 2.0**30)  # the same deviations, exactly
    assert shifted.entry_error <= 2 * A.entry_error
    difference = np.abs(A.submatrix(slice(None)) - shifted.submatrix(slice(None)))
    assert difference.max() <= 2 * A.entry_error


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("ddof", [0, 1])
def test_weight_two_is_the_sample_twice(form, scale, ddof):
    X, w = small(2), np.array([2, 1, 0, 1, 3, 1, 1, 2, 1])
    options = {"scale": scale, "ddof": ddof, "constant": "ignore"}
    weighted = Covariance.from_data(form.make(X), sample_weight=w, **options)
    repeated = Covariance.from_data(np.repeat(X, w, axis=0), **options)
    everything = slice(None)
    A, B = weighted.submatrix(everything), repeated.submatrix(everything)
    assert np.abs(A - B).max() <= weighted.entry_error + repeated.entry_error
    np.testing.assert_allclose(weighted.diagonal(), repeated.diagonal(), rtol=1e-13)
    x = np.arange(5) - 1.0
    np.testing.assert_allclose(weighted.matvec(x), B @ x, atol=1e-12)
    C = weighted.factor.columns(np.arange(5))
    np.testing.assert_allclose(C.T @ C, B, atol=1e-12)
    with one_call(n_jobs=1) as run:
        formed = weighted.formed(run)
    assert np.abs(formed.submatrix(everything) - B).max() <= 2 * formed.entry_error


@pytest.mark.parametrize(
    "weights", [[0.5] * 9, [-1] + [1] * 8, [0] * 9, [1] * 8, ["a"] * 9, [np.nan] * 9]
)
def test_weights_that_are_no_frequencies_are_refused(weights):
    with pytest.raises(ValueError, match=r"sample_weight.*; use"):
        Covariance.from_data(small(), sample_weight=weights)


def test_identity_is_the_same_in_all_forms_and_names_the_data(form):
    X = small(3)
    cov = Covariance.from_data(form.make(X), scale=True)
    dense = Covariance.from_data(X)
    assert (cov.identity.marks == dense.identity.marks).all()
    assert cov.identity.sha256(form.make(X)) == dense.identity.sha256(X)
    cov.check_unchanged()
    X[2, 1] += 1
    with pytest.raises(DataChangedError, match=r"1 feature.*being 1"):
        cov.identity.sha256(form.make(X))
    with pytest.raises(DataChangedError, match="shape"):
        cov.identity.sha256(X[1:])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.csc_array, np.float32])
def test_a_change_of_data_in_place_is_refused(kind):
    X = kind(small(4, 30, 4))
    cov = Covariance.from_data(X)
    cov.check_unchanged()
    cov.block([1], [2])
    values = X.data if sp.issparse(X) else X[3]
    values[1] += 1
    with pytest.raises(DataChangedError, match="X has changed"):
        cov.check_unchanged()
    with one_call() as run, pytest.raises(DataChangedError):
        cov.formed(run)


def test_data_that_change_while_they_are_read_are_refused(monkeypatch):
    X = small(5, 30, 4)
    take = tables_module.ArrayTable.block
    calls = []

    def block(table, rows, columns):
        calls.append(rows)
        if len(calls) == 2:
            X[0, 0] += 1
        return take(table, rows, columns)

    monkeypatch.setattr(tables_module.ArrayTable, "block", block)
    with pytest.raises(DataChangedError, match="while it was read"):
        Covariance.from_data(X)


def test_no_copy_of_tall_or_converted_data_is_kept(monkeypatch):
    monkeypatch.setattr(tables_module, "ENTRIES", 12)
    tall, wide = small(6, 30, 4), small(6, 3, 20)
    for X in (tall, np.float32(wide), sp.csr_array(tall)):
        table = Covariance.from_data(X)._source.table
        assert table.X is X


@pytest.mark.parametrize("scale", [1e-290, 1e-170, 1e150, 1e300])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_correlations_of_numbers_of_any_size(kind, scale):
    X = small(7)
    units = np.where(np.arange(5) % 2, scale, 1.0)
    A = Covariance.from_data(kind(X * units), scale=True)
    expected = np.corrcoef((X * units / units).T)
    np.testing.assert_allclose(A.submatrix(slice(None)), expected, atol=1e-13)
    np.testing.assert_allclose(A.mean / units, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(A.scale / units, X.std(axis=0, ddof=1), rtol=1e-12)


def test_entries_of_shared_data_err_by_less_than_a_billionth(data_folder):
    for name in ("ALLAML", "gordon", "Dorothea_train", "madelon", "BASEHOCK"):
        X = load_shared(data_folder / f"{name}.npz")
        for scale in (False, True):
            cov = quietly(Covariance.from_data, X, scale=scale, constant="ignore")
            assert cov.entry_error < 1e-9 * cov.diagonal().max(), (name, scale)
            some = cov.diagonal().argsort()[[-1, -2, -100]]
            columns = X[:, some].toarray() if sp.issparse(X) else X[:, some]
            exact = exact_covariance(columns.astype(float), scale=scale)
            assert worst_error(cov.submatrix(some), exact) <= cov.entry_error


def load_shared(path):
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file:
            parts = file["data"], file["indices"], file["indptr"]
            return sp.csr_array(parts, shape=tuple(file["shape"]))
        return file["X"]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("center", [True, False])
def test_chunks_have_the_entries_of_the_exact_covariance(kind, scale, center):
    X = hard_columns(np.random.default_rng(3), 12)[:, [0, 1, 3, 4, 6]]
    chunks = (kind(X[i : i + 5]) for i in range(0, 12, 5))
    options = {"scale": scale, "center": center}
    cov = Covariance.from_chunks(chunks, constant="ignore", **options)
    exact = exact_covariance(X, **options)
    assert worst_error(cov.submatrix(slice(None)), exact) <= cov.entry_error
    assert cov.n_samples == 12
    assert cov.known_psd


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_pairs_have_the_entries_of_the_exact_covariance(seed, scale, center):
    rng = np.random.default_rng(seed)
    X = hard_columns(rng, 14)[:, [0, 1, 3, 4, 6]]
    X[rng.random(X.shape) < 0.2] = np.nan
    options = {"scale": scale, "center": center}
    try:
        cov = Covariance.from_data(X, missing="pairwise", constant="ignore", **options)
    except ValueError as error:
        if "too few" in str(error) or "no variance" in str(error):
            return
        raise
    exact = exact_covariance(X, **options)
    assert worst_error(cov.submatrix(slice(None)), exact) <= cov.entry_error
    size = max(abs(float(v)) for row in exact for v in row)
    assert size <= cov._source.largest()
    with one_call(n_jobs=1) as run:
        formed = cov.formed(run)
    assert formed is not cov
    assert worst_error(formed.submatrix(slice(None)), exact) <= formed.entry_error
    assert not cov.known_psd
    assert Covariance.from_data(small(), missing="pairwise").known_psd


SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    "convert",
    [np.array, np.asfortranarray, sp.csr_array, pd.DataFrame, pl.DataFrame, list],
)
def test_as_covariance_reads_matrices_and_data(convert):
    A = as_covariance(convert(SQUARE))
    assert A.n_samples is None
    assert A.entry_error == 0
    np.testing.assert_array_equal(A.submatrix([0, 1]), SQUARE)
    np.testing.assert_array_equal(A.diagonal(), [2, 3])
    np.testing.assert_array_equal(A.matvec(np.ones(2)), [3, 4])
    assert as_covariance(A) is A
    X = small()
    data = as_covariance(convert(X))
    assert data.n_samples == 9
    np.testing.assert_allclose(data.submatrix(slice(None)), np.cov(X.T), atol=1e-12)
    with pytest.raises(ValueError, match=r"symmetric; use \(A \+ A.T\) / 2"):
        as_covariance(convert(SQUARE + np.eye(2, k=1)))


def test_names_come_from_frames_and_reach_subsets():
    frame = pd.DataFrame(small(), columns=list("abcde"))
    assert as_covariance(frame).feature_names == tuple("abcde")
    assert as_covariance(frame.cov()).feature_names == tuple("abcde")
    assert as_covariance(frame).subset([3, 0]).feature_names == ("d", "a")
    data = ad.AnnData(small(), var=pd.DataFrame(index=list("vwxyz")))
    assert as_covariance(data).feature_names == tuple("vwxyz")
    named = Covariance.from_data(frame, feature_names=list("fghij"))
    assert named.feature_names == tuple("fghij")


def other_library(module, name="Tensor"):
    return type(name, (), {"__module__": module})()


def with_value(value, at=(1, 2)):
    X = small()
    X[at] = value
    return X


BAD = {
    "nan": (with_value(np.nan), ValueError, r"1 missing value\(s\), in feature\(s\) 2"),
    "infinite": (with_value(-np.inf), ValueError, r"1 infinite value.*replace"),
    "sparse nan": (sp.csr_array(with_value(np.nan)), ValueError, "1 missing"),
    "empty": (np.zeros((0, 3)), ValueError, r"shape \(0, 3\) and cannot be empty"),
    "one sample": (np.ones((1, 3)), ValueError, "1 sample, too few for ddof = 1"),
    "text": ("data.csv", TypeError, "'data.csv' is a text.*read the file first"),
    "text entries": (np.array([["a", "b"]]), TypeError, "dtype <U1.*astype"),
    "text columns": (
        pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        TypeError,
        r"1 column\(s\).*b \(.*drop or encode",
    ),
    "objects": (np.array([[1, None]], dtype=object), TypeError, "dtype object"),
    "complex": (small() * 1j, TypeError, "complex.*X.real"),
    "vector": (np.ones(3), ValueError, r"shape \(3,\).*reshape"),
    "ragged": ([[1.0], [1.0, 2.0]], ValueError, "rows of equal length"),
    "none": (None, TypeError, "NoneType and must be a table"),
    "dict": ({}, TypeError, "dict and must be a table"),
    "series": (pd.Series([1.0]), TypeError, "Series.*use a DataFrame"),
    "torch": (other_library("torch"), TypeError, r"use X.numpy\(force=True\)"),
    "jax": (
        other_library("jaxlib._jax", "ArrayImpl"),
        TypeError,
        r"numpy.asarray\(X\)",
    ),
    "overflow": (small() * 1e200, ValueError, r"multiply X by 2.0\*\*-66\d"),
    "infinite squares": (
        np.array([[1e308, 0], [-1e308, 1], [0, 0]]),
        ValueError,
        r"multiply X by 2.0\*\*-1024",
    ),
    "underflow": (small() * 1e-100, ValueError, r"2\*\*-200.*multiply X by 2.0\*\*33"),
    "constant": (np.ones((4, 2)), ValueError, "no variance"),
}


@pytest.mark.parametrize("kind", list(BAD))
def test_bad_data_get_a_sentence_with_the_fix(kind):
    X, error, words = BAD[kind]
    with pytest.raises(error, match=words) as message:
        Covariance.from_data(X)
    text = str(message.value)
    assert text.startswith("X ")
    assert len(text.split(";")) >= 2
    assert text.endswith(".")


BAD_MATRICES = {
    "nan": ([[1.0, np.nan], [np.nan, 1.0]], r"A\[0, 1\] = nan must be finite"),
    "sparse nan": (sp.csr_array([[np.inf, 0], [0, 1]]), r"A\[0, 0\] = inf"),
    "rectangular": (np.ones((2, 3)), "must be square; use Covariance.from_data"),
    "asymmetric": ([[1.0, 2.0], [0.0, 1.0]], r"A\[0, 1\] = 2.0 but A\[1, 0\] = 0.0"),
    "sparse asymmetric": (sp.csr_array([[1.0, 2], [0, 1]]), r"A\[0, 1\] = 2.0 but"),
    "large": (np.eye(2) * 2.0**201, r"multiply A by 2.0\*\*-201"),
    "small": (np.eye(2) * 2.0**-201, r"multiply A by 2.0\*\*201"),
}


@pytest.mark.parametrize("kind", list(BAD_MATRICES))
def test_bad_matrices_get_a_sentence_with_the_fix(kind):
    A, words = BAD_MATRICES[kind]
    with pytest.raises(ValueError, match=words):
        Covariance.from_matrix(A)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feature_names": ["a"] * 5}, "cannot repeat 'a'"),
        ({"feature_names": ["a"]}, "1 names and must have 5"),
        ({"center": "yes"}, "center = 'yes' must be True or False"),
        ({"ddof": -1}, "ddof = -1 must be"),
        ({"missing": "drop"}, "missing = 'drop' must be one of"),
        ({"constant": "drop"}, "constant = 'drop' must be one of"),
    ],
)
def test_bad_options_get_a_sentence(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Covariance.from_data(small(), **options)


def test_constant_columns_are_a_warning_if_there_is_a_scale():
    X = with_value(1.0, (slice(None), [1, 3]))
    with pytest.warns(UserWarning, match=r"2 constant feature\(s\): 1, 3.*no loading"):
        A = Covariance.from_data(X, scale=True)
    assert not A.block([1, 3], slice(None)).any()
    with pytest.raises(ValueError, match="constant='ignore'"):
        Covariance.from_data(X, scale=True, constant="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Covariance.from_data(X, scale=True, constant="ignore")
        Covariance.from_data(X)


def test_sparse_data_with_large_means_are_a_warning():
    X = sp.csr_array(small() + 1e4)
    with pytest.warns(UserWarning, match="use a dense X"):
        Covariance.from_data(X)


def test_halves_of_a_matrix_that_differ_by_rounding_are_averaged():
    A = SQUARE + 1e-15 * np.eye(2, k=1)
    cov = Covariance.from_matrix(A)
    assert (cov.submatrix([0, 1]) == cov.submatrix([0, 1]).T).all()
    assert cov.identity is None  # a proof could not name the numbers
    assert Covariance.from_matrix(SQUARE).identity is not None
    assert cov.submatrix([0, 1]) is not A


def test_sources_are_asked_for_their_kind_in_this_room_only():
    package = Path(blockspca.__file__).parent
    names = "Table|Source|Matrix|Columns|DenseData|SparseData|Pairwise|OfTable"
    question = re.compile(rf"isinstance\([^)]*\b(\w*Table|{names})\b|\._source\b")
    for path in package.rglob("*.py"):
        if path.parent.name != "covariance":
            assert not question.search(path.read_text(encoding="utf-8")), path


def largest_by_rows(A, width):
    """Brute force: the largest |A_ij|, j ≠ i, of each row."""
    sizes = np.abs(A)
    np.fill_diagonal(sizes, -1.0)
    return np.sort(sizes, axis=1)[:, ::-1][:, :width]


@pytest.mark.parametrize("shape", [(9, 5), (4, 7)])
def test_lists_are_the_largest_entries(form, shape):
    X = small(8, *shape)
    w = np.arange(shape[0]) % 3 + 1
    for options in ({}, {"scale": True, "constant": "ignore"}, {"sample_weight": w}):
        cov = Covariance.from_data(form.make(X), **options)
        A = cov.submatrix(slice(None))
        V = np.eye(shape[1])[:, :1] + 0.5
        for view in (cov, cov.subset([4, 1, 2, 0]), residual(cov, V), raised(cov)):
            A = np.array(view.submatrix(slice(None)))
            with one_call(n_jobs=2) as run:
                lists = view.lists(3, run)
                some = view.lists(2, run, np.array([3, 0, 2]))
            expected = largest_by_rows(A, 3)
            assert lists.error >= view.entry_error
            assert np.abs(lists.values - expected).max() <= lists.error + 1e-13
            rows = np.arange(len(A))[:, None]
            listed = np.where(lists.indices >= 0, np.abs(A[rows, lists.indices]), 0)
            assert np.abs(listed - lists.values).max() <= lists.error + 1e-13
            expected = largest_by_rows(A[[3, 0, 2]][:, [3, 0, 2]], 2)
            assert np.abs(some.values - expected).max() <= some.error + 1e-13


def test_sparse_data_without_digits_are_refused():
    with pytest.raises(ValueError, match="subtract a constant"):
        Covariance.from_data(sp.csr_array(small() + 2.0**26))


def test_anndata_in_a_file_and_its_views_are_read(tmp_path):
    X = small()
    data = ad.AnnData(sp.csr_matrix(X))
    data.write_h5ad(tmp_path / "x.h5ad")
    expected = np.cov(X.T)
    for table in (data, data[:, :], ad.read_h5ad(tmp_path / "x.h5ad", backed="r")):
        A = as_covariance(table).submatrix(slice(None))
        np.testing.assert_allclose(A, expected, atol=1e-12)


def test_matrices_of_numpy_and_masked_arrays_are_read():
    X = small()
    expected = np.cov(X.T)
    A = as_covariance(np.asmatrix(X)).submatrix(slice(None))
    np.testing.assert_allclose(A, expected, atol=1e-12)
    masked = np.ma.masked_array(X, mask=np.eye(9, 5, dtype=bool))
    with pytest.raises(ValueError, match="5 missing"):
        Covariance.from_data(masked)
    assert Covariance.from_data(masked, missing="pairwise").n_samples is None


def test_a_cluster_of_two_processes_moves_sums_only():
    from distributed import Client, LocalCluster

    X = small(9, 40, 6)
    dense = Covariance.from_data(X, scale=True, sample_weight=np.arange(40) % 3)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster),
        one_call(n_jobs=1) as run,
    ):
        for kind in (np.asarray, sp.csr_array):
            cov = Covariance.from_data(
                dask_array(X, None, kind), scale=True, sample_weight=np.arange(40) % 3
            )
            assert (cov.identity.marks == dense.identity.marks).all()
            for view in (cov, cov.formed(run)):
                A = view.submatrix(slice(None))
                np.testing.assert_allclose(A, dense.submatrix(slice(None)), atol=1e-12)
            lists, expected = cov.lists(3, run), dense.lists(3, run)
            np.testing.assert_allclose(lists.values, expected.values, atol=1e-12)
            cov.check_unchanged()


def peak_above(make):
    """Return how many bytes NumPy holds at most during a call, and after it."""
    tracemalloc.start()
    try:
        result = make()
        rest, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return result, peak, rest


def test_memory_beside_the_data_is_bounded(tmp_path):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(300, 20_000))  # 48 MB
    block = 8 * tables_module.ENTRIES
    vectors = 60 * 8 * wide.shape[1]  # means, sums, variances: a few dozen
    _, peak, rest = peak_above(lambda: Covariance.from_data(wide, scale=True))
    assert peak <= wide.nbytes + vectors
    tall = np.ascontiguousarray(wide.T)
    for X in (tall, memmap(tall, tmp_path), wide.astype(np.float32)):
        _, peak, rest = peak_above(lambda X=X: Covariance.from_data(X))
        assert peak <= block + vectors
        assert rest <= vectors
    X = sp.random_array((20_000, 500), density=0.1, rng=rng, format="csr")
    stored = X.data.nbytes + X.indices.nbytes
    cov, _, rest = peak_above(lambda: Covariance.from_data(X, scale=True))
    assert rest <= 0.05 * stored
    _, _, rest = peak_above(lambda: cov.block([1, 2], [3, 4]))
    assert rest <= 1.05 * stored  # the other orientation


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        (np.ones((3, 2)), "ndarray and must be several tables"),
        ([], "chunks are empty"),
        ([small(), small()[:, :3]], "chunk 1 has 3 columns and must have 5"),
        ([small(), with_value(np.nan)], "chunk 1 has 1 missing"),
        ([small()[:1]], "1 sample, too few"),
        ([small() * 1e200], r"multiply X by 2.0\*\*-66\d"),
        ([small() * 1e-200], r"multiply X by 2.0\*\*6\d\d"),
    ],
)
def test_bad_chunks_get_a_sentence(chunks, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Covariance.from_chunks(chunks)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_sums_are_compensated_and_constants_stay_constant(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(30_000), np.full(30_000, 0.1)])
    cov = Covariance.from_data(kind(X))
    assert abs(cov.mean[0] - math.fsum(X[:, 0]) / 30_000) <= 2.0**-52
    for n in range(3, 60):
        assert Covariance.from_data(kind(X[:n])).diagonal()[1] == 0
