"""Why a command ends with 3: the limit that was reached, or that none was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import restated
from blockspca.cli.options import SolveOptions
from blockspca.cli.solving import parse_sparsity, why_not_proved
from blockspca.components.scheme_names import SCHEMES
from blockspca.scheme_defaults import SchemeName

A = np.diag([3.0, 2.0, 1.0]) + 0.1
PROVED = bs.solve(A, 2)


def result(status: str, **more) -> bs.Result:
    bound = 2 * PROVED.objective
    said = restated(PROVED, status=bs.Status(status), upper_bound=bound)
    return replace(said, **more)


def test_the_names_of_schemes_are_those_of_the_library():
    assert [scheme.value for scheme in SchemeName] == list(SCHEMES)
    assert {type(name) for name in SCHEMES} == {str}


@pytest.mark.parametrize(
    ("results", "options", "said"),
    [
        ([PROVED], {}, None),
        (
            [result("node_limit", nodes=200_000)],
            {},
            "the limit, the default of 200,000 nodes, was reached; raise --nodes",
        ),
        ([result("node_limit", nodes=70)], {"nodes": 70}, "the limit, 70 nodes, was"),
        (
            [result("node_limit", nodes=30), PROVED],
            {"nodes": 70},
            "1 of 2 used up their share of the limit, 70 nodes; raise --nodes",
        ),
        ([result("time_limit", time=5.1)], {"time": 5}, "the limit, 5 s, was reached"),
        (
            [result("time_limit", time=2.0), PROVED],
            {"time": 5},
            "1 of 2 used up their share of the limit, 5 s; raise --time",
        ),
        ([result("memory_limit")], {}, "needs more memory than it may use"),
        (
            [result("feasible"), PROVED],
            {"time": 5},
            "1 of 2 proofs ended by themselves, with a gap of up to 100.00%",
        ),
        ([result("interrupted")], {}, None),
    ],
)
def test_what_ended_a_proof(results, options, said):
    found = why_not_proved(results, SolveOptions(**options))
    assert len(found) == (said is not None)
    if said is not None:
        assert said in found[0]


def test_sparsities_as_they_are_typed():
    assert parse_sparsity("5", 2) == 5
    assert parse_sparsity("0.05", 2) == 0.05
    assert parse_sparsity("5,0.1", 2) == [5, 0.1]
    assert parse_sparsity("auto", 2) is None
    for text in ("1.5", "1.0", "x", "0.0", "nan"):
        with pytest.raises(ValueError, match="is not a number of features"):
            parse_sparsity(text, 1)
