"""The tuned constants of the direction dual's search, with the reasons for them.

None of them matters for the truth of a bound, only for the time until it is found.
They were chosen on Dorothea_train (100,000 features, 800 samples), k from 150 to 2000;
`docs/design-notes.md` has the measurements. Each changes a count of nodes or steps by
more than a tenth if it is doubled or halved, or is a size from which on something pays;
what does not is a literal where it is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class StepBudget:
    """How long an ascent goes on, by what a step costs beside fixing variables."""

    patience: int  #: steps between two looks at what was gained
    deflated_steps: int  #: steps with a deflated sum, at the most
    #: Of ρ, the largest gap with which variables are fixed: without the resolvent of M,
    #: which costs as much as some steps, nothing is.
    fix_up_to: float


@dataclass(frozen=True)
class DualSettings:
    """What the search may be told; see the comments for why the values are as they are.

    Examples
    --------
    >>> DualSettings().is_large(800), DualSettings(dense_order=1000).is_large(800)
    (True, False)
    """

    # Up to this order all eigenvectors cost less than to find a space for a few.
    dense_order: int = 150
    small: StepBudget = StepBudget(patience=4, deflated_steps=8, fix_up_to=math.inf)
    # A step costs 60 ms there, a test of all columns 100 ms: both are saved on.
    large: StepBudget = StepBudget(patience=3, deflated_steps=2, fix_up_to=1.5)

    # What half and twice of a number do is said, where it is said, of three problems
    # that are proved: Arcene, k = 100 (288 steps), Lymphoma2, k = 50 (484), and
    # Dorothea_train, k = 200 (178, in 2.0 s, when this was measured).

    # -- the search
    # Of the start's direction in the first density: from 0.6, Dorothea takes 320 steps.
    start_weight: float = 0.87
    # Two cores have one memory: more nodes at once do not make the search faster. It is
    # the same number on any machine, so that the search is the same.
    nodes_per_batch: int = 2
    worthwhile: float = 0.05  # of the variables fixed, for another ascent with the rest

    # -- nodes
    first_min_weight: float = 0.03  # while the directions are still being found
    # In a sector the directions that it needs grow too slowly from less: 28 % off after
    # one step and 0.4 % after thirty, against 0.05 % after four.
    sector_min_weight: float = 3e-3
    # Of t = (q₂'y)/(q₁'y), in deviations: no sector contains the density.
    sector_boundaries: tuple[float, ...] = (-2.0, -1.0, -0.4, 0.4, 1.0, 2.0)

    # -- coordinates and spaces
    reduce_below: float = 0.85  # of the dimensions: the factorization has to pay
    # Of a space, beside those of the density: 6 take 191 steps of Dorothea, 24 take
    # 154, each of which is longer.
    extra_directions: int = 12
    # That are told apart within a space: more are not there, 12 do as well, with 4
    # Dorothea ends 9.5 % off.
    max_directions: int = 24
    # Mirror steps, 3 ms each, for each sum of 25 ms. With 2 Dorothea takes 361 and is
    # not proved after 25 nodes, with 10 it takes 2.5 s.
    subspace_steps: int = 5
    subspace_columns: int = 10_000  # more cost more than a second product with M

    # -- a GPU
    device_entries: int = 2**20  # of C, from which on a step there takes less time

    # -- the ascent
    warm_up: int = 10  # mirror steps with the first least weight
    # Of the gap left from one look to the next. Lymphoma2 takes 391 steps with 0.7, 527
    # with 0.95.
    stall_ratio: float = 0.85
    # From so many on it pays to stop the ascent when most can be shown to be inactive.
    reduce_from_columns: int = 2000

    # -- deflation
    deflation_cost: float = 0.1  # of the gap, what the first eigenvalue may rise by
    # Of ρ. Dorothea takes 204 steps with 3, and is 0.14 % off after 25 nodes with 0.5;
    # with a hundred times as much it takes 171.
    max_deflation: float = 10.0

    # -- fixing
    ellipsoid_share: float = 0.6  # e in `fixing`: towards 1 P is singular, at 0 it is I

    # -- step sizes
    # Of a mirror step, in units of 1/bound. Twice as much leads too far: 1.6 % are left
    # of Arcene after 31 nodes, 0.14 % of Dorothea. Half as much takes a tenth more or
    # less.
    step: float = 4.0
    growth: float = 1.2  # of steps, after each that lowers the bound
    max_growth: float = 3.0  # with 6, Dorothea takes 334 steps
    half_life: float = 25.0  # steps after which a step is half as long
    # Of the least weight, from step to step: with 0.93, Dorothea takes 268.
    weight_decay: float = 0.85
    # The power of Σ z / k that ρ changes by, and times that, if the sum swings about k,
    # and if it does not. Each takes a fifth more or less steps if it is changed, seldom
    # the same way on two of the three.
    response: float = 0.3
    calmer: float = 0.5
    bolder: float = 1.2

    def is_large(self, n: int) -> bool:
        """Tell whether densities of order n take their steps within spaces."""
        return n > self.dense_order

    def pays_on_device(self, n: int, count: int) -> bool:
        """Tell whether a GPU, if the data came from one, has so many columns."""
        return n * count >= self.device_entries

    def reduces(self, n: int, count: int) -> bool:
        """Tell whether so many columns of n entries get coordinates of their own."""
        return self.is_large(n) and count <= self.reduce_below * n

    def batch_size(self, n: int) -> int:
        """Return how many nodes are split at once: threads pay where steps are long."""
        return self.nodes_per_batch if self.is_large(n) else 1

    def budget(self, n: int) -> StepBudget:
        """Return how long an ascent goes on with densities of order n."""
        return self.large if self.is_large(n) else self.small


DEFAULT = DualSettings()
