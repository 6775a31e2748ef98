"""What orthogonal components share, chosen so that no vector has more than the others.

For the bound m opt(k; A − BB') + ‖B‖² of `joint_split`, of which any B is a proof. The
best B is that of the largest value of ⟨A, Y⟩ over Y ⪯ I that are m times a mixture of
matrices xx' of unit vectors x with k nonzeros: at it, all x of the mixture have the
same x'(A − BB')x. It is sought with some vectors x_i for all: the sum

    m max_i x_i'(A − BB')x_i + ‖B‖²

is lowered, smoothed, by steps in B; then vectors that have more of A − BB' are added.
Nothing is proved here.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._validation import FloatArray
from ..heuristics.power_iteration import power_iteration
from ..limits import Deadline

ROUNDS = 32  # after which next to nothing is gained
SMOOTHINGS = (0.01, 0.003, 0.001)  # of the sum for each component, one after the other
STEPS = 150  # of each of them, at the most
STARTS = 40  # of power steps in each round
POWER_STEPS = 40
ADDED = 12  # vectors in each round
SAME = 1 - 1e-6  # the product of unit vectors that count as one


def balanced(
    A: FloatArray, B: FloatArray, components: FloatArray, k: int, deadline: Deadline
) -> FloatArray:
    """Return B, (d, m), for which the bound seems to be least, from the one given.

    Parameters
    ----------
    A : (d, d) array
    B : (d, m) array
        To begin with.
    components : (m, d) array
        Unit vectors of k nonzeros.
    """
    m, rng = len(components), np.random.default_rng(0)
    # With unit vectors among them, no B makes all as small as one likes.
    vectors = np.vstack([np.eye(len(A)), components])
    tried = [B]
    for _ in range(ROUNDS):
        if deadline.passed():
            break
        found = sparse_vectors(A - B @ B.T, vectors, k, rng)
        vectors = _with_new(vectors, found)
        B = _lowered(A, B, vectors, m)
        tried.append(B)
    # By all vectors there are: those of its own round flatter a B.
    return min(tried, key=lambda B: m * _values(A, B, vectors).max() + (B * B).sum())


def _values(A: FloatArray, B: FloatArray, vectors: FloatArray) -> FloatArray:
    within = np.einsum("ij,ij->i", vectors @ A, vectors)
    return np.asarray(within - ((vectors @ B) ** 2).sum(axis=1))


def _lowered(A: FloatArray, B: FloatArray, vectors: FloatArray, m: int) -> FloatArray:
    """Lower m max_i x_i'(A − BB')x_i + ‖B‖², smoothed less and less."""
    shape, plain = B.shape, np.einsum("ij,ij->i", vectors @ A, vectors)
    size = float(np.abs(plain).max())

    def smoothed(flat: FloatArray, mu: float) -> tuple[float, FloatArray]:
        B = flat.reshape(shape)
        along = vectors @ B
        values = plain - (along**2).sum(axis=1)
        largest = float(values.max())
        weights = np.exp((values - largest) / mu)
        total = float(weights.sum())
        value = m * (largest + mu * np.log(total)) + float((B * B).sum())
        slope = B - (m / total) * (vectors * weights[:, None]).T @ along
        return value, 2 * slope.ravel()

    # From the least smoothing alone, steps are short from the start.
    for smoothing in SMOOTHINGS:
        found = minimize(
            smoothed,
            B.ravel(),
            args=(smoothing * size,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": STEPS},
        )
        B = found.x.reshape(shape)
    return B


def sparse_vectors(
    M: FloatArray, vectors: FloatArray, k: int, rng: np.random.Generator | None = None
) -> FloatArray:
    """Return k-sparse unit vectors with large x'Mx, the largest first.

    By power steps from the vectors given, rows of M, and at random.
    """
    rng = rng or np.random.default_rng(0)
    d = len(M)
    # About the size of the least eigenvalue: below it steps may go to and fro.
    shift = float(np.abs(M).sum(axis=1).max() / np.sqrt(d))
    order = np.argsort(-np.einsum("ij,ij->i", vectors @ M, vectors))
    near = vectors[order[: STARTS // 4]]
    rows = M[rng.permutation(d)[: STARTS // 4]]
    # Half of them anywhere: B makes all that is known alike, and what is largest then
    # need not be near any of it.
    random = rng.normal(size=(STARTS - len(near) - len(rows), d))
    starts = M @ np.vstack([near, rows, random]).T  # a step before anything is cut off
    X = power_iteration(
        lambda x: M @ x, starts, k, shift=shift, max_iterations=POWER_STEPS
    )
    supports = {tuple(np.flatnonzero(x).tolist()) for x in X.T if x.any()}
    found = np.zeros((len(supports), d))
    for row, support in zip(found, sorted(supports), strict=True):
        chosen = np.array(support)
        row[chosen] = np.linalg.eigh(M[np.ix_(chosen, chosen)])[1][:, -1]
    order = np.argsort(-np.einsum("ij,ij->i", found @ M, found), kind="stable")
    return found[order[:ADDED]]


def _with_new(vectors: FloatArray, found: FloatArray) -> FloatArray:
    for x in found:
        if np.abs(vectors @ x).max() < SAME:
            vectors = np.vstack([vectors, x])
    return vectors
