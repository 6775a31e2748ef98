"""Estimates the seconds of linear algebra, so that limits on time can be kept.

LAPACK cannot be stopped. Under a limit on time a factorization is therefore begun only
if, by its number of operations and the rates below, the time left suffices.

The rates were measured with one thread of OpenBLAS 0.3 on a shared virtual machine with
two cores, for orders 1000 to 2000: products 25, Cholesky factors 14 to 17, QR 12 to 15,
eigenvalues 9 to 12 · 10⁹ operations a second, gathered entries 2.7 · 10⁸ and products
of two stored entries 4 · 10⁸ a second. At most half of that is assumed, as the machine
may be shared. A slower machine misses a limit by one operation.
"""

from __future__ import annotations

PRODUCTS = 1e10
FACTORS = 6e9
EIGENVALUES = 4e9
ENTRIES = 1e8
PAIRS = 2e8


def product(m: int, n: int, p: int) -> float:
    """Seconds for a product of m × n with n × p."""
    return 2.0 * m * n * p / PRODUCTS


def cholesky(n: int) -> float:
    """Seconds for the Cholesky factor of order n."""
    return n**3 / 3 / FACTORS


def qr(n: int, p: int) -> float:
    """Seconds for the triangular factor of n × p."""
    return 2.0 * max(n, p) * min(n, p) ** 2 / FACTORS


def inverse(n: int) -> float:
    """Seconds for an inverse of order n."""
    return 2.0 * n**3 / FACTORS


def eigenvalues(n: int) -> float:
    """Seconds for the eigenvalues of order n, or for one eigenvector."""
    return 4 / 3 * n**3 / EIGENVALUES


def tree_node(n: int) -> float:
    """Seconds for a node of the tree (`search/schur_tree.py`) of n features.

    1.3 to 7 ns for each of n² entries were measured, for n from 60 to 600.
    """
    return 1e-5 + 2e-9 * n * n


def grown_set(k: int, n: int) -> float:
    """Seconds for a set of `search/averaging.py`, for k of n features.

    0.05 to 0.3 ns for each of k² n products were measured, for n from 60 to 600. For k
    from 7 on it is less, as most sets are large and have few candidates left; it is
    overestimated there on purpose, since growth proves nothing for large k (with the
    true cost ALLAML, k ≤ 20, took 4.5 s instead of 2.6).
    """
    return 1e-6 + 1e-10 * k * k * n


def inclusion(n: int) -> float:
    """Seconds to include a set there: a new matrix of n features."""
    return 1e-4 + 4e-9 * n * n


def sparse_gram(pairs: float) -> float:
    """Seconds for X'X of sparse data with Σ nnz(x_s)² = `pairs` over its samples."""
    return pairs / 2 / PAIRS


def passes(count: float, entries: float) -> float:
    """Seconds for that many passes over as many entries: copies, comparisons, sums."""
    return count * entries / ENTRIES
