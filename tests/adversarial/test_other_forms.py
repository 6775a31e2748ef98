"""Claims about data are checked against the same data in another form.

Entries are then computed in another order, and err by more or by less. A true claim is
confirmed, or listed as unchecked; it is never refused.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import blockspca as bs
from blockspca.certificate import BoundName
from blockspca.components.variance import CLAIMED, joint_bounds
from blockspca.limits import Limits

FORMS = {
    "dense": lambda X, scale: bs.Covariance.from_data(X, scale=scale),
    "sparse": lambda X, scale: bs.Covariance.from_data(
        scipy.sparse.csr_array(X), scale=scale
    ),
    "chunks": lambda X, scale: bs.Covariance.from_chunks([X[:4], X[4:]], scale=scale),
}
# Of one feature: 8 bytes of A are all that may be held, so that it is not formed.
UNFORMED = Limits(memory=8)


def data(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 30)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return X + 1e3 * (seed % 3 == 0)


@pytest.mark.parametrize("seed", range(12))
def test_a_shared_bound_of_unformed_data_is_confirmed_where_they_are_formed(seed):
    X = data(seed)
    for k in range(1, X.shape[1] + 1):
        for r in range(1, min(k, 3) + 1):
            found = bs.solve_shared(FORMS["dense"](X, False), k, r, limits=UNFORMED)
            assert found.verify(FORMS["dense"](X, False)).complete


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_form_of_the_data_refuses_a_claim_about_another(seed, scale):
    X = data(seed)
    k, r = X.shape[1], min(X.shape[1], 2)
    for made in FORMS.values():
        shared = bs.solve_shared(made(X, scale), k, r)
        single = bs.solve(made(X, scale), k, limits=Limits(nodes=1))
        several = bs.solve_components(
            made(X, scale), k, r, scheme="projection", limits=Limits(nodes=1)
        )
        for form in FORMS.values():
            cov = form(X, scale)
            # None of them raises, and what is proved here is not below what is reached.
            for check, found in (
                (shared.verify(cov), shared),
                (bs.verify(single, cov), single),
                *zip(several.verify(cov), several, strict=True),
            ):
                assert check.upper_bound >= found.objective * (1 - 1e-6)


def many_rows(n):
    """Added up in chunks, entries err by a hundred times what a product errs by."""
    rng = np.random.default_rng(10)
    return rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6))


WHOLE = {"groups": {"a": [0, 1, 2], "b": [3, 4, 5]}, "whole_groups": True}


@pytest.mark.parametrize(
    ("rules", "k", "n", "nodes"),
    [
        ({}, 6, 3000, 1),  # k = 4 by averages over subsets
        ({"include": [0, 1]}, 2, 20_000, None),  # a single set
        (WHOLE, 3, 3000, None),  # norms of groups
        ({**WHOLE, "include": [0, 1, 2]}, 3, 20_000, None),  # a single set of them
    ],
)
def test_entries_that_err_by_more_refuse_no_claim(rules, k, n, nodes):
    X = many_rows(n)
    constraints = bs.Constraints(**rules) if rules else None
    for made in FORMS.values():
        cov = made(X, True)
        found = bs.solve(cov, k, constraints=constraints, limits=Limits(nodes=nodes))
        assert bs.verify(found, cov).complete
        for form in FORMS.values():
            bs.verify(found, form(X, True))


@pytest.mark.parametrize("rules", [{"include": [0, 1]}, WHOLE])
def test_a_false_claim_of_a_part_is_refused_in_every_form(rules):
    X, k = many_rows(3000), 2 if "include" in rules else 3
    constraints = bs.Constraints(**rules)
    claim = bs.solve(FORMS["dense"](X, True), k, constraints=constraints).certificate
    lower = claim.objective * (1 - 1e-9)
    parts = tuple(
        replace(
            part,
            upper_bound=lower,
            steps=tuple(replace(step, upper_bound=lower) for step in part.steps),
        )
        for part in claim.parts
    )
    false = replace(claim, parts=parts, upper_bound=lower, status=bs.Status.FEASIBLE)
    for form in FORMS.values():
        with pytest.raises(bs.VerificationError):
            bs.verify(false, form(X, True))


def test_a_bound_under_conditions_is_not_refused_where_entries_err_by_more():
    X = many_rows(20_000)
    cov = FORMS["dense"](X, False)
    found = bs.solve_components(cov, 2, 2, scheme="uncorrelated")
    assert found[1].certificate.bound_name == BoundName.CONDITIONS
    assert all(one.complete for one in found.verify(cov))
    for form in FORMS.values():
        found.verify(form(X, False))


def test_a_false_claim_about_data_is_refused_in_every_form():
    X = data(1)
    found = bs.solve_shared(FORMS["dense"](X, False), 2, 1)
    false = bs.SharedSupport(
        **{
            **{name: getattr(found, name) for name in found.__dataclass_fields__},
            "upper_bound": found.objective * (1 - 1e-9),
            "status": bs.Status.FEASIBLE,
        }
    )
    for form in FORMS.values():
        with pytest.raises(bs.VerificationError):
            false.verify(form(X, False))


@pytest.mark.parametrize("least", [0.0, -0.9, -1.1, -1.9, -2.1, -5.0])
def test_a_matrix_that_counts_as_semidefinite_does_so_where_it_is_checked(least):
    """Eigenvalues as low as the margins of a claim allow had no joint bound here."""
    rounding = 4 * 4 * np.finfo(float).eps * 4.0
    A = np.diag([4.0, 2.0, 1.0, least * rounding])
    cov = bs.Covariance.from_matrix(A)
    first = bs.solve(cov, 2)
    claims = joint_bounds(cov, first, [2, 2], margin=CLAIMED)
    checks = joint_bounds(cov, first, [2, 2], margin=1.0)
    for name, bound in claims.items():
        assert checks[name] <= bound


def test_what_earlier_components_leave_may_be_zero():
    """It has no feature that varies, and a search of it no node: that was an error."""
    X = np.array(
        [
            [0.6147749042825374, 0.19625259160516584, 0.29565364780521386],
            [-0.5909288328060421, -0.8656735464923577, 1.1212440729533764],
        ]
    )
    cov = bs.Covariance.from_chunks([X], scale=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bs.solve_components(cov, 2, 2, scheme="residual")
    assert len(found) == 2
    found.verify(cov)
