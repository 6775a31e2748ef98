"""One HTML page about a fit: self-contained, offline, for screens and paper."""

from .page import Report, build_report

__all__ = ["Report", "build_report"]
