"""The scan equals the dense computation: tops, edges, diagonal, within its slack."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import blockspca as bs
import blockspca.scan.passes as passes
from blockspca._kernels import columntops, corrected_tops, rowtops, sparse_tops
from blockspca.blocks.threshold_path import IncompletePathError, path_from_scan
from blockspca.components.scheme_names import as_scheme
from blockspca.covariance.derived import restricted
from blockspca.covariance.residual import residual
from blockspca.scan.lists import MemoryLimitError, Scan, scan, scan_kernels

DENSE_SETS = (
    *("Leukemia", "Lymphoma2", "Prostate", "Arcene_train_valid", "alon_colon"),
    *("golub_raw", "srbct_khan", "ALLAML", "Prostate_GE", "madelon"),
)
LARGE_SETS = ("borovecki", "gordon", "singh")
MATRICES = (
    *("CovColon", "LymphomaCov1", "Reddit2000", "Eisen1Cov", "Eisen2Cov"),
    *("pitprops", "normMiniBooNE", "normCommunities"),
)


def row_tops(rows: np.ndarray, own: np.ndarray, width: int) -> np.ndarray:
    """The largest |A_ij|, j ≠ i, by sorting."""
    magnitude = np.abs(rows)
    magnitude[np.arange(len(own)), own] = -1.0
    top = np.partition(magnitude, -width, axis=1)[:, -width:]
    return np.maximum(-np.sort(-top, axis=1), 0.0)


def assert_lists(found: Scan, rows: np.ndarray, own: np.ndarray) -> None:
    """Check the lists of some rows against the rows themselves."""
    slack = found.rounding  # of two computations of an entry
    difference = np.abs(row_tops(rows, own, found.width) - found.values[own])
    assert difference.max() <= slack
    listed = found.indices[own]
    present = listed >= 0
    assert not (listed == own[:, None]).any()
    entries = np.abs(np.take_along_axis(rows, np.where(present, listed, 0), axis=1))
    wrong = np.abs(np.where(present, entries, 0.0) - found.values[own])
    assert wrong.max() <= slack
    for some in listed:
        inside = some[some >= 0]
        assert len(np.unique(inside)) == len(inside)
    assert (found.values[own][~present] == 0).all()


def assert_scan(found: Scan, A: np.ndarray) -> None:
    assert_lists(found, A, np.arange(len(A)))
    np.testing.assert_allclose(found.diagonal, np.diag(A), rtol=1e-12, atol=1e-13)
    slack = found.rounding
    assert found.max_abs == pytest.approx(np.abs(A).max(), abs=slack, rel=1e-12)
    edges, weights = found.edges(found.complete_above)
    assert (weights > found.complete_above).all()
    np.testing.assert_allclose(
        np.abs(A[edges[:, 0], edges[:, 1]]), weights, rtol=0, atol=slack
    )
    upper = np.abs(A[np.triu_indices(len(A), 1)])
    least, most = (
        int((upper > found.complete_above + s).sum()) for s in (slack, -slack)
    )
    assert least <= len(np.unique(np.sort(edges, axis=1), axis=0)) <= most


def random_data(kind: str, rng: np.random.Generator) -> np.ndarray:
    n, d = rng.integers(2, 9), rng.integers(1, 40)
    X = rng.normal(size=(n, d)) * rng.lognormal(0, 2, size=d) + rng.normal(size=d)
    if kind == "counts":  # ties everywhere
        X = rng.poisson(0.4, size=(n, d)).astype(float)
    elif kind == "signs":
        X = rng.integers(-1, 2, size=(n, d)).astype(float)
    elif kind == "constant columns":
        X[:, rng.random(d) < 0.4] = 3.0
    elif kind == "duplicated":
        X = X[:, rng.integers(0, max(1, d // 3), size=d)]
    elif kind == "zero":
        X = np.zeros((n, d))
    return X


KINDS = ("real", "counts", "signs", "constant columns", "duplicated", "zero")


@pytest.fixture
def by_products(monkeypatch):
    """Make the sparse kernel worth while for every data set."""
    monkeypatch.setattr(passes, "NANOSECONDS_PER_PAIR", 0.0)


def exactly_sparse(X: np.ndarray, rng: np.random.Generator) -> sp.csr_array:
    """X as a sparse array that stores some of its zeros."""
    stored = (X != 0) | (rng.random(X.shape) < 0.2)
    rows, columns = np.nonzero(stored)
    return sp.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


@pytest.mark.usefixtures("by_products")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("center", [True, False])
def test_random_data(monkeypatch, kind, center):
    monkeypatch.setattr(passes, "TILE_SIZE", 8)
    monkeypatch.setattr(passes, "SPARSE_SLICE", 50)
    monkeypatch.setattr(passes, "ALONE_UP_TO", 0)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = random_data(kind, rng)
        width = int(rng.integers(1, 12))
        C = X - X.mean(axis=0) if center else X
        A = C.T @ C / (len(X) - 1)
        threads = int(rng.integers(1, 4))
        monkeypatch.setattr(passes, "scan_threads", lambda threads=threads: threads)
        data = [X, exactly_sparse(X, rng)]
        for cov in (bs.Covariance.from_data(x, center=center) for x in data):
            found = scan(cov, width)
            assert_scan(found, A)
            some = np.sort(rng.permutation(len(A))[: max(1, len(A) // 2)])
            part = scan(cov, width, features=some)
            assert_scan(part, A[np.ix_(some, some)])
        if center:
            scanned = scan(bs.Covariance.from_matrix(A), width)
            assert_scan(scanned, A)
            assert scanned.rounding == 0
            assert_scan(scan(bs.Covariance.from_matrix(sp.csr_array(A)), width), A)


@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS))
@settings(deadline=None, max_examples=100)
def test_path_from_scan_is_the_path_above_its_end(seed, kind):
    rng = np.random.default_rng(seed)
    A = np.cov(random_data(kind, rng).T).reshape(-1)
    A = A.reshape(int(np.sqrt(len(A))), -1)
    width = int(rng.integers(1, 12))
    whole = bs.threshold_path(A)
    path = path_from_scan(scan(bs.Covariance.from_matrix(A), width))
    end = path.complete_above
    for epsilon in {end, *np.abs(A[0][np.abs(A[0]) >= end]), 2 * end}:
        np.testing.assert_array_equal(path.labels(epsilon), whole.labels(epsilon))
        ignored = whole.largest_ignored(epsilon)
        assert path.largest_ignored(epsilon) >= ignored
    if end > 0:
        assert whole.largest_block(np.nextafter(end, 0)) >= path.crowded_below > width
        with pytest.raises(IncompletePathError, match="below"):
            path.blocks(np.nextafter(end, 0))
    for size in range(1, len(A) + 1):
        if end == 0 or size < path.crowded_below:
            assert path.threshold_for(size) == whole.threshold_for(size)


def test_block_search_does_not_notice_the_scan():
    X = np.random.default_rng(4).normal(size=(25, 80)).cumsum(axis=1)
    results = []
    for cov in (bs.Covariance.from_matrix(np.cov(X.T)), bs.Covariance.from_data(X)):
        searched = bs.solve(cov, 4, threshold=bs.BlockSearch(10), certify=False)
        fixed = bs.solve(cov, 4, threshold=0.01, certify=False)
        results.append((searched, fixed))
    for first, second in zip(*results, strict=True):
        assert first.objective == pytest.approx(second.objective, rel=1e-12)
        np.testing.assert_array_equal(first.support, second.support)
        for one, other in zip(first.visits, second.visits, strict=True):
            assert one.action == other.action
            assert one.epsilon == pytest.approx(other.epsilon, rel=1e-12)


def test_samples_in_parts(monkeypatch):
    monkeypatch.setattr(passes, "PANEL_BYTES", 1)
    X = np.random.default_rng(0).normal(size=(500, 70))
    assert_scan(scan(bs.Covariance.from_data(X), 5), np.cov(X.T))


def test_a_scan_is_made_once():
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(9, 70)))
    wide = scan(cov, 20)
    assert scan(cov, 7) is wide
    assert scan(cov, 21) is not wide


def test_check_stops_and_progress_ends():
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(9, 70)))
    calls = []
    scan(cov, 3, progress=lambda done, total: calls.append((done, total)))
    assert calls[0][0] == 0
    assert calls[-1][0] == calls[-1][1]

    def stop():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        scan(cov, 20, stop)


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_limit(sparse, monkeypatch):
    monkeypatch.setattr(passes, "NANOSECONDS_PER_PAIR", 0.0)
    X = np.random.default_rng(0).poisson(0.02, size=(50, 3000)).astype(float)
    cov = bs.Covariance.from_data(sp.csr_array(X) if sparse else X)
    with pytest.raises(MemoryLimitError, match=r"raise limits\.memory"):
        scan(cov, 50, memory=100_000, progress=lambda *_: pytest.fail("work began"))
    assert scan(cov, 50, memory=2_000_000).width < 50
    assert scan(cov, 50, memory=40_000_000).width == 50
    assert_scan(scan(cov, 50), np.cov(X.T))


PEAK = """
import sys, tracemalloc
import numpy as np, scipy.sparse as sp
import blockspca as bs
from blockspca.scan import passes as _scan_passes
from blockspca.scan import scan

_scan_passes.NANOSECONDS_PER_PAIR = 0.0
X = np.random.default_rng(0).normal(size=(40, 4000))
if sys.argv[1] == "sparse":
    X = sp.csr_array(X * (np.abs(X) > 2.5))
scan(bs.Covariance.from_data(X), 5)  # compile
for limit in (2_000_000, 5_000_000):
    cov = bs.Covariance.from_data(X)
    cov.diagonal()
    tracemalloc.start()
    scan(cov, 20, memory=limit)
    print(tracemalloc.get_traced_memory()[1] / limit)
    tracemalloc.stop()
"""


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_memory_limit_is_kept(kind):
    """In a process of its own: whatever else a process holds is traced as well."""
    command = [sys.executable, "-c", PEAK, kind]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shares = [float(line) for line in said.split()]
    assert len(shares) == 2
    assert max(shares) < 1.05


def test_solve_refuses_a_memory_limit_that_is_too_small():
    cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(9, 500)))
    with pytest.raises(MemoryError, match="too small"):
        bs.solve(cov, 5, limits=bs.Limits(memory=10_000))


@pytest.fixture
def interpreted_helpers(monkeypatch):
    """Helpers that only compiled code may call, as Python for the sources that do."""
    for module in (rowtops, columntops, sparse_tops, corrected_tops):
        for name in ("insert", "_insert", "_largest", "_largest_excess"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(module, name).py_func)


@pytest.mark.usefixtures("interpreted_helpers")
def test_kernels_equal_their_python_source():
    rng = np.random.default_rng(1)
    A = rng.integers(-9, 9, size=(40, 70)).astype(float)
    rows, columns = np.arange(40), np.arange(30, 100)
    floors = np.empty(70, dtype=np.int64)
    for kernel, extra in ((rowtops.add_rows, ()), (columntops.add_columns, (floors,))):
        results = []
        for function in (kernel, kernel.py_func):
            lists = np.zeros((100, 6), dtype=np.int64), np.full((100, 6), -1)
            function(A.view(np.int64), rows, columns, *lists, *extra)
            results.append(lists)
        for compiled, plain in zip(*results, strict=True):
            np.testing.assert_array_equal(compiled, plain)
        assert len(kernel.signatures) == 1


def left_by(cov: bs.Covariance, scheme: str, m: int) -> bs.Covariance:
    """What m components of two features leave of A."""
    found = bs.solve_components(cov, 2, m, scheme=scheme, certify=False)
    if scheme == "residual-disjoint":  # the part of it that is solved
        rest = np.setdiff1d(np.arange(cov.n_features), np.concatenate(found.supports))
        return restricted(residual(cov, found.components), rest)
    return as_scheme(scheme).problem(cov, found.results)


@pytest.mark.parametrize("scheme", ["residual", "residual-disjoint", "hotelling"])
@pytest.mark.parametrize("kind", ["real", "counts", "signs", "constant columns"])
@pytest.mark.parametrize("scale", [False, True])
def test_what_deflation_leaves_of_sparse_data(scheme, kind, scale):
    rng = np.random.default_rng(KINDS.index(kind))
    seen = 0
    for _ in range(12):
        X = random_data(kind, rng)
        X *= rng.random(X.shape) < 0.5  # samples that have no feature in common
        if np.ptp(X, axis=0).astype(bool).sum() < 8:
            continue
        data = exactly_sparse(X, rng)
        cov = bs.Covariance.from_data(data, scale=scale, constant="ignore")
        problem = left_by(cov, scheme, int(rng.integers(1, 4)))
        if problem.sparse_correction() is None:  # no score is left to regress on
            continue
        assert scan_kernels(problem) == ("corrected_tops",)
        d = problem.n_features
        A = problem.submatrix(np.arange(d))
        width = int(rng.integers(1, d))
        assert_lists(scan(problem, width), A, np.arange(d))
        some = np.sort(rng.permutation(d)[: max(2, d // 2)])
        part = scan(problem, min(width, len(some) - 1), features=some)
        assert_lists(part, A[np.ix_(some, some)], np.arange(len(some)))
        seen += 1
    assert seen > 3


def test_an_entry_at_its_bound_is_listed():
    """Features that are the same have |A_ij| = sqrt(A_ii A_jj) to the last bit."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.poisson(0.4, size=(30, 6)).astype(float), 4, axis=1)
    cov = bs.Covariance.from_data(sp.csr_array(X))
    problem = left_by(cov, "residual", 1)
    found = scan(problem, 3)
    A = problem.submatrix(np.arange(24))
    assert_lists(found, A, np.arange(24))
    same = np.abs(found.values[:, :3] - found.diagonal[:, None])
    assert same.max() <= found.rounding


@pytest.mark.usefixtures("interpreted_helpers")
def test_the_corrected_kernel_equals_its_python_source():
    rng = np.random.default_rng(1)
    X = sp.csr_array(rng.poisson(0.3, size=(12, 30)).astype(float))
    C = X.tocsc()
    features = rng.random((30, 4))
    features[:, 3] = -np.sort(-features[:, 3])
    left, right = rng.normal(size=(2, 30, 2))
    results = []
    for kernel in (
        corrected_tops.add_corrected,
        corrected_tops.add_corrected.py_func,
    ):
        lists = np.zeros((30, 6)), np.full((30, 6), -1)
        total = np.zeros(30)
        kernel(
            *(3, 25),
            *(X.indptr.astype(np.int64), X.indices, X.data),
            *(C.indptr.astype(np.int64), C.indices, C.data),
            *(features, left, right, np.arange(30)[::-1].copy(), total),
            *lists,
        )
        assert not total.any()
        results.append(lists)
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, plain)
    assert len(corrected_tops.add_corrected.signatures) == 1


@pytest.mark.usefixtures("interpreted_helpers")
def test_sparse_kernels_equal_their_python_source():
    rng = np.random.default_rng(1)
    X = sp.csr_array(rng.poisson(0.3, size=(12, 30)).astype(float))
    C = X.tocsc()
    shift = -np.sort(-rng.random(30))
    results = []
    for products, stored in (
        (sparse_tops.add_products, sparse_tops.add_stored),
        (sparse_tops.add_products.py_func, sparse_tops.add_stored.py_func),
    ):
        lists = np.zeros((30, 6)), np.full((30, 6), -1)
        more = np.zeros((12, 6)), np.full((12, 6), -1)
        products(
            *(3, 25),
            *(X.indptr.astype(np.int64), X.indices, X.data),
            *(C.indptr.astype(np.int64), C.indices, C.data),
            *(np.ones(30), shift, np.arange(30)[::-1].copy(), 1.0),
            *(np.zeros(30), *lists),
        )
        stored(0, 12, X.indptr.astype(np.int64), X.indices, X.data, *more)
        results.append([*lists, *more])
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, plain)
    for kernel in (sparse_tops.add_products, sparse_tops.add_stored):
        assert len(kernel.signatures) == 1


@pytest.mark.data
@pytest.mark.parametrize("name", MATRICES)
def test_real_matrices(load, name):
    A = load(name)
    assert_scan(scan(bs.Covariance.from_matrix(A), 15), A)


@pytest.mark.data
@pytest.mark.parametrize("name", [*DENSE_SETS, *LARGE_SETS])
def test_real_data(load, name):
    X = load(name)
    cov = bs.Covariance.from_data(X)
    found = scan(cov, 15)
    if name not in LARGE_SETS and X.shape[1] < 5000:
        assert_scan(found, np.cov(X.T))
        return
    some = np.random.default_rng(0).choice(X.shape[1], 600, replace=False)
    for part in np.split(some, 3):
        centred = X - X.mean(axis=0)
        assert_lists(found, centred[:, part].T @ centred / (len(X) - 1), part)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["BASEHOCK", pytest.param("Dorothea_train", marks=pytest.mark.slow)]
)
def test_real_sparse_data(data_dir, name):
    X = sp.load_npz(data_dir / f"{name}.npz").astype(float).tocsc()
    n, d = X.shape
    found = scan(bs.Covariance.from_data(X), 20)
    mean = np.asarray(X.mean(axis=0)).ravel()
    for part in np.split(np.random.default_rng(0).choice(d, 400, replace=False), 4):
        rows = (X[:, part].T @ X).toarray() - n * np.outer(mean[part], mean)
        assert_lists(found, rows / (n - 1), part)


@pytest.mark.usefixtures("by_products")
@pytest.mark.parametrize("sparse", [False, True])
def test_derived_covariances(sparse):
    from blockspca.covariance.derived import corrected, masked, restricted

    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(15, 70)).astype(float)
    cov = bs.Covariance.from_data(sp.csr_array(X) if sparse else X)
    used = np.array([3, 4, 40, 69])
    left, right = rng.normal(size=(2, 70, 2))
    for derived in (
        restricted(cov, np.delete(np.arange(70), used)),
        masked(cov, used),
        corrected(cov, left, right, psd=False, origin="corrected"),
    ):
        assert_scan(scan(derived, 6), derived.rows(slice(None)).copy())
