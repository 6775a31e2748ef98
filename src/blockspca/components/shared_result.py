"""One set of k features for r components: what is found, and how it is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import gap_in_percent
from .._validation import FloatArray
from ..bound_names import BoundName
from ..certify.claims import LAPACK_AGREEMENT
from ..certify.verification import Verification, require
from ..constraint_rules import Rules
from ..covariance.covariance import Covariance, as_covariance
from ..limits import Budget, Limits
from ..numerics.rounding import EPS, rounding_of_forms
from ..status import Status, refuse_unproved, relative_gap
from .shared_bounds import closed_forms
from .shared_heuristic import SharedSet
from .shared_problem import SharedProblem
from .shared_search import DualClaim, SharedSearch
from .shared_tree import CHECKED, TREE_UP_TO, SetTree, proves

#: Of the enumeration, that takes as long as a node of the branch and bound: 4 ms.
NODE_WORK = 400_000


@dataclass(frozen=True)
class SharedClaim:
    """opt_r(k) ≤ upper_bound over the sets that keep the constraints, and by what.

    For the direction dual, `dual` has the point that proves it at the root; for
    searches, `nodes` says how large they were.
    """

    upper_bound: float
    bound_name: str
    dual: DualClaim | None = None
    nodes: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class SharedSupport:
    """r components on one set of k features, with what is known about them.

    Attributes
    ----------
    support : array of int
        The k features, ascending.
    components : array of shape (n_components, n_features)
        The leading eigenvectors of A on the support: orthonormal rows.
    variances : array of shape (n_components,)
        Their eigenvalues, descending. Scores are uncorrelated: they may be added up.
    objective : float
        Σ variances = F_r(S), the sum of the r largest eigenvalues of A_SS.
    upper_bound : float
        Proved: no k features that keep the constraints have a larger one.
    status : Status
        `optimal` if the two meet within 1e-6 of the objective.
    certificate : SharedClaim
        What `verify` needs to check the bound again.
    nodes : int
        Of the search.
    rules : Rules or None
        Which features may be together, by index; None for all.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> A = np.diag([4.0, 3.0, 2.0])
    >>> found = bs.solve_shared(A, k=2, n_components=2)
    >>> found.features, found.variances.round(6), str(found.bound_name)
    (['0', '1'], array([4., 3.]), 'variances')
    >>> found.verify(A).complete
    True
    """

    support: NDArray[np.intp]
    components: FloatArray
    variances: FloatArray
    objective: float
    upper_bound: float
    status: Status
    k: int
    n_features: int
    certificate: SharedClaim
    include: tuple[int, ...] = ()
    nodes: int = 0
    time: float = 0.0
    total_variance: float = 0.0
    feature_names: tuple[str, ...] | None = field(default=None)
    rules: Rules | None = None

    def __post_init__(self) -> None:
        refuse_unproved(self.status, self.objective, self.upper_bound)

    @property
    def n_components(self) -> int:
        return len(self.components)

    @property
    def gap(self) -> float:
        """(upper_bound − objective) / |objective|."""
        return relative_gap(self.objective, self.upper_bound)

    @property
    def bound_name(self) -> str:
        return self.certificate.bound_name

    @property
    def features(self) -> list[str]:
        """The names of the features, in the order of the matrix."""
        names = self.feature_names
        return [str(int(i)) if names is None else names[i] for i in self.support]

    def __repr__(self) -> str:
        more = "..." if len(self.support) > 5 else ""
        return (
            f"SharedSupport(k={self.k}, n_components={self.n_components}, "
            f"objective={self.objective:.6g}, upper_bound={self.upper_bound:.6g}, "
            f"gap={gap_in_percent(self.gap)}, status={self.status}, "
            f"features={self.features[:5]}{more})"
        )

    def verify(
        self,
        cov: Covariance | Any,
        *,
        max_nodes: int = 20_000,
        time_limit: float | None = None,
    ) -> Verification:
        """Check the components, their objective and the bound against the matrix.

        Parameters
        ----------
        cov : Covariance or symmetric matrix
        max_nodes : int
            A larger search is listed in `unchecked`. Nodes of the enumeration are
            smaller, and count by their work.
        time_limit : float, optional
            Seconds for searches; what needs more is listed in `unchecked` as well.

        Raises
        ------
        VerificationError
            Naming the claim that failed.
        """
        given = as_covariance(cov)
        cov = given.formed()
        within = Budget(Limits(time=time_limit))
        checks = [self._check_components(cov)]
        claim = self.certificate
        require(
            claim.upper_bound == self.upper_bound,
            "the result and its certificate do not say the same",
        )
        unchecked: list[str] = []
        said = f"at most {claim.upper_bound:.12g}, by {claim.bound_name}"
        if claim.bound_name == BoundName.NONE:
            require(claim.upper_bound == np.inf, "a bound that nothing proves")
        else:
            proved = self._proved(cov, claim.upper_bound, max_nodes, within)
            # Where the claim was made there may have been no room to form A.
            is_dual = claim.bound_name == BoundName.DIRECTION_DUAL
            open_ = is_dual if proved is None else claim.upper_bound < proved
            if open_ and cov is not given:
                other = self._proved(given, claim.upper_bound, max_nodes, within)
                known = [bound for bound in (proved, other) if bound is not None]
                proved = min(known, default=None)
            if proved is None:
                why = "more nodes or seconds are needed to search again"
                if is_dual:
                    why = "its point is for data in another form"
                unchecked.append(f"{said}: {why}")
            elif self._is_within_doubt(cov, proved, max_nodes, within):
                unchecked.append(f"{said}: agrees up to rounding of the data only")
            else:
                require(
                    claim.upper_bound >= proved,
                    f"the bound by {claim.bound_name} is {proved:.17g}, above the "
                    f"claimed {claim.upper_bound:.17g}",
                )
                checks.append(said)
        cov.check_unchanged()
        return Verification(
            upper_bound=np.inf if unchecked else claim.upper_bound,
            checks=tuple(checks),
            unchecked=tuple(unchecked),
        )

    def _check_components(self, cov: Covariance) -> str:
        """Feasible, orthonormal, and of the objective that is claimed."""
        rows, support = self.components, self.support
        require(
            rows.shape == (len(self.variances), cov.n_features)
            and self.n_features == cov.n_features,
            "the components are of another length",
        )
        require(len(support) <= self.k, f"{len(support)} features for k = {self.k}")
        outside = np.delete(np.arange(cov.n_features), support)
        require(not rows[:, outside].any(), "a loading outside the support")
        require(set(self.include) <= set(support.tolist()), "a feature is not kept in")
        if self.rules is not None:
            require(
                self.rules.n_features == cov.n_features
                and self.rules.include == self.include,
                "the constraints are those of another problem",
            )
            objection = self.rules.objection(support, self.k)
            require(not objection, f"the set breaks a constraint: {objection}")
        r = len(rows)
        skew = float(np.abs(rows @ rows.T - np.eye(r)).max())
        allowed = (8 * len(support) + 64) * EPS
        require(skew <= allowed, f"the components are not orthonormal, by {skew:.3g}")
        within = cov.submatrix(support)
        V = rows[:, support]
        values = np.einsum("ji,ji->j", V @ within, V)
        rounding = np.diagonal(rounding_of_forms(V, within, cov.entry_error))
        require(
            bool((np.abs(values - self.variances) <= rounding).all())
            and abs(self.objective - values.sum()) <= rounding.sum() * (1 + r * EPS),
            f"the variances add up to {values.sum():.17g}, not {self.objective:.17g}",
        )
        require(
            self.upper_bound >= values.sum() - rounding.sum(),
            "the bound is below the objective",
        )
        return f"components: {r} on {len(support)} features, orthonormal"

    def _is_within_doubt(
        self, cov: Covariance, proved: float, max_nodes: int, within: Budget
    ) -> bool:
        """Tell whether the claim is below what is proved, but by rounding only.

        Entries that are computed from data in another form may err by more than they
        did where the claim was made.
        """
        claimed, error = self.upper_bound, cov.entry_error
        if claimed >= proved or error == 0:
            return False
        doubt = LAPACK_AGREEMENT * abs(claimed) + 4 * self.k * self.n_components * error
        if self.bound_name in (BoundName.BRANCH_AND_BOUND, BoundName.ENUMERATION):
            again = self._proved(cov, claimed + doubt, max_nodes, within)
            return again is None or again < np.inf
        return proved <= claimed + doubt

    def _proved(
        self, cov: Covariance, claimed: float, max_nodes: int, within: Budget
    ) -> float | None:
        """Prove the bound again; None if that needs more nodes or time.

        What is not a search is done at once, and without a limit.
        """
        claim, r, k = self.certificate, self.n_components, self.k
        shared = SharedProblem.of(cov, k, r, self._rules())

        def begun(support: NDArray[np.intp], budget: Budget) -> SharedSearch:
            start = SharedSet.of(shared.cov, support, r)
            return SharedSearch(shared, start, budget)

        if claim.bound_name == BoundName.DIRECTION_DUAL:
            require(claim.dual is not None, "the direction dual without its point")
            assert claim.dual is not None
            start = np.array(claim.dual.start, dtype=np.intp)
            return begun(start, Budget()).bound_of(claim.dual)
        if claim.bound_name == BoundName.BRANCH_AND_BOUND:
            search = begun(shared.places(self.support), within)
            holds = search.proves(claimed, max_nodes)
            if holds is None:
                return None
            return claimed if holds else np.inf
        if claim.bound_name == BoundName.ENUMERATION:
            few = shared.cov.n_features <= TREE_UP_TO
            require(few, "an enumeration of too many features")
            tree = SetTree(shared, CHECKED)
            holds = proves(tree, claimed, max_nodes * NODE_WORK, within)
            if holds is None:
                return None
            return claimed if holds else np.inf
        known = closed_forms(shared.cov, k, r, Budget(), margin=1.0)
        name = BoundName.named(claim.bound_name)
        require(name in known, f"there is no bound {str(name)!r}")
        assert isinstance(name, BoundName)
        return known[name]

    def _rules(self) -> Rules | None:
        """The constraints, also of a result that was stored without the rest."""
        if self.rules is None and self.include:
            return Rules(self.n_features, self.include)
        return self.rules
