"""The checker accepts what holds and refuses what does not, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from blockspca.checker.check import check_proof
from blockspca.checker.reading import ProofError
from small_proofs import honest_proof, problems


def refused(Y, proof, exact=False):
    try:
        check_proof(Y, proof, exact)
    except ProofError:
        return True
    return False


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_honest_proofs_hold(seed, exact):
    rng = np.random.default_rng(seed)
    for Y, problem in problems(rng, int(rng.integers(4, 9))):
        proof = honest_proof(Y, problem, 6)
        assert len(check_proof(Y, proof, exact).steps) == len(proof.records)
