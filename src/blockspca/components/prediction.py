"""Components that predict more: adjusted variance and R² are raised together.

Residual deflation chooses each component for its own variance, and ten features of one
tight group have more of that than ten that speak for many others. What the scores say
about *all* features, R², may be small then. Here a set V is changed to raise a goal of
both numbers (`prediction_goal`).

With the others as they are and A_j what they leave of A, component x adds s = x'A_j x
to the adjusted variances and ρ = x'A_j²x / s to what is predicted. With slopes g and h
of the goal by the two, its derivative by xx' is

    M = g A_j + h (A_j² − ρ A_j) / s.

Loadings of a support follow by steps to Mx, and supports by exchanging a feature for
one of those where |Mx| is largest (`_kernels.prediction_exchange`). Each component has
its turn until nothing is gained, and again from variations of the best, on a core of
features that grows by those whose |Mx| is largest of all (`prediction_core`).
`prediction_search` says which sets are begun with. Nothing is proved here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._kernels.prediction_constants import DEPENDENT, GAIN, TINY
from .._validation import FloatArray
from ..bounds.entry_dual.pairs import OutOfTime
from ..covariance.covariance import Covariance
from ..limits import Budget, Deadline, Limits
from ..numerics.linalg import lanczos, largest_entries
from ..numerics.rounding import power_of_two
from .lasso import lasso_components
from .prediction_core import Core, Indices, Measured
from .prediction_goal import Goal
from .sweep_start import ANGLES, EXCHANGED

# Constants were doubled and halved: five components of ten features, w = 2.5, on
# normLung, Eisen2Cov, alon_colon, Leukemia and srbct_khan. Any change, also of the
# seed, moves the goal by up to 0.001, and by 0.016 on Leukemia, which has two sets to
# end in: that much is called the same below.
#
# Steps of varimax, at the most, and the turn with which it ends: its loadings are where
# turns begin, and the goal is the same with half and twice as many.
ROTATIONS, TURNED = 100, 1e-4
# Variations of the best set, at the most, and in a row without a gain of MUCH. With 40
# in a row and w = 2.5 the goal is what 120 find on normLung, Eisen2Cov and snp500, with
# three seeds, and 0.0055 less on normCommunities with two, which is 0.2 % of R². All
# searches ended by patience, after 70 variations or fewer: TRIALS is for what gains a
# little for ever.
TRIALS, PATIENCE, MUCH = 200, 40, 1e-4
NEAR = 4  # times k features may come in by an exchange; the same with 2 and 8
# Features, up to which all are in the core: A and A² are 4 MB then, and nothing is
# missed by a choice. On CovColon and LymphomaCov1, 500 features, a core of likely ones
# finds the same in two thirds of the time, 0.1 s.
WHOLE = 512
ROUGHLY = 1e-6  # of eigenvalues: their vectors are where sets begin, and are cut
# Times k: entries of a vector whose features are in the core. With 4 it takes a tenth
# longer for the same; with 1 there would be none beside the sets to begin with.
LIKELY = 2
LARGEST = 4096  # features of a core, at the most: half a gigabyte for four matrices
# Features for each component by which the core grows, and how often it may. With 32 it
# takes up to a tenth longer for the same, with 8 srbct_khan has 0.0002 less with either
# seed. Of seven sets with 500 to 6,000 features none grew more than five times: ROUNDS
# is for what gains a little for ever.
OUTSIDE, ROUNDS = 16, 20


class Prediction:
    """Raises the goal of sets of components of one matrix.

    In units of a variance, so that A² and cubes of its vectors are in range. Raises
    `OutOfTime` if the deadline comes before the leading eigenvectors of A.

    Parameters
    ----------
    memory : int, optional
        Bytes for the core.
    spare : bool
        Whether to find twice as many eigenvectors of A as there are components, which
        variations are made of.
    """

    def __init__(
        self,
        cov: Covariance,
        sparsities: Sequence[int],
        disjoint: bool,
        deadline: Deadline,
        memory: int | None = None,
        spare: bool = True,
    ) -> None:
        self.cov, self.ks, self.deadline = cov, list(sparsities), deadline
        self.disjoint = disjoint
        self.unit = power_of_two(float(cov.diagonal().max()))
        self.in_place = len(set(self.ks)) > 1
        entries = Budget(Limits(memory=memory)).max_entries
        self.core = Core(cov, self.unit, deadline, entries)
        self.largest = min(LARGEST, self.core.largest)
        self._took = 0.0  # seconds, the last product
        d = cov.n_features
        self.whole = d <= min(WHOLE, self.largest)
        if self.whole:
            self.core.extend(np.arange(d))
        self._sizes, self._leading = self._directions(2 if spare else 1)

    def _directions(self, times: int) -> tuple[FloatArray, FloatArray]:
        """Return leading eigenvalues and vectors of A, so many times the components."""
        d = self.cov.n_features
        count = min(times * len(self.ks), d - 1)
        found = None
        if count:
            found = lanczos(self.timely, np.ones(d), count=count, tolerance=ROUGHLY)
        return (np.empty(0), np.zeros((d, 0))) if found is None else found

    def ceiling(self) -> float:
        """Return what PCA predicts with as many components, in units."""
        return float(self._sizes[-len(self.ks) :].sum())

    def product(self, x: FloatArray) -> FloatArray:
        """Return Ax, in units."""
        began = time.perf_counter()
        if self.whole:
            found = self.core.A @ x
        else:
            found = np.asarray(self.cov.matvec(x) / self.unit)
        self._took = time.perf_counter() - began
        return found

    def timely(self, x: FloatArray) -> FloatArray:
        """Return Ax, if there is time for as long a product as the last one."""
        if self.deadline.passed() or not self.deadline.affords(self._took):
            raise OutOfTime
        return self.product(x)

    # -- sets to begin with -----------------------------------------------------------

    def directions(self) -> list[FloatArray]:
        """Return leading eigenvectors of A, not cut; none where they are not known."""
        m = len(self.ks)
        if self._leading.shape[1] < m:
            return []
        return [np.ascontiguousarray(self._leading[:, : -m - 1 : -1].T)]

    def rotated_directions(self) -> list[FloatArray]:
        """Return leading eigenvectors of A, rotated to few large entries, not cut."""
        m = len(self.ks)
        if self._leading.shape[1] < m:
            return []
        vectors = np.ascontiguousarray(self._leading[:, -m:].T)
        scaled = vectors * np.sqrt(np.maximum(self._sizes[-m:], 0))[:, None]
        stop = self.deadline.passed
        return [varimax(loadings, stop) for loadings in (vectors, scaled)]

    def lasso_sets(self) -> list[FloatArray]:
        """Return components by a lasso, not cut, in the units of its penalties.

        None where fewer positive eigenvalues of A are found than there are components,
        or its mean variance, which those units are, is not positive.
        """
        m, mean = len(self.ks), float(self.cov.diagonal().mean()) / self.unit
        if self._leading.shape[1] < m or not (self._sizes[-m] > 0 and mean > 0):
            return []
        largest_first = slice(None, -m - 1, -1)
        return lasso_components(
            lambda V: self.timely(V) / mean,
            self._leading[:, largest_first],
            self._sizes[largest_first] / mean,
        )

    def cut(self, V: FloatArray) -> FloatArray:
        """Return vectors cut to their largest entries, of features of their own."""
        cut, used = np.zeros_like(V), np.zeros(V.shape[1], dtype=bool)
        for row, vector, k in zip(cut, V, self.ks, strict=True):
            open_ = np.where(used, 0.0, vector) if self.disjoint else vector
            own = largest_entries(open_, k)
            own = own[open_[own] != 0]
            if len(own):
                row[own] = open_[own] / np.linalg.norm(open_[own])
            used[own] = True
        return cut

    def enclose(
        self, vectors: Sequence[FloatArray], sets: Sequence[FloatArray]
    ) -> list[FloatArray]:
        """Begin the core with sets, and with likely features; return what fits."""
        if self.whole:
            return list(sets)
        found: set[int] = set()
        fitting = []
        for V in sets:
            used = found.union(np.flatnonzero(_used(V)).tolist())
            if len(used) + max(self.ks) <= self.largest:
                found = used
                fitting.append(V)
        if not fitting:
            return []
        for V in vectors:
            for x, k in zip(V, self.ks, strict=True):
                likely = largest_entries(x, LIKELY * k)
                if len(found) + len(likely) <= self.largest:
                    found.update(likely[x[likely] != 0].tolist())
        self.core.extend(np.array(sorted(found), dtype=np.intp))
        return fitting

    # -- ascents ----------------------------------------------------------------------

    def measure(self, V: FloatArray) -> Measured:
        """Return a set with what it has and predicts."""
        G, H = self._products(V, *self._images(V))
        R, adjusted = _orthonormal(G, self.in_place)
        return Measured(V, adjusted, float(np.einsum("ij,jk,ik->", R, H, R)))

    def _images(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        once = self.product(V.T)
        return once.T, self.product(once).T

    @staticmethod
    def _products(
        V: FloatArray, AV: FloatArray, BV: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        G, H = V @ AV.T, V @ BV.T
        return (G + G.T) / 2, (H + H.T) / 2

    def raised(self, V: FloatArray, goal: Goal) -> Measured:
        """Return a set of the core that no turn improves, or as time allows."""
        return self.core.raised(
            self._filled(V), self.ks, goal, self.in_place, self.disjoint
        )

    def _filled(self, V: FloatArray) -> FloatArray:
        """Give every component its k features, with those that go with it most."""
        V, features = V.copy(), self.core.features
        for j, k in enumerate(self.ks):
            missing = k - np.count_nonzero(V[j])
            if missing <= 0:
                continue
            closed = _used(V if self.disjoint else V[j : j + 1])
            open_ = features[~closed[features]]
            scores = np.abs(V[j, features] @ self.core.A)[~closed[features]]
            order = np.argsort(-scores, kind="stable")[:missing]
            V[j, open_[order]] = TINY if V[j].any() else 1.0  # turns find how much
        return V

    def grown(self, now: Measured, goal: Goal) -> Measured:
        """Return the set after turns with the features outside that pull most."""
        for _ in range(0 if self.whole else ROUNDS):
            room = self.largest - len(self.core.features)
            late = self.deadline.passed() or not self.deadline.affords(2 * self._took)
            if room < OUTSIDE * len(self.ks) or late:
                break
            try:
                if not self.core.extend(self._pulling(now, goal)):
                    break
            except OutOfTime:
                break
            new = self.raised(now.V, goal)
            if not new.value(goal) > now.value(goal) + GAIN:
                break
            now = new
        return now

    def _pulling(self, now: Measured, goal: Goal) -> Indices:
        """Return the features with the largest entries of Mx of each component."""
        V = now.V
        AV, BV = self._images(V)
        G, H = self._products(V, AV, BV)
        found: list[Indices] = []
        for j in range(len(V)):
            rest = np.delete(np.arange(len(V)), j)
            within = np.ix_(rest, rest)
            R, adjusted = _orthonormal(G[within], self.in_place)
            N, T, square = R @ AV[rest], R @ BV[rest], R @ H[within] @ R.T
            n = N @ V[j]
            once = AV[j] - n @ N
            twice = BV[j] - n @ T - (T @ V[j] - square @ n) @ N
            s = float(V[j] @ once)
            if not s > DEPENDENT * (adjusted + abs(s)):
                pull = once
            else:
                ratio = float(V[j] @ twice) / s
                g, h = goal.slopes(adjusted + s, float(np.trace(square)) + ratio)
                pull = (g - h * ratio / s) * once + h / s * twice
            pull = np.abs(pull)
            pull[V[j] != 0] = 0.0
            if self.disjoint:
                pull[_used(V)] = 0.0
            largest = largest_entries(pull, OUTSIDE)
            found.append(largest[pull[largest] > 0])
        return np.concatenate(found)

    # -- variations -------------------------------------------------------------------

    def searched(
        self, best: Measured, goal: Goal, rng: np.random.Generator
    ) -> Measured:
        """Return the best of a set and what comes of its variations."""
        in_vain = 0
        for _ in range(TRIALS):
            if in_vain == PATIENCE or self.deadline.passed():
                break
            in_vain += 1
            trial = self.raised(self.varied(best, rng), goal)
            gain = trial.value(goal) - best.value(goal)
            if gain > GAIN:
                best = trial
                in_vain = 0 if gain > MUCH else in_vain
        return best

    def varied(self, now: Measured, rng: np.random.Generator) -> FloatArray:
        """Return one component new, all rotated among themselves, or features other."""
        V, m, features = now.V, len(now.V), self.core.features
        kind = rng.integers(3)
        if kind < 2 and (self._leading.shape[1] if kind == 0 else m > 1):
            varied = np.zeros_like(V)
            inside = V[:, features]
            if kind == 0:
                weights = rng.normal(size=self._leading.shape[1])
                inside[int(rng.integers(m))] = self._leading[features] @ weights
            else:
                turn = rng.choice(ANGLES) * rng.normal(size=(m, m))
                inside = np.linalg.qr(np.eye(m) + turn - turn.T)[0] @ inside
            varied[:, features] = inside
            return self.cut(varied)
        j = int(rng.integers(m))
        row = V[j, features]
        image, own = np.abs(row @ self.core.A), np.flatnonzero(row)
        image[own] = 0.0
        if self.disjoint:
            image[_used(V)[features]] = 0.0
        near = largest_entries(image, min(NEAR * len(own), len(row) - len(own)))
        near = near[image[near] > 0]
        count = min(max(1, len(own) // EXCHANGED), len(near))
        row[rng.permutation(near)[:count]] = np.abs(row).max(initial=0.0)
        row[rng.permutation(own)[:count]] = 0.0
        varied, size = V.copy(), np.linalg.norm(row)
        varied[j, features] = row / size if size > 0 else 0.0  # nothing was left for it
        return varied


def _used(V: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((V != 0).any(axis=0))


def _orthonormal(G: FloatArray, in_place: bool) -> tuple[FloatArray, float]:
    """Return R with RGR' = I, a row for each score that says something new.

    And the sum of the adjusted variances, with those scores first that add most.
    """
    # The order is that of `variance.by_size`, but for scores that others determine up
    # to rounding: those are left out here, as in `basis` of `_kernels.prediction_sets`,
    # which does the same in a kernel, and to other last bits.
    left, order, rows = G.copy(), list[int](), list[FloatArray]()
    adjusted, turn = 0.0, np.eye(len(G))
    for place in range(len(G)):
        open_ = [i for i in range(len(G)) if i not in order]
        first = place if in_place else max(open_, key=lambda i: left[i, i])
        order.append(first)
        size = float(left[first, first])
        if not size > max(DEPENDENT * G[first, first], TINY):
            continue
        adjusted += size
        rows.append(turn[first] / np.sqrt(size))
        # What is left of each score after regression on this one.
        slopes = left[:, first] / size
        turn = turn - np.outer(slopes, turn[first])
        left = left - np.outer(slopes, left[first])
    return np.array(rows).reshape(len(rows), len(G)), adjusted


def varimax(loadings: FloatArray, stop: Callable[[], bool] | None = None) -> FloatArray:
    """Rotate rows so that each has few large entries (Kaiser, 1958)."""
    turn = np.eye(len(loadings))
    for _ in range(ROTATIONS):
        turned = turn @ loadings
        squares = turned * turned
        squares -= squares.mean(axis=1, keepdims=True)
        squares *= turned
        slope = squares @ loadings.T
        # A step of its own size: without turn in the sum it may go to and fro.
        left, _, right = np.linalg.svd(slope + np.linalg.norm(slope) * turn)
        before, turn = turn, left @ right
        if np.abs(turn - before).max() < TURNED or (stop is not None and stop()):
            break
    return turn @ loadings
