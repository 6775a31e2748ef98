"""The command line: blockspca fit DATA."""

from .main import main

__all__ = ["main"]
