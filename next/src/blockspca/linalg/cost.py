"""The work of operations: their number divided by a fixed rate for each kind.

A unit of work is about a second of one core. The rates were measured with one thread
of OpenBLAS 0.3 on a shared virtual machine with AVX2. They are constants, so a limit
on work stops a call at the same place on every machine.
"""

from __future__ import annotations

PRODUCTS = 3e10  # flops of products in double precision, and of relaxations
SINGLE = 4e10  # flops of products in single precision, and of the steps around them
FACTORS = 1e10  # flops of Cholesky factors
EIGENVALUES = 3e10  # flops of one eigenvector, or of all eigenvalues
CEILINGS = 2.5e10  # flops of a factor that is multiplied out
FIXING = 6e9  # flops of fixing features in a dual
ENTRIES = 4.5e8  # entries that a tree reads: ALLAML, k ≤ 20; Model 1 has 9.4e8 a second
SUBSETS = 2e9  # entries of lists of strong sets
SWAPS = 2e9  # products of swaps
SLOPES = 6e8  # entries of smoothed slopes, and of other elementwise functions


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


def subsets(entries: float) -> float:
    """Return the work of lists of strong sets that read so many entries."""
    return entries / SUBSETS


def swaps(products: float) -> float:
    """Return the work of swaps that take so many products."""
    return products / SWAPS


def passes(entries: float) -> float:
    """Return the work of elementwise functions of so many entries."""
    return entries / SLOPES
