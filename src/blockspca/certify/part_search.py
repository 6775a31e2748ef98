"""Solve the parts of a constrained problem, and take apart those that resist.

The first part is all that the constraints allow. With features to include it is solved
at the level of the best set so far; a better set raises the level, and after two or
three rounds there is none. With non-negative loadings the part's matrix is A with its
negative entries raised to 0; those among the features of the best set are restored
until its loadings are not negative. Where that is no longer possible the part is taken
apart: a better set lacks one of those features. So is a part whose best set breaks a
limit that the search does not know (`Rules.beside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..certificate import PartClaim
from ..constraint_rules import GroupLimits, Rules
from ..covariance.covariance import Covariance
from ..covariance.schur_complement import LevelTooLow, forced
from ..limits import Budget
from ..numerics.linalg import OnSupport, leading_eigenvector, rayleigh
from ..numerics.rounding import EPS, TINY
from ..progress import silent
from ..proof_settings import Prover
from ..result import Result
from ..status import PROVED, SEARCH_GAP, Status, is_within_gap
from .nonnegative import has_both_signs, nonnegative_loadings
from .parts import (
    Pairs,
    Part,
    bound_of_set,
    left_of,
    matrix_of,
    negative_pairs,
    problem_of,
)
from .provers import ProofOptions, choose_prover
from .results import certified_results

Problem = TypeVar("Problem")

_ROUNDS = 30  # of a part: its level rises, or entries are restored
_ABOVE = 0.2  # of what searches leave open: how far the level is above the best set
_POOL = 300  # features among which the first set with those to include is looked for


@dataclass
class Run:
    """What the parts of one problem have in common."""

    cov: Covariance
    k: int
    rules: Rules
    budget: Budget
    options: ProofOptions
    best: OnSupport | None = None  #: the best component so far
    stopped: Status | None = None
    matrices: dict[Pairs, Covariance] = field(default_factory=dict)

    def matrix(self, part: Part) -> Covariance:
        """The matrix of a part's problem; see `matrix_of`."""
        if part.restored not in self.matrices:
            self.matrices.clear()  # one is as large as A
            self.matrices[part.restored] = matrix_of(self.cov, self.rules, part)
        return self.matrices[part.restored]

    def offer(self, support: NDArray[np.intp]) -> float:
        """Keep a set if it is allowed and better; return its value, −inf if not."""
        support = self.rules.completed(np.sort(support))
        if len(support) == 0 or not self.rules.allows_support(support, self.k):
            return -np.inf
        within = self.cov.submatrix(support)
        if self.rules.nonnegative:
            x = nonnegative_loadings(within)
        else:
            x = leading_eigenvector(within)
        value = rayleigh(within, x)
        if self.best is None or value > self.best.objective:
            self.best = OnSupport(support, x, value)
        return value

    def offer_near(self, order: NDArray[np.intp]) -> None:
        """Offer the first k features of an order that can be had together."""
        include = np.array(self.rules.include, dtype=np.intp)
        chosen = self.rules.filled(include, self.k, order.tolist())
        if len(chosen) < self.k:  # they took room that the overlap needs
            chosen = self.rules.filled(include, self.k)
        self.offer(chosen)

    def is_closed(self, bound: float) -> bool:
        """Whether a bound is as near the best component as was asked for."""
        best = self.best
        gap = max(self.budget.limits.gap or 0.0, 0.9 * SEARCH_GAP)
        return best is not None and is_within_gap(
            best.objective, max(bound, best.objective), gap
        )

    def goes_on(self) -> bool:
        """Whether there is more to prove, and no limit is reached."""
        self.stopped = self.stopped or self.budget.stop_reason()
        return self.options.prove and self.stopped is None

    def certified(
        self,
        cov: Covariance,
        k: int,
        start: Sequence[int],
        groups: GroupLimits | None,
        prove: bool = True,
    ) -> Result:
        """Solve a problem without constraints other than groups; prove it if wanted."""
        prove = prove and self.options.prove
        prover = Prover.CHAIN
        if prove:
            prover = choose_prover(cov, k, k, self.options.settings)
        options = replace(
            self.options,
            prover=prover,
            callback=self.options.callback if prove else silent,
            prove=prove,
            groups=groups,
        )
        begun = {k: start} if len(start) else {}
        limits = self.budget.left()
        ks = range(k, k + 1)
        result = certified_results(cov, ks, limits, begun, options)[k]
        self.budget.nodes += result.nodes
        if result.status not in (*PROVED, Status.FEASIBLE):
            self.stopped = result.status
        return result


def solve_parts(run: Run, whole: Part, start: NDArray[np.intp]) -> list[PartClaim]:
    """Solve parts, the one of the largest bound first, until none can be better."""
    claims: list[PartClaim] = []
    if run.rules.beside:  # what searches find may not be allowed
        by_variance = np.argsort(-run.cov.diagonal(), kind="stable")
        run.offer_near(np.concatenate([start, by_variance]))
    first = _solve_part(run, whole, start)
    waiting = [first]
    while waiting:
        waiting.sort(key=lambda solved: solved.claim.upper_bound)
        solved = waiting.pop()
        pieces = None
        if run.goes_on() and not run.is_closed(solved.claim.upper_bound):
            pieces = _pieces(run, solved)
        if pieces is None:
            claims.append(solved.claim)
            continue
        own = tuple(solved.support.tolist())
        claims.append(PartClaim(own, solved.part.exclude, 0.0, void=True))
        for piece in pieces:
            if not run.goes_on():
                # What was proved of the whole part holds for each of its pieces.
                claims.append(solved.claim)
                break
            try:
                begun = np.array(piece.include, dtype=int)
                waiting.append(_solve_part(run, piece, begun))
            except KeyboardInterrupt:  # all other parts keep what is proved of them
                run.stopped = Status.INTERRUPTED
                claims.append(solved.claim)
                break
    if all(claim.void for claim in claims):
        return [first.claim]
    return claims


@dataclass(frozen=True)
class _Solved:
    """A part with its claim, and the set that its own problem found best."""

    part: Part
    claim: PartClaim
    support: NDArray[np.intp]


def _pieces(run: Run, solved: _Solved) -> tuple[Part, ...] | None:
    """Take a part apart: a better set lacks a feature of the one that was found.

    None if it cannot be, nothing if each of its components is in another part as well.

    Either no allowed set has certain features of it together. Of those that must be
    included none can be missing: they take their places whatever their loadings.

    Or its loadings, for A as it is, have both signs. Were there a non-negative x on
    just these features, none of them 0, that is best on them, it would be a local
    maximum of x'Ax over the unit sphere, which is a global one: an eigenvector of the
    largest eigenvalue. So a best x is 0 at one of them at least.
    """
    part, pieces = solved.part, []
    include, strict = set(part.include), set(part.strict)
    apart = run.rules.clash(solved.support, run.k)
    if apart:
        apart = [i for i in apart if i not in include]
    elif run.rules.nonnegative and has_both_signs(run.cov, solved.support):
        apart = solved.support.tolist()
    else:
        return None
    for i in apart:
        if i in strict or i in part.exclude:
            continue
        piece = Part(
            include=tuple(sorted(include - {i})),
            exclude=tuple(sorted((*part.exclude, i))),
            restored=part.restored,
            strict=tuple(sorted(strict)),
        )
        d = run.cov.n_features
        _, places, _ = left_of(d, run.k, run.rules, piece, limited=True)
        if piece.include or places:  # otherwise no feature could have a loading
            pieces.append(piece)
        include.add(i)
        strict.add(i)
    return tuple(pieces)


def _solve_part(run: Run, part: Part, start: NDArray[np.intp]) -> _Solved:
    """Bound a part, in rounds: each raises the level, or restores entries."""
    rest, places, groups = left_of(
        run.cov.n_features, run.k, run.rules, part, limited=True
    )
    chosen = np.array(part.include, dtype=np.intp)
    if places == 0:
        return single_set(run, part, chosen)
    start = np.intersect1d(start, rest)
    if part.include:
        start = _first_set(run, part, rest, places, groups, start)
    claim: PartClaim | None = None
    support = np.union1d(chosen, start).astype(np.intp)
    for _ in range(_ROUNDS):
        make = partial(problem_of, run.matrix(part), run.k, run.rules, part)
        level, problem = at_lowest_level(run, part, partial(make, limited=True))
        at = np.searchsorted(rest, start).tolist()
        inner = run.certified(problem.cov, places, at, problem.groups)
        found = rest[inner.support]
        support = np.union1d(chosen, found).astype(np.intp)
        before = -np.inf if run.best is None else run.best.objective
        value = run.offer(support)
        if value == -np.inf and run.rules.beside:
            run.offer_near(support)
        made = claim_of(part, level, inner)
        if claim is None or made.upper_bound < claim.upper_bound:
            claim = made
        if not run.goes_on():
            break
        # By more than rounding, or rounds would alternate between two equal sets.
        better = value > before + 1e-12 * abs(before)
        if part.include and better and not run.is_closed(claim.upper_bound):
            start = found
            continue
        negative: set[tuple[int, int]] = set()
        if run.rules.nonnegative:  # entries that were raised to 0
            negative = negative_pairs(run.cov, support) - set(part.restored)
        if not negative or run.is_closed(claim.upper_bound):
            break
        part = replace(part, restored=tuple(sorted({*part.restored, *negative})))
        start = found
    assert claim is not None
    return _Solved(part, claim, support)


def at_lowest_level(
    run: Run, part: Part, make: Callable[[float | None], Problem]
) -> tuple[float | None, Problem]:
    """Return the lowest level at which a part has a problem, and that problem.

    None is the level of a part without features to include. `make` returns the problem
    at a level, or raises `LevelTooLow`.
    """
    if not part.include:
        return None, make(None)
    for level in levels(run, part):
        with suppress(LevelTooLow):
            return level, make(level)
    raise AssertionError("levels do not end")


def claim_of(part: Part, level: float | None, inner: Result) -> PartClaim:
    bound = inner.upper_bound if level is None else max(inner.upper_bound, level)
    steps = () if inner.certificate is None else inner.certificate.steps
    return PartClaim(
        include=part.include,
        exclude=part.exclude,
        upper_bound=bound,
        level=level,
        limited=True,
        restored=part.restored,
        steps=steps,
    )


def single_set(run: Run, part: Part, chosen: NDArray[np.intp]) -> _Solved:
    """Bound a part whose own features take every place."""
    run.offer(chosen)
    claim = PartClaim(
        part.include, part.exclude, bound_of_set(run.cov, chosen, 3.0), None, True
    )
    return _Solved(part, claim, chosen)


def levels(run: Run, part: Part) -> Iterator[float]:
    """Levels for a part: the first just above the best set known, of all parts.

    Nothing better than that is of interest; a part all of whose sets are worse is
    bounded by the level. The others are for where that is too near λmax(A_FF). None
    is nearer to the best set than rounding of the rows of F: what is divided by the
    distance would overflow.
    """
    include = np.array(part.include, dtype=np.intp)
    rows = run.matrix(part).submatrix(include, slice(None))
    within = rows[:, include]
    value = rayleigh(within, leading_eigenvector(within))
    if run.best is not None:
        value = max(value, run.best.objective)
    margin = max(_ABOVE * SEARCH_GAP * abs(value), EPS * float(np.abs(rows).max()))
    margin = margin or TINY
    while True:
        yield value + margin
        # How near λmax(A_FF) is too near is known only to the one who factorizes: a few
        # attempts reach any distance.
        margin *= 4


def _first_set(
    run: Run,
    part: Part,
    rest: NDArray[np.intp],
    places: int,
    groups: GroupLimits | None,
    start: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Find a good set with the features to include, among the most promising others.

    The best places at the level of the best set so far, as long as that gets better.
    """
    chosen = np.array(part.include, dtype=np.intp)
    matrix = run.matrix(part)
    diagonal = run.cov.diagonal()[rest]
    # What a feature has of itself, and what it adds to those that are in anyway.
    pull = np.linalg.norm(matrix.submatrix(chosen, rest), axis=0)
    order = np.argsort(-(diagonal + pull), kind="stable")
    size = min(len(rest), max(_POOL, 10 * places))
    pool = order[:size]
    filled = order[:places] if groups is None else groups.first(order, places)
    pool = np.unique(np.concatenate([pool, filled, np.searchsorted(rest, start)]))
    among = None if groups is None else groups.among(pool)
    best = rest[filled]
    value = run.offer(np.union1d(chosen, best).astype(np.intp))
    if len(start) == places:
        other = run.offer(np.union1d(chosen, start).astype(np.intp))
        if other > value:
            best, value = start, other
    for _ in range(_ROUNDS):
        if value == -np.inf or run.budget.stop_reason() is not None:
            break
        try:
            problem = forced(matrix, chosen, rest[pool], next(levels(run, part)))
        except LevelTooLow:
            break
        at = np.searchsorted(rest[pool], best).tolist()
        inner = run.certified(problem, places, at, among, prove=False)
        if run.stopped is not None:
            break
        found = rest[pool][inner.support]
        new = run.offer(np.union1d(chosen, found).astype(np.intp))
        if not new > value + 1e-12 * abs(value):
            break
        best, value = found, new
    return np.sort(best)
