"""Branch and bound with the dual of `shared_dual`: features are in, out, or open."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bounds.direction_dual.columns import HostColumns
from ..bounds.direction_dual.density import Density
from ..bounds.direction_dual.problem import Problem, make_problem
from ..bounds.direction_dual.relaxation import rounding_of_sum
from ..limits import Budget, NotAffordable
from ..numerics.blas import single_threaded
from ..numerics.rounding import EPS
from ..numerics.upper_eigenvalues import ky_fan_ceiling
from ..status import SEARCH_GAP
from .shared_copies import CopiesPoint, proved_by_copies
from .shared_descent import SHORTEST, CopiesDescent
from .shared_dual import CLAIMED, DualPoint, SharedAscent, SharedNode, begin, proved_at
from .shared_heuristic import SharedHeuristic, SharedSet
from .shared_problem import SharedProblem

SEARCH_UP_TO = 60  # features; more are left to the dual at the root
ROUNDS = 12  # of ascent at the root, each with sets drawn from its density
ROOT_STEPS = 64
CHILD_STEPS = 24
DRAWN = 6  # sets drawn in a round
SHARE = 0.5  # of the first density on the directions of the start
# Of the sizes of columns: in other coordinates they are apart by as much as their size,
# and a factorization of a nearly singular matrix is known to √eps.
SAME = 1e-5


@dataclass(frozen=True)
class DualClaim:
    """The point of a bound, with the features whose columns it is about.

    Which those are depends on the set from which the search began, `start`. `mark`,
    a sum of the columns, tells in which coordinates the point is: those of samples, or
    of a factor of the matrix. None in results that were stored without it.
    """

    features: tuple[int, ...]
    point: DualPoint | CopiesPoint
    start: tuple[int, ...]
    mark: FloatArray | None = None

    def is_for(self, columns: HostColumns) -> bool:
        """Whether the columns of its features are in the coordinates of the point."""
        n, point, mark = columns.shape[0], self.point, self.mark
        across = point.U if isinstance(point, CopiesPoint) else point.density.Q
        if across.ndim == 2 and len(across) != n:
            return False
        if mark is None:
            return True
        here, size = _mark(columns)
        if mark.shape != here.shape:
            return False
        # Its length is that of the matrix, in any coordinates: data with another are
        # other data, which the point is to prove the bound of as well.
        longer = abs(float(np.linalg.norm(mark) - np.linalg.norm(here)))
        return bool(longer > SAME * size or np.linalg.norm(mark - here) <= SAME * size)


class SharedSearch:
    """The dual at the root, then nodes for few features, or a closer bound for many.

    Attributes
    ----------
    best : SharedSet
        The incumbent.
    bound : float
        On opt_r(k); infinite if A has no columns, or there was no time.
    nodes : int
    has_branched : bool
        Whether the bound rests on nodes, or a leaf, and not on a point of the dual.
    """

    def __init__(
        self,
        shared: SharedProblem,
        best: SharedSet,
        budget: Budget,
        heuristic: SharedHeuristic | None = None,
    ) -> None:
        cov, self.k, self.r = shared.cov, shared.k, shared.r
        self.cov, self.include = cov, shared.include
        # on the features of a group; the root does not know them
        self.limits = shared.limits
        self.best, self.budget, self.heuristic = best, budget, heuristic
        self.start = tuple(int(i) for i in best.support)
        self.bound, self.nodes, self.has_branched = np.inf, 0, False
        #: Told of the bound of the root, and of the open nodes, as the search goes on
        self.tell: Callable[[float], None] = lambda bound: None
        self.root_claim: DualClaim | None = None
        self.settled = -np.inf
        self.claimed: float | None = None  # a bound that is to be confirmed
        self.is_small = cov.n_features <= SEARCH_UP_TO
        self.problem: Problem | None = None
        # The most columns that a set under limits on groups can have. Each set of fewer
        # is part of one with so many, and F_r is no less for that (interlacing).
        self._most = 0
        self._rng = np.random.default_rng(0)
        self._open: list[tuple[float, int, SharedNode]] | None = None  # before the root
        self._order = itertools.count()
        with suppress(NotAffordable):
            self.problem = self._make_problem()

    def _make_problem(self, features: Sequence[int] | None = None) -> Problem | None:
        with single_threaded():
            return make_problem(
                self.cov,
                self.k,
                self.best.support,
                self.is_small or len(self.include) > 0,
                self.budget,
                self.budget.limits.memory,
                features=features,
            )

    # -- units: the columns are those of A/unit + shift I, up to a slack ------------

    def _outward(self, value: float) -> float:
        """Return a bound for the columns as one for A: r eigenvalues are shifted.

        Entries of A are known to ± e, and with U orthonormal on S, P = UU',
        |tr U'(A − Ã)U| ≤ e Σ |P_ij| ≤ e k ‖P‖_F = e k √r.
        """
        problem = self.problem
        assert problem is not None
        if not np.isfinite(value):
            return value
        scale = abs(value) + self.r * (problem.slack + problem.shift)
        value += self.r * (problem.slack - problem.shift)
        error = self.k * self.r * self.cov.entry_error
        return float((value + 4 * EPS * scale) * problem.unit + error)

    def _inward(self, value: float) -> float:
        problem = self.problem
        assert problem is not None
        value = value / problem.unit + self.r * (problem.shift - problem.slack)
        return value - 8 * EPS * (abs(value) + self.r * problem.shift)

    @property
    def _target(self) -> float:
        objective = self.best.objective
        return self._inward(objective + SEARCH_GAP / 2 * abs(objective))

    # -- the search ------------------------------------------------------------------

    def run(self, max_nodes: int | None = None, steps: int | None = None) -> None:
        """Bound opt_r(k), with at most so many nodes, and steps at the root.

        Another call goes on where this one ends.
        """
        if self.problem is None:
            return
        with single_threaded():
            if self._open is None:
                root = self._root(self.problem)
                if root is None:
                    return
                self._work_at_root(root, steps)
                self._open = []
                self._put(root)
            if self.is_small and self._covers_everything():
                self._branch(self._open, max_nodes)

    def _put(self, node: SharedNode) -> None:
        """Keep a node open, unless it is closed."""
        assert self._open is not None
        if not self._closed(node):
            heapq.heappush(self._open, (-node.bound, next(self._order), node))

    def _covers_everything(self) -> bool:
        """Whether every feature with a variance has a column."""
        assert self.problem is not None
        return self.problem.min_multiplier == 0

    def _root(self, problem: Problem) -> SharedNode | None:
        place = {int(f): i for i, f in enumerate(problem.features)}
        if not all(int(f) in place for f in self.include):
            return None
        inside = np.array([place[int(f)] for f in self.include], dtype=np.intp)
        undecided = np.setdiff1d(np.arange(len(place)), inside)
        undecided = self._with_room(inside, undecided)
        here = [i for i, f in enumerate(self.best.support) if int(f) in place]
        weights = np.zeros((len(place), self.r))
        chosen = [place[int(self.best.support[i])] for i in here]
        weights[chosen] = self.best.vectors[here]
        directions = np.linalg.qr(problem.columns.combine(weights))[0]
        forms = (problem.columns.project(directions) ** 2).sum(axis=0)
        open_ = self.k - len(inside)
        order = np.sort(forms[undecided])[::-1]
        rho = float(order[min(max(open_, 1), len(order)) - 1]) if len(order) else 1.0
        root = SharedNode(inside, undecided, begin(directions, SHARE), rho)
        if self.limits is not None:
            self._most = len(inside) + self._still(root)
        return root

    def _work_at_root(self, root: SharedNode, steps: int | None) -> None:
        assert self.problem is not None
        if self._is_leaf(root):
            self._leaf(root)
            self.bound = self._outward(self.settled)
            self.nodes, self.has_branched = 1, True
            return
        ascent = SharedAscent(self.problem, self.r, root, self._still(root))
        rounds = [ROOT_STEPS] * ROUNDS if steps is None else [steps]
        for in_round in rounds:
            ascent.run(in_round, self._target, self.budget)
            if ascent.best is None:
                return
            self._draw(ascent.best.density)
            self.tell(self._outward(root.bound))
            over = ascent.has_converged or self.budget.passed()
            if over or self._is_enough(root.bound):
                break
        self.nodes = 1
        self.bound = self._outward(root.bound)
        features = tuple(int(f) for f in self.problem.features)
        assert ascent.best is not None
        mark, _ = _mark(self.problem.columns)
        self.root_claim = DualClaim(features, ascent.best, self.start, mark)
        if steps is None and not self.is_small:
            self._descend(root, ascent.best)

    def _descend(self, root: SharedNode, point: DualPoint) -> None:
        """Go on from a point of the dual with the bound that is closer."""
        problem, claim = self.problem, self.root_claim
        assert problem is not None
        assert claim is not None
        columns = problem.columns.take(root.undecided)
        m = int((columns.norms > SHORTEST * point.multiplier).sum())
        memory = self.budget.limits.memory
        if not CopiesDescent.is_affordable(columns.shape[0], m, memory):
            return
        inside = problem.columns.take(root.inside)
        descent = CopiesDescent(columns, self._still(root), self.r, point, inside)
        gap = self.budget.limits.gap or SEARCH_GAP / 2
        objective = self.best.objective
        try:
            descent.run(self._inward(objective + gap * abs(objective)), self.budget)
        finally:  # also after Ctrl-C
            if descent.best is not None and descent.value < root.bound:
                bound = self._proved_at(root, descent.best, CLAIMED)
                if bound < root.bound:
                    root.bound, self.bound = bound, self._outward(bound)
                    self.root_claim = replace(claim, point=descent.best)

    def _proved_at(
        self, root: SharedNode, point: DualPoint | CopiesPoint, margin: float
    ) -> float:
        """Return what a point proves of the columns, with so many margins."""
        problem = self.problem
        assert problem is not None
        columns = problem.columns.take(root.undecided)
        inside = problem.columns.take(root.inside)
        left = self._still(root)
        if isinstance(point, CopiesPoint):
            least = problem.min_multiplier
            return proved_by_copies(columns, left, self.r, point, inside, least, margin)
        base, size = np.zeros((columns.shape[0],) * 2), 0.0
        if len(root.inside):
            base = inside.gram(np.ones(len(root.inside)))
            size = float((inside.sizes**2).sum())
        return proved_at(
            columns, left, self.r, point, base, size, len(root.inside), margin
        )

    def _is_enough(self, bound: float) -> bool:
        gap = self.budget.limits.gap or SEARCH_GAP / 2
        objective = self.best.objective
        return self._outward(bound) <= objective + gap * abs(objective)

    def _draw(self, density: Density) -> None:
        """Round the density to sets, and keep the best of them."""
        problem, heuristic = self.problem, self.heuristic
        if heuristic is None:
            return
        assert problem is not None
        before = self.best
        for _ in range(DRAWN):
            if self.budget.passed():
                return
            noise = self._rng.normal(size=(density.Q.shape[1], self.r))
            directions = density.Q @ (np.sqrt(density.weights)[:, None] * noise)
            directions = np.linalg.qr(directions)[0]
            scores = np.zeros(self.cov.n_features)
            forms = (problem.columns.project(directions) ** 2).sum(axis=0)
            scores[problem.features] = forms
            start = heuristic.top(scores)
            found = heuristic.best_of([start], self.budget, exchange=False)
            if found.objective > self.best.objective:
                self.best = found
        if self.best is not before:
            self.best = heuristic.ascend(self.best, self.budget)

    def _branch(
        self, open_nodes: list[tuple[float, int, SharedNode]], max_nodes: int | None
    ) -> None:
        if max_nodes is None:
            max_nodes = self.budget.limits.nodes
        split = -np.inf  # the bound of the node that is being split
        try:
            while open_nodes:
                # children come in pairs
                stopped = max_nodes is not None and self.nodes + 2 > max_nodes
                enough = self._is_enough(-open_nodes[0][0])
                if stopped or enough or self.budget.passed():
                    break
                split = -open_nodes[0][0]
                self.tell(self._outward(split))
                _, _, node = heapq.heappop(open_nodes)
                if self._closed(node):
                    split = -np.inf
                    continue
                self.has_branched = True
                for child in self._children(node):
                    self._work(child)
                    self._put(child)
                split = -np.inf
        finally:  # also after Ctrl-C, with the node under way as it was
            self._conclude([split, *(-bound for bound, _, _ in open_nodes)])

    def _conclude(self, open_bounds: list[float]) -> None:
        """Bound opt_r(k) by the nodes that are open, and by what was closed."""
        if not self.has_branched and max(open_bounds) == -np.inf:
            return
        # What was closed is at or below the target of its time, hence of the last.
        bounds = [self.settled, *open_bounds]
        if self.has_branched:
            bounds.append(self._target)
        self.bound = min(self.bound, self._outward(max(bounds)))

    def _closed(self, node: SharedNode) -> bool:
        if self.claimed is not None:
            return self._outward(node.bound) <= self.claimed
        return node.bound <= self._target

    def _children(self, node: SharedNode) -> list[SharedNode]:
        """Take the feature that is most open in, and out."""
        assert node.z is not None
        at = int(np.argmin(np.abs(node.z - 0.5)))
        rest = np.delete(node.undecided, at)
        inside = np.append(node.inside, node.undecided[at])
        left = self._with_room(inside, rest)
        return [
            SharedNode(inside, left, node.density, node.multiplier, node.bound),
            SharedNode(node.inside, rest, node.density, node.multiplier, node.bound),
        ]

    def _with_room(
        self, inside: NDArray[np.intp], rest: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the columns that can join those inside, by the limits on groups."""
        if self.limits is None:
            return rest
        assert self.problem is not None
        features = self.problem.features
        closed = self.limits.closed_to(features[inside])
        return rest[~closed[features[rest]]]

    def _work(self, node: SharedNode) -> None:
        assert self.problem is not None
        self.nodes += 1
        if len(node.inside) + self._still(node) < self._most:
            node.bound = -np.inf  # its sets are parts of larger ones in other nodes
            return
        if self._is_leaf(node):
            self._leaf(node)
            return
        ascent = SharedAscent(self.problem, self.r, node, self._still(node))
        ascent.run(CHILD_STEPS, self._target, self.budget)
        if node.z is None:
            node.z = np.full(len(node.undecided), 0.5)

    def _still(self, node: SharedNode) -> int:
        """Return how many undecided columns a set can have at the most."""
        assert self.problem is not None
        left = self.problem.k - len(node.inside)
        if self.limits is None:
            return left
        features = self.problem.features
        room = self.limits.after(features[node.inside], features[node.undecided])
        return min(left, room.capacity)

    def _is_leaf(self, node: SharedNode) -> bool:
        left = self.k - len(node.inside)
        if left <= 0:
            return True
        if left < len(node.undecided):
            return False
        if self.limits is None:
            return True
        # All that are left can be taken at once only if there is room for all.
        assert self.problem is not None
        everything = np.concatenate([node.inside, node.undecided])
        return self.limits.allows(self.problem.features[everything])

    def _leaf(self, node: SharedNode) -> None:
        """Bound the only set that is left, and close the node."""
        problem = self.problem
        assert problem is not None
        chosen = node.inside
        if self.k > len(chosen):
            chosen = np.concatenate([chosen, node.undecided])
        columns = problem.columns.take(chosen)
        value = ky_fan_ceiling(columns.gram(np.ones(len(chosen))), self.r)
        size = float((columns.sizes**2).sum())
        value += self.r * rounding_of_sum(*columns.shape, size)
        value = min(value, node.bound)
        if self.claimed is None or self._outward(value) > self.claimed:
            self.settled = max(self.settled, value)
        node.bound = -np.inf
        support = problem.features[chosen]
        if len(support) >= self.r:
            found = SharedSet.of(self.cov, support, self.r)
            if found.objective > self.best.objective:
                self.best = found

    # -- verification ------------------------------------------------------------------

    def proves(self, claimed: float, max_nodes: int) -> bool | None:
        """Tell whether opt_r(k) ≤ claimed; None if so many nodes, or time, do not."""
        problem, self.claimed = self.problem, claimed
        root = None if problem is None else self._root(problem)
        if root is None or not self._covers_everything():
            return None
        open_nodes = [root]
        with single_threaded():
            while open_nodes:
                if self.nodes >= max_nodes or self.budget.passed():
                    return None
                node = open_nodes.pop()
                self._work(node)
                if self._outward(self.settled) > claimed:
                    return False
                if not self._closed(node):
                    open_nodes += self._children(node)
        return True

    def bound_of(self, claim: DualClaim) -> float | None:
        """Return what a point of the dual proves, computed again.

        None if it is in the coordinates of data in another form, such as a matrix where
        there are samples here: of those it says nothing.
        """
        problem, features = self.problem, claim.features
        known = {*range(self.cov.n_features)}
        if problem is None or not features or not known.issuperset(features):
            return np.inf
        if len({*features}) < len(features):
            return np.inf
        if tuple(problem.features.tolist()) != features:
            # Columns of data in another form, which differ by rounding, have been
            # chosen in another order: any choice proves a bound.
            problem = self.problem = self._make_problem(features)
        if problem is None:
            return np.inf
        root = self._root(problem)
        if root is None:
            return np.inf
        point, n = claim.point, problem.columns.shape[0]
        if not claim.is_for(problem.columns):
            return None
        if isinstance(point, CopiesPoint):
            usable = point.is_for(n, len(root.undecided))
        else:
            usable = point.multiplier >= problem.min_multiplier
            usable = usable and _is_density(point.density, n)
        if not usable:
            return np.inf
        with single_threaded():
            return self._outward(self._proved_at(root, point, 1.0))


def _mark(columns: HostColumns) -> tuple[FloatArray, float]:
    """Return Σ c_i / i and Σ ‖c_i‖ / i, where plain sums may cancel."""
    weights = 1 / np.arange(1.0, columns.shape[1] + 1)
    return columns.combine(weights[:, None])[:, 0], float(weights @ columns.sizes)


def _is_density(density: Density, n: int) -> bool:
    """Whether it has positive weights, in n dimensions; any others prove nothing."""
    weights: FloatArray = np.append(density.weights, density.rest)
    return (
        density.Q.shape == (n, len(density.weights))
        and bool(np.isfinite(weights).all())
        and bool((weights > 0).all())
    )
