"""Components one after the other, by residual deflation.

Let V be the earlier components and A_V the residual of A after regression on their
scores. The next component maximises x'A_V x. `covariance/residual.py` computes a matrix
B ⪰ A_V, so a bound for B is a bound for A_V. The objective is computed for A_V itself,
as x'Ax − g'G⁻¹g with g = V'Ax and G = V'AV.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._kernels.compilation import prepare
from ..call import one_call
from ..constraints.constraints import problem_of
from ..covariance import Covariance, as_covariance, residual
from ..pipeline import KERNELS, results_of
from ..result import Result
from ..validation import FloatArray, check_flag, check_integer, check_sparsity
from .components import Components

NOTHING = 1e-9  # of the total variance: roundings of a residual reach less


def solve_components(
    cov: Covariance | Any,
    n_components: int = 2,
    k: int | float = 10,
    *,
    certify: bool = True,
    limits: Any = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> Components:
    """Find several sparse components, each with a proof of how good it is.

    Each component maximises the variance that regression on the scores of the earlier
    components leaves.

    Parameters
    ----------
    cov : Covariance, symmetric matrix, or data of shape (n_samples, n_features)
    n_components : int
    k : int, or a share of the features below 1
        Features of each component.
    certify, n_jobs, progress
        As in `solve`.
    limits : Limits or float, optional
        Of all components together, see `solve`. Each gets an equal share of what the
        earlier ones leave.

    Returns
    -------
    Components

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.components import solve_components
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> [result.status.value for result in solve_components(X, 2, k=3).results]
    ['optimal', 'optimal']
    """
    cov = as_covariance(cov)
    n_components = check_integer(
        n_components, "n_components", minimum=1, maximum=cov.n_features
    )
    k = check_sparsity(k, cov.n_features)
    check_flag(certify, "certify")
    prepare(*KERNELS)
    results: list[Result] = []
    work = 0.0
    with one_call(limits, n_jobs, progress) as run:
        for j in range(n_components):
            run.share(n_components - j)
            V = np.array([each.x for each in results]).reshape(-1, cov.n_features)
            rest = residual(cov, V.T)
            problem = problem_of(rest, None, k, is_path=False)
            result = results_of(problem, k, run, certify, [], rest, True)[-1]
            objective = residual_objective(cov, V, result)
            if cov.known_psd:  # then the residual is, so less than 0 is rounding
                objective = max(objective, 0.0)
            is_empty = result.upper_bound <= NOTHING * cov.trace
            results.append(
                replace(
                    result,
                    objective=objective,
                    message="no variance is left" if is_empty else "",
                    work=result.work - work,
                    feature_names=cov.feature_names,
                    identity=cov.identity,
                )
            )
            work = result.work
    V = np.array([result.x for result in results])
    AV = cov.matvec(V.T)
    return Components(V, V @ AV, cov.trace, tuple(results))


def residual_objective(cov: Covariance, V: FloatArray, result: Result) -> float:
    """Return x'Ax − g'G⁻¹g for the x of a result, g = V'Ax."""
    if not len(V):
        return result.objective
    x, features = result.x, result.support
    used = np.flatnonzero(V.any(axis=0) | (x != 0))
    A, U, y = cov.submatrix(used), V[:, used], x[used]
    g, G = U @ (A @ y), U @ A @ U.T
    explained = float(g @ np.linalg.lstsq(G, g, rcond=None)[0])
    plain = float(x[features] @ cov.submatrix(features) @ x[features])
    return plain - explained
