"""What regression on scores leaves: against exact arithmetic, entry by entry."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca import Covariance
from blockspca.covariance.derived import ResidualDataSource, masked, restricted
from blockspca.covariance.formed import form
from blockspca.covariance.residual import regressed, residual
from blockspca.covariance.sources import MomentSource

Exact = list[list[Fraction]]


def exact(values: np.ndarray) -> Exact:
    return [[Fraction(float(value)) for value in row] for row in values]


def product(A: Exact, B: Exact) -> Exact:
    columns = list(zip(*B, strict=True))
    return [
        [sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns]
        for row in A
    ]


def exact_covariance(X: np.ndarray) -> Exact:
    rows = exact(X)
    means = [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
    centred = [
        [value - mean for value, mean in zip(row, means, strict=True)] for row in rows
    ]
    moments = product([list(c) for c in zip(*centred, strict=True)], centred)
    return [[value / (len(rows) - 1) for value in row] for row in moments]


def exact_residual(A: Exact, V: np.ndarray) -> Exact:
    """Eliminate one score after the other; a score that is left with 0 is skipped."""
    left = [row[:] for row in A]
    for v in V:
        weights = [[Fraction(float(value))] for value in v]
        image = product(left, weights)
        pivot = product([[row[0] for row in weights]], image)[0][0]
        if pivot == 0:
            continue
        left = [
            [left[i][j] - image[i][0] * image[j][0] / pivot for j in range(len(left))]
            for i in range(len(left))
        ]
    return left


def largest_error(view: Covariance, expected: Exact) -> float:
    computed = exact(view.submatrix(slice(None)))
    d = len(expected)
    pairs = [(i, j) for i in range(d) for j in range(d)]
    errors = [abs(computed[i][j] - expected[i][j]) for i, j in pairs]
    diagonal = view.diagonal()
    errors += [abs(Fraction(float(diagonal[i])) - expected[i][i]) for i in range(d)]
    return float(max(errors))


def sources(X: np.ndarray) -> dict[str, tuple[Covariance, Exact]]:
    dask = pytest.importorskip("dask.array")
    A = np.cov(X.T)
    of_data, of_matrix = exact_covariance(X), exact(A)
    return {
        "dense": (Covariance.from_data(X), of_data),
        "formed": (Covariance.from_data(X).formed(), of_data),
        "sparse": (Covariance.from_data(sp.csr_array(X)), of_data),
        "chunks": (Covariance.from_chunks([X[:4], X[4:]]), of_data),
        "dask": (Covariance.from_data(dask.from_array(X, chunks=(4, 3))), of_data),
        "matrix": (Covariance.from_matrix(A), of_matrix),
        "sparse matrix": (Covariance.from_matrix(sp.csr_array(A)), of_matrix),
    }


def directions(kind: str, rng: np.random.Generator, d: int) -> np.ndarray:
    """Three sparse unit vectors; near to dependent ones where that is asked for."""
    V = np.zeros((3, d))
    for row in V:
        row[rng.permutation(d)[:3]] = rng.normal(size=3)
    if kind.startswith("close"):
        V[2] = V[0] + float(kind.split()[1]) * V[2]
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["apart", "close 1e-2", "close 1e-4", "close 3e-5"])
@pytest.mark.parametrize("data", ["normal", "large means", "unequal", "one factor"])
def test_entries_are_within_their_error(kind, data):
    rng = np.random.default_rng(len(kind) * 7 + len(data))
    X = rng.normal(size=(9, 7))
    if data == "large means":
        X += 1e5
    elif data == "unequal":
        X *= 10.0 ** np.linspace(-4, 4, 7)
    elif data == "one factor":
        X = 1e-3 * X + rng.normal(size=(9, 1)) * np.linspace(1, 2, 7)
    V = directions(kind, rng, 7)
    for name, (cov, A) in sources(X).items():
        found = regressed(cov, V)
        expected = exact_residual(A, V[list(found.kept)])
        view = residual(cov, V)
        error = largest_error(view, expected)
        assert error <= view.entry_error, (name, found.kept)
        if kind == "apart" and data == "normal":
            assert found.kept == (0, 1, 2)
            assert view.entry_error < 1e-10
        assert view.known_psd == cov.known_psd
        scale = float(max(A[i][i] for i in range(7)))
        x = rng.normal(size=7)
        direct = np.array(expected, dtype=float) @ x
        np.testing.assert_allclose(view.matvec(x), direct, atol=1e-5 * scale)
        # Views of views keep the error of what they are views of.
        keep, cut = np.array([0, 2, 3, 6]), np.array([1, 4, 5])
        part = [[expected[i][j] for j in keep] for i in keep]
        assert largest_error(restricted(view, keep), part) <= (
            restricted(view, keep).entry_error
        )
        assert restricted(view, keep).known_psd == cov.known_psd
        apart = masked(view, cut)
        block = apart.submatrix(keep)
        errors = np.abs(block - np.array(part, dtype=float))
        assert errors.max() <= apart.entry_error * (1 + 1e-12)


def test_the_error_grows_with_dependence_and_not_beyond():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9, 7))
    V = directions("apart", rng, 7)
    for cov in (Covariance.from_data(X), Covariance.from_matrix(np.cov(X.T))):
        errors = []
        for gap in (1.0, 1e-2, 1e-4):
            near = V.copy()
            near[2] = V[0] + gap * V[2]
            errors.append(residual(cov, near).entry_error)
        assert errors[0] < errors[1] < errors[2] < 1e-5


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-9, 1e-7, 1e-5])
def test_scores_that_depend_on_others_are_left_out(gap):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 7))
    V = directions("apart", rng, 7)
    V[2] = V[0] - V[1] + gap * V[2]
    for name, (cov, A) in sources(X).items():
        found = regressed(cov, V)
        view = residual(cov, V)
        assert found.kept in ((0, 1), (0, 1, 2)), name
        if gap < 1e-6:
            assert found.kept == (0, 1), name
            assert "1 that depend(s) on them left out" in repr(view)
        expected = exact_residual(A, V[list(found.kept)])
        assert largest_error(view, expected) <= view.entry_error, name


def test_components_without_variance_are_left_out():
    X = np.random.default_rng(0).normal(size=(9, 5))
    X[:, 2] = 4.0
    V = np.eye(5)[[2, 0]]
    for cov in (
        Covariance.from_data(X),
        Covariance.from_matrix(np.cov(X.T)),
        Covariance.from_data(sp.csr_array(X)),
    ):
        assert regressed(cov, V).kept == (1,)
        assert regressed(cov, V[:1]).kept == ()
        np.testing.assert_array_equal(
            residual(cov, V[:1]).submatrix(slice(None)), cov.submatrix(slice(None))
        )


def test_more_scores_than_samples():
    X = np.random.default_rng(1).normal(size=(4, 8))
    cov = Covariance.from_data(X)
    V = np.eye(8)[:6]
    assert len(regressed(cov, V).kept) == 3  # centring takes one
    view = residual(cov, V)
    assert float(np.abs(view.submatrix(slice(None))).max()) <= view.entry_error


def test_an_indefinite_matrix_loses_only_what_varies():
    A = np.diag([3.0, -1.0, 2.0])
    A[0, 2] = A[2, 0] = 1.0
    cov = Covariance.from_matrix(A)
    V = np.eye(3)[[1, 0]]
    assert regressed(cov, V).kept == (1,)
    view = residual(cov, V)
    assert largest_error(view, exact_residual(exact(A), V[1:])) <= view.entry_error
    assert not view.known_psd


def test_a_residual_of_data_that_is_formed_states_the_error_of_its_columns():
    """`form` asks how exact sums of blocks are; the columns are no more exact."""
    X = np.random.default_rng(0).normal(size=(60, 8))
    cov = Covariance.from_data(X)
    V = np.zeros((1, 8))
    V[0, :3] = 3**-0.5
    left = residual(cov, V)._source
    assert isinstance(left, ResidualDataSource)
    left.column_errors[2] = 0.1
    assert form(left).entry_error() >= 0.1 * np.sqrt(left.diagonal().max())


def test_small_variances_keep_their_digits_beside_large_ones() -> None:
    """Also if A was formed: its entries err by the largest variance of all."""
    sizes = np.array([1e4, 1e3, 10.0, 1.0, 1.0, 1.0])
    X = np.random.default_rng(0).normal(size=(60, 6)) * sizes
    cov = Covariance.from_data(X).formed()
    assert cov.in_memory
    V = np.eye(6)[:3]
    view = residual(cov, V)
    assert view.in_memory
    assert largest_error(view, exact_residual(exact_covariance(X), V)) < 1e-11
    assert view.entry_error < 1e-8
    assert cov.entry_error > 1e-7
    # Data of one size are left as they are formed, and what is derived has no data.
    for other in (Covariance.from_data(X / sizes).formed(), masked(cov, [4])):
        assert regressed(other, V).basis is None
    assert regressed(cov, V).basis is not None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_score_that_is_nothing_but_rounding_is_the_one_left_out(order):
    """It is uncorrelated with the others, and its pivot as large as any."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(1, 6))
        other = rng.normal(size=6)
        other -= factor[0] * (factor @ other) / (factor @ factor.T)[0]
        V = np.array([factor[0] / np.linalg.norm(factor), other])[list(order)]
        V[order.index(1)] /= np.linalg.norm(other)
        X = np.vstack([factor, -factor])
        for cov in (Covariance.from_matrix(factor.T @ factor), Covariance.from_data(X)):
            assert regressed(cov, V).kept == (order.index(0),), seed
            assert regressed(cov, V).explained == pytest.approx(cov.diagonal().sum())


@pytest.mark.parametrize("n", [256, 257, 513])  # one block of samples, and more
@pytest.mark.parametrize(
    "exponents", [(140, 132, 126, 120), (-100, -105, -110, -120), (8, 0, 0, -6)]
)
@pytest.mark.parametrize("kind", ["nothing left", "large means", "an ulp apart"])
def test_columns_of_formed_data_are_exact_to_within_their_error(n, exponents, kind):
    sizes = 10.0 ** np.array(exponents)
    X = np.random.default_rng(n).normal(size=(n, 4)) * sizes
    if kind == "nothing left":
        X[:, 1] = X[:, 0] * (1 + 2.0**-52) + X[:, 1] * 1e-7
    elif kind == "large means":
        X += 1e4 * sizes
    else:
        X[:, 2] = X[:, 3] * (sizes[2] / sizes[3])
        X[0, 2] = np.nextafter(X[0, 2], np.inf)
    cov = Covariance.from_data(X).formed()
    V = np.array([[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]])
    kept = regressed(cov, V)
    assert kept.basis is not None
    view = residual(cov, V)
    expected = exact_residual(exact_covariance(X), V[list(kept.kept)])
    assert largest_error(view, expected) <= view.entry_error


def test_a_residual_by_blocks_of_samples_makes_no_copy_of_the_data() -> None:
    """Several blocks, each entry within its error; what knows the data is kept."""
    sizes = np.array([1e5, 1e3, 1.0, 1.0])
    X = np.random.default_rng(1).normal(size=(600, 4)) * sizes
    cov = Covariance.from_data(X).formed()
    V = np.eye(4)[:1]
    view = residual(cov, V)
    source = view._source
    assert isinstance(source, MomentSource)
    assert source.computed_from is cov._source.computed_from
    expected = exact_residual(exact_covariance(X), V)
    assert largest_error(view, expected) <= view.entry_error < cov.entry_error
