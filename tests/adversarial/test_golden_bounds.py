"""Bounds, number by number: formulas, eigenvalues from above, the direction dual."""

from __future__ import annotations

import numpy as np

import zoo
from blockspca.bounds.best import Effort, best_bound
from blockspca.bounds.closed_form import (
    best_threshold_bound,
    largest_eigenvalue_bound,
    threshold_bound,
    trace_bound,
)
from blockspca.bounds.direction_dual.search import dual_bound
from blockspca.bounds.entry_dual.check import checked_value
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import eigenvalue_ceiling, is_below, psd_shift
from blockspca.search.schur_tree import rounding_allowance
from dual_problems import direction_bound
from golden import Groups, Numbers, assert_as_written, data, enlarged, listed, matrices


def formulas() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        top = float(np.linalg.eigvalsh(A)[-1])
        found[f"{name} λ"] = [
            eigenvalue_ceiling(A),
            eigenvalue_ceiling(A, 1.01 * top),
            eigenvalue_ceiling(A, 0.99 * top),
            eigenvalue_ceiling(A * 1e-200, np.inf),
            largest_eigenvalue_bound(A),
            [is_below(A, factor * top) for factor in (0.99, 1 + 1e-12, 1.01, np.inf)],
            psd_shift(A),
            psd_shift(A @ A),
        ]
        for k in (1, 2, 3, 5):
            found[f"{name} {k}"] = [
                trace_bound(np.diagonal(A), k),
                threshold_bound(A, k, 0.15, Deadline(None)),
                *best_threshold_bound(A, k),
            ]
    wide, tall = data()
    for X in (wide, tall):
        found[f"data {len(X)}"] = largest_eigenvalue_bound(Covariance.from_data(X))
        for multiplier in (0.3, 1.0, 4.0):
            C = X / np.sqrt(len(X))
            near = C + 0.3 * np.roll(C, 1, axis=1)
            found[f"direction {len(X)} {multiplier}"] = [
                direction_bound(C, 3, multiplier),
                direction_bound(C, 3, multiplier, near),
                direction_bound(C, 3, multiplier, np.ones_like(C)),
            ]
    found["allowance"] = [
        rounding_allowance(k, tau, lowest, strongest) / zoo.EPS
        for k in (1, 2, 10)
        for tau, lowest, strongest in ((1.0, 0.5, 9.0), (-2.0, -1e9, 0.25))
    ]
    return found


def duals() -> Numbers:
    found: Numbers = {}
    wide, tall = data()
    given = {
        "wide": Covariance.from_data(wide),
        "tall": Covariance.from_data(tall),
        "flat": Covariance.from_matrix(dict(matrices())["flat"]),
        "groups": Covariance.from_matrix(dict(matrices())["two groups"]),
    }
    for name, cov in given.items():
        A = np.ascontiguousarray(cov.submatrix(slice(None)))
        known = zoo.Reference((A + A.T) / 2)
        for k in (2, 4):
            for nodes in (1, 7):
                for above in (1e-6, -0.05):
                    target = known.reached[k] * (1 + above)
                    said = dual_bound(
                        cov, k, target=target, iterations=6, nodes=nodes, time_limit=60
                    )
                    found[f"{name} {k} {nodes} {above}"] = [
                        said.value,
                        said.iterations,
                        said.nodes,
                        listed(said.better),
                    ]
            for share in (1.0, 1.3):
                best = best_bound(
                    cov,
                    k,
                    known.best[k],
                    target=share * known.reached[k],
                    time_limit=60.0,
                    effort=Effort(nodes=3),
                )
                found[f"{name} {k} best {share}"] = [best.value, best.name, best.nodes]
    return found


def entry_records() -> Numbers:
    """What points of the entry dual prove, with cores of any size, good or not."""
    found: Numbers = {}
    given = {name: Covariance.from_matrix(A) for name, A in matrices()}
    given["wide"] = Covariance.from_data(data()[0])
    for number, (name, cov) in enumerate(given.items()):
        A, d = cov.submatrix(slice(None)), cov.n_features
        off = np.abs(A - np.diag(np.diagonal(A)))
        rng = np.random.default_rng(number)
        for size in (0, 3, d):
            core = np.sort(rng.permutation(d)[:size])
            shares = np.sign(A[np.ix_(core, core)]) * rng.random((size, size))
            for share in (0.2, 1.0):
                weights = np.sqrt(share * off.max() * rng.uniform(0.2, 1.0, d))
                record = EntryRecord.of(weights, 1.0, core, shares)
                for k in (2, 5):
                    value = checked_value(cov, k, record)
                    found[f"{name} {size} {share} {k}"] = value
    return found


GROUPS: Groups = {
    "entry records": entry_records,
    "entry records, large eps": enlarged(entry_records),
    "formulas": formulas,
    "duals": duals,
    "formulas, large eps": enlarged(formulas),
    "duals, large eps": enlarged(duals),
}


def test_entry_records() -> None:
    assert_as_written(__file__, GROUPS, "entry records")


def test_entry_records_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "entry records, large eps")


def test_formulas() -> None:
    assert_as_written(__file__, GROUPS, "formulas")


def test_formulas_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "formulas, large eps")


def test_duals() -> None:
    assert_as_written(__file__, GROUPS, "duals")


def test_duals_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "duals, large eps")
