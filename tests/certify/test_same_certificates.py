"""A certificate depends on A, k and the limits: on no clock, and on no earlier call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
from blockspca.scan import scan


@contextmanager
def clocks_at_speed(monkeypatch: pytest.MonkeyPatch, factor: float) -> Iterator[None]:
    """Let all clocks run so many times as fast."""
    with monkeypatch.context() as patched:
        for name in ("perf_counter", "monotonic"):
            clock = getattr(time, name)
            start = clock()
            patched.setattr(time, name, lambda c=clock, s=start: s + factor * (c() - s))
        yield


def certificates(path: bs.SparsityPath) -> list[bs.Certificate]:
    return [result.certificate for result in path.values()]


def test_slow_and_fast_machines_find_the_same_proofs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise, which tree and growth take turns at: by nodes and sets, not by seconds."""
    X = np.random.default_rng(0).normal(size=(60, 300))
    cov = bs.Covariance.from_data(X, scale=True)
    found = []
    for factor in (1.0, 1e3, 1e-3):
        with clocks_at_speed(monkeypatch, factor):
            path = bs.solve_path(cov, 5, limits=bs.Limits())
            found.append(certificates(path))
    assert any(step.statistics["grown"] for step in found[0][-1].steps)
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_what_was_scanned_before_changes_no_proof() -> None:
    """Longer lists, and lists of all features, of an earlier call are not used."""
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(30, 24))[:, np.repeat(np.arange(24), 50)]
    X = (factor + rng.normal(size=(30, 1200))) * rng.lognormal(0, 0.3, size=1200)
    covariances = [bs.Covariance.from_data(X) for _ in range(4)]
    scan(covariances[1], 40)
    bs.solve(covariances[2], 4)
    bs.solve_path(covariances[3], 20)
    found = [certificates(bs.solve_path(cov, 8)) for cov in covariances]
    assert all(other == found[0] for other in found[1:])


def said(path: bs.SparsityPath) -> list[Any]:
    """What is said of each k, up to the error of entries."""
    return [
        (
            result.support.tolist(),
            result.status,
            result.bound_name,
            [(s.survivors, dict(s.statistics)) for s in result.certificate.steps],
        )
        for result in path.values()
    ]


def counts(n: int = 500, d: int = 40) -> np.ndarray:
    """Whole numbers, of which all sums are exact."""
    rng = np.random.default_rng(2)
    types = rng.integers(0, 3, size=n)
    marked = types[:, None] == np.arange(d) // 8
    return rng.poisson(np.where(marked, 5.0, 0.3)).astype(np.float64)


def test_every_way_to_the_same_matrix_proves_the_same() -> None:
    """Dense, sparse, in chunks here or by dask, on one thread or two."""
    X = counts()
    A = bs.Covariance.from_data(sp.csr_array(X)).formed().submatrix(slice(None))
    dask_array = pytest.importorskip("dask.array")
    chunked = dask_array.from_array(X, chunks=(100, -1))
    ways = {
        "dense": bs.Covariance.from_data(X),
        "sparse": bs.Covariance.from_data(sp.csr_array(X)),
        "by columns": bs.Covariance.from_data(sp.csc_array(X)),
        "dask": bs.Covariance.from_data(chunked),
        "dask of CSR": bs.Covariance.from_data(chunked.map_blocks(sp.csr_array)),
        "formed": bs.Covariance.from_data(X).formed(),
    }
    first = bs.solve_path(ways["sparse"], 12)
    assert all(result.status is bs.Status.OPTIMAL for result in first.values())
    for cov in ways.values():
        path = bs.solve_path(cov, 12)
        assert said(path) == said(first)
        assert certificates(path) == certificates(bs.solve_path(cov, 12, n_jobs=2))
        for k, result in path.items():
            room = 4 * k * (cov.entry_error + ways["sparse"].entry_error)
            assert abs(result.upper_bound - first[k].upper_bound) <= room
    given = bs.solve_path(bs.Covariance.from_matrix(A), 12)
    for k, result in given.items():
        assert result.status is bs.Status.OPTIMAL
        assert result.support.tolist() == first[k].support.tolist()


def test_the_same_bits_make_the_same_certificate() -> None:
    """Sparse data by rows and by columns form the same A, to the last bit."""
    X = counts(d=60)
    one, other = (
        bs.Covariance.from_data(kind(X)) for kind in (sp.csr_array, sp.csc_array)
    )
    assert np.array_equal(
        one.formed().submatrix(slice(None)), other.formed().submatrix(slice(None))
    )
    assert bs.solve(one, 10).certificate == bs.solve(other, 10).certificate
    assert bs.solve(one, 32).certificate == bs.solve(other, 32).certificate
