"""Run the command line: python -m blockspca."""

from .cli import main

if __name__ == "__main__":
    main()
