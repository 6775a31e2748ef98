"""The problem of a shared set, and what its features must be.

Features that are kept out do not exist: the problem is that of A without them, and so
are its bounds. Limits on groups are kept by the search for sets and by the branch and
bound; sets that keep them are hereditary, so that adding features one by one in the
order of their scores gives the best set for given directions (a partition matroid).
A bound that does not know the limits holds with them, since they only take sets away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..constraint_rules import GroupLimits, Rules
from ..constraints import Constraints, checked
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """One set of k features for r components, of the features that it may have."""

    cov: Covariance  #: A on those features
    k: int
    r: int
    #: Their numbers in the whole of A, ascending; they are counted from 0 below.
    features: NDArray[np.intp]
    n_features: int  #: of the whole of A
    total_variance: float  #: of the whole of A
    feature_names: tuple[str, ...] | None  #: of the whole of A
    include: NDArray[np.intp]  #: features that must be in the set
    limits: GroupLimits | None = None

    @classmethod
    def of(
        cls, cov: Covariance, k: int, r: int, rules: Rules | None = None
    ) -> SharedProblem:
        """Return what is left of A under rules that were checked."""
        d = cov.n_features
        everything = np.arange(d, dtype=np.intp)
        total, names = float(cov.diagonal().sum()), cov.feature_names
        if rules is None:
            return cls(cov, k, r, everything, d, total, names, everything[:0])
        keep = np.setdiff1d(everything, rules.exclude).astype(np.intp)
        include = np.searchsorted(keep, np.array(rules.include, dtype=np.intp))
        limits = rules.limits
        if limits is not None:
            limits = GroupLimits(limits.label[keep], limits.room)
        if len(keep) < d:
            cov = restricted(cov, keep)
        return cls(cov, k, r, keep, d, total, names, include.astype(np.intp), limits)

    def places(self, features: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where some features of A are; those that are kept out are left out."""
        return np.flatnonzero(np.isin(self.features, features)).astype(np.intp)

    def rows(self, support: NDArray[np.intp], vectors: FloatArray) -> FloatArray:
        """Return vectors on a support, (s, r), as rows of all features of A."""
        rows = np.zeros((vectors.shape[1], self.n_features))
        rows[:, self.features[support]] = vectors.T
        return rows


def shared_rules(
    constraints: Constraints | None,
    include: NDArray[np.intp],
    cov: Covariance,
    k: int,
) -> Rules | None:
    """Check constraints of a shared set, and those of `include`; None for none."""
    if constraints is None and not len(include):
        return None
    d, names = cov.n_features, cov.feature_names
    if constraints is None:
        return checked(Constraints(include=include), d, names, k)
    rules = checked(constraints, d, names, k)
    if len(include):
        raise ValueError(
            "include and constraints are both given; pass "
            "constraints=Constraints(include=…, …)."
        )
    if rules.nonnegative:
        raise ValueError(
            "nonnegative is no constraint of a shared set: components on the same "
            "features are orthogonal, so that only one can have loadings of one sign; "
            "pass constraints without it, or use solve_components."
        )
    if rules.whole_groups:
        raise ValueError(
            "whole_groups is not offered for a shared set; pass max_per_group, or "
            "include and exclude the features of groups."
        )
    if rules.beside:
        raise ValueError(
            "min_overlap with max_per_group is not offered for a shared set; pass one "
            "of the two."
        )
    return rules
