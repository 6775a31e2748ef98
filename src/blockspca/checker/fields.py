"""Reads JSON strictly: docs/proof-format.md, section 2, "Numbers" and "Strictness".

A reader is a function of a value and of where it is, which returns the value or refuses
it. Nothing is repaired and nothing is guessed.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

# 1 or 0, up to 13 hexadecimal digits, an exponent of two: what `float.hex` writes.
# `float.fromhex` alone would also take "nan", "inf", "10" (for 16) and round.
REAL = re.compile(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-]?[0-9]{1,4}", re.ASCII)

Reader = Callable[[Any, str], Any]  # of a value and where it is, for errors


class ProofError(Exception):
    """The proof is not accepted; the message says why."""


class Unreadable(ProofError):
    """The data cannot be read, which says nothing about the proof."""


class NotShown(ProofError):
    """The records do not show a bound, which may be true all the same."""


def parse(line: str, number: int) -> Any:
    """Return the JSON value of a line; its keys must differ, its numbers be whole."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ProofError(f"line {number}: a key occurs twice")
        return found

    def refuse(text: str) -> NoReturn:
        raise ProofError(f"line {number}: {text[:40]} is no integer")

    try:
        return json.loads(
            line, object_pairs_hook=unique, parse_float=refuse, parse_constant=refuse
        )
    except (ValueError, RecursionError) as error:
        raise ProofError(f"line {number} is not JSON ({error})") from None


def take(value: Any, where: str, /, **readers: Reader) -> dict[str, Any]:
    """Return the fields of an object that has exactly the keys of `readers`."""
    if type(value) is not dict:
        raise ProofError(f"{where}: an object is expected")
    if set(value) != set(readers):
        raise ProofError(
            f"{where}: the keys are {sorted(value)}, and not {sorted(readers)}"
        )
    return {key: read(value[key], f"{where}, {key}") for key, read in readers.items()}


def has(value: Any, key: str) -> bool:
    """Say whether a value is an object with this key."""
    return type(value) is dict and key in value


def of_type(kind: type, name: str) -> Reader:
    """Return a reader of values of one type."""

    def read(value: Any, where: str) -> Any:
        if type(value) is not kind:  # and not isinstance: True is an instance of int
            raise ProofError(f"{where}: {name} is expected")
        return value

    return read


integer, boolean = of_type(int, "an integer"), of_type(bool, "true or false")
text, a_list = of_type(str, "a text"), of_type(list, "a list")


def many(read: Reader) -> Reader:
    """Return a reader of lists."""
    return lambda value, where: [read(item, where) for item in a_list(value, where)]


def real(value: Any, where: str) -> float:
    """Read a hexadecimal float."""
    found = text(value, where)
    if not REAL.fullmatch(found):
        raise ProofError(f"{where}: {found[:40]!r} is no hexadecimal float")
    try:
        number = float.fromhex(found)
    except OverflowError:
        raise ProofError(f"{where}: {found} is too large for a float64") from None
    if abs(number) > 2.0**-1022:  # 53 bits at the most: nothing was rounded
        return number
    # fromhex rounds what is below the range of float64; such a number is refused.
    mantissa, exponent = found.lstrip("-")[2:].split("p")
    digits = mantissa.replace(".", "")
    exact = int(digits, 16) * Fraction(2) ** (int(exponent) - 4 * (len(digits) - 1))
    if exact != abs(Fraction(number)):
        raise ProofError(f"{where}: {found} is no float64")
    return number


integers, reals = many(integer), many(real)


def anything(value: Any, where: str) -> Any:
    """Read what is looked at later."""
    return value


def ascending(names: list[int], d: int) -> bool:
    """Say whether these are different features of d, ascending."""
    inside = not names or (names[0] >= 0 and names[-1] < d)
    return inside and all(a < b for a, b in itertools.pairwise(names))
