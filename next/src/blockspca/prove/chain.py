"""The chain: bounds on opt(1), opt(2), …, opt(k), each by means of those before it.

For each q a search at τ, a little above the best support of q, shows that no q-set is
above τ. `prove/screening.py` leaves it few features and `search/tree.py` does the rest;
both use the bound of q − 1. U_q = τ + margin holds for the exact matrix; U_m + margin
bounds opt(m) of the computed one, which is what they search.

There is one τ for each q. A search that is cut short gives a bound, too: the largest w
of its open nodes. As the record of a tree at w it is searched once more, which takes
far less, because what was open at τ is closed at w.
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
from ..supports.supports import ROWS, Supports
from ..validation import FloatArray, Indices
from .screening import Screening

# Entries that a tree reads between two looks at the clock: about 0.05 s.
SLICE = 2**24
# More survivors than this, and 4 q, are a sign of a poor support: Lymphoma2.
MANY = 40


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
        # A little less than what was asked for: objectives are rounded.
        self._gap = max(SEARCH_GAP, 0.999 * (run.limits.gap or 0.0))
        self._wider = 1.0
        self._tree: tree.Tree | None = None
        self._features: Indices = np.empty(0, dtype=np.int64)
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
        """How many q are left to prove."""
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
        """Go on until so much work is done, k is proved or the call is over."""
        end = self._run.work + work
        while not self.closed and self._run.work < end and not self._run.over():
            if self._tree is None:
                self._begin()
            else:
                self._search()

    def finish(self) -> None:
        """Give q a bound by its open nodes, and all that follow it closed forms."""
        if self._tree is not None:
            self._close_open_nodes(self._tree)
            self._tree = None
        for q in range(self.q, self.k + 1):
            self._supports.follow(q)
            self._bound_cheaply(q)

    # -- bounds --------------------------------------------------------------------

    def margin(self, k: int, value: float) -> float:
        """Return what pays for rounding and errors of entries in a bound of k."""
        return margin(k, value, self._lowest, self._error)

    def _upper(self, q: int) -> FloatArray:
        """Return bounds on opt(m), m < q, of the computed matrix, and ∞ for q."""
        values = np.array([*(bound.value for bound in self.bounds[:q]), math.inf])
        finite = np.isfinite(values)
        values[finite] += self.margin(q, float(np.abs(values[finite]).max(initial=0)))
        return values

    def _lower(self, q: int, name: str, record: Record) -> None:
        """Keep the record of q if its bound is the least."""
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
            # One A_ii is not rounded.
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
        """Screen for q and plant its tree, unless q is proved without one."""
        q, supports, screening = self.q, self._supports, self._screening
        assert screening is not None
        supports.follow(q)  # the tree may have found a better one of q − 1
        self._bound_cheaply(q)
        if self._is_proved(q):
            self._go_on()
            return
        upper, value = self._upper(q), supports.best[q].value
        room = self.margin(q, value)
        # What rounding hides is below the least gap, so that a set that the tree finds
        # is a better one.
        tau = value + max(self._gap * abs(value) - room, self._wider * room / 4)
        if q == len(self._rules.root):
            features = self._rules.root
        else:
            tau = max(tau, upper[q - 1])  # or the bound of q − 1 would say nothing
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

    def _search(self) -> None:
        """Search on for a slice; go on to the next q if the tree is closed."""
        search, q = self._tree, self.q
        assert search is not None
        self._advance(search, SLICE)
        if search.closed:
            self._record(search)
            self._go_on()
        elif search.found is not None:
            self._tree = None
            if not self._supports.offer(q, self._features[search.found]):
                self._wider *= 16  # LAPACK's λ is further off than the margin
        elif search.failed:
            self._run.stop(Status.MEMORY_LIMIT)
        self._tell()

    def _advance(self, search: tree.Tree, entries: int) -> None:
        before, nodes = search.entries, search.nodes
        search.advance(entries)
        self._run.spend(cost.tree(search.entries - before))
        self.nodes[self.q] += search.nodes - nodes

    def _record(self, search: tree.Tree) -> None:
        q, tau = self.q, search.tau
        order = tuple(self._features[search.order].tolist())
        record = Tree(q, tau + self.margin(q, tau), order, search.nodes)
        self._lower(q, "tree", record)

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
        self._tree, self._wider = None, 1.0
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
