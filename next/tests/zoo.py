"""Families of small problems, each a function of a name, a size and a seed.

A `Problem` is what a user passes (a matrix, or samples) and the exact matrix behind it
in fractions. Its repr builds it again. Hypothesis draws problems and shrinks them:
fewer features, simpler families, no change, smaller seeds. Nothing here imports the
package that is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse as sp

Rng = np.random.Generator
Array = np.ndarray
EPS = float(np.finfo(float).eps)
#: entries of the family `entries`, which Hypothesis draws one by one
VALUES = (0.0, 1.0, -1.0, 2.0, 0.5, 1 + EPS, 1 - EPS / 2, 1e-3, 3.0, -1e6, 1e-30)


def symmetric(A: Array) -> Array:
    """Return the symmetric matrix with the upper triangle of A."""
    return np.triu(A) + np.triu(A, 1).T


# -- matrices: (d, rng) -> float64 array -----------------------------------------------


def gaussian(d: int, rng: Rng) -> Array:
    X = rng.standard_normal((d + int(rng.integers(2, 20)), d))
    return np.cov((X * rng.gamma(2.0, size=d)).T).reshape(d, d)


def correlation(d: int, rng: Rng) -> Array:
    X = rng.standard_normal((int(rng.integers(3, 20)), d))
    return np.corrcoef(X.T).reshape(d, d)


def low_rank(d: int, rng: Rng) -> Array:
    C = rng.standard_normal((int(rng.integers(1, 4)), d))
    return C.T @ C


def spiked(d: int, rng: Rng) -> Array:
    """One sparse direction in noise; on larger supports the noise wins."""
    v = np.zeros(d)
    support = rng.permutation(d)[: int(rng.integers(1, d + 1))]
    v[support] = rng.choice([-1.0, 1.0], size=len(support))
    noise = symmetric(rng.normal(scale=10.0 ** -rng.integers(0, 5), size=(d, d)))
    return np.outer(v, v) / len(support) + noise


def duplicates(d: int, rng: Rng) -> Array:
    index = rng.integers(0, max(1, d // 2), size=d)
    return gaussian(d, rng)[np.ix_(index, index)]


def unit_correlations(d: int, rng: Rng) -> Array:
    """Correlations of which many are 1 or −1."""
    signs = rng.choice([-1.0, 1.0], size=d)
    label = rng.integers(0, 3, size=d)
    same = label[:, None] == label
    A = np.where(same, 1.0, rng.uniform(-0.4, 0.4)) * np.outer(signs, signs)
    return symmetric(A)


def diagonal(d: int, rng: Rng) -> Array:
    return np.diag(rng.normal(size=d) * rng.integers(0, 2, size=d))


def constant(d: int, rng: Rng) -> Array:
    return np.full((d, d), float(rng.integers(-1, 2)))


def integer(d: int, rng: Rng) -> Array:
    """Many ties, between entries and between supports."""
    most = int(rng.integers(1, 4))
    return symmetric(rng.integers(-most, most + 1, (d, d)).astype(float))


def binary(d: int, rng: Rng) -> Array:
    A = symmetric((rng.random((d, d)) < rng.uniform(0.2, 0.8)).astype(float))
    np.fill_diagonal(A, float(rng.integers(0, 2)))
    return A


def few_entries(d: int, rng: Rng) -> Array:
    """Small integers and as many zeros: features that touch few others."""
    A = rng.integers(-2, 3, (d, d)) * (rng.random((d, d)) < 0.5)
    return symmetric(A.astype(float)) + np.diag(rng.integers(-2, 3, d).astype(float))


def constant_diagonal(d: int, rng: Rng) -> Array:
    A = symmetric(rng.normal(scale=rng.uniform(0.05, 1.0), size=(d, d)))
    np.fill_diagonal(A, rng.choice([0.0, 1.0, -1.0]))
    return A


def indefinite(d: int, rng: Rng) -> Array:
    return symmetric(rng.standard_normal((d, d)))


def negative(d: int, rng: Rng) -> Array:
    return -gaussian(d, rng)


def blocks(d: int, rng: Rng) -> Array:
    label = rng.integers(0, 3, size=d)
    return indefinite(d, rng) * (label[:, None] == label)


def equicorrelated(d: int, rng: Rng) -> Array:
    noise = 10.0 ** -rng.integers(1, 17) * symmetric(rng.standard_normal((d, d)))
    return np.eye(d) + rng.uniform(-0.5, 1.0) * (1 - np.eye(d)) + noise


def circulant(d: int, rng: Rng) -> Array:
    """Every support has as many equals as there are shifts."""
    row = rng.integers(-3, 4, size=d).astype(float)
    row = row + row[-np.arange(d)]
    return row[(np.arange(d)[:, None] - np.arange(d)) % d]


def difference(d: int, rng: Rng) -> Array:
    return gaussian(d, rng) - rng.choice([0.1, 1.0, 10.0]) * gaussian(d, rng)


def vanishing(d: int, rng: Rng) -> Array:
    """Entries of 1e-30 to 1e-160 beside 1: LAPACK's eigvalsh loses the norm here."""
    small = 10.0 ** -float(rng.choice([30, 157, 160]))
    A = symmetric(rng.standard_normal((d, d)))
    A = np.where(symmetric(rng.random((d, d))) < 0.6, small * A, A)
    A[0, 0] = 1.0
    return A if rng.random() < 0.5 else A + np.diag(np.abs(A).sum(axis=0))


def chain(d: int, rng: Rng) -> Array:
    """Features 0, 1, 2 win at 1, through a pair that misses 1/2 or not, by ulps."""
    A = np.zeros((d, d))
    if d >= 3:
        A[0, 1] = 0.5 * (1 + EPS * rng.integers(-40, 41))
        A[0, 2] = A[1, 2] = w = rng.uniform(0.6, 0.9)
        if d >= 5:
            A[0, 3] = A[1, 4] = np.sqrt(max(w**2 - 0.24, 0.0))
    return A + A.T


PSD = ("gaussian", "correlation", "duplicates", "unit_correlations", "low_rank")
MATRICES: dict[str, Callable[[int, Rng], Array]] = {
    family.__name__: family
    for family in (
        *(globals()[name] for name in PSD),
        diagonal,
        constant,
        integer,
        binary,
        few_entries,
        constant_diagonal,
        spiked,
        indefinite,
        negative,
        blocks,
        equicorrelated,
        circulant,
        difference,
        vanishing,
        chain,
    )
}


# -- samples: (d, rng) -> array of n × d -----------------------------------------------


def tall(d: int, rng: Rng) -> Array:
    n = d + int(rng.integers(2, 12))
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d))


def wide(d: int, rng: Rng) -> Array:
    n = int(rng.integers(2, max(3, d)))
    return rng.standard_normal((n, d)) * rng.gamma(2.0, size=d)


def counts(d: int, rng: Rng) -> Array:
    X = np.rint(2 * wide(d, rng)) * (rng.random((1, d)) < 0.8)
    X[0] += 1.0
    return X


def factor(d: int, rng: Rng) -> Array:
    n = int(rng.integers(3, 2 * d + 3))
    X = 0.1 * rng.standard_normal((n, d))
    return X + np.outer(rng.standard_normal(n), rng.standard_normal(d))


def copies(d: int, rng: Rng) -> Array:
    X = tall(d, rng)
    X[:, d // 2 :] = rng.choice([-1.0, 1.0, 2.0]) * X[:, : d - d // 2]
    return X


SAMPLES: dict[str, Callable[[int, Rng], Array]] = {
    family.__name__: family for family in (tall, wide, counts, factor, copies)
}


# -- changes ---------------------------------------------------------------------------


def as_it_is(A: Array, rng: Rng) -> Array:
    return A


def within_ulps(A: Array, rng: Rng) -> Array:
    """Move entries by a few ulps: ties that are none. What is zero stays zero."""
    steps = symmetric(rng.integers(-2, 3, size=A.shape)).astype(float)
    return A + steps * np.where(A == 0, 0.0, np.spacing(np.abs(A)))


def cannot_matter(A: Array, rng: Rng) -> Array:
    """Make a feature or two useless, and large: A_ii = −1e9, say."""
    A = A.copy()
    for i in rng.permutation(len(A))[: int(rng.integers(1, 3))]:
        A[i, i] = -(10.0 ** rng.integers(3, 15))
    return A


def tiny_rows(A: Array, rng: Rng) -> Array:
    size = np.where(rng.random(len(A)) < 0.4, 10.0 ** -rng.integers(3, 20), 1.0)
    return A * size * size[:, None]


def scaled(A: Array, rng: Rng) -> Array:
    return A * 2.0 ** int(rng.integers(-150, 151))


def shifted(A: Array, rng: Rng) -> Array:
    """Put the optimum near zero, or far from the differences between supports."""
    shift = rng.choice([-1.0, 1.0, 10.0, -1e3, 1e6])
    return A + shift * np.eye(len(A))


def standardised(X: Array, rng: Rng) -> Array:
    """Leave the samples: the covariance divides by the deviations."""
    return X


def far_mean(X: Array, rng: Rng) -> Array:
    return X + 10.0 ** rng.integers(1, 7)


def spread(X: Array, rng: Rng) -> Array:
    return X * 10.0 ** rng.integers(-6, 7, size=X.shape[1])


MATRIX_CHANGES = (as_it_is, within_ulps, tiny_rows, scaled, shifted, cannot_matter)
PSD_CHANGES = (as_it_is, tiny_rows, scaled)
SAMPLE_CHANGES = (as_it_is, standardised, far_mean, spread, scaled)
CHANGES = {change.__name__: change for change in (*MATRIX_CHANGES, *SAMPLE_CHANGES)}
#: what may be done to a problem without changing its answer; the last two to samples
VARIANTS = ("as it is", "permuted", "signs", "scaled", "sparse", "chunks")


@dataclass(frozen=True)
class Problem:
    """A problem by name: `Problem("low_rank", 5, 3)` is always the same one."""

    family: str
    d: int
    seed: int = 0
    change: str = "as_it_is"
    variant: str = "as it is"
    #: of the family "entries" the upper triangle, of "samples" all, by rows
    entries: tuple[float, ...] = ()

    @property
    def from_samples(self) -> bool:
        return self.family in SAMPLES or self.family == "samples"

    @property
    def standardised(self) -> bool:
        return self.change == "standardised"

    @property
    def psd(self) -> bool:
        """Tell whether the exact matrix is semidefinite, up to rounding."""
        changed = self.change in {change.__name__ for change in PSD_CHANGES}
        return self.from_samples or (self.family in PSD and changed)

    @property
    def factor(self) -> float:
        """Return by how much the variant multiplies the matrix."""
        if self.variant != "scaled" or self.standardised:
            return 1.0
        return 2.0 ** (2 * (self.seed % 19 - 9))

    @cached_property
    def order(self) -> Array:
        """Return the feature of the problem as it is for each feature of this one."""
        if self.variant != "permuted":
            return np.arange(self.d)
        return np.random.default_rng([self.seed, 2]).permutation(self.d)

    @cached_property
    def given(self) -> Array:
        """Return the float64 matrix, or the samples."""
        rng = np.random.default_rng([self.seed, self.d])
        change = CHANGES[self.change]
        if self.family == "entries":
            A = np.zeros((self.d, self.d))
            A[np.triu_indices(self.d)] = self.entries
            array = symmetric(A)
        elif self.family == "samples":
            array = np.reshape(self.entries, (-1, self.d))
        elif self.from_samples:
            array = change(SAMPLES[self.family](self.d, rng), rng)
        else:
            array = symmetric(change(MATRICES[self.family](self.d, rng), rng))
        array = array[:, self.order] if self.from_samples else array[self.order]
        array = array if self.from_samples else array[:, self.order]
        signs = np.ones(self.d)
        if self.variant == "signs":
            signs = np.random.default_rng([self.seed, 3]).choice([-1.0, 1.0], self.d)
        array = array * signs if self.from_samples else array * np.outer(signs, signs)
        factor = np.sqrt(self.factor) if self.from_samples else self.factor
        return np.ascontiguousarray(array * factor)

    @cached_property
    def fractions(self) -> Array:
        """Return the exact matrix, d × d fractions; of correlations up to 2⁻⁶⁰."""
        if not self.from_samples:
            return to_fractions(self.given)
        A = exact_covariance(self.given)
        if not self.standardised:
            return A
        size = np.sqrt(to_longdouble(np.diagonal(A)))
        size[size == 0] = 1
        return to_fractions(to_longdouble(A) / np.outer(size, size))

    @cached_property
    def exact(self) -> Array:
        """Return the exact matrix in long doubles."""
        return to_longdouble(self.fractions)

    def covariance(self, Covariance: Any) -> Any:
        """Return the problem as the package's `Covariance`."""
        if not self.from_samples:
            return Covariance.from_matrix(self.given)
        X, options = self.given, {"scale": self.standardised, "constant": "ignore"}
        if self.variant == "chunks":
            half = max(1, len(X) // 2)
            return Covariance.from_chunks([X[:half], X[half:]], **options)
        X = sp.csr_array(X) if self.variant == "sparse" else X
        return Covariance.from_data(X, **options)

    def varied(self, variant: str) -> Problem:
        return replace(self, variant=variant)


def matrix(A: Any) -> Problem:
    """Return the problem of a matrix."""
    A = np.asarray(A, dtype=float)
    entries = tuple(A[np.triu_indices(len(A))].tolist())
    return Problem("entries", len(A), entries=entries)


def samples(X: Array, scale: bool = False) -> Problem:
    """Return the problem of samples."""
    change = "standardised" if scale else "as_it_is"
    entries = tuple(X.ravel().tolist())
    return Problem("samples", X.shape[1], change=change, entries=entries)


def to_fractions(array: Array) -> Array:
    """Return exact fractions of floats or long doubles."""
    pairs = [Fraction(*value.as_integer_ratio()) for value in array.ravel()]
    return np.array(pairs, dtype=object).reshape(array.shape)


def to_longdouble(array: Array) -> Array:
    """Return long doubles within 2⁻⁶² of fractions, relative to each."""
    largest = max(map(abs, array.ravel()), default=0)
    if 0 < largest < Fraction(1, 2**400):  # halves of floats would lose digits
        return to_longdouble(array * 2**1000) * np.ldexp(np.longdouble(1), -1000)
    high = array.astype(np.float64)
    low = (array - to_fractions(high)).astype(np.float64)
    return high.astype(np.longdouble) + low.astype(np.longdouble)


def exact_covariance(X: Array) -> Array:
    """Return the covariance of samples in fractions."""
    F = to_fractions(X)
    unit = max(value.denominator for value in F.ravel())
    whole = np.array([int(value * unit) for value in F.ravel()], dtype=object)
    whole = whole.reshape(F.shape)
    n, total = len(X), whole.sum(axis=0)
    moments = n * (whole.T @ whole) - np.outer(total, total)
    divisor = n * (n - 1) * unit**2
    return np.array([Fraction(m, divisor) for m in moments.ravel()]).reshape(
        moments.shape
    )


# -- what Hypothesis draws -------------------------------------------------------------


@st.composite
def problems(draw: Any, largest: int = 7, psd: bool = False) -> Problem:
    """Draw a problem of 2 to `largest` features."""
    d = draw(st.integers(2, largest))
    names = [*(PSD if psd else MATRICES), *SAMPLES, *([] if psd else ["entries"])]
    family = draw(st.sampled_from(names))
    if family == "entries":
        size = d * (d + 1) // 2
        values = draw(st.lists(st.sampled_from(VALUES), min_size=size, max_size=size))
        return Problem(family, d, entries=tuple(values))
    changes = PSD_CHANGES if psd else MATRIX_CHANGES
    changes = SAMPLE_CHANGES if family in SAMPLES else changes
    if family == "vanishing":
        changes = (as_it_is, within_ulps, shifted)
    change = draw(st.sampled_from([change.__name__ for change in changes]))
    return Problem(family, d, draw(st.integers(0, 2**16)), change)


@st.composite
def rules_for(draw: Any, d: int, k: int, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Draw constraints of some kinds that at least one set of k features keeps."""
    order = draw(st.permutations(range(d)))
    rules: dict[str, Any] = {}
    if "include" in kinds:
        rules["include"] = sorted(order[: draw(st.integers(1, k))])
    if "exclude" in kinds:
        most = d - k
        taken = len(rules.get("include", ()))
        rules["exclude"] = sorted(order[taken:][: draw(st.integers(0, most))])
    if "groups" in kinds:
        rules["groups"] = [draw(st.integers(0, 2)) for _ in range(d)]
        rules["max_per_group"] = draw(st.integers(1, k))
    if "overlap" in kinds:
        size = draw(st.integers(1, d))
        rules["overlap_with"] = sorted(order[:size])
        rules["min_overlap"] = draw(st.integers(0, min(size, k)))
    if "nonnegative" in kinds:
        rules["nonnegative"] = True
    return rules


def altered(evidence: Any, pick: int) -> Any:
    """Return the evidence with one number of it changed."""
    leaves: list[tuple[Any, ...]] = []

    def collect(value: Any, path: tuple[Any, ...]) -> None:
        if is_dataclass(value):
            for item in fields(value):
                collect(getattr(value, item.name), (*path, item.name))
        elif isinstance(value, np.ndarray):
            leaves.extend((*path, index) for index in range(value.size))
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                collect(item, (*path, index))
        elif isinstance(value, (int, float, np.number)):
            leaves.append(path)

    def changed(value: Any, path: tuple[Any, ...]) -> Any:
        if not path:
            steps = (value - 1, value + 1, value * 0.999, -value, value * (1 - 1e-9))
            return type(value)(steps[pick // len(leaves) % len(steps)])
        if is_dataclass(value):
            inner = changed(getattr(value, path[0]), path[1:])
            return replace(value, **{path[0]: inner})
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.flat[path[0]] = changed(copy.flat[path[0]], ())
            return copy
        items = list(value)
        items[path[0]] = changed(items[path[0]], path[1:])
        return type(value)(items)

    collect(evidence, ())
    return changed(evidence, leaves[pick % len(leaves)]) if leaves else evidence
