"""The sentences and tables of the page."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import count, gap_in_percent, percent
from ..bound_names import BoundName
from ..certificate import Certificate, StepClaim
from ..components.joint import adds_plain
from ..components.scheme import completed
from ..components.shown import in_place_of, proof_of
from ..result import Result
from ..status import Status
from .inspection import about_alternatives, about_stability, importance_rows

if TYPE_CHECKING:
    from .page import Report


def gather(report: Report) -> dict[str, Any]:
    """Return everything that the template shows and that needs computing."""
    components = report.components
    return {
        "summary": summary(report),
        "components": [
            about_component(report, index) for index in range(len(components))
        ],
        "share": percent(float(components.explained_variance_ratio.sum())),
        "steps": [certificate_steps(result) for result in components.results],
        "timings": timings(report),
        "versions": versions(),
        "parameters": {str(key): _text(v) for key, v in report.parameters.items()},
        "any_certificate": any(r.certificate is not None for r in components.results),
        "inspected": bool(
            report.alternatives is not None
            or report.stability is not None
            or report.importance
        ),
        "alternatives": []
        if report.alternatives is None
        else about_alternatives(report.alternatives),
        "stability": []
        if report.stability is None
        else about_stability(report.stability),
        "importance": [importance_rows(found) for found in report.importance],
    }


def summary(report: Report) -> list[str]:
    """Return the main results in a few sentences."""
    components, d = report.components, report.cov.n_features
    m = len(components)
    n = report.cov.n_samples
    if n is None and report.scores is not None:  # data with gaps, pair by pair
        n = len(report.scores)
    size = count(d, "feature") if n is None else f"{count(n, 'sample')} × {d} features"
    sizes = sorted({len(result.support) for result in components.results})
    each = " to ".join(str(size) for size in {sizes[0]: 0, sizes[-1]: 0})
    who = f"{count(m, 'sparse component')}{' of ' if m == 1 else ', each of '}"
    who += f"{each} of the {d} features"
    of = f"of {report.source} ({size})"
    done = [report.preprocessing] if report.preprocessing else []
    if report.is_contrast:
        said = [f"{who} {of}, less a background.", *done]
    else:
        said = _shares(report, who, of, done)
    if report.n_requested is not None and m < report.n_requested:
        ended = ""
        if components.results[-1].status is Status.INTERRUPTED:
            ended = ", as the run was interrupted"
        said.insert(
            1, f"These are {m} of {report.n_requested} components asked for{ended}."
        )
    if components.in_turn is not None:
        said.append(in_place_of(components))
    proved = sum(r.status is Status.OPTIMAL for r in components.results)
    if m > 1 and math.isfinite(components.joint_gap):
        some = f"No {m} components of as many features, however chosen, explain"
        if adds_plain(completed(components.scheme)):
            some = f"No {m} orthogonal components of as many features have variances of"
        said.append(
            f"{some} more than {percent(components.joint_gap)} more than these do "
            f"together (by {BoundName.text_of(components.joint_bound_name)})."
        )
    if proved == m:
        said.append(
            "The component is proved optimal: no other choice of as many features has "
            "more variance."
            if m == 1
            else "Every component is proved optimal for its own problem: given the "
            "ones before it, no other choice of as many features has more variance."
        )
    else:
        worst = max(components.results, key=lambda result: result.gap)
        index = components.results.index(worst) + 1
        said.append(
            f"{proved} of {m} proved optimal. Component {index} is "
            f"{proof_of(components, index - 1)}."
        )
    return said


def _shares(report: Report, who: str, of: str, done: list[str]) -> list[str]:
    """Say how much of the variance is explained, beside ordinary PCA."""
    components, d, m = report.components, report.cov.n_features, len(report.components)
    share = float(components.explained_variance_ratio.sum())
    ceiling = float(report.pca.sum()) / (components.total_variance or 1.0)
    said = [
        f"{who}, {'explains' if m == 1 else 'together explain'} {percent(share)} of "
        f"the variance {of}.",
        *done,
        f"Ordinary PCA, which mixes all features, explains {percent(ceiling)} with "
        f"{'one component' if m == 1 else 'as many components'}.",
    ]
    if not math.isnan(components.r2):
        said.append(
            f"Linear regression on the {'scores' if m > 1 else 'score'} predicts "
            f"{percent(components.r2)} of the variance of all {d} features."
        )
    return said


def preprocessing(
    *,
    matrix: bool,
    center: bool,
    scale: bool,
    missing: str,
    constant: str,
    more: Sequence[str] = (),
) -> str:
    """Say what was done to the data before anything was solved.

    The arguments are those of `Covariance.from_data`; `matrix` if A itself was given,
    and `more` are further sentences.

    Examples
    --------
    >>> from blockspca.report.text import preprocessing
    >>> as_given = {"missing": "raise", "constant": "raise"}
    >>> preprocessing(matrix=False, center=True, scale=False, **as_given)
    'Before, the features were centred, and not scaled.'
    """
    if matrix:
        said = "The matrix itself was given; nothing was done to it before."
    else:
        centred = "centred" if center else "not centred"
        scaled = "divided by their standard deviations" if scale else "not scaled"
        said = f"Before, the features were {centred}, and {scaled}."
    if missing == "pairwise":
        said += " Entries use the samples that both of their features have."
    if constant == "ignore" and scale:
        said += " Constant features have no loading."
    return " ".join([said, *more])


def about_component(report: Report, index: int) -> dict[str, Any]:
    """Return the texts and loadings of one component."""
    result = report.components.results[index]
    widest = max(abs(value) for value in result.loadings.values())
    price = "" if result.price is None else f"; constraints cost {result.price}"
    return {
        "number": index + 1,
        "proof": proof_of(report.components, index) + price,
        "optimal": result.status is Status.OPTIMAL,
        "status": str(result.status),
        "objective": f"{result.objective:.6g}",
        "upper_bound": _text(result.upper_bound),
        "gap": gap_in_percent(result.gap),
        "share": percent(float(report.components.explained_variance_ratio[index])),
        "loadings": [
            {"name": name, "value": value, "width": 100 * abs(value) / widest}
            for name, value in result.loadings.items()
        ],
        "price": "" if result.price is None else percent(result.price.share),
        "meaning": gap_in_words(result, given=index > 0),
        "blocks": _about_blocks(result),
        "nodes": result.nodes,
    }


def gap_in_words(result: Result, given: bool = False) -> str:
    """Say what the gap means for the reader; `given` earlier components."""
    k = count(result.k, "feature")
    before = ", given the components before it," if given else ""
    if result.certificate is not None and result.certificate.constraints is not None:
        before = f" that keep the constraints{before}"
    if result.status is Status.OPTIMAL:
        return f"Bound and variance are equal: no other {k}{before} reach more."
    if not math.isfinite(result.gap):
        return f"How much more another {k}{before} could reach is not known."
    return (
        f"Whichever {k} one takes{before} the variance is at most "
        f"{result.upper_bound:.6g}: choosing others could gain {percent(result.gap)} "
        "at the very most, and perhaps nothing."
    )


def _about_blocks(result: Result) -> str:
    if result.blocks is None or result.threshold is None:
        return ""
    return (
        f"Found at threshold ε = {result.threshold:.4g}, among "
        f"{count(len(result.blocks), 'block')}, the largest of "
        f"{count(result.blocks.largest, 'feature')}."
    )


def certificate_steps(result: Result) -> list[dict[str, Any]]:
    """Return the chain of bounds of a certificate, one row for each k."""
    if result.certificate is None:
        return []
    return [
        {
            "k": step.k,
            "bound": _text(step.upper_bound),
            "by": BoundName.text_of(step.bound_name),
            "left": len(step.survivors) if step.tau is not None else "–",
            "nodes": step.statistics.get("nodes", "–"),
        }
        for step in _all_steps(result.certificate)
    ]


def _all_steps(certificate: Certificate) -> list[StepClaim]:
    """The steps of every part, where constraints make parts, and the conclusion."""
    parts = (step for part in certificate.parts for step in part.steps)
    return [*parts, *certificate.steps]


def timings(report: Report) -> list[tuple[str, str]]:
    """Return where the time went, summed over components."""
    total: dict[str, float] = {}
    for result in report.components.results:
        for stage, seconds in result.timings.items():
            total[stage] = total.get(stage, 0.0) + seconds
    rows = [(stage, f"{seconds:.3f} s") for stage, seconds in total.items()]
    if report.path is not None:
        path_time = sum(result.time for result in report.path.values())
        rows.append(("sparsity path", f"{path_time:.3f} s"))
    rows.append(("components in all", f"{report.seconds:.3f} s"))
    return rows


def versions() -> list[tuple[str, str]]:
    """Return the versions that the numbers depend on."""
    packages = ("blockspca", "numpy", "scipy", "numba", "scikit-learn")
    rows = [(name, version(name)) for name in packages]
    return [*rows, ("Python", platform.python_version()), ("on", platform.platform())]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "unknown" if np.isinf(value) else f"{value:.6g}"
    return "–" if value is None else str(value)
