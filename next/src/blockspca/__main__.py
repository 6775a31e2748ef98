"""`python -m blockspca compile`: compile all kernels ahead of the first call."""

from __future__ import annotations

import sys

from ._kernels.compilation import compile_all


def main(arguments: list[str]) -> int:
    """Run a command; return its exit status."""
    if arguments != ["compile"]:
        print("usage: python -m blockspca compile", file=sys.stderr)
        return 2
    return min(compile_all(), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
