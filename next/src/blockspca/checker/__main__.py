"""Checks a proof file: python -m blockspca.checker PROOF DATA [--exact] [--explain]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .check import Verdict, check_file
from .reading import ProofError


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a proof; return 0 if it holds, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m blockspca.checker",
        description="Check a proof of blockspca: does it hold for these data?",
    )
    parser.add_argument("proof", help="the proof file")
    parser.add_argument("data", help="the data: .npy, .npz, .csv or .mtx")
    parser.add_argument(
        "--exact", action="store_true", help="decide trees and claims in integers"
    )
    parser.add_argument(
        "--explain", action="store_true", help="print what each record shows"
    )
    options = parser.parse_args(arguments)
    try:
        checked = check_file(options.proof, options.data, options.exact)
    except ProofError as error:
        print(f"NOT ACCEPTED: {error}.")
        return 1
    except (MemoryError, ArithmeticError, ValueError, IndexError) as error:
        kind = type(error).__name__
        print(f"NOT ACCEPTED: the checker cannot follow the proof ({kind}: {error}).")
        return 1
    for part in checked:
        print(report(part, options.explain))
    return 0


def report(checked: Verdict, explain: bool) -> str:
    """Return the verdict on one proof."""
    problem = checked.proof.problem
    lines = []
    if explain:
        how = "the matrix itself" if problem.kind == "matrix" else "the covariance"
        if problem.scale:
            how = "the correlation matrix"
        lines.append(f"A is {how} of these data.")
        if problem.residual:
            lines.append(
                f"The scores of {len(problem.residual)} vectors are taken off."
            )
        if problem.sets.without:
            lines.append(f"{len(problem.sets.without)} features are left out.")
        for most, features in problem.sets.groups:
            lines.append(f"At most {most} of {len(features)} features of a group.")
        for step in checked.steps:
            record = step.record
            rule = type(record).__name__.lower()
            lines.append(
                f"  opt({record.k}) <= {record.upper:.10g} by {rule}: {step.sentence}."
            )
    taken = len(problem.residual)
    after = f" after {taken} vector{'s' * (taken > 1)}" if taken else ""
    for claim in checked.proof.claims:
        gap = claim.upper - claim.objective
        share = gap / abs(claim.objective) if claim.objective else float(gap > 0)
        lines.append(
            f"ACCEPTED: {claim.objective:.10g} <= opt({claim.k}) <= {claim.upper:.10g}"
            f"{after} (gap {'0' if share < 1e-8 else f'{100 * share:.3g} %'})"
        )
    lines.append(f"Decided in {checked.arithmetic}.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
