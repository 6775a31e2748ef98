"""The outcome of a check: the sentences of a verification, or the claim that failed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


class VerificationError(Exception):
    """A claim of a certificate does not hold, or was not made properly.

    Examples
    --------
    >>> import blockspca as bs
    >>> claim = bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1).certificate
    >>> try:
    ...     bs.verify(claim, [[3.0, 1.0], [1.0, 2.0]])
    ... except bs.VerificationError as error:
    ...     print("refuted")
    refuted
    """


@dataclass(frozen=True)
class Verification:
    """What was checked.

    Attributes
    ----------
    upper_bound : float
        The bound that this check has established by itself; infinite if it is not
        complete.
    complete : bool
        False if a proof was larger than the node cap and was not run again, or if a
        claim could not be checked for another reason; `unchecked` says which.
    checks : tuple of str
        One sentence a check.
    unchecked : tuple of str
        What was left out, and why.

    Examples
    --------
    >>> import blockspca as bs
    >>> A = [[2.0, 1.0], [1.0, 2.0]]
    >>> check = bs.verify(bs.solve(A, k=1), A)
    >>> check.complete, check.upper_bound, check.unchecked
    (True, 2.0, ())
    """

    upper_bound: float
    checks: tuple[str, ...] = field(repr=False)
    unchecked: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.unchecked

    def __str__(self) -> str:
        lines = [*self.checks, *(f"not checked: {text}" for text in self.unchecked)]
        return "\n".join(lines)


def require(condition: bool | np.bool_, otherwise: str) -> None:
    """Raise VerificationError unless the condition holds."""
    if not condition:
        raise VerificationError(otherwise + ".")
