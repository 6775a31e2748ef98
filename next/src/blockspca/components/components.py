"""Several components: V, G = V'AV, the total variance and the result of each.

Everything else is a property. The adjusted variance of component j is what its score
explains beyond the scores before it: with R'R = G the Cholesky factor, R_jj².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..covariance import residual
from ..proof.verify import Verification, matrix_of, verify
from ..proof.write import write_proof
from ..result import Result
from ..validation import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """Components in their order, each for the variance that earlier ones leave.

    Attributes
    ----------
    components : array of shape (m, n_features)
        One unit vector in each row, with at most k nonzeros.
    gram : array of shape (m, m)
        V'AV, the covariance of the scores.
    trace : float
        The total variance.
    results : tuple of Result
        One for each component. Objective and bound are for the residual of A after
        regression on the scores of the earlier components.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.components import solve_components
    >>> components = solve_components(np.diag([3.0, 2.0, 1.0]), 2, k=1)
    >>> components.components.argmax(axis=1), components.explained_variance
    (array([0, 1]), array([3., 2.]))
    """

    components: FloatArray
    gram: FloatArray
    trace: float
    results: tuple[Result, ...]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def explained_variance(self) -> FloatArray:
        """The variance of each score."""
        return self.gram.diagonal()

    @property
    def adjusted_explained_variance(self) -> FloatArray:
        """The variance of each score that the scores before it do not explain."""
        R: FloatArray = np.linalg.qr(_root(self.gram), mode="r")  # type: ignore[assignment]
        return R.diagonal() ** 2

    @property
    def explained_variance_ratio(self) -> FloatArray:
        """The adjusted variances as shares of the total variance."""
        return self.adjusted_explained_variance / self.trace

    def verify(self, data: Any) -> list[Verification]:
        """Check every component by the evidence of its bound; see `blockspca.verify`.

        Parameters
        ----------
        data : Covariance, symmetric matrix or data
            The data of the components.
        """
        cov, V = matrix_of(self.results[0], data), self.components.T
        return [
            verify(result, residual(cov, V[:, :j]))
            for j, result in enumerate(self.results)
        ]

    def write_proof(self, path: Any, data: Any) -> None:
        """Write the proofs of all components to a file; see `blockspca.proof.write`.

        The last one is that no variance is left, if one of them shows that.

        Parameters
        ----------
        path : path
        data : array, table or file
            The data that the covariance was made from.
        """
        vectors = [
            (result.support.tolist(), result.x[result.support].tolist())
            for result in self.results
        ]
        # The score of a component without variance takes nothing off: V'AV is singular.
        end = next((j for j, r in enumerate(self.results) if r.message), len(self))
        parts = [
            ([result], vectors[:j]) for j, result in enumerate(self.results[: end + 1])
        ]
        write_proof(path, data, *parts)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each component."""
        import pandas

        rows = [
            {
                "component": j,
                "k": result.k,
                "variance": variance,
                "adjusted_variance": adjusted,
                "gap": result.gap,
                "status": result.status.value,
                "features": ", ".join(result.features),
            }
            for j, (result, variance, adjusted) in enumerate(
                zip(
                    self.results,
                    self.explained_variance,
                    self.adjusted_explained_variance,
                    strict=True,
                ),
                start=1,
            )
        ]
        return pandas.DataFrame(rows).set_index("component")

    def __repr__(self) -> str:
        proved = sum(result.status.value == "optimal" for result in self.results)
        return f"Components({len(self)} components, {proved} proved optimal)"

    def __str__(self) -> str:
        return "\n".join(f"{j}. {each}" for j, each in enumerate(self.results, start=1))


def _root(gram: FloatArray) -> FloatArray:
    """Return B with B'B = G, also if G is singular."""
    values, vectors = np.linalg.eigh(gram)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
