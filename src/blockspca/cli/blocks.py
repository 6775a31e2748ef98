"""`blockspca blocks`: into which blocks the features fall at a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .declaring import option, real, whole
from .display import Display
from .errors import UsageError
from .options import File, Force, ReadOptions, ShowOptions

if TYPE_CHECKING:
    from ..blocks.threshold_path import ThresholdPath

_SHOWN_BLOCKS = 20
_SHOWN_NAMES = 8


@dataclass(frozen=True)
class BlocksOptions:
    """At which threshold, and where the blocks go."""

    epsilon: float | None = option(
        "Ignore entries up to this value.", None, "--epsilon", "-e", **real(0)
    )
    max_block_size: int | None = option(
        "Use the smallest ε at which no block is larger than this.", None, **whole(1)
    )
    output: Path | None = option(
        "A .csv file to write: feature, block, block size.", None, "--output", "-o"
    )
    force: Force = False


def blocks(
    file: File, reading: ReadOptions, show: ShowOptions, asked: BlocksOptions
) -> None:
    """Show the blocks at a threshold ε, or how the largest one depends on ε."""
    from .._messages import count
    from ..io.writing import check_output, to_csv, write_file

    epsilon, max_block_size, output = asked.epsilon, asked.max_block_size, asked.output
    if epsilon is not None and max_block_size is not None:
        raise UsageError("give --epsilon or --max-block-size, not both")
    if output is not None:
        if epsilon is None and max_block_size is None:
            raise UsageError("--output needs --epsilon or --max-block-size")
        check_output("--output", output, asked.force, ".csv")
    display = Display(show)
    from .loading import load

    cov = load(file, reading, display).cov
    with display.working("Building the threshold path"):
        from ..blocks.threshold_path import threshold_path

        path = threshold_path(cov)
    if max_block_size is not None:
        epsilon = path.threshold_for(max_block_size)
    if epsilon is None:
        for line in _overview(path):
            display.say(line)
        return
    found = sorted(path.blocks(epsilon), key=lambda block: (-len(block), block[0]))
    if output is not None:
        rows = (
            (name, number, len(block))
            for number, block in enumerate(found, start=1)
            for name in cov.names_of(block)
        )
        write_file(
            output, to_csv(["feature", "block", "size"], rows), force=asked.force
        )
        display.say(f"Written: {output}")
    display.say(
        f"ε = {epsilon:.6g}: {count(len(found), 'block')} of "
        f"{count(cov.n_features, 'feature')}, the largest of {len(found[0])}; "
        f"largest entry between blocks {path.largest_ignored(epsilon):.6g}"
    )
    for number, block in enumerate(found[:_SHOWN_BLOCKS], start=1):
        names = ", ".join(cov.names_of(block[:_SHOWN_NAMES]))
        more = (
            f", and {len(block) - _SHOWN_NAMES} more"
            if len(block) > _SHOWN_NAMES
            else ""
        )
        display.say(f"{number:>4}  {len(block):>5}  {names}{more}")
    if len(found) > _SHOWN_BLOCKS:
        display.say(f"      and {len(found) - _SHOWN_BLOCKS} smaller ones")


def _overview(path: ThresholdPath) -> list[str]:
    """The smallest ε for blocks of at most 1, 2, 5, 10, … features."""
    sizes = [s * 10**p for p in range(7) for s in (1, 2, 5)]
    lines = [f"{'ε':>12} {'blocks':>7} {'largest':>8}"]
    seen = set()
    for size in [*sizes, path.n_features]:
        epsilon = path.threshold_for(size)
        if size > path.n_features or epsilon in seen:
            continue
        seen.add(epsilon)
        lines.append(
            f"{epsilon:>12.6g} {path.n_blocks(epsilon):>7} "
            f"{path.largest_block(epsilon):>8}"
        )
    return lines
