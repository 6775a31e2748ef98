"""The downloads of the page: tables as CSV and certificates as JSON."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..io.writing import loadings_csv, scores_csv, to_csv

if TYPE_CHECKING:
    from .page import Report

MAX_EMBEDDED = 2**21  # characters; what is larger is left to files


@dataclass(frozen=True)
class Download:
    """A link that holds a file; `href` is empty if the file is too large for a page."""

    name: str
    text: str
    href: str


def _download(name: str, text: str, content: str, kind: str) -> Download:
    if not content or len(content) > MAX_EMBEDDED:
        return Download(name, text, "")
    encoded = base64.b64encode(content.encode()).decode()
    return Download(name, text, f"data:{kind};base64,{encoded}")


def certificates(report: Report) -> list[Download]:
    """One for each component; empty where there is none."""
    return [
        _download(
            f"certificate-{number}.json",
            f"Save certificate {number} as JSON",
            "" if result.certificate is None else result.certificate.to_json(),
            "application/json",
        )
        for number, result in enumerate(report.components.results, 1)
    ]


def tables(report: Report) -> list[Download]:
    """Loadings, and scores, path and stability where there are any."""
    loadings = loadings_csv(result.loadings for result in report.components.results)
    found = [_csv("loadings.csv", "Loadings", loadings)]
    if report.scores is not None:
        labels = {} if report.labels is None else {report.label_name: report.labels}
        scores = scores_csv(report.scores, report.sample_names, labels)
        found.append(_csv("scores.csv", "Scores", scores))
    if report.path is not None:
        header = ["k", "variance", "upper_bound", "status", "features"]
        values = [
            (k, r.objective, r.upper_bound, str(r.status), ";".join(r.features))
            for k, r in report.path.items()
        ]
        found.append(_csv("path.csv", "Variance for each k", to_csv(header, values)))
    if report.stability is not None:
        header = ["feature", "frequency", "low", "high"]
        shares = [
            tuple(row[key] for key in header) for row in report.stability.to_rows()
        ]
        found.append(_csv("stability.csv", "Stability", to_csv(header, shares)))
    return [download for download in found if download.href]


def _csv(name: str, text: str, content: str) -> Download:
    return _download(name, f"{text} (CSV)", content, "text/csv")
