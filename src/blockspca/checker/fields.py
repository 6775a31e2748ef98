"""Reads JSON values as docs/proof-format.md, section 2, has them: strictly.

Nothing is repaired and nothing is guessed: a key too many or too few, a number of
another type, a second key of one name make the file invalid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

# 1 or 0, up to 13 hexadecimal digits, an exponent of two: what `float.hex` writes.
# `float.fromhex` alone would also take "nan", "inf", "10" (for 16) and round.
REAL = re.compile(r"-?0x[01](\.[0-9a-f]{1,13})?p[+-]?[0-9]{1,4}")

Reader = Callable[[Any, str], Any]  # of a value and where it is, for errors


class ProofError(Exception):
    """The proof is not accepted; the message says why."""


class NotShown(ProofError):
    """The records do not show a bound, which may be true all the same."""


def parsed(line: str, number: int) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ProofError(f"line {number}: a key occurs twice")
        return found

    def refuse(text: str) -> NoReturn:
        raise ProofError(f"line {number}: {text} is no integer")

    try:
        return json.loads(
            line, object_pairs_hook=unique, parse_float=refuse, parse_constant=refuse
        )
    except (ValueError, RecursionError) as error:
        raise ProofError(f"line {number}: no JSON ({error})") from None


def take(value: Any, where: str, /, **readers: Reader) -> dict[str, Any]:
    """Return the fields of an object that has exactly the keys of `readers`."""
    if type(value) is not dict:
        raise ProofError(f"{where}: an object is expected")
    if set(value) != set(readers):
        raise ProofError(
            f"{where}: the keys are {sorted(value)}, and not {sorted(readers)}"
        )
    return {key: read(value[key], f"{where}, {key}") for key, read in readers.items()}


def of_kind(kind: type, name: str) -> Reader:
    def read(value: Any, where: str) -> Any:
        if type(value) is not kind:  # and not isinstance: True is an instance of int
            raise ProofError(f"{where}: {name} is expected")
        return value

    return read


def many(read: Reader) -> Reader:
    return lambda value, where: [read(item, where) for item in read_list(value, where)]


def read_real(value: Any, where: str) -> float:
    text = read_text(value, where)
    if not REAL.fullmatch(text):
        raise ProofError(f"{where}: {text[:40]!r} is no hexadecimal float")
    try:
        number = float.fromhex(text)
    except OverflowError:
        raise ProofError(f"{where}: {text} is too large for a float64") from None
    if abs(number) > 2.0**-1022:  # 53 bits at the most: nothing was rounded
        return number
    # fromhex rounds what is below the range of float64; such a number is refused.
    mantissa, exponent = text.lstrip("-")[2:].split("p")
    digits = mantissa.replace(".", "")
    exact = int(digits, 16) * Fraction(2) ** (int(exponent) - 4 * (len(digits) - 1))
    if exact != abs(Fraction(number)):
        raise ProofError(f"{where}: {text} is no float64")
    return number


def positions(
    names: list[int], place: dict[int, int], where: str, ascending: bool = False
) -> tuple[int, ...]:
    """Return the places of features that must be different, and among those known."""
    if len({*names}) != len(names) or any(name not in place for name in names):
        raise ProofError(f"{where}: different features are needed, of those there are")
    if ascending and names != sorted(names):
        raise ProofError(f"{where}: the features must be ascending")
    return tuple(place[name] for name in names)


read_integer, read_boolean = of_kind(int, "an integer"), of_kind(bool, "true or false")
read_text, read_list = of_kind(str, "a text"), of_kind(list, "a list")
read_integers, read_reals = many(read_integer), many(read_real)
