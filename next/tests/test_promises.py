"""Every promise of the old package has a place; finished rooms keep theirs."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import blockspca

TABLE = Path(__file__).resolve().parent.parent / "docs" / "promises.csv"

ROOMS = {
    *("root", "estimator", "linalg", "covariance", "scan", "_kernels", "supports"),
    *("bounds", "search", "prove", "constraints", "proof", "checker", "blocks"),
    *("solvers", "components", "inspection", "model_selection", "io", "plotting"),
    *("report", "datasets", "cli", "explore", "docs", "benchmarks"),
}
#: public names of these rooms have to be there
FINISHED: tuple[str, ...] = ("covariance", "proof")
#: the lines of "What goes"
DECISIONS = {
    "old formats, old names, the stability JSON",
    'scheme="auto" and undominated',
    'schemes "hotelling" and "projection"',
    'certified components of "predictive"; search and bounds under W\'x = 0',
    "blocks in the default path of solve",
    "compositions",
    "averaging",
    "whole groups; exact search for signs; overlap together with groups",
    "the contrast's target prover",
    "restricted_isometry, contrastive_path, cross_validate, solve_shared_path",
    "verify by searching again; float copies of exact rules; token text of trees",
    "BranchAndBound's own kernel, the plain tree, the tree that writes proofs",
    "ProofSettings",
    "Certificate with its JSON, proof=, max_nodes=",
    "solver=, threshold= of solve and SparsePCA; background as a parameter",
    "permutation_reference, plot_proof, plot_largest_block, explain as HTML",
    "reproduction and the paper's sets in the wheel; \"abess\", scikit-learn's two",
    "own readers of CSV and h5ad, own SVG charts",
    "HTML page of a proof, threshold slider in the report, command blocks",
}
PUBLIC = ("name", "parameter", "method", "attribute", "plot")


def rows() -> list[dict[str, str]]:
    """Return the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_there(name: str) -> bool:
    """Whether the new package has a name: `a.b`, `a.B.attribute` or `f(parameter)`."""
    path, _, parameter = name.rstrip(")").partition("(")
    value: Any = blockspca
    for word in path.split("."):
        if not hasattr(value, word) and inspect.ismodule(value):
            try:
                import_module(f"{value.__name__}.{word}")
            except ImportError:
                return False
        if not hasattr(value, word):  # set by the constructor, or by fit
            fields = dataclasses.is_dataclass(value) and word in (
                field.name for field in dataclasses.fields(value)
            )
            document = inspect.getdoc(value) or ""
            section = document.partition("Attributes\n-----")[2]
            named = re.search(rf"^(.*, )?{word}(, .*)? :", section, re.MULTILINE)
            return not parameter and bool(fields or named)
        value = getattr(value, word)
    return not parameter or parameter in inspect.signature(value).parameters


def test_every_promise_has_a_place():
    for row in rows():
        place = row["place"]
        if place.startswith("goes: "):
            assert len(place.split()) > 5, f"{row}: who would miss it?"
        elif place.startswith("decided: "):
            assert place.removeprefix("decided: ") in DECISIONS, row
        else:
            assert place.split(" as ")[0] in ROOMS, row


def test_no_promise_is_listed_twice():
    names = [(row["kind"], row["name"]) for row in rows()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("room", FINISHED)
def test_finished_rooms_keep_their_promises(room):
    missing = []
    for row in rows():
        place, _, renamed = row["place"].partition(" as ")
        name = renamed or row["name"]
        if place == room and row["kind"] in PUBLIC and not is_there(name):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("name", ["solve_all", "io.solve", "__version__.nodes"])
def test_an_absent_name_is_noticed(name):
    assert is_there("__version__")
    assert not is_there(name)
