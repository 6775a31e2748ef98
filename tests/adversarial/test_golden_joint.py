"""Bounds by formulas, for several components and under conditions, number by number.

With a large eps, and entries that are known to a large error, a margin that is missing
shows in the values.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import PropertyMock, patch

import numpy as np

from blockspca.bounds.best import Effort, _Run
from blockspca.bounds.closed_form import cheap_bound, eigenvalue_error, row_sum_bound
from blockspca.bounds.entry_dual.pairs import _with_strong_entries
from blockspca.bounds.entry_dual.record import EntryRecord
from blockspca.bounds.smaller_k import bound_from_smaller_k
from blockspca.certify.nonnegative import has_both_signs, nonnegative_loadings
from blockspca.certify.whole_groups import group_norms
from blockspca.components.joint_entries import proved_value
from blockspca.components.joint_split import JointSplit
from blockspca.components.shared_bounds import closed_forms, screening_table
from blockspca.components.smoothed import smoothed_sum
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.upper_eigenvalues import ky_fan_ceiling
from blockspca.proof_settings import DEFAULT_SETTINGS
from golden import Groups, Numbers, assert_as_written, data, listed, matrices

_MODULES = (
    "bounds.best",
    "bounds.closed_form",
    "bounds.entry_dual.check",
    "bounds.entry_dual.pairs",
    "bounds.entry_dual.proof",
    "bounds.smaller_k",
    "certify.nonnegative",
    "certify.whole_groups",
    "components.joint_entries",
    "components.joint_split",
    "components.smoothed",
    "components.variance",
    "numerics.rounding",
    "numerics.upper_eigenvalues",
)
LARGE_EPS = 2e-5
ERROR = 3e-4
HALVINGS = 34


@contextmanager
def believed(eps: float, error: float) -> Iterator[None]:
    """Let the bounds believe in this eps, and in this error of entries."""
    with ExitStack() as stack:
        for name in _MODULES:
            module = importlib.import_module(f"blockspca.{name}")
            if hasattr(module, "EPS"):
                stack.enter_context(patch.object(module, "EPS", eps))
        known_to = PropertyMock(return_value=error)
        stack.enter_context(patch.object(Covariance, "entry_error", known_to))
        yield


def large(
    numbers: Callable[[], Numbers], error: float = ERROR
) -> Callable[[], Numbers]:
    def inside() -> Numbers:
        with believed(LARGE_EPS, error):
            return numbers()

    return inside


def given() -> Iterator[tuple[str, Covariance]]:
    for name, A in matrices():
        yield name, Covariance.from_matrix(A)
    for X in data():
        yield f"data {len(X)}", Covariance.from_data(X)


def each() -> Numbers:
    """Every bound by itself, errors of entries included."""
    found: Numbers = {}
    for name, cov in given():
        said: list[float] = []
        run = _Run(
            cov,
            3,
            [0, 1, 2],
            -np.inf,
            Deadline(600.0),
            None,
            Effort(nodes=1),
            DEFAULT_SETTINGS,
            lambda value, nodes, free, said=said: said.append(value),
        )
        # λmax also where it is no better than what is known
        with patch.object(_Run, "_reached_by_all", lambda self: -np.inf):
            for bound in (
                run.by_variances,
                run.by_directions,
                run.by_eigenvalue,
                run.by_thresholds,
            ):
                bound()
        run.notify(0.5, 1, 2)
        found[name] = [[[b.name, float(b.value)] for b in run.known], said[-1]]
    return found


def joint() -> Numbers:
    """Of a fixed point of the dual, whole and after directions are split off."""
    found: Numbers = {}
    for name, cov in given():
        d = cov.n_features
        A = cov.submatrix(slice(None))
        weights = np.sqrt(np.linspace(0.1, 0.4, d))
        product = weights[:, None] * weights
        shares = np.clip(A / product, -1.0, 1.0)
        np.fill_diagonal(shares, 0.0)
        everything = np.arange(d, dtype=np.intp)
        record = EntryRecord.of(weights, 1.0, everything, shares)
        B = np.round(4 * np.linspace(-1, 1, 2 * d)).reshape(d, 2) / 8
        split = JointSplit(np.inf, 3, 2, B, record)
        found[name] = [
            [proved_value(cov, 3, m, record) for m in (1, 2, 3)],
            split.proved(cov),
        ]
    values = np.array([-1.0, 0.2, 0.3, 0.31, 2.0])
    for m in (1, 3):
        for mu in (1e-3, 0.5):
            total, weights = smoothed_sum(values, m, mu)
            found[f"sum {m} {mu}"] = [total, [float(w) for w in weights]]
    return found


def shared() -> Numbers:
    found: Numbers = {}
    for name, cov in given():
        for k, r in ((2, 2), (4, 2), (5, 3)):
            table = screening_table(cov, k, r)
            forms = closed_forms(cov, k, r, Deadline(None))
            found[f"{name} {k} {r}"] = [
                [float(value) for value in table.ravel()],
                [[which, float(value)] for which, value in sorted(forms.items())],
            ]
    return found


def units() -> Numbers:
    """Entries whose squares vanish or overflow, on and beside the diagonal."""
    found: Numbers = {}
    A = dict(matrices())["indefinite"]
    for on, beside in ((1e-170, 1e-170), (1e170, 1.0), (1e-170, 1.0), (1.0, 1e170)):
        scaled = beside * A
        np.fill_diagonal(scaled, on * np.diagonal(A))
        table = screening_table(Covariance.from_matrix(scaled), 3, 2)
        size = max(on, beside)
        found[f"{on} {beside}"] = [
            [float(value) / size for value in table.ravel()],
            [float(value) for value in nonnegative_loadings(scaled)],
        ]
    return found


def tipped(c: float) -> Covariance:
    """A matrix whose leading eigenvector has a loading of about −c."""
    A = np.diag([2.0, 1.0, 0.5])
    A[0, 1] = A[1, 0] = -c
    A[0, 2] = A[2, 0] = 0.3
    return Covariance.from_matrix(A)


def signs() -> Numbers:
    """The least c for which both signs are sure, and loadings that are not negative."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if has_both_signs(tipped(middle), np.arange(3)):
            high = middle
        else:
            low = middle
    found: Numbers = {"both": high}
    near = Covariance.from_matrix(np.diag([1.0, 1.0 - 1e-9, 0.3]))
    found["no gap"] = has_both_signs(near, np.arange(3))
    found["one"] = has_both_signs(near, np.arange(1))
    for name, A in matrices():
        x = nonnegative_loadings(A)
        found[name] = [listed(np.flatnonzero(x)), [float(value) for value in x]]
    return found


def formulas() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        found[name] = [
            [
                [cheap_bound(A, k, Deadline(None)), row_sum_bound(A, k)]
                for k in (1, 2, len(A))
            ],
            eigenvalue_error(len(A), float(np.abs(A).max())) * 1e9,
        ]
    upper = [0.0, 1.0, 1.9, np.inf, 3.5, np.inf]
    for k in (2, 3, 4, 6):
        for lowest in (-2.0, 0.5):
            found[f"{k} {lowest}"] = [
                bound_from_smaller_k(k, upper, lowest, is_psd=is_psd)
                for is_psd in (True, False)
            ]
    return found


def strong() -> Numbers:
    """The largest level, of all features but the first, at which each is looked at."""
    found: Numbers = {}
    for X in data():
        cov = Covariance.from_data(X)
        d = cov.n_features
        reached = []
        for i in range(1, d):
            low, high = 0.0, 1e3
            for _ in range(HALVINGS + 10):
                levels = np.full(d, (low + high) / 2)
                levels[0] = 2.0
                if i in _with_strong_entries(cov, levels):
                    low = levels[i]
                else:
                    high = levels[i]
            reached.append(float(low))
        found[f"data {len(X)}"] = reached
    return found


def groups() -> Numbers:
    found: Numbers = {}
    for name, cov in given():
        parts = np.split(np.arange(cov.n_features), [1, 2, 5])
        for margins in (1.0, 2.0):
            norms = group_norms(cov, parts, margins)
            found[f"{name} {margins}"] = [float(value) for value in norms.ravel()]
    return found


def ky_fan() -> Numbers:
    """Ceilings of the sum of the r largest eigenvalues, all of them included."""
    return {
        name: [ky_fan_ceiling(A, r) for r in (1, 2, 3, len(A) - 1, len(A))]
        for name, A in matrices()
    }


GROUPS: Groups = {
    "ky fan": ky_fan,
    "ky fan, large eps": large(ky_fan),
    "formulas": formulas,
    "each": each,
    "joint": joint,
    "shared": shared,
    "units": units,
    "signs": signs,
    "groups": groups,
    "strong": strong,
    "formulas, large eps": large(formulas),
    "each, large eps": large(each),
    "joint, large eps": large(joint),
    "joint, large error": large(joint, 5.0),
    "shared, large eps": large(shared),
    "signs, large eps": large(signs),
    "groups, large eps": large(groups),
    "strong, large eps": large(strong),
}


def test_ky_fan() -> None:
    assert_as_written(__file__, GROUPS, "ky fan")


def test_ky_fan_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "ky fan, large eps")


def test_formulas() -> None:
    assert_as_written(__file__, GROUPS, "formulas")


def test_formulas_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "formulas, large eps")


def test_each() -> None:
    assert_as_written(__file__, GROUPS, "each")


def test_each_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "each, large eps")


def test_joint() -> None:
    assert_as_written(__file__, GROUPS, "joint")


def test_joint_with_a_large_error() -> None:
    assert_as_written(__file__, GROUPS, "joint, large error")


def test_shared() -> None:
    assert_as_written(__file__, GROUPS, "shared")


def test_units() -> None:
    assert_as_written(__file__, GROUPS, "units")


def test_signs() -> None:
    assert_as_written(__file__, GROUPS, "signs")


def test_groups() -> None:
    assert_as_written(__file__, GROUPS, "groups")


def test_joint_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "joint, large eps")


def test_shared_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "shared, large eps")


def test_signs_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "signs, large eps")


def test_groups_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "groups, large eps")


def test_strong() -> None:
    assert_as_written(__file__, GROUPS, "strong")


def test_strong_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "strong, large eps")
