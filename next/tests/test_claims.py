"""Every public call on drawn problems: is anything that it claims wrong?

`sh run.sh test` draws the same examples each time; `sh run.sh claims SECONDS` draws
fresh ones until the time is over, and fails only for a wrong claim.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
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


def solve(**options: Any) -> Callable[[Case], Any]:
    def ask(case: Case) -> Any:
        given = {"constraints": case.constraints, "limits": case.limits, **options}
        return bs.solve(case.cov, case.k, **given)

    return ask


def paths(case: Case) -> Any:
    return bs.solve_path(
        case.cov, case.k, constraints=case.constraints, limits=case.limits
    )


def from_a_start(case: Case) -> Any:
    start = list(range(case.k))
    return bs.solve(case.cov, case.k, start=start, limits=case.limits)


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
        given: dict[str, Any] = {"sweeps": sweeps} if sweeps else {}
        given.update(options, constraints=case.constraints, limits=case.limits)
        return bs.solve_components(case.cov, case.k, case.m, scheme=scheme, **given)

    def check(case: Case, answer: Any) -> None:
        claims.components(case, answer, scheme, swept=sweeps > 0)

    return Call(
        ask,
        check,
        "solve_components",
        rules=rules,
        limits=limits,
        psd=True,
        several=True,
    )


def shared(case: Case) -> Any:
    return bs.solve_shared(
        case.cov, case.k, case.m, constraints=case.constraints, limits=case.limits
    )


def alternatives(case: Case) -> Any:
    return bs.alternatives(case.cov, case.k, within=case.share, limits=case.limits)


def importance(case: Case) -> Any:
    result = bs.solve(case.cov, case.k)
    return bs.feature_importance(case.cov, result, limits=case.limits)


def stability(case: Case) -> Any:
    X = case.problem.given
    return bs.stability(X, case.k, n_resamples=4, rng=0, limits=case.limits)


def estimator(case: Case) -> Any:
    model = bs.SparsePCA(case.m, k=case.k, scheme="residual", scale=False)
    return model.fit(case.problem.given).result_


ONE = ("include", "exclude", "groups", "overlap", "nonnegative")
PAIRS = (
    ("include", "exclude"),
    ("include", "groups"),
    ("include", "overlap"),
    ("include", "nonnegative"),
    ("exclude", "groups"),
    ("exclude", "overlap"),
    ("exclude", "nonnegative"),
    ("groups", "nonnegative"),
    ("overlap", "nonnegative"),
)
CALLS: dict[str, Call] = {
    "covariance": Call(lambda case: case.cov, claims.covariance, "Covariance"),
    "solve": Call(solve(), evidence=True),
    "solve, limits": Call(solve(), limits=True, evidence=True),
    "solve, no proof": Call(solve(certify=False), limits=True),
    "solve, two cores": Call(solve(n_jobs=2)),
    "solve, start": Call(from_a_start, limits=True),
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
        for kinds in [(kind,) for kind in ONE] + list(PAIRS)
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
    "shared": Call(shared, claims.shared, "solve_shared", several=True),
    "shared, limits": Call(
        shared, claims.shared, "solve_shared", several=True, limits=True
    ),
    "shared, rules": Call(
        shared, claims.shared, "solve_shared", several=True, rules=("include", "groups")
    ),
    "alternatives": Call(alternatives, claims.alternatives, "alternatives"),
    "alternatives, limits": Call(
        alternatives, claims.alternatives, "alternatives", limits=True
    ),
    "importance": Call(importance, claims.importance, "feature_importance"),
    "importance, limits": Call(
        importance, claims.importance, "feature_importance", limits=True
    ),
    "stability": Call(stability, claims.stability, "stability", psd=True),
}
BUILT = [name for name, call in CALLS.items() if call.needs in bs.__all__]
LIMITS = (
    {"time": 0.0},
    {"time": 1e-3},
    {"gap": 1e-6},
    {"gap": 0.01},
    {"gap": 0.3},
    {"work": 1e-9},
    {"work": 1e-4},
    {"work": 1e-2},
    {"memory": 2**16},
)


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
    case = Case(
        problem,
        k,
        rules,
        bs.Limits(**limits) if limits else None,
        m,
        weight=draw(st.sampled_from([1.0, 0.1, 10.0])) if call.contrast else None,
        share=draw(st.sampled_from([0.01, 0.0, 0.2])),
    )
    if call.contrast:  # the background is of the same family: samples of as many rows
        hypothesis.assume(problem.family != "entries")
    forms = len(zoo.VARIANTS) if problem.from_samples else 4
    names = [name for name in zoo.VARIANTS[:forms] if call.signs or name != "signs"]
    if call.contrast or call.check is claims.stability:
        names = names[:1]
    return case, draw(st.sampled_from(names)), draw(st.integers(0, 500))


def judged(call: Call, case: Case, variant: str, pick: int) -> None:
    """Ask a call, and raise `WrongClaim` if a promise is broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = call.ask(case)
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
        pytest.skip(f"not built: {call.needs}")

    @hypothesis.given(cases(call))
    def hold(drawn: tuple[Case, str, int]) -> None:
        judged(call, *drawn)

    hold()


@pytest.mark.skipif(SECONDS == 0, reason="`sh run.sh claims SECONDS` runs it")
@pytest.mark.timeout(0)
def test_fresh_claims_hold() -> None:
    """Draw calls and examples until the time is over; only a wrong claim fails."""
    deadline = time.monotonic() + SECONDS
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

    @dataclass(frozen=True)
    class Told:
        x: Any
        support: Any
        objective: float
        upper_bound: float
        status: Any
        gap: float

    reached, x = judge.best(case.exact, 2)
    status = type("Status", (), {"value": "optimal"})
    told = Told(x, np.flatnonzero(x), reached, reached, status, 0.0)
    claims.component(case, told)
    low = replace(told, upper_bound=reached * (1 - 1e-12))
    with pytest.raises(claims.WrongClaim, match="the bound"):
        claims.component(case, low)
    with pytest.raises(claims.WrongClaim, match="the objective"):
        claims.component(case, replace(told, objective=reached * 1.001))
    with pytest.raises(claims.WrongClaim, match="optimal"):
        claims.component(case, replace(told, upper_bound=reached * 1.1, gap=0.1))
