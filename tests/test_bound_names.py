"""Every bound that is named anywhere is a `BoundName`, with a text for people."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.components.shared_bounds import closed_forms
from blockspca.limits import Deadline

SOURCE = Path(bs.__file__).parent
X = np.random.default_rng(0).normal(size=(40, 12)) @ np.diag(range(3, 15))
A = np.cov(X.T)
WIDE = bs.Covariance.from_data(np.random.default_rng(1).normal(size=(20, 80)))
CONTRAST = bs.contrastive(A, np.cov(X[::2].T), 0.5)


def names_in(value: Any) -> Iterator[Any]:
    """Every field called bound_name in a result, and in what it holds."""
    if is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            if field.name.endswith("bound_name"):
                yield inner
            elif field.name != "proof":
                yield from names_in(inner)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from names_in(inner)


RESULTS: dict[str, Callable[[], Any]] = {
    "one": lambda: bs.solve(A, 4),
    "at once": lambda: bs.solve(A, 4, certify=False),
    "blocks": lambda: bs.solve(A, 4, threshold=1.0),
    "a solver": lambda: bs.solve(A, 4, solver="greedy"),
    "one node": lambda: bs.solve(A, 4, limits=bs.Limits(nodes=1)),
    "path": lambda: bs.solve_path(A, 6),
    "constrained": lambda: bs.solve(A, 4, constraints=bs.Constraints(include=[0])),
    "non-negative": lambda: bs.solve(
        A, 4, constraints=bs.Constraints(nonnegative=True)
    ),
    "contrast": lambda: bs.solve(CONTRAST, 3),
    "disjoint": lambda: bs.solve_components(A, 3, 3),
    "not proved": lambda: bs.solve_components(A, 3, 3, certify=False),
    "swept": lambda: bs.solve_components(A, 3, 3, sweeps=2),
    "orthogonal": lambda: bs.solve_components(A, 4, 2, scheme="orthogonal", sweeps=1),
    "uncorrelated": lambda: bs.solve_components(A, 4, 2, scheme="uncorrelated"),
    "residual": lambda: bs.solve_components(A, 3, 3, scheme="residual"),
    "predictive": lambda: bs.solve_components(
        A, 3, 2, scheme="predictive", certify=False
    ),
    "shared": lambda: bs.solve_shared(A, 4, 2),
    "shared, wide": lambda: bs.solve_shared(WIDE, 6, 2, limits=bs.Limits(nodes=1)),
    "shared path": lambda: bs.solve_shared_path(A, [2, 4], 2),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_no_bound_of_a_result_is_a_bare_string(kind: str) -> None:
    found = RESULTS[kind]()
    values = found.values() if isinstance(found, Mapping) else [found]
    for value in values:
        again = pickle.loads(pickle.dumps(value))
        for names in ([*names_in(value)], [*names_in(again)]):
            assert names
            assert all(isinstance(name, BoundName) for name in names), names


def test_a_certificate_that_is_read_has_the_names_it_had() -> None:
    certificate = bs.solve(A, 4).certificate
    read = bs.Certificate.from_json(certificate.to_json())
    assert all(isinstance(name, BoundName) for name in names_in(read))
    other = certificate.to_json().replace("variances", "a bound of tomorrow")
    names = [*names_in(bs.Certificate.from_json(other))]
    assert "a bound of tomorrow" in names


def test_the_closed_forms_of_shared_sets_have_names() -> None:
    for cov in (bs.Covariance.from_matrix(A), CONTRAST):
        found = closed_forms(cov, 4, 2, Deadline(None))
        assert all(isinstance(name, BoundName) for name in found)


def test_no_module_names_a_bound_by_a_string() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            sides: list[ast.expr] = []
            if isinstance(node, ast.keyword) and str(node.arg).endswith("bound_name"):
                sides = [node.value]
            elif isinstance(node, ast.Compare) and "bound_name" in ast.unparse(node):
                sides = [node.left, *node.comparators]
            assert not any(isinstance(side, ast.Constant) for side in sides), (
                f"{path.name}:{node.lineno}"
            )
