"""What the provers of one call have in common, whatever matrix they are given."""

from __future__ import annotations

from dataclasses import dataclass

from ..progress import Listener, silent
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings, Prover
from ..rules import GroupLimits


@dataclass(frozen=True)
class ProofOptions:
    """Who proves, by which settings, with how many threads, and who hears of it.

    Attributes
    ----------
    prover : Prover
    settings : ProofSettings
    n_jobs : int or None
        Threads for a long proof.
    callback : callable
        Receives an `Event` for each k, improvement and slice of a long proof.
    prove : bool
        False looks for good components only, by the chain.
    groups : GroupLimits or None
        Only sets that keep them count.
    """

    prover: Prover = Prover.CHAIN
    settings: ProofSettings = DEFAULT_SETTINGS
    n_jobs: int | None = None
    callback: Listener = silent
    prove: bool = True
    groups: GroupLimits | None = None


BY_CHAIN = ProofOptions()
