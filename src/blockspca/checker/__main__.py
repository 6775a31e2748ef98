"""The command line: `python -m blockspca.checker PROOF DATA [--exact | --floats]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from .check import check_proof
from .fields import ProofError, Unreadable


def main(arguments: list[str] | None = None) -> int:
    """Check a proof and print the verdict; return 0 if it holds and 1 if not.

    Nothing is decided, and 2 is returned, where a file cannot be read; after Ctrl-C
    130, as shells have it.
    """
    parser = argparse.ArgumentParser(
        prog="blockspca.checker",
        description="Check a proof that no k features have more variance than a bound.",
        epilog="Exit status: 0 if the proof holds, 1 if it is refused, 2 if a file "
        "cannot be read, 130 after Ctrl-C, when it is neither.",
    )
    parser.add_argument("proof", help="the proof, as `write_proof` has written it")
    parser.add_argument("data", help="the data: .npy, .npz, .csv, .tsv or .txt")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--exact",
        action="store_true",
        help="decide in integers; sums of rows and counts of features, where a larger "
        "number does as well, are bounded from above in float64 (docs/trust.md)",
    )
    how.add_argument(
        "--floats", action="store_true", help="in float64 with derived margins only"
    )
    given = parser.parse_args(arguments)
    try:
        content = Path(given.proof).read_bytes()
        if sys.stderr.isatty():  # integers may take minutes without a word
            _say(_begun(content, given.exact), sys.stderr)
        verdict = check_proof(
            content, given.data, exact=given.exact, floats=given.floats
        )
    except OSError as error:  # which says nothing about the proof
        _say(f"{error.filename}: {error.strerror}", sys.stderr)
        return 2
    except Unreadable as error:  # nor does this
        _say(str(error), sys.stderr)
        return 2
    except (ProofError, MemoryError) as error:
        _say(f"REFUSED: {error}")
        return 1
    except KeyboardInterrupt:
        _say("Interrupted: the proof is neither accepted nor refused.", sys.stderr)
        return 130
    _say(f"{verdict}\nThe proof holds.")
    return 0


def _begun(content: bytes, exact: bool) -> str:
    """Say what is about to be checked; a look at the ends of sections, no more."""
    sections = max(1, content.count(b'\n{"end"'))
    records = max(0, content.count(b"\n") - 2 * sections)
    some = f"{sections} section{'s' if sections > 1 else ''} of {records} records"
    return f"checking {some}{', in integers' if exact else ''} ..."


def _say(text: str, stream: TextIO | None = None) -> None:
    """Write to any terminal: what its encoding does not have is escaped."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
