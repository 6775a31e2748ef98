"""Proofs are accepted by a second checker too, which was written from the page alone.

And none of their mutants by one of the two only, unless it has no room.
"""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.checker.check import check_proof
from component_problems import overlapping_factors
from from_the_page.check import ProofError
from from_the_page.check import check_proof as check_again

FACTORS = overlapping_factors()


def result(**options):
    cov = bs.Covariance.from_data(FACTORS)
    return bs.solve(cov, 5, proof=True, **options)


def components(scheme):
    cov = bs.Covariance.from_data(FACTORS)
    return bs.solve_components(cov, 4, 3, scheme=scheme, proof=True)


PROOFS = {
    "path": lambda: bs.solve_path(bs.Covariance.from_data(FACTORS), 6, proof=True),
    "scaled": lambda: bs.solve(
        bs.Covariance.from_data(FACTORS, scale=True), 6, proof=True
    ),
    "large k": lambda: bs.solve(
        bs.Covariance.from_data(FACTORS, scale=True), 20, proof=True
    ),
    "include": lambda: result(constraints=bs.Constraints(include=[0], exclude=[7])),
    "groups": lambda: result(
        constraints=bs.Constraints(groups=[i // 5 for i in range(30)], max_per_group=2)
    ),
    "whole groups": lambda: result(
        constraints=bs.Constraints(
            groups=[i // 2 for i in range(30)], whole_groups=True
        )
    ),
    "nonnegative": lambda: result(constraints=bs.Constraints(nonnegative=True)),
    **{
        scheme: lambda scheme=scheme: components(scheme)
        for scheme in ("disjoint", "residual", "projection", "hotelling", "orthogonal")
    },
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", PROOFS)
def test_both_checkers_accept(name, exact, tmp_path):
    path = tmp_path / "a.proof"
    PROOFS[name]().write_proof(path)
    first = check_proof(path, FACTORS, exact=exact, floats=not exact)
    second = check_again(path, FACTORS, exact=exact, floats=not exact)
    claims = [
        [(claim.k, claim.objective, claim.upper_bound) for claim in section.claims]
        for section in first.sections
    ]
    assert claims == [
        [(claim.k, claim.objective, claim.upper_bound) for claim in section.claims]
        for section in second.sections
    ]


@pytest.mark.parametrize("name", PROOFS)
def test_a_lower_bound_is_refused_by_both(name, tmp_path):
    """The bound of a claim is that of its record and a little room, not 1e-6 less."""
    path = tmp_path / "a.proof"
    PROOFS[name]().write_proof(path)
    text = path.read_text()
    bound = float.fromhex(text.split('"upper_bound": "')[1].split('"')[0])
    lower = (bound - 1e-6 * abs(bound)).hex()
    forged = text.replace(float(bound).hex(), lower, 1).encode()
    assert forged != text.encode()
    with pytest.raises(Exception, match="k = "):
        check_proof(forged, FACTORS)
    with pytest.raises(ProofError, match="k = "):
        check_again(forged, FACTORS)


def test_other_data_are_refused(tmp_path):
    path = tmp_path / "a.proof"
    PROOFS["path"]().write_proof(path)
    with pytest.raises(ProofError, match="data"):
        check_again(path, np.nextafter(FACTORS, np.inf))
