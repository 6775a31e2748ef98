"""The chain: bounds on opt(1), opt(2), …, opt(k), each by means of those before it.

For each q a search at τ, a little above the best support of q, shows that no q-set is
above τ. `prove/screening.py` leaves it few features and `search/tree.py` does the rest;
both use the bound of q − 1. U_q = τ + margin holds for the exact matrix; U_m + margin
bounds opt(m) of the computed one, which is what they search.

If screening leaves many features, q-sets grow from smaller ones in `search/subsets.py`
beside the tree, and whichever ends first is the proof.

There is one τ for each q. A search that is cut short also gives a bound: the largest w
of its open nodes. Its record is that of a tree at w, so the search is repeated at w.
That takes far less time, because nodes that are open at τ are closed at w.
"""

from __future__ import annotations

import math

import numpy as np

from ..bounds.closed_form import average_bound, variance_bound
from ..call import Run
from ..constraints.rules import Rules
from ..covariance.covariance import Covariance
from ..limits import SEARCH_GAP, Status, relative_gap
from ..linalg import cost
from ..progress import Event
from ..proof.evidence import Average, Record, Rows, Tree, Variance, margin
from ..result import Bound
from ..search import tree
from ..search.subsets import Subsets
from ..supports.supports import ROWS, Supports
from ..validation import FloatArray, Indices
from .screening import Screening

# Entries that a tree reads between two looks at the clock: about 0.05 s.
SLICE = 2**24
# More survivors than this, and 4 q, are a sign of a poor support (Lymphoma2), or of a
# flat matrix.
MANY = 40
# Entries that a tree reads before strong sets are listed, too, and then their share of
# its work: ALLAML standardised, k = 20, needs none, and Model 1 little else.
HEAD_START = 2**27
SHARE = 2.0


class Chain:
    """A prover of opt(k), and of all opt(q) below it.

    Attributes
    ----------
    bounds : list of Bound
        bounds[q] of opt(q), q = 1, …, k.
    sizes : range
        The q of the chain; it begins with the root, if there is one.
    q : int
        The size whose proof is under way; above k at the end.
    nodes : list of int
        Nodes of the trees of each size.
    """

    def __init__(
        self,
        cov: Covariance,
        k: int,
        rules: Rules,
        screening: Screening | None,
        supports: Supports,
        run: Run,
    ) -> None:
        self._cov, self.k, self._rules, self._run = cov, k, rules, run
        self._screening, self._supports = screening, supports
        self.bounds = [Bound()] * (k + 1)
        self.sizes = range(max(1, len(rules.root)), k + 1)
        self.q, self.nodes = self.sizes[0], [0] * (k + 1)
        # Objectives are rounded, so the search aims at a slightly smaller gap.
        self._gap = max(SEARCH_GAP, 0.999 * (run.limits.gap or 0.0))
        self._wider = 1.0
        self._tree: tree.Tree | None = None
        self._subsets: Subsets | None = None
        self._features: Indices = np.empty(0, dtype=np.int64)
        self._largest = 0.0  # |A_ij| of the tree
        self._lowest = float(cov.diagonal().min())
        self._error = cov.entry_error

    @property
    def bound(self) -> Bound:
        """The bound on opt(k)."""
        return self.bounds[self.k]

    @property
    def support(self) -> Indices:
        """The best support of k."""
        return self._supports.best[self.k].features

    @property
    def closed(self) -> bool:
        """Whether there is nothing more to gain."""
        return self.q > self.k

    @property
    def left(self) -> float:
        """The number of sizes that are not proved yet."""
        return self.k + 1 - self.q

    @property
    def reach(self) -> float:
        """The bound on opt(k)."""
        return self.bound.value

    @property
    def floor(self) -> float:
        """No bound below this can come from the chain."""
        return self._supports.best[self.k].value

    def advance(self, work: float) -> None:
        """Continue until this work is done, k is proved or the call is over."""
        end = self._run.work + work
        while not self.closed and self._run.work < end and not self._run.over():
            if self._tree is None:
                self._begin()
            else:
                self._search()

    def finish(self) -> None:
        """Bound q by its open nodes, and all larger sizes by closed forms."""
        if self._tree is not None:
            self._close_open_nodes(self._tree)
            self._tree = None
        for q in range(self.q, self.k + 1):
            self._supports.follow(q)
            self._bound_cheaply(q)

    # -- bounds --------------------------------------------------------------------

    def margin(self, k: int, value: float) -> float:
        """Return the margin of a bound on opt(k) for rounding and errors of entries."""
        return margin(k, value, self._lowest, self._error)

    def _margin_of_tree(self, k: int, tau: float) -> float:
        return margin(k, tau, self._lowest, self._error, self._largest)

    def _upper(self, q: int) -> FloatArray:
        """Return bounds on opt(m), m < q, of the computed matrix, and ∞ for q."""
        values = np.array([*(bound.value for bound in self.bounds[:q]), math.inf])
        finite = np.isfinite(values)
        values[finite] += self.margin(q, float(np.abs(values[finite]).max(initial=0)))
        return values

    def _lower(self, q: int, name: str, record: Record) -> None:
        """Keep the record of q if it lowers the bound."""
        if record.upper < self.bounds[q].value:
            evidence = (*self.bounds[q - 1].evidence, record)
            self.bounds[q] = Bound(record.upper, name, evidence)

    def _bound_cheaply(self, q: int) -> None:
        """Bound opt(q) by closed forms and by screening."""
        cov, screening, upper = self._cov, self._screening, self._upper(q)

        def raised(value: float) -> float:
            # Other forms of the same data, such as sparse ones, have other errors.
            room = SEARCH_GAP / 2 * abs(value) if self._error else 0.0
            return value + max(room, self.margin(q, value))

        variance = variance_bound(cov.diagonal(), q, cov.known_psd)
        if variance < math.inf:
            # A single A_ii has no rounding.
            exact = q == 1 and self._error == 0
            upper_bound = variance if exact else raised(variance)
            self._lower(q, "variance", Variance(q, upper_bound))
        average, m = average_bound(q, upper, self._lowest, cov.known_psd)
        # The average is over all m-sets, and the bound only about those with the root.
        if average < math.inf and len(self._rules.root) == 0:
            self._lower(q, "average", Average(q, raised(average), m))
        if q == 1 or screening is None:
            return
        sums = screening.row_sums(q)
        if sums is not None:
            rows = float(sums.max()) + q * screening.error
            self._lower(q, "row sums", Rows(q, raised(rows)))
        if upper[q - 1] < math.inf:
            level = screening.level(q, float(upper[q - 1]))
            self._lower(q, "screening", Tree(q, raised(level), (), 1))

    def _is_proved(self, q: int) -> bool:
        value, bound = self._supports.best[q].value, self.bounds[q].value
        rounding = 1.01 * self.margin(q, value)
        return relative_gap(value, bound) <= self._gap or bound <= value + rounding

    # -- the search for one q ------------------------------------------------------

    def _begin(self) -> None:
        """Screen for q and make its tree, unless q is proved without a tree."""
        q, supports, screening = self.q, self._supports, self._screening
        assert screening is not None
        supports.follow(q)  # the tree may have improved the support of q − 1
        self._bound_cheaply(q)
        if self._is_proved(q):
            self._go_on()
            return
        upper, value = self._upper(q), supports.best[q].value
        room = self._margin_of_tree(q, value)
        # Rounding is below the least gap, so a set that the tree finds is better.
        tau = value + max(self._gap * abs(value) - room, self._wider * room / 4)
        if q == len(self._rules.root):
            features = self._rules.root
        else:
            tau = max(tau, upper[q - 1])  # below it, nothing can be screened
            if tau + self.margin(q, tau) >= self.bounds[q].value:
                self._go_on()
                return
            features = screening.survivors(q, tau, float(upper[q - 1]))
        if len(features) > 4 * q + MANY and supports.try_rows(
            q, screening.row_supports(q, ROWS)
        ):
            return
        if 32 * len(features) ** 2 > self._run.memory:
            self._run.stop(Status.MEMORY_LIMIT)
            return
        if supports.admit(q, features):
            return
        matrix = supports.pool.submatrix(features)
        self._largest = float(np.abs(matrix).max(initial=0.0))
        self._run.spend(cost.passes(16 * len(features) ** 2))
        self._features = features
        self._tree = tree.Tree(
            matrix,
            q,
            tau,
            upper,
            root=np.searchsorted(features, self._rules.root),
            label=None if self._rules.label is None else self._rules.label[features],
            room=self._rules.room,
            memory=self._run.memory,
        )
        self._subsets = None
        if len(features) > 4 * q + MANY and self._rules.is_free:
            self._subsets = Subsets(matrix, q, tau, self._run.memory)

    def _search(self) -> None:
        """Search on for a slice; go on to the next q if the tree is closed."""
        search: tree.Tree | Subsets | None = self._tree
        q, subsets = self.q, self._subsets
        assert search is not None
        if subsets is not None and not subsets.failed:
            ahead = cost.tree(search.entries - HEAD_START)
            if cost.subsets(subsets.entries) < SHARE * ahead:
                search = subsets
        self._advance(search, SLICE)
        if search.closed:
            self._record(search)
            self._go_on()
        elif search.found is not None:
            self._tree = None
            if not self._supports.offer(q, self._features[search.found]):
                self._wider *= 16  # the error of LAPACK's λ exceeds the margin
        elif search.failed and search is not subsets:
            self._run.stop(Status.MEMORY_LIMIT)
        self._tell()

    def _advance(self, search: tree.Tree | Subsets, entries: int) -> None:
        before, nodes = search.entries, search.nodes
        search.advance(entries)
        work = cost.subsets if isinstance(search, Subsets) else cost.tree
        self._run.spend(work(search.entries - before))
        self.nodes[self.q] += search.nodes - nodes

    def _record(self, search: tree.Tree | Subsets) -> None:
        q, tau = self.q, search.tau
        order = tuple(self._features[search.order].tolist())
        if search is self._subsets:
            upper, name = tau + self.margin(q, tau), "subsets"
        else:
            upper, name = tau + self._margin_of_tree(q, tau), "tree"
        self._lower(q, name, Tree(q, upper, order, search.nodes))

    def _close_open_nodes(self, search: tree.Tree) -> None:
        """Bound opt(q) by the open nodes of a tree: search at that level."""
        level = search.open_bound()
        if search.ended or level + self.margin(self.q, level) >= self.bound.value:
            return
        again = search.at(level)
        self._advance(again, max(SLICE, search.entries // 4))
        if again.closed:
            self._record(again)

    def _go_on(self) -> None:
        self._tree = self._subsets = None
        self._wider, self._largest = 1.0, 0.0
        self.q += 1
        self._tell()

    def _tell(self) -> None:
        q = min(self.q, self.k)
        self._run.tell(
            Event(
                stage="proof",
                done=self.q - 1,
                total=self.k,
                k=q,
                objective=self._supports.best[q].value,
                bound=self.bounds[q].value,
                nodes=sum(self.nodes),
            )
        )
