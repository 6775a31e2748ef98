"""The sparsity path: one result for each k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .messages import gap_in_percent
from .result import Result
from .validation import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class SparsityPath(Mapping[int, Result]):
    """Results by k = first, first + 1, …, as `solve_path` returns them.

    Attributes
    ----------
    results : tuple of Result
    trace : float
        The total variance.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.pipeline import solve_path
    >>> A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    >>> path = solve_path(A, 2)
    >>> path[2].status.value, {k: path[k].support.tolist() for k in path}
    ('optimal', {1: [0], 2: [0, 1]})
    """

    results: tuple[Result, ...]
    trace: float

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.results[0].k, self.results[-1].k + 1))

    def __getitem__(self, k: int) -> Result:
        """Return the result for k."""
        if k not in range(self.results[0].k, self.results[-1].k + 1):
            raise KeyError(
                f"k = {k!r} must be one of {self.results[0].k}, …, {self.results[-1].k}"
            )
        return self.results[k - self.results[0].k]

    @property
    def objectives(self) -> FloatArray:
        """The objective for each k."""
        return np.array([result.objective for result in self.results])

    @property
    def upper_bounds(self) -> FloatArray:
        """The bound for each k."""
        return np.array([result.upper_bound for result in self.results])

    @property
    def explained(self) -> FloatArray:
        """The share of the total variance that each component explains."""
        return self.objectives / self.trace

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each k."""
        import pandas

        rows = [
            {
                "k": result.k,
                "objective": result.objective,
                "upper_bound": result.upper_bound,
                "gap": result.gap,
                "status": result.status.value,
                "explained": share,
                "features": ", ".join(result.features),
            }
            for result, share in zip(self.results, self.explained, strict=True)
        ]
        return pandas.DataFrame(rows).set_index("k")

    def to_dict(self) -> dict[str, Any]:
        """Return all results in values that JSON has."""
        return {"trace": self.trace, "results": [r.to_dict() for r in self.results]}

    def __repr__(self) -> str:
        proved = sum(result.status.value == "optimal" for result in self.results)
        return (
            f"SparsityPath(k={self.results[0].k}..{self.results[-1].k}, "
            f"{proved} of {len(self)} proved optimal)"
        )

    def __str__(self) -> str:
        lines = [f"{'k':>5} {'objective':>14} {'upper bound':>14} {'gap':>10}  status"]
        lines += [
            f"{r.k:>5} {r.objective:>14.8g} {r.upper_bound:>14.8g} "
            f"{gap_in_percent(r.gap):>10}  {r.status.value}"
            for r in self.results
        ]
        return "\n".join(lines)
