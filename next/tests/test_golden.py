"""Golden solves: what the package before version 1.0 proved of 80 problems.

`golden.json` has support, objective, bound and status of each. A solve may reach more
and prove more, but not less. Problems are made from seeds; `sum` tells whether they
are the same ones.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from claims import bs
from zoo import Array

FILE = Path(__file__).with_name("golden.json")
SAME = 1e-6


def factors(n: int, d: int, rng: np.random.Generator) -> Array:
    """Samples of a few overlapping factors in noise."""
    X = rng.standard_normal((n, d))
    for _ in range(4):
        members = rng.random(d) < 0.2
        X[:, members] += rng.uniform(0.5, 2.0) * rng.standard_normal((n, 1))
    return X * rng.gamma(4.0, size=d)


def problem(kind: str, d: int, seed: int) -> Any:
    """Return a Covariance, or a matrix, by kind, size and seed."""
    rng = np.random.default_rng([seed, d])
    if kind in zoo.MATRICES:
        return zoo.symmetric(zoo.MATRICES[kind](d, rng))
    if kind == "wide":
        return bs.Covariance.from_data(factors(d // 4, d, rng))
    X = factors(3 * d, d, rng)
    if kind == "data":
        return bs.Covariance.from_data(X)
    return np.corrcoef(X.T) if kind == "correlations" else np.cov(X.T)


KINDS = (
    "covariance",
    "correlations",
    "data",
    "wide",
    "gaussian",
    "spiked",
    "circulant",
)
SIZES = ((12, 3), (12, 6), (30, 4), (30, 8), (60, 5), (100, 10), (200, 6))
RULES: dict[str, dict[str, Any]] = {
    "include": {"include": [0, 3]},
    "exclude": {"exclude": [1, 2, 5]},
    "groups": {"groups": [0, 1, 2] * 10, "max_per_group": 2},
    "overlap": {"overlap_with": list(range(8)), "min_overlap": 2},
    "nonnegative": {"nonnegative": True},
}
#: (call, kind, d, k, seed); the call is "solve", a rule, a scheme or "shared"
ASKED: list[tuple[str, str, int, int, int]] = [
    *(
        ("solve", kind, d, k, 1)
        for kind in KINDS
        for d, k in SIZES
        if kind != "circulant" or (d, k) != (100, 10)  # not proved in 20 s
    ),
    *((rule, kind, 30, 5, 2) for rule in RULES for kind in ("covariance", "data")),
    *(
        (scheme, kind, 24, 4, 3)
        for scheme in ("residual", "disjoint", "residual-disjoint", "uncorrelated")
        for kind in ("correlations", "data", "wide")
    ),
    *(("shared", kind, 15, k, 4) for kind in ("data", "correlations") for k in (4, 6)),
    *(("solve", "data", 60, k, 5) for k in (2, 8, 12, 20, 30, 45)),
]
NEEDS = {"solve": "solve", "shared": "solve_shared"} | {
    **dict.fromkeys(RULES, "Constraints"),
    **dict.fromkeys(
        ("residual", "disjoint", "residual-disjoint", "uncorrelated"),
        "solve_components",
    ),
}


def name(asked: tuple[Any, ...]) -> str:
    return ", ".join(map(str, asked))


def solved(call: str, kind: str, d: int, k: int, seed: int) -> dict[str, Any]:
    """Ask the call, and return what is stored of its answer."""
    given = problem(kind, d, seed)
    limits = bs.Limits(time=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if call == "shared":
            results = [bs.solve_shared(given, k, 2, limits=limits)]
        elif call in RULES or call == "solve":
            rules = bs.Constraints(**RULES[call]) if call in RULES else None
            results = [bs.solve(given, k, constraints=rules, limits=limits)]
        else:
            found = bs.solve_components(given, k, 3, scheme=call, limits=limits)
            results = list(found.results)
    matrix = given if isinstance(given, np.ndarray) else given.submatrix(np.arange(d))
    return {
        "sum": float(np.abs(matrix).sum()),
        "results": [
            {
                "support": np.asarray(result.support).tolist(),
                "objective": float(result.objective),
                "bound": float(result.upper_bound),
                "status": str(result.status.value),
            }
            for result in results
        ],
    }


GOLDEN = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


@pytest.mark.parametrize("asked", ASKED, ids=name)
def test_golden(asked: tuple[str, str, int, int, int]) -> None:
    if NEEDS[asked[0]] not in bs.__all__:
        pytest.skip(f"not built: {NEEDS[asked[0]]}")
    old, new = GOLDEN[name(asked)], solved(*asked)
    assert new["sum"] == pytest.approx(old["sum"], rel=1e-9), "another problem"
    for before, after in zip(old["results"], new["results"], strict=True):
        slack = SAME * abs(before["objective"])
        assert after["objective"] >= before["objective"] - slack
        assert after["bound"] <= before["bound"] + slack
        if before["status"] == "optimal":
            assert after["status"] == "optimal"
            ties = abs(after["objective"] - before["objective"]) < 1e-9 * slack / SAME
            assert after["support"] == before["support"] or ties


if __name__ == "__main__":  # written once, from the package before version 1.0
    answers = {name(asked): solved(*asked) for asked in ASKED}
    json.dump(answers, sys.stdout, indent=0)
