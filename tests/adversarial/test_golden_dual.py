"""Parts of the direction dual, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

import zoo
from blockspca.bounds.best import Effort, NamedBound, best_bound, is_sound
from blockspca.bounds.closed_form import largest_eigenvalue_bound
from blockspca.bounds.direction_dual.columns import DenseColumns
from blockspca.bounds.direction_dual.density import Density, Sector, concentrated
from blockspca.bounds.direction_dual.fixing import ReducedCostFixing
from blockspca.bounds.direction_dual.problem import make_problem
from blockspca.bounds.direction_dual.relaxation import (
    direction_weights,
    own_weights,
    relax,
    rounding_of_sum,
)
from blockspca.covariance.covariance import Covariance
from blockspca.numerics.upper_eigenvalues import psd_shift
from golden import Groups, Numbers, assert_as_written, data, enlarged, listed, matrices


def floats(values: Any) -> list[float]:
    return [float(value) for value in np.ravel(values)]


def given() -> dict[str, Covariance]:
    wide, tall = data()
    chosen = {name: Covariance.from_matrix(A) for name, A in matrices()}
    return {
        "wide": Covariance.from_data(wide),
        "tall": Covariance.from_data(tall),
        "flat": chosen["flat"],
        "indefinite": chosen["indefinite"],
        "groups": chosen["two groups"],
    }


def problems() -> Numbers:
    found: Numbers = {}
    for name, cov in given().items():
        for k in (1, 3, cov.n_features):
            for start in (None, [0, 1, 2]):
                for short in (False, True):
                    made = make_problem(cov, k, start, None, short)
                    key = f"{name} {k} {start} {short}"
                    if made is None:
                        found[key] = None
                        continue
                    found[key] = [
                        made.min_multiplier,
                        made.multiplier,
                        made.unit,
                        made.shift,
                        made.slack,
                        made.to_columns(1.0),
                        made.to_matrix(made.to_columns(1.0)),
                        made.to_columns(-np.inf),
                        listed(made.features),
                        floats(np.abs(made.leading)),
                    ]
        some = make_problem(cov, 9, None, [1, 2, 4, 5], True)
        found[f"{name} some"] = None if some is None else [some.k, some.multiplier]
    for scale in (1e-100, 1e100):
        A = dict(matrices())["flat"] * scale
        made = make_problem(Covariance.from_matrix(A), 3, None, None)
        assert made is not None
        found[f"scale {scale}"] = [made.unit / scale, made.slack, made.multiplier]
    zero = make_problem(Covariance.from_matrix(np.zeros((4, 4))), 2, None, None)
    found["zero"] = zero is None
    return found


def sums() -> Numbers:
    """Relaxations at densities of rank one and two, and what they fix."""
    found: Numbers = {}
    rng = np.random.default_rng(21)
    C = rng.standard_normal((6, 11)) * np.linspace(1.5, 0.4, 11)
    columns = DenseColumns(C)
    Q = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    top = np.linalg.svd(C)[0][:, 0]
    densities = {
        "one": concentrated(top, 0.8),
        "narrow": concentrated(top, 1 - 1e-6),
        "two": Density(Q, np.array([0.6, 0.2]), 0.2 / 4),
        "across": concentrated(Q[:, 0], 0.999),
    }
    for name, density in densities.items():
        before = None
        for multiplier in (0.05, 0.5, 2.0, 100.0):
            for projections in (None, 0.5 * columns.norms):
                made = relax(columns, density, multiplier, None, before, projections)
                assert made is not None
                if projections is None:
                    before = made
                key = f"{name} {multiplier} {projections is None}"
                found[key] = [
                    floats(made.D),
                    floats(made.relaxed_z),
                    floats(made.mu),
                    made.size,
                    floats(np.diagonal(made.total)),
                ]
                if not made.size:
                    continue
                for rounding in (0.0, 0.05):
                    tests = ReducedCostFixing(columns, made, made.total, rounding, top)
                    height = tests.ceiling
                    found[f"{key} {rounding}"] = [
                        height,
                        [
                            [
                                listed(tests.rules_out(columns, t * height)),
                                listed(tests.can_fix_out(t * height)),
                                listed(tests.can_fix_in(t * height)),
                            ]
                            for t in (0.6, 0.9, 0.99, 1.001, 1.1, 1.5, 3.0)
                        ],
                        [
                            floats(tests.projection_bound(columns, t * height))
                            for t in (0.2, 0.7, 0.97, 0.999999, 1.0, 1.2)
                        ],
                    ]
    return found


def steps() -> Numbers:
    """Mirror steps, with sectors and without, within all of the space."""
    found: Numbers = {}
    rng = np.random.default_rng(22)
    B = zoo.indefinite(7, rng)
    Q = np.linalg.qr(rng.standard_normal((7, 3)))[0]
    start = Density(Q, np.array([0.5, 0.2, 0.1]), 0.2 / 4)
    sectors = [Sector(Q[:, 0], Q[:, 1]), Sector(Q[:, 1] + B[0], Q[:, 2])]
    for size in (0.01, 0.3, 5.0):
        for floor in (1e-3, 0.03, 0.5):
            for count in (0, 1, 2):
                multipliers = [0.3] * count
                made, etas = start.step(B, size, floor, sectors[:count], multipliers)
                found[f"{size} {floor} {count}"] = [
                    floats(made.weights),
                    made.rest,
                    floats(etas),
                ]
    for count in (1, 2):
        onto = start.onto(sectors[:count], 0.01)
        found[f"onto {count}"] = [floats(onto.weights), onto.rest, onto.order]
    return found


def small() -> Numbers:
    """Formulas by themselves."""
    norms = np.array([0.5, 1.0, 1.5, 4.0])
    uncertain = np.array([0.0, 0.01, 0.2, 0.5])
    told: list[list[float]] = []
    for name, cov in given().items():
        best_bound(
            cov,
            3,
            [0, 1, 2],
            target=-np.inf,
            time_limit=60.0,
            effort=Effort(nodes=3),
            report=lambda value, nodes, left, name=name: told.append(
                [float(value), nodes, left]
            ),
        )
    samples = np.random.default_rng(5).standard_normal((4, 9))
    return {
        "weights": floats(direction_weights(norms, 0.9 * norms, uncertain, 0.8)),
        "own": floats(own_weights(norms, uncertain, 0.8)),
        "own, tiny": floats(own_weights(norms, uncertain, 1e-3)),
        "sum": rounding_of_sum(5, 7, 2.0) * 1e6,
        "shift": [psd_shift(np.ones((5, 5))) * 1e6, psd_shift(-np.ones((3, 3)))],
        "wide": largest_eigenvalue_bound(Covariance.from_data(samples)),
        "told": told[:40],
    }


GROUPS: Groups = {
    "small": small,
    "problems": problems,
    "sums": sums,
    "steps": steps,
    "small, large eps": enlarged(small),
    "problems, large eps": enlarged(problems),
    "sums, large eps": enlarged(sums),
}


def test_small() -> None:
    assert_as_written(__file__, GROUPS, "small")


def test_problems() -> None:
    assert_as_written(__file__, GROUPS, "problems")


def test_sums() -> None:
    assert_as_written(__file__, GROUPS, "sums")


def test_steps() -> None:
    assert_as_written(__file__, GROUPS, "steps")


def test_small_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "small, large eps")


def test_problems_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "problems, large eps")


def test_sums_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "sums, large eps")


def test_a_bound_below_the_objective_is_not_used() -> None:
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert is_sound(NamedBound(1.0, "a"), 1.0, 0.0)
        assert is_sound(NamedBound(0.9, "a"), 1.0, 0.2)
        assert not said
        assert not is_sound(NamedBound(0.9, "a"), 1.0, 0.05)
    assert "is a defect" in str(said[0].message)


def test_what_is_set_aside_at_the_true_eps() -> None:
    """Each allowance is a known multiple of eps, and none is zero."""
    assert rounding_of_sum(5, 7, 2.0) == 2 * 28 * zoo.EPS * 2
    A = dict(matrices())["flat"]
    made = make_problem(Covariance.from_matrix(A), 3, None, None)
    assert made is not None
    assert 10 * zoo.EPS < made.slack < 1e4 * zoo.EPS
    assert 1.0 > made.to_matrix(made.to_columns(1.0)) > 1 - 1e-10
    C = np.random.default_rng(1).standard_normal((5, 6))
    columns = DenseColumns(C)
    relaxed = relax(columns, concentrated(C[:, 0] / np.linalg.norm(C[:, 0]), 0.9), 0.1)
    assert relaxed is not None
    tests = ReducedCostFixing(columns, relaxed, relaxed.total, 0.0, C[:, 0])
    alone = np.linalg.eigvalsh(relaxed.total)[-1]
    assert 0 < tests.ceiling - alone < 1e-10
    # So near to λmax that the rounding of the factor decides: no S, nothing is fixed.
    assert not tests.can_fix_out(float(alone)).any()
