"""Lists of all sets that may lie in a k-set above τ: for flat and noisy matrices.

Let D = diag(τ − A_ii) be positive, O the rest of A, and θ_j = (j − 1) / (k − 1). A set
of j features is *strong* if θ_j D − O, restricted to it, is not positive definite. A
k-set with λ(S) ≥ τ is strong, as θ_k D − O = τI − A.

*A strong set of j + 1 > 2 features contains a strong set of j.* Add up the forms
θ_j D − O of its j + 1 subsets of j features: each D_ii is in j of them and each O_pq in
j − 1, so the sum is jθ_j D − (j − 1) O = (j − 1)(θ_{j+1} D − O). If all were positive
definite, so would be the sum. ∎

So all strong sets are found by adding one feature at a time, from all single features.
If none has k features, opt(k) < τ. Their number does not depend on how they are found,
and is what a checker repeats. The tree needs opt(k) to be well above opt(k − 1), and
this does not: Model 1, k = 6, needs 223,335 nodes at BASE, or 42,141 strong sets.

Rounding. With N = O scaled to D = I, a (j + 1)-set passes as positive definite by
Cholesky's method on I − N / θ_{j+1}. That is exact for entries that are off by at most
(j + 12) u (Higham 2002, Theorem 10.3), with the roundings of N and 1 / θ. With ρ = k (k
+ 12) u max D a k-set is not lost if a unit vector has x'(τI − A)x < −ρ: one of its
subsets has a unit vector with x'(θ_j D − O)x < −θ_j ρ, by the sum above. ρ is less than
`checker.allowance`.
"""

from __future__ import annotations

import numpy as np

from ..validation import FloatArray, Indices

ENTRIES = 2**16  # of a block of sets and features: it stays in cache


class Subsets:
    """One resumable search for a k-set above τ, with the attributes of `Tree`.

    Parameters
    ----------
    matrix : (n, n) array
    memory : int
        Most bytes for lists of sets.
    """

    def __init__(self, matrix: FloatArray, k: int, tau: float, memory: int) -> None:
        self.tau, self._k, self._memory = tau, k, memory
        self.closed, self.failed = False, ""
        self.found: Indices | None = None
        self.order: Indices = np.arange(len(matrix))
        self.nodes, self.entries = 0, 0
        slack = tau - matrix.diagonal()
        if not slack.min() > 0:
            self.failed = "diagonal"
            return
        root = np.sqrt(slack)
        self._scaled = matrix / root / root[:, None]
        np.fill_diagonal(self._scaled, 0.0)
        self._begin(self.order[:, None])

    def _begin(self, sets: Indices) -> None:
        """Take strong sets of one size, and begin to list those of one more."""
        self._sets, self._next, self._rows = sets, 0, 0
        self.nodes += len(sets)
        self._larger: list[Indices] = []
        j = sets.shape[1]
        self.closed = len(sets) == 0
        if j == self._k and not self.closed:
            self.found = sets[0]
        elif not self.closed:
            self._block = self._scaled * (-(self._k - 1) / j)

    @property
    def ended(self) -> bool:
        """Nothing is left to search, or it cannot be searched."""
        return self.closed or self.found is not None or bool(self.failed)

    def advance(self, entries: int) -> None:
        """Search on until about so many more entries were read."""
        stop, n = self.entries + entries, len(self.order)
        while not self.ended and self.entries < stop:
            size = self._sets.shape[1]
            sets = self._sets[self._next : self._next + max(1, ENTRIES // n)]
            new = self._enlarged(sets)
            self._next += len(sets)
            self._rows += len(new)
            self._larger.append(new)
            self.entries += len(sets) * n * size * (size + 3)
            if 32 * self._rows * (size + 1) > self._memory:
                self.failed = "memory"
            elif self._next >= len(self._sets):
                self._begin(different(np.concatenate(self._larger)))

    def _enlarged(self, sets: Indices) -> Indices:
        """Return strong sets with one feature more than one of `sets`.

        Row by row of Cholesky's method on I − N / θ; `norms` are what it takes off the
        last pivot. A pivot that is not positive makes them NaN, and all sets strong.
        """
        count, size = sets.shape
        every, norms = np.arange(count), np.zeros((count, len(self.order)))
        rows: list[FloatArray] = []
        with np.errstate(all="ignore"):
            for a in range(size):
                feature = sets[:, a]
                row = self._block[feature]
                for above in rows:
                    row -= above[every, feature][:, None] * above
                row /= np.sqrt(1.0 - norms[every, feature])[:, None]
                rows.append(row)
                norms += row * row
            is_strong = ~(norms < 1.0)
        is_strong[every[:, None], sets] = False
        at, feature = np.nonzero(is_strong)
        larger = np.column_stack([sets[at], feature])
        larger.sort(axis=1)
        return larger


def different(sets: Indices) -> Indices:
    """Return the rows that differ, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.search.subsets import different
    >>> different(np.array([[1, 2], [0, 1], [1, 2]])).tolist()
    [[0, 1], [1, 2]]
    """
    sets = sets[np.lexsort(sets.T[::-1])]
    is_new = np.ones(len(sets), dtype=bool)
    is_new[1:] = (sets[1:] != sets[:-1]).any(axis=1)
    return sets[is_new]
