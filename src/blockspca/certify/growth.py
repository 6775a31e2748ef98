"""Prove that no k-set reaches τ by growing small sets: made for flat, noisy matrices.

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
rest of the search, which is written N_ij = NaN.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

_EPS = float(np.finfo(float).eps)
_STRONG_PAIR = 2.0  # a pair of this many thresholds is good at the next level as well
_CAPACITY = 20_000
_SLICE = 2_000  # sets between two looks at the clock, at the most
_SLICE_WORK = 2**27  # operations of theirs


@dataclass(frozen=True)
class GrowthOutcome:
    """What a search for a k-set of value τ or more came to.

    Attributes
    ----------
    refuted : bool
        True if no k-set reaches τ. This is the proof that opt(k) < τ.
    support : array of int or None
        A set of at most k features that reaches τ within rounding, if one was met.
    sets : int
        Sets that were visited.
    inclusions : int
        Subproblems that were opened.
    elapsed : float
        Seconds.
    """

    refuted: bool
    support: NDArray[np.intp] | None
    sets: int
    inclusions: int
    elapsed: float


def refute(
    A: FloatArray,
    k: int,
    tau: float,
    *,
    time_limit: float = np.inf,
    set_limit: int | None = None,
) -> GrowthOutcome:
    """Prove opt(k) < τ, or find a set that reaches τ, or stop at a limit.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric; it may be indefinite.
    k : int
        Number of features, 1 ≤ k.
    tau : float
        The value to refute. Supports of fewer than k features count as well.
    time_limit, set_limit : float, int
        Where to stop.

    Notes
    -----
    Memory is O(kd + d²) per level of inclusion; time is that of the sets visited,
    O(k² d) each. Rounding is covered by an allowance at every threshold, so that sets
    a little below τ may be reported too: recompute the value of `support`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> E = rng.normal(scale=0.1, size=(100, 100))
    >>> refute(np.eye(100) + (E + E.T) / 2, 5, 1.8).refuted
    True
    """
    started = time.monotonic()
    A = np.asarray(A, dtype=np.float64)
    d = len(A)
    k = min(k, d)
    slack = tau - np.diagonal(A)
    search = _Search(
        deadline=started + time_limit,
        sets_left=np.inf if set_limit is None else set_limit,
    )
    if d == 0:
        refuted = True
    elif slack.min() <= 0:
        refuted = search.report([int(slack.argmin())])
    else:
        scale = 1 / np.sqrt(slack)
        N = A * scale[:, None] * scale
        np.fill_diagonal(N, 0.0)
        # Strongest first: the last feature of a set is then the one to do without.
        size = np.abs(N)
        energy = np.partition(size, d - k, axis=1)[:, d - k :]
        order = np.argsort(-np.einsum("ij,ij->i", energy, energy), kind="stable")
        N = np.ascontiguousarray(N[np.ix_(order, order)])
        largest = float(size.max(initial=0.0))
        # Each entry of N carries four roundings, relative to itself.
        allowance = 4 * _EPS * (1 + largest)
        refuted = search.run(N, k, order, [], allowance, largest)
    found = None if search.found is None else np.sort(np.array(search.found))
    elapsed = time.monotonic() - started
    return GrowthOutcome(refuted, found, search.sets, search.inclusions, elapsed)


@dataclass
class _Search:
    """The state shared by all subproblems of one call of `refute`."""

    deadline: float
    sets_left: float
    sets: int = 0
    inclusions: int = 0
    found: list[int] | None = field(default=None)

    def report(self, support: list[int]) -> bool:
        self.found = support
        return False

    def run(
        self,
        N: FloatArray,
        m: int,
        features: NDArray[np.intp],
        chosen: list[int],
        allowance: float,
        largest: float,
    ) -> bool:
        """Refute every m-set of N; `features` and `chosen` give them their names.

        `largest` is max |N_ij|. N is overwritten.
        """
        m = min(m, len(N))
        if m <= 1:
            return True  # a winning single feature is met when `chosen` is included
        if time.monotonic() > self.deadline or self.sets >= self.sets_left:
            return False
        if m == 2:
            if largest < 1 - 4 * allowance:
                return True
            i, j = divmod(int(np.nanargmax(np.abs(N))), len(N))
            return self.report([*chosen, int(features[i]), int(features[j])])
        if largest >= _STRONG_PAIR / (m - 1):
            size = np.abs(N)
            strong = np.argwhere(np.triu(size >= _STRONG_PAIR / (m - 1)))
            by_strength = np.argsort(-size[strong[:, 0], strong[:, 1]], kind="stable")
            for i, j in strong[by_strength]:
                if not self.include(N, m, [i, j], features, chosen, allowance):
                    return False
                N[i, j] = N[j, i] = np.nan
        return self.grow(N, m, features, chosen, allowance)

    def grow(
        self,
        N: FloatArray,
        m: int,
        features: NDArray[np.intp],
        chosen: list[int],
        allowance: float,
    ) -> bool:
        from .._kernels import growth as kernel

        d = len(N)
        at_once = max(1, min(_SLICE, _SLICE_WORK // (m * m * d)))
        state = np.zeros(kernel.N_STATE, dtype=np.int64)
        sets = np.zeros((m + 1, m + 1), dtype=np.int64)
        candidates = np.zeros((m + 1, d), dtype=np.int64)
        candidates[0] = np.arange(d)
        position = np.zeros((m + 1, 2), dtype=np.int64)
        position[0, 1] = d
        counts = np.zeros(m + 1, dtype=np.int64)
        strong = np.empty((_CAPACITY, m + 1), dtype=np.int64)
        while True:
            before = int(state[kernel.NODES])
            outcome = kernel.grow(
                N,
                m,
                allowance,
                at_once,
                state,
                sets,
                candidates,
                position,
                counts,
                strong,
            )
            self.sets += int(state[kernel.NODES]) - before
            if outcome == kernel.FOUND:
                return self.report([*chosen, *(int(i) for i in features[sets[m, :m]])])
            if outcome == kernel.FINISHED:
                break
            if time.monotonic() > self.deadline or self.sets >= self.sets_left:
                return False
        for row in strong[: state[kernel.N_STRONG]]:
            members = [int(i) for i in row[: row[m]]]
            if not self.include(N, m, members, features, chosen, allowance):
                return False
        return True

    def include(
        self,
        N: FloatArray,
        m: int,
        members: list[int],
        features: NDArray[np.intp],
        chosen: list[int],
        allowance: float,
    ) -> bool:
        """Refute every m-set of N that contains `members`."""
        from .._kernels import growth as kernel

        if time.monotonic() > self.deadline:
            return False
        self.inclusions += 1
        with_members = [*chosen, *(int(i) for i in features[members])]
        rest = np.ones(len(N), dtype=bool)
        rest[members] = False
        rest[np.isnan(N[members]).any(axis=0)] = False
        kept = features[rest]
        inner = np.eye(len(members)) - N[np.ix_(members, members)]
        room, basis = np.linalg.eigh(inner)
        if room[0] <= 8 * len(members) * (allowance + _EPS):
            return self.report(with_members)
        coupling = (basis / np.sqrt(room)).T @ N[members][:, rest]
        if len(kept) == 0:
            return True
        slack = 1 - np.einsum("ij,ij->j", coupling, coupling)
        # With z = (I − N_TT)⁻¹ N_Tl, an error e in each entry of N moves an entry of
        # the reduced matrix by at most e (1 + sqrt(|T|) ‖z‖)², to first order.
        squares = (coupling / np.sqrt(room)[:, None]) ** 2
        solution = np.sqrt(len(members) * float(squares.sum(axis=0).max()))
        allowance = 2 * (allowance + 4 * _EPS) * (1 + solution) ** 2
        if slack.min() <= 8 * allowance:
            return self.report([*with_members, int(kept[slack.argmin()])])
        allowance /= float(slack.min())
        reduced = np.empty((len(kept), len(kept)))
        largest = kernel.include(
            N,
            np.flatnonzero(rest),
            np.ascontiguousarray(coupling),
            1 / np.sqrt(slack),
            reduced,
        )
        left = m - len(members)
        return self.run(reduced, left, kept, with_members, allowance, largest)
