"""Features ruled out by a bound on opt(k − 1), judged by brute force."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from blockspca import Covariance
from blockspca.bounds.entry_dual import bound as entry
from blockspca.bounds.entry_dual.check import searched_again
from blockspca.bounds.entry_dual.log import Screen, SearchLog, SearchRecord
from blockspca.bounds.entry_dual.pairs import Pairs, strong_pairs
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.bounds.entry_dual.screening import survivors
from blockspca.limits import Deadline


def listed(A: np.ndarray, level: float) -> Pairs:
    roots = np.full(len(A), np.sqrt(level))
    return strong_pairs(Covariance.from_matrix(A), roots)


@pytest.mark.parametrize("seed", range(45))
def test_no_set_above_the_level_has_what_is_ruled_out(seed: int) -> None:
    """For any list, any τ and the least u that is allowed, or more."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 10))
    family = list(zoo.FAMILIES.values())[seed % len(zoo.FAMILIES)]
    A = family(d, rng)
    A = (A + A.T) / 2 / (np.abs(A).max() or 1.0)
    for k in range(2, d):
        sets = zoo.membership(d, k)
        values = np.array([np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in sets])
        smaller = zoo.membership(d, k - 1)
        opt = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in smaller)
        for level in (1e-3, 0.2, 0.7, 2.0):
            for share in (0.5, 0.9, 1.0):
                tau = float(np.quantile(values, share))
                upper = opt + float(rng.choice([1e-13, 0.01]))
                left = survivors(
                    listed(A, level), np.diagonal(A), k, tau, upper, level, 0.0
                )
                out = np.setdiff1d(np.arange(d), left)
                above = sets[values > tau + 1e-12]
                assert not above[:, out].any()


@pytest.mark.parametrize("j", range(-3, 4))
def test_a_feature_within_an_ulp_of_the_inequality(j: int) -> None:
    """λ of a pair is 1 + c: with τ just below it stays, however little below."""
    c = 0.3
    A = np.array([[1.0, c], [c, 1.0]])
    tau = (1.0 + c) * (1 + j * np.finfo(float).eps)
    left = survivors(listed(A, 0.1), np.ones(2), 2, tau, 1.0, 0.1, 0.0)
    if tau < np.linalg.eigvalsh(A)[-1]:
        assert left.tolist() == [0, 1]


def test_errors_of_entries_are_counted() -> None:
    A = np.array([[1.0, 0.3], [0.3, 1.0]])
    for error, expected in ((0.0, []), (0.01, [0, 1])):
        left = survivors(listed(A, 0.1), np.ones(2), 2, 1.305, 1.0, 0.1, error)
        assert left.tolist() == expected


def test_entries_that_are_not_listed_count_as_the_level() -> None:
    A = np.eye(6)
    none = listed(A, 0.2)
    assert len(none) == 0
    # With k − 1 = 3 entries of 0.2 each, λ may be 1 + 0.2 √3 = 1.346.
    for tau, expected in ((1.34, 6), (1.35, 0)):
        left = survivors(none, np.ones(6), 4, tau, 1.0, 0.2, 0.0)
        assert len(left) == expected


@pytest.fixture
def clustered() -> tuple[Covariance, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 50))
    X[:, :9] += 1.6 * rng.normal(size=(60, 1))
    X[:, 9:15] += 1.0 * rng.normal(size=(60, 1))
    return Covariance.from_matrix(np.corrcoef(X, rowvar=False)), np.arange(8)


def test_a_search_among_what_a_screen_leaves_is_repeated(
    clustered: tuple[Covariance, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    cov, known = clustered
    A = cov.submatrix(slice(None))
    monkeypatch.setattr(entry, "_DENSE", 30)
    objective = np.linalg.eigvalsh(A[np.ix_(known, known)])[-1]
    found = entry.entry_bound(
        cov, 8, known, target=objective * (1 + 1e-9), time_limit=60.0, nodes=200
    )
    record = found.record
    assert isinstance(record, SearchRecord)
    assert record.screen is not None
    assert len(record.features) <= 30
    assert found.value >= objective
    text = record.to_text()
    again = SearchRecord.from_text(text, 50)
    assert searched_again(cov, 8, again, Deadline(None)) == found.value
    # Without one of the features that are left the log proves nothing.
    fewer = SearchRecord(
        50, record.unit, record.tau, record.features[1:], SearchLog(), record.screen
    )
    assert searched_again(cov, 8, fewer, Deadline(None)) == np.inf
    # Nor does it without its screen.
    bare = SearchRecord(50, record.unit, record.tau, record.features, record.log)
    assert searched_again(cov, 8, bare, Deadline(None)) == np.inf


def test_a_screen_with_weights_below_its_level_is_refused() -> None:
    nobody, nothing = np.empty(0, np.intp), np.zeros((0, 0))
    for weight, accepted in ((0.5, True), (0.4, False)):
        record = EntryRecord.of(np.full(3, weight), 1.0, nobody, nothing)
        screen = Screen(record, 0.25)
        if accepted:
            screen.check()
        else:
            with pytest.raises(ValueError, match="level"):
                screen.check()
    for level in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="positive"):
            Screen(record, level).check()


@pytest.mark.parametrize("level", [1e-120, 1e-154, 1e-162, 1e-165, 1e-200])
def test_unlisted_entries_count_though_their_squares_underflow(level):
    """Two features with the entry ℓ between them, not listed: opt(2) = A_ii + ℓ > τ."""
    nothing = np.empty(0, dtype=np.intp)
    pairs = Pairs(nothing, nothing, np.empty(0))
    own = 1e-5 * level
    tau = np.nextafter(own + level, 0)
    left = survivors(pairs, np.full(2, own), 2, tau, 1.001 * own, level, 0.0)
    assert left.tolist() == [0, 1]
