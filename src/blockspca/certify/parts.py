"""Parts of a constrained problem, each a problem of its own without constraints.

A part (F, E) stands for the allowed components with all of F and nothing of E. Features
that the rules include take a place also where they are in E, with the loading 0, and
also where they are in F they may have it: only those of F that the rules do not include
must have a loading. Its problem is sparse PCA on the features outside both, with the
places that are left: on A itself, on
the Schur complement B(τ) of F at a level τ (`covariance/schur_complement.py`), or, for
non-negative loadings, on the same of a matrix that is nowhere below A
(`covariance/raised.py`). A bound w of that problem bounds the part by max(τ, w).

Limits of groups are kept by the search itself: F takes its places, and what is left of
them are limits of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..constraint_rules import GroupLimits, Rules
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..covariance.raised import raised
from ..covariance.schur_complement import forced
from ..numerics.rounding import EPS, frobenius_norm
from ..numerics.upper_eigenvalues import eigenvalue_ceiling
from .nonnegative import has_both_signs

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Part:
    """The components with all of `include` and nothing of `exclude`; see the module.

    `restored` are pairs with a negative entry that is kept although loadings are not
    negative; all other negative entries are raised to 0. Of `strict` it is known that
    nothing is lost if they have a loading, which a claim does not use.
    """

    include: tuple[int, ...]
    exclude: tuple[int, ...]
    restored: Pairs = ()
    strict: tuple[int, ...] = ()
    void: bool = False

    @classmethod
    def whole(cls, rules: Rules) -> Part:
        """All that the rules allow."""
        return cls(rules.include, rules.exclude)

    def contains(self, loaded: set[int], zero: set[int], rules: Rules) -> bool:
        """Tell whether all components with such loadings belong to the part."""
        if self.void:
            return False
        needed = set(self.include) - set(rules.include)
        return needed <= loaded and set(self.exclude) <= zero


class PartProblem(NamedTuple):
    """The problem of a part, without constraints other than limits of groups."""

    cov: Covariance  #: of the features `rest`
    rest: NDArray[np.intp]  #: numbers of the features in the whole problem, ascending
    places: int  #: how many of them there may be
    groups: GroupLimits | None  #: of `rest`


def left_of(
    d: int, k: int, rules: Rules, part: Part, *, limited: bool
) -> tuple[NDArray[np.intp], int, GroupLimits | None]:
    """The features that may be added to a part's own, how many, and their limits.

    If not `limited`, as if there were no rules.
    """
    taken = {*part.include, *(rules.include if limited else ())}
    chosen = np.array(sorted(taken), dtype=np.intp)
    decided = [*part.include, *part.exclude, *taken]
    rest = np.setdiff1d(np.arange(d), decided).astype(np.intp)
    groups = rules.limits if limited else None
    places = k - len(chosen)
    if groups is None:
        return rest, min(places, len(rest)), None
    rest = rest[~groups.closed_to(chosen)[rest]]
    groups = groups.after(chosen, rest)
    return rest, min(places, groups.capacity), groups


def groups_left(
    rules: Rules, part: Part, k: int
) -> tuple[tuple[NDArray[np.intp], ...], int]:
    """The groups that still fit into a part, and how many of them at most."""
    taken, out = set(part.include), set(part.exclude)
    room = k - len(taken)
    left = tuple(
        group
        for group in rules.groups
        if len(group) <= room and not {*group.tolist()} & (taken | out)
    )
    # The smallest first: whichever are taken, no more of them fit.
    sizes = np.cumsum(np.sort([len(group) for group in left]))
    return left, int((sizes <= room).sum())


def matrix_of(cov: Covariance, rules: Rules, part: Part) -> Covariance:
    """A, or a matrix that is nowhere below it where loadings are not negative."""
    return raised(cov, part.restored) if rules.nonnegative else cov


def negative_pairs(cov: Covariance, support: NDArray[np.intp]) -> set[tuple[int, int]]:
    """The pairs of a set that have a negative entry."""
    within = np.triu(cov.submatrix(support) < 0, 1)
    return {(int(support[i]), int(support[j])) for i, j in np.argwhere(within)}


def bound_of_set(
    cov: Covariance, chosen: NDArray[np.intp], margins: float = 1.0
) -> float:
    """λmax(A_SS) from above; entries err by e, and |x'Ex| ≤ e ‖x‖₁² ≤ |S| e.

    A claim is made with more than one of these margins, and of the rounding of the
    largest eigenvalue, so that it holds for entries that are computed again.
    """
    within = cov.submatrix(chosen)
    bound = eigenvalue_ceiling((within + within.T) / 2)
    rounding = 8 * len(chosen) * EPS * frobenius_norm(within)
    rounding += len(chosen) * cov.entry_error
    return float(np.nextafter(bound + margins * rounding, np.inf))


def problem_of(
    matrix: Covariance,
    k: int,
    rules: Rules,
    part: Part,
    level: float | None,
    *,
    limited: bool,
) -> PartProblem:
    """Return the problem of a part that leaves at least one place and feature.

    `matrix` is what `matrix_of` returns for the part.

    Raises
    ------
    LevelTooLow
        If it is not sure that the part's own features are below the level.
    """
    d = matrix.n_features
    rest, places, groups = left_of(d, k, rules, part, limited=limited)
    if part.include:
        assert level is not None
        chosen = np.array(part.include, dtype=np.intp)
        matrix = forced(matrix, chosen, rest, level)
    elif len(rest) < d:
        matrix = restricted(matrix, rest)
    return PartProblem(matrix, rest, places, groups)


def first_uncovered(
    parts: tuple[Part, ...], rules: Rules, k: int, cov: Covariance
) -> tuple[set[int], set[int]] | None:
    """Return features with and without a loading such that no part has these, or None.

    Decides one feature after the other, with a loading and without, until a part has
    all components that are left, or the rules allow none.
    """
    waiting: list[tuple[set[int], set[int]]] = [(set(), set(rules.exclude))]
    while waiting:
        loaded, zero = waiting.pop()
        if any(part.contains(loaded, zero, rules) for part in parts):
            continue
        if _is_empty(loaded, zero, rules, k, cov):
            continue
        counts: dict[int, int] = {}
        for part in parts:
            apart = bool(set(part.exclude) & loaded)
            for i in {*part.include, *part.exclude} - loaded - zero:
                counts[i] = counts.get(i, 0) + (0 if apart else 1)
        if not counts:
            return loaded, zero
        # What most parts are told apart by ends the search soonest; of equals the
        # first, so that it is the same search everywhere.
        i = max(counts, key=lambda feature: (counts[feature], -feature))
        decided = rules.group_of(i) if rules.whole_groups else {i}
        waiting.append((loaded | decided, zero))
        waiting.append((loaded, zero | decided))
    return None


def _is_empty(
    loaded: set[int], zero: set[int], rules: Rules, k: int, cov: Covariance
) -> bool:
    """Tell whether the rules allow no component with such loadings, or no best one."""
    held = loaded | set(rules.include)
    if len(held) > k:
        return True
    if rules.whole_groups:
        here = Part(tuple(sorted(held)), tuple(sorted(zero)))
        return not held and groups_left(rules, here, k)[1] == 0
    if rules.limits is not None and rules.objection(
        np.array(sorted(held), dtype=int), k
    ):
        return True
    if not rules.nonnegative or set(rules.include) - loaded - zero:
        return False
    here = Part(tuple(sorted(loaded)), tuple(sorted(zero)))
    _, places, _ = left_of(cov.n_features, k, rules, here, limited=True)
    if places > 0:
        return False
    # Nothing can be added: a best component with these features is not positive on all
    # of them, so that it is among those that lack one.
    return not loaded or has_both_signs(cov, np.array(sorted(loaded), dtype=np.intp))
