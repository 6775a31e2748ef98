"""Groups that are used as a whole: the search is on a matrix of their norms.

**Theorem.** Let B be symmetric, its features in groups g, h, …, and

    N_gg ≥ λmax(B_gg),    N_gh ≥ ‖B_gh‖₂ for g ≠ h.

For x with parts x_g on the groups, x'Bx ≤ Σ N_gh ‖x_g‖ ‖x_h‖, and the vector of the
‖x_g‖ has the norm of x. So the largest eigenvalue of B on a union of m groups is at
most opt_m(N).

A part of the problem, with some groups in and some out, is bounded by this with B the
Schur complement of the groups that are in (`covariance.schur_complement`), m the most
groups that fit into the places that are left. Where that does not suffice a group is
branched on: in, or out. Parts that no group fits into are single sets.

Norms are those of LAPACK, raised by 8 s eps of the Frobenius norm, s the larger side,
and by what entries of B may be off by: sqrt(s_g s_h) e. Claims are made for norms that
are raised by three times that, so that they hold for those that are computed again,
from the same data in another order. A larger N has a larger optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..certificate import PartClaim
from ..constraint_rules import Rules
from ..covariance.covariance import Covariance
from ..covariance.derived import DerivedCovariance
from ..covariance.schur_complement import forced
from ..covariance.sources import MatrixSource
from ..numerics.linalg import symmetric_eigenvalues
from ..numerics.rounding import EPS, power_of_two
from ..status import Status
from .part_search import Run, at_lowest_level, claim_of, single_set
from .parts import Part, groups_left

CLAIMED = 3.0  # margins of rounding in a claim; one is needed


def group_problem(
    cov: Covariance,
    k: int,
    rules: Rules,
    part: Part,
    level: float | None,
    margins: float = 1.0,
) -> Covariance:
    """Return the norms of the groups that fit into a part; there is one at least.

    They are raised by so many `margins`, of which one is needed.
    """
    return norms_of(*matrix_of_groups(cov, k, rules, part, level), margins)


def matrix_of_groups(
    cov: Covariance, k: int, rules: Rules, part: Part, level: float | None
) -> tuple[Covariance, list[NDArray[np.intp]]]:
    """Return B for a part, and where the groups that fit into it are in B."""
    left, _ = groups_left(rules, part, k)
    if not part.include:
        return cov, list(left)
    assert level is not None
    rest = np.sort(np.concatenate(left))
    chosen = np.array(part.include, dtype=np.intp)
    at = [np.searchsorted(rest, group) for group in left]
    return forced(cov, chosen, rest, level), at


def norms_of(
    matrix: Covariance, groups: list[NDArray[np.intp]], margins: float = 1.0
) -> Covariance:
    """Return the norms as a matrix; what entries of B may be off by is in them."""
    N = group_norms(matrix, groups, margins)
    return DerivedCovariance(MatrixSource(N), None, f"norms of {len(groups)} groups")


def group_norms(
    matrix: Covariance, groups: list[NDArray[np.intp]], margins: float = 1.0
) -> FloatArray:
    """N of the theorem, rounded upwards by so many margins."""
    m, e = len(groups), matrix.entry_error
    N = np.empty((m, m))
    for g, rows in enumerate(groups):
        for h in range(g, m):
            block = matrix.submatrix(rows, groups[h])
            unit = power_of_two(float(np.abs(block).max()))
            block = block / unit  # so that squares neither overflow nor vanish
            size = float(np.linalg.norm(block))
            s = max(block.shape)
            if g == h:
                value = float(symmetric_eigenvalues((block + block.T) / 2)[-1])
            elif s == 1:
                value = size
            else:
                value = float(np.linalg.norm(block, 2))
            value = unit * (value + margins * 8 * s * EPS * size)
            value += margins * float(np.sqrt(block.size)) * e
            N[g, h] = N[h, g] = value
    return N


@dataclass(frozen=True)
class _Open:
    """A part with its claim, and the group to branch on."""

    part: Part
    claim: PartClaim
    group: NDArray[np.intp] | None


def solve_whole_groups(run: Run, start: NDArray[np.intp]) -> list[PartClaim]:
    """Solve parts, the one of the largest bound first, until none can be better."""
    run.offer(start)
    # Each group alone, before anything is bounded: a set to compare parts with.
    for group in groups_left(run.rules, Part.whole(run.rules), run.k)[0]:
        run.offer(np.union1d(group, run.rules.include).astype(np.intp))
    claims: list[PartClaim] = []
    waiting = [_solve(run, Part.whole(run.rules))]
    while waiting:
        waiting.sort(key=lambda one: one.claim.upper_bound)
        one = waiting.pop()
        closed = run.is_closed(one.claim.upper_bound)
        if closed or one.group is None or not run.goes_on():
            claims.append(one.claim)
            continue
        for piece in _branches(one.part, one.group):
            _, places = groups_left(run.rules, piece, run.k)
            if not piece.include and places == 0:
                continue  # no feature could have a loading
            if not run.goes_on():
                claims.append(one.claim)
                break
            try:
                waiting.append(_solve(run, piece))
            except KeyboardInterrupt:  # all other parts keep what is proved of them
                run.stopped = Status.INTERRUPTED
                claims.append(one.claim)
                break
    return claims


def _branches(part: Part, group: NDArray[np.intp]) -> tuple[Part, Part]:
    members = group.tolist()
    return (
        Part(tuple(sorted((*part.include, *members))), part.exclude),
        Part(part.include, tuple(sorted((*part.exclude, *members)))),
    )


def _solve(run: Run, part: Part) -> _Open:
    left, places = groups_left(run.rules, part, run.k)
    chosen = np.array(part.include, dtype=np.intp)
    if places == 0:
        return _Open(part, single_set(run, part, chosen).claim, None)
    run.offer(chosen)
    make = partial(group_problem, run.cov, run.k, run.rules, part, margins=CLAIMED)
    level, norms = at_lowest_level(run, part, make)
    inner = run.certified(norms, places, (), None)
    # The groups that weigh most in the relaxation, as many as fit, are a good set; and
    # the first of them decides most where it is branched on.
    by_loading = inner.support[np.argsort(-np.abs(inner.x[inner.support]))]
    fitted = set(part.include)
    for g in by_loading.tolist():
        if len(fitted) + len(left[g]) <= run.k:
            fitted |= set(left[g].tolist())
    run.offer(np.array(sorted(fitted), dtype=np.intp))
    return _Open(part, claim_of(part, level, inner), left[int(by_loading[0])])
