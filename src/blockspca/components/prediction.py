"""Components that predict more: adjusted variance and R² are raised together.

Residual deflation chooses each component for its own variance, and ten features of one
tight group have more of that than ten that speak for many others. What the scores say
about *all* features, R², may be small then. Here a set V is changed to raise

    J(V) = log(Σ adjusted variances) + w log(R²),

w ≥ 0 being the weight: one percent of R² is worth w percent of the adjusted variance.
Logarithms, because the one may be 2 % of the total and the other 60 %.

With the others as they are and A_j what they leave of A, component x adds s = x'A_j x
to the adjusted variances and ρ = x'A_j²x / s to what is predicted. Of a support, the
best loadings are sought by leading eigenvectors of the derivative of J as a matrix,

    M = A_j / (a + s) + w (A_j² − ρ A_j) / (s (b + ρ)),

with a and b what the others have; supports by exchanging a feature for one of those
where |Mx| is largest. Every component takes its turn until nothing is gained. That is
done from several sets, and again from variations of the best. Nothing is proved here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, as_generator
from ..covariance.covariance import Covariance
from ..limits import Deadline
from ..numerics.linalg import lanczos, largest_entries
from ..numerics.rounding import TINY, power_of_two
from .joint_start import ANGLES, EXCHANGED
from .variance import adjusted_variance

GAIN = 1e-7  # of J, without which an exchange or a round is not made
TURNS = 10  # of every component, at the most
EXCHANGES = 60  # of one component in its turn
CANDIDATES = 16  # features that are tried for each of a support
REFINED = 4  # of the exchanges, the best by one step, are looked at more closely
FITS = 12  # steps to the loadings of a support
DEPENDENT = 1e-10  # of the largest: an eigenvalue of scores that say nothing new
ROTATIONS = 100  # steps of varimax, at the most
TURNED = 1e-6  # a rotation by less is the last one
KEPT_NUMBERS = 2**26  # of rows of A that are kept: half a gigabyte
FURTHER = 2.0  # times the weight: sets that predict more, to begin with
# Variations of the best set, at the most, and in a row without a gain of MUCH in J.
# Sets to begin with are within 0.1 % of what 60 variations find on eight of eleven data
# sets, and those take nine tenths of the time; on normIonosphere the third raises J by
# 2 %, the ninth by 0.2 %.
TRIALS, PATIENCE, MUCH = 30, 6, 1e-4
NEAR = 4  # times as many features as a component has may come in by an exchange

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Measured:
    """A set of components V, what they have, and what they predict."""

    V: FloatArray
    W: FloatArray  #: VA
    adjusted: float
    predicted: float

    def value(self, weight: float) -> float:
        """J, or −∞ for a set that has nothing."""
        if not (self.adjusted > 0 and self.predicted > 0):
            return -np.inf
        return float(np.log(self.adjusted) + weight * np.log(self.predicted))


class Prediction:
    """Raises J of sets of components of one matrix.

    In units of a variance, so that A² and cubes of its vectors are in range: J has the
    same differences.
    """

    def __init__(
        self,
        cov: Covariance,
        sparsities: Sequence[int],
        weight: float,
        disjoint: bool,
        deadline: Deadline,
    ) -> None:
        self.cov, self.ks, self.weight = cov, list(sparsities), weight
        self.disjoint, self.deadline = disjoint, deadline
        self.unit = power_of_two(float(cov.diagonal().max()))
        self._rows: dict[int, FloatArray] = {}
        self._leading = self._directions()

    def _directions(self) -> FloatArray:
        """Return leading eigenvectors of A, as columns, twice as many as components."""
        d = self.cov.n_features
        count = min(2 * len(self.ks), d - 1)
        found = None
        if count:
            found = lanczos(self.product, np.ones(d), count=count)
        return np.zeros((d, 0)) if found is None else found[1]

    def product(self, x: FloatArray) -> FloatArray:
        """Return Ax, in units."""
        return np.asarray(self.cov.matvec(x) / self.unit)

    # -- what a set has ---------------------------------------------------------------

    def measure(self, V: FloatArray) -> Measured:
        """Return the set with its products, in the better of two orders."""
        W = np.array([self._image(x) for x in V]).reshape(V.shape)
        found = _measured(V, W)
        if len(set(self.ks)) > 1 or len(V) < len(self.ks):  # a place has its k
            return found
        order = _by_size(W @ V.T)
        other = _measured(V[order], W[order])
        return other if other.adjusted > found.adjusted else found

    def _image(self, x: FloatArray) -> FloatArray:
        support = np.flatnonzero(x)
        return np.asarray(x[support] @ self.rows_of(support))

    def rows_of(self, features: Indices) -> FloatArray:
        """Rows of A, which are kept: the same features are tried again and again."""
        new = [int(i) for i in features if int(i) not in self._rows]
        if (len(self._rows) + len(new)) * self.cov.n_features > KEPT_NUMBERS:
            self._rows.clear()
            new = [int(i) for i in features]
        if new:
            rows = self.cov.rows(np.array(new, dtype=np.intp)) / self.unit
            self._rows.update(zip(new, rows, strict=True))
        kept = [self._rows[int(i)] for i in features]
        return np.array(kept).reshape(len(kept), self.cov.n_features)

    # -- ascents ----------------------------------------------------------------------

    def raised(self, V: FloatArray, times: float = 1.0) -> Measured:
        """Return a set that no turn of a component improves, or as time allows.

        For so many times the weight.
        """
        best, weight = self.measure(V), times * self.weight
        value, in_vain, m = best.value(weight), 0, len(V)
        waiting = list(best.V)
        for _ in range(TURNS * m):
            if in_vain == m or self.deadline.passed():
                break
            x = waiting.pop(0)
            j = next(i for i, y in enumerate(best.V) if np.array_equal(x, y))
            trial = best.V.copy()
            trial[j] = self._turn(best, j, weight)
            new = self.measure(trial)
            reached = new.value(weight)
            in_vain += 1
            if reached > value:
                # Its own turn is over: it waits for the others.
                in_vain = 1 if reached > value + GAIN else in_vain
                best, value, x = new, reached, trial[j]
            waiting.append(x)
        return best

    def _turn(self, now: Measured, j: int, weight: float) -> FloatArray:
        """Return component j after exchanges, the others staying as they are."""
        x, d = now.V[j], self.cov.n_features
        rest = np.delete(now.V, j, axis=0)
        others = _measured(rest, np.delete(now.W, j, axis=0))
        left = _Left(self, others, weight)
        closed = np.zeros(d, dtype=bool)
        if self.disjoint:
            closed |= rest.any(axis=0)
        support = self._filled(np.flatnonzero(x), self.ks[j], now.W[j], closed)
        if not len(support):
            return x
        value, loadings = left.best_loadings(support, x[support])
        for _ in range(EXCHANGES):
            if self.deadline.passed():
                break
            pull = np.abs(left.pull(support, loadings))
            pull[closed] = 0.0
            pull[support] = 0.0
            new = largest_entries(pull, min(CANDIDATES, d - len(support)))
            new = new[pull[new] > 0]
            trial = left.best_exchange(support, loadings, new)
            if trial is None:
                break
            reached, found = left.best_loadings(trial)
            if not reached > value + GAIN:
                break
            support, loadings, value = trial, found, reached
        after = np.zeros(d)
        after[support] = loadings
        return after

    @staticmethod
    def _filled(
        support: Indices, k: int, image: FloatArray, closed: NDArray[np.bool_]
    ) -> Indices:
        """Return k features: those, and what goes with them most of what is open."""
        missing = k - len(support)
        if missing <= 0:
            return support
        scores = np.abs(image)
        scores[closed] = -1.0
        scores[support] = -1.0
        order = np.argsort(-scores, kind="stable")[:missing]
        return np.concatenate([support, order[scores[order] >= 0]])

    # -- sets to begin with -----------------------------------------------------------

    def rotated_directions(self) -> list[FloatArray]:
        """Return leading eigenvectors of A, rotated to few large entries, and cut."""
        m = len(self.ks)
        if self._leading.shape[1] < m:
            return []
        vectors = self._leading[:, -m:]
        sizes = np.sqrt(np.maximum((vectors * self.product(vectors)).sum(axis=0), 0))
        scaled = vectors * sizes
        return [self.cut(varimax(loadings).T) for loadings in (vectors, scaled)]

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

    def varied(self, now: Measured, rng: np.random.Generator) -> FloatArray:
        """Return one component new, all rotated among themselves, or features other."""
        V, m = now.V, len(now.V)
        kind = rng.integers(3)
        if kind == 0 and self._leading.shape[1]:
            varied = V.copy()
            weights = rng.normal(size=self._leading.shape[1])
            varied[int(rng.integers(m))] = self._leading @ weights
            return self.cut(varied)
        if kind == 1 and m > 1:
            turn = rng.choice(ANGLES) * rng.normal(size=(m, m))
            return self.cut(np.linalg.qr(np.eye(m) + turn - turn.T)[0] @ V)
        j = int(rng.integers(m))
        row, image = V[j].copy(), np.abs(now.W[j])
        own = np.flatnonzero(row)
        image[own] = 0.0
        if self.disjoint:
            image[V.any(axis=0)] = 0.0
        near = largest_entries(image, min(NEAR * len(own), len(row) - len(own)))
        near = near[image[near] > 0]
        count = min(max(1, len(own) // EXCHANGED), len(near))
        row[rng.permutation(near)[:count]] = np.abs(row).max()
        row[rng.permutation(own)[:count]] = 0.0
        varied, size = V.copy(), np.linalg.norm(row)
        varied[j] = row / size if size > 0 else 0.0  # nothing was left for it
        return varied


class _Left:
    """What a set of components leaves to one more: A_j = A − N'N, and J of both."""

    def __init__(self, of: Prediction, others: Measured, weight: float) -> None:
        self.of, self.others, self.weight = of, others, weight
        self.N = _whitened(others.V, others.W)[0]

    def rows(self, features: Indices) -> FloatArray:
        return np.asarray(self.of.rows_of(features) - self.N[:, features].T @ self.N)

    def blocks(self, features: Indices) -> tuple[FloatArray, FloatArray]:
        """Return A_j and A_j² on some features."""
        rows = self.rows(features)
        return rows[:, features], rows @ rows.T

    def pull(self, support: Indices, loadings: FloatArray) -> FloatArray:
        """Return Mx, of all features."""
        once = loadings @ self.rows(support)
        twice = self.of.product(once) - self.N.T @ (self.N @ once)
        s = float(loadings @ once[support])
        rho = self._ratio(once @ once, np.array(s))
        on_once, on_twice = self._slope(np.array(s), rho)
        return np.asarray(on_once * once + on_twice * twice)

    def best_loadings(
        self, support: Indices, loadings: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return J and loadings of a support, from some that it has, or by A_j."""
        first, second = self.blocks(support)
        if loadings is None or not loadings.any():
            loadings = np.linalg.eigh(first)[1][:, -1]
        at = self._sizes(first, second, loadings)
        values, found = self._fitted(first[None], second[None], at)
        return float(values[0]), found[0]

    def _sizes(
        self, first: FloatArray, second: FloatArray, loadings: FloatArray
    ) -> tuple[float, float]:
        """Return s and ρ."""
        s = float(loadings @ first @ loadings)
        return s, float(self._ratio(loadings @ second @ loadings, np.array(s)))

    def best_exchange(
        self, support: Indices, loadings: FloatArray, new: Indices
    ) -> Indices | None:
        """Return the support with the best exchange for one of the new features."""
        k = len(support)
        if k < 2 or not len(new):
            return None
        union = np.concatenate([support, new])
        first, second = self.blocks(union)
        at = self._sizes(first[:k, :k], second[:k, :k], loadings)
        values = self._exchanged(first, second, loadings, at)
        best = np.argsort(-values, axis=None, kind="stable")[:REFINED]
        chosen = zip(*np.unravel_index(best, values.shape), strict=True)
        sets = np.array(
            [np.append(np.delete(np.arange(k), i), k + f) for i, f in chosen]
        )
        index = (sets[:, :, None], sets[:, None, :])
        reached = self._fitted(first[index], second[index], at)[0]
        return union[sets[int(np.argmax(reached))]]

    def _exchanged(
        self,
        first: FloatArray,
        second: FloatArray,
        loadings: FloatArray,
        at: tuple[float, float],
    ) -> FloatArray:
        """Return about what J is with feature i out and f in, (k, new).

        The other loadings keep their proportions: with u the unit vector that is left
        without i, the best of u cos t + e_f sin t by M at the present loadings.
        """
        k = len(loadings)
        on_first, on_second = self._slope(np.array(at[0]), np.array(at[1]))
        rest = np.tile(loadings, (k, 1))
        np.fill_diagonal(rest, 0.0)
        rest /= np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), TINY)
        parts = [
            (
                np.einsum("ij,ij->i", rest @ block[:k, :k], rest)[:, None],
                rest @ block[:k, k:],
                np.diagonal(block)[k:],
            )
            for block in (first, second)
        ]
        own, cross, far = (
            on_first * a + on_second * b for a, b in zip(*parts, strict=True)
        )
        t = np.arctan2(2 * cross, own - far) / 2
        c, z = np.cos(t), np.sin(t)
        s, q = (c * c * a + 2 * c * z * b + z * z * e for a, b, e in parts)
        return self._value(s, self._ratio(q, s))

    def _has_variance(self, s: FloatArray) -> NDArray[np.bool_]:
        """Whether a score is more than rounding beside those of the others."""
        beside = max(self.others.adjusted, 0.0) + np.abs(s)
        return np.asarray(s > DEPENDENT * beside)

    def _ratio(self, squares: FloatArray, s: FloatArray) -> FloatArray:
        """Return ρ, 0 where nothing varies."""
        varies = self._has_variance(s)
        return np.where(varies, squares / np.where(varies, s, 1.0), 0.0)

    def _value(self, s: FloatArray, rho: FloatArray) -> FloatArray:
        """Return J with one more component, −∞ where it has no variance."""
        others = self.others
        adjusted = np.maximum(others.adjusted + s, TINY)
        predicted = np.maximum(others.predicted + rho, TINY)
        value = np.log(adjusted) + self.weight * np.log(predicted)
        return np.asarray(np.where(self._has_variance(s), value, -np.inf))

    def _slope(self, s: FloatArray, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what M is of A_j and of A_j²; A_j alone where nothing varies.

        Nor where the others have a negative variance, as in a contrast, that exceeds s.
        """
        others = self.others
        varies = self._has_variance(s) & (others.adjusted + s > 0)
        s, rho = np.where(varies, s, 1.0), np.where(varies, rho, 1.0)
        of_square = self.weight / (s * (others.predicted + rho))
        of_square = np.where(varies, of_square, 0.0)
        own = 1 / np.maximum(others.adjusted + s, TINY) - of_square * rho
        return np.where(varies, own, 1.0), of_square

    def _fitted(
        self, first: FloatArray, second: FloatArray, at: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return J and loadings of supports, whose A_j and A_j² are (count, k, k).

        From the leading eigenvectors of M at s and ρ given, by steps to those of M at
        the loadings found so far; the best on the way.
        """
        best = np.full(len(first), -np.inf)
        on_first, on_second = self._slope(np.array(at[0]), np.array(at[1]))
        M = on_first * first + on_second * second
        loadings = np.zeros(first.shape[:2])
        for _ in range(FITS):
            x = np.linalg.eigh(M)[1][:, :, -1]
            s = np.einsum("ni,nij,nj->n", x, first, x)
            rho = self._ratio(np.einsum("ni,nij,nj->n", x, second, x), s)
            values = self._value(s, rho)
            better = values > best
            settled = not (values > best + GAIN).any()
            best = np.where(better, values, best)
            loadings[better] = x[better]
            if settled:
                break
            on_first, on_second = self._slope(s, rho)
            M = on_first[:, None, None] * first + on_second[:, None, None] * second
        return best, loadings


def _whitened(V: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return N with N'N = AV(V'AV)⁺V'A for components V as rows, and V'AV."""
    scores = W @ V.T
    scores = (scores + scores.T) / 2
    sizes, Q = np.linalg.eigh(scores) if len(V) else (np.empty(0), np.empty((0, 0)))
    kept = sizes > max(DEPENDENT * sizes.max(initial=0.0), TINY)
    return (Q[:, kept] / np.sqrt(sizes[kept])).T @ W, scores


def _measured(V: FloatArray, W: FloatArray) -> Measured:
    N, scores = _whitened(V, W)
    adjusted = float(adjusted_variance(scores).sum())
    return Measured(V, W, adjusted, float((N * N).sum()))


def _by_size(scores: FloatArray) -> list[int]:
    """Return an order in which each component adds most to the earlier ones."""
    left, order = scores.copy(), list[int]()
    for _ in range(len(scores)):
        open_ = [i for i in range(len(scores)) if i not in order]
        first = max(open_, key=lambda i: left[i, i])
        order.append(first)
        if left[first, first] > 0:
            left = left - np.outer(left[first], left[first]) / left[first, first]
    return order


def varimax(loadings: FloatArray) -> FloatArray:
    """Rotate columns so that each has few large entries (Kaiser, 1958)."""
    turn = np.eye(loadings.shape[1])
    for _ in range(ROTATIONS):
        turned = loadings @ turn
        squares = turned * turned
        slope = loadings.T @ (turned * (squares - squares.mean(axis=0)))
        # A step of its own size: without turn in the sum it may go to and fro.
        left, _, right = np.linalg.svd(slope + np.linalg.norm(slope) * turn)
        before, turn = turn, left @ right
        if np.abs(turn - before).max() < TURNED:
            break
    return loadings @ turn


def more_predictive(
    cov: Covariance,
    components: FloatArray,
    sparsities: Sequence[int],
    weight: float,
    disjoint: bool,
    deadline: Deadline,
    rng: int | np.random.Generator | None = None,
) -> FloatArray:
    """Return components, (m, d), with at least the J of the given ones.

    Parameters
    ----------
    sparsities : sequence of int
        How many features each may use.
    weight : float
        w ≥ 0, what a percent of R² is worth in percents of adjusted variance.
    disjoint : bool
        Whether no feature may be used twice.
    rng : int or Generator, optional
        For the variations that are tried; 0 by default.
    """
    search = Prediction(cov, sparsities, weight, disjoint, deadline)
    starts = [components, *search.rotated_directions()]
    ends = [search.raised(start) for start in starts]
    # Rotated directions predict much as it is; what begins with variance needs a push.
    ends.append(search.raised(search.raised(ends[0].V, FURTHER).V))
    best = max(ends, key=lambda s: s.value(weight))
    rng, in_vain = as_generator(rng), 0
    for _ in range(TRIALS):
        if in_vain == PATIENCE or deadline.passed():
            break
        in_vain += 1
        trial = search.raised(search.varied(best, rng))
        gain = trial.value(weight) - best.value(weight)
        if gain > GAIN:
            best = trial
            in_vain = 0 if gain > MUCH else in_vain
    return best.V
