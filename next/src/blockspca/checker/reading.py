"""Reads JSON strictly: docs/proof-format.md, section 2.

A reader is a function of a value and its place in the file; it returns the value or
refuses it. Nothing is repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

# The output of `float.hex`. `float.fromhex` takes "nan" and "10" too, and it rounds.
REAL = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,13}))?p([+-]?[0-9]{1,4})", re.ASCII)

Reader = Callable[[Any, str], Any]


class ProofError(Exception):
    """A proof is not accepted; the message says why."""


class DataError(ProofError):
    """The data cannot be read, which says nothing about the proof."""


def parse(text: str) -> Any:
    """Return the value of a JSON text without fractions and repeated keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            raise ProofError("the file has an object with the same key twice")
        return values

    def refuse(number: str) -> NoReturn:
        raise ProofError(f"the file has the number {number[:40]}, which is no integer")

    def whole(number: str) -> int:
        if len(number) > 18:
            raise ProofError(f"the integer {number[:18]}… is too large")
        return int(number)

    try:
        return json.loads(
            text,
            object_pairs_hook=unique,
            parse_int=whole,
            parse_float=refuse,
            parse_constant=refuse,
        )
    except (ValueError, RecursionError) as error:
        raise ProofError(f"the file is not JSON ({error})") from None


def take(
    value: Any, place: str, /, optional: tuple[str, ...] = (), **readers: Reader
) -> dict[str, Any]:
    """Return the fields of an object; only `optional` ones may be absent."""
    if type(value) is not dict:
        raise ProofError(f"{place} must be an object")
    for key in sorted(value.keys() ^ readers.keys()):
        if key not in readers:
            raise ProofError(f"{place} has the key {key[:40]!r}, which is not allowed")
        if key not in optional:
            raise ProofError(f"{place} has no key {key!r}")
    return {key: readers[key](item, f"{place}, {key}") for key, item in value.items()}


def of_type(kind: type, name: str) -> Reader:
    """Return a reader of values of exactly this type: True is no integer."""

    def read(value: Any, place: str) -> Any:
        if type(value) is not kind:
            raise ProofError(f"{place} must be {name}")
        return value

    return read


integer, boolean = of_type(int, "an integer"), of_type(bool, "true or false")
text, a_list = of_type(str, "a string"), of_type(list, "a list")


def many(read: Reader) -> Reader:
    """Return a reader of lists, as tuples."""
    return lambda value, place: tuple(
        read(item, f"{place}[{i}]") for i, item in enumerate(a_list(value, place))
    )


def at_least(least: int) -> Reader:
    """Return a reader of integers."""

    def read(value: Any, place: str) -> int:
        if integer(value, place) < least:
            raise ProofError(f"{place} = {value} must be at least {least}")
        return int(value)

    return read


def real(value: Any, place: str) -> float:
    """Read a hexadecimal float that is a float64 exactly."""
    match = REAL.fullmatch(text(value, place))
    if not match:
        raise ProofError(f"{place} = {value[:40]!r} is no hexadecimal float")
    sign, first, digits, exponent = match.groups(default="")
    exact = Fraction(int(first + digits, 16)) * Fraction(2) ** (
        int(exponent) - 4 * len(digits)
    )
    try:
        number = float(exact)
    except OverflowError:
        raise ProofError(f"{place} = {value} is too large for a float64") from None
    if Fraction(number) != exact:
        raise ProofError(f"{place} = {value} is no float64")
    return -number if sign else number


def check_features(
    features: tuple[int, ...], d: int, place: str, *, ascending: bool = True
) -> None:
    """Refuse features that are not different numbers below d (in order)."""
    if any(not 0 <= i < d for i in features) or len(set(features)) < len(features):
        raise ProofError(f"{place} must be different features from 0 to {d - 1}")
    if ascending and list(features) != sorted(features):
        raise ProofError(f"{place} must be ascending")
