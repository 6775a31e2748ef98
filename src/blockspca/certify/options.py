"""What the provers of one call have in common, whatever matrix they are given."""

from __future__ import annotations

from dataclasses import dataclass

from ..progress import Listener, silent
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings, Prover
from ..rules import GroupLimits


@dataclass(frozen=True)
class ProofOptions:
    """Who proves, by which settings, with how many threads, and who hears of it."""

    prover: Prover = Prover.CHAIN
    settings: ProofSettings = DEFAULT_SETTINGS
    n_jobs: int | None = None  #: threads for a long proof
    #: Receives an `Event` for each k, improvement and slice of a long proof.
    callback: Listener = silent
    prove: bool = True  #: False looks for good components only, by the chain
    groups: GroupLimits | None = None  #: only sets that keep them count


BY_CHAIN = ProofOptions()
