"""The page's curves and bars as SVG text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from .._messages import percent, proof_in_words
from ..plotting._layout import drawn_bounds, largest_blocks, proved_optimal
from .block_data import slider_levels
from .frame import WIDTH, Frame, dot, line, number, picture, text

if TYPE_CHECKING:
    from .page import Report

LABEL = 176  # "100.0 %, at most 100.0 %" in a wide font, and a gap before it


def sparsity_path(report: Report) -> Markup:
    """The variance for each k with its proved band, and PCA's as a line."""
    path = report.path
    if path is None:
        return Markup("")
    (bounds, top), are_proved = drawn_bounds(path), proved_optimal(path)
    ks, objectives = np.array(list(path)), path.objectives
    frame = Frame((0, ks[-1]), (0, top), ("features k", "variance"))
    x0, y0 = frame.place(0, path.ceiling)
    x1, _ = frame.place(ks[-1], path.ceiling)
    inside = line(x0, x1, y0, y0, "ceiling")
    inside += text(x0 + 6, y0 + 14, "PCA, all features", "tick")
    curve = frame.points(ks, objectives)
    inside += Markup(
        '<polygon points="{} {}" class="band"/><polyline points="{}" class="line"/>'
    ).format(curve, frame.points(ks[::-1], bounds[::-1]), curve)
    for (k, result), proved in zip(path.items(), are_proved, strict=True):
        x, y = frame.place(k, result.objective)
        said = f"k = {k}: variance {result.objective:.6g}, {proof_in_words(result)}"
        inside += dot(x, y, 4, said, "dot" if proved else "dot open")
    title = (
        f"Variance of the best component against its number of features k, from "
        f"{objectives[0]:.4g} at k = 1 to {objectives[-1]:.4g} at k = {int(ks[-1])}; "
        f"{are_proved.sum()} of {len(path)} values are proved optimal."
    )
    return frame.draw(inside, title, whole_x=True)


def largest_block(report: Report) -> Markup:
    """The largest block against ε, with a marker that the slider moves."""
    levels = slider_levels(report)
    sizes = largest_blocks(report.thresholds, levels)
    xs = np.repeat(np.append(levels, levels[-1] * 1.05), 2)[1:-1]
    frame = Frame(
        (0, float(levels[-1] * 1.05) or 1.0),
        (0, float(sizes.max()) * 1.05),
        ("threshold ε", "largest block"),
    )
    x, y = frame.place(0, sizes[0])
    curve = Markup('<polyline points="{}" class="line"/>').format(
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
    return frame.draw(curve + marker, title)


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
        bars += text(left - 8, y + 20, name, "tick end")
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
        said = f"{percent(float(sum(shares)))}{more}"
        bars += text(round(max(start, beyond), 2) + 6, y + 20, said, "tick")
    bars += Markup(
        '<line x1="{}" x2="{}" y1="4" y2="44" class="ceiling">'
        "<title>proved: at most {}</title></line>"
    ).format(edge, edge, percent(most))
    title = (
        f"Sparse components explain {percent(float(sparse.sum()))} of the variance, "
        f"PCA {percent(float(sum(rows[1][1])))}; at most {percent(most)} is possible "
        "for components this sparse."
    )
    return picture(WIDTH, 96, bars, title)


def histogram(values: np.ndarray) -> Markup:
    """How the samples are spread over one component."""
    counts, edges = np.histogram(values, bins=min(40, max(5, int(len(values) ** 0.5))))
    low, high = float(edges[0]), float(edges[-1])
    frame = Frame((low, high), (0, counts.max() * 1.05), ("component 1", "samples"))
    bars = Markup("")
    for size, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
        x0, y = frame.place(start, size)
        x1, floor = frame.place(end, 0)
        bars += Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" class="part p0">'
            "<title>{} samples from {} to {}</title></rect>"
        ).format(
            x0,
            y,
            round(max(0.5, x1 - x0 - 1), 2),
            round(floor - y, 2),
            int(size),
            number(float(f"{start:.3g}")),
            number(float(f"{end:.3g}")),
        )
    return frame.draw(bars, f"Histogram of {len(values)} scores on component 1.")
