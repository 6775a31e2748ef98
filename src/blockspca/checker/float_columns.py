"""Columns of data in float64 with derived errors, before and after deflation.

u = 2⁻⁵³. Data are first multiplied by a power of two, so that all |Y_si| ≤ 1; what then
underflows changes an entry of A by less than n·2⁻¹⁰⁰⁰, which is in the error.

**Covariances.** All is about N·A, N = n − ddof. Let c be any float64 near the mean, 0
if columns are not centred, Z = fl(Y − c), so |Z − (Y − c)| ≤ u|Z|. As

    N A_ij = Σ (Y_si − c_i)(Y_sj − c_j) − n (μ_i − c_i)(μ_j − c_j),

Ã = Z'Z, the exact product, has |Ã_ij − N A_ij| ≤ (2u + u²) ‖Z_i‖ ‖Z_j‖ + n δ_i δ_j with
δ_i ≥ |μ_i − c_i|. And μ − c is the mean of Y − c, so |μ_i − c_i| ≤ |fl(mean Z_i)| + (n
+ 2)u mean |Z_i|. The column itself is within θ_i = u‖Z_i‖ + √n δ_i of the exact one.

**Correlations.** Ã = H'H, H_i = fl(Z_i √N/‖Z_i‖) = Z_i √N/‖Z_i‖ (1 + θ), |θ| ≤ (n +
8)u. Two vectors a, b have ‖a/‖a‖ − b/‖b‖‖ ≤ 2‖a − b‖/‖a‖, so H_i is within √N φ_i of
the exact column, φ_i = 1.01 ((n + 8)u + 2(u + √n δ_i/‖Z_i‖)), and |Ã_ij − N A_ij| ≤ N
(2φ + φ²), φ the largest.

**Residuals.** The columns of Q̂ are an exact orthonormal basis, rounded once, so Q̂Q̂' is
within 2.1ru of the projection Π, and of what is said in `taken` with `scale`. With ĉ =
fl(Q̂'H_i), H'_i = fl(H_i − Q̂ĉ) is within 1.1u√r(n + r + 3)‖H_i‖ of (I − Q̂Q̂')H_i: the
products of n terms, those of r terms, and the difference. And (I − Π) makes θ_i no
larger. **Projections** change few columns; those are exact ones, rounded once.

If columns are within θ of exact ones, their products are within (2‖H‖ + θ)θ.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .factor import over_root
from .fields import ProofError
from .problem import Problem
from .screening import BLOCK, UNIT, above
from .taken import ChangedColumns, Deflated


class FloatColumns:
    """Columns H of which products are `factor` · A_ij, within `error`."""

    def __init__(
        self, Y: np.ndarray, problem: Problem, names: Sequence[int], taken: Deflated
    ) -> None:
        """Y has the columns of the features `names`."""
        n = problem.n
        N = n - problem.ddof
        if n * UNIT > 0.01:
            raise ProofError("float64 cannot hold these data")
        self.problem, self.names, self.taken = problem, names, taken
        self.shift = int(np.frexp(max(Y.max(), -Y.min()))[1])
        H = np.ldexp(Y, -self.shift)
        delta, norms = _centre(H, problem.center)
        if problem.scale:
            self.factor, self.shift = Fraction(N), 0
            # of the data themselves: scaled, small columns beside large ones are 0
            least = Y.min(axis=0) if problem.center else 0
            still = np.equal(Y.max(axis=0), least) & np.equal(Y.min(axis=0), least)
            if norms[~still].min(initial=1.0) < 2.0**-400:
                raise ProofError("float64 cannot hold these data")
            with np.errstate(divide="ignore", invalid="ignore"):
                H *= np.where(still, 0.0, np.sqrt(N) / norms)
                parts = np.where(still, 0.0, np.sqrt(n) * delta / norms)
            phi = 1.01 * ((n + 8) * UNIT + 2 * (UNIT + float(parts.max())))
            self.error = above(N * (2 * phi + phi * phi)) + n * N * 2.0**-500
            theta = np.full(len(norms), above(np.sqrt(N) * phi))
        else:
            self.factor = N * Fraction(4) ** -self.shift
            most = float(norms.max())
            error = 2.1 * UNIT * most**2 + n * float(delta.max()) ** 2
            self.error = above(error, n) + n * 2.0**-1000
            theta = above(UNIT * norms + np.sqrt(n) * delta, n)
        self.H = H
        if isinstance(taken.columns, ChangedColumns):
            self._deflate(theta)
        if not np.isfinite(self.error):
            raise ProofError("float64 cannot hold these data")

    def _deflate(self, theta: np.ndarray) -> None:
        n = self.problem.n
        if self.taken.basis[0]:
            basis, squares = self.taken.basis
            Q = np.array(
                [
                    [over_root(y, square) for y in column]
                    for column, square in zip(basis, squares, strict=True)
                ]
            ).T
            r = Q.shape[1]
            norms = above(np.sqrt(np.einsum("si,si->i", self.H, self.H)), n)
            lost = (1.2 * np.sqrt(r) * (n + r + 3) + 2.2 * r) * UNIT
            lost += 1.01 * float(self.taken.turned)
            theta = above(theta + lost * norms)
            self.H = self.H - Q @ (Q.T @ self.H)
        else:
            self._replace(theta)
        norms = above(np.sqrt(np.einsum("si,si->i", self.H, self.H)), n)
        worst = float(theta.max())
        self.error = float(above((2 * float(norms.max()) + worst) * worst))
        self.error += n * 2.0**-500

    def _replace(self, theta: np.ndarray) -> None:
        """Take the exact columns of the features that a projection changes."""
        columns, problem = self.taken.columns, self.problem
        changed = {i for v in self.taken.mixed[0] for i in v}
        # `factor` A_ij = g_i'g_j/below² is what H_i'H_j is about.
        bits = columns.two_bits // 2 + self.shift
        below = problem.n if problem.center and not problem.scale else 1
        above_it, below = (1 << max(0, -bits)), below << max(0, bits)
        for place, name in enumerate(self.names):
            if name in changed:
                try:
                    found = [y * above_it / below for y in columns.column(name)]
                    lost = 1.01 * (columns.error * above_it / below)
                except OverflowError:
                    raise ProofError("float64 cannot hold these data") from None
                self.H[:, place] = found
                norm = np.sqrt(np.sum(self.H[:, place] ** 2))
                theta[place] = above(1.01 * UNIT * norm + lost, problem.n)


def _centre(Y: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray]:
    """Make Z of Y, in its place; return for each column δ and ‖Z_i‖.

    The latter is rounded, within (n + 2)u. Large data are there twice at the most, as
    they were and as Z: sizes are added up by parts of the rows.
    """
    n, d = Y.shape
    delta = np.zeros(d)
    if center:
        same = np.equal(Y.max(axis=0), Y.min(axis=0))
        Y -= np.where(same, Y[0], Y.mean(axis=0))
        rows = max(1, BLOCK // d)
        parts = range(0, n, rows)
        sizes = sum(np.abs(Y[at : at + rows]).sum(axis=0) for at in parts)
        errors = np.abs(Y.mean(axis=0)) + (n + 2) * UNIT * sizes / n
        delta = above(errors, n)
        delta[same] = 0.0
    return delta, np.sqrt(np.einsum("si,si->i", Y, Y))
