"""The tree of a proof for loadings that are not negative, where raising is too much.

`docs/proof-format.md`, section 8, has the rule: a tree on the matrix whose negative
entries are raised to 0, in which a node may also be closed by numbers N ≥ 0 with
τI − A − N positive semidefinite. For up to four features there is such an N exactly if
no x ≥ 0 has more than τ; for more it is what the relaxation to doubly non-negative
matrices gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..limits import Budget, LimitReached
from ..numerics.linalg import leading_eigenvector, rayleigh
from ..numerics.rounding import larger_root
from ..rules import GroupLimits
from ..search.tree_log import ROOM, below, root_order
from .adaptive_screening import Candidates
from .nonnegative import nonnegative_loadings
from .proof_subject import Subject

_NEAR = 2.0**-34  # of |τ|: what τI − A − N has left
_STEPS, _LAST_STEPS = 200, 3_000  # of the splitting: of a node, and of a single set
_ZERO = 1e-9  # loadings that are none
_LARGEST = 40  # features of a node that N is looked for
_BETWEEN = 16  # nodes between two looks at the clock
_MOST_FEATURES = 400  # of a tree: each node has a matrix of them


class NotClosed(Exception):
    """A set is above τ, or there are too many nodes."""


def added_matrix(A: FloatArray, tau: float, steps: int) -> FloatArray | None:
    """Return N ≥ 0, 0 on its diagonal, with τI − A − N positive definite, if found.

    Two sets are to meet: positive semidefinite matrices, and those that are nowhere
    above C = τ'I − A, with the diagonal of it. Projections onto both, in turn, with
    their differences summed up (Douglas and Rachford), converge to a common point.

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
    for Y in _common_points(C, fixed, np.eye(len(A)), np.zeros_like(A), steps):
        if np.linalg.eigvalsh(Y)[0] >= -room:
            return _rest_of(C, Y)
    return None


def added_at_optimum(A: FloatArray, tau: float, steps: int) -> FloatArray | None:
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
    for Y in _common_points(C, fixed, basis, own, steps):
        N = _rest_of(C, Y)
        reached = (N @ x)[~held]
        rows = np.where(reached > 0, needed / np.where(reached > 0, reached, 1.0), 0.0)
        N[np.ix_(~held, held)] *= np.maximum(rows, 0.0)[:, None]
        N[np.ix_(held, ~held)] = N[np.ix_(~held, held)].T
        if np.linalg.eigvalsh(C - N)[0] >= -room:
            return N
    return None


def _common_points(
    C: FloatArray,
    fixed: NDArray[np.bool_],
    basis: FloatArray,
    own: FloatArray,
    steps: int,
) -> Iterator[FloatArray]:
    """Matrices Y ≤ C, equal to it where `fixed`, that come near semidefinite ones.

    These are `own` and a semidefinite form in the space of `basis`.
    """
    Y, Z = np.where(fixed, C, np.minimum(C, 0.0)), np.zeros_like(C)
    for step in range(steps):
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


class SignWriter:
    """Writes a tree at one τ for sets of k features, those to include among them.

    Parameters
    ----------
    raised, plain : (n, n) arrays
        With and without entries raised to 0: `include` first, then all others in the
        order of the tree.
    inside : int
        How many are to be included.
    k, tau :
        No set of k features has more than τ.
    at_root, within : (k,) arrays
        Bounds for fewer features, for x ≥ 0 and for all x; +inf where there is none.
    groups : sequence of GroupLimits
        Of the features beside `include`.
    most_nodes, budget :
        Of the tree.
    """

    def __init__(
        self,
        raised: FloatArray,
        plain: FloatArray,
        inside: int,
        k: int,
        tau: float,
        chains: tuple[FloatArray, FloatArray],
        groups: Sequence[GroupLimits],
        limits: tuple[int, Budget],
    ) -> None:
        self.plain, self.raised, self.inside, self.k = plain, raised, inside, k
        self.tau, self.least = tau, below(tau)
        self.at_root, self.within = chains
        self.groups = list(groups)
        self.most_nodes, self.budget = limits
        self.words: list[str] = []
        self.added: list[tuple[list[int], list[str]]] = []
        self.nodes = 0

    def write(self, unit: float) -> tuple[str, list[tuple[list[int], list[str]]]]:
        """Return the text, and rows and numbers of what is added, in another unit."""
        self.unit = unit
        B: FloatArray | None = self.raised
        for _ in range(self.inside):
            B = None if B is None else self._chosen(B, 0, np.arange(1, len(B)))
        n = len(self.raised) - self.inside
        rooms = [one.room.copy() for one in self.groups]
        P, m = list(range(self.inside)), self.k - self.inside
        self._node(P, B, np.arange(n), m, rooms)
        return " ".join(self.words), self.added

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
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise NotClosed
        if self.nodes % _BETWEEN == 0:
            self.budget.check()
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
        A = self.plain[np.ix_(rows, rows)]
        N = added_matrix(A, self.tau, min(steps, _STEPS))
        if N is None and steps > _STEPS:  # one set: near τ, or hard
            N = added_at_optimum(A, self.tau, steps)
            N = added_matrix(A, self.tau, steps) if N is None else N
        if N is None:
            return False
        numbers = N[np.triu_indices(len(N), 1)] * self.unit
        self.words.append(f"N{len(self.added)}")
        self.added.append((rows, [float(x).hex() for x in numbers]))
        return True

    def _open(self, B: FloatArray, P: list[int], m: int) -> NDArray[np.intp]:
        """The features that suffix bounds do not close."""
        chain = self.within if P else self.at_root
        if m == 1:
            return np.flatnonzero(~(np.diagonal(B) <= self.least))
        n, found = len(B), []
        later = np.full(m + 1, -np.inf)
        for t in range(n - 1, -1, -1):
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
    candidates: Candidates,
    inside: NDArray[np.intp],
    k: int,
    tau: float,
    known: tuple[FloatArray, FloatArray],
    limits: tuple[int, Budget],
) -> tuple[dict[str, Any], int] | None:
    """Return a record for no x ≥ 0 above τ on k features, and the nodes of its tree.

    None if a set is above τ, or too near, or the nodes or the time do not suffice.
    All sets have the features `inside`. `known` are bounds for fewer features: for all
    x, and for x ≥ 0. Positions are those of the subject's features, values in units of
    the candidates; `limits` are the nodes of the tree and the budget of all.
    """
    within, by_signs = known
    at_root = within if len(inside) else np.minimum(within, by_signs)
    budget, unit = limits[1], candidates.unit
    others = np.setdiff1d(np.arange(subject.cov.n_features), inside)
    try:
        budget.check()
        if not len(inside):
            others = candidates.survivors(k, below(tau), float(at_root[k - 1]))
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
            (at_root, within),
            [GroupLimits(one.label[order], one.room) for one in groups],
            limits,
        )
        text, added = writer.write(unit)
    except (NotClosed, LimitReached):
        return None
    budget.nodes += writer.nodes
    said = [
        {"features": names[list(held)].tolist(), "numbers": numbers}
        for held, numbers in added
    ]
    record = {"rule": "signs", "features": names[len(inside) :].tolist(), "tree": text}
    return {**record, "added": said}, writer.nodes
