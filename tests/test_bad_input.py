"""Bad input is refused with a sentence that names the argument, the value, the fix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca import Covariance

A = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.5]])
X = np.arange(12.0).reshape(4, 3) ** 2


def changed(matrix: np.ndarray, value: object) -> np.ndarray:
    other = matrix.copy()
    other[0, 1] = other[1, 0] = value
    return other


@pytest.mark.parametrize(
    ("matrix", "error", "words"),
    [
        (np.full((3, 3), 1.7e308), ValueError, "1.7e.308.*overflows; divide"),
        (
            np.array([[1e12, 0, 0], [0, 1, 0.5], [0, -0.3, 1]]),
            ValueError,
            r"A\[1, 2\].*not symmetric|not symmetric: A\[1, 2\]",
        ),
        (pd.Series([1.0, 2.0]), TypeError, "pandas Series; pass a DataFrame"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), ValueError, "not symmetric.*A.T"),
        (sp.csr_array([[1.0, 2.0], [3.0, 1.0]]), ValueError, "not symmetric"),
        (np.ones((2, 3)), ValueError, r"\(2, 3\).*not square.*from_data"),
        (changed(A, np.nan), ValueError, r"A\[0, 1\] = nan.*finite"),
        (changed(A, np.inf), ValueError, r"A\[0, 1\] = inf.*finite"),
        (changed(A, -np.inf), ValueError, "finite"),
        (np.empty((0, 0)), ValueError, r"empty.*\(0, 0\)"),
        (A.astype(complex), TypeError, "complex"),
        (sp.csr_array(A.astype(complex)), TypeError, "complex"),
        (A.astype(object), TypeError, r"dtype object although .*A.astype\(float\)"),
        (A.astype(object) + np.eye(3, dtype=object) * 1j, TypeError, r"A\[0, 0\] = "),
        ("cov.csv", TypeError, "A = 'cov.csv' is a text.*read the file first"),
        ([{"a": 1}, {"a": 2}], ValueError, "1 dimension"),
        ({"a": 1}, TypeError, "A is of type dict; pass a two-dimensional"),
        (np.array([["a", "b"], ["b", "a"]]), TypeError, "real numbers"),
        (np.ones(3), ValueError, "1 dimension"),
        (3.0, ValueError, "0 dimension"),
        ([[1.0, 2.0], [1.0]], ValueError, "equal length"),
        (None, TypeError, "A is of type NoneType; pass"),
    ],
)
def test_matrix(matrix, error, words):
    with pytest.raises(error, match=words):
        Covariance.from_matrix(matrix)
    with pytest.raises(error, match=words):
        bs.solve(matrix, 1)


@pytest.mark.parametrize(
    ("data", "kwargs", "error", "words"),
    [
        (np.empty((0, 3)), {}, ValueError, "empty"),
        (np.ones((1, 3)), {}, ValueError, "1 sample.*ddof = 1"),
        (X, {"ddof": -1}, ValueError, "ddof = -1"),
        (X, {"ddof": 1.5}, ValueError, "ddof = 1.5"),
        (X, {"missing": "drop"}, ValueError, "missing = 'drop'.*pairwise"),
        (
            np.where(X == 1, np.nan, X),
            {},
            ValueError,
            "1 missing.*feature.*1.*pairwise",
        ),
        (np.where(X == 1, np.inf, X), {}, ValueError, "1 infinite"),
        (
            np.where(X == 1, np.inf, X),
            {"missing": "pairwise"},
            ValueError,
            "1 infinite",
        ),
        (X.astype(complex), {}, TypeError, "complex"),
        (X.astype(object), {}, TypeError, r"entries are numbers; pass X.astype"),
        (
            np.where(X == 1, "x", X.astype(object)),
            {},
            TypeError,
            r"X\[0, 1\] = 'x'.*not a number",
        ),
        (pd.DataFrame(X).astype(object), {}, TypeError, r"\(object\).*astype\(float\)"),
        (
            Covariance.from_matrix(A),
            {},
            TypeError,
            "X is a Covariance.*data themselves",
        ),
        (Path("data.csv"), {}, TypeError, "X = .*data.csv.*is a text.*read the file"),
        (X, {"scale": "yes"}, TypeError, "scale = 'yes' is of type str; pass True or"),
        (X, {"center": 1}, TypeError, "center = 1 is of type int; pass True or False"),
        (
            np.where([1, 0, 0], 7.0, X),
            {"scale": True, "constant": "raise"},
            ValueError,
            "constant: 0;.*drop",
        ),
        (
            sp.csr_array(np.where([1, 0, 0], 0.0, X)),
            {"scale": True, "constant": "raise"},
            ValueError,
            "constant: 0",
        ),
        (sp.csr_array(np.where(X == 1, np.nan, X)), {}, ValueError, "1 NaN"),
        (X, {"feature_names": ["a", "b", "a"]}, ValueError, r"repeat \['a'\]"),
        (X, {"feature_names": ["a"]}, ValueError, "1 entries for 3"),
        (np.ones((4, 3)), {"scale": True}, ValueError, "X has no variance"),
        (X, {"constant": "drop"}, ValueError, "constant = 'drop'.*'ignore'"),
        (X * 1e200, {}, ValueError, "overflows.*rescale"),
        (X * 1e-170, {}, ValueError, "underflows.*rescale"),
        (X, {"feature_names": "abc"}, TypeError, "feature_names = 'abc'"),
        (X, {"feature_names": 5}, TypeError, "feature_names = 5"),
        (pl.Series([1.0, 2.0]), {}, TypeError, "polars Series"),
        (
            sp.csr_array(np.where([1, 0, 0], 123.456, X)),
            {"scale": True, "constant": "raise"},
            ValueError,
            "constant: 0",
        ),
        (np.ma.masked_equal(X, 1.0), {}, ValueError, "1 missing"),
        (
            pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
            {},
            TypeError,
            "not numeric: 'b'",
        ),
        (
            pd.DataFrame({"day": ["mon", "tue"], "a": [1.0, 2.0]}),
            {},
            TypeError,
            r"or use X.set_index\('day'\) if it names the samples",
        ),
        (pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}), {}, TypeError, "'b'"),
        (
            pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["a", "a"]),
            {},
            ValueError,
            "repeat",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_data(data, kwargs, error, words):
    with pytest.raises(error, match=words):
        Covariance.from_data(data, **kwargs)


def test_what_is_advised_on_columns_of_text_goes_by_their_types_and_places():
    """Not by names: one of them may have the name of the first, or of a type."""
    same = pd.DataFrame([[1.0, "x"], [2.0, "y"]], columns=["a", "a"])
    same.isetitem(0, [1.0, 2.0])
    named = pd.DataFrame({"object": pd.Categorical(["x", "y"]), "b": [1.0, 2.0]})
    for frame, words in ((same, "set_index"), (named, "astype")):
        with pytest.raises(TypeError, match="not numeric") as said:
            Covariance.from_data(frame)
        assert words not in str(said.value)


@pytest.mark.parametrize(
    "constant",
    [
        np.full((5, 3), 0.1),
        sp.csr_array(np.full((5, 3), 0.1)),
        np.where(np.eye(5, 3) == 1, np.nan, 0.1),
    ],
    ids=["dense", "sparse", "gaps"],
)
def test_data_in_which_nothing_varies(constant):
    cov = Covariance.from_data(constant, missing="pairwise")
    for solve in (
        lambda: bs.solve(cov, 1),
        lambda: bs.solve_path(cov, 2),
        lambda: bs.solve_components(cov, 1, 2),
        lambda: bs.choose_k(constant, missing="pairwise"),
    ):
        with pytest.raises(ValueError, match=r"X has no variance.*pass data that vary"):
            solve()
    assert bs.solve(np.zeros((3, 3)), 1).objective == 0  # a matrix like any other


@pytest.mark.parametrize("place", [(0, 2500), (2500, 0), (7, 3), (3, 7), (2500, 2499)])
def test_a_gap_anywhere_in_a_large_matrix_is_found(place):
    large = np.eye(2600)  # more than one tile
    large[place] = np.nan
    with pytest.raises(ValueError, match="finite"):
        Covariance.from_matrix(large)


def test_a_pair_that_is_never_observed_together():
    gaps = np.array([[1, np.nan], [2, np.nan], [np.nan, 1], [np.nan, 3.0]])
    with pytest.raises(ValueError, match=r"features 'p', 'q' have 0 sample"):
        Covariance.from_data(gaps, missing="pairwise", feature_names=["p", "q"])


def test_a_column_of_nothing_but_gaps():
    gaps = np.column_stack([np.full(5, np.nan), np.arange(5.0)])
    with pytest.raises(ValueError, match="0 have no values at all; drop"):
        Covariance.from_data(gaps, missing="pairwise")


@pytest.mark.parametrize(
    ("k", "error"),
    [(0, ValueError), (-1, ValueError), (4, ValueError), (1.5, TypeError)],
)
def test_sparsity(k, error):
    with pytest.raises(error, match=rf"k = {k}.*3"):
        bs.solve(A, k)
    with pytest.raises(TypeError, match="k = True"):
        bs.solve(A, True)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(-0.1, "negative"), (np.nan, "not finite"), (np.inf, "not finite")],
)
def test_threshold(epsilon, words):
    path = bs.threshold_path(A)
    for refuse in (
        lambda: bs.denoise(A, epsilon),
        lambda: bs.partition(A, epsilon),
        lambda: bs.intrinsic_dimension(A, epsilon),
        lambda: path.blocks(epsilon),
        lambda: bs.FixedThreshold(epsilon),
    ):
        with pytest.raises(ValueError, match=f"epsilon = .*{words}"):
            refuse()
    with pytest.raises(ValueError, match=f"threshold = .*{words}"):
        bs.solve(A, 2, threshold=epsilon)
    with pytest.raises(ValueError, match="threshold = 'auto' is not known"):
        bs.solve(A, 2, threshold="auto")


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (lambda A, k: np.ones(len(A) + 1), r"shape \(4,\) instead of \(3,\)"),
        (lambda A, k: np.ones((len(A), 1)), r"shape \(3, 1\)"),
        (lambda A, k: np.zeros(len(A)), "zero vector"),
        (lambda A, k: np.ones(len(A)), "3 nonzeros, more than k = 2"),
        (lambda A, k: np.full(len(A), np.nan), "NaN"),
        (lambda A, k: None, "dtype object, not a vector"),
        (lambda A, k: "x", "dtype <U1, not a vector"),
        (lambda A, k: np.ones(len(A)) * 1j, "dtype complex"),
        (lambda A, k: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_solver_that_misbehaves(solver, words):
    with pytest.raises(bs.SolverError, match=rf"'<lambda>'.*block 0.*{words}"):
        bs.solve(A, 2, solver=solver, threshold=0.0)


def test_solver_of_the_wrong_kind():
    with pytest.raises(TypeError, match=r"Greedy is a class; pass an instance"):
        bs.solve(A, 2, solver=bs.solvers.Greedy)
    with pytest.raises(TypeError, match="solver = 3"):
        bs.solve(A, 2, solver=3)
    with pytest.raises(ValueError, match=r"solver = 'gready' is not known; .*'greedy'"):
        bs.solve(A, 2, solver="gready")
    with pytest.raises(TypeError, match=r"threshold = BlockSearch.*BlockSearch\(\)"):
        bs.solve(A, 2, threshold=bs.BlockSearch)


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"limits": "5"}, TypeError, r"limits = '5'.*Limits\(time=10\)"),
        ({"limits": True}, TypeError, r"limits = True.*limits=10"),
        ({"rng": -1}, ValueError, "rng = -1"),
        ({"certify": "no"}, TypeError, "certify = 'no' is of type str; pass True"),
        ({"n_jobs": "2"}, TypeError, "n_jobs = '2'"),
        ({"n_jobs": 0}, ValueError, "n_jobs = 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs = 1.5"),
    ],
)
def test_options_of_solve(kwargs, error, words):
    with pytest.raises(error, match=words):
        bs.solve(A, 2, **kwargs)


@pytest.mark.parametrize("rng", [-1, 1.5, "seed", True])
def test_seeds_of_helpers(rng):
    for call in (bs.choose_k, bs.permutation_reference, bs.cross_validate):
        with pytest.raises(ValueError, match=f"rng = {rng!r} is neither"):
            call(np.vstack([X, X]), rng=rng)


def test_a_covariance_has_no_samples():
    cov = Covariance.from_data(X)
    for call in (bs.permutation_reference, bs.cross_validate, bs.SparsePCA().fit):
        with pytest.raises(TypeError, match=r"X is a Covariance.*data themselves"):
            call(cov)


@pytest.mark.parametrize("call", [bs.choose_k, bs.cross_validate])
def test_jobs_of_helpers(call):
    with pytest.raises(ValueError, match="n_jobs = 0 means nothing"):
        call(np.vstack([X, X]), n_jobs=0)


def test_components_that_are_not_there():
    found = bs.solve_components(A, 1, 2)
    assert found[-1] is found.results[1]
    for call in (lambda: found[2], lambda: found.problem(2, A)):
        with pytest.raises(IndexError, match=r"index = 2 is outside 0..1; there are 2"):
            call()
    with pytest.raises(TypeError, match=r"limits = '5'.*Limits\(time=10\)"):
        bs.solve_components(A, 1, 2, limits="5")


@pytest.mark.parametrize("chunks", [None, 3, X])
def test_chunks_of_the_wrong_kind(chunks):
    with pytest.raises(TypeError, match=r"chunks is of type .*several tables"):
        Covariance.from_chunks(chunks)
    with pytest.raises(ValueError, match="ddof = -1"):
        Covariance.from_chunks([X], ddof=-1)


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("Orthogonal", r"'Orthogonal' is not known; pass one of .*'orthogonal'"),
        (bs.ProjectionDeflation, r"is a class; pass an instance, ProjectionDefl"),
        (7, r"scheme = 7.*ResidualDeflation\(\)"),
    ],
)
def test_scheme_of_the_wrong_kind(scheme, words):
    with pytest.raises((TypeError, ValueError), match=words):
        bs.solve_components(A, 1, 2, scheme=scheme)


def test_loadings_of_zero_are_not_shown():
    result = bs.solve(-np.eye(3), 2)
    assert len(result.features) == len(result.loadings) == 1
    assert abs(result.loadings[result.features[0]]) == 1
    assert "+0.0000" not in str(result)
    assert bs.verify(result, -np.eye(3)).complete


def test_things_that_are_no_certificate():
    with pytest.raises(TypeError, match="claim is of type int; pass a Result"):
        bs.verify(3, A)
    with pytest.raises(TypeError, match="claim is of type ndarray"):
        bs.verify(A, bs.solve(A, 1))
    with pytest.raises(TypeError, match=r"claim is of type Components.*own verify"):
        bs.verify(bs.solve_components(A, 1, 2), A)
    with pytest.raises(TypeError, match="text is of type NoneType"):
        bs.Certificate.from_json(None)


def test_indices_and_vectors_of_a_covariance():
    cov = Covariance.from_matrix(A)
    with pytest.raises(TypeError, match=r"dtype bool.*flatnonzero"):
        cov.submatrix(np.array([True, False, True]))
    with pytest.raises(TypeError, match="dtype float64"):
        cov.rows([0.9])
    assert cov.submatrix([]).shape == (0, 0)
    with pytest.raises(ValueError, match="length 2 for 3 features"):
        cov.matvec(np.ones(2))


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"time": -1.0}, "limits.time"),
        ({"time": np.nan}, "limits.time"),
        ({"time": np.inf}, "pass None"),
        ({"nodes": 0}, "limits.nodes"),
        ({"gap": -0.1}, "limits.gap"),
        ({"gap": 30}, "limits.gap = 30 is not below 1.*0.01 for 1 %"),
        ({"gap": 1.0}, "limits.gap"),
        ({"memory": 0}, "limits.memory"),
    ],
)
def test_limits(kwargs, words):
    with pytest.raises(ValueError, match=words):
        bs.Limits(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"max_block_size": 0}, "max_block_size = 0"),
        ({"delta": 0.0}, "delta = 0.0"),
        ({"noise_level": -1.0}, "noise_level"),
        ({"a": -1.0}, "a = -1.0"),
        ({"a": 2.0, "b": 1.0}, "b = 1.0 is not above a = 2.0"),
    ],
)
def test_search_parameters(kwargs, words):
    with pytest.raises(ValueError, match=words):
        bs.BlockSearch(**kwargs)


def test_search_interval_that_ends_at_blocks_too_large():
    search = bs.BlockSearch(max_block_size=2, noise_level=0.1, b=1.0)
    with pytest.raises(ValueError, match=r"3 features.*max_block_size = 2; raise b"):
        bs.solve(A, 2, threshold=search)


def test_progress_of_the_wrong_kind():
    with pytest.raises(TypeError, match="progress = 'bar'"):
        bs.solve(A, 2, progress="bar")


def test_search_interval_that_is_empty():
    with pytest.raises(ValueError, match=r"empty: a · noise_level = 50.*lower a"):
        bs.solve(A, 2, threshold=bs.BlockSearch(a=50.0))


def test_noise_parameters():
    with pytest.raises(ValueError, match="alpha = 7"):
        bs.NoiseThreshold(alpha=7)
    for kwargs in ({"C": 0.0}, {"alpha": 1.0}, {"u": -1.0}, {"n_subsets": 0}):
        with pytest.raises(ValueError, match=next(iter(kwargs))):
            bs.estimate_noise(A, **kwargs)


def test_is_epsilon_approximation_sizes():
    with pytest.raises(ValueError, match="3 features but other has 2"):
        bs.is_epsilon_approximation(A, np.eye(2), 0.1)
