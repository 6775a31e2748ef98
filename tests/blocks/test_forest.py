"""The path from short lists equals the whole path down to the wanted block size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockspca as bs
from blockspca.blocks import forest as deeper_path
from blockspca.blocks.forest import count_above, path_to_size
from blockspca.scan.lists import scan
from strategies import symmetric_matrix


def matrix(seed: int) -> np.ndarray:
    """Some integers, for ties; some sparse, for lists that are not full."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 60))
    kind = ("psd", "integer")[int(rng.integers(2))]
    A = symmetric_matrix(kind, d, rng)
    mask = np.triu(rng.random((d, d)) < rng.choice([0.1, 0.5, 1.0]), 1)
    return A * (mask + mask.T + np.eye(d))


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 8),
    size=st.integers(1, 50),
    memory=st.sampled_from([None, 64, 10_000]),
)
@settings(deadline=None, max_examples=200)
def test_it_is_the_whole_path_down_to_its_end(seed, width, size, memory):
    A = matrix(seed)
    cov = bs.Covariance.from_matrix(A)
    whole = bs.threshold_path(cov)
    path = path_to_size(cov, scan(cov, width), size, memory=memory)
    end = path.complete_above
    assert path.threshold_for(size) == whole.threshold_for(size)
    for epsilon in {end, *np.abs(A[0][np.abs(A[0]) >= end]), 2 * end}:
        np.testing.assert_array_equal(path.labels(epsilon), whole.labels(epsilon))
        assert path.largest_ignored(epsilon) >= whole.largest_ignored(epsilon)
    if end > 0:
        below = np.nextafter(end, 0)
        assert whole.largest_block(below) >= path.crowded_below > size


def test_few_entries_are_computed_again():
    """Rows whose lists are complete down to the end of the path are left alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3000)) * np.exp(rng.normal(size=3000))
    cov = bs.Covariance.from_data(X)
    found = scan(cov, 5)
    asked = []

    class Counted:
        n_samples = cov.n_samples
        sparse_data = cov.sparse_data

        def submatrix(self, rows, columns):
            asked.append(len(rows) * len(columns))
            return cov.submatrix(rows, columns)

    path = path_to_size(Counted(), found, 200)
    assert path.crowded_below == 201
    assert 0 < sum(asked) < 3000**2 / 20
    assert path.threshold_for(200) == pytest.approx(
        bs.threshold_path(np.cov(X.T)).threshold_for(200), rel=1e-9
    )


def test_long_lists_need_nothing_more(monkeypatch):
    cov = bs.Covariance.from_data(np.random.default_rng(1).normal(size=(9, 80)))
    found = scan(cov, 20)
    monkeypatch.setattr(deeper_path, "_edges_above", lambda *_: pytest.fail("computed"))
    assert path_to_size(cov, found, 20).crowded_below > 20


def test_a_check_that_raises_stops_it():
    cov = bs.Covariance.from_data(np.random.default_rng(1).normal(size=(9, 80)))

    def late():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        path_to_size(cov, scan(cov, 2), 40, late)


def test_block_search_with_large_blocks_does_not_notice(monkeypatch):
    """Blocks far larger than the lists of the scan, visit by visit."""
    from blockspca.blocks import framework as block_result
    from blockspca.solvers import Chan

    X = np.random.default_rng(4).normal(size=(25, 150)).cumsum(axis=1)
    search = bs.BlockSearch(100, delta=1e-3)
    monkeypatch.setattr(block_result, "LONGEST_LISTS", 3)
    results = []
    for cov in (bs.Covariance.from_matrix(np.cov(X.T)), bs.Covariance.from_data(X)):
        results.append(
            bs.solve(cov, 20, solver=Chan(), threshold=search, certify=False)
        )
    first, second = results
    np.testing.assert_array_equal(first.support, second.support)
    assert [v.action for v in first.visits] == [v.action for v in second.visits]
    assert first.threshold == pytest.approx(second.threshold, rel=1e-12)
    assert first.blocks.largest > 10


@pytest.mark.slow
@pytest.mark.data
def test_dorothea_at_the_largest_block_size_of_the_paper(data_dir):
    """Blocks of 4000 features at the threshold that the paper prints, 0.05."""
    cov = bs.datasets.load_paper_set("DorotheaCov", data_dir)
    path = path_to_size(cov, scan(cov, 30), 4000)
    assert path.threshold_for(4000) / cov.max_abs() == pytest.approx(0.046453, abs=1e-6)
    # Entries of words that are equally frequent are equal but for an ulp.
    assert path.largest_block(path.complete_above) in (3998, 3999)


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 8), place=st.floats(0, 1))
@settings(deadline=None, max_examples=100)
def test_entries_above_a_threshold_are_counted(seed, width, place):
    A = matrix(seed)
    cov = bs.Covariance.from_matrix(A)
    entries = np.unique(np.abs(A))
    epsilon = float(entries[int(place * (len(entries) - 1))])
    assert count_above(cov, scan(cov, width), epsilon) == np.sum(np.abs(A) > epsilon)
