"""Pictures: each function draws on the axes it is given, and returns them."""

from __future__ import annotations

import numpy as np
import pytest

import blockspca as bs
from blockspca.plotting._layout import block_order, runs_of, select_features

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from blockspca import plotting  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 10))
X[:, :4] += 2 * rng.normal(size=(50, 1))
COV = bs.Covariance.from_data(X, feature_names=[f"${j}$ cost" for j in range(10)])


@pytest.fixture(scope="module")
def solved():
    events: list[bs.Event] = []
    return bs.solve(COV, 3, progress=events.append), events


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(solved, name, ax):
    result, events = solved
    return {
        "matrix": lambda: plotting.plot_matrix(COV, ax=ax),
        "largest": lambda: plotting.plot_largest_block(COV, result=result, ax=ax),
        "loadings": lambda: plotting.plot_loadings(result, ax=ax),
        "path": lambda: plotting.plot_sparsity_path(bs.solve_path(COV, 5), ax=ax),
        "band": lambda: plotting.plot_sparsity_path(
            bs.solve_path(COV, 5, limits=bs.Limits(gap=0.5)), ax=ax
        ),
        "scores": lambda: plotting.plot_scores(X[:, :2], color=X[:, 0] > 0, ax=ax),
        "one score": lambda: plotting.plot_scores(X[:, 0], ax=ax),
        "proof": lambda: plotting.plot_proof(events, ax=ax),
        "folds": lambda: plotting.plot_cross_validation(bs.cross_validate(X, 4), ax=ax),
        "permuted": lambda: plotting.plot_permutation_reference(
            bs.permutation_reference(X, 4, n_permutations=3), ax=ax
        ),
    }[name]()


@pytest.mark.parametrize(
    "name",
    [
        "matrix",
        "largest",
        "loadings",
        "path",
        "band",
        "scores",
        "one score",
        "proof",
        "folds",
        "permuted",
    ],
)
def test_the_axes_given_are_returned(solved, name):
    _, ax = plt.subplots()
    assert drawn(solved, name, ax) is ax
    assert ax.has_data()
    ax.figure.canvas.draw()
    fresh = drawn(solved, name, None)
    assert fresh is not ax
    assert fresh.has_data()


def test_blocks_has_four_panels(solved):
    result, _ = solved
    axes = plotting.plot_blocks(COV, result)
    assert len(axes) == 4
    axes[0].figure.canvas.draw()
    assert len(plotting.plot_blocks(COV, epsilon=0.5)) == 3
    with pytest.raises(ValueError, match="pass 4"):
        plotting.plot_blocks(COV, result, ax=plt.subplots(1, 2)[1])
    with pytest.raises(ValueError, match="epsilon"):
        plotting.plot_blocks(COV)


def test_blocks_of_a_large_matrix_show_the_component():
    A, _ = bs.datasets.noisy_blocks(n_blocks=10, block_size=10, rng=0)
    result = bs.solve(A, 3, threshold=0.5)
    axes = plotting.plot_blocks(A, result, max_features=20)
    assert "20 of 100" in axes[0].get_title()


def test_save_writes_whole_files(tmp_path):
    plotting.save(plotting.plot_matrix(COV), tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    with pytest.raises(OSError, match="must end with"):
        plotting.save(plotting.plot_matrix(COV), tmp_path / "a.doc")


def test_a_proof_is_needed_for_its_picture():
    with pytest.raises(ValueError, match="no proof"):
        plotting.plot_proof([])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def absent(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"blockspca\[plot\]"):
        plotting.plot_matrix(COV)


def test_every_block_is_one_run_at_every_threshold():
    A = rng.normal(size=(30, 30))
    path = bs.threshold_path(A + A.T)
    order = block_order(path)
    assert sorted(order) == list(range(30))
    for epsilon in [0.0, *path.distinct_thresholds()]:
        labels = path.labels(epsilon)[order]
        assert len(runs_of(labels)) == path.n_blocks(epsilon)


def test_selected_features_hold_those_asked_for():
    A = rng.normal(size=(30, 30))
    path = bs.threshold_path(A + A.T)
    chosen = select_features(path, 8, [3, 17])
    assert len(chosen) == 8
    assert {3, 17} <= set(chosen.tolist())
    assert set(path.edges[0].tolist()) <= set(chosen.tolist())
    assert select_features(path, 30).tolist() == list(range(30))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plotting.plot_loadings(bs.solve_path(COV, 2)), "pass a Result, such"),
        (lambda: plotting.plot_sparsity_path(bs.solve(COV, 2)), "pass a SparsityPath"),
        (lambda: plotting.plot_cross_validation(3), "pass a CrossValidation"),
        (lambda: plotting.plot_permutation_reference(3), "pass a PermutationRef"),
        (lambda: plotting.plot_scores(np.empty((3, 0))), r"shape \(3, 0\)"),
        (lambda: plotting.plot_scores("x"), "transform returns"),
        (lambda: plotting.plot_alternatives(3), "pass an Alternatives, which"),
        (lambda: plotting.plot_stability(3), "found is of type int; pass a Stability"),
        (lambda: plotting.plot_components(3), "found is of type int; pass a Compone"),
        (
            lambda: plotting.plot_scores(np.eye(3), components=(0, 3)),
            r"components = \(0, 3\) for scores of 3",
        ),
    ],
)
def test_what_cannot_be_drawn(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
