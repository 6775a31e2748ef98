"""Points and records that would prove what is false, were they taken at their word."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca import Covariance
from blockspca.bounds.entry_dual.check import checked_value, searched_again
from blockspca.bounds.entry_dual.log import LoggedPoint, SearchLog, SearchRecord
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling


def point(n: int, weight: float, ratio: float) -> LoggedPoint:
    weights = np.full(n, weight, np.float32)
    return LoggedPoint(weights, np.zeros((n, n), np.int16), ratio)


@pytest.mark.parametrize("ratio", [1e-320, 1e-3, 17.0, np.inf, np.nan])
def test_a_ratio_that_makes_no_number_is_refused(ratio: float) -> None:
    """The bound of a node was not a number then, and its sets were forgotten."""
    with pytest.raises(ValueError, match="r = "):
        point(4, 0.0, ratio).check()


def test_what_is_not_a_number_has_no_ceiling() -> None:
    B = np.eye(3)
    B[0, 1] = B[1, 0] = np.nan
    assert eigenvalue_ceiling(B) == np.inf
    assert eigenvalue_ceiling(np.full((2, 2), np.inf)) == np.inf


def test_a_unit_in_which_entries_vanish_is_refused() -> None:
    cov = Covariance.from_matrix(np.ones((4, 4)) * 2.0**-60)
    record = EntryRecord.of(
        np.zeros(4), 4.0**511, np.empty(0, np.intp), np.zeros((0, 0))
    )
    with pytest.raises(ValueError, match="too large"):
        checked_value(cov, 2, record)
    log = SearchLog([point(4, 0.0, 1.0)], [])
    search = SearchRecord(4, 4.0**511, 0.5, np.arange(4), log)
    with pytest.raises(ValueError, match="too large"):
        searched_again(cov, 2, search, Deadline(None))


def test_underflow_in_units_is_paid_for():
    """In units of 4^166 the entry 1e-230 is 0."""
    A = np.zeros((3, 3))
    A[0, 0] = -1e100
    A[1, 2] = A[2, 1] = 1e-230
    record = EntryRecord.of(
        np.zeros(3), 4.0**166, np.empty(0, dtype=np.intp), np.zeros((0, 0))
    )
    assert checked_value(Covariance.from_matrix(A), 2, record) >= 1e-230


def test_shares_of_another_type_are_refused():
    shares = np.full((2, 2), np.iinfo(np.int64).min)  # its absolute value is negative
    np.fill_diagonal(shares, 0)
    weights = np.array([2.0**-24, 2.0**-25], dtype=np.float32)
    record = EntryRecord(weights, 1.0, np.arange(2), shares)
    with pytest.raises(ValueError, match="another type"):
        record.check()


def test_features_of_a_search_are_features() -> None:
    for features, is_read in (([1, 3], True), ([-1, 3], False), ([1, 6], False)):
        record = SearchRecord(6, 1.0, 0.5, np.array(features), SearchLog([], []))
        if is_read:
            again = SearchRecord.from_text(record.to_text(), 6)
            assert again.features.tolist() == features
        else:
            with pytest.raises(ValueError, match="must ascend"):
                SearchRecord.from_text(record.to_text(), 6)
