"""What a further component is asked to be: disjoint, or deflated in some way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._arguments import value_error
from .._validation import FloatArray, check_flag, check_real
from ..covariance.covariance import Covariance
from ..covariance.derived import corrected, correction_error, masked, projected
from ..covariance.residual import regressed, residual
from ..result import Result
from .scheme import PROJECTION, BaseScheme, Scheme, SolveOne, as_given

RANK_TOLERANCE = 1e-10


def used_features(earlier: Sequence[Result]) -> NDArray[np.intp]:
    """Return the features that have a loading in some component, ascending."""
    if not earlier:
        return np.empty(0, dtype=np.intp)
    return np.unique(np.concatenate([np.flatnonzero(r.x) for r in earlier]))


def used_in_vain(cov: Covariance, rows: FloatArray) -> NDArray[np.intp]:
    """Return the features of components, (m, d), that nothing can be regressed on.

    None of a matrix that is positive semidefinite: there they have no variance left, as
    everything else has none.
    """
    if cov.known_psd:
        return np.empty(0, dtype=np.intp)
    rest = np.delete(rows, regressed(cov, rows).kept, axis=0)
    return np.flatnonzero(rest.any(axis=0))


def orthonormal_basis(earlier: Sequence[Result]) -> FloatArray:
    """Return Q, d × m, whose columns span the earlier components."""
    return row_space(np.array([result.x for result in earlier]))


def row_space(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the span of some rows, as columns."""
    used = np.flatnonzero(rows.any(axis=0))
    left, sizes, _ = np.linalg.svd(rows[:, used].T, full_matrices=False)
    basis = np.zeros((rows.shape[1], left.shape[1]))
    basis[used] = left
    return basis[:, sizes > RANK_TOLERANCE * sizes.max(initial=0.0)]


def refuse_too_few(sparsities: Sequence[int], n_features: int) -> None:
    """Refuse disjoint supports that may leave no feature for the last component."""
    if sum(sparsities[:-1]) >= n_features:
        raise value_error(
            f"k = {list(sparsities)} with disjoint supports: the first "
            f"{len(sparsities) - 1} component(s) may use all {n_features} "
            "feature(s) that vary, which leaves none for the last; pass a "
            f"smaller k, fewer components, or {PROJECTION}.",
            PROJECTION,
        )


SWEPT = ", given the others"  # in a certificate: those after it, too


def scheme_name(scheme: Scheme, swept: bool = False) -> str:
    """Return what certificates call a scheme: its class, and what is not default.

    `swept` where the problem is what all other components leave, not the earlier ones.
    """
    chosen: list[str] = []
    if isinstance(scheme, BaseScheme) and is_dataclass(scheme):
        for field in fields(scheme):
            value = getattr(scheme, field.name)
            if isinstance(value, (int, float)) and value != field.default:
                said = value if isinstance(value, bool) else f"{value:g}"
                chosen.append(f"{field.name}={said}")
    name = type(as_given(scheme)).__name__
    name += f"({', '.join(chosen)})" if chosen else ""
    return name + SWEPT if swept else name


@dataclass(frozen=True)
class DisjointSupports(BaseScheme):
    """No feature is used twice: x_j maximises x'Ax over the features not used so far.

    Components are orthogonal by construction, and every objective is a variance of the
    original data. Component j is certified for A without the features of components
    1, …, j − 1.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[4, 3, 0, 1], [3, 4, 0, 1], [0, 0, 3, 2], [1, 1, 2, 3]]
    >>> found = bs.solve_components(A, 3, 2, scheme=bs.DisjointSupports())
    >>> [support.tolist() for support in found.supports]
    [[0, 1, 3], [2]]
    """

    adds_variances: ClassVar[bool] = True
    disjoint = True

    def check(self, sparsities: Sequence[int], n_features: int) -> None:
        refuse_too_few(sparsities, n_features)

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        return masked(cov, self.closed(cov, earlier)) if earlier else cov

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        if not earlier:
            return solve_one(cov, k)
        return solve_one.without(cov, self.closed(cov, earlier), k)

    def closed(self, cov: Covariance, earlier: Sequence[Result]) -> NDArray[np.intp]:
        """Return all features that were used, ascending."""
        return used_features(earlier)

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """0: what is left for component j was left for component i, at the same x'Ax.

        With `masked`, no feature that was used gains anything, so the optimum is that
        of the features that are left.
        """
        return 0.0


@dataclass(frozen=True)
class _Deflation(BaseScheme):
    """A scheme whose next component solves sparse PCA on a deflated matrix."""

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        return solve_one(self.problem(cov, earlier), k)


class ProjectionDeflation(_Deflation):
    """x_j maximises x'PAPx, P the projection off the earlier components.

    With Q an orthonormal basis of x_1, …, x_{j−1} and P = I − QQ', the variance of
    component j is counted only in directions that the earlier ones do not have. The
    components may overlap and need not be orthogonal. With k = d they are those of
    ordinary PCA. Component j is certified for PAP.

    Notes
    -----
    Mackey's *orthogonalised* projection deflation. Projecting off x_j alone, one
    component after the other, would put back variance that an overlapping earlier
    component had removed.

    References
    ----------
    L. Mackey, "Deflation methods for sparse PCA", NIPS 2008.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[4, 3, 0, 1], [3, 4, 0, 1], [0, 0, 3, 2], [1, 1, 2, 3]]
    >>> found = bs.solve_components(A, 3, 2, scheme=bs.ProjectionDeflation())
    >>> [support.tolist() for support in found.supports]
    [[0, 1, 3], [0, 2, 3]]
    >>> float(round(found[1].objective, 4))  # x'PAPx, less than the variance of x
    4.6114
    """

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        if not earlier:
            return cov
        basis = orthonormal_basis(earlier)
        return projected(cov, basis, f"{basis.shape[1]} direction(s) projected out")


@dataclass(frozen=True)
class ResidualDeflation(_Deflation):
    """x_j maximises the variance that the scores of x_1, …, x_{j−1} do not explain.

    A_j = A − AV (V'AV)⁻¹ V'A, with V the earlier components: what is left of every
    feature after regression on the earlier scores. x'A_j x is the adjusted variance
    that is reported, so each component adds as much to the sum as any can.

    Parameters
    ----------
    disjoint : bool
        Whether every component has features of its own, as with `DisjointSupports`.
        Then A_j is without the features of the earlier ones.
    prediction : float
        The weight of R². 0: every component has the largest adjusted variance. More:
        components are changed together until log(adjusted variance) + prediction
        log(R²) of the set rises no more, so that one percent of R² is worth so many
        percent of adjusted variance. They then are not optimal, but bounded as before:
        the gap says how much more adjusted variance a component could have had. Takes
        no constraints and no sweeps.
    above_lasso : bool
        Whether both numbers are to be at least those of a lasso's components, cut to as
        many features: where the weight alone would give up too much of the one or gain
        too little of the other, it does not decide. If time ends before there is a
        lasso, a warning says so. Only with `prediction`.
    unless_dominated : float, optional
        Components that are found one after the other may be dominated: another set has
        no less adjusted variance, and predicts more. With a share such as 0.02 one is
        looked for, and taken if its R² is larger by more than that share. Its
        components are bounded as with `prediction`, and `Components.in_turn` has those
        in whose place they are. None: it is not looked for. Nor is it under
        constraints, with sweeps, or where a gap is asked for.

    Notes
    -----
    Mackey's Schur complement deflation, of all earlier components at once. Unlike the
    other schemes it does not go by how loadings relate, but by scores: features that
    repeat the first factor have little variance left, whether or not their loadings
    are orthogonal to it. A score that the earlier ones determine leaves A_j as it is.
    A contrast may have no positive variance left: then the features of a component that
    has none are closed to the next ones.

    Component j is certified for the exact A_j; what rounding does to its entries is in
    `entry_error`, derived in `covariance.residual`.

    References
    ----------
    L. Mackey, "Deflation methods for sparse PCA", NIPS 2008.

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2)) @ [[2, 2, 2, 2, 0, 0], [0, 0, 0, 0, 1, 1]]
    >>> X = X + 0.1 * rng.normal(size=(50, 6))
    >>> for scheme in (bs.DisjointSupports(), bs.ResidualDeflation()):
    ...     found = bs.solve_components(np.cov(X.T), 2, 2, scheme=scheme)
    ...     print(found.supports[1], round(found.r2, 2))
    [0 2] 0.88
    [4 5] 1.0
    """

    multiplies_variances: ClassVar[bool] = True

    disjoint: bool = False
    prediction: float = 0.0
    above_lasso: bool = False
    unless_dominated: float | None = None

    def __post_init__(self) -> None:
        check_flag(self.disjoint, "disjoint")
        weight = check_real(self.prediction, "prediction", minimum=0.0)
        object.__setattr__(self, "prediction", weight)
        if check_flag(self.above_lasso, "above_lasso") and not weight:
            raise ValueError(
                "above_lasso=True with prediction = 0: every component has the largest "
                "adjusted variance then; pass a weight, such as prediction=2.5."
            )
        if self.unless_dominated is None:
            return
        share = check_real(self.unless_dominated, "unless_dominated", minimum=0.0)
        object.__setattr__(self, "unless_dominated", share)
        if weight:
            raise ValueError(
                f"unless_dominated = {share:g} with prediction = {weight:g}: these "
                "components are changed together as it is; pass one of the two."
            )

    def check(self, sparsities: Sequence[int], n_features: int) -> None:
        if self.disjoint:
            refuse_too_few(sparsities, n_features)

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        if not earlier:
            return cov
        left = residual(cov, np.array([result.x for result in earlier]))
        closed = self.closed(cov, earlier)
        return masked(left, closed) if len(closed) else left

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        closed = self.closed(cov, earlier)
        if not len(closed):
            return super().solve(cov, earlier, k, solve_one)
        left = residual(cov, np.array([result.x for result in earlier]))
        return solve_one.without(left, closed, k)

    def closed(self, cov: Covariance, earlier: Sequence[Result]) -> NDArray[np.intp]:
        """Return the features that the next component may not use, ascending.

        All that were used, if supports are disjoint. If A may have negative variances,
        as a contrast has, those of components without a positive one: nothing can be
        regressed on their scores, and they would be found again and again.
        """
        if self.disjoint or not earlier:
            return used_features(earlier)
        return used_in_vain(cov, np.array([result.x for result in earlier]))

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """0, if regression for component j uses all scores that it did for i.

        And if what was closed to component i is closed to j.

        *Proof.* With G = V'AV positive definite for the scores in use, those that are
        added for A_j have a positive definite residual covariance H in A_i, and A_j =
        A_i − A_i W H⁻¹ W'A_i ⪯ A_i. Claims are about the exact matrices.
        """
        components = np.array([result.x for result in earlier])
        before = regressed(cov, components[:i]).kept if i else ()
        if not set(before) <= set(regressed(cov, components).kept):
            return None
        then, now = self.closed(cov, earlier[:i]), self.closed(cov, earlier)
        return 0.0 if np.isin(then, now).all() else None


def in_turn_only(scheme: BaseScheme) -> BaseScheme:
    """Return the scheme that looks for no set that dominates its components."""
    if isinstance(scheme, ResidualDeflation):
        return replace(scheme, unless_dominated=None)
    return scheme


class HotellingDeflation(_Deflation):
    """x_j maximises x'(A − Σ v_i x_i x_i')x, with v_i the objective of component i.

    For comparison with other software. Unless x_i is an eigenvector, the deflated
    matrix is not positive semidefinite and variance is counted twice or lost; the
    certificate holds for that matrix all the same.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[4, 3, 0, 1], [3, 4, 0, 1], [0, 0, 3, 2], [1, 1, 2, 3]]
    >>> found = bs.solve_components(A, 3, 2, scheme=bs.HotellingDeflation())
    >>> float(round(found[1].objective, 4))  # of the deflated matrix, in which it is
    4.715
    >>> found.adjusted_explained_variance.round(4)  # more than it adds
    array([7.4495, 4.5576])
    """

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        if not earlier:
            return cov
        left = np.array([result.x for result in earlier]).T
        right = left * (np.array([result.objective for result in earlier]) / 2)
        return corrected(
            cov, left, right, psd=False, origin=f"{len(earlier)} term(s) subtracted"
        )

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """Rounding, if no objective from component i on is negative.

        *Proof.* A_j = A_i − Σ v_l x_l x_l' over l = i, …, j − 1, so that A_j ⪯ A_i if
        every v_l ≥ 0. As computed, v_l x_l x_l' is x_l r_l' + r_l x_l' with r_l =
        v_l x_l / 2 + δ, ‖δ‖ ≤ u v_l / 2: with t = x_l'x, v_l t² + 2 t δ'x ≥ v_l t² −
        u v_l |t| ≥ −u² v_l. A matrix in memory is also rounded to entries that are off
        by e, in A_i and in A_j, and |x'Ex| ≤ e ‖x‖₁² ≤ k e.
        """
        values = [result.objective for result in earlier]
        if min(values[i:]) < 0:
            return None
        size = cov.max_abs() + float(np.abs(values).sum())
        return 2 * k * correction_error(len(earlier), size)
