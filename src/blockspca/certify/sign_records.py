"""The tree of a proof for loadings that are not negative, where raising is too much.

`docs/proof-format.md`, section 8, has the rule: a tree on the matrix whose negative
entries are raised to 0, in which a node may also be closed by numbers N ≥ 0 with
τI − A − N positive semidefinite. For up to four features there is such an N exactly if
no x ≥ 0 has more than τ; for more it is what the relaxation to doubly non-negative
matrices gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits
from ..limits import LimitReached
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..numerics.rounding import larger_root
from ..search.tree_log import ROOM, below, root_order
from .adaptive_screening import AdaptiveScreening
from .nonnegative import nonnegative_loadings
from .proof_subject import Subject
from .refusals import NotClosed, TreeLimits

_NEAR = 2.0**-34  # of |τ|: what τI − A − N has left
_STEPS, _LAST_STEPS = 200, 3_000  # of the splitting: of a node, and of a single set
_ZERO = 1e-9  # loadings that are none
_LARGEST = 40  # features of a node that N is looked for
# Of the steps for one set, each an eigendecomposition: all of them up to 40 features,
# and 24 for 200, which are a quarter of a second.
_WORK = _LAST_STEPS * _LARGEST**3
_MOST_FEATURES = 400  # of a tree: each node has a matrix of them


@dataclass(frozen=True)
class SmallerBounds:
    """Bounds for fewer features: entry q bounds sets of q, +inf where there is none."""

    of_all: FloatArray  #: for all x
    of_signs: FloatArray  #: for x ≥ 0


def added_matrix(
    A: FloatArray, tau: float, steps: int, check: Callable[[], None] = lambda: None
) -> FloatArray | None:
    """Return N ≥ 0, 0 on its diagonal, with τI − A − N positive definite, if found.

    Two sets are to meet: positive semidefinite matrices, and those that are nowhere
    above C = τ'I − A, with the diagonal of it. Projections onto both, in turn, with
    their differences summed up (Douglas and Rachford), converge to a common point.
    Before each of the steps `check` is called, which may raise.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, -3.0], [-3.0, 1.0]])
    >>> added_matrix(A, 1.5, 100).round(1).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    >>> added_matrix(-A, 1.5, 100) is None
    True
    """
    room = _NEAR * abs(tau)
    C = (tau - 2 * room) * np.eye(len(A)) - A
    if not (np.diagonal(C) > 0).all():
        return None
    fixed = np.eye(len(A), dtype=bool)
    basis, own = np.eye(len(A)), np.zeros_like(A)
    for Y in _common_points(steps, check, C, fixed, basis, own):
        if np.linalg.eigvalsh(Y)[0] >= -room:
            return _rest_of(C, Y)
    return None


def added_at_optimum(
    A: FloatArray, tau: float, steps: int, check: Callable[[], None] = lambda: None
) -> FloatArray | None:
    """As `added_matrix`, where the best x ≥ 0 comes up to τ and has zeros.

    N is 0 where x has both loadings, and Nx = −Ax where it has none, so that (A + N)x
    is a multiple of x; what is orthogonal to x is then as far from τ as it happens to
    be.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 1.0, -1.0], [1.0, 2.0, 0.0], [-1.0, 0.0, 1.0]])
    >>> N = added_at_optimum(A, 3 + 1e-9, 100)
    >>> bool(np.linalg.eigvalsh(A + N)[-1] < 3 + 1e-9)
    True
    """
    room = _NEAR * abs(tau)
    C = (tau - 2 * room) * np.eye(len(A)) - A
    x = nonnegative_loadings(A)
    held = x > _ZERO
    leading = leading_eigenvector(A[np.ix_(held, held)])
    if held.all() or not (leading.min() > 0 or leading.max() < 0):
        return None
    x = np.zeros(len(A))
    x[held] = np.abs(leading)
    value = rayleigh(A, x)
    needed = -(A @ x)[~held]
    if value > tau - 2 * room or needed.min() < -_ZERO * abs(tau):
        return None
    fixed = np.outer(held, held) | np.eye(len(A), dtype=bool)
    basis = np.linalg.qr(np.column_stack([x, np.eye(len(A))]))[0][:, 1 : len(A)]
    own = (tau - 2 * room - value) * np.outer(x, x)
    for Y in _common_points(steps, check, C, fixed, basis, own):
        N = _rest_of(C, Y)
        reached = (N @ x)[~held]
        rows = np.where(reached > 0, needed / np.where(reached > 0, reached, 1.0), 0.0)
        N[np.ix_(~held, held)] *= np.maximum(rows, 0.0)[:, None]
        N[np.ix_(held, ~held)] = N[np.ix_(~held, held)].T
        if np.linalg.eigvalsh(C - N)[0] >= -room:
            return N
    return None


def _common_points(
    steps: int,
    check: Callable[[], None],
    C: FloatArray,
    fixed: NDArray[np.bool_],
    basis: FloatArray,
    own: FloatArray,
) -> Iterator[FloatArray]:
    """Matrices Y ≤ C, equal to it where `fixed`, that come near semidefinite ones.

    These are `own` and a semidefinite form in the space of `basis`.
    """
    Y, Z = np.where(fixed, C, np.minimum(C, 0.0)), np.zeros_like(C)
    for step in range(steps):
        check()
        values, vectors = np.linalg.eigh(basis.T @ (Y - Z) @ basis)
        vectors = basis @ vectors
        X = own + (vectors * np.maximum(values, 0.0)) @ vectors.T
        Y = np.where(fixed, C, np.minimum(X + Z, C))
        Z += X - Y
        if step % 5 == 0:
            yield (Y + Y.T) / 2


def _rest_of(C: FloatArray, Y: FloatArray) -> FloatArray:
    """C − Y ≥ 0, and 0 on its diagonal."""
    found = np.maximum(C - Y, 0.0)
    np.fill_diagonal(found, 0.0)
    return found


@dataclass
class SignWriter:
    """Writes a tree at one τ for sets of k features, those to include among them."""

    #: `raised`, `plain`: (n, n) arrays, with and without entries raised to 0; `include`
    #: first, then all others in the order of the tree.
    raised: FloatArray
    plain: FloatArray
    inside: int  #: how many are to be included
    #: `k`, `tau`: no set of k features has more than τ.
    k: int
    tau: float
    #: For fewer than k features. Those for x ≥ 0 are of use at the root alone.
    known: SmallerBounds
    groups: Sequence[GroupLimits]  #: of the features beside `include`
    #: The tree ends with `NotClosed` or `LimitReached` where they do not suffice.
    limits: TreeLimits
    words: list[str] = field(default_factory=list, init=False)  #: the text of the tree
    #: Rows, and the N of each: what is above its diagonal.
    added: list[tuple[list[int], FloatArray]] = field(default_factory=list, init=False)
    nodes: int = field(default=0, init=False)  #: begun so far, also of an open tree

    def __post_init__(self) -> None:
        self.least = below(self.tau)
        self.within = self.at_root = self.known.of_all
        if not self.inside:
            self.at_root = np.minimum(self.known.of_all, self.known.of_signs)

    def write(self) -> str:
        """Return the text; `added` has the matrices that it refers to."""
        B: FloatArray | None = self.raised
        for _ in range(self.inside):
            B = None if B is None else self._chosen(B, 0, np.arange(1, len(B)))
        n = len(self.raised) - self.inside
        rooms = [one.room.copy() for one in self.groups]
        P, m = list(range(self.inside)), self.k - self.inside
        self._node(P, B, np.arange(n), m, rooms)
        return " ".join(self.words)

    def _chosen(
        self, B: FloatArray, t: int, after: NDArray[np.intp]
    ) -> FloatArray | None:
        if not B[t, t] < self.least:
            return None
        row = B[t, after]
        return B[np.ix_(after, after)] + np.outer(row, row) / (self.tau - B[t, t])

    def _node(
        self,
        P: list[int],
        B: FloatArray | None,
        F: NDArray[np.intp],
        m: int,
        rooms: list[NDArray[np.int64]],
    ) -> None:
        if self.nodes >= self.limits.most_nodes:
            raise NotClosed
        self.nodes += 1
        self.limits.budget.check()
        if len(F) < m or (m == 0 and B is not None):
            self.words.append("L")
            return
        if m == 0:
            if not self._try_to_add(P, _LAST_STEPS):
                raise NotClosed
            return
        if B is not None and m >= 2 and not np.diagonal(B).max() <= self.least:
            B = None
        opened = np.arange(len(F) - m + 1) if B is None else self._open(B, P, m)
        if len(opened) > (B is not None) and len(P) + len(F) <= _LARGEST:
            rows = [*P, *(self.inside + F).tolist()]
            if self._try_to_add(rows, _STEPS):
                return
        self.words += [f"S{len(opened)}", *(str(F[t]) for t in opened)]
        for t in opened.tolist():
            left = [room.copy() for room in rooms]
            for one, room in zip(self.groups, left, strict=True):
                if one.label[F[t]] >= 0:
                    room[one.label[F[t]]] -= 1
            after = np.array(
                [s for s in range(t + 1, len(F)) if self._fits(F[s], left)], dtype=int
            )
            child = None if B is None else self._chosen(B, t, after)
            rows = [*P, self.inside + int(F[t])]
            self._node(rows, child, F[after], m - 1, left)

    def _fits(self, position: int, rooms: list[NDArray[np.int64]]) -> bool:
        labels = (one.label[position] for one in self.groups)
        return all(g < 0 or room[g] > 0 for g, room in zip(labels, rooms, strict=True))

    def _try_to_add(self, rows: list[int], steps: int) -> bool:
        """Close a node by N, if there is one for all of its features."""
        A, check = self.plain[np.ix_(rows, rows)], self.limits.budget.check
        is_one_set = steps > _STEPS
        steps = min(steps, _WORK // len(rows) ** 3)
        first = min(steps, _STEPS)
        N = added_matrix(A, self.tau, first, check)
        if N is None and is_one_set:  # near τ, or hard
            N = added_at_optimum(A, self.tau, steps, check)
            if N is None and steps > first:
                N = added_matrix(A, self.tau, steps, check)
        if N is None:
            return False
        self.words.append(f"N{len(self.added)}")
        self.added.append((rows, N[np.triu_indices(len(N), 1)]))
        return True

    def _open(self, B: FloatArray, P: list[int], m: int) -> NDArray[np.intp]:
        """The features that suffix bounds do not close."""
        chain = self.within if P else self.at_root
        if m == 1:
            return np.flatnonzero(~(np.diagonal(B) <= self.least))
        n, found = len(B), []
        later = np.full(m + 1, -np.inf)
        for t in range(n - 1, -1, -1):
            self.limits.budget.check()  # hundreds of features take a second
            own = float(B[t, t])
            squares = -np.sort(-np.square(B[t, t + 1 :]))[: m - 1]
            sums, first = np.cumsum(squares), np.full(m + 1, -np.inf)
            first[1] = own
            for q in range(2, min(m, n - t) + 1):
                r2 = np.asarray(sums[q - 2])
                first[q] = float(larger_root(np.asarray(own), r2, float(later[q - 1])))
            later = np.maximum(later, first)
            for q in range(1, m):
                cap = chain[len(P) + q]
                if cap <= self.least:
                    later[q] = min(later[q], cap)
            if first[m] > self.least - 4 * ROOM * abs(self.tau):
                found.append(t)
        return np.array(found[::-1], dtype=np.intp)


def sign_record(
    subject: Subject,
    candidates: AdaptiveScreening,
    inside: NDArray[np.intp],
    k: int,
    tau: float,
    known: SmallerBounds,
    limits: TreeLimits,
) -> tuple[dict[str, Any], int] | None:
    """Return a record for no x ≥ 0 above τ on k features, and the nodes of its tree.

    None if a set is above τ, or too near, or the nodes or the time do not suffice.
    All sets have the features `inside`, and `known` is of fewer features. Positions are
    those of the subject's features, values in units of the candidates. Nodes are
    charged to the budget whether or not the tree is closed.
    """
    budget, unit = limits.budget, candidates.unit
    others = np.setdiff1d(np.arange(subject.cov.n_features), inside)
    try:
        budget.check()
        if not len(inside):
            previous = min(known.of_all[k - 1], known.of_signs[k - 1])
            others = candidates.survivors(k, below(tau), float(previous))
        groups = [
            one.after(inside, others)
            for one in (subject.groups, subject.beside)
            if one is not None
        ]
        fits = np.ones(len(others), dtype=bool)
        for one in groups:
            fits &= ~one.full()
        if fits.sum() > _MOST_FEATURES:
            return None
        order = np.flatnonzero(fits)
        matrix = subject.cov.submatrix(others[order]) / unit
        order = order[root_order(matrix, k, tau, tau)]
        rows = np.concatenate([inside, others[order]])
        names = subject.features[rows]
        writer = SignWriter(
            subject.cov.submatrix(rows) / unit,
            subject.whole.cov.submatrix(names) / unit,
            len(inside),
            k,
            tau,
            known,
            [one.among(order) for one in groups],
            limits,
        )
        try:
            text = writer.write()
        finally:
            budget.nodes += writer.nodes
    except (NotClosed, LimitReached):
        return None
    said = [
        {
            "features": names[held].tolist(),
            "numbers": [float(x).hex() for x in numbers * unit],
        }
        for held, numbers in writer.added
    ]
    record = {"rule": "signs", "features": names[len(inside) :].tolist(), "tree": text}
    return {**record, "added": said}, writer.nodes
