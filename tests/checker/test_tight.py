"""Bounds at the optimum, some ulps above and below: float64 must not decide wrongly.

A proof is written as if the optimum of the last k, in float64, less a few ulps were a
bound. Most of these are false, and all look right to float64 without margins.
"""

from __future__ import annotations

import numpy as np
import pytest

import proof_builder
from blockspca.checker.check import check_proof
from blockspca.checker.proof_file import ProofError
from proof_builder import (
    Builder,
    Json,
    Truth,
    as_bytes,
    best_set,
    random_problem,
    sha256,
)

ULPS = (0.0, 2.0**-52, 2.0**-50, 2.0**-46, -(2.0**-50), -(2.0**-46), -(2.0**-42))


class TightBuilder(Builder):
    """Cuts the bound of the last k to its optimum, or less."""

    last, cut = 0, 0.0

    def record(self, k: int, value: float, slack: float) -> Json:
        if k < self.last:
            return super().record(k, value, slack)
        tau = value - self.cut * abs(value)
        features = self.screened(k, tau)
        B = self.A[np.ix_(features, features)]
        tokens = self.node(B, list(range(len(features))), k, k, tau)
        found = {"k": k, "upper": float(tau).hex(), "rule": "tree"}
        return found | {"features": features, "tree": " ".join(tokens)}


def tight_proof(seed: int) -> tuple[list[Json], np.ndarray]:
    rng = np.random.default_rng(seed)
    Y, data = random_problem(rng, int(rng.integers(3, 7)))
    if data["kind"] == "data" and rng.random() < 0.3:
        Y = Y + 10.0 ** rng.integers(0, 7)  # a mean that costs digits
        data["sha256"] = sha256(Y)
    builder = TightBuilder(Y, data, rng)
    builder.last, builder.cut = int(rng.integers(2, 4)), float(rng.choice(ULPS))
    return builder.build(builder.last), Y


@pytest.mark.parametrize("more", [0.0, 2.0**-50, 2.0**-44])
@pytest.mark.parametrize("mode", [{"floats": True}, {"exact": True}])
def test_what_is_accepted_is_true_to_the_last_digit(mode, more, monkeypatch):
    monkeypatch.setattr(proof_builder, "ROOM", 0.0)
    accepted, refused = 0, 0
    for seed in range(120):
        lines, Y = tight_proof(seed)
        claim = lines[0]["claims"][-1]
        upper = float.fromhex(lines[-2]["upper"])
        bound, low = upper + abs(upper) * more, upper - abs(upper) - 1.0
        claim |= {"objective": low.hex(), "upper_bound": bound.hex()}
        lines[0]["claims"] = [claim]
        try:
            check_proof(as_bytes(lines), Y, **mode)
        except ProofError:
            refused += 1
            continue
        accepted += 1
        assert Truth(Y, lines[0]["data"]).allows(claim["k"], low, bound), seed
    assert refused > 30  # bounds below the optimum are among them
    assert accepted > (0 if "floats" in mode else 5)


def test_the_optimum_is_what_is_cut(monkeypatch):
    monkeypatch.setattr(proof_builder, "ROOM", 0.0)
    lines, Y = tight_proof(0)
    A = proof_builder.float_matrix(Y, lines[0]["data"])
    upper = float.fromhex(lines[-2]["upper"])
    assert upper == pytest.approx(best_set(A, lines[-2]["k"])[0], rel=1e-12)
