"""Input that is edited in place after a covariance was made of it: no mixed proofs."""

from __future__ import annotations

from itertools import combinations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import blockspca as bs
import blockspca.covariance.input_kinds as kinds_module
from blockspca import Covariance, DataChangedError
from blockspca.covariance.fingerprint import part_fingerprint, refuse_change
from blockspca.covariance.raised import raised
from blockspca.solvers import BranchAndBound


def brute_force(A, k):
    return max(
        np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in combinations(range(len(A)), k)
    )


def random_matrix(rng, d=8):
    X = rng.standard_normal((2 * d, d)) * rng.uniform(0.5, 3, d)
    return X.T @ X


def larger(A):
    room = np.zeros((2 * len(A), 2 * len(A)))
    room[::2, ::2] = A
    return room[::2, ::2]


def read_only_view(A):
    view = A.view()
    view.flags.writeable = False
    return view


def in_frame(A):
    return pd.DataFrame(A, copy=False)


class Wrapped:
    """An object that hands out its own array."""

    def __init__(self, A):
        self.A = A

    def __array__(self, dtype=None, copy=None):
        return self.A


# How a matrix is passed, given the array that is edited later.
MATRICES = {
    "array": lambda A: A,
    "fortran": np.asfortranarray,
    "transposed": lambda A: A.T,
    "slice": lambda A: A[:, :],
    "read-only view": read_only_view,
    "frame": in_frame,
    "object": Wrapped,
    "float32": lambda A: A.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "list": lambda A: A.tolist(),
}


def memory_of(passed, A):
    """The arrays that an edit writes to."""
    if sp.issparse(passed):
        return [passed.data]
    if isinstance(passed, np.ndarray) and passed.flags.writeable:
        return [A, passed]
    return [A]


def assert_about(result, A, k):
    optimum = brute_force(A, k)
    assert result.status is bs.Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert result.upper_bound >= optimum * (1 - 1e-12)


@pytest.mark.parametrize("when", ["before", "between", "scanned"])
@pytest.mark.parametrize("how", MATRICES)
def test_a_matrix_edited_in_place(how, when):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = random_matrix(rng)
        if how == "float32":
            A = A.astype(np.float32).astype(float)
        if how == "slice":
            A = larger(A)
        before = A.copy()
        passed = MATRICES[how](A)
        cov = Covariance.from_matrix(passed)
        first = bs.solve(cov, 3) if when == "between" else None
        if when == "scanned":
            bs.solve_path(cov, 2)
            cov.diagonal()
        for memory in memory_of(passed, A):
            memory *= -3.0
            memory.flat[0] += 1e3
        assert_about(bs.solve(cov, 3), before, 3)
        assert_about(bs.solve(cov, 4), before, 4)
        if first is not None:
            assert bs.verify(first, cov).complete
            assert bs.verify(first, before).complete
            with pytest.raises((bs.VerificationError, ValueError)):
                bs.verify(first, passed if how not in ("list", "float32") else -before)


def test_what_a_covariance_hands_out_cannot_be_written_to():
    A = random_matrix(np.random.default_rng(0))
    for cov in (
        Covariance.from_matrix(A),
        Covariance.from_chunks([A[:4], A[4:]]),
    ):
        for view in (cov.rows(slice(None)), cov.submatrix(slice(2)), cov.diagonal()):
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        Covariance.from_data(A).columns(slice(None))[0] = 1
    A[0] = 1  # the user's own stays writable


def data_forms(X):
    stored = sp.csr_array(X)
    yield "array", X, [X]
    yield "fortran", np.asfortranarray(X), None
    yield "transposed", np.ascontiguousarray(X.T).T, None
    yield "frame", in_frame(X), [X]
    yield "float32", X.astype(np.float32), None
    yield "csr", stored, [stored.data]
    yield "csc", stored.tocsc(), None
    yield "coo", stored.tocoo(), None


@pytest.mark.parametrize("options", [{}, {"scale": True}, {"center": False}])
@pytest.mark.parametrize("position", range(8))
def test_data_edited_in_place(position, options):
    rng = np.random.default_rng(position)
    X = (rng.standard_normal((20, 7)) * rng.uniform(1, 3, 7)).astype(np.float32)
    X = X.astype(float)
    kept = X.copy()
    _, passed, memories = list(data_forms(X))[position]
    cov = Covariance.from_data(passed, **options)
    A = Covariance.from_data(kept.copy(), **options).submatrix(slice(None))
    first = bs.solve(cov, 3)
    if memories is None:
        memories = [passed.data if sp.issparse(passed) else passed]
    for memory in memories:
        memory *= -2
        memory[0] += 50
    assert_about(bs.solve(cov, 2), A, 2)
    assert_about(first, A, 3)
    assert bs.verify(first, cov).complete


def test_data_with_gaps_edited_in_place():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 6))
    X[0, 0] = np.nan
    cov = Covariance.from_data(X, missing="pairwise")
    A = cov.submatrix(slice(None)).copy()
    X *= np.arange(6)
    np.testing.assert_array_equal(cov.submatrix(slice(None)), A)


# Data that are read in place: a change is noticed.


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    """Data on disk as a map to be read, and one to be written to."""
    monkeypatch.setattr(kinds_module, "MAP_FROM", 0)
    X = np.random.default_rng(3).standard_normal((30, 8)) * np.arange(1, 9)
    np.save(tmp_path / "X.npy", X)
    reads = np.load(tmp_path / "X.npy", mmap_mode="r")
    return reads, np.load(tmp_path / "X.npy", mmap_mode="r+")


class Store:
    """Something that dask reads from when it computes, such as a file."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.ndim = X, X.shape, X.dtype, X.ndim

    def __getitem__(self, index):
        return self.X[index].copy()


def in_chunks(X):
    return da.from_array(Store(X), chunks=(11, 3), name=False)


EDITS = {
    "one entry": lambda X: X.__setitem__((17, 4), X[17, 4] + 1e-9),
    "last bit": lambda X: X.__setitem__((3, 1), np.nextafter(X[3, 1], 9)),
    "a column turned": lambda X: X.__setitem__((slice(None), 2), -X[:, 2]),
    "two samples swapped in a column": lambda X: X.__setitem__(
        ([0, 1], 5), X[[1, 0], 5]
    ),
    "a column shifted": lambda X: X.__setitem__((slice(None), 0), X[:, 0] + 1),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["map", "writable map", "dask"])
def test_a_change_of_data_read_in_place_is_noticed(on_disk, kind, edit):
    reads, writes = on_disk
    values = np.array(reads)
    form = {"map": reads, "writable map": writes, "dask": in_chunks(values)}
    cov = Covariance.from_data(form[kind])
    assert "disk" in repr(cov) or "dask" in repr(cov)
    first = bs.solve(cov, 3)
    assert first.status is bs.Status.OPTIMAL
    assert bs.verify(first, cov).complete
    blocks = {"solver": BranchAndBound(), "threshold": 0.0, "certify": False}
    assert bs.solve(cov, 3, **blocks).status is bs.Status.OPTIMAL
    edited = values if kind == "dask" else writes
    before = np.array(edited)
    EDITS[edit](edited)
    with pytest.raises(DataChangedError, match="Make the covariance again"):
        bs.solve(cov, 3)
    with pytest.raises(DataChangedError):
        bs.solve_path(cov, 2)
    with pytest.raises(DataChangedError):
        bs.solve(cov, 3, **blocks)
    with pytest.raises((DataChangedError, bs.VerificationError)):
        bs.verify(first, cov)
    edited[:] = before
    assert bs.verify(first, cov).complete


def test_a_change_is_noticed_below_other_components(on_disk):
    reads, writes = on_disk
    cov = Covariance.from_data(reads)
    found = bs.solve_components(cov, 2, 2)
    assert all(check.complete for check in found.verify(cov))
    problems = (found.problem(1, cov), raised(cov))
    writes[0, 0] += 1
    for problem in problems:
        with pytest.raises(DataChangedError):
            problem.check_unchanged()


@pytest.mark.parametrize("kind", ["data", "contrast", "contrast of a contrast"])
def test_a_change_is_noticed_in_a_shared_set_and_a_contrast(on_disk, kind):
    """A contrast that was formed had forgotten the data that it was formed from."""
    reads, writes = on_disk
    cov = Covariance.from_data(reads)
    background = np.eye(cov.n_features) / 4
    for _ in range(["data", "contrast", "contrast of a contrast"].index(kind)):
        cov = bs.contrastive(cov, Covariance.from_matrix(background))
    assert bs.solve_shared(cov, 3, 2).status is bs.Status.OPTIMAL
    writes[0, 0] += 1
    with pytest.raises(DataChangedError):
        bs.solve_shared(cov, 3, 2)
    with pytest.raises(DataChangedError):
        bs.solve(cov, 3)


def test_fingerprints_of_parts_add_up():
    X = np.random.default_rng(0).standard_normal((50, 3))
    whole = part_fingerprint(X, 0)
    refuse_change(whole, part_fingerprint(X[:20], 0) + part_fingerprint(X[20:], 20))
    with pytest.raises(DataChangedError, match=r"in 3 feature\(s\), the first being 0"):
        refuse_change(whole, part_fingerprint(X[::-1], 0))
