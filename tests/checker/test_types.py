"""Every value of a proof of version 8 replaced by something of another kind.

The checker says no, in its own words, or accepts what is true: it never fails.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from proof_builder import Json, as_bytes
from proof_groups import group_proof
from proof_problems import Sets, derived_proof

THINGS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**70, -(2**70), "", "x", "nan", "0x1p+9999"),
    *("0x1p-1074", "-0x1p+1023", "0x0p+0", [], [[]], [0], [True], {}, {"a": 1}),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a JSON value, as containers with keys."""
    if not isinstance(value, (dict, list)):
        return
    for key in [*value] if isinstance(value, dict) else range(len(value)):
        yield value, key
        yield from places(value[key])


def proofs() -> Iterator[tuple[list[Json], np.ndarray]]:
    """One small proof of each way to take something off, and one of whole groups."""
    wanted = {"hotelling", "orthogonal", "whole"}
    for seed in range(400):
        rng = np.random.default_rng(seed)
        make = group_proof if "whole" in wanted else derived_proof
        found = make(rng, 4, 2)
        if found is None:
            continue
        header = found[0][0]
        kind = header.get("deflated", {}).get("how", "")
        kind = "whole" if "whole" in header.get("constraints", {}) else kind
        if kind in wanted:
            wanted.remove(kind)
            yield found
    assert not wanted


@pytest.mark.parametrize("number", range(3))
def test_what_is_of_another_kind_is_refused_or_true(number):
    lines, Y = [*proofs()][number]
    check_proof(as_bytes(lines), Y)
    refused = accepted = 0
    for place, _ in enumerate(places(lines)):
        for thing in THINGS:
            forged = copy.deepcopy(lines)
            container, key = [*places(forged)][place]
            container[key] = thing
            try:
                check_proof(as_bytes(forged), Y)
            except ProofError:
                refused += 1
                continue
            accepted += 1
            claim = forged[0]["claims"][0]
            numbers = (float.fromhex(claim[x]) for x in ("objective", "upper_bound"))
            assert Sets(forged[0], Y).allows(claim["k"], *numbers), (key, thing)
    assert refused > 10 * accepted > 0
