"""From which value on `verify` accepts a claim, number by number.

eps and the error of entries are large here, so that what is set aside for each of them
shows in the value.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

import blockspca as bs
from blockspca.bound_names import BoundName
from blockspca.certificate import StepClaim
from blockspca.certify import claims, searched_claims
from blockspca.certify.claims import BoundChecks
from blockspca.certify.verify import _Checker
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.status import OPTIMAL_GAP
from forging import forged
from golden import Groups, Numbers, assert_as_written, data, listed, matrices

_MODULES = ("certify.claims", "certify.searched_claims", "certify.verify")
LARGE_EPS = 2e-5
ERROR = 3e-4
HALVINGS = 34


@contextmanager
def believed(eps: float, error: float) -> Iterator[None]:
    """Let `verify` believe in this eps, and in this error of entries."""
    with ExitStack() as stack:
        for name in _MODULES:
            module = importlib.import_module(f"blockspca.{name}")
            stack.enter_context(patch.object(module, "EPS", eps))
        known_to = PropertyMock(return_value=error)
        stack.enter_context(patch.object(Covariance, "entry_error", known_to))
        yield


def large(numbers: Callable[[], Numbers]) -> Callable[[], Numbers]:
    def inside() -> Numbers:
        with believed(LARGE_EPS, ERROR):
            return numbers()

    return inside


def given() -> Iterator[tuple[str, Covariance]]:
    for name, A in matrices():
        yield name, Covariance.from_matrix(A)
    for X in data():
        yield f"data {len(X)}", Covariance.from_data(X)


def checks(cov: Covariance, k: int) -> BoundChecks:
    made = BoundChecks(cov, k, tuple(range(k)), 10_000, Deadline(600.0))
    top = float(np.linalg.eigvalsh(cov.submatrix(slice(None)))[-1])
    for q in range(1, k):
        made.upper[q] = top * (0.7 + 0.3 * q / k)
    return made


def accepts(check: Callable[[], object]) -> bool:
    try:
        check()
    except bs.VerificationError:
        return False
    return True


def least(is_accepted: Callable[[float], bool], high: float = 100.0) -> float:
    """The smallest value that is accepted, up to the last halving."""
    low = -10.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_accepted(middle) else (middle, high)
    return high


def confirmed_from(made: BoundChecks, bound: str) -> float:
    def confirmed(value: float) -> bool:
        made.unchecked.clear()
        claim = StepClaim(made.k, value, bound)
        return accepts(lambda: made.check(claim)) and not made.unchecked

    return least(confirmed)


@patch.object(claims, "largest_eigenvalue_bound", lambda cov: 3.0)
@patch.object(claims, "best_threshold_bound", lambda matrix, k: (2.0 + k, 0.1))
def forms() -> Numbers:
    """Bounds in closed form, and what is added to those of LAPACK."""
    found: Numbers = {}
    for name, cov in given():
        for bound in (
            BoundName.VARIANCES,
            BoundName.ROW_SUMS,
            BoundName.NESTED,
            BoundName.SMALLER_K,
            BoundName.LARGEST_EIGENVALUE,
            BoundName.SOFT_THRESHOLD,
        ):
            for k in (1, 2, 4):
                if k == 1 and bound in (BoundName.NESTED, BoundName.SMALLER_K):
                    continue
                found[f"{name} {bound} {k}"] = confirmed_from(checks(cov, k), bound)
    # one bound of a smaller k at a time
    for name, cov in given():
        for m in (1, 2, 3):
            made = checks(cov, 4)
            made.upper[np.arange(5) != m] = np.inf
            found[f"{name} from {m}"] = confirmed_from(made, BoundName.SMALLER_K)
    return found


def directions() -> Numbers:
    """What the direction dual is asked for, and what is made of its answer."""
    found: Numbers = {}
    cov = Covariance.from_data(data()[0])
    asked: list[Any] = []

    def dual(*_: object, target: float, time_limit: float, **__: object) -> Any:
        asked.append([float(target), round(time_limit)])
        return SimpleNamespace(value=2.0, interrupted=False, cut_short=cut_short)

    for cut_short in (False, True):
        for seconds in (None, 7.0, 600.0):
            for value in (1.9, 2.0, 2.0 + 2 * ERROR, 2.0 + 4 * ERROR):
                made = BoundChecks(cov, 3, (0, 1, 2), 10_000, Deadline(seconds))
                claim = StepClaim(3, value, BoundName.DIRECTION_DUAL)
                with patch.object(claims, "dual_bound", dual):
                    said = accepts(lambda: made.check(claim))  # noqa: B023
                found[f"{cut_short} {seconds} {value}"] = [
                    said,
                    asked[-1],
                    [line.split(" s,")[0] for line in made.unchecked],
                ]
    return found


def searched() -> Numbers:
    """Screening and its refusals, and the largest variance."""
    found: Numbers = {}
    for name, cov in given():
        d = cov.n_features
        everything = tuple(range(d))

        def claim(k: int, value: float, survivors: tuple[int, ...], used: float) -> Any:
            return StepClaim(k, value, BoundName.SCREENING, value, used, survivors)

        def confirmed(value: float) -> bool:
            made = checks(cov, 1)  # noqa: B023
            said = accepts(lambda: made.check(claim(1, value, everything, 0.0)))  # noqa: B023
            return said and not made.unchecked

        found[f"{name} 1"] = least(confirmed)
        for k in (2, 3):
            used = float(checks(cov, k).upper[k - 1])
            for share in (1 - 1e-8, 1 - 5e-10, 1.0, 1.001):
                made = checks(cov, k)
                again = claim(k, 1.01 * used, everything, share * used)
                said = accepts(lambda: made.check(again))  # noqa: B023
                found[f"{name} {k} {share}"] = [said, made.unchecked]
                # between what was used and what is proved, nothing is said
                between = claim(k, (1 + share) / 2 * used, everything, share * used)
                said = accepts(lambda: checks(cov, k).check(between))  # noqa: B023
                found[f"{name} {k} {share} between"] = said
            # the τ from which on a feature may be left out, and from which it is
            for lost in range(0, d, 2):
                rest = tuple(np.delete(np.arange(d), lost).tolist())

                def kept(tau: float, k: int = k, rest: tuple[int, ...] = rest) -> bool:
                    made = checks(cov, k)  # noqa: B023
                    survivors = np.array(rest)
                    left = np.arange(cov.n_features)  # noqa: B023
                    previous = float(made.upper[k - 1])
                    return accepts(
                        lambda: made._refuse_missing(k, tau, previous, left, survivors)
                    )

                found[f"{name} {k} without {lost}"] = least(kept)

                def stays(tau: float, k: int = k, lost: int = lost) -> bool:
                    made = checks(cov, k)  # noqa: B023
                    norms = made._top_norms(k - 1)
                    previous = float(made.upper[k - 1])
                    stay = made._may_stay(norms, made.diagonal, tau, previous)
                    return not stay[lost]

                found[f"{name} {k} drops {lost}"] = least(stays)
            made = checks(cov, k)
            for factor in (1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0):
                for survivors in (np.arange(1, d), np.arange(d), np.arange(0, d, 2)):
                    try:
                        left = made._screened(k, factor * used, used, survivors)
                        said = listed(left)
                    except bs.VerificationError:
                        said = [-1]
                    found[f"{name} {k} {factor} {len(survivors)}"] = said
            for some in (np.arange(d), np.arange(1, d, 2)):
                for step in (10**6, 3):
                    with patch(
                        "blockspca.certify.searched_claims.ENTRIES_AT_ONCE", step
                    ):
                        norms = made._norms_within(some, k - 1)
                    found[f"{name} {k} norms {len(some)} {step}"] = norms.tolist()
    return found


def handed_on() -> Numbers:
    """What the search of the features that are left is asked."""
    found: Numbers = {}
    asked: list[Any] = []

    def search(A: np.ndarray, k: int, tau: float, upper: np.ndarray, *_: object) -> int:
        asked.append([A.tolist(), k, float(tau), upper.tolist()])
        return 1

    for name, cov in given():
        made = checks(cov, 3)
        value = 1.1 * float(made.upper[2])
        claim = StepClaim(3, value, BoundName.PROOF_TREE, value, value)
        asked.clear()
        with patch.object(searched_claims, "prove_none_above", search):
            said = made._tree(claim, np.arange(cov.n_features))
        found[name] = [said, *asked]
    return found


def concluded() -> Numbers:
    """How far a bound, a tolerance and a gap may be from what they should be."""
    found: Numbers = {}
    A = dict(matrices())["flat"]
    certificate = bs.solve_path(A, 3)[3].certificate
    cov = Covariance.from_matrix(A)
    objective = certificate.objective

    def checker(**changes: Any) -> _Checker:
        changed = replace(certificate, status=bs.Status.FEASIBLE, **changes)
        return _Checker(cov, changed, 10_000, Deadline(600.0))

    found["rounding"] = [checker().objective, checker().rounding]

    def step(value: float) -> bool:
        with patch.object(BoundChecks, "check", lambda *_: "as claimed"):
            return accepts(lambda: checker().step(StepClaim(3, value, "variances")))

    found["step"] = least(step)

    class Parts:
        unchecked: tuple[str, ...] = ()
        checks: tuple[str, ...] = ()

        def __init__(self, value: float) -> None:
            self.value = value

        def component(self) -> None:
            """Nothing to check."""

        def bound(self) -> float:
            return self.value

    def parts(value: float, upper: float) -> bool:
        whole = checker(upper_bound=upper)
        with patch("blockspca.certify.verify.PartChecks", lambda *_: Parts(value)):
            return accepts(whole.parts)

    found["parts"] = [
        least(lambda value: parts(value, -100.0)),
        least(lambda value: parts(-100.0, value)),
    ]

    def tolerance(value: float) -> bool:
        made = checker(tolerance=-OPTIMAL_GAP * value, upper_bound=2 * objective)
        made.bounds.upper[-1] = objective
        return accepts(made.conclusion)

    found["tolerance"] = least(tolerance)

    def gap(value: float, status: bs.Status = bs.Status.GAP_LIMIT) -> bool:
        changes = {"gap": value, "upper_bound": 1.02 * objective}
        made = checker(**changes)
        made.bounds.upper[-1] = objective
        object.__setattr__(made.certificate, "status", status)
        return accepts(made.conclusion)

    found["gap"] = least(gap)
    below = checker(gap=0.0, upper_bound=(1 - 1e-6) * objective)
    below.bounds.upper[-1] = (1 - 1e-6) * objective
    object.__setattr__(below.certificate, "status", bs.Status.GAP_LIMIT)
    found["below"] = accepts(below.conclusion)
    return found


def outside() -> Numbers:
    """A vector with more nonzeros than k is refused, as long as its support is."""
    result = bs.solve_path(dict(matrices())["flat"], 3)[3]
    cov = Covariance.from_matrix(dict(matrices())["flat"])
    few = np.diag([3.0, 1.0, 1.0, 1.0])
    said = {
        str(k): accepts(lambda: bs.verify(forged(result, k=k), cov))  # noqa: B023
        for k in (2, 3, 4)
    }
    return said | {"fewer": accepts(lambda: bs.verify(bs.solve(few, 2), few))}


GROUPS: Groups = {
    "forms": large(forms),
    "directions": large(directions),
    "searched": large(searched),
    "handed on": large(handed_on),
    "concluded": large(concluded),
    "outside": outside,
}


def test_forms() -> None:
    assert_as_written(__file__, GROUPS, "forms")


def test_directions() -> None:
    assert_as_written(__file__, GROUPS, "directions")


def test_searched() -> None:
    assert_as_written(__file__, GROUPS, "searched")


def test_what_is_handed_on() -> None:
    assert_as_written(__file__, GROUPS, "handed on")


def test_conclusions() -> None:
    assert_as_written(__file__, GROUPS, "concluded")


def test_too_many_nonzeros() -> None:
    assert_as_written(__file__, GROUPS, "outside")
