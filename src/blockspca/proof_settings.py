"""Every number that decides which prover runs, when and for how long, with its reason.

None of them decides what is true: with any values the bounds hold, some come later or
are wider. They are passed down from `pipeline.py`, so that a test can pass others. A
change is to be held against `benchmarks/certified_path.py` and `benchmarks/paper.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from .limits import Limits


class Prover(Enum):
    """Who proves a range of k, in which order; see `certify.provers.choose_prover`."""

    CHAIN = "from k = 1 up, each k by the one before"
    SINGLE_K = "the last k by itself, by the direction dual"
    SINGLE_K_THEN_CHAIN = "by itself, and by the chain if that leaves a gap"
    CHAIN_THEN_SINGLE_K = "by the chain, and the last k by itself where it resists"


@dataclass(frozen=True)
class ProofSettings:
    """When and for how long each prover runs; k are sparsities, times are seconds."""

    # -- which prover (`certify.provers.choose_prover`) --------------------------------

    #: Swaps on blocks cost k³ each. Beyond this k power steps find as much in less
    #: time, and from data, where blocks of 2k features have to be computed, the proof
    #: takes less time than the blocks that would start it.
    local_search_up_to: int = 30
    #: From this k on the chain from k = 1 up is long, while the duals, one for columns
    #: of data, one for entries, are often within a per cent at once.
    single_k_from: int = 30
    #: Up to this k, and for this part of a limit on time, the chain comes first: within
    #: ten seconds it proves k = 30 of most correlations in one or two (Prostate_GE 0.1,
    #: gordon 1.0, Leukemia 1.2, srbct_khan 1.7 s), where the duals leave some tenths of
    #: a per cent; CovColon is proved by them only. For k = 50 and 60 it proves gordon,
    #: Prostate and BASEHOCK in 0.3 to 1.7 s, or not soon: then the duals have the rest.
    chain_first_up_to: int = 60
    chain_first_share: float = 0.2
    #: From this k on a single k has the duals as well, of any number of features, after
    #: so many nodes of the chain at the most, or the same part of the time. (With the
    #: chain alone five components of wide correlations, k = 29, took 23 to 90 s, and
    #: ended with gaps of 1 to 7 %.)
    duals_from: int = 15
    chain_first_most: int = 2000
    #: That part below `duals_from`, where the chain takes a moment, but for flat, noisy
    #: matrices, of which the entry dual knows more. Three quarters, as most of what the
    #: chain proves late is lost to a larger rest.
    chain_first_share_below: float = 0.75
    #: A single k below `single_k_from` has the chain first, the duals next and the
    #: chain again, also without a limit on time. Before the duals the chain has so many
    #: nodes for each feature, which take it about as long as the duals take. (Digits of
    #: scikit-learn, correlations of 61 features, k = 20, 25 and 29: 7, 13 and 19 s by
    #: the chain alone, half a second with the duals.)
    chain_first_nodes: int = 100
    #: That is so of up to this many features, below `duals_from`. Of more, the duals
    #: take longer than the chain does, and without a limit on time the chain is alone.
    duals_below_up_to: int = 1000
    #: Nodes of the entry dual where it comes after a chain, of a single k or of a path.
    #: What it proved of fifteen sets took 2 to 19 of them; in noise, where it proves
    #: nothing, 200 took ten times as long as the chain.
    entry_nodes_below: int = 40
    #: Walking up a chain, a k from this one on has the duals before sets are grown:
    #: digits, k ≤ 35, took 82 s, of which growth had one for each k that the duals then
    #: proved in a third of a second. (Of smaller k growth proves what is flat.)
    growth_late_from: int = 10
    #: That is so of up to this many features, of which the duals take a second.
    growth_late_up_to: int = 200
    #: With two threads and a limit on time, chain and duals run at once instead, each
    #: on a core of its own, until one of them has a proof; and the chain alone for this
    #: part of the time before, in which most small k are proved.
    head_start: float = 0.03
    most_head_start: float = 1.0  # seconds
    #: Beyond this k the chain, a search for every smaller k, is too long to be walked
    #: for one k; `solve_path`, which is asked for all of them, walks it.
    chain_up_to: int = 500

    # -- one k by itself (`certify/single_k.py`) ---------------------------------------

    #: From this k on the dual's search is worth more than the chain.
    dual_search_from: int = 100
    #: Nodes of the dual where others wait for their turn: the root and two levels.
    few_nodes: int = 7
    #: Nodes of the dual where nothing else is left to try: time ends it before.
    most_nodes: int = 10**6
    #: For the dual where there is no limit on time: after that the chain is tried.
    single_k_seconds: float = 60.0
    #: Of the time of the bounds, for a first look by the entry dual, of so many steps
    #: with a core at the most, and by the root of the direction dual.
    entry_share_first: float = 0.1
    entry_steps_first: int = 40
    entry_steps: int = 400
    entry_steps_untimed: int = 60  # seconds for a thousand features
    root_share: float = 0.1
    #: The largest eigenvalue comes before the searches if it is expected to take less
    #: than this part of the time; what is expected is several times what it takes.
    eigenvalue_share_first: float = 0.5
    #: Then the search of the direction dual has so much of the time, unless its root is
    #: further off than the first of these, and than twice the entry dual, or than the
    #: second (gordon, k = 300, began 77 % off, where nine nodes in four seconds changed
    #: nothing, and the entry dual had no time for its 1.5 %): covariances of data begin
    #: within some per cent and are often proved in a few nodes, also where the entry
    #: dual's bound is better at first; correlations begin near the trace.
    search_share: float = 0.4
    search_up_to_gap: tuple[float, float] = (0.1, 0.5)
    #: Then the entry dual; only for a share of the time where k is small enough for the
    #: chain, which often proves the rest. For k = 50 the chain, where it was not enough
    #: at first, leaves 3.7 % of srbct_khan and 1.7 % of borovecki in ten seconds of one
    #: core, the entry dual 2.4 and 0.7 %.
    entry_share_chain: float = 0.2
    entry_share_alone: float = 0.9
    entry_alone_from: int = 41
    #: Of the worth of a feature, 1/k of the objective: with a smaller gap the entry
    #: dual is about to fix features, and proves more in the time than the chain would
    #: (Leukemia, k = 50: 0.01 % in 9 s, where the chain leaves 4.6 %).
    entry_near: float = 0.6
    #: Nodes of the entry dual where others wait for their turn; they fix most features,
    #: and some tens often end in a proof.
    entry_nodes: int = 200
    #: Of the time, for the parts that A falls into, and of the compositions of k that
    #: are worth a search: each is a tree of its own, of some ten milliseconds.
    compositions_share: float = 0.2
    most_compositions: int = 200
    #: Of the time, for power steps, whose support the dual starts from.
    heuristic_share: float = 0.4
    #: Rows that power steps start from, of up to so many features, and of more: in
    #: noise the best start is seldom among the first (Gaussian data, 200 × 300, k = 20:
    #: 2.62 from 4 rows, 2.74 from 16 and from all); of few features starts are cheap.
    starts: tuple[int, int] = (16, 4)
    many_starts_up_to: int = 2000
    #: Of the time that is left, for the dual, or all of it but `reserve` if that is
    #: more: the step that is under way when the time is up still has to end. Steps look
    #: at how long those before took; with a second, calls of ten ended after 8.4 to 9.
    bound_share: float = 0.9
    reserve: float = 0.5

    # -- a contrast (`certify/contrast.py`) -------------------------------------------

    #: Of the time, and of the nodes, for the target of a contrast that is not proved
    #: by then; seconds where there is a limit on neither.
    target_share: float = 0.2
    target_seconds: float = 60.0
    #: The target comes first where a pass over the contrast takes more than this part
    #: of the time: then it is the contrast that may not be read to its end.
    target_first_from: float = 0.1

    # -- the chain (`certify/path.py`) -------------------------------------------------

    #: Gaps proved on the way to the wanted one where that does not come at once: each
    #: costs a part of the next, and a run that is stopped has the last of them.
    coarse_gaps: tuple[float, ...] = (0.5, 0.2, 0.1, 0.02, 0.001)
    #: For the bounds that do without the chain, at a k that resists; at most a fifth
    #: of the time that is left, so that several such k leave some for the others.
    chainless_seconds: float = 2.0
    chainless_share: float = 0.2
    #: More than 4k and this many survivors are a sign of a poor incumbent: then rows of
    #: A are tried as supports.
    rows_from: int = 40
    #: With few nodes those bounds seldom get closer than this gap, which is one of
    #: those on the way: where a round of the tree proves it, they are not asked for.
    chainless_from_gap: float = 0.005
    #: Seconds, and part of the limit, for steps that were not reached in time: within
    #: what `Limits.time` promises.
    grace: float = 0.2
    grace_share: float = 0.02

    # -- screening (`certify/adaptive_screening.py`) -----------------------------------

    #: Data with more features are scanned by variance, largest first: with fewer the
    #: whole scan takes a few milliseconds.
    scan_all_up_to: int = 1000
    #: So many at first, or 6k: for small k variances rule out the others.
    first_candidates: int = 500

    # -- the search among survivors (`search/portfolio.py`) ----------------------------

    #: From `spectral_from` on a proof longer than `probe_nodes` is worth some
    #: eigenvectors; from `spectral_first` on even these nodes cost more.
    spectral_from: int = 10
    spectral_first: int = 40
    probe_nodes: int = 40
    #: Survivors up to which two, and three, eigenvectors are used: the grid of angles
    #: grows with the number of vectors.
    spectral_up_to: tuple[int, int] = (1500, 600)
    #: More than 4k and this many survivors are a sign that k is hard: then they are
    #: taken apart into connected parts.
    many_survivors: int = 40
    #: The first round of the tree, on up to 100 features, and of the growth of sets;
    #: each round is four times as long as the one before. A second of growth is that of
    #: `numerics/cost.py`, which takes a sixth of it for k = 7 of 600 features. With a
    #: quarter it ended just before its proof of two in three `noisy_blocks`; coarser
    #: gaps and duals were tried on the way: 3 s instead of 0.3 to 0.4.
    first_nodes: int = 5000
    first_seconds: float = 1.0
    #: Of the tree's time, for growth where screening works: it suits flat, noisy
    #: matrices, on which screening removes nothing.
    growth_share: float = 0.25
    #: Survivors up to which growth is tried: it holds dense matrices of them.
    growth_up_to: int = 3000

    def first_of_chain(self, k: int, n_features: int, limits: Limits) -> Limits | None:
        """What the chain has of a single k before the duals; None if it comes after."""
        if limits.time is not None:
            if k > self.chain_first_up_to:
                return None
            return replace(limits, time=self.chain_share(k) * limits.time)
        if k >= self.single_k_from:
            return None
        # nothing varies where earlier components have taken everything
        nodes = self.chain_first_nodes * max(n_features, 1)
        if k >= self.duals_from:
            nodes = min(nodes, self.chain_first_most)
        if limits.nodes is not None:
            # all but what the duals may open, or half of a few
            duals = self.entry_nodes_below + self.few_nodes
            nodes = min(nodes, max(limits.nodes - duals, limits.nodes // 2, 1))
        return replace(limits, nodes=nodes)

    def duals_before_growth(self, k: int, n_features: int) -> bool:
        """Whether the duals are tried before sets are grown, on the way of a chain."""
        return k >= self.growth_late_from and n_features <= self.growth_late_up_to

    def may_be_at_once(self, limits: Limits) -> bool:
        """Whether two provers may run at once: no limit but time has to be shared."""
        is_timed = limits.time is not None
        return is_timed and limits.nodes is None and limits.memory is None

    def head_start_of(self, limits: Limits) -> float:
        """Seconds for the chain alone."""
        return min(self.head_start * (limits.time or 0.0), self.most_head_start)

    def of_duals_alone(self) -> ProofSettings:
        """The same where the duals need not leave any time to the chain."""
        return replace(self, entry_alone_from=0, entry_nodes=self.most_nodes)

    def beside_target(self, limits: Limits) -> Limits:
        """What a contrast has for itself."""
        return _share_of(limits, 1.0 - self.target_share, math.ceil)

    def target_at_first(self, limits: Limits) -> Limits:
        """What its target has where it comes first."""
        return replace(_share_of(limits, self.target_share, int), gap=None)

    def of_target(self, left: Limits) -> Limits:
        """What its target has, of what is left: for a bound, whatever the gap."""
        is_limited = left.time is not None or left.nodes is not None
        time = left.time if is_limited else self.target_seconds
        return replace(left, time=time, gap=None)

    def starts_of(self, n_features: int) -> int:
        """Rows that power steps start from."""
        return self.starts[n_features > self.many_starts_up_to]

    def chain_share(self, k: int) -> float:
        """Of a limit on time, for the chain where it is first."""
        if k < self.duals_from:
            return self.chain_first_share_below
        return self.chain_first_share

    def entry_share(self, k: int) -> float:
        """Of the time that is left, for the entry dual where it is the better one."""
        if self.duals_from <= k < self.entry_alone_from:
            return self.entry_share_chain
        return self.entry_share_alone

    def nodes_of_entries(self, k: int, is_timed: bool) -> int:
        """Nodes that the entry dual's search may open for a k by itself."""
        if k < self.duals_from and not is_timed:
            return self.entry_nodes_below
        return max(self.entry_nodes, self.nodes_of_dual(k))

    def nodes_of_dual(self, k: int) -> int:
        """Nodes that the dual's search may open for a k by itself."""
        return self.most_nodes if k >= self.dual_search_from else self.few_nodes


def _share_of(limits: Limits, share: float, whole: Callable[[float], int]) -> Limits:
    """A share of the time and of the nodes, of which at least one is left."""
    time = None if limits.time is None else share * limits.time
    nodes = None if limits.nodes is None else max(1, whole(share * limits.nodes))
    return replace(limits, time=time, nodes=nodes)


DEFAULT_SETTINGS = ProofSettings()
