"""The residual of A after regression on scores, and the variance they explain.

With V the components, as columns, and A = Z'Z, the scores are ZV. Regression of every
feature on them leaves

    A_V = A − AV (V'AV)⁻¹ V'A = Z' (I − Π) Z,    Π the projection onto the scores.

Two ways to compute it, each with an a posteriori bound on the error of an entry, which
accounts for an ill-conditioned V'AV. The error is relative to A_V of the exact A, for V
as stored. So A_V is positive semidefinite if A is, and A_V ⪯ A_W if V has the columns
of W and more, without any allowance.

**From data in memory**, C = Z + E with ‖e_i‖ ≤ γ_i. Let Ŝ = fl(CV) = ZV + δS and
Ŝ = Q̂R̂ + δ, and let η bound ‖Q̂'Q̂ − I‖ and s bound ‖δS‖ + ‖δ‖. As Q̂R̂ and ZV differ by
s, and both have m dimensions, their projections differ by at most s / σ_min(ZV), where
σ_min(ZV) ≥ sqrt(1 − η) σ_min(R̂) − s; and ‖Q̂Q̂' − its projection‖ ≤ η. With ρ the sum of
the two, the columns ĉ_i = fl(c_i − Q̂(Q̂'c_i)) are off by

    ‖ĉ_i − (I − Π) z_i‖ ≤ γ_i + ρ (‖c_i‖ + γ_i) + (n + m + 6) eps ‖Q̂‖_F ‖c_i‖.

**From entries of A**, Ŵ = AV + δW, Ĝ = V'AV + δG. Take any T (an inverse Cholesky
factor of Ĝ) and let M = T'(V'AV)T, η ≥ ‖M − I‖. Then (V'AV)⁻¹ = T M⁻¹ T', so that with
f_i = T'w_i the term of an entry is f_i'M⁻¹f_j, and f_i'f_j is off by η / (1 − η)
‖f_i‖ ‖f_j‖ at most. That V'AV is positive definite follows from η < 1.

The errors of a column are relative to that column; those of entries that were formed
of data, to the largest variance. Where that is too much for the smallest ones, A_V is
formed of the columns that A was formed of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import FloatArray
from ..status import SEARCH_GAP
from .covariance import Covariance
from .derived import (
    DerivedCovariance,
    LowRankSource,
    ResidualDataSource,
    products_error,
)
from .formed import block_size
from .rounding import EPS, SMALLEST, additions
from .sources import DenseDataSource, MatrixSource, MomentSource, Source

# A score is dependent if the earlier ones explain all but this share of its variance.
PIVOT_TOLERANCE = 1e-10
LARGEST_DEFECT = 0.25  # of η and ρ; directions are dropped until they are below
# Errors of entries, as a share of a variance, of which searches keep a thousandth:
# regression on scores of little variance magnifies them.
LOST = 1e-3 * SEARCH_GAP
PRODUCTS = 2**34  # for every component again, with the columns; a second or two
ROOM = 1.01  # norms and sums of positive numbers that are rounded themselves
ROWS_AT_ONCE = 2**22  # entries of A


@dataclass(frozen=True)
class Regression:
    """Every feature regressed on the scores of some components."""

    #: The components whose scores were used; the others depend on these, or are
    #: constant, up to rounding.
    kept: tuple[int, ...]
    #: (d, m). F with F F' = AV (V'AV)⁻¹ V'A, V the components kept, up to the errors
    #: below.
    factor: FloatArray
    basis: FloatArray | None  #: (n, m). Q̂, if made from data in memory; then F = C'Q̂.
    #: ρ if there is a basis, otherwise a bound on |(FF')_ij − what it stands for|.
    error: float

    @property
    def explained(self) -> float:
        """The variance of all features that the scores predict, tr F F'."""
        return float(np.einsum("ij,ij->", self.factor, self.factor))


def regressed(cov: Covariance, components: FloatArray) -> Regression:
    """Regress every feature on the scores of components, (m, d), in their order."""
    kept = list(range(len(components)))
    while True:
        attempt = _attempt(cov, components, kept)
        if isinstance(attempt, Regression):
            return attempt
        del kept[attempt]


def residual(cov: Covariance, components: FloatArray) -> Covariance:
    """Return A − AV (V'AV)⁻¹ V'A, V' = `components`; see the module."""
    found = regressed(cov, components)
    dropped = len(components) - len(found.kept)
    origin = f"residual of {len(found.kept)} score(s)"
    if dropped:
        origin += f", {dropped} that depend(s) on them left out"
    source = cov._source
    data = _columns_behind(cov)
    new: Source
    if not found.kept:
        new = source
    elif data is not None:
        assert found.basis is not None
        if data is source:
            C = data.C - found.basis @ found.factor.T
            new = ResidualDataSource(C, _column_errors(data, found), data.on_device)
        else:
            new = _formed(data, found, found.basis)
    elif isinstance(source, MatrixSource) and not source.sparse:
        view = _less(source, found, cov.known_psd)
        product = found.factor @ found.factor.T
        matrix = source.A - (product + product.T) / 2
        new = source.computed(matrix, view.entry_error(), psd=cov.known_psd)
    else:
        new = _less(source, found, cov.known_psd)
    return DerivedCovariance(new, cov.feature_names, origin)


def _columns_behind(cov: Covariance) -> DenseDataSource | None:
    """Return the data to regress, where columns are better than entries of A."""
    source = cov._source
    if isinstance(source, DenseDataSource):
        return source
    data = source.computed_from if isinstance(source, MomentSource) else None
    # What is derived from A keeps the data of A for `check_unchanged` alone.
    if cov.is_derived or not isinstance(data, DenseDataSource) or data.on_device:
        return None
    variances = cov.diagonal()
    smallest = float(variances[variances > 0].min(initial=np.inf))
    is_cheap = data.n_samples * data.n_features**2 <= PRODUCTS
    return data if is_cheap and cov.entry_error > LOST * smallest else None


def _formed(
    data: DenseDataSource, found: Regression, basis: FloatArray
) -> MomentSource:
    """Form the residual, a block of samples at a time, without a copy of the data."""
    n, d = data.n_samples, data.n_features
    A, size = np.zeros((d, d)), block_size(n)
    for start in range(0, n, size):
        block = slice(start, start + size)
        left = data.C[block] - basis[block] @ found.factor.T
        A += left.T @ left
    A = (A + A.T) / 2
    errors, roundings = _column_errors(data, found), additions(n, size) + 1
    error = products_error(np.diagonal(A), errors, n, roundings)
    return MomentSource(A, error, psd=True, computed_from=data)


def _less(source: Source, found: Regression, psd: bool) -> LowRankSource:
    """A − F F', entry by entry."""
    return LowRankSource(source, found.factor, found.factor / 2, psd, found.error)


def _attempt(
    cov: Covariance, components: FloatArray, kept: list[int]
) -> Regression | int:
    """Regress on the components kept; or return the place of one to drop."""
    if not kept:
        return Regression((), np.zeros((cov.n_features, 0)), None, 0.0)
    chosen = components[kept]
    used = np.flatnonzero(chosen.any(axis=0))
    loadings = chosen[:, used].T
    data = _columns_behind(cov)
    if data is not None:
        return _on_data(data, used, loadings, tuple(kept))
    return _on_entries(cov, used, loadings, tuple(kept))


def _on_data(
    source: DenseDataSource, used: np.ndarray, V: FloatArray, kept: tuple[int, ...]
) -> Regression | int:
    n, m = source.n_samples, len(kept)
    C = source.C[:, used]
    scores = C @ V
    sizes = np.linalg.norm(scores, axis=0)
    # More scores than samples are dependent; a zero score has no direction.
    if m > n or not sizes.all():
        return m - 1 if sizes.all() else int(np.argmin(sizes))
    units = powers_of_two(sizes)
    scores, V, sizes = scores / units, V / units, sizes / units
    columns = np.sqrt(source.diagonal()[used]) * ROOM
    rounded = data_errors(source)[used] + (len(used) + 2) * EPS * columns
    noise = np.abs(V).T @ rounded
    # Before pivots: one that is nothing but rounding may seem to explain another.
    if (noise >= LARGEST_DEFECT * sizes).any():
        return int(np.argmax(noise / sizes))
    Q, R = np.linalg.qr(scores)
    pivots = (np.diagonal(R) / sizes) ** 2
    if (pivots <= PIVOT_TOLERANCE).any():
        return int(np.flatnonzero(pivots <= PIVOT_TOLERANCE)[0])
    apart = float(np.linalg.norm(noise))
    apart += float(np.linalg.norm(scores - Q @ R))
    size_q, size_r = float(np.linalg.norm(Q)), float(np.linalg.norm(R))
    apart += (m + 2) * EPS * (float(np.linalg.norm(scores)) + size_q * size_r)
    apart *= ROOM
    defect = float(np.linalg.norm(Q.T @ Q - np.eye(m))) + (n + 2) * EPS * size_q**2
    inverse = np.linalg.inv(R)
    size_t = float(np.linalg.norm(inverse))
    off = float(np.linalg.norm(R @ inverse - np.eye(m)))
    off += (m + 2) * EPS * size_r * size_t
    # ‖R⁻¹‖ ≤ ‖T‖ / (1 − ‖RT − I‖)
    smallest = np.sqrt(max(0.0, 1 - ROOM * defect)) * (1 - ROOM * off) / size_t / ROOM
    smallest -= apart
    # Scores that are dependent up to rounding: drop the one that is known worst.
    if not smallest > 0 or not defect + apart / smallest < LARGEST_DEFECT:
        return int(np.argmax((noise + EPS) / np.abs(np.diagonal(R))))
    error = ROOM * (defect + apart / smallest)
    return Regression(kept, source.C.T @ Q, Q, error)


def _on_entries(
    cov: Covariance, used: np.ndarray, V: FloatArray, kept: tuple[int, ...]
) -> Regression | int:
    d, m, s = cov.n_features, len(kept), len(used)
    product = np.empty((d, m))
    weight = np.empty((d, m))  # |A| |V|, to which rounding is proportional
    step = max(1, ROWS_AT_ONCE // s)
    for start in range(0, d, step):
        rows = slice(start, min(start + step, d))
        block = cov.submatrix(rows, used)
        product[rows] = block @ V
        weight[rows] = np.abs(block) @ np.abs(V)
    ones = np.abs(V).sum(axis=0)
    rounded = cov.entry_error * ones + (s + 2) * EPS * weight * ROOM
    gram = V.T @ product[used]
    gram = (gram + gram.T) / 2
    variances = np.diagonal(gram)
    if not (variances > 0).all():
        return int(np.argmin(variances))
    units = powers_of_two(np.sqrt(variances))
    gram = gram / units / units[:, None]
    product, rounded, V = product / units, rounded / units, V / units
    off = np.abs(V).T @ rounded[used]
    off += (s + 4) * EPS * (np.abs(V).T @ np.abs(product[used]))
    noise = np.diagonal(off) / np.diagonal(gram)
    if (noise >= LARGEST_DEFECT).any():  # as in `_on_data`
        return int(np.argmax(noise))
    factor = _cholesky(gram)
    if not isinstance(factor, np.ndarray):
        return factor
    T = np.linalg.inv(factor).T  # upper triangular, T'GT ≈ I
    defect = distance_from_identity(T, gram, off)
    if not defect < LARGEST_DEFECT:
        return int(np.argmax(np.diagonal(off) / np.diagonal(factor) ** 2))
    F = product @ T
    apart = (rounded + (m + 1) * EPS * np.abs(product)) @ np.abs(T)
    off_f = ROOM * float(np.linalg.norm(apart, axis=1).max())
    largest = ROOM * float(np.linalg.norm(F, axis=1).max()) + off_f
    error = 2 * off_f * largest + defect / (1 - defect) * largest**2
    return Regression(kept, F, None, ROOM * error)


def _column_errors(source: DenseDataSource, found: Regression) -> FloatArray:
    """Bound ‖ĉ_i − (I − Π) z_i‖; see the module."""
    assert found.basis is not None
    n, m = found.basis.shape
    before = data_errors(source)
    columns = np.sqrt(source.diagonal()) * ROOM
    rounding = (n + m + 6) * EPS * float(np.linalg.norm(found.basis)) * columns
    return ROOM * (before + found.error * (columns + before) + rounding)


def data_errors(source: DenseDataSource) -> FloatArray:
    """Bound ‖c_i − z_i‖, z the exact columns.

    In units of u ‖c₀‖ ≥ u ‖c‖: n + 1 for the second mean, 2 for the two subtractions, 3
    for the divisor and n/2 + 8 for a standard deviation (`rounding`), less than 2n +
    16. What underflows is τ/2 for each sample, thrice.
    """
    if isinstance(source, ResidualDataSource):
        return source.column_errors
    n = source.n_samples
    return (n + 8) * EPS * np.sqrt(source.uncentred) * ROOM + 2 * n * SMALLEST


def distance_from_identity(T: FloatArray, G: FloatArray, off: FloatArray) -> float:
    """Bound η = ‖T'G₀T − I‖ for every G₀ with entries within `off` of those of G.

    Any T will do. `off` is enlarged, in place, by the rounding of T'GT here.
    """
    m, sizes = len(G), np.abs(T)
    off += (2 * m + 4) * EPS * np.abs(G)
    defect = float(np.linalg.norm(T.T @ G @ T - np.eye(m)))
    return ROOM * (defect + float(np.linalg.norm(sizes.T @ off @ sizes)))


def _cholesky(gram: FloatArray) -> FloatArray | int:
    """The lower factor; or the first direction that depends on those before it."""
    left = np.array(gram)
    factor = np.zeros_like(left)
    for j in range(len(left)):
        if not left[j, j] > PIVOT_TOLERANCE * gram[j, j]:
            return j
        factor[j:, j] = left[j:, j] / np.sqrt(left[j, j])
        left -= np.outer(factor[:, j], factor[:, j])
    return factor


def powers_of_two(sizes: FloatArray) -> FloatArray:
    """Powers of two near the sizes: exact to divide by."""
    return np.ldexp(1.0, np.frexp(sizes)[1])
