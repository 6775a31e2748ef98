"""A fit as one HTML page; names and values are data and are always escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .._validation import FloatArray
from ..blocks.threshold_path import ThresholdPath, threshold_path
from ..components import Components
from ..covariance.covariance import Covariance
from ..covariance.pca import pca_variances
from ..sparsity_path import SparsityPath

if TYPE_CHECKING:
    from ..inspection.alternatives import Alternatives
    from ..inspection.importance import FeatureImportance
    from ..inspection.stability import Stability

SCRIPTS = ("page.js", "scores.js", "blocks.js")


@dataclass(frozen=True)
class Report:
    """The content of a page.

    Attributes
    ----------
    cov : Covariance
        The matrix that the components belong to.
    components : Components
    path : SparsityPath, optional
        The best first component for each k.
    scores : array of shape (n_samples, n_components), optional
    sample_names : tuple of str, optional
    title, source : str
        The heading, and the name of the file or data set.
    parameters : mapping
        What was asked for, shown as a table.
    verify_commands : tuple of str
        For each component, the command that checks its certificate.
    seconds : float
        How long the components took.
    labels : tuple of str, optional
        What kind of sample each is: the scores are coloured by it.
    label_name : str
        What the labels are.
    preprocessing : str
        A sentence that says what was done to the data before.
    alternatives : Alternatives, optional
        Of the first component.
    stability : Stability, optional
    importance : tuple of FeatureImportance
        Of the first components, in their order.
    n_requested : int, optional
        How many components were asked for, where fewer were found, as after Ctrl-C.

    Examples
    --------
    >>> import blockspca as bs
    >>> from blockspca.report import Report
    >>> cov = bs.Covariance.from_matrix([[2.0, 0.9], [0.9, 1.0]])
    >>> page = Report(cov, bs.solve_components(cov, 1, 2), title="Two features")
    >>> page.pca.round(3)
    array([2.53, 0.47])
    """

    cov: Covariance
    components: Components
    path: SparsityPath | None = None
    scores: FloatArray | None = None
    sample_names: tuple[str, ...] | None = None
    title: str = "Sparse components"
    source: str = "the matrix"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    verify_commands: tuple[str, ...] = ()
    seconds: float = 0.0
    labels: tuple[str, ...] | None = None
    label_name: str = "label"
    preprocessing: str = ""
    alternatives: Alternatives | None = None
    stability: Stability | None = None
    importance: tuple[FeatureImportance, ...] = ()
    n_requested: int | None = None

    def __post_init__(self) -> None:
        if self.labels is None:
            return
        n = None if self.scores is None else len(self.scores)
        if n != len(self.labels):
            what = "no scores" if n is None else f"scores of {n} samples"
            raise ValueError(
                f"labels has {len(self.labels)} values and there are {what}; pass one "
                "label for each sample, with scores."
            )

    @property
    def is_contrast(self) -> bool:
        """Whether there is no total variance that a component is a share of."""
        return self.cov.is_contrast

    @cached_property
    def thresholds(self) -> ThresholdPath:
        """The blocks at every ε."""
        return threshold_path(self.cov)

    @cached_property
    def pca(self) -> FloatArray:
        """The variances of as many ordinary components."""
        return pca_variances(self.cov, len(self.components))


def report_of(
    cov: Covariance,
    components: Components,
    source: str,
    how: Mapping[str, Any],
    parameters: Mapping[str, Any],
    **rest: Any,
) -> Report:
    """Return the content of a page about a file or data set, with the `rest` of it.

    `how` is what was done to the data before, as arguments of `text.preprocessing`. Of
    the parameters, those that are None or empty are left out.
    """
    from .text import preprocessing

    given = {key: at for key, at in parameters.items() if at is not None and str(at)}
    rest.setdefault("title", f"Sparse components of {source}")
    return Report(
        cov,
        components,
        source=source,
        parameters=given,
        preprocessing=preprocessing(**how),
        **rest,
    )


def build_report(report: Report) -> str:
    """Return the page as HTML text.

    Nothing is loaded from elsewhere: style, script, pictures and data are in the text,
    and a content security policy forbids the rest.

    Parameters
    ----------
    report : Report

    Returns
    -------
    str

    Examples
    --------
    >>> import blockspca as bs
    >>> from blockspca.report import Report, build_report
    >>> cov = bs.Covariance.from_matrix([[2.0, 0.9], [0.9, 1.0]])
    >>> page = build_report(Report(cov, bs.solve_components(cov, 1, 2)))
    >>> page[:15]
    '<!doctype html>'
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError(
            "the report needs jinja2; pip install 'blockspca[report]'."
        ) from None
    from markupsafe import Markup

    from . import charts, downloads, grids, inspection
    from . import text as facts
    from .block_data import block_data
    from .scores import SHAPES, ScorePicture

    environment = Environment(
        loader=PackageLoader("blockspca.report", "assets"),
        autoescape=True,
        # A name that is misspelt in the template is an error, not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    style = _asset("style.css")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    scores = None
    if report.scores is not None and len(report.scores) > 1:
        scores = ScorePicture(report)
    data = {
        "blocks": block_data(report),
        "scores": scores.data() if scores is not None and scores.is_plane else None,
    }
    return environment.get_template("page.html").render(
        report=report,
        facts=facts.gather(report),
        charts=charts,
        grids=grids,
        inspection=inspection,
        scores=scores,
        shapes=SHAPES,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        page_data=Markup(embedded_json(data)),
        certificates=downloads.certificates(report),
        tables=downloads.tables(report),
    )


def breakable(name: str) -> Any:
    """Return a name that breaks where its parts meet, before it breaks elsewhere."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[_/.:|-])(?=[^_/.:|-])", name)
    return Markup("<wbr>").join(escape(part) for part in parts)


def embedded_json(content: Any) -> str:
    """Return JSON that may stand inside a script element.

    Inside one, only "</script" and "<!--" have a meaning to the browser; without "<"
    there is neither.
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    # "</script>" in a name would end the element; the last two are line breaks to
    # JavaScript, not to JSON.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Allow this style and this script by their hashes, and nothing else."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )
