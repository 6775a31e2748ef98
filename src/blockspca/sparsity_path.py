"""The solutions for k = 1, 2, …, K: a curve of objectives with proved bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ._html import table
from ._messages import Proved, gap_in_percent, proof_in_words
from ._validation import FloatArray, check_real, pandas_for
from .covariance.covariance import Covariance
from .covariance.pca import pca_variances
from .proof_file import MayHaveProof, Proof
from .result import SHOWN, Result
from .status import Status


def known(results: Mapping[int, Result]) -> list[Proved]:
    """Status and gap of each k; a look at a path must not make all of its results."""
    at = getattr(results, "step", results.__getitem__)
    return [at(k) for k in results]


class SparsityPath(Mapping[int, Result], MayHaveProof):
    """One `Result` for each k; `path[k]`, `len(path)`, iteration over k.

    The result of a k, with its certificate, is made when it is first asked for.

    Examples
    --------
    >>> import blockspca as bs
    >>> path = bs.solve_path([[2.0, 1.0], [1.0, 2.0]], 2)
    >>> [(k, round(result.objective, 6)) for k, result in path.items()]
    [(1, 2.0), (2, 3.0)]
    """

    _call = "solve_path"

    #: What `write_proof` writes, if `solve_path` was told to record it.
    proof: Proof | None = None

    def __init__(
        self,
        results: Mapping[int, Result],
        cov: Covariance,
        proof: Proof | None = None,
    ) -> None:
        self._results = results
        self._cov = cov
        self.proof = proof

    @cached_property
    def ceiling(self) -> float:
        """λmax(A), the variance of the ordinary first component, as PCA finds it."""
        return float(pca_variances(self._cov, 1)[0])

    def __getitem__(self, k: int) -> Result:
        if isinstance(k, (slice, list, tuple, np.ndarray)):
            raise TypeError(
                f"path[{k!r}]: a path gives the result of one k; pass one k at a time, "
                "for example [path[k] for k in (2, 3)]."
            )
        try:
            return self._results[k]
        except KeyError:
            first, last = min(self), max(self)
            raise KeyError(f"k = {k} is not on the path, {first} to {last}") from None

    def __contains__(self, k: object) -> bool:
        return k in self._results

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._results))

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        proved = sum(one.status is Status.OPTIMAL for one in known(self._results))
        ks = f"{min(self)}..{max(self)}"
        return f"SparsityPath(k = {ks}, {proved} of {len(self)} proved)"

    @property
    def objectives(self) -> FloatArray:
        """The objective for each k."""
        return np.array([result.objective for result in self.values()])

    @property
    def upper_bounds(self) -> FloatArray:
        """The proved upper bound for each k."""
        return np.array([result.upper_bound for result in self.values()])

    def smallest_k(self, fraction: float) -> int:
        """Return the smallest k whose objective reaches `fraction` of the ceiling.

        The ceiling is the variance of the ordinary first principal component, which
        uses every feature.
        """
        fraction = check_real(fraction, "fraction", minimum=0)
        if fraction > 1:
            raise ValueError(f"fraction = {fraction} is above 1; pass 0.9 for 90 %.")
        for k, result in self.items():
            if result.objective >= fraction * self.ceiling:
                return k
        reached = max(result.objective for result in self.values()) / self.ceiling
        raise ValueError(
            f"fraction = {fraction} is not reached: k = {max(self)} has {reached:.4g} "
            "of the ceiling; extend the path with a larger k_max."
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict for each k: objective, bound, gap, status, features."""
        return [
            {
                "k": k,
                "objective": result.objective,
                "upper_bound": result.upper_bound,
                "gap": result.gap,
                "status": result.status.value,
                "bound": result.bound_name,
                "nodes": result.nodes,
                "time": result.time,
                "features": result.features,
            }
            for k, result in self.items()
        ]

    def to_frame(self) -> Any:
        """Return `to_rows` as a pandas DataFrame indexed by k."""
        return pandas_for("to_frame").DataFrame(self.to_rows()).set_index("k")

    def _repr_html_(self) -> str:
        rows = [
            (
                k,
                f"{result.objective:.6g}",
                f"{result.upper_bound:.6g}",
                gap_in_percent(result.gap),
                proof_in_words(result),
                ", ".join(result.features[:SHOWN]),
            )
            for k, result in self.items()
        ]
        headings = ("k", "variance", "at most", "gap", "proof", "features")
        return table(headings, rows, repr(self))
