"""Run the command line: python -m blockspca."""

from .cli import main

main()
