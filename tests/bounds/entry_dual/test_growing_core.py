"""The way of a point of the entry dual: what is not begun where time is short."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.bounds.entry_dual import growing_core
from blockspca.bounds.entry_dual.growing_core import GrowingCore


def begun() -> GrowingCore:
    X = np.random.default_rng(0).normal(size=(30, 40))
    X[:, :8] += 2 * np.random.default_rng(1).normal(size=(30, 1))
    cov = bs.Covariance.from_data(X, scale=True)
    return GrowingCore(cov, 6, np.arange(6))


@pytest.mark.parametrize("hours", [None, 1.0])
def test_what_could_not_be_proved_in_time_is_not_begun(monkeypatch, hours):
    """The first proof was made whatever it took: of 6,830 features, two seconds."""
    proofs = []
    proved_value = growing_core.proved_value

    def counted(*arguments: object) -> float:
        proofs.append(arguments)
        return proved_value(*arguments)

    monkeypatch.setattr(growing_core, "proved_value", counted)
    ascent = begun()
    if hours is not None:
        monkeypatch.setattr(ascent, "_proof_seconds", lambda core: 3600 * hours)
    found = ascent.improve(5.0, iterations=20)
    assert bool(proofs) == np.isfinite(found.value) == (hours is None)
    assert not found.interrupted
