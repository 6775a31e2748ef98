"""Reads claims: docs/proof-format.md, section 3, and section 8 on which sets count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .fields import ProofError, Reader, ascending, integer, integers, real, reals, take
from .groups import Groups
from .problem import Problem


@dataclass(frozen=True)
class Claim:
    """There is x on `support` with x'Ax ≥ objective·x'x, and opt(k) ≤ upper_bound."""

    k: int
    support: tuple[int, ...]
    x: list[float]
    objective: float
    upper_bound: float


def claim_limit(problem: Problem) -> int:
    """Return the largest k that a claim can have."""
    constraints = problem.constraints
    if constraints.whole:
        return problem.d
    kinds = (constraints.groups, constraints.beside)
    rooms = (Groups.of(problem, kind).capacity() for kind in kinds)
    return len(problem.chosen) + min(rooms)


def read_claim(value: Any, problem: Problem, most: int, where: str) -> Claim:
    """Read a claim, and refuse it unless its x counts: sections 3 and 8."""
    where += ", claim"
    readers: dict[str, Reader] = {
        "k": integer,
        "support": integers,
        "x": reals,
        "objective": real,
        "upper_bound": real,
    }
    constraints = problem.constraints
    if constraints.beside:
        readers["set"] = integers
    found = take(value, where, **readers)
    k, support = found["k"], found["support"]
    least = max(1, len(problem.chosen))
    if not least <= k <= most:
        raise ProofError(f"{where}: k = {k} is not in {least} to {most}")
    if not 1 <= len(support) <= k or support != sorted(support):
        raise ProofError(f"{where}: the support must be 1 to k ascending features")
    if not ascending(support, problem.d) or {*support} & {*problem.without}:
        raise ProofError(f"{where}: different features are needed, of those there are")
    if len(found["x"]) != len(support) or not any(found["x"]):
        raise ProofError(f"{where}: x must be a number per feature, not all 0")
    if constraints.nonnegative and min(found["x"]) < 0:
        raise ProofError(f"{where}: x has a negative entry")
    together = {*support, *constraints.include}
    if constraints.whole:
        together = {i for name in together for i in constraints.unit(name)}
    if len(together) > k or not constraints.keeps(together):
        raise ProofError(f"{where}: the support does not keep the constraints")
    if constraints.beside:
        _check_set(found.pop("set"), k, together, problem, where)
    return Claim(**{**found, "support": tuple(support)})


def _check_set(
    names: list[int], k: int, together: set[int], problem: Problem, where: str
) -> None:
    """Groups beside groups: a set says that x counts."""
    if len(names) != k or not ascending(names, problem.d) or together - {*names}:
        raise ProofError(f"{where}: set must be k features, with those of the claim")
    if {*names} & {*problem.without} or not problem.constraints.keeps({*names}):
        raise ProofError(f"{where}: the set does not keep the constraints")
