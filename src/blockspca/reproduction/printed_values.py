"""The numbers that the paper prints, and whether measured ones agree with them.

The files in `printed/` hold the numbers of the paper's tables as they stand there, so
that trailing zeros are kept. Objectives of ArceneCov, GLI85Cov and GLABRA180Cov are
printed in the `unit` of their row. Most numbers are rounded, but some are cut off: the
objectives of ProstateCov for k = 3 (8.1968 is printed as 8.19) and of Chan's algorithm
on DorotheaCov, and the error of LymphomaCov2 for k = 10. Both readings count as equal.
"""

from __future__ import annotations

import csv
import math
from decimal import Decimal
from enum import Enum
from functools import cache
from importlib.resources import files

SLACK = 1e-9  # of the last printed digit, for binary rounding of decimal numbers


class Verdict(str, Enum):
    """How a measured number compares with the printed one."""

    EQUAL = "equal"  #: to the printed digits
    CUT_OFF = "equal (cut off)"  #: the printed digits are cut off, not rounded
    BETTER = "better"
    TIE = "tie"  #: another threshold, with the same objective
    WITHIN = "within deviation"  #: of the printed standard deviation
    WORSE = "worse"
    SWAPPED = "rows swapped"  #: in the paper, by all that can be checked
    OTHER = "differs"  #: where neither is better
    NOT_FINISHED = "not finished"  #: in the time allowed
    LEFT_OUT = "left out"  #: by --quick
    NO_DATA = "no data"
    NOT_COMPARABLE = "other data"  #: measured on other data than the paper's

    def __str__(self) -> str:
        return self.value

    @property
    def agrees(self) -> bool:
        return self in (
            Verdict.EQUAL,
            Verdict.CUT_OFF,
            Verdict.BETTER,
            Verdict.TIE,
            Verdict.WITHIN,
            Verdict.SWAPPED,
        )


def last_digit(printed: str) -> float:
    """Return the value of one unit in the last printed digit.

    Examples
    --------
    >>> last_digit("86.20"), last_digit("3600")
    (0.01, 1.0)
    """
    exponent = Decimal(printed).as_tuple().exponent
    return float(Decimal(1).scaleb(int(exponent)))


def compare(printed: str, measured: float, *, larger_is_better: bool = True) -> Verdict:
    """Compare a measured objective with a printed one, to the printed digits.

    Examples
    --------
    >>> [str(compare("8.19", value)) for value in (8.194, 8.1968, 8.21, 8.1)]
    ['equal', 'equal (cut off)', 'better', 'worse']
    """
    verdict = match(printed, measured)
    if verdict is not Verdict.OTHER:
        return verdict
    above = measured > float(printed)
    return Verdict.BETTER if above is larger_is_better else Verdict.WORSE


def match(printed: str, measured: float) -> Verdict:
    """Compare numbers of which neither is better than the other."""
    unit = last_digit(printed)
    distance = (measured - float(printed)) / unit
    if abs(distance) <= 0.5 + SLACK:
        return Verdict.EQUAL
    if math.copysign(distance, measured) == distance and abs(distance) < 1:
        return Verdict.CUT_OFF
    return Verdict.OTHER


def search_point(printed: str) -> float:
    """Return the point of a binary search on [0, 1] that is printed so.

    Of the multiples of 1/2, 1/4, …, 1/128 the first that has the printed digits; the
    search ends at a width of 0.01.

    Examples
    --------
    >>> search_point("0.75"), search_point("0.59"), search_point("0.13")
    (0.75, 0.59375, 0.125)
    """
    value = float(printed)
    for power in range(1, 8):
        parts = 2**power
        point = round(value * parts) / parts
        if match(printed, point) is Verdict.EQUAL:
            return point
    return value


@cache
def printed_rows(table: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a printed table, every cell as it is printed."""
    path = files(__package__) / "printed" / f"{table}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(csv.DictReader(lines))
