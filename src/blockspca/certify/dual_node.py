"""One node of the dual's search: part of the sphere, features inside and undecided.

With the features I inside and U undecided, the direction dual reads

    Σ_{i∈S} (c_i'y)² ≤ (k − |I|) ρ + y'My,
    M = Σ_{i∈I} c_i c_i' + Σ_{i∈U} κ_i z_i z_i',

for every k-set S with I ⊂ S ⊂ I ∪ U.  If an undecided feature i must be inside, its
term is c_i c_i' − ρ instead of κ_i z_i z_i'; if it must not, its term is zero.  Where
either keeps the bound at or below τ, the feature is decided:

    λmax(M − κzz' + cc') ≤ τ − (k − |I| − 1) ρ   →  i is in no better set,
    λmax(M − κzz')       ≤ τ − (k − |I|) ρ       →  i is in every better set.

Both are read off the eigenvectors of M.  With S = (tI − M)⁻¹ for t > λmax(M), the first
holds if c'Sc − κ(c'Sz)² / (1 + κ z'Sz) < 1.  If exactly one eigenvalue of M is above t,
the second holds if 1 + κ z'Sz < 0, because the determinant then changes its sign.

At the best density the leading eigenvalue of M is multiple, and the second test says
nothing.  But any density gives a valid M: ascent on M − αqq', q the leading direction,
lowers the other eigenvalues by about α, for little more than (1 − q'Xq) α in the first.
Such an M decides many more features, by both tests.

A part of the sphere is cut out by y'By ≥ 0, B = (ab' + ba')/2: the y between two lines
in the plane of two directions, a and b the inward normals of the lines.  On it ηB may
be added to M for any η ≥ 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from .columns import Columns
from .density import Density, Side
from .direction_dual import Relaxation, relax, rounding_of_sum
from .dual_problem import Problem
from .eigenvalues import eigenvalue_ceiling

_EPS = float(np.finfo(float).eps)
_BELOW_ONE = 1 - 1e-5
_STEP = 4.0
_SLOWER = 25  # steps after which a step is half as long
_FLOOR = 0.03  # share of the uniform density, while directions are still being found
_FLOOR_AGAIN = 3e-3  # in a part of the sphere
_FLOOR_OF_GAP = 0.1  # of the gap that the uniform share may cost
_LEAST_FLOOR = 3e-5  # without a target
_WARM_UP = 10
_PATIENCE = 4
_SLOW = 0.85  # of the gap left after `_PATIENCE` steps
_FREE = 24  # steps in which a node may be above the bound of its parent
_CLOSE = 0.7  # of ρ
_MANY = 0.5  # of all columns
_MARGIN = 1e-6  # by which a feature must be decided
_WIDE = 0.001  # share of the second direction, of the first's, that calls for wedges
_LEAN = 0.1  # of the gap that α may cost
_MOST_LEAN = 10.0  # of ρ
_LEAN_STEPS = 8
_LEAN_GAIN = 0.02  # of α in a step, or it is the last
_LARGE = 256  # order from which on Lanczos' method estimates eigenvalues

Indices = NDArray[np.intp]


@dataclass
class Node:
    """What is decided, and where the ascent stands.

    Attributes
    ----------
    inside, undecided : array of int
        Columns of the problem.
    density, penalty, floor
        X, ρ, and the least share of 1/n in X.
    sides, multipliers : list
        B and η of the part of the sphere.
    bound : float
        Proved, for the columns of the problem, rounding included.
    shares : array
        Of the undecided columns, in the best relaxation.
    others : bool
        Features that are no columns of the problem may be in the set.
    """

    inside: Indices
    undecided: Indices
    density: Density
    penalty: float
    floor: float = _FLOOR
    sides: list[Side] = field(default_factory=list)
    multipliers: list[float] = field(default_factory=list)
    bound: float = np.inf
    shares: FloatArray = field(default_factory=lambda: np.empty(0))
    others: bool = False


@dataclass
class _Best:
    """The relaxation with the least bound, what it came from, and its M."""

    value: float
    penalty: float
    density: Density
    multipliers: list[float]
    relaxation: Relaxation
    M: FloatArray
    size: float  # of the terms of M


class Ascent:
    """Mirror ascent at a node, and what can be decided with its result."""

    def __init__(self, problem: Problem, node: Node) -> None:
        self.problem, self.node = problem, node
        self.columns: Columns = problem.columns.take(node.undecided)
        self.k = problem.k - len(node.inside)
        n = problem.columns.shape[0]
        self.base, self.base_size = np.zeros((n, n)), 0.0
        if len(node.inside):
            inside = problem.columns.take(node.inside)
            self.base = inside.gram(np.ones(len(node.inside)))
            self.base_size = float((inside.sizes**2).sum())
        self.best: _Best | None = None
        self.steps = 0
        self._eigenvector: FloatArray | None = None
        self._last: Relaxation | None = None
        self._target = -np.inf
        self._scale = 1.0  # of the steps
        self._tilt: FloatArray | None = None  # αqq', while leaning

    def run(
        self, steps: int, target: float, deadline: float, decide: bool = False
    ) -> bool:
        """Take steps until the bound is at the target, or they stall, or time is up.

        Returns True if the target is proved.
        """
        node = self.node
        self._target = target
        checked = np.inf
        many = decide and len(node.undecided) > _MANY * self.problem.columns.shape[1]
        try:
            for step in range(steps):
                if not self._step(step, deadline):
                    break
                best = self.best
                assert best is not None
                if best.value <= target and self.proved() <= target:
                    break
                if best.value - target < _CLOSE * node.penalty and many:
                    break  # enough to decide most of them
                lost = best.value > node.bound and step + 1 < _FREE
                if step % _PATIENCE == _PATIENCE - 1 and not lost:
                    # A small part of the way: what is left is not for steps like these.
                    if best.value - target > _SLOW * (checked - target):
                        break
                    checked = best.value
        finally:  # an interrupt does not lose the bound
            if self.best is not None:
                node.bound = min(node.bound, self.proved())
                node.shares = self.best.relaxation.shares
        return node.bound <= target

    def _step(self, step: int, deadline: float) -> bool:
        """Relax, and go on to the next density; False if time is up before that."""
        node, k = self.node, self.k
        # Above the longest column the bound would be kρ, whatever the density.
        longest = float(self.columns.norms.max())
        penalty = min(node.penalty, _BELOW_ONE * longest)
        penalty = max(penalty, self.problem.floor, np.finfo(float).tiny)
        node.penalty = penalty
        relaxation = relax(self.columns, node.density, penalty, deadline, self._last)
        if relaxation is None:
            return False
        self._last = relaxation
        self.steps += 1
        density, multipliers = node.density, node.multipliers
        M = relaxation.total
        M += self.base
        if self._tilt is not None:
            M -= self._tilt
        self._move(relaxation, M, step)
        for side, eta in zip(node.sides, node.multipliers, strict=True):
            if eta:
                M += eta * side.matrix()
        value = k * penalty + self._top(M)
        if self._tilt is not None:
            M += self._tilt
        size = relaxation.size + self.base_size + sum(node.multipliers) + k * penalty
        found = _Best(value, penalty, density, multipliers, relaxation, M, size)
        self._scale = min(1.0, 1.1 * self._scale)
        if self.best is None or value < self.best.value:
            self.best = found
        elif self.best.value < node.bound and value > self.best.value + self._gap / 2:
            self._scale /= 2  # that was too far
            self._go_back(self.best)
        return time.monotonic() <= deadline

    def _go_back(self, best: _Best) -> None:
        node = self.node
        node.density, node.penalty = best.density, best.penalty
        node.multipliers = best.multipliers

    @property
    def _gap(self) -> float:
        """How far the best bound is above the target; infinite without one."""
        if self.best is None or not np.isfinite(self._target):
            return np.inf
        return max(self.best.value - self._target, 0.0)

    def _top(self, M: FloatArray) -> float:
        """Estimate λmax(M); proofs do not rest on it."""
        if len(M) < _LARGE:
            return float(np.linalg.eigvalsh(M)[-1])
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        start = self._eigenvector
        if start is None:
            start = self.node.density.Q[:, 0]
        try:
            values, vectors = eigsh(M, k=1, which="LA", v0=start, tol=1e-6)
        except ArpackNoConvergence:
            return float(np.linalg.eigvalsh(M)[-1])
        self._eigenvector = vectors[:, 0]
        return float(values[0])

    def _move(self, relaxation: Relaxation, M: FloatArray, step: int) -> None:
        """Go on to the next density, penalty and multipliers."""
        node, k = self.node, self.k
        estimate = k * node.penalty + float(relaxation.mu.sum())
        if len(node.inside):
            estimate += node.density.mean(self.base)
        estimate = max(abs(estimate), 1e-300)
        size = self._scale * _STEP / (1 + step / _SLOWER) / estimate
        if self._tilt is None and (step >= _WARM_UP or node.floor < _FLOOR):
            gap = self._gap
            least = _FLOOR_OF_GAP * gap / estimate if gap < np.inf else _LEAST_FLOOR
            node.floor = max(0.85 * node.floor, min(least, node.floor))
        node.density, node.multipliers = node.density.step(
            M, size, node.floor, node.sides, node.multipliers
        )
        support = max(float(relaxation.shares.sum()), 1e-3)
        damping = 0.3 * min(1.0, 5 * k / self.problem.k + 0.05)
        node.penalty *= min(max((support / k) ** damping, 0.8), 1.25)

    def lean(self, deadline: float) -> None:
        """Lower what is not the leading eigenvalue of M, so that more is decided."""
        node, best = self.node, self.best
        if best is None:
            return
        self._go_back(best)
        q, outside = node.density.Q[:, 0], 1 - float(node.density.weights[0])
        alpha = _MOST_LEAN * node.penalty
        if outside > 0:
            alpha = min(alpha, _LEAN * self._gap / outside)
        self._tilt = alpha * np.outer(q, q)
        self.best, self._eigenvector = None, None
        before = np.inf
        for _ in range(_LEAN_STEPS):
            if not self._step(0, deadline):
                break
            assert self.best is not None
            if self.best.value > before - _LEAN_GAIN * alpha:
                break
            before = self.best.value
        self._tilt = None
        self.best = self.best or best
        self._go_back(best)

    def proved(self) -> float:
        """Return the bound by the best relaxation, rounding included."""
        assert self.best is not None
        n, p = self.columns.shape
        ceiling = self.k * self.best.penalty + eigenvalue_ceiling(self.best.M)
        terms = p + len(self.node.inside) + 2 * len(self.node.sides)
        return ceiling + rounding_of_sum(n, terms, self.best.size)

    def decide(self, tau: float) -> int:
        """Take out, or put inside, the features for which the bound allows only that.

        Returns how many; −1 if no set is left.
        """
        best, node = self.best, self.node
        if best is None:
            return 0
        n, p = self.columns.shape
        values, vectors = np.linalg.eigh(best.M)
        # M, and what LAPACK makes of it, are off by no more than this.
        error = rounding_of_sum(n, p + len(node.inside), best.size)
        error += 8 * n * _EPS * float(np.abs(values).max())
        out = self._cannot_be_inside(
            values, vectors, tau - (self.k - 1) * best.penalty - 2 * error
        )
        needed = self._cannot_be_outside(
            values, vectors, tau - self.k * best.penalty - 2 * error
        )
        if (out & needed).any():
            return -1
        room = tau - (self.k - 1) * best.penalty - 2 * error - values[-1]
        node.others = node.others and not self.problem.floor < room
        node.inside = np.concatenate([node.inside, node.undecided[needed]])
        open_ = ~(out | needed)
        node.undecided, node.shares = node.undecided[open_], node.shares[open_]
        return int(len(open_) - open_.sum())

    def _cannot_be_inside(
        self, values: FloatArray, vectors: FloatArray, t: float
    ) -> NDArray[np.bool_]:
        room = t - values[-1]
        if not room > 0:
            return np.zeros(len(self.node.undecided), dtype=bool)
        assert self.best is not None
        R = self.best.relaxation
        cSc, cSz, zSz = self._forms((vectors / (t - values)) @ vectors.T)
        test = cSc - R.D * cSz**2 / (1 + R.D * np.maximum(zSz, 0.0))
        sizes = self.columns.sizes
        length = self._lengths()
        reach = (sizes + np.sqrt(R.D) * (sizes + length)) ** 2 / room
        return test < 1 - np.maximum(_MARGIN, 10 * self._rounding() * reach)

    def _cannot_be_outside(
        self, values: FloatArray, vectors: FloatArray, t: float
    ) -> NDArray[np.bool_]:
        if len(values) < 2 or not values[-2] < t < values[-1]:
            return np.zeros(len(self.node.undecided), dtype=bool)
        assert self.best is not None
        R, rounding = self.best.relaxation, self._rounding()
        # z'Sz, the negative term apart: where t is near λmax it is all that counts.
        top = vectors[:, -1:]
        along = self.columns.project(top)[0]
        along[: R.H.shape[1]] += (top.T @ R.Q)[0] @ R.H
        size = self.columns.sizes + self._lengths()
        along = np.maximum(np.abs(along) - rounding * size, 0.0)
        _, _, zSz = self._forms(
            (vectors[:, :-1] / (t - values[:-1])) @ vectors[:, :-1].T
        )
        zSz += rounding * size**2 / (t - values[-2])
        return R.D * along**2 / (values[-1] - t) > 1 + R.D * zSz + _MARGIN

    def _forms(self, S: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return c'Sc, c'Sz and z'Sz for z = c + Qh, of every undecided column."""
        assert self.best is not None
        Q, H = self.best.relaxation.Q, self.best.relaxation.H
        SQ, m = S @ Q, H.shape[1]
        cSc = self.columns.forms(S)
        cSz, zSz = cSc.copy(), cSc.copy()
        cSQh = np.einsum("ij,ij->j", H, self.columns.head(m).project(SQ))
        cSz[:m] += cSQh
        zSz[:m] += 2 * cSQh + np.einsum("ij,ij->j", H, (Q.T @ SQ) @ H)
        return cSc, cSz, zSz

    def _lengths(self) -> FloatArray:
        """Return ‖h‖ of every undecided column."""
        assert self.best is not None
        H = self.best.relaxation.H
        lengths = np.zeros(len(self.node.undecided))
        lengths[: H.shape[1]] = np.sqrt(np.einsum("ij,ij->j", H, H))
        return lengths

    def _rounding(self) -> float:
        """Relative rounding error of c'Sc and the like, as a sum over n terms."""
        n = self.columns.shape[0]
        return 64 * (n + 4) * _EPS * np.sqrt(n)


def branches(node: Node) -> list[Node]:
    """Split a node: its sphere, if the density is wide, else by a feature."""
    weights = node.density.weights
    if len(weights) > 1 and weights[1] > _WIDE * weights[0]:
        return _wedges(node)
    at = int(np.argmin(np.abs(node.shares - 0.5)))
    rest = np.delete(node.undecided, at)
    shares = np.delete(node.shares, at)
    feature = node.undecided[at : at + 1]
    inside = np.concatenate([node.inside, feature])
    return [
        _child(node, undecided=rest, shares=shares),
        _child(node, inside=inside, undecided=rest, shares=shares),
    ]


def _wedges(node: Node) -> list[Node]:
    """Cut the plane of the two leading directions of the density.

    With t = (q₂'y)/(q₁'y), the wedges are |t| ≤ 0.6σ, 0.6σ ≤ ±t ≤ 1.6σ and what is
    beyond, σ the deviation of t in the density: none of them contains it.
    """
    weights, Q = node.density.weights, node.density.Q
    deviation = np.sqrt(weights[1] / weights[0])
    angles = np.arctan(deviation * np.array([-1.6, -0.6, 0.6, 1.6]))
    inwards = Q[:, :2] @ np.stack([-np.sin(angles), np.cos(angles)])
    # The last line is the first, turned by π: if y had the same sign on all four it
    # would be in the last wedge, so that rounding leaves no gap between them.
    inwards = np.column_stack([inwards, -inwards[:, 0]])
    floor = max(node.floor, _FLOOR_AGAIN)
    children = []
    for q in range(4):
        sides = [*node.sides, Side(inwards[:, q], -inwards[:, q + 1])]
        changes = {
            "density": node.density.onto(sides, floor),
            "sides": sides,
            "multipliers": [*node.multipliers, 0.0],
            "floor": floor,
        }
        children.append(_child(node, **changes))
    return children


def _child(node: Node, **changes: object) -> Node:
    changes.setdefault("sides", list(node.sides))
    changes.setdefault("multipliers", list(node.multipliers))
    return replace(node, **changes)  # type: ignore[arg-type]
