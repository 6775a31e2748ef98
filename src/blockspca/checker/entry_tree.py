"""Rule "entry-tree": points for nodes, by which features are out, in, or sets are done.

The nodes are read one after the other; what is still to be read is a stack, so that
nothing is called by itself. A node has the features I that are inside and F that are
free, as positions in the record's `features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic

import numpy as np

from .arithmetic import Form, Forms, Number, Weighted
from .entry_file import Close, EntryNode, Fix, Last, Point, Split
from .fields import ProofError


@dataclass(frozen=True)
class State:
    """What a node is about: sets with all of `inside` and otherwise `free` features."""

    inside: frozenset[int]
    free: frozenset[int]

    @property
    def features(self) -> list[int]:
        return sorted(self.inside | self.free)


class EntryTree(Generic[Number]):
    """Reads the nodes of one record, in order."""

    def __init__(
        self, forms: Forms[Number], k: int, upper: Number, features: Sequence[int]
    ) -> None:
        self.forms: Forms[Number] = forms
        self.upper: Number = upper
        self.k = k
        self.place = {name: place for place, name in enumerate(features)}
        self.A = forms.matrix.block(features)

    def fail(self, what: str) -> ProofError:
        return ProofError(f"k = {self.k}: {what}")

    def check(self, nodes: Sequence[EntryNode]) -> None:
        """Show that no set of k features is above U."""
        waiting = [State(frozenset(), frozenset(self.place))]
        with np.errstate(all="ignore"):  # what is not finite fails its comparison
            for node in nodes:
                state = waiting.pop()
                if isinstance(node, Fix):
                    waiting.append(self.fix(node, state))
                elif isinstance(node, Split):
                    waiting += self.split(node, state)
                elif isinstance(node, Close):
                    self.close(node, state)
                else:
                    assert isinstance(node, Last)
                    self.last(state)

    # -- nodes ----------------------------------------------------------------------

    def split(self, node: Split, state: State) -> list[State]:
        """Return the two nodes that follow, the first of them last."""
        p = {node.feature}
        if not p <= state.free:
            raise self.fail("a split by what is not free")
        without = State(state.inside, state.free - p)
        return [without, State(state.inside | p, state.free - p)]

    def close(self, node: Close, state: State) -> None:
        m = self.k - len(state.inside)
        if m < 1:
            raise self.fail("a node is closed by a point, with m < 1")
        form = self.form(node.point, state)
        if not self.forms.is_positive(form, self.k):
            raise self.fail("a node to be closed by its point is not shown")

    def last(self, state: State) -> None:
        m = self.k - len(state.inside)
        if m < 0 or len(state.free) < m:
            return
        if m > 0 and len(state.free) > m:
            raise self.fail("last, with more than one set left")
        only = self.places(state.features if m else sorted(state.inside))
        A = self.A[np.ix_(only, only)]
        zeros = self.forms.weights([0.0] * len(only))
        shares = np.zeros(len(only) * (len(only) - 1) // 2)
        raised = [Fraction(0)] * len(only)
        form = self.forms.point(Weighted(A, zeros, shares, self.upper, self.k), raised)
        if not self.forms.is_positive(form, self.k):
            raise self.fail("the last set of a node to be at most U is not shown")

    def fix(self, node: Fix, state: State) -> State:
        """Show what is out and what is in; return the node that goes on."""
        if self.k - len(state.inside) < 1:
            raise self.fail("fix, with m < 1")
        if not {*node.out, *node.inside} <= state.free:
            raise self.fail("fix names features that are not free")
        self.check_out(node, state)
        if node.inside:
            self.check_in(node, state)
        else:
            self.weights(node.point, state)  # of the right number
        free = state.free - {*node.out} - {*node.inside}
        return State(state.inside | {*node.inside}, free)

    def check_in(self, node: Fix, state: State) -> None:
        """Show that the sets without a feature are not above U."""
        form, names = self.form(node.point, state), state.features
        out = {*node.out}
        for i in node.inside:
            left = [t for t, j in enumerate(names) if j != i and j not in out]
            part = self.forms.without(form, np.array(left, dtype=np.int64))
            if not self.forms.is_positive(part, self.k):
                raise self.fail("a feature that has to be in is not shown")

    def check_out(self, node: Fix, state: State) -> None:
        """Show that the sets with a feature are not above U, one price at a time."""
        point, names = node.point, state.features
        given = self.weighted(point, state)
        place = {name: t for t, name in enumerate(names)}
        own = self.forms.weights(node.own)
        total = (
            self.k - len(state.inside) - 1 + len(state.inside) * Fraction(point.ratio)
        )
        for price in sorted({*node.prices}):
            chosen = [t for t, a in enumerate(node.prices) if a == price]
            raised = self.raised(point, state, total * (1 + 1 / Fraction(price)))
            form = self.forms.point(given, raised)
            places = np.array([place[node.out[t]] for t in chosen])
            columns = self.forms.columns(given, places, own[chosen], price)
            shown = self.forms.are_out(form, columns, self.upper)
            for t in np.flatnonzero(~shown).tolist():
                bordered = self.forms.bordered(form, columns, t)
                if not self.forms.is_positive(bordered, self.k):
                    raise self.fail("a feature that has to be out is not shown")

    # -- points ---------------------------------------------------------------------

    def places(self, names: Sequence[int]) -> np.ndarray:
        return np.array([self.place[name] for name in names], dtype=np.int64)

    def weights(self, point: Point, state: State) -> np.ndarray:
        size = len(state.inside) + len(state.free)
        if len(point.weights) != size:
            raise self.fail(f"a point has {len(point.weights)} weights for {size}")
        return self.forms.weights(point.weights)

    def raised(self, point: Point, state: State, total: Fraction) -> list[Fraction]:
        """Return max(0, total/ρ_i − 1) for the features of a node."""
        inside = max(Fraction(0), total / Fraction(point.ratio) - 1)
        free = max(Fraction(0), total - 1)
        return [inside if i in state.inside else free for i in state.features]

    def form(self, point: Point, state: State) -> Form:
        """Return UI − M of a point."""
        count = len(state.inside)
        raised = self.raised(
            point, state, self.k - count + count * Fraction(point.ratio)
        )
        return self.forms.point(self.weighted(point, state), raised)

    def weighted(self, point: Point, state: State) -> Weighted[Number]:
        """Return Ã on the features of a node, with the numbers of a point."""
        w, places = self.weights(point, state), self.places(state.features)
        A = self.A[np.ix_(places, places)]
        return Weighted(A, w, point.shares, self.upper, self.k)
