"""The command line `blockspca`: one command a file, assembled in `main`."""

from .main import app, main

__all__ = ["app", "main"]
