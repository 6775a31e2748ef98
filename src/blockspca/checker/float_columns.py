"""The columns of the data in float64, and what is made of them, with derived errors.

u = 2⁻⁵³. All is about N·A, N = n − ddof, of data whose |Y_si| ≤ 1.

**Covariances.** Let c be any float64 near the mean, 0 if columns are not centred, Z =
fl(Y − c), so |Z − (Y − c)| ≤ u|Z|. As

    N A_ij = Σ (Y_si − c_i)(Y_sj − c_j) − n (μ_i − c_i)(μ_j − c_j),

Ã = Z'Z, the exact product, has |Ã_ij − N A_ij| ≤ (2u + u²) ‖Z_i‖ ‖Z_j‖ + n δ_i δ_j with
δ_i ≥ |μ_i − c_i|. And μ − c is the mean of Y − c, so |μ_i − c_i| ≤ |fl(mean Z_i)| + (n
+ 2)u mean |Z_i|. The column Z_i itself is within γ_i = u‖Z_i‖ + √n δ_i of Y_i − μ_i.

**Correlations.** Ã = H'H, H_i = fl(Z_i √N/‖Z_i‖) = Z_i √N/‖Z_i‖ (1 + θ), |θ| ≤ (n +
8)u. Two vectors a, b have ‖a/‖a‖ − b/‖b‖‖ ≤ 2‖a − b‖/‖a‖, so H_i is within √N φ_i of
the exact column, φ_i = 1.01 ((n + 8)u + 2(u + √n δ_i/‖Z_i‖)), and |Ã_ij − N A_ij| ≤ N
(2φ + φ²), φ the largest.

**Columns** h_i within γ_i of exact ones z_i, all ‖h_i‖ ≤ H, γ the largest γ_i, have
products within 2γH + γ² of the exact ones.

**Residual.** S = ZV are the exact scores, Ŝ = fl(HV), Q any n × m matrix and T any m ×
m matrix. Let η ≥ ‖Q'Q − I‖ and ε ≥ ‖Q − ST‖. With Π the projection onto the columns of
S and P that onto those of Q, ‖(I − Π)P‖ = ‖(I − Π)(Q − ST)Q⁺‖ ≤ ε/√(1 − η). If that is
below 1, S has m independent columns as Q has, and ‖Π − P‖ is at most that; and ‖P −
QQ'‖ ≤ η. So with ρ = ε/√(1 − η) + η, the column h_i − Q(Q'h_i) is within γ_i + ρ‖h_i‖
of (I − Π)z_i, and rounding it adds at most 1.2 (n + m + 4) u ‖Q‖_F ‖h_i‖.

**Projection.** K = V(V'V)⁻¹ is found in fractions, and rounded: z_i − S k_i is off by
γ_i + Σ_l |k_il| (‖S_l − Ŝ_l‖ + 2u‖Ŝ_l‖), and by (m + 3)u (‖h_i‖ + Σ_l |k_il| ‖Ŝ_l‖).

**Chosen features** I at a level, of which L is no more, rounded down: as B decreases
with the level, B(L) will do. c_i = (N A)_Ii and G = L I − (N A)_II are known up to an
error an entry, e₁ = error + what products round. Take any T, M = T'GT, η ≥ ‖M − I‖ < 1.
Then G is positive definite, and c_i'G⁻¹c_j = f_i'M⁻¹f_j with f_i = T'c_i. H_i is
continued by what is computed for f_i, which is within a_i of it, and within κ = a_i +
η/(1 − η) (‖f_i‖ + a_i) of M^(−1/2) f_i; so an entry is off by error + 2κF + κ², F the
largest norm. (1/√(1 − η) − 1 ≤ η/(1 − η).)
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .columns import adjugate, dot, fraction_bits, scaled
from .fields import ProofError
from .problem import Problem
from .screening import UNIT, above

MOST = 0.1  # of η and ρ: what is worse conditioned is refused
TINY_COLUMN = 2.0**-480  # for all that underflows in a column


class FloatColumns:
    """H, of the features that are kept: H'H is within `error` of `factor` · A."""

    def __init__(self, Y: np.ndarray, problem: Problem) -> None:
        self.problem = problem
        used = list(problem.used)
        self.place = {name: place for place, name in enumerate(used)}
        Y = np.ascontiguousarray(Y[:, used]) if len(used) < problem.d else Y
        n = problem.n
        N = n - problem.ddof
        self.shift = shift = int(np.frexp(np.abs(Y).max())[1])
        H, delta, norms = _centred(np.ldexp(Y, -shift), problem.center)
        if problem.scale:
            self.factor, self.shift = Fraction(N), 0
            # of the data themselves: scaled, small columns beside large ones are 0
            still = np.equal(Y, Y[0] if problem.center else 0).all(axis=0)
            if norms[~still].min(initial=1.0) < 2.0**-400:
                raise ProofError("float64 cannot hold these data")
            with np.errstate(divide="ignore", invalid="ignore"):
                H *= np.where(still, 0.0, np.sqrt(N) / norms)
                parts = np.where(still, 0.0, np.sqrt(n) * delta / norms)
            phi = 1.01 * ((n + 8) * UNIT + 2 * (UNIT + float(parts.max())))
            self.error = above(N * (2 * phi + phi * phi)) + n * N * 2.0**-500
            gamma = np.full(len(used), above(np.sqrt(N) * phi) + TINY_COLUMN)
        else:
            self.factor = N * Fraction(4) ** -shift
            most = float(norms.max())
            error = 2.1 * UNIT * most**2 + n * float(delta.max()) ** 2
            self.error = above(error, n) + n * 2.0**-1000
            gamma = above(1.01 * UNIT * norms + np.sqrt(n) * delta, n) + TINY_COLUMN
        if n * UNIT > 0.01:
            raise ProofError("float64 cannot hold these data")
        self.H, self.gamma = H, gamma
        if problem.columns_by:
            self._deflate()
        if problem.chosen:
            self._choose()
        elif len(used) > len(problem.kept):
            self.H = np.ascontiguousarray(self.H[:, self._places(problem.kept)])
        if not np.isfinite(self.error) or not np.isfinite(self.H).all():
            raise ProofError("float64 cannot hold these data")

    def _places(self, features: tuple[int, ...]) -> list[int]:
        return [self.place[i] for i in features]

    # -- deflated -------------------------------------------------------------------

    def _deflate(self) -> None:
        """Replace H by deflated columns, and `gamma` and `error` by theirs."""
        V = np.zeros((self.H.shape[1], len(self.problem.vectors)))
        for j, vector in enumerate(self.problem.vectors):
            x = np.array(vector.x)
            unit = -int(np.frexp(np.abs(x).max())[1])
            V[self._places(vector.support), j] = np.ldexp(x, unit)
            if not np.array_equal(np.ldexp(np.ldexp(x, unit), -unit), x):
                raise ProofError("float64 cannot hold the vectors")
        inside = np.flatnonzero(V.any(axis=1))
        H, V = self.H[:, inside], V[inside]
        norms = above(_norms(H), len(H))
        scores = H @ V
        terms = self.gamma[inside] + 1.01 * (len(inside) + 2) * UNIT * norms
        off = above(np.abs(V).T @ terms, len(inside)) + TINY_COLUMN
        if self.problem.columns_by == "residual":
            self._regress(scores, off)
        else:
            self._project(scores, off, inside, V)
        most, gamma = above(float(_norms(self.H).max()), len(H)), self.gamma.max()
        self.error = float(above(2 * gamma * most + gamma**2))

    def _regress(self, scores: np.ndarray, off: np.ndarray) -> None:
        n, m = scores.shape
        Q, T = _orthonormal(scores)
        size_q = above(_size(Q), n * m)
        defect = above(_size(Q.T @ Q - np.eye(m)), n)
        defect += 1.02 * (n + 2) * UNIT * size_q**2
        apart = above(_size(Q - scores @ T), n)
        sizes = _size(np.abs(scores) @ np.abs(T)) + size_q
        apart += 1.02 * (m + 3) * UNIT * sizes
        apart += above(_size(off) * _size(T), m)
        if not defect < MOST or not apart < MOST:
            raise ProofError("the scores are not shown to be independent in float64")
        rho = above(apart / np.sqrt(1 - defect) + defect)
        norms = above(_norms(self.H), n)
        self.H = self.H - Q @ (Q.T @ self.H)
        rounding = rho + 1.2 * (n + m + 4) * UNIT * size_q
        self.gamma = above(self.gamma + rounding * norms) + TINY_COLUMN

    def _project(
        self, scores: np.ndarray, off: np.ndarray, inside: np.ndarray, V: np.ndarray
    ) -> None:
        m = V.shape[1]
        bits = [fraction_bits(v) for v in V.T]
        rows = [
            [scaled(y, b) for y, b in zip(row, bits, strict=True)] for row in V.tolist()
        ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        gram = [[dot(v, w) for w in columns] for v in columns]
        adj, det = adjugate(gram, "the vectors are not independent")
        # of V's columns times 2^bits; K is for V itself
        K = np.array([
            [_ratio(dot(one, row) << b, det) for one, b in zip(adj, bits, strict=True)]
            for row in rows
        ])  # fmt: skip
        size = above(_norms(scores), len(scores))
        before = above(_norms(self.H[:, inside]), len(scores))
        sizes = np.abs(K)
        self.H = self.H.copy()
        self.H[:, inside] -= scores @ K.T
        more = sizes @ (off + 2 * UNIT * size)
        more += (m + 4) * UNIT * (before + sizes @ size)
        self.gamma = self.gamma.copy()
        self.gamma[inside] = above(self.gamma[inside] + more, m) + TINY_COLUMN

    # -- chosen ---------------------------------------------------------------------

    def _choose(self) -> None:
        """Continue the columns for the features that are chosen at the level."""
        problem, n = self.problem, len(self.H)
        own = self.H[:, self._places(problem.chosen)]
        rest = np.ascontiguousarray(self.H[:, self._places(problem.kept)])
        level = rounded_down(Fraction(problem.level or 0.0) * self.factor)
        most = above(float(_norms(self.H).max()), n)
        error = self.error + 1.02 * n * UNIT * most**2
        p = own.shape[1]
        G = level * np.eye(p) - _symmetric(own.T @ own)
        T = _inverse_factor(G)
        sizes = np.abs(T)
        off = error + 2 * UNIT * (np.abs(G) + abs(level) + most**2)
        off = off + 1.02 * (2 * p + 4) * UNIT * np.abs(G)
        defect = _size(T.T @ G @ T - np.eye(p))
        defect += _size(sizes.T @ off @ sizes)
        defect = 1.01 * defect + p * p * UNIT
        if not defect < MOST:
            raise ProofError("the level is not shown to be above the chosen features")
        cross = own.T @ rest
        factor = T.T @ cross
        apart = sizes.T @ (error + 1.02 * (p + 2) * UNIT * np.abs(cross))
        apart = 1.01 * float(_norms(apart).max())
        largest = 1.01 * float(_norms(factor).max())
        kappa = apart + defect / (1 - defect) * (largest + apart)
        self.error = float(above(self.error + 2.01 * kappa * largest + kappa**2))
        self.H = np.ascontiguousarray(np.concatenate([rest, factor]))


def rounded_down(exact: Fraction) -> float:
    """Return a float64 that is no more, and near."""
    if abs(exact) > 2**400:
        raise ProofError("a number is out of all proportion to the data")
    found = float(exact)
    return float(np.nextafter(found, -np.inf)) if found > exact else found


def _ratio(top: int, bottom: int) -> float:
    """Return the fraction, rounded to the nearest float64."""
    try:
        return top / bottom
    except OverflowError:
        raise ProofError("float64 cannot hold the vectors") from None


def _size(M: np.ndarray) -> float:
    """Return the norm of Frobenius."""
    return float(np.sqrt(np.sum(M * M)))


def _norms(H: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("si,si->i", H, H))


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def _orthonormal(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and T with Q ≈ ST and Q'Q ≈ I, by Gram and Schmidt, twice."""
    m = S.shape[1]
    Q, T = S.copy(), np.eye(m)
    for i in range(m):
        for _ in range(2):
            for j in range(i):
                share = Q[:, j] @ Q[:, i]
                Q[:, i] -= share * Q[:, j]
                T[:, i] -= share * T[:, j]
        size = float(np.sqrt(Q[:, i] @ Q[:, i]))
        if not size > 0:
            raise ProofError("the scores are not independent")
        Q[:, i] /= size
        T[:, i] /= size
    return Q, T


def _inverse_factor(G: np.ndarray) -> np.ndarray:
    """Return T with T'GT ≈ I, upper triangular; of Cholesky's factor by hand."""
    p = len(G)
    T = np.eye(p)
    for i in range(p):
        for _ in range(2):
            for j in range(i):
                T[:, i] -= (T[:, j] @ G @ T[:, i]) * T[:, j]
        square = float(T[:, i] @ G @ T[:, i])
        if not square > 0:
            raise ProofError("the level is not above the chosen features")
        T[:, i] /= np.sqrt(square)
    return T


def _centred(Y: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Z, and for each column δ and ‖Z_i‖ (rounded, within (n + 2)u)."""
    n, d = Y.shape
    if center:
        same = (Y[0] == Y).all(axis=0)
        Z = Y - np.where(same, Y[0], Y.mean(axis=0))
        errors = np.abs(Z.mean(axis=0)) + (n + 2) * UNIT * np.abs(Z).mean(axis=0)
        delta = above(errors, n)
        delta[same] = 0.0
    else:
        Z, delta = Y.copy(), np.zeros(d)
    return Z, delta, _norms(Z)
