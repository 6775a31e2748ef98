"""Mutated proofs, shown to the checker.

`mutants(seed)` makes a small problem, a proof of it (`proof_builder`), and changes one
to three things (`proof_changes`). `judge` shows it to the checker; an accepted proof
with a claim that is false, by exact brute force, is a defect.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence

import numpy as np

from blockspca.checker.check import check_proof
from blockspca.checker.proof_file import ProofError, Section, read_proof
from proof_builder import (
    Builder,
    Json,
    Truth,
    direction_proof,
    entry_proof,
    entry_tree_proof,
    random_problem,
    rounds_proof,
)
from proof_changes import CHANGES, Draft, Rng, change_data, change_options
from proof_compositions import composition_proof
from proof_groups import group_proof
from proof_problems import Sets, derived_proof
from proof_signs import sign_proof

MODES = ({"exact": True}, {"floats": True}, {})


def mutants(seed: int, count: int) -> list[tuple[Draft, str]]:
    """Return so many mutants of one proof, with the names of what was changed."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 7))
    Y, data = random_problem(rng, d)
    slack = float(rng.choice([0.0, 0.05, 0.3]))
    k = int(rng.integers(2, min(d, 4) + 1))
    derived = None
    if seed % 4 == 1:
        derived = (group_proof if seed % 8 == 5 else derived_proof)(rng, d, k)
    if seed % 8 == 2:
        derived = sign_proof(rng, d, k)
    if derived is not None:
        lines, Y = derived
    elif seed % 8 == 6:
        lines, Y = composition_proof(rng, d, k)
    elif seed % 8 == 7:
        lines = entry_tree_proof(Y, data, k, rng)
    elif seed % 4 == 3:
        lines = entry_proof(Y, data, k, rng)
    elif data["kind"] == "data" and rng.random() < 0.3:
        lines = rounds_proof(Y, data, k, rng) or direction_proof(Y, data, k, rng)
    else:
        lines = Builder(Y, data, rng).build(k, slack)
    return mutants_of(lines, Y, rng, count)


def mutants_of(
    lines: list[Json],
    Y: np.ndarray,
    rng: Rng,
    count: int,
    changes: Sequence[Callable[[Draft, Rng], None]] = CHANGES,
) -> list[tuple[Draft, str]]:
    """Return so many mutants of a proof, with the names of what was changed."""
    made = []
    for _ in range(count):
        draft = Draft(copy.deepcopy(lines), Y)
        names = []
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            change = changes[rng.integers(len(changes))]
            try:
                change(draft, rng)
            except (IndexError, ValueError, KeyError):
                continue  # an earlier change has left nothing to change here
            names.append(change.__name__)
        made.append((draft, " ".join(names)))
    return made


def judge_file(text: bytes, Y: np.ndarray, seed: int, count: int) -> tuple[int, list]:
    """Show mutants of a given proof to the checker, in floats; the data stay.

    Of opt(k) it is known that the proof's own claims hold, once it has been checked: a
    claim of a mutant is false if it contradicts them.
    """
    check_proof(text, Y)
    known = {claim.k: claim for claim in read_proof(text)[0].claims}
    lines = [json.loads(line) for line in text.decode().splitlines()]
    kept = [c for c in CHANGES if c not in (change_data, change_options)]
    accepted, wrong = 0, []
    rng = np.random.default_rng(seed)
    for number, (draft, names) in enumerate(mutants_of(lines, Y, rng, count, kept)):
        try:
            check_proof(draft.text(), Y, floats=True)
        except ProofError:
            continue
        accepted += 1
        for claim in read_proof(draft.text())[0].claims:
            truth = known.get(claim.k, claim)
            low, high = truth.objective, truth.upper_bound
            if claim.upper_bound < low or claim.objective > high:
                wrong.append(f"seed {seed}, mutant {number} ({names}): k = {claim.k}")
    return accepted, wrong


def false_claims(section: Section, header: Json, Y: np.ndarray) -> list[int]:
    """Return the k of the claims of a proof that are false."""
    truth: Truth | Sets
    plain = header.keys() <= {"format", "version", "data", "row_list", "claims"}
    truth = Truth(Y, header["data"]) if plain else Sets(header, Y)
    return [
        claim.k
        for claim in section.claims
        if not truth.allows(claim.k, claim.objective, claim.upper_bound)
    ]


def judge(seed: int, count: int) -> tuple[int, list[str]]:
    """Show mutants to the checker; return how many it accepted, and what is wrong."""
    accepted, wrong = 0, []
    for number, (draft, names) in enumerate(mutants(seed, count)):
        text = draft.text()
        try:
            check_proof(text, draft.Y, **MODES[(seed + number) % len(MODES)])
        except ProofError:
            continue
        accepted += 1
        header = json.loads(text.split(b"\n")[0])
        false = false_claims(read_proof(text)[0], header, draft.Y)
        if false:
            wrong.append(f"seed {seed}, mutant {number} ({names}): k = {false}")
    return accepted, wrong
