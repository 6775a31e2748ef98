"""The best supports of 1, …, k_max features, before and during the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..call import Run
from ..constraints.rules import Rules
from ..covariance.covariance import Covariance
from ..linalg import cost
from ..linalg.eigen import with_sign
from ..progress import Event
from ..validation import FloatArray, Indices
from .moves import MOST_SWAPS, extended, swapped
from .pool import Pool

ROWS = 100  # rows of A to try as supports if many features survive the screening
STARTS = 8  # the best rows, which swaps then improve


@dataclass(frozen=True, eq=False)
class Support:
    """Features in ascending order, a unit vector x on them, and x'Ax."""

    features: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    x: FloatArray = field(default_factory=lambda: np.empty(0))
    value: float = -np.inf


class Supports:
    """Supports of 1, …, k_max features; `best[k]` has k features.

    Parameters
    ----------
    first : array of int
        The first features of the pool.
    start : sequences of features
        Supports to start from, each for its own number of features.
    """

    def __init__(
        self,
        cov: Covariance,
        k_max: int,
        rules: Rules,
        run: Run,
        first: Indices,
        start: Sequence[Indices] = (),
    ) -> None:
        self._run, self.k_max = run, k_max
        self.pool = Pool(cov, rules)
        # Groups may leave too little room among the first features.
        if not rules.is_free:
            order = np.argsort(-cov.diagonal(), kind="stable")
            self._add(rules.first(order, k_max))
        self._add(first)
        self._start = {len(features): features for features in start}
        for features in start:
            self._add(features)
        self.best = [Support()] * (k_max + 1)
        #: the support of k − 1 from which `follow` made the support of k
        self._origin: list[Support | None] = [None] * (k_max + 1)
        self._rows_tried = 0

    def _add(self, features: Indices) -> int:
        """Add features to the pool and count the work."""
        before = len(self.pool)
        new = self.pool.add(features)
        samples = self.pool.cov.n_samples or 1
        self._run.spend(cost.product(new, samples, before + new))
        return new

    def find(self) -> None:
        """Find supports of 1, …, k_max features, each from the previous one."""
        for k in range(max(1, len(self.pool.rules.root)), self.k_max + 1):
            self.follow(k)

    def follow(self, k: int) -> None:
        """Extend the support of k − 1 and swap, unless that has been done already.

        If the call is over, k gets the support of k − 1 and any further feature.
        """
        last = self.best[k - 1]
        if self._origin[k] is not last:
            self._extend(k, last)
            self._origin[k] = last  # at the end: Ctrl-C may come before

    def _extend(self, k: int, last: Support) -> None:
        is_over = self._run.over() and len(last.features) > 0
        if is_over and k < self.k_max:
            if self.best[k].value < last.value or len(self.best[k].features) == 0:
                self._take_over(k)
            return
        positions = self.pool.positions(last.features)
        pair = (last.value, last.x) if len(last.x) else None
        positions = extended(self.pool.matrix, positions, k, self.pool.rules, pair)
        self._offer(k, positions, 0 if is_over else MOST_SWAPS)
        if k in self._start:
            self.offer(k, self._start[k])
        if self.best[k].value < last.value:  # by rounding
            self._take_over(k)
        self._run.tell(
            Event(
                stage="supports",
                done=k,
                total=self.k_max,
                k=k,
                objective=self.best[k].value,
            )
        )

    def offer(self, k: int, features: Indices) -> bool:
        """Extend a set to k features and swap; keep it if it is better than best[k]."""
        self._add(features)
        positions = self.pool.positions(features)
        return self._offer(k, extended(self.pool.matrix, positions, k, self.pool.rules))

    def admit(self, k: int, features: Indices) -> bool:
        """Add features to the pool; return True if swaps with them improve best[k]."""
        if self._add(features) == 0:
            return False
        return self._offer(k, self.pool.positions(self.best[k].features))

    def _offer(self, k: int, positions: Indices, swaps: int = MOST_SWAPS) -> bool:
        pool = self.pool
        positions, value, x, rounds = swapped(pool.matrix, positions, pool.rules, swaps)
        self._run.spend(cost.swaps(rounds * k * (k + 2) * len(pool)))
        if not value > self.best[k].value:
            return False
        features = pool.features[positions]
        order = np.argsort(features)
        self.best[k] = Support(features[order], x[order], value)
        return True

    def _take_over(self, k: int) -> None:
        """Give k the support of k − 1 and one more feature, with a loading of 0."""
        pool, last = self.pool, self.best[k - 1]
        positions = pool.positions(last.features)
        free = np.broadcast_to(pool.rules.open_to(positions), len(pool)).copy()
        free[positions] = False
        features = np.append(last.features, pool.features[free.argmax()])
        order = np.argsort(features)
        x = np.append(last.x, 0.0)
        self.best[k] = Support(features[order], x[order], last.value)

    def try_rows(self, k: int, supports: Indices, starts: int = STARTS) -> bool:
        """Try the rows of `supports`, once for each k, and swap from the best."""
        if self._rows_tried >= k or not (len(supports) and self.pool.rules.is_free):
            return False
        self._rows_tried = k
        supports = np.unique(np.sort(supports, axis=1), axis=0)
        self._add(np.unique(supports))
        positions = self.pool.positions(supports)
        self._run.spend(len(supports) * cost.eigen(k))
        blocks = self.pool.matrix[positions[:, :, None], positions[:, None, :]]
        values = np.linalg.eigvalsh(blocks)[:, -1]
        order = np.argsort(-values, kind="stable")[:starts]
        better = [self._offer(k, positions[row]) for row in order]
        return any(better)

    def objective(self, k: int) -> tuple[FloatArray, float]:
        """Return x and x'Ax of best[k], computed from A."""
        best = self.best[k]
        x = with_sign(best.x / np.linalg.norm(best.x))
        return x, float(x @ (self.pool.submatrix(best.features) @ x))
