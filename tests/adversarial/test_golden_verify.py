"""What `verify` accepts and refuses, certificate by certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import numpy as np

import blockspca as bs
from blockspca.certify import searched_claims
from golden import Groups, Numbers, assert_as_written, data, matrices

# Relative changes: within every tolerance, and beyond it
CHANGES = (-1e-3, -3e-6, -5e-7, -3e-9, -5e-10, 5e-10, 3e-9, 5e-7, 3e-6, 1e-3)


def tampered(certificate: bs.Certificate) -> Iterator[tuple[str, bs.Certificate]]:
    """Yield certificates that differ from a good one in one place."""
    yield "as it is", certificate
    c = certificate
    for change in CHANGES:
        f = 1 + change
        yield f"objective {change}", replace(c, objective=f * c.objective)
        yield f"upper {change}", replace(c, upper_bound=f * c.upper_bound)
        yield f"tolerance {change}", replace(c, tolerance=f * c.tolerance)
        loadings = tuple(f * x for x in c.loadings)
        yield f"loadings {change}", replace(c, loadings=loadings)
        for at in (0, len(c.steps) - 1):
            step = c.steps[at]
            places = {"upper_bound": step.upper_bound}
            if step.tau is not None and step.upper_previous is not None:
                places |= {"tau": step.tau, "upper_previous": step.upper_previous}
            for name, value in places.items():
                steps = list(c.steps)
                steps[at] = replace(step, **{name: f * value})
                yield f"{name} {at} {change}", replace(c, steps=tuple(steps))
    steps = list(c.steps)
    last = steps[-1]
    names = ("row sums", "variances", "nested 2×2", "largest eigenvalue", "none")
    for name in (*names, "soft threshold", "direction dual", "screening", "growth"):
        for value in (last.upper_bound, 1.3 * last.upper_bound, 3.0, np.inf):
            steps[-1] = replace(last, bound_name=name, upper_bound=value)
            there = replace(c, steps=tuple(steps), upper_bound=value)
            yield f"{name} {value:.6g}", replace(there, status=bs.Status.FEASIBLE)
    for lost in range(min(3, len(last.survivors))):
        left = tuple(np.delete(last.survivors, lost).tolist())
        steps[-1] = replace(last, survivors=left)
        yield f"without survivor {lost}", replace(c, steps=tuple(steps))
    yield "one support more", replace(c, k=c.k - 1, steps=c.steps[:-1])
    yield "another matrix", replace(c, n_features=c.n_features + 1)
    moved = tuple(i + c.n_features for i in c.support)
    yield "no such features", replace(c, support=moved)


def outcome(certificate: bs.Certificate, cov: object, brief: bool = True) -> list[str]:
    try:
        said = bs.verify(certificate, cov, max_nodes=200)
    except (bs.VerificationError, ValueError) as error:
        return ["refused", " ".join(str(error).split()[:6])]
    return ["accepted"] if brief else [*said.checks, *said.unchecked]


def verified() -> Numbers:
    found: Numbers = {}
    given: dict[str, object] = {
        name: A for name, A in matrices() if name in ("gaussian", "flat", "two groups")
    }
    given["data"] = bs.Covariance.from_data(data()[0])
    for name, cov in given.items():
        result = bs.solve_path(cov, 4)[4]
        found[name] = outcome(result.certificate, cov, brief=False)
        for what, certificate in tampered(result.certificate):
            found[f"{name} {what}"] = outcome(certificate, cov)
    A = dict(matrices())["flat"]
    result = bs.solve_path(A, 4)[4]
    with patch.object(searched_claims, "ENTRIES_AT_ONCE", 20):
        found["in parts"] = outcome(result.certificate, A, brief=False)
    for nodes in (1, 3, 10):
        said = bs.verify(result, A, max_nodes=nodes)
        found[f"nodes {nodes}"] = [said.complete, float(said.upper_bound)]
    return found


GROUPS: Groups = {"verified": verified}


def test_verification() -> None:
    assert_as_written(__file__, GROUPS, "verified")
