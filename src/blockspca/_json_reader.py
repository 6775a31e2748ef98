"""Read JSON field by field, refusing what is not exactly what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


class Reader:
    """One JSON object, read field by field with its types checked."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"{where} is not a JSON object.")
        self.content = content
        self.where = where

    def value(self, name: str, kind: type | tuple[type, ...]) -> Any:
        if name not in self.content:
            raise ValueError(f"{self.where}.{name} is missing.")
        value = self.content[name]
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ValueError(f"{self.where}.{name} = {value!r:.80} has the wrong type.")
        return value

    def refuse_unknown(self, known: set[str]) -> None:
        unknown = sorted(set(self.content) - known)
        if unknown:
            raise ValueError(f"{self.where} has unknown fields: {unknown[:5]}.")

    def text(self, name: str) -> str:
        return self.value(name, str)

    def integer(self, name: str, minimum: int) -> int:
        value = self.value(name, int)
        if value < minimum:
            raise ValueError(f"{self.where}.{name} = {value} is below {minimum}.")
        return value

    def number(self, name: str, optional: bool = False) -> Any:
        if optional and name in self.content and self.content[name] is None:
            return None
        value = _as_float(self.value(name, (int, float)))
        if math.isnan(value):
            raise ValueError(f"{self.where}.{name} is not a number.")
        return value

    def flag(self, name: str) -> bool:
        value = self.content.get(name)
        if not isinstance(value, bool):
            raise ValueError(f"{self.where}.{name} = {value!r:.80} is not a flag.")
        return value

    def sequence(self, name: str) -> Sequence[Any]:
        return self.value(name, list)

    def indices(self, name: str) -> tuple[int, ...]:
        values = self.sequence(name)
        if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
            raise ValueError(f"{self.where}.{name} is not a list of integers.")
        return tuple(values)

    def numbers(self, name: str) -> tuple[float, ...]:
        values = self.sequence(name)
        for v in values:
            if isinstance(v, bool) or not isinstance(v, (int, float)):
                raise ValueError(f"{self.where}.{name} is not a list of numbers.")
        return tuple(_as_float(v) for v in values)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
