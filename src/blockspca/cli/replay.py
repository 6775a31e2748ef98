"""Replay a proof on a file of data, by the checker, which shares nothing with us."""

from __future__ import annotations

from pathlib import Path

from .display import Display
from .options import ReadOptions


def is_proof(path: Path) -> bool:
    """Tell whether a file begins as a proof does; see docs/proof-format.md."""
    from ..proof_file import FORMAT

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(200)


def replay(proof: Path, data: Path, reading: ReadOptions, display: Display) -> None:
    """Check a proof, in floats and where they cannot decide in integers; say what."""
    from ..certify.verification import VerificationError
    from ..checker.check import check_proof
    from ..checker.proof_file import ProofError
    from .loading import numbers_of

    values = numbers_of(data, reading, display)
    with display.working(f"Checking {proof}"):
        try:
            verdict = check_proof(proof, values)
        except ProofError as error:
            raise VerificationError(f"{proof}: {error}{_how_to_read(error)}.") from None
    for line in str(verdict).splitlines():
        display.say(line)
    display.say("The proof holds.")


def _how_to_read(error: Exception) -> str:
    """Say what may be amiss where the numbers of a file are not those of a proof."""
    if not str(error).startswith(("these are other data", "the data are")):
        return ""
    return "; read the file with the options of fit, such as --drop, --index or --na"
