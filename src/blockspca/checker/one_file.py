"""Joins the checker into one file: `python -m blockspca.checker.one_file FILE`.

The file needs Python and NumPy and nothing of blockspca. It is the modules below, one
after the other, without the imports of each other: nothing else is changed.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

MODULES = (
    "fields",
    "versions",
    "problem",
    "factor",
    "raising",
    "groups",
    "columns",
    "entry_file",
    "data",
    "problem_file",
    "tree_text",
    "claims",
    "screening",
    "taken",
    "composition_file",
    "tree",
    "positive",
    "composition_tables",
    "exact_entries",
    "float_columns",
    "proof_file",
    "arithmetic",
    "integer_tree",
    "float_tree",
    "integer_bounds",
    "chosen",
    "sparse_positive",
    "integers",
    "floats",
    "direction",
    "sign_tree",
    "group_tree",
    "integer_direction",
    "integer_forms",
    "float_forms",
    "compositions",
    "entry_tree",
    "entry",
    "check",
    "__main__",
)
HEAD = '''"""The checker of blockspca in one file: python FILE PROOF DATA [--exact]."""

from __future__ import annotations
'''


def joined() -> str:
    """Return the text of all modules, in an order in which each knows the earlier."""
    parts = [HEAD]
    for name in MODULES:
        text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            own = isinstance(node, ast.ImportFrom) and node.level > 0
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if own or future:
                assert node.end_lineno is not None
                for line in range(node.lineno - 1, node.end_lineno):
                    lines[line] = ""
        parts.append(f"\n# ---- {name}.py\n\n" + "\n".join(lines).strip() + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blockspca.checker.one_file FILE")
    Path(sys.argv[1]).write_text(joined(), encoding="utf-8")
