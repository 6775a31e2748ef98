"""Work of each kind of operation: counted numbers divided by one fixed rate each.

A unit of work is about a second of one core. The rates were measured with one thread
of OpenBLAS 0.3 on a shared virtual machine with AVX2. They are never calibrated, so
that the same work stops every machine at the same place.
"""

from __future__ import annotations

PRODUCTS = 3e10  # flops of products in double precision, and of relaxations
SINGLE = 4e10  # flops of products in single precision, and of the steps around them
FACTORS = 1e10  # flops of Cholesky factors
EIGENVALUES = 3e10  # flops of one eigenvector, or of all eigenvalues
CEILINGS = 2.5e10  # flops of a factor that is multiplied out
FIXING = 6e9  # flops of fixing features in a dual
ENTRIES = 1.8e8  # entries that a tree reads
SWAPS = 2e9  # products of swaps and of spectral fixing
SLOPES = 6e8  # entries of smoothed slopes, and of other elementwise functions
SCANS = 8e10  # n d² of a scan


def product(m: int, n: int, p: int) -> float:
    """Return the work of a product of m × n with n × p."""
    return 2.0 * m * n * p / PRODUCTS


def single_product(m: int, n: int, p: int) -> float:
    """Return the work of a product of m × n with n × p in single precision."""
    return 2.0 * m * n * p / SINGLE


def cholesky(n: int) -> float:
    """Return the work of a Cholesky factor of order n."""
    return n**3 / 3 / FACTORS


def eigen(n: int) -> float:
    """Return the work of all eigenvalues of order n, or of one eigenvector."""
    return 4 / 3 * n**3 / EIGENVALUES


def ceiling(n: int) -> float:
    """Return the work of `eigenvalue_ceiling` with a guess."""
    return 4 / 3 * n**3 / CEILINGS


def fixing(n: int) -> float:
    """Return the work of fixing features in a problem of order n."""
    return 3.0 * n**3 / FIXING


def tree(entries: float) -> float:
    """Return the work of a tree that reads so many entries."""
    return entries / ENTRIES


def swaps(products: float) -> float:
    """Return the work of so many products in swaps or in spectral fixing."""
    return products / SWAPS


def passes(entries: float) -> float:
    """Return the work of elementwise functions of so many entries."""
    return entries / SLOPES


def scan(n: int, d: int) -> float:
    """Return the work of the largest entries of all rows of d features, n samples."""
    return float(n) * d * d / SCANS
