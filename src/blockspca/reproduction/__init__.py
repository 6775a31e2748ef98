"""The tables and the figure of the paper, measured again beside what it prints."""

from .catalogue import TABLES, reproduce
from .measurements import Measurements, Settings, warm_up
from .printed_values import Verdict
from .table import ReproducedTable

__all__ = [
    "TABLES",
    "Measurements",
    "ReproducedTable",
    "Settings",
    "Verdict",
    "reproduce",
    "warm_up",
]
