"""Which prover proves which k, and what the provers of one call have in common."""

from __future__ import annotations

from dataclasses import dataclass

from ..constraint_rules import GroupLimits
from ..covariance.covariance import Covariance
from ..progress import Listener, silent
from ..proof_settings import DEFAULT_SETTINGS, ProofSettings, Prover


@dataclass(frozen=True)
class ProofOptions:
    """Prover, settings, threads and callback of one call."""

    prover: Prover = Prover.CHAIN
    settings: ProofSettings = DEFAULT_SETTINGS
    n_jobs: int | None = None  #: threads for a long proof
    #: Receives an `Event` for each k, improvement and slice of a long proof.
    callback: Listener = silent
    prove: bool = True  #: False looks for good components only
    groups: GroupLimits | None = None  #: only sets that keep them count


BY_CHAIN = ProofOptions()


def choose_prover(
    cov: Covariance,
    k_min: int,
    k_max: int,
    settings: ProofSettings = DEFAULT_SETTINGS,
    *,
    timed: bool = False,
) -> Prover:
    """Decide who proves k_min, …, k_max; `ProofSettings` has the reasons.

    Small k are proved by the chain, in milliseconds. From `single_k_from` on the prover
    of a single k takes part: before the chain where one k is asked for, after it where
    the path is walked anyway. So `solve(cov, k)` and `solve_path(cov, k)[k]` have the
    same provers from there to `chain_up_to`, beyond which `solve` has no chain. One
    small k under a limit on time (`timed`), or
    of few features, or from `duals_from` on, is for the duals as well, once the chain
    has had its share (`first_of_chain`).

    Examples
    --------
    >>> import numpy as np
    >>> import blockspca as bs
    >>> from blockspca.certify.provers import choose_prover
    >>> cov = bs.Covariance.from_data(np.random.default_rng(0).normal(size=(9, 2000)))
    >>> [choose_prover(cov, k, k).name for k in (5, 35)]
    ['CHAIN', 'SINGLE_K_THEN_CHAIN']
    >>> choose_prover(cov, 1, 35).name
    'CHAIN_THEN_SINGLE_K'
    >>> choose_prover(cov, 5, 5, timed=True).name
    'SINGLE_K_THEN_CHAIN'
    """
    if k_max < settings.single_k_from:
        is_one = 1 < k_min == k_max  # the duals need two
        are_cheap = cov.n_varying <= settings.duals_below_up_to
        if is_one and (timed or are_cheap or k_max >= settings.duals_from):
            return Prover.SINGLE_K_THEN_CHAIN
        return Prover.CHAIN
    if k_min < k_max:
        return Prover.CHAIN_THEN_SINGLE_K
    if k_max > settings.chain_up_to:
        return Prover.SINGLE_K
    return Prover.SINGLE_K_THEN_CHAIN
