"""Which features to look at: the scan, widened only when variances do not suffice."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..bound_names import BoundName
from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..numerics.blas import all_threads
from ..numerics.rounding import above_in_units, in_units, power_of_two
from ..progress import Event, Listener, silent
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings
from ..scan.lists import Scan, scan
from .screening import Screening

# Of each covariance what was scanned last, and of which features: a proof that is
# recorded need not read A again. Nothing here refers to the covariance itself.
_scanned: weakref.WeakKeyDictionary[
    Covariance, tuple[Scan, NDArray[np.int64] | None]
] = weakref.WeakKeyDictionary()


class AdaptiveScreening:
    """Screening over all features, scanning no more of A than it needs.

    If A is positive semidefinite by construction, only the features of largest
    variance are scanned at first; `survivors` scans more when the variances of the
    others do not rule them out.

    Parameters
    ----------
    k_max : int
        Largest k that will be asked for.
    check : callable
        Called between tiles; raises to stop.
    callback : callable, optional
        Receives an `Event` of the stage "scan" while A is read.
    groups : GroupLimits, optional
        How many features of each group a set may have.
    again : bool
        Begin with what was scanned last, if its lists are as long.
    """

    def __init__(
        self,
        cov: Covariance,
        k_max: int,
        check: Callable[[], None],
        callback: Listener = silent,
        settings: ProofSettings = DEFAULT_SETTINGS,
        groups: GroupLimits | None = None,
        again: bool = False,
    ) -> None:
        self._cov, self._k_max, self._groups = cov, k_max, groups
        self._width = max(k_max - 1, 1)
        self._check = check
        self._scanning = None if callback is silent else self._report
        self._callback = callback
        size = max(settings.first_candidates, 6 * k_max)
        # Of a matrix that may be indefinite, variances do not bound the other entries.
        partly = cov.known_psd and cov.n_varying > max(
            settings.scan_all_up_to, 2 * size
        )
        features = self._largest_variances(size) if partly else None
        before = _scanned.get(cov) if again else None
        if before is not None and before[0].width == self._width:
            found, features = before
            partly = features is not None
        else:
            found = self._scan(features)
        # Large negative A_ii do not count: they are in no good set.  A positive
        # semidefinite A has its largest entry on the diagonal, so that the unit does
        # not change when more is scanned.
        diagonal = cov.diagonal()
        strongest = float(found.values[:, 0].max())
        largest = max(abs(float(diagonal.max())), strongest)
        self.unit = power_of_two(largest)
        self.variances: FloatArray = in_units(diagonal, self.unit)
        if partly:  # of what was not scanned, |A_ij| ≤ sqrt(A_ii A_jj) is known
            strongest = largest
        #: min A_ii and max |A_ij|, i ≠ j, in units of `unit`
        self.lowest = float(self.variances.min())
        self.strongest = strongest / self.unit
        self.screening = Screening(found, self.unit, features, self.variances, groups)

    def _scan(self, features: NDArray[np.int64] | None) -> Scan:
        """Scan features, or all, with lists of one length.

        What an earlier call has scanned may have longer ones; with them the proof would
        be another.
        """
        found = scan(
            self._cov, self._width, self._check, features, progress=self._scanning
        ).narrowed(self._width)
        _scanned[self._cov] = found, features
        return found

    def _report(self, done: int, total: int) -> None:
        largest = float(self._cov.diagonal().max())
        self._callback(Event("scan", done, total, self._k_max, largest))

    def _largest_variances(self, size: int) -> NDArray[np.int64]:
        order = np.argpartition(-self._cov.diagonal(), size - 1)[:size]
        return np.sort(order).astype(np.int64)

    @property
    def is_complete(self) -> bool:
        """True once every feature has been scanned."""
        return self.screening.candidates is None

    def survivors(self, k: int, tau: float, upper: float) -> NDArray[np.int64]:
        """Features that may be in a k-set above τ, given upper ≥ opt(k − 1)."""
        while missing := self.screening.unscanned(k, tau, upper):
            assert self.screening.candidates is not None
            # Twice as many take four times as long: all scans before the last one
            # together take no more than a third of it.
            size = 2 * len(self.screening.candidates) + missing
            features = None
            # Of sparse data a part costs nearly as much as the whole.
            cov = self._cov
            is_sparse = cov.sparse_data() or cov.sparse_correction()
            most = cov.n_varying // (8 if is_sparse else 2)
            if size <= most:
                features = self._largest_variances(size)
            with all_threads():
                found = self._scan(features)
            self.screening = Screening(
                found, self.unit, features, self.variances, self._groups
            )
        return self.screening.survivors(k, tau, upper)

    def initial_pool(self, size: int) -> NDArray[np.int64]:
        """Features that weigh most with their strongest partners, ascending.

        The one of largest variance, where every path begins, is always among them.
        """
        diagonal = self.screening.diagonal
        weight = np.maximum(diagonal, 0.0) ** 2 + self.screening.prefix[:, -1]
        weight[diagonal.argmax()] = np.inf
        size = min(size, len(weight))
        rows = np.argpartition(-weight, size - 1)[:size]
        rows.sort()
        return self.screening.to_features(rows)

    def bounds(self, k: int, upper: float) -> list[tuple[float, BoundName]]:
        """Bounds on opt(k), given upper ≥ opt(k − 1), that need no proof."""
        if k == 1:
            # Beside a covariance 1e300 times as large, a variance has lost digits.
            largest = float(self._cov.diagonal().max())
            return [(above_in_units(largest, self.unit), BoundName.VARIANCES)]
        found = [
            (self.screening.nested_bound(k, upper), BoundName.NESTED),
            (self.screening.row_sum_bound(k), BoundName.ROW_SUMS),
        ]
        if self._cov.known_psd:
            found.append((float(self._variance_sums[k - 1]), BoundName.VARIANCES))
        return found

    @cached_property
    def _variance_sums(self) -> FloatArray:
        """Sums of the 1, 2, …, k_max largest variances."""
        return np.cumsum(-np.sort(-self.variances)[: self._k_max])
