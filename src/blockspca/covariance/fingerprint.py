"""A fingerprint of data that are not copied, to notice if they change.

The fingerprint of a column is Σ_s w_s v(x_s) modulo 2⁶⁴, where v is a bijection that
mixes the 64 bits of a number, and the w_s are odd and look random. A change of one
number always changes the sum; several changes cancel with a probability of about 2⁻⁶⁰.
(Without v, negating an even number of entries would go unnoticed.) Sums of parts add
up, in any order. (The hash in proofs is a SHA-256: `origin.py`.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device_data import on_host

Fingerprint = NDArray[np.uint64]


class DataChangedError(RuntimeError):
    """Data that a covariance reads in place are no longer what they were."""


def part_fingerprint(block: Any, start: int) -> Fingerprint:
    """Return the sums over samples start, start + 1, … of all data."""
    block = on_host(block)  # a chunk may be on a GPU
    mixed = mixed_bits(np.ascontiguousarray(block, dtype=np.float64))
    return sample_weights(start, start + len(mixed)) @ mixed


def mixed_bits(values: NDArray[np.float64]) -> Fingerprint:
    """Return v of each number; 0 of 0."""
    bits = values.view(np.uint64)
    mixed = bits ^ (bits >> np.uint64(31))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def sample_weights(start: int, stop: int) -> Fingerprint:
    """Odd numbers that look random: the mixing steps of splitmix64."""
    mixed = np.arange(start, stop, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


def refuse_change(before: Fingerprint, after: Fingerprint) -> None:
    """Raise if a column is not what it was."""
    changed = np.flatnonzero(before != after)
    if len(changed):
        raise DataChangedError(
            f"X has changed since Covariance.from_data read it, in {len(changed)} "
            f"feature(s), the first being {changed[0]}: what was computed mixes two "
            "data sets. Make the covariance again, and leave X as it is while it is "
            "used, or pass a copy in memory."
        )
