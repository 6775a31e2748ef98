"""Every public call on drawn problems: is anything that it claims wrong?

`sh run.sh test` draws the same examples each time; `sh run.sh claims SECONDS` draws
fresh ones until the time is over, and fails only for a wrong claim.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import claims
import judge
import zoo
from claims import Case, bs

SECONDS = float(os.environ.get("BLOCKSPCA_CLAIMS_SECONDS", "0"))


@dataclass(frozen=True)
class Call:
    """A public call: how it is asked, and what checks its answer."""

    ask: Callable[[Case], Any]
    check: Callable[[Case, Any], None] = claims.component
    needs: str = "solve"
    rules: tuple[str, ...] = ()
    limits: bool = False
    psd: bool = False  # only matrices that are semidefinite
    several: bool = False  # components: k and their number are small
    evidence: bool = False  # verify is asked, too
    contrast: bool = False
    signs: bool = True  # signs of features may be changed

    @property
    def names(self) -> set[str]:
        """Return the public names that the call uses."""
        names = {"Covariance", self.needs, *(["Limits"] if self.limits else [])}
        return names | {"Constraints"} if self.rules else names


def solve(**options: Any) -> Callable[[Case], Any]:
    def ask(case: Case) -> Any:
        given = {"constraints": case.constraints, "limits": case.limits, **options}
        return bs.solve(case.cov, case.k, **given)

    return ask


def paths(case: Case) -> Any:
    return bs.solve_path(
        case.cov, case.k, constraints=case.constraints, limits=case.limits
    )


def blocks(**options: Any) -> Call:
    def ask(case: Case) -> Any:
        return bs.solve_blocks(case.cov, case.k, **options)

    return Call(ask, needs="solve_blocks")


def components(
    scheme: str,
    sweeps: int = 0,
    limits: bool = False,
    rules: tuple[str, ...] = (),
    **options: Any,
) -> Call:
    def ask(case: Case) -> Any:
        given = {"constraints": case.constraints, "limits": case.limits, **options}
        given |= {"sweeps": sweeps} if sweeps else {}
        return bs.solve_components(case.cov, case.k, case.m, scheme=scheme, **given)

    def check(case: Case, answer: Any) -> None:
        claims.components(case, answer, scheme, swept=sweeps > 0)

    call = Call(ask, check, "solve_components", psd=True, several=True)
    return replace(call, rules=rules, limits=limits)


def importance(case: Case) -> Any:
    result = bs.solve(case.cov, case.k)
    return bs.feature_importance(case.cov, result, limits=case.limits)


def stability(case: Case) -> Any:
    X = case.problem.given
    return bs.stability(X, case.k, n_resamples=4, rng=0, limits=case.limits)


def shared(**options: Any) -> Call:
    def ask(case: Case) -> Any:
        given = {"constraints": case.constraints, "limits": case.limits}
        return bs.solve_shared(case.cov, case.k, case.m, **given)

    return Call(ask, claims.shared, "solve_shared", several=True, **options)


def alternatives(limits: bool = False) -> Call:
    def ask(case: Case) -> Any:
        return bs.alternatives(case.cov, case.k, within=case.share, limits=case.limits)

    return Call(ask, claims.alternatives, "alternatives", limits=limits)


KINDS = ("include", "exclude", "groups", "overlap", "nonnegative")
PAIRS = set(itertools.combinations(KINDS, 2)) - {("groups", "overlap")}
CALLS: dict[str, Call] = {
    "covariance": Call(lambda case: case.cov, claims.covariance, "Covariance"),
    "solve": Call(solve(), evidence=True),
    "solve, limits": Call(solve(), limits=True, evidence=True),
    "solve, no proof": Call(solve(certify=False), limits=True),
    "solve, two cores": Call(solve(n_jobs=2)),
    "solve, start": Call(
        lambda case: bs.solve(case.cov, case.k, start=list(range(case.k)))
    ),
    "path": Call(paths, claims.path, "solve_path"),
    "path, limits": Call(paths, claims.path, "solve_path", limits=True),
    "path, rules": Call(paths, claims.path, "solve_path", rules=("exclude", "groups")),
    "blocks": blocks(),
    "blocks, greedy": blocks(solver="greedy"),
    "blocks, threshold": blocks(threshold=0.1),
    **{
        " + ".join(kinds): Call(
            solve(),
            needs="Constraints",
            rules=kinds,
            evidence=True,
            signs="nonnegative" not in kinds,
        )
        for kinds in [(kind,) for kind in KINDS] + sorted(PAIRS)
    },
    "rules, limits": Call(
        solve(), needs="Constraints", rules=("exclude", "groups"), limits=True
    ),
    "contrast": Call(solve(), needs="contrastive", contrast=True, evidence=True),
    "contrast, limits": Call(solve(), needs="contrastive", contrast=True, limits=True),
    "contrast, path": Call(paths, claims.path, "contrastive", contrast=True),
    **{scheme: components(scheme) for scheme in claims.SCHEMES},
    "residual, limits": components("residual", limits=True),
    "residual, no proof": components("residual", certify=False),
    "residual, exclude": components("residual", rules=("exclude",)),
    "disjoint, sweeps": components("disjoint", sweeps=2),
    "residual, sweeps": components("residual", sweeps=2),
    "orthogonal, sweeps": components("orthogonal", sweeps=2),
    "uncorrelated, sweeps": components("uncorrelated", sweeps=2),
    "shared": shared(),
    "shared, limits": shared(limits=True),
    "shared, rules": shared(rules=("include", "groups")),
    "alternatives": alternatives(),
    "alternatives, limits": alternatives(limits=True),
    "importance": Call(importance, claims.importance, "feature_importance"),
    "importance, limits": Call(
        importance, claims.importance, "feature_importance", limits=True
    ),
    "stability": Call(stability, claims.stability, "stability", psd=True),
}
BUILT = [name for name, call in CALLS.items() if call.names <= set(bs.__all__)]
LIMITS = [{"time": t} for t in (0.0, 1e-3)] + [{"gap": g} for g in (1e-6, 0.01, 0.3)]
LIMITS += [{"work": w} for w in (1e-9, 1e-4, 1e-2)] + [{"memory": 2**16}]


@st.composite
def cases(draw: Any, call: Call) -> tuple[Case, str, int]:
    """Draw a case, a variant of its form, and a leaf of the evidence."""
    problem = draw(zoo.problems(largest=6 if call.several else 7, psd=call.psd))
    if call.check is claims.stability:
        hypothesis.assume(problem.from_samples and len(problem.given) > 3)
    m = draw(st.integers(2, min(3, problem.d))) if call.several else 2
    most = problem.d - 1 if call.several else problem.d
    k = draw(st.integers(1, most))
    if call.several:
        k = max(k, m)  # fewer features may not keep the conditions of other components
        hypothesis.assume(k * (m - 1) < problem.d)  # disjoint ones need room
    rules = draw(zoo.rules_for(problem.d, k, call.rules)) if call.rules else {}
    hypothesis.assume(len(judge.allowed(problem.d, k, rules)))
    limits = draw(st.sampled_from(LIMITS)) if call.limits else None
    limits = bs.Limits(**limits) if limits else None
    weight = draw(st.sampled_from([1.0, 0.1, 10.0])) if call.contrast else None
    share = draw(st.sampled_from([0.01, 0.0, 0.2]))
    case = Case(problem, k, rules, limits, m, weight, share)
    if call.contrast:  # the background is the next seed of the family
        hypothesis.assume(problem.family != "entries")
    names = zoo.VARIANTS if problem.from_samples else zoo.VARIANTS[:4]
    names = [name for name in names if call.signs or name != "signs"]
    names = names[:1] if call.contrast or call.check is claims.stability else names
    return case, draw(st.sampled_from(names)), draw(st.integers(0, 500))


def is_refusal(error: ValueError) -> bool:
    """Tell whether a call refuses a problem, and says what to pass instead."""
    words = re.search(r"\b(cannot|must|pass|use)\b", str(error))
    return words is not None and not isinstance(error, np.linalg.LinAlgError)


def judged(call: Call, case: Case, variant: str, pick: int) -> None:
    """Ask a call, and raise `WrongClaim` if a promise is broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = call.ask(case)
        except ValueError as error:
            if not is_refusal(error):
                raise
            hypothesis.reject()
        call.check(case, answer)
        if call.evidence:
            claims.evidence(case, answer, pick)
        if variant != "as it is":
            other = case.varied(variant)
            again = call.ask(other)
            call.check(other, again)
            if call.check is claims.component:
                factor = other.problem.factor / case.problem.factor
                claims.same(answer, again, factor)


@pytest.mark.skipif(SECONDS > 0, reason="fresh examples are drawn instead")
@pytest.mark.parametrize("name", CALLS)
def test_claims_hold(name: str) -> None:
    call = CALLS[name]
    if name not in BUILT:
        pytest.skip(f"not built: {sorted(call.names - set(bs.__all__))}")

    @hypothesis.given(cases(call))
    def hold(drawn: tuple[Case, str, int]) -> None:
        judged(call, *drawn)

    hold()


@pytest.mark.skipif(SECONDS == 0, reason="`sh run.sh claims SECONDS` runs it")
@pytest.mark.timeout(0)
def test_fresh_claims_hold() -> None:
    """Draw calls and examples until the time is over; only a wrong claim fails."""
    deadline = time.monotonic() + SECONDS
    if not BUILT:
        pytest.skip("not built: any call")
    others: dict[str, str] = {}
    examples = 0

    def draw(name: str, number: int) -> None:
        @hypothesis.seed(number)
        @hypothesis.settings(max_examples=20, phases=[hypothesis.Phase.generate])
        @hypothesis.given(cases(CALLS[name]))
        def hold(drawn: tuple[Case, str, int]) -> None:
            nonlocal examples
            if time.monotonic() > deadline:
                return
            examples += 1
            try:
                judged(CALLS[name], *drawn)
            except hypothesis.errors.UnsatisfiedAssumption:
                raise
            except claims.WrongClaim as error:
                print(f"\nseed {number} of call {name!r}: {error}\n{drawn}")
                raise
            except Exception as error:
                kind = f"{name}: {type(error).__name__}: {str(error)[:80]}"
                others.setdefault(kind, repr(drawn))

        hold()

    while time.monotonic() < deadline:
        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
            draw(random.choice(BUILT), random.getrandbits(32))
    print(f"\n{examples} fresh examples in {SECONDS:g} s, no wrong claim")
    for kind, drawn in others.items():
        print(f"not a claim, but look at it: {kind}\n    {drawn}")


def test_a_wrong_claim_is_noticed() -> None:
    """The checks themselves: a bound below the optimum, and a wrong objective."""
    case = Case(zoo.Problem("gaussian", 5, 1), k=2)
    reached, x = judge.best(case.exact, 2)
    status = SimpleNamespace(value="optimal")
    told = {"x": x, "support": np.flatnonzero(x), "status": status, "gap": 0.0}
    told |= {"objective": reached, "upper_bound": reached}
    claims.component(case, SimpleNamespace(**told))
    for words, changes in {
        "the bound": {"upper_bound": reached * (1 - 1e-12)},
        "the objective": {"objective": reached * 1.001},
        "optimal": {"upper_bound": reached * 1.1, "gap": 0.1},
    }.items():
        with pytest.raises(claims.WrongClaim, match=words):
            claims.component(case, SimpleNamespace(**{**told, **changes}))
