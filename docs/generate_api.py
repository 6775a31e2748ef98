"""Write the solvers of docs/api.md from the registry: none can be forgotten there."""

from __future__ import annotations

from pathlib import Path

from blockspca.guarantee import EXACT, HEURISTIC, BlockGuarantee, Guarantee
from blockspca.solvers import SOLVERS, BaseSolver, L0Penalty, L1Penalty, SolverRun
from blockspca.solvers.base import Solution, Solver, SolverError

PAGE = Path(__file__).with_name("api.md")
START = "<!-- Written by docs/generate_api.py from here on; edit that, not this. -->\n"
END = "<!-- Written by hand again. -->\n"

CONTRACT = (Solver, Solution, SolverError, Guarantee, BlockGuarantee)
TEMPLATE = (BaseSolver, SolverRun)
PARTS = (L0Penalty, L1Penalty)


def kind(name: str) -> str:
    """Say what a solver promises before anything is computed."""
    guarantee = SOLVERS[name].guarantee
    if guarantee is EXACT:
        return "exact"
    return "heuristic" if guarantee is HEURISTIC else "with a guarantee"


def references(classes: tuple[type, ...]) -> str:
    return "".join(f"::: {c.__module__}.{c.__qualname__}\n" for c in classes)


def solvers() -> str:
    """The section: what a solver is, what there is, and each by its docstring."""
    lines = ["| solver | by name | promise |", "|---|---|---|"]
    for name in sorted(SOLVERS):
        lines.append(f"| `{SOLVERS[name].__name__}` | `{name}` | {kind(name)} |")
    return "\n".join(
        [
            "The interface of a solver, and the base class that does most of the work"
            " ([Add a solver](add-a-solver.md)):\n",
            references(CONTRACT + TEMPLATE),
            f"The {len(SOLVERS)} solvers of `blockspca.solvers`, with their names in"
            " `blockspca.solvers.SOLVERS`"
            " ([what each promises](guarantees.md)):\n",
            "\n".join(lines) + "\n",
            references(tuple(SOLVERS[name] for name in sorted(SOLVERS)) + PARTS),
        ]
    )


def page(text: str) -> str:
    """The page with the section in its place, the rest as it is."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(
            f"{PAGE.name} has no place for the solvers: put back its marks."
        )
    return f"{before}{START}\n{solvers()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
