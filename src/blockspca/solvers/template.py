"""What solvers share: validation, limits, Ctrl-C and the status of the result.

`BaseSolver.solve` does this and calls `_solve`, which has the algorithm and writes what
it finds into a `SolverRun`. However `_solve` ends, the run has the best so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, check_positive, check_positive_integer
from ..bounds.closed_form import largest_eigenvalue_bound
from ..covariance.covariance import Covariance
from ..limits import stop_reason
from ..numerics.linalg import largest_entries, on_support
from ..status import Status, status_of_gap
from .base import HEURISTIC, Deadline, Guarantee, Limits, Solution

Support = Sequence[int] | NDArray[np.intp]


class SolverRun:
    """One call of `solve`: the best support and bound so far, limits and nodes.

    `k` is at most the number of features; the `deadline` runs from the call of `solve`;
    `incumbent` is an objective reached elsewhere, −inf if there is none. The solver
    counts `nodes`, in steps of its own. `stopped` is the limit that ended the run.
    """

    def __init__(
        self,
        matrix: FloatArray | Covariance,
        k: int,
        limits: Limits | None = None,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.matrix = matrix
        self.limits = Limits() if limits is None else limits
        self.n_features = (
            matrix.n_features if isinstance(matrix, Covariance) else len(matrix)
        )
        self.k = min(k, self.n_features)
        self.deadline = Deadline(self.limits.time)
        self.incumbent = -np.inf if incumbent is None else incumbent
        self.upper_bound = np.inf
        self.nodes = 0
        self.stopped: Status | None = None
        self.adopted: Solution | None = None
        self._rng = rng
        self._support: NDArray[np.intp] | None = None
        self._x: FloatArray | None = None
        self._objective = -np.inf
        self._seen: set[bytes] = set()

    @cached_property
    def rng(self) -> np.random.Generator:
        """The generator that was passed, or one that is always the same."""
        return np.random.default_rng(0) if self._rng is None else self._rng

    @cached_property
    def variances(self) -> FloatArray:
        """A_ii."""
        matrix = self.matrix
        if isinstance(matrix, Covariance):
            return matrix.diagonal()
        return np.diagonal(matrix)

    # -- what has been found ---------------------------------------------------------

    def keep(self, support: Support) -> None:
        """Replace the best support by this one, whatever its value."""
        self._support = np.sort(np.asarray(support, dtype=np.intp))
        self._x = None

    def offer(self, support: Support) -> None:
        """Take this support if it is better than the best so far."""
        support = np.sort(np.asarray(support, dtype=np.intp))
        # Solvers round many vectors to the same few supports.
        key = support.tobytes()
        if key in self._seen:
            return
        self._seen.add(key)
        x, objective = on_support(self.matrix, support)
        if self._support is None or objective > self.objective:
            self._support, self._x, self._objective = support, x, objective

    def offer_variances(self) -> None:
        """Offer the k largest A_ii: the objective is at least the largest of them."""
        self.offer(np.argsort(-self.variances, kind="stable")[: self.k])

    def offer_vector(self, weights: FloatArray) -> None:
        """Offer the k largest |weights|; zero weights are ranked by |A · weights|.

        A vector with fewer than k nonzeros is thereby completed, which never lowers
        the largest eigenvalue on its support.
        """
        size = np.abs(weights)
        if not size.max() > 0:
            return
        if np.count_nonzero(size) >= self.k:
            order = np.argsort(-size, kind="stable")
        else:
            matrix = self.matrix
            product = matrix.matvec if isinstance(matrix, Covariance) else matrix.dot
            order = np.lexsort((-np.abs(product(weights)), -size))
        self.offer(order[: self.k])

    def takes_all(self) -> bool:
        """If k = d, keep all features, with a bound, and return True."""
        if self.k < self.n_features:
            return False
        self.keep(np.arange(self.k))
        self.tighten(largest_eigenvalue_bound(self.matrix))
        return True

    def adopt(self, solution: Solution) -> None:
        """Make this solution, with its status, the result of the run."""
        self.adopted = solution

    def tighten(self, bound: float) -> None:
        """Lower the upper bound, if this one is lower."""
        self.upper_bound = min(self.upper_bound, bound)

    @property
    def objective(self) -> float:
        """x'Ax of the best so far; −inf if there is none."""
        if self._x is None and self._support is not None:
            self._x, self._objective = on_support(self.matrix, self._support)
        return self._objective

    # -- when to stop ----------------------------------------------------------------

    def must_stop(self) -> bool:
        """Tell whether a limit on time or nodes is reached, and set `stopped`."""
        self.stopped = stop_reason(self.limits, self.deadline, self.nodes)
        return self.stopped is not None

    def time_is_up(self) -> bool:
        """As `must_stop`, for the limit on time alone."""
        if self.deadline.passed():
            self.stopped = Status.TIME_LIMIT
        return self.stopped is not None

    @property
    def support(self) -> NDArray[np.intp]:
        """The best support so far; the k largest |A_ii| if none was found in time."""
        if self._support is None:
            self.keep(largest_entries(self.variances, self.k))
        assert self._support is not None
        return self._support

    @property
    def x(self) -> FloatArray:
        """The best unit vector on `support`."""
        if self._x is None:
            self._x, self._objective = on_support(self.matrix, self.support)
        return self._x


class BaseSolver(ABC):
    """A base class for solvers: a subclass has the algorithm, in `_solve`.

    It is optional; the library asks only for the protocol `Solver`.

    Examples
    --------
    >>> from blockspca.numerics.linalg import largest_entries
    >>> from blockspca.solvers import BaseSolver, Limits
    >>> class BestRow(BaseSolver):
    ...     name = "best row"
    ...
    ...     def _solve(self, A, k, run):
    ...         for row in A:
    ...             if run.must_stop():
    ...                 return
    ...             run.offer(largest_entries(row, k))
    ...             run.nodes += 1
    >>> A = [[2, 1, 0], [1, 2, 0.1], [0, 0.1, 2.5]]
    >>> solution = BestRow().solve(A, 2, limits=Limits(nodes=2))
    >>> solution.support, solution.status.value
    (array([0, 1]), 'node_limit')
    """

    name: str
    guarantee: Guarantee = HEURISTIC
    requires_psd: bool = False
    #: parameters of the class that have to be integers of at least one
    _positive_integers: tuple[str, ...] = ()
    #: parameters of the class that have to be above zero
    _positive_numbers: tuple[str, ...] = ()

    def solve(
        self,
        A: ArrayLike,
        k: int,
        *,
        limits: Limits | None = None,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        """Validate, run `_solve` until it ends or Ctrl-C, and return what it found."""
        self._check_parameters()
        check_positive_integer(k, "k")
        matrix = np.asarray(A, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"A has the shape {matrix.shape}; pass a square symmetric matrix, or "
                "data by way of Covariance.from_data."
            )
        run = SolverRun(matrix, k, limits, incumbent, rng)
        return self._conclude(run, lambda: self._solve(matrix, run.k, run))

    def _conclude(self, run: SolverRun, search: Callable[[], None]) -> Solution:
        """Run `search` until it ends or Ctrl-C, and return what was found."""
        try:
            search()
        except KeyboardInterrupt:
            run.stopped = Status.INTERRUPTED
        if run.adopted is not None:
            return run.adopted
        # If nothing was found, x is on the features of largest variance.
        x = run.x
        bound = max(run.upper_bound, run.objective)
        return Solution(x, bound, self._status(run), run.nodes)

    def _status(self, run: SolverRun) -> Status:
        """The status by the rule in `status`."""
        bound = max(run.upper_bound, run.objective)
        return status_of_gap(
            run.objective, bound, run.limits.gap, run.stopped, keep_interrupt=True
        )

    def _check_parameters(self) -> None:
        """Raise ValueError or TypeError for a parameter that makes no sense."""
        for parameter in self._positive_integers:
            check_positive_integer(getattr(self, parameter), parameter)
        for parameter in self._positive_numbers:
            check_positive(getattr(self, parameter), parameter)

    @abstractmethod
    def _solve(self, A: FloatArray, k: int, run: SolverRun) -> None:
        """Write what is found into `run`; 1 ≤ k ≤ len(A), and A is not to be changed.

        Ctrl-C need not be caught. To use another solver, call its `_solve` with a run
        of its own, since its `solve` would catch Ctrl-C.
        """


class CovarianceSolver(BaseSolver):
    """A solver that does not need A in memory; `_solve_covariance` does without."""

    def solve_covariance(
        self,
        cov: Covariance,
        k: int,
        *,
        limits: Limits | None = None,
        incumbent: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> Solution:
        """Solve for a whole `Covariance`, forming A only if it is in memory."""
        if self._forms_matrix(cov):
            A = cov.rows(slice(None))
            return self.solve(A, k, limits=limits, incumbent=incumbent, rng=rng)
        self._check_parameters()
        check_positive_integer(k, "k")
        run = SolverRun(cov, k, limits, incumbent, rng)
        return self._conclude(run, lambda: self._solve_covariance(cov, run.k, run))

    def _forms_matrix(self, cov: Covariance) -> bool:
        """Tell whether A is in memory already, or small enough to be formed."""
        return cov.in_memory

    @abstractmethod
    def _solve_covariance(self, cov: Covariance, k: int, run: SolverRun) -> None:
        """As `_solve`, with products and rows of A."""
