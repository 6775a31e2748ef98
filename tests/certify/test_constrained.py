"""Constrained components against every allowed set, and their certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs
import constrained_zoo as cz
import zoo
from blockspca.certificate import PartClaim
from blockspca.constraints import checked
from forging import forged


@pytest.mark.parametrize("seed", range(80))
def test_against_every_allowed_set(seed: int) -> None:
    drawn = cz.drawn(seed)
    result = bs.solve(drawn.problem.cov, drawn.k, constraints=drawn.constraints)
    assert cz.faults(drawn, result) == []
    again = bs.Certificate.from_json(result.certificate.to_json())
    assert again == result.certificate
    check = bs.verify(result, drawn.problem.cov)
    if check.complete:
        assert check.upper_bound <= result.upper_bound


def test_faults_are_noticed() -> None:
    """What judges would be worth nothing if it found nothing."""
    A = np.cov(np.random.default_rng(0).normal(size=(20, 6)).T)
    given = bs.Constraints(exclude=[0])
    rules = checked(given, 6, None, 3)
    drawn = cz.Drawn(zoo.from_matrix(A), 3, given, rules, ("exclude",))
    result = bs.solve(drawn.problem.cov, drawn.k, constraints=drawn.constraints)
    worse = forged(
        result,
        upper_bound=result.objective - abs(result.objective),
        status=bs.Status.FEASIBLE,
    )
    assert any("below" in said for said in cz.faults(drawn, worse))
    other = forged(result, x=-2 * result.x)
    assert any("unit" in said for said in cz.faults(drawn, other))


def test_most_small_problems_are_proved() -> None:
    statuses = []
    for seed in range(1000, 1030):
        drawn = cz.drawn(seed)
        result = bs.solve(drawn.problem.cov, drawn.k, constraints=drawn.constraints)
        statuses.append(result.status is bs.Status.OPTIMAL)
    assert np.mean(statuses) >= 0.8


@pytest.fixture
def data() -> bs.Covariance:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) + rng.normal(size=(60, 40))
    return bs.Covariance.from_data(X, feature_names=[f"g{i}" for i in range(40)])


def test_include_and_exclude_by_name(data: bs.Covariance) -> None:
    free = bs.solve(data, 6)
    out = free.features[:2]
    constraints = bs.Constraints(include=["g7", "g9"], exclude=out)
    result = bs.solve(data, 6, constraints=constraints)
    assert result.status is bs.Status.OPTIMAL
    assert {7, 9} <= set(result.support.tolist())
    assert not set(result.features) & set(out)
    assert bs.verify(result, data).complete
    assert result.objective < free.objective


def test_constraints_that_cost_nothing(data: bs.Covariance) -> None:
    free = bs.solve(data, 6)
    result = bs.solve(data, 6, constraints=bs.Constraints(include=free.support[:3]))
    assert result.objective == pytest.approx(free.objective, rel=1e-9)
    assert result.support.tolist() == free.support.tolist()


def test_a_start_is_kept_if_it_is_best(data: bs.Covariance) -> None:
    free = bs.solve(data, 6)
    again = bs.solve(data, 6, start=free.support)
    assert again.support.tolist() == free.support.tolist()
    with pytest.raises(ValueError, match="start has 7 features for k = 6"):
        bs.solve(data, 6, start=range(7))


def test_certify_false_finds_and_proves_little(data: bs.Covariance) -> None:
    constraints = bs.Constraints(groups=np.arange(40) // 4, max_per_group=1)
    found = bs.solve(data, 6, constraints=constraints, certify=False)
    proved = bs.solve(data, 6, constraints=constraints)
    assert found.objective >= 0.95 * proved.objective
    assert found.upper_bound >= proved.objective


def test_a_time_limit_leaves_an_allowed_component(data: bs.Covariance) -> None:
    rules = {"include": ["g7"], "groups": np.arange(40) // 4, "max_per_group": 1}
    result = bs.solve(
        data, 6, constraints=bs.Constraints(**rules), limits=bs.Limits(time=0)
    )
    assert 7 in result.support
    assert len(set((result.support // 4).tolist())) == len(result.support)
    assert np.isfinite(result.upper_bound)


# -- certificates that say too much ----------------------------------------------------


def assert_refuted(
    result: bs.Result, cov: bs.Covariance, match: str, **changes
) -> None:
    certificate = replace(result.certificate, **changes)
    with pytest.raises(bs.VerificationError, match=match):
        bs.verify(certificate, cov)


def test_what_a_forged_certificate_says_is_refuted(data: bs.Covariance) -> None:
    constraints = bs.Constraints(include=["g7"], exclude=["g3"])
    result = bs.solve(data, 5, constraints=constraints)
    certificate = result.certificate
    (part,) = certificate.parts
    free = bs.solve(data, 5)
    assert_refuted(
        result,
        data,
        "breaks a constraint",
        constraints=replace(certificate.constraints, exclude=(int(result.support[0]),)),
    )
    assert_refuted(
        result,
        data,
        "no part has the sets",
        parts=(replace(part, exclude=(3, 4)),),
    )
    assert_refuted(
        result,
        data,
        "of a part is below the proved",
        parts=(replace(part, upper_bound=part.upper_bound / 2),),
    )
    assert_refuted(
        result, data, "no problem", parts=(replace(part, level=part.level / 1e9),)
    )
    lowered = replace(part, level=part.level * 0.9, upper_bound=part.upper_bound * 0.9)
    with pytest.raises(bs.VerificationError):
        bs.verify(replace(certificate, parts=(lowered,)), data)
    assert free.objective > result.objective  # the constraint costs something


def test_a_part_cannot_be_called_void(data: bs.Covariance) -> None:
    result = bs.solve(data, 4, constraints=bs.Constraints(nonnegative=True))
    own = tuple(result.support.tolist())
    assert_refuted(
        result,
        data,
        "no part has the sets",
        parts=(
            PartClaim(own, (), 0.0, void=True),
            replace(result.certificate.parts[0], exclude=own[:1]),
        ),
    )


# -- the price, paths ------------------------------------------------------------------


def test_the_price_is_proved_both_ways(data: bs.Covariance) -> None:
    free = bs.solve(data, 6)
    result = bs.solve(data, 6, constraints=bs.Constraints(exclude=free.support[:1]))
    price = result.price
    assert price is not None
    assert price.free_objective == pytest.approx(free.objective, rel=1e-12)
    lost = free.objective - result.objective
    assert price.least <= lost <= price.most
    assert price.most - price.least <= 1e-8 * free.objective
    assert price.share == pytest.approx(lost / free.objective)
    assert "constraints cost" in str(result)


def test_what_costs_nothing_has_the_price_nothing(data: bs.Covariance) -> None:
    free = bs.solve(data, 6)
    result = bs.solve(data, 6, constraints=bs.Constraints(include=free.support))
    assert result.price is not None
    assert result.price.share == 0
    assert result.status is bs.Status.OPTIMAL
    assert bs.verify(result, data).complete


@pytest.mark.parametrize(
    "given",
    [
        {"exclude": ["g3", "g4"]},
        {"groups": np.arange(40) // 4, "max_per_group": 1},
        {"include": ["g3", "g4"]},
        {"nonnegative": True},
        {"overlap_with": ["g1", "g2", "g3"], "min_overlap": 2},
    ],
    ids=lambda given: next(iter(given)),
)
def test_paths_agree_with_single_solves(data: bs.Covariance, given: dict) -> None:
    constraints = bs.Constraints(**given)
    path = bs.solve_path(data, 5, constraints=constraints)
    assert max(path) == 5
    assert min(path) == (2 if "include" in given or "overlap_with" in given else 1)
    for k, result in path.items():
        alone = bs.solve(data, k, constraints=constraints)
        assert result.objective == pytest.approx(alone.objective, rel=1e-9)
        assert result.status is bs.Status.OPTIMAL
        assert bs.verify(result, data).complete


def test_a_component_that_keeps_the_rules_by_itself_is_verified() -> None:
    """Its proof is about A, not about A with entries raised to 0."""
    drawn = cz.drawn(239, 12)
    result = bs.solve(drawn.problem.cov, drawn.k, constraints=drawn.constraints)
    assert not result.certificate.parts[0].limited
    assert bs.verify(result, drawn.problem.cov).complete


def test_features_that_reach_nothing_by_themselves() -> None:
    """A_FF of what is included counts as 0: the level was 1e-308, and divided by."""
    A = np.zeros((6, 6))
    for offset, value in ((1, -2.0), (2, -1.0), (4, -1.0), (5, -2.0)):
        A += np.diag(np.full(6 - offset, value), offset)
    A += A.T
    rules = bs.Constraints(include=[0, 1, 2], nonnegative=True)
    result = bs.solve(A, 5, constraints=rules)
    assert result.objective == 0.0
    assert 0.0 <= result.upper_bound <= 4.0
    bs.verify(result, A)


def test_a_part_says_whether_what_must_be_included_has_a_loading() -> None:
    """Without it a bound of what feature 0 does not load passed for the whole."""
    A = np.array([[3.0, 1.5, 0.0], [1.5, 3.0, 0.0], [0.0, 0.0, 1.0]])
    honest = bs.solve(A, 2, constraints=bs.Constraints(include=[0])).certificate
    assert honest is not None
    inner = bs.solve(A[1:, 1:], 1).certificate
    assert inner is not None
    part = PartClaim((), (), 3.0, None, limited=True, steps=inner.steps)
    forged = replace(
        honest,
        tolerance=0.0,
        support=(0,),
        loadings=(1.0,),
        objective=3.0,
        upper_bound=3.0,
        parts=(part,),
        steps=(replace(honest.steps[0], upper_bound=3.0),),
        status=bs.Status.OPTIMAL,
    )
    again = bs.Certificate.from_json(forged.to_json())
    with pytest.raises(bs.VerificationError, match="must be included"):
        bs.verify(again, A)


def test_a_bound_of_a_part_is_a_number() -> None:
    A = np.array([[3.0, 1.5, 0.0], [1.5, 3.0, 0.0], [0.0, 0.0, 1.0]])
    honest = bs.solve(A, 2, constraints=bs.Constraints(include=[0])).certificate
    assert honest is not None
    parts = tuple(replace(part, upper_bound=float("nan")) for part in honest.parts)
    with pytest.raises(bs.VerificationError, match="not a number"):
        bs.verify(replace(honest, parts=parts), A)


def test_a_level_within_the_errors_of_other_data_is_left_open() -> None:
    """A claim about dense data, checked on sparse chunks with a large mean."""
    dask = pytest.importorskip("dask.array")
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(12, 4)))[0]
    Q = np.linalg.qr(Q - Q.mean(axis=0))[0]
    mixed = np.diag([3.0, 2.0, 1.0, 1.0])
    mixed[1, 2] = 1e-5
    X = Q @ mixed + 30
    dense = bs.Covariance.from_data(X)
    chunks = dask.from_array(X, chunks=(6, 4)).map_blocks(sp.csr_matrix)
    other = bs.Covariance.from_data(chunks)
    rules = bs.Constraints(include=[1], exclude=[0])
    result = bs.solve(dense, 2, constraints=rules)
    assert bs.verify(result, dense).complete
    check = bs.verify(result, other)
    assert not check.complete
    assert "λmax(A_FF)" in check.unchecked[0]
    # One that is below the features it is about, by more than errors, is refused.
    (part,) = result.certificate.parts
    for cov in (dense, other):
        low = replace(part, level=part.level * (1 - 1e-6))
        certificate = replace(result.certificate, parts=(low,))
        with pytest.raises(bs.VerificationError, match="a part has no problem"):
            bs.verify(certificate, cov)
