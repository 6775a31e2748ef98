"""Parts of the direction dual, number by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

import zoo
from blockspca.bounds.best import Effort, NamedBound, best_bound, is_sound
from blockspca.bounds.closed_form import largest_eigenvalue_bound
from blockspca.bounds.direction_dual import ascent as ascent_module
from blockspca.bounds.direction_dual import fixing, problem
from blockspca.bounds.direction_dual.ascent import Ascent
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
from blockspca.bounds.direction_dual.settings import DEFAULT
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import psd_shift
from dual_problems import root_of
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
                    made = make_problem(cov, k, start, short)
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
    for scale in (1e-100, 1e100):
        A = dict(matrices())["flat"] * scale
        made = make_problem(Covariance.from_matrix(A), 3, None)
        assert made is not None
        found[f"scale {scale}"] = [made.unit / scale, made.slack, made.multiplier]
    zero = make_problem(Covariance.from_matrix(np.zeros((4, 4))), 2, None)
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


def fixed_from() -> Numbers:
    """The t from which on each test holds, column by column."""
    found: Numbers = {}
    rng = np.random.default_rng(23)
    C = rng.standard_normal((5, 6)) * np.linspace(1.5, 0.4, 6)
    columns = DenseColumns(C)
    top = np.linalg.svd(C)[0][:, 0]
    for weight, multiplier in ((0.8, 0.05), (0.95, 0.5)):
        made = relax(columns, concentrated(top, weight), multiplier)
        assert made is not None
        tests = ReducedCostFixing(columns, made, made.total, 1e-3, top)

        def least(holds: Any, low: float, high: float) -> float:
            for _ in range(36):
                middle = (low + high) / 2
                low, high = (low, middle) if holds(middle) else (middle, high)
            return high

        height = tests.ceiling
        for i in range(columns.shape[1]):
            found[f"{weight} {i}"] = [
                least(lambda t: tests.rules_out(columns, t)[i], height, 9 * height),  # noqa: B023
                least(lambda t: tests.can_fix_out(t)[i], height, 9 * height),  # noqa: B023
                least(lambda t: tests.can_fix_in(t)[i], 0.0, tests.height),  # noqa: B023
            ]
    return found


def with_wide_margin() -> Numbers:
    with patch.object(fixing, "_MARGIN", 1e-3):
        return enlarged(fixed_from)()


def ascents() -> Numbers:
    """The least ρ of an ascent: no less than a projection that has no term."""
    found: Numbers = {}
    for name, cov in given().items():
        made = make_problem(cov, 3, None, True)
        assert made is not None
        root = root_of(made)
        for share in (0.1, 0.8, 1.2, 3.0):
            node = replace(root, multiplier=share * made.multiplier)
            ascent = Ascent(made, node)
            found[f"{name} {share}"] = [
                len(ascent.active),
                listed(ascent.active),
                float(ascent.min_multiplier),
            ]
        with_slack = replace(made, slack=5.0, shift=2.0)
        found[f"{name} to columns"] = with_slack.to_columns(1.0)
    return found


def reduced() -> Numbers:
    """What an ascent proves with, and the projections that it leaves to its node."""
    found: Numbers = {}
    asked: list[float] = []

    def is_below(M: np.ndarray, top: float) -> bool:
        asked.append(float(top))
        return False

    for name, cov in given().items():
        made = make_problem(cov, 3, None, True)
        assert made is not None
        node = root_of(made)
        ascent = Ascent(made, node)
        node = node.ascended(ascent.run(5, -np.inf, Deadline(None)))
        with patch.object(ascent_module, "is_below", is_below):
            ascent._proves(7.0)
        ascent.coordinates = replace(ascent.coordinates, error=0.1, column_error=0.05)
        ascent.stopped_to_reduce = True
        half = node.projection_bound > np.median(node.projection_bound)
        projected = np.where(half, 100.0, node.projection_bound)
        node = replace(node, projection_bound=projected)
        fixed = ascent.fix_variables(0.5 * ascent.proved())
        count = None
        if fixed is not None:
            count, node = fixed.count(ascent.active), node.fixed(fixed)
        found[name] = [asked[-1], count, floats(node.projection_bound)]
    return found


def sparse_or_not() -> Numbers:
    """Whether sparse data stay as they are: few rows, small means, small indices."""
    found: Numbers = {}
    rng = np.random.default_rng(24)
    for rows in (5, 12):
        for mean in (0.0, 1e2, 1e9):  # of the first column, which has no zeros
            X = np.where(rng.random((rows, 40)) < 0.2, rng.random((rows, 40)), 0.0)
            X[:, 0] = mean + rng.random(rows)
            cov = Covariance.from_data(sparse.csr_array(X))
            for largest, most in ((10**9, 10**6), (3, 10**6), (10**9, 4)):
                with patch.multiple(problem, _LARGEST_INDEX=largest, _MOST_ROWS=most):
                    said = [
                        problem._stays_sparse(cov, np.arange(m)) for m in (3, 9, 40)
                    ]
                found[f"{rows} {mean} {largest} {most}"] = said
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
    # within a space, where few directions are told apart
    within = Density(Q, np.array([0.5, 0.2, 0.1]), 0.2 / 4, 3)
    for most in (1, 2, 9):
        large = replace(DEFAULT, dense_order=3, max_directions=most)
        for size in (0.01, 5.0):
            made, _ = within.step(B, size, 1e-3, [], [], float(np.trace(B)), large)
            found[f"within {most} {size}"] = [floats(made.weights), made.rest]
    for count in (1, 2):
        onto = start.onto(sectors[:count], 0.01, DEFAULT)
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
    "fixed from": with_wide_margin,
    "ascents": ascents,
    "ascents, large eps": enlarged(ascents),
    "reduced": enlarged(reduced),
    "sparse": sparse_or_not,
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


def test_from_where_features_are_fixed() -> None:
    assert_as_written(__file__, GROUPS, "fixed from")


def test_ascents() -> None:
    assert_as_written(__file__, GROUPS, "ascents")


def test_ascents_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "ascents, large eps")


def test_what_an_ascent_leaves() -> None:
    assert_as_written(__file__, GROUPS, "reduced")


def test_what_stays_sparse() -> None:
    assert_as_written(__file__, GROUPS, "sparse")


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
    made = make_problem(Covariance.from_matrix(A), 3, None)
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
