"""What a scheme is: what it must have, and what it may say besides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arguments import Argument, NamesArguments
from .._validation import FloatArray
from ..covariance.covariance import Covariance
from ..limits import Deadline, Limits
from ..result import Result

if TYPE_CHECKING:
    from .conditions_search import Conditions


#: Schemes that messages recommend.
RESIDUAL = Argument("scheme", "residual")
PROJECTION = Argument("scheme", "projection")


class NoComponent(NamesArguments, ValueError):
    """There is no further component that the scheme allows."""


class SolveOne(Protocol):
    """Solve one problem with the options of the whole call.

    `share` is the part of the component's time, up to `deadline`, that it may take.
    `start` are the loadings of a component that is solved again.
    """

    @property
    def deadline(self) -> Deadline: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def start(self) -> FloatArray | None: ...

    def __call__(
        self, problem: Covariance, k: int, *, certify: bool = True, share: float = 1.0
    ) -> Result: ...

    def without(
        self, problem: Covariance, used: NDArray[np.intp], k: int
    ) -> Result: ...


class Scheme(Protocol):
    """How a component depends on the earlier ones: what every scheme has.

    `problem` is the matrix for which the next component is certified: a d × d view that
    is cheap to make, so `verify` can be given it at any time. `solve` finds the next
    component. `check` refuses sparsities that cannot work.

    What a scheme may say besides is in `BaseScheme`; one of a user need not have it. It
    is `completed` where it is handed in, and what a call returns has it as it was.

    Examples
    --------
    >>> import blockspca as bs
    >>> class Again:  # the same component once more
    ...     def check(self, sparsities, n_features): ...
    ...     def problem(self, cov, earlier):
    ...         return cov
    ...     def solve(self, cov, earlier, k, solve_one):
    ...         return solve_one(cov, k)
    >>> found = bs.solve_components([[2, 1], [1, 3]], 1, 2, scheme=Again())
    >>> [support.tolist() for support in found.supports]
    [[1], [1]]
    """

    def check(self, sparsities: Sequence[int], n_features: int) -> None: ...

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance: ...

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result: ...


class BaseScheme(ABC):
    """A scheme with all that one may say, which is nothing by default.

    Attributes
    ----------
    adds_variances : bool
        Whether the scheme's problems add up to Σ x_j'Ax_j, which sweeps then raise.
    multiplies_variances : bool
        Whether x'A_j x is what component j multiplies det V'AV by, which a subclass
        with another `problem` has to take back. Sweeps raise the sum of adjusted
        variances where neither is so.
    disjoint : bool
        Whether no feature is used twice.
    orthogonal : bool
        Whether components are orthogonal, also where they share features.
    prediction, above_lasso, unless_dominated
        As in `ResidualDeflation`.
    """

    adds_variances: ClassVar[bool] = False
    multiplies_variances: ClassVar[bool] = False
    disjoint: bool = False
    orthogonal: bool = False
    prediction: float = 0.0
    above_lasso: bool = False
    unless_dominated: float | None = None

    def check(self, sparsities: Sequence[int], n_features: int) -> None:
        """Refuse sparsities that cannot work, of as many components as features."""
        return

    @abstractmethod
    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        """Return what the earlier components leave of A."""

    @abstractmethod
    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        """Find the next component."""

    def margin(
        self, cov: Covariance, earlier: Sequence[Result], i: int, k: int
    ) -> float | None:
        """An m ≥ 0, by which the bound of component i holds for the next one too.

        Every k-sparse unit vector x that the next component may be could have been
        component i (if k ≤ k_i), with x'A_i x ≥ x'A_j x − m; None if that is not so.
        See `components.earlier`.
        """
        return None

    def closed(self, cov: Covariance, earlier: Sequence[Result]) -> NDArray[np.intp]:
        """Return the features that the next component may not use, ascending."""
        return np.empty(0, dtype=np.intp)

    def conditions(
        self, cov: Covariance, earlier: Sequence[Result]
    ) -> Conditions | None:
        """Return W, of which W'x = 0 for the next component, if it is of that kind."""
        return None


#: What a scheme of a user may have.
_MORE = tuple(
    name
    for name in vars(BaseScheme)
    if not name.startswith("_") and name not in BaseScheme.__abstractmethods__
)


class _OfAUser(BaseScheme):
    """A scheme that is no `BaseScheme`, with the defaults for what it does not say."""

    def __init__(self, own: Scheme) -> None:
        self.own = own
        for name in _MORE:
            said = getattr(own, name, None)
            if said is not None:
                setattr(self, name, said)

    def __repr__(self) -> str:
        return repr(self.own)

    def problem(self, cov: Covariance, earlier: Sequence[Result]) -> Covariance:
        return self.own.problem(cov, earlier)

    def solve(
        self, cov: Covariance, earlier: Sequence[Result], k: int, solve_one: SolveOne
    ) -> Result:
        return self.own.solve(cov, earlier, k, solve_one)


def completed(scheme: Scheme) -> BaseScheme:
    """Return the scheme with all that one may say: itself, unless it is a user's."""
    return scheme if isinstance(scheme, BaseScheme) else _OfAUser(scheme)


def as_given(scheme: Scheme) -> Scheme:
    """Return the scheme as a user has written it."""
    return scheme.own if isinstance(scheme, _OfAUser) else scheme


def uses_closed(
    scheme: BaseScheme, cov: Covariance, earlier: Sequence[Result], x: FloatArray
) -> bool:
    """Whether a component has features that the scheme closes after earlier ones."""
    return bool(x[scheme.closed(cov, earlier)].any())
