"""The largest entries of each row of A, without A in memory.

Each function works on arrays, and returns `Lists`. A source of A calls the one that
suits its arrays.
"""

from .dense import factor_lists
from .lists import Lists
from .matrix import block_lists, matrix_lists, stored_lists
from .sparse import sparse_lists

__all__ = [
    "Lists",
    "block_lists",
    "factor_lists",
    "matrix_lists",
    "sparse_lists",
    "stored_lists",
]
