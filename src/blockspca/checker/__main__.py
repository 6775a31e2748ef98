"""The command line: `python -m blockspca.checker PROOF DATA [--exact | --floats]`."""

from __future__ import annotations

import argparse
import sys

from .check import check_proof
from .fields import ProofError


def main(arguments: list[str] | None = None) -> int:
    """Check a proof and print the verdict; return 0 if it holds and 1 if not."""
    parser = argparse.ArgumentParser(
        prog="blockspca.checker",
        description="Check a proof that no k features have more variance than a bound.",
        epilog="Exit status: 0 if the proof holds, 1 if it is refused.",
    )
    parser.add_argument("proof", help="the proof, as `write_proof` has written it")
    parser.add_argument("data", help="the data: .npy, .npz, .csv, .tsv or .txt")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--exact", action="store_true", help="in exact integers only")
    how.add_argument("--floats", action="store_true", help="in float64 only")
    given = parser.parse_args(arguments)
    try:
        verdict = check_proof(
            given.proof, given.data, exact=given.exact, floats=given.floats
        )
    except (ProofError, OSError, MemoryError) as error:
        _say(f"REFUSED: {error}")
        return 1
    _say(f"{verdict}\nThe proof holds.")
    return 0


def _say(text: str) -> None:
    """Write to any terminal: what its encoding does not have is escaped."""
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


if __name__ == "__main__":
    sys.exit(main())
