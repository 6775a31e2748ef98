"""Axes of a picture: from values to places, with ticks, labels and a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

WIDTH, HEIGHT = 420, 260  # drawn to be read at the width of a phone
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 38


class Frame:
    """Two axes with their ranges, names and ticks."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str],
        height: int = HEIGHT,
    ) -> None:
        self.x = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        self.y = y if y[1] > y[0] else (y[0] - 0.5, y[0] + 0.5)
        self.labels = labels
        self.height = height

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 2),
            round(self.height - BOTTOM - up * (self.height - TOP - BOTTOM), 2),
        )

    def points(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        places = (self.place(x, y) for x, y in zip(xs, ys, strict=True))
        return " ".join(f"{x},{y}" for x, y in places)

    def draw(
        self, inside: Markup, title: str, whole_x: bool = False, name: str = ""
    ) -> Markup:
        """Return the picture; `name` is its id, for the script."""
        return picture(
            WIDTH, self.height, self._axes(whole_x) + inside, title, name=name
        )

    def _axes(self, whole_x: bool) -> Markup:
        ticks = Markup("")
        for value in tick_values(*self.x, whole=whole_x):
            x, _ = self.place(value, self.y[0])
            ticks += text(x, self.height - BOTTOM + 16, number(value), "tick mid")
        for value in tick_values(*self.y):
            _, y = self.place(self.x[0], value)
            ticks += line(LEFT, WIDTH - RIGHT, y, y, "grid")
            ticks += text(LEFT - 6, y + 4, number(value), "tick end")
        across, up = self.labels
        below = text((LEFT + WIDTH - RIGHT) / 2, self.height - 5, across, "tick mid")
        beside = Markup(
            '<text transform="translate(12 {}) rotate(-90)" class="tick mid">{}</text>'
        ).format((TOP + self.height - BOTTOM) / 2, up)
        return Markup('<g class="axes">{}{}{}</g>').format(ticks, below, beside)


def picture(
    width: float, height: float, inside: Markup, title: str, name: str = ""
) -> Markup:
    """Return an SVG with a title for screen readers."""
    of_name = Markup(' id="{}"').format(name) if name else ""
    return Markup(
        '<svg{} viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">{}</svg>'
    ).format(of_name, width, height, title, inside)


def tick_values(low: float, high: float, whole: bool = False) -> list[float]:
    """About five round numbers between low and high."""
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    if whole:
        step = max(1.0, round(step))
    first = np.ceil(low / step - 1e-9) * step
    values = np.arange(first, high + step * 1e-6, step)
    return [float(v) for v in values]


def number(value: float) -> str:
    """Return a tick as text."""
    return f"{0.0 if abs(value) < 1e-12 else value:.5g}"


def text(x: float, y: float, content: str, kind: str) -> Markup:
    """Return a text of a class, such as "tick mid"."""
    return Markup('<text x="{}" y="{}" class="{}">{}</text>').format(
        x, y, kind, content
    )


def line(x0: float, x1: float, y0: float, y1: float, kind: str) -> Markup:
    """Return a line of a class."""
    return Markup('<line x1="{}" x2="{}" y1="{}" y2="{}" class="{}"/>').format(
        x0, x1, y0, y1, kind
    )


def dot(x: float, y: float, radius: float, text: str, kind: str) -> Markup:
    """Return a point with a tooltip."""
    return Markup(
        '<circle cx="{}" cy="{}" r="{}" class="{}"><title>{}</title></circle>'
    ).format(x, y, radius, kind, text)


def value_range(values: Sequence[float] | Any) -> tuple[float, float]:
    """Return the smallest and the largest value, with some room around them."""
    low, high = float(np.min(values)), float(np.max(values))
    room = (high - low) * 0.05
    return low - room, high + room
