"""Files in: a table of numbers with names, from the formats people have."""

from .table import FORMATS, ReadError, Table, read_table

__all__ = ["FORMATS", "ReadError", "Table", "read_table"]
