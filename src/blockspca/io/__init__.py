"""Files in: a table of numbers with names, from the formats people have."""

from .errors import ReadError, ReadNote
from .request import Request
from .table import FORMATS, Table, read_table

__all__ = ["FORMATS", "ReadError", "ReadNote", "Request", "Table", "read_table"]
