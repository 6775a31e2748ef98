"""Schemes of users: with no more than what one must have, and with what it may say."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

import blockspca as bs
from blockspca.certificate import restated
from blockspca.components.earlier import with_earlier_bound
from blockspca.components.scheme import BaseScheme, completed
from blockspca.components.scheme_names import SCHEMES, as_scheme
from blockspca.components.schemes import scheme_name, used_features
from blockspca.covariance.derived import masked

A = np.cov((np.random.default_rng(0).normal(size=(30, 9)) * np.arange(3, 12)).T)


class Bare:
    """Disjoint supports, by the three methods that a scheme must have."""

    def check(self, sparsities, n_features):
        if sum(sparsities) > n_features:
            raise ValueError("too many features")

    def problem(self, cov, earlier):
        return masked(cov, used_features(earlier)) if earlier else cov

    def solve(self, cov, earlier, k, solve_one):
        if not earlier:
            return solve_one(cov, k)
        return solve_one.without(cov, used_features(earlier), k)


class Telling(Bare):
    """The same, which says what it is."""

    adds_variances = True
    disjoint = True
    conditions = None

    def margin(self, cov, earlier, i, k):
        return 0.0


@pytest.mark.parametrize("sweeps", [0, 1])
@pytest.mark.parametrize("kind", [Bare, Telling])
def test_a_scheme_of_a_user_finds_what_it_stands_for(kind, sweeps):
    scheme = kind()
    found = bs.solve_components(A, 3, 3, scheme=scheme, sweeps=sweeps)
    ours = bs.solve_components(A, 3, 3, scheme="disjoint", sweeps=sweeps)
    assert found.scheme is scheme
    assert [s.tolist() for s in found.supports] == [s.tolist() for s in ours.supports]
    assert found[1].certificate.scheme.startswith(kind.__name__)
    assert all(check.complete for check in found.verify(A))
    read = pickle.loads(pickle.dumps(found))
    assert type(read.scheme) is kind
    assert all(check.complete for check in read.verify(A))
    assert (found.joint_total == ours.joint_total) or kind is Bare


def test_what_a_scheme_of_a_user_does_not_say_is_not_so():
    bare, cov = completed(Bare()), bs.Covariance.from_matrix(A)
    assert not any([bare.adds_variances, bare.multiplies_variances, bare.disjoint])
    assert not any([bare.prediction, bare.above_lasso])
    assert bare.margin(cov, [], 0, 2) is None
    assert bare.conditions(cov, []) is None
    assert not len(bare.closed(cov, []))
    telling = completed(Telling())
    assert telling.adds_variances
    assert telling.disjoint
    assert telling.margin(cov, [], 0, 2) == 0.0
    assert telling.conditions(cov, []) is None


def test_only_a_margin_takes_the_bound_of_an_earlier_component():
    cov = bs.Covariance.from_matrix(A)
    first, second = bs.solve_components(A, 3, 2).results
    loose = restated(
        second, upper_bound=2 * first.upper_bound, status=bs.Status.FEASIBLE
    )
    assert with_earlier_bound(loose, cov, [first], completed(Bare())) is loose
    told = with_earlier_bound(loose, cov, [first], completed(Telling()))
    assert told.upper_bound == first.upper_bound


#: What a certificate calls schemes: whatever is not the default of a parameter.
NAMED = {
    "Orthogonalised": bs.Orthogonalised(penalty=100),
    "Orthogonalised(penalty=1)": bs.Orthogonalised(penalty=np.float32(1)),
    "ResidualDeflation": bs.ResidualDeflation(),
    "ResidualDeflation(disjoint=True)": bs.ResidualDeflation(disjoint=True),
    "ResidualDeflation(prediction=2.5, above_lasso=True)": as_scheme("predictive"),
    "ResidualDeflation(unless_dominated=0)": bs.ResidualDeflation(unless_dominated=0),
    "UncorrelatedScores": bs.UncorrelatedScores(),
    "Bare": Bare(),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_certificate_names_what_is_not_default(name):
    assert scheme_name(NAMED[name]) == scheme_name(completed(NAMED[name])) == name
    assert scheme_name(NAMED[name], swept=True) == f"{name}, given the others"


@pytest.mark.parametrize("kind", [type(as_scheme(name)) for name in SCHEMES])
def test_every_parameter_is_named(kind):
    """One that is not could be rebuilt with another value."""
    assert all(isinstance(f.default, (int, float, type(None))) for f in fields(kind))


def test_certificates_without_the_penalty_are_still_of_their_scheme():
    scheme = bs.Orthogonalised(penalty=1.0)
    found = bs.solve_components(A, 3, 2, scheme=scheme)
    assert all(check.complete for check in found.verify(A))
    first, second = found.results
    older = replace(found, results=(first, restated(second, scheme="Orthogonalised")))
    assert all(check.complete for check in older.verify(A))
    other = restated(second, scheme="Orthogonalised(penalty=2)")
    with pytest.raises(bs.VerificationError, match="another place or scheme"):
        replace(found, results=(first, other)).verify(A)


class OrthogonalOfAUser(Bare):
    """Orthogonal components of a user, who says so."""

    adds_variances = orthogonal = True
    check, problem, solve = (
        lambda self, *given, name=name: getattr(bs.Orthogonalised(), name)(*given)
        for name in ("check", "problem", "solve")
    )


def test_orthogonal_components_of_a_user_are_checked_and_bounded_as_such():
    ours = bs.solve_components(A, 3, 2, scheme="orthogonal")
    found = bs.solve_components(A, 3, 2, scheme=OrthogonalOfAUser())
    assert found.joint_upper_bound == ours.joint_upper_bound
    assert "orthogonal" in found.verify(A)[-1].checks[-2]


@pytest.mark.parametrize("name", SCHEMES)
def test_our_own_schemes_say_everything_themselves(name):
    scheme = as_scheme(name)
    assert isinstance(scheme, BaseScheme)
    assert completed(scheme) is scheme
