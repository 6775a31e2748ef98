"""Depth-first proof that no k-set is above τ, in slices that can be resumed.

The kernel answers one question: is there a k-set S among some features with λ(S) > τ?
Let P be the features chosen so far, λ(P) < τ, and B = A + A_·P (τI − A_PP)^{-1} A_P·.
By the Schur complement λ(P ∪ T) > τ exactly when λmax(B_TT) > τ, so the rest of the
problem is again sparse PCA at the same τ, on B with m = k − |P|. A node does, in turn:

- **test**: a diagonal entry that is not below τ ends the search. For m = 2 the pairs
  decide, exactly;
- **peel**: with u = upper[k − 1] ≤ τ, drop feature i if the m − 1 largest squares of
  its row sum to at most (τ − B_ii)(τ − u); repeat until nothing changes;
- **factorise**: if at most 2m features stay and τI − B is positive definite, close;
- **suffix bounds**: bound the q-sets of each suffix of the order, the last first, by
  λmax [[B_tt, r], [r, w]], with r² the sum of the q − 1 largest squares of the row
  within the suffix and w the bound on (q − 1)-sets after t. They are lowered to
  upper[|P| + q] for q < m where that is at most τ;
- **branch**: feature t is chosen if the bound on the m-sets that it begins is above τ;
  the features after it stay if the *sum* lets them.

**Sum.** Choosing t adds cc', c = B_·t / sqrt(τ − B_tt), to B, so opt_B'(q) ≤ opt_B(q) +
the q largest c_j². With q = m − 1 a feature outside the q largest takes the place of
the smallest of them; it stays only if that bound is then above τ. This saves time
(Model 1, k = 5: 14 s become 8 s) and hardly a node, so a checker goes without it.

The order of the features is made once, at the root, by their 2×2 bounds. A count of the
nodes is all that a checker needs: it repeats the recursion.

*Why.* **Chain.** Let w' = upper[|P| + q] ≤ τ. At the level w' in place of τ no set P ∪
Q, |Q| = q, is above w', so λmax(B(w')_QQ) ≤ w', and B(τ) ⪯ B(w') because w' ≤ τ. **Peel
and suffix bounds**: split a unit vector into its i-th entry and the rest R; then
λmax(B_TT) ≤ λmax [[B_ii, ‖B_iR‖], [‖B_iR‖, λmax(B_RR)]]. ∎ The chain needs τ ≥ upper[k
− 1]: then every proper subset T of a k-set S has λ(T) ≤ τ. Below it nothing is peeled
or lowered.

**Unfinished trees.** Let w ≥ τ bound λmax(B_TT) of an open node. At level w in place of
τ B(w) ⪯ B(τ), so λmax(B(w)_TT) ≤ w and λ(P ∪ T) ≤ w. So opt(k) is at most the largest
suffix bound that is open, or τ.

**Groups.** If a set may have at most m_g features of group g, all subsets of such a set
keep the limit, too, so every line holds with opt for those sets; a feature whose group
is full is in no set that the node stands for. **Root.** If S must contain R, read
opt(q) as the largest λ of q-sets that contain R. The search begins at P = R.

Rounding. Let S be a k-set above τ, d_i = τ − A_ii > 0 and D = diag(d_i). As τI − A is
positive semidefinite on every proper subset of S, |B_ij| ≤ sqrt(d_i d_j) at every node
on the way to S, and eliminating up to k features in floating point is exact for a
matrix A + E with

    |E_ij| ≤ (k + 2) u sqrt(d_i d_j)      (u = eps / 2; Higham 2002, Theorem 10.3).

A Cholesky test of up to 2k features adds (2k + 2) u sqrt(d_i d_j) in the same sense.
The bounds are sums and 2×2 roots of numbers that lie between the diagonal of B and τ;
each nesting of q ≤ k roots errs by 4u, each sum of q squares by (q + 4) u, relative to
|τ| or to the least d_i among the features in question, which is at most D. Together S
is lost only if

    λ(S) ≤ τ + c eps (|τ| + x'Dx),      c = k (k + 2) / 2 + k (k + 1) + 3k + 4,

with x the unit eigenvector of A_SS, because (Σ sqrt(d_i) |x_i|)² ≤ k x'Dx. Finally x'Dx
= τ − Σ A_ii x_i² ≤ τ − min A_ii, and c ≤ 2 (k + 2)²: half of `checker.allowance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..validation import FloatArray, Indices


def root_order(matrix: FloatArray, k: int, tau: float) -> Indices:
    """Return the features by the 2×2 bound of their k-sets, best first."""
    squares = matrix * matrix
    squares.flat[:: len(matrix) + 1] = 0.0
    if k - 1 < len(matrix):
        squares = np.partition(squares, len(matrix) - k + 1, axis=1)[:, 1 - k :]
    half = (matrix.diagonal() - tau) / 2
    score = half + np.sqrt(half * half + squares.sum(axis=1))
    return np.argsort(-score, kind="stable")


class Tree:
    """One resumable search for a k-set above τ, by positions in the matrix.

    Parameters
    ----------
    matrix : (n, n) array
    upper : (k + 1,) array
        upper[q] ≥ opt(q) for q < k; infinite if there is no bound.
    root : indices
        Features that every set must contain.
    label, room : arrays, optional
        The group of each feature, −1 for none, and the places in each group.
    memory : int
        Most bytes for the matrices of the open levels.
    lists : int
        List up to so many sets above τ instead of ending at the first. This needs
        τ ≥ upper[k − 1] and k ≥ 2: then no smaller set is above τ.

    Attributes
    ----------
    closed : bool
        No set is above τ, or all are listed.
    found : indices or None
        A set above τ, or at τ by rounding; it may have fewer than k features.
    failed : str
        Why the search cannot go on: "memory", or "list" if the list is full.
    """

    def __init__(
        self,
        matrix: FloatArray,
        k: int,
        tau: float,
        upper: FloatArray,
        *,
        root: Sequence[int] | Indices = (),
        label: Indices | None = None,
        room: Indices | None = None,
        memory: int = 2**30,
        lists: int = 0,
    ) -> None:
        self.tau, self._most = tau, memory // 8
        self._again = partial(
            Tree, matrix, k, root=root, label=label, room=room, memory=memory
        )
        if len(upper) != k + 1:
            raise ValueError(f"upper has {len(upper)} bounds and must have {k + 1}")
        self._upper = upper
        self.closed, self.failed = False, ""
        self.found: Indices | None = None
        self._root = np.asarray(root, dtype=np.int64)
        k -= len(self._root)
        self._state = np.zeros(6, dtype=np.int64)
        self._state[0] = -1
        self._listed = np.zeros((lists, max(k, 1)), dtype=np.int64)
        if label is None or room is None:
            label, room = np.full(len(matrix), -1), np.zeros(1, dtype=np.int64)
        taken = label[self._root]
        room = room - np.bincount(taken[taken >= 0], minlength=len(room))
        rest = (label < 0) | (room[label] > 0)
        rest[self._root] = False
        self._columns = np.flatnonzero(rest)
        reduced = self._reduced(matrix)
        if reduced is None:
            self.found = self._root
        elif len(reduced) < k or k == 0 or (room < 0).any():
            self.closed = True
        elif k == 1:
            best = int(reduced.diagonal().argmax())
            self.closed = bool(reduced[best, best] < tau)
            if not self.closed:
                self.found = np.append(self._root, self._columns[best])
        if reduced is None or self.ended:
            self._state[1] = 1
            return
        n, order = len(reduced), root_order(reduced, k, tau)
        self._columns = self._columns[order]
        self._problem = (
            reduced.take(order, 0).take(order, 1),
            k,
            tau,
            np.array(upper[len(self._root) :], dtype=np.float64),
            label[self._columns],
            room,
        )
        self._blocks = np.empty(max(64, min(4 * n * n, self._most)))
        self._levels = np.zeros((3, k), dtype=np.int64)
        self._labels = np.zeros((k, n), dtype=np.int64)
        self._first, self._rest = np.zeros((k, n)), np.zeros((k, n))
        self._set = np.zeros(k, dtype=np.int64)
        self._scratch = np.zeros((2, k + 1)), np.zeros(n, dtype=np.int64)

    def _reduced(self, matrix: FloatArray) -> FloatArray | None:
        """B for P = the root, on the other columns; None if λ(root) is not below τ."""
        rest, root = self._columns, self._root
        inner = matrix.take(rest, 0).take(rest, 1)
        if len(root) == 0:
            return inner
        shifted = self.tau * np.eye(len(root)) - matrix.take(root, 0).take(root, 1)
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return None
        W = np.linalg.solve(factor, matrix.take(root, 0).take(rest, 1))
        return inner + W.T @ W

    @property
    def order(self) -> Indices:
        """The root and then the features in the order of branching."""
        return np.append(self._root, self._columns)

    def at(self, tau: float) -> Tree:
        """Return a new search of the same features at another τ."""
        return self._again(tau, self._upper)

    @property
    def ended(self) -> bool:
        """Nothing is left to search, or it cannot be searched."""
        return self.closed or self.found is not None or bool(self.failed)

    @property
    def nodes(self) -> int:
        """Nodes so far, the root included; a checker counts the same."""
        return int(self._state[1])

    @property
    def entries(self) -> int:
        """Entries of matrices that were read: the work, see `linalg.cost`."""
        return int(self._state[2])

    @property
    def listed(self) -> Indices:
        """The sets above τ that were listed so far, one in each row."""
        sets = self._columns[self._listed[: self._state[5]]]
        root = np.broadcast_to(self._root, (len(sets), len(self._root)))
        return np.sort(np.concatenate([root, sets], axis=1), axis=1)

    def advance(self, entries: int) -> None:
        """Search on until about so many more entries were read."""
        from .._kernels import tree as kernel

        stop = self.entries + entries
        while not self.ended:
            code = kernel.explore(
                *self._problem,
                self._blocks,
                self._levels,
                self._labels,
                self._first,
                self._rest,
                *self._scratch,
                self._set,
                self._listed,
                self._state,
                stop - self.entries,
            )
            if code == kernel.PAUSED:
                return
            if code == kernel.MEMORY:
                needed = int(self._state[kernel.NEEDED])
                if needed > self._most:
                    self.failed = "memory"
                    return
                larger = np.empty(min(2 * needed, self._most))
                larger[: len(self._blocks)] = self._blocks
                self._blocks = larger
            elif code == kernel.FOUND:
                chosen = self._set[: self._state[kernel.FOUND_SIZE]]
                self.found = np.append(self._root, self._columns[chosen])
            elif code == kernel.FULL:
                self.failed = "list"
            else:
                self.closed = True

    def open_bound(self) -> float:
        """Return a bound on opt(k) over these features: the largest that is open, or τ.

        Infinite before the root is bounded, and if a set was found.
        """
        if self.closed:
            return self.tau
        if self.found is not None or self.nodes == 0:
            return float("inf")
        bound, (_, sizes, cursors) = self.tau, self._levels
        for level in range(int(self._state[0]) + 1):
            left = self._first[level, cursors[level] : sizes[level]]
            bound = max(bound, float(left.max(initial=bound)))
        return bound
