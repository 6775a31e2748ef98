"""Features of a round that are shown to be out all at once, in integers."""

import numpy as np

from blockspca.checker.integer_direction import (
    IntegerDirections,
    _Frame,
    exact_times,
)
from blockspca.checker.integer_tree import is_positive_semidefinite
from blockspca.checker.integers import IntegerMatrix
from blockspca.checker.proof_file import read_proof
from proof_builder import as_bytes, describe, rounds_proof


def test_products_by_halves_are_exact():
    rng = np.random.default_rng(0)
    top = 2**40
    N = rng.integers(-top, top, (1000, 1000)).astype(object)
    Y = rng.integers(-top, top + 1, (1000, 3))
    Y[:, 0], N[0] = top, -top
    assert (exact_times(N, Y) == np.dot(N, Y.astype(object))).all()


def test_features_are_out_at_once_only_if_their_matrix_says_so():
    """For bounds from far too low to ample; and with room all of them are found."""
    shown = left = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        Y = rng.standard_normal((5, 7)) * rng.gamma(1.0, size=7) ** 2
        Y *= 2.0 ** float(rng.integers(-40, 40))
        lines = rounds_proof(Y, describe(Y, "data"), int(rng.integers(1, 4)), rng)
        if not lines:
            continue
        section = read_proof(as_bytes(lines))[0]
        record, matrix = section.records[0], IntegerMatrix(Y, section.problem)
        assert record.direction is not None
        for part in (0.3, 0.6, 0.9, 1.0, 1.5):
            upper = int(matrix.number(record.upper) * part)
            check = IntegerDirections(matrix, record.k, upper)
            rounds = (one.direction for one in record.direction.rounds)
            for one in (record.direction, *rounds):
                frame = _Frame(check, one)
                names = list(check.free)
                again = frame.not_out_at_once(names)
                for i in names:
                    X = (
                        frame.form(check.m - 1)
                        + frame.square(i)
                        + frame.minus_columns([i])
                    )
                    is_out = is_positive_semidefinite(X.tolist())
                    assert is_out or i in again
                    shown += i not in again
                    left += is_out and i in again
    assert shown > 500
    assert left < 0.01 * shown
