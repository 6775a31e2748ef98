"""`python -m blockspca`, where the script `blockspca` is not on the path."""

from .cli import main

if __name__ == "__main__":
    main()
