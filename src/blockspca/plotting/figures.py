"""Pictures of a matrix, its blocks and its sparse components (matplotlib).

Each function draws on `ax`, or on a new figure, and returns what it drew on.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._messages import count, gap_in_percent
from .._validation import FloatArray
from ..blocks.threshold_path import ThresholdPath, threshold_path
from ..covariance.covariance import Covariance, as_covariance
from ..io.writing import WriteError, write_file
from ..progress import Event
from ..result import Result
from ..sparsity_path import SparsityPath
from ._layout import (
    block_levels,
    block_order,
    drawn_bounds,
    expect,
    largest_blocks,
    proved_optimal,
    runs_of,
    select_features,
    shortened,
)

if TYPE_CHECKING:
    from ..model_selection.choose_k import PermutationReference
    from ..model_selection.cross_validation import CrossValidation

# Blue and orange can be told apart without seeing colours, and in print.
POSITIVE = "#1f5a9e"
NEGATIVE = "#c4571b"
INK = "#222222"
SOFT = "#9aa4b1"
COLOURS = "RdBu"
MAX_FEATURES = 400


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "plotting needs matplotlib; pip install 'blockspca[plot]'."
        ) from None
    return plt


def axes(ax: Any, size: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is None:
        ax = _pyplot().subplots(figsize=size, layout="constrained")[1]
    return ax


def tidy(ax: Any) -> Any:
    """Take away the edges that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(color=SOFT)
    return ax


def picture(ax: Any, kind: str, dpi: int) -> bytes:
    """Return the figure of `ax` as a file of this kind has it, and close it."""
    content = io.BytesIO()
    figure = figure_of(ax)
    figure.savefig(content, format=kind, dpi=dpi)
    _pyplot().close(figure)
    return content.getvalue()


def figure_of(ax: Any) -> Any:
    """Return the figure of axes, or of the first of several."""
    return np.ravel(np.asarray(ax, dtype=object))[0].figure


def save(ax: Any, path: str | Path, *, force: bool = False, dpi: int = 160) -> Path:
    """Write the figure of `ax`; its format is what the name ends with.

    Examples
    --------
    >>> from blockspca.plotting import plot_matrix, save
    >>> save(plot_matrix([[2.0, 0.9], [0.9, 1.0]]), "a.png")  # doctest: +SKIP
    """
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    known = sorted(figure_of(ax).canvas.get_supported_filetypes())
    if kind not in known:
        raise WriteError(f"{path} must end with one of .{', .'.join(known)}.")
    return write_file(path, picture(ax, kind, dpi), force=force)


def plot_matrix(
    cov: Covariance | Any,
    *,
    features: Sequence[int] | NDArray[np.intp] | None = None,
    epsilon: float = 0.0,
    limit: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw the entries A_ij with |A_ij| > ε: blue positive, red negative.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    features : sequence of int, optional
        Which features, and in which order; all of them by default.
    epsilon : float
        Entries up to this are left white.
    limit : float, optional
        The value of the darkest colour; the largest off-diagonal entry by default.
    ax : Axes, optional

    Examples
    --------
    >>> import blockspca as bs
    >>> ax = bs.plotting.plot_matrix([[2.0, 0.9], [0.9, 1.0]], epsilon=0.1)
    """
    cov = as_covariance(cov)
    ax = axes(ax, (4.4, 4.2))
    chosen = np.arange(cov.n_features) if features is None else np.asarray(features)
    A = np.array(cov.submatrix(chosen))
    off_diagonal = ~np.eye(len(A), dtype=bool)
    if limit is None:
        entries = np.abs(A[off_diagonal]) if len(A) > 1 else np.abs(A)
        limit = float(entries.max()) or 1.0
    A[np.abs(A) <= epsilon] = 0.0
    ax.imshow(A, cmap=COLOURS, vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(SOFT)
    return ax


def plot_blocks(
    cov: Covariance | Any,
    result: Result | None = None,
    *,
    epsilon: float | None = None,
    max_features: int = MAX_FEATURES,
    ax: Any = None,
) -> Any:
    """Draw the paper's figure 1: original, thresholded, sorted, chosen component.

    Parameters
    ----------
    cov : Covariance or symmetric matrix
    result : Result, optional
        Its threshold is used, and its component shown.
    epsilon : float, optional
        A threshold of your own; without a result or with one solved without blocks.
    max_features : int
        Of a larger matrix, the features of the component and those with the strongest
        entries are shown.
    ax : sequence of Axes, optional
        Four of them, or three without a result.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]]
    >>> len(bs.plotting.plot_blocks(A, bs.solve(A, 2), epsilon=0.5))
    4
    """
    cov = as_covariance(cov)
    panels = 3 if result is None else 4
    if epsilon is None:
        epsilon = None if result is None else result.threshold
    if epsilon is None:
        raise ValueError(
            "epsilon is None and the result has no threshold; pass the ε to show."
        )
    if ax is None:
        size = (3.3 * panels, 3.7)
        ax = _pyplot().subplots(1, panels, figsize=size, layout="constrained")[1]
    ax = np.ravel(np.asarray(ax, dtype=object))
    if len(ax) != panels:
        raise ValueError(f"ax has {len(ax)} axes; pass {panels}.")
    path = threshold_path(cov)
    support = np.empty(0, dtype=np.intp) if result is None else result.support
    shown = select_features(path, max_features, support)
    labels = path.labels(epsilon)
    order = block_order(path)
    ordered = order[np.isin(order, shown)]
    limit = float(path.weights[0]) if len(path.weights) else 1.0

    some = f" ({len(shown)} of {cov.n_features})" if len(shown) < cov.n_features else ""
    plot_matrix(cov, features=shown, limit=limit, ax=ax[0])
    ax[0].set_title(f"original{some}")
    plot_matrix(cov, features=shown, epsilon=epsilon, limit=limit, ax=ax[1])
    ax[1].set_title(f"entries above ε = {epsilon:.3g}")
    plot_matrix(cov, features=ordered, epsilon=epsilon, limit=limit, ax=ax[2])
    _outline(ax[2], runs_of(labels[ordered]))
    ax[2].set_title(
        f"{path.n_blocks(epsilon)} blocks, largest {path.largest_block(epsilon)}"
    )
    if result is not None:
        _plot_chosen(cov, result, ordered, labels, limit, ax[3])
    return ax


def _outline(ax: Any, runs: list[tuple[int, int]]) -> None:
    from matplotlib.patches import Rectangle

    style: dict[str, Any] = {"fill": False, "edgecolor": INK, "lw": 1}
    for start, length in runs:
        if length > 1:
            corner = (start - 0.5, start - 0.5)
            ax.add_patch(Rectangle(corner, length, length, **style))


def _plot_chosen(
    cov: Covariance,
    result: Result,
    ordered: NDArray[np.intp],
    labels: NDArray[np.intp],
    limit: float,
    ax: Any,
) -> None:
    """Zoom on the blocks of the component; its features keep their colour."""
    home = np.isin(labels[ordered], labels[result.support])
    near = ordered[home]
    chosen = np.isin(near, result.support)
    # The component comes first, so that its k × k matrix is seen as one square.
    near = np.concatenate([near[chosen], near[~chosen]])[: max(60, result.k)]
    k = int(chosen.sum())
    plot_matrix(cov, features=near, limit=limit, ax=ax)
    veil = np.zeros((len(near), len(near), 4))
    veil[:] = (1.0, 1.0, 1.0, 0.75)  # white, and not quite opaque
    veil[:k, :k, 3] = 0.0
    ax.imshow(veil, interpolation="nearest")
    _outline(ax, [(0, k)])
    if k <= 12:
        ax.set_yticks(range(k), [_label(n, 22) for n in cov.names_of(near[:k])])
        ax.tick_params(axis="y", labelsize=7, length=0)
    ax.set_title(f"component: {k} features")


def plot_largest_block(
    path: ThresholdPath | Covariance | Any,
    *,
    result: Result | None = None,
    ax: Any = None,
) -> Any:
    """Draw the size of the largest block against ε; a result's threshold is marked.

    Examples
    --------
    >>> import blockspca as bs
    >>> ax = bs.plotting.plot_largest_block([[2.0, 0.9], [0.9, 1.0]])
    """
    if not isinstance(path, ThresholdPath):
        path = threshold_path(path)
    ax = tidy(axes(ax))
    levels = block_levels(path)
    ax.step(levels, largest_blocks(path, levels), where="post", color=POSITIVE)
    if path.n_features > 100:
        ax.set_yscale("log")
    if result is not None and result.threshold is not None:
        size = path.largest_block(result.threshold)
        ax.plot(result.threshold, size, "o", color=NEGATIVE)
        ax.annotate(
            f"ε = {result.threshold:.3g}: {size}",
            (result.threshold, size),
            xytext=(6, 6),
            textcoords="offset points",
        )
    ax.set(xlim=(0, None), xlabel="threshold ε", ylabel="features in the largest block")
    return ax


def plot_loadings(result: Result, *, max_features: int = 30, ax: Any = None) -> Any:
    """Draw the loadings of a component as bars, the largest on top.

    Examples
    --------
    >>> import blockspca as bs
    >>> result = bs.solve([[2.0, 0.9], [0.9, 1.0]], 2)
    >>> bs.plotting.plot_loadings(result).get_title()
    'variance 2.53, optimal'
    """
    expect(result, "Result", "result")
    every = list(result.loadings.items())
    loadings = every[:max_features]
    ax = tidy(axes(ax, (6.4, 1.2 + 0.28 * len(loadings))))
    values = [value for _, value in loadings]
    colours = [POSITIVE if value >= 0 else NEGATIVE for value in values]
    places = range(len(loadings))
    ax.barh(places, values, color=colours, height=0.7)
    ax.set_yticks(places, [_label(name) for name, _ in loadings])
    ax.invert_yaxis()
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_xlabel("loading")
    hidden = len(every) - len(loadings)
    more = f", the {len(loadings)} largest of {len(every)}" if hidden else ""
    ax.set_title(f"variance {result.objective:.4g}, {result.status}{more}")
    return ax


def plot_sparsity_path(path: SparsityPath, *, ax: Any = None) -> Any:
    """Draw the objective for each k, the proved band above it, and PCA's ceiling.

    Filled points are proved optimal; the band ends at the upper bound.

    Examples
    --------
    >>> import blockspca as bs
    >>> path = bs.solve_path([[2.0, 0.9], [0.9, 1.0]], 2)
    >>> ax = bs.plotting.plot_sparsity_path(path)
    """
    expect(path, "SparsityPath", "path")
    ax = tidy(axes(ax))
    k, objectives, proved = np.array(list(path)), path.objectives, proved_optimal(path)
    ax.axhline(path.ceiling, color=SOFT, ls="--", lw=1)
    ax.annotate(
        "PCA, all features",
        (k[0], path.ceiling),
        xytext=(0, -4),
        textcoords="offset points",
        va="top",
        color="#5b6673",
        fontsize=9,
    )
    ax.fill_between(
        k, objectives, drawn_bounds(path)[0], color=POSITIVE, alpha=0.2, lw=0
    )
    ax.plot(k, objectives, color=POSITIVE, lw=1.5)
    ax.plot(k[proved], objectives[proved], "o", color=POSITIVE, label="proved optimal")
    if not proved.all():
        ax.plot(
            k[~proved],
            objectives[~proved],
            "o",
            mfc="white",
            mec=POSITIVE,
            label="best known, bound above",
        )
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylim(0, path.ceiling * 1.05)
    ax.set(xlabel="features k", ylabel="variance x'Ax")
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_cross_validation(found: CrossValidation, *, ax: Any = None) -> Any:
    """Draw the share of variance in held-out and in training folds, for each k.

    The bars are one standard error; the ring is the smallest k within one of the best.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> ax = bs.plotting.plot_cross_validation(bs.cross_validate(X, k_max=3))
    """
    expect(found, "CrossValidation", "found")
    ax = tidy(axes(ax))
    train = found.train.mean(axis=0)
    ax.plot(found.ks, train, color=SOFT, ls="--", label="training folds")
    _plot_choice(ax, found, found.mean, found.one_standard_error_k, "held-out folds")
    ax.set_ylabel("share of the variance")
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_permutation_reference(found: PermutationReference, *, ax: Any = None) -> Any:
    """Draw the gap statistic for each k: how far the data are from permuted data.

    The bars are one standard error; the ring is the k that the rule would choose.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> found = bs.permutation_reference(X, k_max=3, n_permutations=3, rng=0)
    >>> ax = bs.plotting.plot_permutation_reference(found)
    """
    expect(found, "PermutationReference", "found")
    ax = tidy(axes(ax))
    _plot_choice(ax, found, found.gap_statistic, found.best_k)
    ax.axhline(0, color=SOFT, ls="--", lw=1)
    ax.set_ylabel("log variance above permuted data")
    ax.set_title(f"p = {found.p_value:.2g}")
    return ax


def _plot_choice(
    ax: Any,
    found: CrossValidation | PermutationReference,
    curve: FloatArray,
    chosen: int,
    label: str | None = None,
) -> None:
    """Draw a curve over k with its standard errors, and a ring around the chosen k."""
    style: dict[str, Any] = {"color": POSITIVE, "marker": "o", "ms": 4, "lw": 1.5}
    errors = found.standard_error
    ax.errorbar(found.ks, curve, yerr=errors, elinewidth=1, label=label, **style)
    at = (chosen, curve[found.ks == chosen][0])
    ax.plot(*at, "o", ms=12, mfc="none", mec=NEGATIVE, mew=1.8)
    ax.annotate(
        f"k = {chosen}", at, xytext=(0, 12), textcoords="offset points", ha="center"
    )
    ax.set_xlabel("features k")
    ax.xaxis.get_major_locator().set_params(integer=True)


def plot_proof(events: Sequence[Event], *, k: int | None = None, ax: Any = None) -> Any:
    """Draw how the objective rises and the upper bound falls while a proof runs.

    Parameters
    ----------
    events : sequence of Event
        What `progress=events.append` collects from `solve` or `solve_path`.
    k : int, optional
        Whose proof; the last one by default.
    ax : Axes, optional

    Examples
    --------
    >>> import blockspca as bs
    >>> events = []
    >>> result = bs.solve([[2.0, 0.9], [0.9, 1.0]], 2, progress=events.append)
    >>> ax = bs.plotting.plot_proof(events)
    """
    proofs = [event for event in events if event.stage == "proof"]
    if not proofs:
        raise ValueError(
            "events has no proof; collect them with progress=events.append."
        )
    k = proofs[-1].k if k is None else k
    steps = [event for event in events if event.k == k]
    if not any(event.stage == "proof" for event in steps):
        raise ValueError(f"events has no proof for k = {k}.")
    ax = tidy(axes(ax))
    seconds = _on_one_clock([event.elapsed for event in steps])
    objectives = np.array([event.objective for event in steps])
    bounds = np.array([event.upper_bound for event in steps])
    known = np.isfinite(bounds)
    style: dict[str, Any] = {"where": "post", "marker": "o", "markevery": [-1]}
    ax.step(seconds, objectives, color=POSITIVE, label="objective", **style)
    style |= {"ms": 9, "mfc": "none"}
    ax.step(seconds[known], bounds[known], color=NEGATIVE, label="upper bound", **style)
    # A finished proof is one point: do not let the axis zoom in on its rounding.
    low, high = objectives.min(), max(objectives.max(), bounds[known].max(initial=0.0))
    room = max(high - low, 0.02 * abs(high)) * 0.1
    ax.set_ylim(low - room, high + room)
    ax.set(xlabel="seconds", ylabel="variance x'Ax")
    gap = gap_in_percent(steps[-1].gap)
    ax.set_title(f"k = {k}: gap {gap}, {count(steps[-1].nodes, 'node')}")
    ax.legend(frameon=False)
    return ax


def _on_one_clock(elapsed: Sequence[float]) -> FloatArray:
    """Return times that ascend: the proof's clock starts when the blocks are done."""
    seconds, offset, last = [], 0.0, 0.0
    for value in elapsed:
        if value + offset < last:
            offset = last
        last = value + offset
        seconds.append(last)
    return np.array(seconds)


def _label(name: str, most: int = 32) -> str:
    # matplotlib reads $…$ as mathematics
    return shortened(name, most).replace("$", r"\$")
