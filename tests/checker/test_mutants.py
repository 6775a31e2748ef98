"""Mutated proofs: none is accepted whose claim is false, and the trial can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import proof_mutations
from blockspca.checker import (
    check,
    composition_tables,
    compositions,
    integer_tree,
    integers,
    sign_tree,
)
from proof_builder import Builder, as_bytes, describe, rounds_proof
from proof_mutations import CHANGES, judge, judge_file, mutants

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "proof_mutants.py"


def test_no_mutant_with_a_false_claim_is_accepted():
    """Those that `benchmarks/proof_mutants.py` begins with, which goes on."""
    accepted, wrong = 0, []
    for seed in range(40):
        more, false = judge(seed, 10)
        accepted, wrong = accepted + more, wrong + false
    assert wrong == []
    assert accepted > 20  # changes that do no harm, so that acceptance is judged


def test_mutants_of_a_given_proof_are_judged_by_its_own_claims():
    """Files with trees, and with rounds of directions."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Y = rng.standard_normal((6, 5)) * [5, 4, 3, 2, 1]
        data = describe(Y, "data")
        lines = rounds_proof(Y, data, 2, rng) or Builder(Y, data, rng).build(3)
        assert judge_file(as_bytes(lines), Y, seed, 30)[1] == []


def test_every_kind_of_change_is_made():
    names = {name for seed in range(20) for _, name in mutants(seed, 20)}
    assert {word for name in names for word in name.split()} == {
        change.__name__ for change in CHANGES
    }


def no_places(*given):
    return np.zeros(0, dtype=np.int64)


def unshown_bounds(self):
    """t alone, without vv', and not shown."""
    numbers = [
        [self.forms.matrix.number(one.t) for one in some] for some in self.given.bounds
    ]
    parts = zip(numbers, self.given.parts, strict=True)
    found = [
        [(self.forms.matrix.number_above(t), np.zeros(len(part))) for t in some]
        for some, part in parts
    ]
    return [*found, []]


def all_closed(self, begin, counts, upper):
    return np.ones(len(counts), dtype=bool)


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (integer_tree.IntegerTree, "open_by_suffix", no_places),
        (integer_tree.IntegerTree, "drop", no_places),
        (integer_tree.IntegerTree, "last", lambda *given: None),
        (integer_tree, "is_positive_semidefinite", lambda *given: True),
        (integers.IntegerMatrix, "check_rows", lambda *given: None),
        (check.Screening, "check", lambda self, record, tau, u: None),
        (composition_tables.CompositionTables, "are_closed", all_closed),
        (compositions.CompositionCheck, "check_case", lambda *given: None),
        (compositions.CompositionCheck, "shown_bounds", unshown_bounds),
        (sign_tree, "closes_in_integers", lambda *given: True),
        (sign_tree.SignTree, "still_open", no_places),
        (sign_tree.SignTree, "close", lambda *given: None),
        (check.RecordCheck, "check_variance", lambda *given: None),
        (check.RecordCheck, "check_average", lambda *given: None),
        (check, "_check_vector", lambda *given: None),
    ],
)
def test_a_checker_that_leaves_out_a_step_is_found(owner, name, broken, monkeypatch):
    monkeypatch.setattr(owner, name, broken)
    monkeypatch.setattr(proof_mutations, "MODES", ({"exact": True},))
    assert any(judge(seed, 20)[1] for seed in range(400))


def test_the_run_goes_on_where_it_ended(tmp_path):
    def run(mutants: int) -> str:
        state = str(tmp_path / "state.json")
        words = [
            sys.executable,
            str(SCRIPT),
            "--mutants",
            str(mutants),
            "--state",
            state,
        ]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    assert "0 with a false claim" in run(1)
    assert "seeds [[0, 10]]: 200 mutants" in run(150)
    assert "seeds [[0, 20]]: 400 mutants" in run(201)
