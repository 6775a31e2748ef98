"""The page's pictures as SVG text, drawn to be read at the width of a phone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from .._messages import percent, proof_in_words
from ..plotting._layout import largest_blocks, path_curve
from .block_data import slider_levels

if TYPE_CHECKING:
    from .page import Report

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 38
MAX_POINTS = 1200
LABEL = 176  # "100.0 %, at most 100.0 %" in a wide font, and a gap before it


class _Frame:
    """Axes: from values to places, with ticks and labels."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str]
    ) -> None:
        self.x = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        self.y = y if y[1] > y[0] else (y[0] - 0.5, y[0] + 0.5)
        self.labels = labels

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 2),
            round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 2),
        )

    def points(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        places = (self.place(x, y) for x, y in zip(xs, ys, strict=True))
        return " ".join(f"{x},{y}" for x, y in places)

    def draw(self, inside: Markup, title: str, whole_x: bool = False) -> Markup:
        ticks = Markup("")
        for value in _ticks(*self.x, whole=whole_x):
            x, _ = self.place(value, self.y[0])
            ticks += Markup('<text x="{}" y="{}" class="tick mid">{}</text>').format(
                x, HEIGHT - BOTTOM + 16, _number(value)
            )
        for value in _ticks(*self.y):
            _, y = self.place(self.x[0], value)
            ticks += Markup(
                '<line x1="{}" x2="{}" y1="{}" y2="{}" class="grid"/>'
                '<text x="{}" y="{}" class="tick end">{}</text>'
            ).format(LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, _number(value))
        across, up = self.labels
        names = Markup(
            '<text x="{}" y="{}" class="tick mid">{}</text>'
            '<text transform="translate(12 {}) rotate(-90)" class="tick mid">{}</text>'
        ).format(
            (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 5,
            across,
            (TOP + HEIGHT - BOTTOM) / 2,
            up,
        )
        return Markup(
            '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">'
            "{}{}{}</svg>"
        ).format(WIDTH, HEIGHT, title, ticks, names, inside)


def _ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """About five round numbers between low and high."""
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    if whole:
        step = max(1.0, round(step))
    first = np.ceil(low / step - 1e-9) * step
    values = np.arange(first, high + step * 1e-6, step)
    return [float(v) for v in values]


def _number(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-12 else value:.5g}"


def sparsity_path(report: Report) -> Markup:
    """The variance for each k with its proved band, and PCA's as a line."""
    path = report.path
    if path is None:
        return Markup("")
    curve = path_curve(path)
    ks, objectives = curve.ks, curve.objectives
    frame = _Frame((0, ks[-1]), (0, curve.top), ("features k", "variance"))
    x0, y0 = frame.place(0, path.ceiling)
    x1, _ = frame.place(ks[-1], path.ceiling)
    inside = Markup(
        '<line x1="{}" x2="{}" y1="{}" y2="{}" class="ceiling"/>'
        '<text x="{}" y="{}" class="tick">PCA, all features</text>'
        '<polygon points="{} {}" class="band"/><polyline points="{}" class="line"/>'
    ).format(
        x0,
        x1,
        y0,
        y0,
        x0 + 6,
        y0 + 14,
        frame.points(ks, objectives),
        frame.points(ks[::-1], curve.bounds[::-1]),
        frame.points(ks, objectives),
    )
    for (k, result), proved in zip(path.items(), curve.proved, strict=True):
        x, y = frame.place(k, result.objective)
        text = f"k = {k}: variance {result.objective:.6g}, {proof_in_words(result)}"
        inside += _dot(x, y, 4, text, "dot" if proved else "dot open")
    title = (
        f"Variance of the best component against its number of features k, from "
        f"{objectives[0]:.4g} at k = 1 to {objectives[-1]:.4g} at k = {int(ks[-1])}; "
        f"{curve.proved.sum()} of {len(path)} values are proved optimal."
    )
    return frame.draw(inside, title, whole_x=True)


def largest_block(report: Report) -> Markup:
    """The largest block against ε, with a marker that the slider moves."""
    levels = slider_levels(report)
    sizes = largest_blocks(report.thresholds, levels)
    xs = np.repeat(np.append(levels, levels[-1] * 1.05), 2)[1:-1]
    frame = _Frame(
        (0, float(levels[-1] * 1.05) or 1.0),
        (0, float(sizes.max()) * 1.05),
        ("threshold ε", "largest block"),
    )
    x, y = frame.place(0, sizes[0])
    line = Markup('<polyline points="{}" class="line"/>').format(
        frame.points(xs, np.repeat(sizes, 2))
    )
    both = zip(levels, sizes, strict=True)
    places = " ".join(f"{px},{py}" for px, py in (frame.place(e, s) for e, s in both))
    marker = Markup(
        '<circle id="marker" cx="{}" cy="{}" r="6" class="marker" data-places="{}"/>'
    ).format(x, y, places)
    title = (
        "Features in the largest block against the threshold: "
        f"{sizes[0]} at ε = 0, 1 from ε = {levels[-1]:.4g} on."
    )
    return frame.draw(line + marker, title)


def explained_variance(report: Report) -> Markup:
    """Two bars: the sparse components and PCA, as shares of the variance."""
    total = report.components.total_variance or 1.0
    sparse = report.components.adjusted_explained_variance / total
    most = min(1.0, report.components.joint_upper_bound / total)
    widest = max(most, float(sparse.sum()), float(report.pca.sum()) / total)
    left = 60
    width = (WIDTH - left - LABEL) / (widest or 1.0)
    edge = round(left + most * width, 2)
    rows = [
        ("sparse", sparse, f", at most {percent(most)}", edge),
        ("PCA", report.pca / total, "", 0.0),
    ]
    bars = Markup("")
    for row, (name, shares, more, beyond) in enumerate(rows):
        y = 10 + 46 * row
        bars += Markup('<text x="{}" y="{}" class="tick end">{}</text>').format(
            left - 8, y + 20, name
        )
        start = float(left)
        for j, share in enumerate(shares):
            wide = max(0.0, float(share)) * width
            bars += Markup(
                '<rect x="{}" y="{}" width="{}" height="30" class="part p{}">'
                "<title>{} component {}: {}</title></rect>"
            ).format(
                round(start, 2), y, round(wide, 2), j % 4, name, j + 1, percent(share)
            )
            start += wide
        bars += Markup('<text x="{}" y="{}" class="tick">{}{}</text>').format(
            round(max(start, beyond), 2) + 6, y + 20, percent(float(sum(shares))), more
        )
    bars += Markup(
        '<line x1="{}" x2="{}" y1="4" y2="44" class="ceiling">'
        "<title>proved: at most {}</title></line>"
    ).format(edge, edge, percent(most))
    title = (
        f"Sparse components explain {percent(float(sparse.sum()))} of the variance, "
        f"PCA {percent(float(sum(rows[1][1])))}; at most {percent(most)} is possible "
        "for components this sparse."
    )
    return Markup(
        '<svg viewBox="0 0 {} 96" role="img" aria-label="{}" class="chart">{}</svg>'
    ).format(WIDTH, title, bars)


def scores(report: Report) -> Markup:
    """The samples on the first two components, or a histogram of the only one."""
    values = report.scores
    if values is None or len(values) < 2:
        return Markup("")
    if values.shape[1] == 1:
        return _histogram(values[:, 0])
    step = -(-len(values) // MAX_POINTS)
    names = report.sample_names or tuple(str(i) for i in range(len(values)))
    first, second = values[:, 0], values[:, 1]
    frame = _Frame(_range(first), _range(second), ("component 1", "component 2"))
    dots = Markup("")
    for i in range(0, len(values), step):
        x, y = frame.place(first[i], second[i])
        text = f"{names[i]}: {first[i]:.4g}, {second[i]:.4g}"
        dots += _dot(x, y, 2.6, text, "sample")
    title = f"Scores of {len(values)} samples on components 1 and 2."
    return frame.draw(dots, title)


def _histogram(values: np.ndarray) -> Markup:
    counts, edges = np.histogram(values, bins=min(40, max(5, int(len(values) ** 0.5))))
    low, high = float(edges[0]), float(edges[-1])
    frame = _Frame((low, high), (0, counts.max() * 1.05), ("component 1", "samples"))
    bars = Markup("")
    for number, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
        x0, y = frame.place(start, number)
        x1, floor = frame.place(end, 0)
        bars += Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" class="part p0">'
            "<title>{} samples from {} to {}</title></rect>"
        ).format(
            x0,
            y,
            round(max(0.5, x1 - x0 - 1), 2),
            round(floor - y, 2),
            int(number),
            _number(float(f"{start:.3g}")),
            _number(float(f"{end:.3g}")),
        )
    return frame.draw(bars, f"Histogram of {len(values)} scores on component 1.")


def _dot(x: float, y: float, radius: float, text: str, kind: str) -> Markup:
    return Markup(
        '<circle cx="{}" cy="{}" r="{}" class="{}"><title>{}</title></circle>'
    ).format(x, y, radius, kind, text)


def _range(values: Sequence[float] | Any) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    room = (high - low) * 0.05
    return low - room, high + room
