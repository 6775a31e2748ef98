"""Two kinds of groups at once: a feature may be in one of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.fields import ProofError
from blockspca.checker.groups import Groups, Rooms
from proof_builder import FIVE, Json, as_bytes, describe
from proof_problems import Sets, derived_proof

MODES = ({"exact": True}, {"floats": True})

#: Of all sets {0, 1, 2} has 6.63. With one of 0 and 1 and one of 0 and 2, {0, 3, 4} has
#: the most: 4.73.
UPPER = 4.75


def lines_of(**more: Any) -> list[Json]:
    said: Json = {"include": [], "groups": [{"most": 1, "features": [0, 1]}]}
    said |= {"nonnegative": False, "beside": [{"most": 1, "features": [0, 2]}]}
    said |= more.pop("constraints", {})
    claim: Json = {"k": 3, "support": [0, 3], "x": ["0x1p+1", "0x1p+0"]}
    claim |= {"objective": (4.5).hex(), "upper_bound": UPPER.hex(), "set": [0, 3, 4]}
    claim |= more.pop("claim", {})
    header: Json = {"format": "blockspca-proof", "version": 9, "data": describe(FIVE)}
    header |= {"constraints": said, "row_list": 2}
    header["claims"] = [{key: claim[key] for key in claim if claim[key] is not None}]
    record = {"k": 3, "upper": UPPER.hex(), "rule": "tree", "features": [0, 1, 2, 3, 4]}
    record |= {"tree": "S4 0 1 2 3 L S2 2 3 L L L L"} | more.pop("record", {})
    return [header | more, record, {"end": 1}]


def assert_refused(lines: list[Json], why: str) -> None:
    for mode in MODES:
        with pytest.raises(ProofError, match=why):
            check_proof(as_bytes(lines), FIVE, **mode)


def test_a_tree_that_keeps_both_holds():
    lines = lines_of()
    for mode in MODES:
        check_proof(as_bytes(lines), FIVE, **mode)
    assert Sets(lines[0], FIVE).allows(3, 4.5, UPPER)
    assert not Sets(lines[0], FIVE).allows(3, 4.5, 4.73)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"version": 8}, "beside is of version 9"),
        ({"constraints": {"beside": []}}, "beside has groups"),
        ({"constraints": {"groups": []}}, "beside has groups"),
        ({"constraints": {"whole": True}}, "no others beside"),
        ({"constraints": {"include": [0, 2]}}, "more to include"),
        (
            {"constraints": {"beside": [{"most": 0, "features": [0, 2]}]}},
            "most >= 1 and features",
        ),
        (
            {
                "constraints": {
                    "beside": [
                        {"most": 1, "features": [0, 2]},
                        {"most": 1, "features": [2, 3]},
                    ]
                }
            },
            "most >= 1 and features",
        ),
        ({"claim": {"set": None}}, "the keys are"),
        ({"claim": {"set": [0, 3]}}, "set must be k features"),
        ({"claim": {"set": [0, 3, 3]}}, "set must be k features"),
        ({"claim": {"set": [0, 4, 3]}}, "set must be k features"),
        ({"claim": {"set": [1, 3, 4]}}, "set must be k features"),
        ({"claim": {"set": [0, 3, 5]}}, "set must be k features"),
        ({"claim": {"set": [0, 2, 3]}}, "does not keep"),
        ({"claim": {"set": [0, 1, 3]}}, "does not keep"),
        ({"claim": {"set": [0, 3, 4]}, "without": [4]}, "does not keep"),
        # what the limits beside do not exclude has to be open
        ({"constraints": {"beside": [{"most": 1, "features": [0]}]}}, "k = 3"),
        ({"constraints": {"beside": [{"most": 2, "features": [0, 2]}]}}, "k = 3"),
        ({"record": {"tree": "S3 1 2 3 S2 2 3 L L L L"}}, "k = 3"),
    ],
)
def test_what_is_not_so_is_refused(more: Json, why: str):
    assert_refused(lines_of(**more), why)


def test_a_claim_without_such_groups_has_no_set():
    lines = lines_of()
    del lines[0]["constraints"]["beside"]
    assert_refused(lines, "the keys are")


def test_room_is_what_both_leave():
    one = Groups(np.array([0, 0, -1, -1]), np.array([1]))
    other = Groups(np.array([-1, 0, 0, -1]), np.array([1]))
    both, F = Rooms([one, other]), np.arange(4)
    assert both.is_open(F).all()
    assert [both.holds(F, m) for m in (3, 4)] == [True, False]
    assert both.chosen(1).is_open(F).tolist() == [False, False, False, True]
    assert both.chosen(0).holds(F[2:], 2)
    apart = ~both.pairs(F) & ~np.eye(4, dtype=bool)
    assert sorted(map(tuple, np.argwhere(apart).tolist())) == [
        *((0, 1), (1, 0), (1, 2), (2, 1))
    ]


def test_proofs_of_random_problems_hold():
    held = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 7))
        found = derived_proof(rng, d, int(rng.integers(2, min(d, 4) + 1)))
        if found is None or "beside" not in found[0][0].get("constraints", {}):
            continue
        for mode in MODES:
            try:
                check_proof(as_bytes(found[0]), found[1], **mode)
                held += 1
            except ProofError as error:
                assert "scores" in str(error) or "proportion" in str(error)  # noqa: PT017
    assert held > 100
