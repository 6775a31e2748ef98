"""Prove that no k-set reaches τ by averaging over subsets: for flat, noisy matrices.

Screening and Schur bounds go blind where opt(k) and opt(k − 1) are close.  Averaging
does not.  Put δ_i = τ − A_ii > 0 and N_ij = A_ij / sqrt(δ_i δ_j), N_ii = 0.  Then

    λmax(A_SS) ≥ τ   ⇔   λmax(N_SS) ≥ 1,

and if y is the unit eigenvector of N on a set of j features with value λ, leaving out
one feature keeps, on average over the j choices, (j − 2)/j · λ of y'Ny and (j − 1)/j of
‖y‖².  Hence some subset of j − 1 features has λmax ≥ (j − 2)/(j − 1) · λ, and by
induction

    every winning m-set contains, for each j ≤ m, a j-set T with
    λmax(N_TT) ≥ (j − 1)/(m − 1), nested in one another.

Where large entries are rare there are few such sets: they are all enumerated, and if
none of size m is met, opt(m) < τ is proved.

A set T that is far above its threshold would let every feature in.  Such a set is
instead *included*: by the Schur complement the sets S ⊇ T are the (m − |T|)-sets of

    N' = N + N_·T (I − N_TT)⁻¹ N_T·,

scaled to the form above again, where averaging starts afresh with a higher threshold.
A pair that was included and refuted occurs in no winning set: it is forbidden for the
rest of the search, which is written N_ij = NaN.  Which sets are included is a matter of
speed alone: an included set is refuted with all that contain it, or nothing is claimed.

**Rounding.**  N is known up to an error of e in each entry (`error`), its zero diagonal
and its symmetry exactly.  A winning m-set of the true N has λmax ≥ 1 − (m − 1) e in the
one at hand, and `_kernels/averaging.py` proves that sets down to 1 − δ are not lost if
δ = allowance / 2 covers the tests.  Hence

    allowance = 2 ((m − 1) e + (m + 1)² eps).

At the root, fl(τ − A_ii) has one rounding, the reciprocal of its square root half of it
and two more, and A_ij times two of those two more: 7 roundings of eps / 2 relative to
|N_ij| < 1 (pairs with |N_ij| ≥ 1 − 2e win by themselves), so e = 4 eps.

For an inclusion let s = |T|, M = I − N_TT, and c_i the column N_Ti.  Cholesky's method
and the triangular solve err backward by at most (s + 3) eps in each entry of M and c_i,
as their rows have length below 1.  So W'W is exact for some M and c_i that are within
ē = e + (s + 3) eps of the true M* and c*_i, entry by entry.  Put z_i = M⁻¹ c_i,
z*_i = M*⁻¹ c*_i.  Since z_i' M z*_j = c_i' z*_j and z_i' M* z*_j = z_i' c*_j,

    c_i' M⁻¹ c_j − c*_i' M*⁻¹ c*_j
        = (c_i − c*_i)' z*_j + z_i' (c_j − c*_j) − z_i' (M − M*) z*_j,

which with the error of N_ij itself is at most ē (1 + |z_i|₁) (1 + |z*_j|₁).  And
z* − z = M⁻¹ ((c* − c) − (M* − M) z*) gives, with λ the least eigenvalue of M,

    |z* − z|₁ ≤ √s ē (√s + s ‖z*‖₂) / λ ≤ ρ (1 + |z*|₁),      ρ = s^{3/2} ē / λ,

hence 1 + |z*|₁ ≤ (1 + |z|₁) / (1 − ρ).  A first Cholesky test makes sure of ρ ≤ 1/128
(λ ≥ 130 s^{3/2} ē, less the errors of the test and of M, 2s (s + 3) eps) and thereby of
M* ≻ 0.  Summing N_ij + w_i'w_j, or 1 − w_i'w_i, errs by at most (s + 3) eps more.  So

    η_i = 1.01 ē (1 + |z_i|₁)² + (s + 3) eps

bounds the error of the slack σ_i = 1 − w_i'w_i, and sqrt(η_i η_j) that of
N_ij + w_i'w_j by the Cauchy–Schwarz inequality.  Let q = max η_i / σ_i, at most 1/128
or nothing is claimed.  Dividing by sqrt(σ_i σ_j) instead of the true value changes an
entry by a factor within 1 ± q and rounds it 6 times, so N'_ij is off by at most
q (1 + |N'*_ij|) + 3 eps, where |N'*_ij| ≤ (|N'_ij| + q + 3 eps) / (1 − q).  Therefore

    e' = 1.02 q (1 + max |N'_ij|) + 4 eps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Deadline
from ..numerics import cost as _cost
from ..numerics.rounding import EPS

# In thresholds: such a pair is admissible at the next level as well, whatever else is
# in the set, so that all features would be let in.
_STRONG_PAIR = 2.0
_CAPACITY = 20_000  # oversized sets that are put off; what is beyond is enumerated
_SLICE = 2_000  # sets between two looks at the clock, at the most
_SLICE_WORK = 2**27  # operations of theirs
_COARSEST = 1e-3  # with a larger error in N the search would be of no use


@dataclass(frozen=True)
class AveragingOutcome:
    """The outcome of a search for a k-set of value τ or more."""

    refuted: bool  #: no k-set reaches τ: the proof that opt(k) < τ
    #: A set of at most k features that reaches τ within rounding, if one was met.
    support: NDArray[np.intp] | None
    sets: int  #: sets that were visited
    inclusions: int  #: subproblems that were opened


def no_support_above(
    A: FloatArray,
    k: int,
    tau: float,
    *,
    deadline: Deadline | None = None,
    set_limit: int | None = None,
    work_limit: float = np.inf,
) -> AveragingOutcome:
    """Prove opt(k) < τ, or find a set that reaches τ, or stop without a claim.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric and finite; it may be indefinite.
    tau : float
        The value that none is to reach. Supports of fewer than k features count, too.
    deadline : Deadline, optional
        When to stop, looked at between slices.
    set_limit : int, optional
        Where to stop.
    work_limit : float
        Seconds that sets and inclusions are expected to take, by their number: where to
        stop on every machine.

    Notes
    -----
    Memory is O(kd + d²) per level of inclusion; time is that of the sets visited,
    O(k² d) each. Rounding is covered by an allowance at every threshold, so that sets
    a little below τ may be reported too: recompute the value of `support`. Where
    inclusions magnify the errors beyond use, the search stops and claims nothing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> E = rng.normal(scale=0.1, size=(100, 100))
    >>> no_support_above(np.eye(100) + (E + E.T) / 2, 5, 1.8).refuted
    True
    """
    A = np.asarray(A, dtype=np.float64)
    d = len(A)
    k = min(k, d)
    with np.errstate(over="ignore"):  # said below
        slack = tau - np.diagonal(A)
    # NaN stands for a forbidden pair below: one in A would be taken for a proof.
    if not (np.isfinite(A).all() and np.isfinite(slack).all()):
        raise ValueError(
            "A, tau and tau - A_ii must be finite; divide A and tau by a power of two "
            "if the difference overflows"
        )
    search = _Search(
        deadline=Deadline(None) if deadline is None else deadline,
        sets_left=np.inf if set_limit is None else set_limit,
        work_left=work_limit,
    )
    if d == 0:
        refuted = True
    elif slack.min() <= 0:
        refuted = search.report([int(slack.argmin())])
    else:
        scale = 1 / np.sqrt(slack)
        with np.errstate(over="ignore"):  # an infinite pair wins, and is reported
            N = A * scale[:, None]
            N *= scale
        # (A_ij s_i) s_j and (A_ij s_j) s_i may round differently: take one for both.
        N = np.maximum(N, N.T)
        np.fill_diagonal(N, 0.0)
        # Strongest first: the last feature of a set is then the one to do without.
        size = np.abs(N)
        largest = float(size.max(initial=0.0))
        energy = np.minimum(np.partition(size, d - k, axis=1)[:, d - k :], 1.0)
        order = np.argsort(-np.einsum("ij,ij->i", energy, energy), kind="stable")
        N = np.ascontiguousarray(N[np.ix_(order, order)])
        refuted = search.run(_Part(N, order, [], 4 * EPS), k, largest)
    found = search.counterexample
    support = None if found is None else np.sort(np.array(found))
    return AveragingOutcome(refuted, support, search.sets, search.inclusions)


@dataclass(frozen=True)
class _Part:
    """N, whose entries are known to `error`, after some features were fixed in.

    `features` are the names of its rows, `chosen` those of the fixed ones. N is
    overwritten by a search.
    """

    N: FloatArray
    features: NDArray[np.intp]
    chosen: list[int]
    error: float

    def with_chosen(self, members: Any) -> list[int]:
        """The names of the fixed features and of these rows."""
        return [*self.chosen, *(int(i) for i in self.features[members])]


@dataclass
class _Search:
    """The state shared by all subproblems of one call of `no_support_above`."""

    deadline: Deadline
    sets_left: float
    work_left: float = np.inf  # seconds, as they are expected
    sets: int = 0
    inclusions: int = 0
    counterexample: list[int] | None = field(default=None)

    def is_over(self) -> bool:
        """Whether a limit ends the search."""
        is_spent = self.sets >= self.sets_left or self.work_left <= 0
        return is_spent or self.deadline.passed()

    def report(self, support: list[int]) -> bool:
        self.counterexample = support
        return False

    def run(self, part: _Part, m: int, largest: float) -> bool:
        """Refute every m-set of a part; `largest` is max |N_ij|."""
        N, error = part.N, part.error
        m = min(m, len(N))
        if m <= 1:
            return True  # a winning single feature is met when `chosen` is included
        if self.is_over():
            return False
        if largest >= 1 - 2 * error:
            i, j = divmod(int(np.nanargmax(np.abs(N))), len(N))
            return self.report(part.with_chosen([i, j]))
        if m == 2:
            return True
        if error > _COARSEST:
            return False
        if largest >= _STRONG_PAIR / (m - 1):
            size = np.abs(N)
            oversized = np.argwhere(np.triu(size >= _STRONG_PAIR / (m - 1)))
            by_strength = np.argsort(
                -size[oversized[:, 0], oversized[:, 1]], kind="stable"
            )
            for i, j in oversized[by_strength]:
                if not self.fix_features(part, m, [i, j]):
                    return False
                N[i, j] = N[j, i] = np.nan
        return self.grow(part, m)

    def grow(self, part: _Part, m: int) -> bool:
        """Refute every m-set of a part whose pairs are all weak."""
        from .._kernels import averaging as kernel

        N, d = part.N, len(part.N)
        allowance = 2 * ((m - 1) * part.error + (m + 1) ** 2 * EPS)
        at_once = max(1, min(_SLICE, _SLICE_WORK // (m * m * d)))
        cost = _cost.grown_set(m, d)
        state = np.zeros(kernel.N_STATE, dtype=np.int64)
        sets = np.zeros((m + 1, m + 1), dtype=np.int64)
        candidates = np.zeros((m + 1, d), dtype=np.int64)
        candidates[0] = np.arange(d)
        position = np.zeros((m + 1, 2), dtype=np.int64)
        position[0, 1] = d
        counts = np.zeros(m + 1, dtype=np.int64)
        oversized = np.empty((_CAPACITY, m + 1), dtype=np.int64)
        while True:
            before = int(state[kernel.NODES])
            paid = self.work_left / cost + 1
            outcome = kernel.grow(
                N,
                m,
                allowance,
                int(min(at_once, self.sets_left - self.sets, paid)),
                state,
                sets,
                candidates,
                position,
                counts,
                oversized,
            )
            visited = int(state[kernel.NODES]) - before
            self.sets += visited
            self.work_left -= visited * cost
            if outcome == kernel.FOUND:
                return self.report(part.with_chosen(sets[m, :m]))
            if outcome == kernel.FINISHED:
                break
            if self.is_over():
                return False
        for row in oversized[: state[kernel.N_STRONG]]:
            members = [int(i) for i in row[: row[m]]]
            if not self.fix_features(part, m, members):
                return False
        return True

    def fix_features(self, part: _Part, m: int, members: list[int]) -> bool:
        """Refute every m-set of a part that contains `members`."""
        from .._kernels import averaging as kernel

        if self.is_over():
            return False
        self.inclusions += 1
        with_members = part.with_chosen(members)
        N, s, d = part.N, len(members), len(part.N)
        self.work_left -= _cost.inclusion(d)
        rounding = (s + 3) * EPS
        error = part.error + rounding
        W, Z = np.empty((s, d)), np.empty((s, d))
        gain, length = np.empty(d), np.empty(d)
        T = np.array(members, dtype=np.int64)
        if not kernel.couple(N, T, 130 * s**1.5 * error, W, Z, gain, length):
            return self.report(with_members)
        rest = ~np.isnan(gain)  # forbidden with a member
        rest[members] = False
        kept = part.features[rest]
        if len(kept) == 0:
            return True
        slack = 1 - gain[rest]
        spread = 1.01 * error * (1 + length[rest]) ** 2 + rounding
        room = slack - 128 * spread
        if room.min() <= 0:
            return self.report([*with_members, int(kept[room.argmin()])])
        reduced = np.empty((len(kept), len(kept)))
        largest = kernel.include(
            N,
            np.flatnonzero(rest),
            np.ascontiguousarray(W[:, rest]),
            1 / np.sqrt(slack),
            reduced,
        )
        error = 1.02 * float((spread / slack).max()) * (1 + largest) + 4 * EPS
        return self.run(_Part(reduced, kept, with_members, error), m - s, largest)
