"""The question of a tab, checked; the page sends it as JSON, and links contain it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from ..components.scheme_names import IN_TURN
from ..scheme_defaults import DEFAULT_SCHEME

#: Of what a page may ask for: more would hold up everybody else on the server.
MAX_K = 200
MAX_COMPONENTS = 8
MAX_FEATURES = 1000  # to include, or to exclude
MAX_SECONDS = 600.0
MAX_WEIGHT = 1e6
MAX_TEXT = 64 * 1024  # characters of a state

T = TypeVar("T")

SAMPLE_ORDER = -1  # as an axis of the scores: the place of a sample in the file


class StateError(ValueError):
    """An invalid state; the message names the field and the values it may have."""


@dataclass(frozen=True)
class State:
    """A question. All fields but those of the view decide what is solved.

    Examples
    --------
    >>> from blockspca.explore.state import State
    >>> State.from_json('{"k": 5, "exclude": [7, 2]}', n_features=9).exclude
    (2, 7)
    """

    k: int = 5
    n_components: int = 1
    scheme: str = DEFAULT_SCHEME.value  #: One of `components.scheme_names.IN_TURN`
    scale: bool = False  #: whether features are divided by their standard deviations
    #: `include`, `exclude`: features by index, ascending.
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    max_per_group: int | None = None
    nonnegative: bool = False
    #: Of the background that is subtracted; None leaves it out.
    weight: float | None = None
    seconds: float = 10.0  #: time limit of one answer
    #: By which column the samples are coloured; "component 2" is by its scores.
    label: str | None = None
    #: The components on the axes of the scores, `SAMPLE_ORDER` for none.
    axes: tuple[int, int] = (0, 1)
    #: The threshold of the blocks that are shown; None is that of the start.
    epsilon: float | None = None

    VIEW = ("label", "axes", "epsilon")  # what changes the pictures only

    @classmethod
    def from_json(cls, text: str, n_features: int) -> State:
        """Read a state, or say in a StateError what is wrong with it."""
        if len(text) > MAX_TEXT:
            raise StateError(f"the state is longer than {MAX_TEXT} characters.")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise StateError("the state is not JSON.") from None
        if not isinstance(content, dict):
            raise StateError("the state is not a JSON object.")
        return cls.checked(content, n_features)

    @classmethod
    def checked(cls, content: Mapping[str, Any], n_features: int) -> State:
        """Check every field of a decoded state; those that are left out are default."""
        known = {field.name for field in fields(cls)}
        for name in content:
            if name not in known:
                raise StateError(f"{str(name)[:40]!r} is not a field of a state.")
        given = {**asdict(cls()), **content}
        top = min(MAX_K, n_features)
        label = given["label"]
        if label is not None and (not isinstance(label, str) or len(label) > 200):
            raise StateError("label is neither null nor a short text.")
        state = cls(
            k=whole("k", given["k"], 1, top),
            n_components=whole(
                "n_components", given["n_components"], 1, min(MAX_COMPONENTS, top)
            ),
            scheme=_scheme(given["scheme"]),
            scale=_flag("scale", given["scale"]),
            include=_features("include", given["include"], n_features),
            exclude=_features("exclude", given["exclude"], n_features),
            max_per_group=_or_none(
                lambda v: whole("max_per_group", v, 0, top), given["max_per_group"]
            ),
            nonnegative=_flag("nonnegative", given["nonnegative"]),
            weight=_or_none(
                lambda v: real("weight", v, 0.0, MAX_WEIGHT), given["weight"]
            ),
            seconds=real("seconds", given["seconds"], 0.1, MAX_SECONDS),
            label=label,
            axes=_axes(given["axes"]),
            epsilon=_or_none(
                lambda v: real("epsilon", v, 0.0, math.inf), given["epsilon"]
            ),
        )
        both = set(state.include) & set(state.exclude)
        if both:
            raise StateError(f"feature {min(both)} is to include and to exclude.")
        return state

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)

    def question(self) -> State:
        """The same without the view: equal for states with equal components."""
        blank = State()
        return replace(self, **{name: getattr(blank, name) for name in self.VIEW})

    @property
    def used_scheme(self) -> str:
        """The scheme; with one component none matters, and each would give the same."""
        return self.scheme if self.n_components > 1 else DEFAULT_SCHEME.value

    @property
    def is_constrained(self) -> bool:
        free = (self.include, self.exclude, self.max_per_group, self.nonnegative)
        return free != ((), (), None, False)

    def unconstrained(self) -> State:
        """The same question without constraints."""
        return replace(
            self, include=(), exclude=(), max_per_group=None, nonnegative=False
        )


def _or_none(check: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else check(value)


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Check that a field is an integer within its range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise StateError(f"{name} = {str(value)[:40]} is not a whole number.")
    if not least <= value <= most:
        raise StateError(f"{name} = {value} is outside {least} to {most}.")
    return value


def real(name: str, value: Any, least: float, most: float) -> float:
    """Check that a field is a finite number within its range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise StateError(f"{name} = {str(value)[:40]} is not a number.")
    if not (least <= value <= most and math.isfinite(value)):
        raise StateError(f"{name} = {value:g} is outside {least:g} to {most:g}.")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise StateError(f"{name} = {str(value)[:40]} is neither true nor false.")
    return value


def _scheme(value: Any) -> str:
    if not isinstance(value, str) or value not in IN_TURN:
        known = ", ".join(IN_TURN)
        raise StateError(f"scheme = {str(value)[:40]!r} is not one of {known}.")
    return str(value)


def _features(name: str, value: Any, n_features: int) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise StateError(f"{name} is not a list of features.")
    if len(value) > MAX_FEATURES:
        raise StateError(f"{name} has {len(value)} features; at most {MAX_FEATURES}.")
    return tuple(sorted({whole(name, i, 0, n_features - 1) for i in value}))


def _axes(value: Any) -> tuple[int, int]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise StateError("axes are not two components.")
    x, y = (whole("axes", axis, SAMPLE_ORDER, MAX_COMPONENTS - 1) for axis in value)
    return x, y
