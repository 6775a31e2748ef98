"""One pass over A: its diagonal, and the largest entries of every row."""

from .lists import Scan, known_scan, scan, scan_kernels

__all__ = [
    "Scan",
    "known_scan",
    "scan",
    "scan_kernels",
]
