"""Lower λmax of the entry dual's matrix by proximal steps, each solved for a density.

The dual is min λmax(M(t, V)) over t = w² ≥ 0 and |V_ij| ≤ 1, with

    M = A − V ∘ ww' + Diag(g_i t_i),

whose value is the largest, over densities X ⪰ 0, tr X = 1, of ⟨M, X⟩.  A proximal step
from (t₀, V₀) adds what it costs to move, ‖(V − V₀) ∘ ww'‖²/(2σ) + ‖t − t₀‖²/(2s), and
then the order of min and max does not matter: for a given X

    V = clip(V₀ + σ X/ww'),    t = t₀ − s r,    r_i = g_i X_ii − Σ_j V_ij X_ij w_j/w_i,

so that X is the only unknown.  It is YY' with few columns, found by L-BFGS on the
sphere ‖Y‖ = 1.  With U = V ∘ ww' and Δ = t − t₀ what it maximises is

    ⟨A − U + Diag(g t₀), X⟩ + ‖U − U₀‖²/(2σ) + r'Δ + ‖Δ‖²/(2s),

and the slope is 2MY, with d(V_ij X_ij)/dX_ij for V_ij where it is multiplied by Δ.

That is the method of multipliers for k Diag(X) ⪰ |X|.  Smoothing λmax moves the entries
of U by some thousandths a step, a proximal step as far as they have to go: srbct_khan
(correlation, 2,308 features) had a gap of 2.8 % for k = 50 and 11.9 % for k = 300 after
six and nine seconds of smoothed steps; as many of proximal ones leave 0.2 and 3.5 %.

Any point gives a bound: nothing here has to be exact, and all of it is in single
precision.  Rows are taken in stripes of fixed size, so that the result does not depend
on the number of threads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..._kernels.loading import load
from ..._validation import FloatArray
from ...limits import Deadline
from ...numerics.threads import proof_threads
from .ascent import Point, two_loops
from .matrix import DualMatrix

_SMALL = 80  # features of a core, up to which all eigenvalues take no longer
# Where a gap is named below, it is that of CovColon, k = 50, with half or twice of the
# number: as they are it is 0.015 %, after 45 evaluations in 1.0 s. It scatters by that
# much where anything is changed, so that only larger differences say something.
_COLUMNS = 12  # of Y
_STRIPE = 256  # rows: with up to 2,500 columns in single precision 2.5 MB, of one core
# σ and s, in units of what U and t are beside X and r: the objective, and a k-th of it.
# A third or three times as much takes as long; far more leaves X undecided.
_REACH = 2.0
# Of L-BFGS for one proximal step: X need not be exact, and twice as many take longer,
# by a quarter, for the same gap.
_INNER_STEPS = 25
_MEMORY = 8  # pairs of L-BFGS: a few columns each
# Of a line search, as usual for L-BFGS, whose first step is seldom refused.
_TRIALS = 6
_SHRINK = 0.3
_SUFFICIENT = 1e-4
_MOST_CHANGE = 0.3  # of t, by one step: with 0.6, 0.050 %
_NEW = 0.1  # of Y, that the leading eigenvector of M is added with: with 0.3, 0.063 %
# How wide the first density is, relative, and what is added to it so that no direction
# is out of reach: with 0.001, 0.060 %.
_FIRST_WIDTH = 0.01
_NOISE = 0.01
# Proximal steps over which progress is looked at, and what of the gap those have to
# gain. With 2 steps 0.067 %, with 8 0.006 % in 1.9 s; with 0.1 0.051 %.
_STALE = 4
_PROGRESS = 0.03
_FEW = 2  # the same for whether a larger core is worth more, and
_SLOW = 0.3  # what those have to gain
_LEAST_GAP = 1e-6  # relative, below which single precision gains nothing
_WORSE = 2.0  # times the gap, from which a step went too far
_MU = 1.5e-3  # relative, for the eigenvalues that count
_OUTSIDE = 0.04  # of the density; more calls for a larger core
_OUTSIDE_AT_END = 0.002  # the same where steps gain no more
_LEAST_WEIGHT = 1e-4  # beside the largest
_PART = 4  # steps of an ascent that take as long as a proximal one

Part = TypeVar("Part")


def work(matrix: DualMatrix) -> float:
    """What a step takes, in entries of a core.

    An entry beside the core is multiplied three times, by itself; rows of Y are what
    L-BFGS has its passes over.
    """
    return len(matrix.core) ** 2 + 14.0 * len(matrix.pairs) + 150.0 * matrix.order


def is_worthwhile(matrix: DualMatrix, deadline: Deadline) -> bool:
    """Whether the core is large, and the kernels are there before the time is up."""
    if len(matrix.core) <= _SMALL:
        return False
    # Without end, as where steps are counted, it is waited for here and now.
    return deadline.loads(load, "entry_shares")


class Proximal:
    """One core, from a start to wherever time, the target or progress end it."""

    def __init__(
        self,
        matrix: DualMatrix,
        start: Point,
        target: float,
        may_grow: bool = False,
        enough: float = -np.inf,
        patience: float = 1.0,
    ) -> None:
        self.matrix, self.target, self.may_grow = matrix, target, may_grow
        self.enough, self.patience = max(enough, target), patience
        self.best = replace(start, shares=_single(start.shares))
        self.evaluations = 0
        self.density: FloatArray | None = None  # Y, where a run begins and ends
        m = len(matrix.core)
        self.stripes = [slice(i, min(i + _STRIPE, m)) for i in range(0, m, _STRIPE)]
        self.slopes = np.empty((m, m), np.float32)
        self.block = _single(matrix.block)
        self.reach = 1.0  # of σ and s, less where steps went too far
        self.pool: ThreadPoolExecutor | None = None

    def run(self, steps: int, deadline: Deadline) -> Point:
        """Take proximal steps; return the best point."""
        if not deadline.affords_step():
            return self.best
        threads = min(proof_threads(), len(self.stripes))
        if threads == 1:
            return self._run(steps, deadline)
        with ThreadPoolExecutor(threads) as self.pool:
            return self._run(steps, deadline)

    def _run(self, steps: int, deadline: Deadline) -> Point:
        # Weights are divided by, and raising one that is nothing costs nothing.
        w = np.maximum(self.best.weights, _LEAST_WEIGHT * self.best.weights.max())
        V = self.best.shares
        values, vectors = self._evaluated(w, V, None)
        Y = self._first_density(values, vectors)
        if self.density is not None and self.density.any():
            Y = _joined(self.density, vectors[:, -1])
        history = [self.best.value]
        for _ in range(max(1, steps // _PART)):
            if not deadline.affords_step() or self._is_done(history):
                break
            began = time.perf_counter()
            Y = self._density(Y, w, V, deadline)
            new_w, new_V = self._moved(Y, w, V)
            values, vectors = self._evaluated(new_w, new_V, Y)
            gap = self.best.value - self.target
            if values[-1] - self.target > _WORSE * max(gap, 0.0):
                # It went too far: back to the best point, with shorter steps.
                self.reach /= 4
                w, V = self.best.weights, self.best.shares
            else:
                w, V = new_w, new_V
            Y = _joined(Y, vectors[:, -1])
            history.append(self.best.value)
            deadline.step_took(time.perf_counter() - began)
        self.density = Y
        return self.best

    def _is_done(self, history: list[float]) -> bool:
        """Whether the value is low enough, or steps gain no more, or the core does."""
        gap = self.best.value - self.target
        if self.best.value <= self.enough or gap <= _LEAST_GAP * abs(self.target):
            return True
        if len(history) <= _FEW:
            return False
        gained = history[-_FEW - 1] - history[-1]
        outside = self._outside()
        if outside > (_OUTSIDE_AT_END if gained < _SLOW * gap else _OUTSIDE):
            return True  # a larger core gains more
        long_ago = history[max(0, len(history) - 1 - _STALE)]
        is_slow = long_ago - history[-1] < self.patience * _PROGRESS * gap
        return is_slow and len(history) > _STALE

    def _outside(self) -> float:
        """How much of the density is outside a core that could be larger."""
        if not self.may_grow or self.best.presence is None:
            return 0.0
        return 1.0 - float(self.best.presence[self.matrix.core].sum())

    def _evaluated(
        self, w: FloatArray, V: FloatArray, Y: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Leading eigenpairs at a point, which is kept if it is the best so far."""
        mu = _MU * abs(self.target)
        values, vectors = self.matrix.leading_pairs(w, V, mu)
        self.evaluations += 1
        if values[-1] < self.best.value:
            p = np.exp((values - values[-1]) / mu)
            presence = (vectors * vectors) @ (p / p.sum())
            if Y is not None:  # which knows how much of each there is
                presence = (presence + np.einsum("ij,ij->i", Y, Y)) / 2
            self.best = Point(w, V, float(values[-1]), presence)
        return values, vectors

    def _first_density(self, values: FloatArray, vectors: FloatArray) -> FloatArray:
        width = _FIRST_WIDTH * abs(self.target)
        p = np.exp((values - values[-1]) / width)
        columns = min(_COLUMNS, self.matrix.order)
        Y = np.random.default_rng(0).normal(size=(self.matrix.order, columns))
        Y *= _NOISE / np.linalg.norm(Y)
        known = min(columns, len(values))
        Y[:, :known] += (vectors * np.sqrt(p))[:, -known:]
        return np.asarray(Y / np.linalg.norm(Y))

    # -- one proximal step ---------------------------------------------------------

    @property
    def sigma(self) -> float:
        return self.reach * _REACH * abs(self.target)

    @property
    def sigma_t(self) -> float:
        """s, for t of a k-th of the objective."""
        largest = float(self.matrix.prices.max(initial=1.0))
        return self.sigma / (largest + 1.0)

    def _density(
        self, Y: FloatArray, w: FloatArray, V: FloatArray, deadline: Deadline
    ) -> FloatArray:
        """Maximise over X = YY' by L-BFGS on the sphere."""
        beside = self.matrix.beside_core(w)
        value, slope, _ = self._at(Y, w, V, beside)
        history: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
        for _ in range(_INNER_STEPS):
            if deadline.passed():
                break
            direction = two_loops(slope.ravel(), history).reshape(Y.shape)
            promised = float(np.vdot(direction, slope))
            length, found = 1.0, None
            for _ in range(_TRIALS):
                new = Y + length * direction
                new /= np.linalg.norm(new)
                trial = self._at(new, w, V, beside)
                if trial[0] >= value + _SUFFICIENT * length * promised:
                    found = trial
                    break
                length *= _SHRINK
            if found is None:
                if not history:
                    break
                history.clear()
                continue
            step, change = (new - Y).ravel(), (slope - found[1]).ravel()
            curvature = float(step @ change)
            if curvature > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
                history.append((step, change, curvature))
            Y, value, slope = new, found[0], found[1]
        return Y

    def _at(
        self, Y: FloatArray, w: FloatArray, V: FloatArray, beside: Any
    ) -> tuple[float, FloatArray, FloatArray]:
        """What is maximised at Y, its slope along the sphere, and Δ."""
        from ..._kernels.entry_shares import moved_rows

        matrix, core = self.matrix, self.matrix.core
        at_core = _single(Y[core])
        across, inside = np.ascontiguousarray(at_core.T), _single(w[core])
        both = np.stack([inside, 1 / inside])
        sigma, weighted = np.float32(self.sigma), inside[:, None] * at_core

        def stripe(rows: slice) -> tuple[Any, Any, Any]:
            X = at_core[rows] @ across
            sums = np.zeros((2, len(core)), np.float32)
            slopes = self.slopes[rows]
            moved_rows(
                X, self.block[rows], V[rows], both, rows.start, sigma, slopes, sums
            )
            return X @ at_core, slopes @ weighted, sums

        parts = self._mapped(stripe)
        image, by_row = np.zeros_like(Y), np.zeros_like(Y)
        paid = np.zeros(len(Y))  # Σ_j V_ij X_ij w_j
        image[core] = np.concatenate([part[0] for part in parts])
        by_row[core] = np.concatenate([part[1] for part in parts])
        sums = np.asarray(sum(part[2].astype(np.float64) for part in parts))
        paid[core] = sums[1]
        if beside is not None:
            left, signs = beside
            image += left @ _single(Y)
            signed = signs @ _single(w[:, None] * Y)
            by_row += signed
            paid += np.einsum("ij,ij->i", Y, signed)
        t, present = w * w, np.einsum("ij,ij->i", Y, Y)
        r = matrix.prices * present - paid / w
        lowest = np.minimum(np.maximum(-_MOST_CHANGE * t, matrix.levels**2 - t), 0.0)
        delta = np.clip(-self.sigma_t * r, lowest, _MOST_CHANGE * t)
        ratio = (delta / w)[:, None]
        scaled = _single(ratio[core] * Y[core])
        by_column = np.zeros_like(Y)
        by_column[core] = np.concatenate(
            self._mapped(lambda rows: self.slopes[rows] @ scaled)
        )
        if beside is not None:
            by_column += signs @ _single(ratio * Y)
        total = image + (matrix.diagonal + matrix.prices * t)[:, None] * Y
        value = float(np.vdot(Y, total)) + float(sums[0].sum()) / (2 * self.sigma)
        value += float(r @ delta) + float(delta @ delta) / (2 * self.sigma_t)
        total += (matrix.prices * delta)[:, None] * Y
        total -= (ratio * by_row + w[:, None] * by_column) / 2
        slope = 2 * (total - float(np.vdot(Y, total)) * Y)
        return value, slope, delta

    def _moved(
        self, Y: FloatArray, w: FloatArray, V: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The weights and shares that a density moves to."""
        from ..._kernels.entry_shares import moved_shares

        core = self.matrix.core
        _, _, delta = self._at(Y, w, V, self.matrix.beside_core(w))
        at_core, inside = _single(Y[core]), _single(w[core])
        across = np.ascontiguousarray(at_core.T)
        both = np.stack([inside, 1 / inside])
        new_V = np.empty_like(V)

        def stripe(rows: slice) -> None:
            X = at_core[rows] @ across
            moved_shares(X, V[rows], both, rows.start, np.float32(self.sigma))
            new_V[rows] = X

        self._mapped(stripe)
        new_w = np.sqrt(np.maximum(w * w + delta, 0.0))
        return np.maximum(new_w, self.matrix.levels), new_V

    def _mapped(self, function: Callable[[slice], Part]) -> list[Part]:
        """Apply it to all stripes; the results are in their order."""
        if self.pool is None:
            return [function(rows) for rows in self.stripes]
        return list(self.pool.map(function, self.stripes))


def _single(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.float32)


def _joined(Y: FloatArray, leading: FloatArray) -> FloatArray:
    """Turn Y so that its last column has least, and replace that by an eigenvector."""
    turn = np.linalg.eigh(Y.T @ Y)[1]
    Y = Y @ turn[:, ::-1]
    Y[:, -1] = _NEW * leading
    return np.asarray(Y / np.linalg.norm(Y))
