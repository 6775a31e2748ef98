"""Several components: each proved for its own problem, variance counted once."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import blockspca as bs
from blockspca.components.joint import joint_claim
from blockspca.components.scheme import NoComponent
from blockspca.components.schemes import scheme_name
from blockspca.components.solve import interrupted_jointly
from component_problems import SCHEMES, ids, overlapping_factors
from strategies import problems


def is_disjoint(scheme: bs.components.Scheme) -> bool:
    return isinstance(scheme, bs.DisjointSupports) or getattr(scheme, "disjoint", False)


def top_eigenvalues(A: np.ndarray, m: int) -> float:
    return float(np.sort(np.linalg.eigvalsh(A))[-m:].sum())


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return overlapping_factors()


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
@pytest.mark.parametrize("kind", ["dense", "sparse", "matrix", "sparse matrix"])
def test_every_component_is_proved_and_can_be_verified(X, scheme, kind):
    A = np.cov(X.T)
    cov = {
        "dense": lambda: bs.Covariance.from_data(X),
        "sparse": lambda: bs.Covariance.from_data(sp.csr_array(X)),
        "matrix": lambda: bs.Covariance.from_matrix(A),
        "sparse matrix": lambda: bs.Covariance.from_matrix(sp.csr_array(A)),
    }[kind]()
    found = bs.solve_components(cov, k=[5, 4, 3], n_components=3, scheme=scheme)
    assert len(found) == 3
    for j, (result, check) in enumerate(
        zip(found.results, found.verify(cov), strict=True)
    ):
        assert check.complete
        assert result.n_features == 30
        assert np.array_equal(result.support, np.flatnonzero(result.x))
        assert len(result.support) <= (5, 4, 3)[j]
        assert np.linalg.norm(result.x) == pytest.approx(1)
        assert result.objective <= result.upper_bound
        if not isinstance(scheme, bs.Orthogonalised):
            assert result.status is bs.Status.OPTIMAL
        # The claim is about the problem that `problem` returns.
        problem = found.problem(j, cov).submatrix(slice(None))
        assert result.x @ problem @ result.x == pytest.approx(result.objective)
        np.testing.assert_allclose(problem, problem.T, rtol=1e-13)
    direct = np.einsum("jd,de,je->j", found.components, A, found.components)
    np.testing.assert_allclose(found.explained_variance, direct)
    total = found.adjusted_explained_variance.sum()
    assert total <= found.explained_variance.sum() + 1e-9
    assert total <= top_eigenvalues(A, 3) + 1e-9
    assert total <= found.joint_upper_bound <= top_eigenvalues(A, 3) * (1 + 1e-9)


@pytest.mark.parametrize("scheme", SCHEMES[:3] + SCHEMES[4:], ids=ids[:3] + ids[4:])
@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_brute_force(scheme, seed, brute_force):
    A = np.cov(np.random.default_rng(seed).normal(size=(15, 8)).T)
    found = bs.solve_components(A, k=3, n_components=2, scheme=scheme)
    assert found[0].objective == pytest.approx(brute_force(A, 3))
    deflated = found.problem(1, A).submatrix(slice(None))
    assert found[1].upper_bound == pytest.approx(brute_force(deflated, 3), rel=1e-6)


def test_disjoint_supports_are_disjoint(X):
    found = bs.solve_components(bs.Covariance.from_data(X), 5, 6, scheme="disjoint")
    assert len(np.unique(np.concatenate(found.supports))) == 30
    np.testing.assert_allclose(
        found.components @ found.components.T, np.eye(6), atol=1e-14
    )
    # On features of its own, a component's objective is a variance of the data.
    np.testing.assert_allclose(
        found.explained_variance, [result.objective for result in found.results]
    )


def test_a_component_takes_the_features_that_are_left():
    found = bs.solve_components(
        np.diag([5.0, 4.0, 3.0, 2.0, 1.0]), 2, 3, scheme="disjoint"
    )
    assert [support.tolist() for support in found.supports] == [[0], [1], [2]]
    found = bs.solve_components(np.ones((3, 3)), 2, 2, scheme="disjoint")
    assert [len(support) for support in found.supports] == [2, 1]
    assert found[1].k == 1


def test_orthogonalised_components_are_orthogonal(X):
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 6, 4, scheme=bs.Orthogonalised())
    np.testing.assert_allclose(
        found.components @ found.components.T, np.eye(4), atol=1e-13
    )
    assert any(
        len(np.intersect1d(a, b))
        for a in found.supports
        for b in found.supports
        if a is not b
    )
    assert (found.gaps < 1e-3).all()


def test_the_orthogonal_optimum_by_brute_force():
    """The bound holds for every orthogonal sparse vector, and nearly is attained."""
    from itertools import combinations

    from blockspca.components.conditions import best_orthogonal

    for seed in range(4):
        A = np.cov(np.random.default_rng(seed).normal(size=(12, 7)).T)
        found = bs.solve_components(A, 3, 2, scheme=bs.Orthogonalised())
        first = found.components[:1].T
        supports = [list(s) for s in combinations(range(7), 3)]
        best = max(best_orthogonal(A[np.ix_(s, s)], first[s])[1] for s in supports)
        assert found[1].objective == pytest.approx(best)
        assert best <= found[1].upper_bound * (1 + 1e-9)
        assert found[1].upper_bound == pytest.approx(best, rel=1e-3)


def test_orthogonal_components_that_do_not_exist():
    A = np.cov(np.random.default_rng(1).normal(size=(12, 4)).T)
    with pytest.raises(ValueError, match=r"k = 3 .*orthogonal.*earlier.*larger k"):
        bs.solve_components(A, 3, 4, scheme=bs.Orthogonalised())


@pytest.mark.parametrize("scheme", SCHEMES[1:5], ids=ids[1:5])
def test_all_features_give_ordinary_pca(X, scheme):
    A = np.cov(X[:, :10].T)
    found = bs.solve_components(A, k=10, n_components=4, scheme=scheme)
    expected = np.sort(np.linalg.eigvalsh(A))[::-1][:4]
    np.testing.assert_allclose(found.adjusted_explained_variance, expected)
    np.testing.assert_allclose(found.explained_variance_ratio, expected / np.trace(A))
    assert found.joint_gap < 1e-9


def test_adjusted_variance_is_that_of_the_qr_factorization(X):
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 5, 4, scheme=bs.ProjectionDeflation())
    scores = (X - X.mean(axis=0)) @ found.components.T / np.sqrt(len(X) - 1)
    R = np.linalg.qr(scores, mode="r")
    np.testing.assert_allclose(found.adjusted_explained_variance, np.diag(R) ** 2)


@pytest.mark.parametrize("disjoint", [False, True])
def test_a_residual_component_explains_what_is_reported(X, disjoint):
    """Its objective is its adjusted variance, and no other component adds more."""
    cov = bs.Covariance.from_data(X)
    scheme = bs.ResidualDeflation(disjoint=disjoint)
    found = bs.solve_components(cov, 5, 4, scheme=scheme)
    objectives = [result.objective for result in found.results]
    np.testing.assert_allclose(objectives, found.adjusted_explained_variance)
    assert (np.diff(found.upper_bounds) <= 1e-8 * found.upper_bounds[0]).all()
    overlap = len(np.concatenate(found.supports)) - len(
        np.unique(np.concatenate(found.supports))
    )
    assert (overlap == 0) is disjoint
    others = [s for s in SCHEMES[:4] if not disjoint or is_disjoint(s)]
    for other in others:
        second = bs.solve_components(cov, 5, 2, scheme=other)
        assert second.adjusted_explained_variance[1] <= objectives[1] * (1 + 1e-9)


def test_components_that_say_the_same_are_told_apart():
    """Two factors, one in many features: the second component is the other one."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(60, 12))
    X[:, :8] += 3 * rng.normal(size=(60, 1))
    X[:, 8:] += 2 * rng.normal(size=(60, 1))
    repeated = bs.solve_components(X.T @ X, 4, 2, scheme="disjoint")
    told_apart = bs.solve_components(X.T @ X, 4, 2, scheme=bs.ResidualDeflation())
    assert repeated.supports[1].max() < 8 <= told_apart.supports[1].min()
    assert told_apart.r2 > 0.98 > 0.92 > repeated.r2


def test_r2_is_that_of_a_regression(X):
    cov = bs.Covariance.from_data(X)
    centred = X - X.mean(axis=0)
    for scheme in SCHEMES:
        found = bs.solve_components(cov, 5, 3, scheme=scheme)
        scores = centred @ found.components.T
        rest = centred - scores @ np.linalg.lstsq(scores, centred, rcond=None)[0]
        expected = 1 - (rest**2).sum() / (centred**2).sum()
        assert found.r2 == pytest.approx(expected)
        assert found.r2 <= top_eigenvalues(np.cov(X.T), 3) / found.total_variance
        assert f"{found.r2:.2%}" in str(found)


def test_nothing_is_left_after_as_many_components_as_there_are_factors():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 8))
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 3, 4, scheme=bs.ResidualDeflation())
    assert found.r2 == pytest.approx(1)
    slack = 1e-10 * found.total_variance
    assert (found.upper_bounds[2:] <= slack).all()
    # Of the others nothing is left but rounding, which is another each time.
    assert all(check.complete for check in found.verify(cov)[:2])


@settings(max_examples=30, deadline=None)
@example((np.array([[-0.7, -0.4], [-0.4, -0.6]]), 2), bs.ResidualDeflation())
@given(problems(max_features=7), st.sampled_from(SCHEMES[:2] + SCHEMES[3:]))
def test_any_symmetric_matrix(problem, scheme):
    A, k = problem
    m = max(1, len(A) // k) if is_disjoint(scheme) else 2
    m = min(m, 3, len(A))
    try:
        found = bs.solve_components(A, k, m, scheme=scheme)
    except NoComponent:  # the first one uses all features, and leaves no variance
        assert bs.solve(A, k).objective <= 0
        assert k == len(A)
        return
    total = found.adjusted_explained_variance.sum()
    slack = 1e-8 * np.abs(A).max()
    assert total <= found.joint_upper_bound + slack
    assert (found.adjusted_explained_variance <= found.explained_variance + slack).all()
    if np.linalg.eigvalsh(A)[0] >= 0:
        assert total <= top_eigenvalues(A, m) + slack
    assert (found.upper_bounds >= [r.objective - slack for r in found.results]).all()


def test_the_joint_bound_for_growing_sparsities():
    """k_j above k_1 has no certificate; U(k_1) k_j / k_1 bounds it."""
    from blockspca.components.variance import _single_bound

    for seed in range(5):
        A = np.cov(overlapping_factors(seed=seed)[:, :10].T)
        for k_first in (1, 2, 4):
            first = bs.solve(A, k_first)
            for k in range(1, 8):
                bound = _single_bound(first, k, shift=0.0)
                assert bs.solve(A, k).objective <= bound * (1 + 1e-9)
    assert _single_bound(first, 7, shift=None) == np.inf


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
def test_no_component_is_a_constant(scheme):
    X = np.random.default_rng(0).normal(size=(30, 5))
    X[:, 1] = X[:, 3] = 7.0
    cov = bs.Covariance.from_data(X)
    with pytest.raises(ValueError, match=r"n_components = 4 is more than the 3 .*vary"):
        bs.solve_components(cov, 1, 4, scheme=scheme)
    found = bs.solve_components(cov, 1, 3, scheme=scheme)
    assert not found.components[:, [1, 3]].any()
    if is_disjoint(scheme):
        with pytest.raises(ValueError, match=r"may use all 3 feature\(s\) that vary"):
            bs.solve_components(cov, 3, 2, scheme=scheme)


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
def test_a_certificate_names_its_problem(scheme):
    A = np.kron(np.eye(2), np.full((3, 3), 0.5)) + np.eye(6)  # the two blocks tie
    found = bs.solve_components(A, 3, 2, scheme=scheme)
    first, second = (result.certificate for result in found.results)
    assert (first.component, first.scheme) == (1, "")
    assert (second.component, second.scheme) == (2, scheme_name(scheme))
    again = bs.Certificate.from_json(second.to_json())
    assert again == second
    for claim in (found[1], second, again):
        with pytest.raises(ValueError, match=r"component 2 of .*Components.verify"):
            bs.verify(claim, A)
        assert bs.verify(claim, found.problem(1, A)).complete
    assert len(found.verify(A)) == 2


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
def test_data_is_never_made_into_a_matrix(scheme, monkeypatch):
    X = sp.random(50, 3000, density=0.05, random_state=0, format="csr")
    cov = bs.Covariance.from_data(X)
    sizes = []
    original = type(cov._source).submatrix

    def recorded(self, rows, columns):
        block = original(self, rows, columns)
        sizes.append(block.size)
        return block

    monkeypatch.setattr(type(cov._source), "submatrix", recorded)
    found = bs.solve_components(
        cov, 3, 2, scheme=scheme, threshold=0.05, limits=bs.Limits(gap=0.99)
    )
    assert len(found) == 2
    assert max(sizes) < 3000**2 / 2


def test_results_keep_names_and_blocks(X):
    names = [f"gene {i}" for i in range(30)]
    cov = bs.Covariance.from_data(X, feature_names=names)
    found = bs.solve_components(cov, 4, 2, scheme="disjoint")
    assert found[1].features[0].startswith("gene")
    assert (found[1].blocks.labels[found.supports[0]] == -1).all()
    rows = found.to_rows()
    assert [row["component"] for row in rows] == [1, 2]
    assert list(rows[1]["loadings"]) == found[1].features
    assert "together" in str(found)


def test_limits_are_shared(X):
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 5, 3, limits=bs.Limits(time=0.0))
    assert len(found) == 3
    assert bs.Status.OPTIMAL not in found.statuses
    found = bs.solve_components(cov, 5, 3, limits=bs.Limits(gap=0.5))
    assert (found.gaps <= 0.5).all()


def test_nodes_are_shared(X):
    found = bs.solve_components(
        bs.Covariance.from_data(X), 8, 3, limits=bs.Limits(nodes=3)
    )
    assert len(found) == 3
    assert bs.Status.NODE_LIMIT in found.statuses
    for result in found.results:
        assert result.objective <= result.upper_bound < np.inf


def test_an_interrupt_returns_what_is_known(X):
    seen = []

    def stop(event):
        seen.append(event)
        raise KeyboardInterrupt

    found = bs.solve_components(bs.Covariance.from_data(X), 5, 3, progress=stop)
    assert len(found) == 1
    assert found.statuses == (bs.Status.INTERRUPTED,)


def test_an_interrupt_of_a_joint_proof_leaves_it_to_be_asked_for_again(X, monkeypatch):
    cov = bs.Covariance.from_data(X)
    whole = bs.solve_components(cov, 5, 3, scheme="disjoint")
    found = bs.solve_components(cov, 5, 3, scheme="disjoint")
    with monkeypatch.context() as patch:
        patch.setattr("blockspca.components.joint.joint_entries", _stop)
        with pytest.raises(KeyboardInterrupt):
            _ = found.joint_upper_bound
        ended = interrupted_jointly(found)
    assert found.joint_upper_bound == whole.joint_upper_bound
    assert found.statuses == whole.statuses
    assert ended.statuses[-1] is bs.Status.INTERRUPTED
    assert ended.joint_proof is None
    assert ended.joint_upper_bound >= whole.joint_upper_bound
    ended.verify(cov)


@pytest.mark.parametrize("read", [lambda f: f.joint_gap, pickle.dumps, repr])
def test_the_joint_bound_is_computed_when_it_is_read_and_once(X, monkeypatch, read):
    """Of a fit of 2.3 s it took 0.85 s that nobody had asked for."""
    asked = []

    def spy(*arguments, **options):
        asked.append(arguments)
        return joint_claim(*arguments, **options)

    monkeypatch.setattr("blockspca.components.solve.joint_claim", spy)
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 5, 3, proof=True)
    model = bs.SparsePCA(3, k=5).fit(X)
    assert not asked
    read(found)
    assert len(asked) == 1
    assert found.joint_upper_bound >= found.joint_total
    assert found.joint_bound_name
    again = pickle.loads(pickle.dumps(found))
    assert again.joint_upper_bound == found.joint_upper_bound
    assert len(asked) == 1
    assert model.joint_gap_ == pytest.approx(found.joint_gap)
    assert len(asked) == 2


def _stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "scheme", "sweeps", "length"),
    [
        ("orthogonal._best_under", "orthogonal", 0, 1),
        ("orthogonal._best_under", "uncorrelated", 0, 1),
        ("sweep_goal.begun_together", "orthogonal", 1, 3),
        ("sweep_goal.begun_together", "residual", 1, 3),
    ],
)
def test_an_interrupt_between_solves_keeps_the_components(
    X, monkeypatch, place, scheme, sweeps, length
):
    """It went through to the caller, who had none of them."""
    cov = bs.Covariance.from_data(X)
    whole = bs.solve_components(cov, 5, 3, scheme=scheme)
    monkeypatch.setattr(f"blockspca.components.{place}", _stop)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = bs.solve_components(cov, 5, 3, scheme=scheme, sweeps=sweeps)
    assert len(found) == length
    assert found.statuses[-1] is bs.Status.INTERRUPTED
    np.testing.assert_array_equal(found.components, whole.components[:length])
    found.verify(cov)


@pytest.mark.parametrize(("scheme", "length"), [("orthogonal", 1), ("uncorrelated", 3)])
def test_an_interrupt_of_a_start_is_one_of_the_call(X, monkeypatch, scheme, length):
    """The solve of a start returned what it had, and the call went on for seconds."""
    from blockspca.components import in_turn as one_by_one

    solve = one_by_one.solve

    def stopped(*arguments, **options):
        found = solve(*arguments, **options)
        ended = not options["certify"]
        return replace(found, status=bs.Status.INTERRUPTED) if ended else found

    monkeypatch.setattr(one_by_one, "solve", stopped)
    with pytest.warns(UserWarning, match="was interrupted"):
        found = bs.solve_components(
            bs.Covariance.from_data(X), 5, 3, scheme=scheme, sweeps=1
        )
    assert len(found) == length
    assert found.statuses[-1] is bs.Status.INTERRUPTED


def test_an_interrupt_of_a_search_for_the_joint_bound_is_one_of_the_call(
    X, monkeypatch
):
    """The search returned what it had, and the next one began."""
    from blockspca.components import joint_split

    search = joint_split.entry_bound

    def stopped(*arguments, **options):
        return replace(search(*arguments, **options), interrupted=True)

    monkeypatch.setattr(joint_split, "entry_bound", stopped)
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 5, 3, scheme="disjoint", sweeps=1)
    with pytest.raises(KeyboardInterrupt):
        _ = found.joint_gap


def test_starts_that_are_no_list_are_refused_by_name():
    A = np.diag([3.0, 2.0, 1.0])
    for start in (3, "ab"):
        with pytest.raises(TypeError, match=r"start = .* one for each component"):
            bs.solve_components(A, 2, 2, start=start)


def test_names_of_a_frame_are_one_for_each_feature():
    found = bs.solve_components(np.diag([3.0, 2.0, 1.0]), 1, 2)
    assert list(found.to_frame(["a", "b", "c"]).index) == ["a", "b"]
    for names in (["a"], ["a", "b"], list("abcd")):
        with pytest.raises(ValueError, match=f"names has {len(names)} .* 3 features"):
            found.to_frame(names)


def test_repr_has_a_line_for_each_component(X):
    """It was pages long: every array of every result."""
    found = bs.solve_components(bs.Covariance.from_data(X), 5, 3)
    lines = repr(found).splitlines()
    assert lines[0].startswith("Components(3 by ResidualDeflation, joint_upper_bound=")
    assert lines[1:] == [
        f"  [{j}] {result!r}" for j, result in enumerate(found.results)
    ]
    again = pickle.loads(pickle.dumps(replace(found, r2=float("nan"))))
    assert "r2" not in repr(again)
    assert len(repr(again).splitlines()) == 4


def test_repetition_gives_the_same_answer(X):
    cov = bs.Covariance.from_data(X)
    for scheme in SCHEMES:
        first = bs.solve_components(cov, 3, 2, scheme=scheme)
        again = bs.solve_components(cov, 3, 2, scheme=scheme, n_jobs=2)
        np.testing.assert_array_equal(first.components, again.components)


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"n_components": 0}, ValueError, "n_components = 0"),
        ({"n_components": 1.5}, TypeError, "n_components = 1.5"),
        ({"n_components": 31, "k": 1}, ValueError, "31 is more than the 30"),
        ({"k": 31}, ValueError, "k = 31 is outside 1..30"),
        ({"k": [3]}, ValueError, r"k has 1 value\(s\) for n_components = 2"),
        ({"k": [3, 0]}, ValueError, r"k\[1\] = 0"),
        ({"k": "3"}, TypeError, "k = '3'"),
        (
            {"k": 30, "scheme": "disjoint"},
            ValueError,
            "all 30 feature.*scheme='projection'",
        ),
        ({"scheme": "disjont"}, ValueError, "scheme = 'disjont'"),
        ({"scheme": bs.DisjointSupports}, TypeError, r"pass an instance, Disj.*\(\)"),
        ({"solvr": None}, TypeError, "solvr"),
    ],
)
def test_bad_arguments(X, kwargs, error, words):
    arguments = {"k": 3, "n_components": 2, **kwargs}
    with pytest.raises(error, match=words):
        bs.solve_components(bs.Covariance.from_data(X), **arguments)


def test_bad_penalty():
    with pytest.raises(ValueError, match=r"penalty = 0\.0"):
        bs.Orthogonalised(penalty=0.0)


@pytest.mark.parametrize("seed", range(12))
def test_components_of_data_with_unequal_variances_verify(seed):
    """What rounding is allowed to a component is that of the features it is left."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 7)) * 10.0 ** rng.uniform(-1.5, 1, size=7)
    chunks = bs.Covariance.from_chunks([X[:2], X[2:]])
    for cov in (bs.Covariance.from_data(X), chunks):
        found = bs.solve_components(cov, 2, n_components=2)
        assert all(check.complete for check in found.verify(cov))


def test_a_search_for_orthogonal_components_ends_with_its_time():
    from blockspca.components import conditions
    from blockspca.limits import Deadline

    A = np.cov(np.random.default_rng(0).normal(size=(200, 30)).T)
    cov = bs.Covariance.from_matrix(A)
    basis = np.zeros((30, 1))
    basis[:3, 0] = 1 / np.sqrt(3)
    tried, best = [], conditions.best_orthogonal

    def counted(*arguments):
        tried.append(1)
        return best(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "best_orthogonal", counted)
        start = np.array([0, 1, 2, 5])
        found = conditions.ascend(cov, basis, 4, start, Deadline(0.0), thoroughly=True)
        in_no_time = len(tried)
        conditions.ascend(cov, basis, 4, start, Deadline(None), thoroughly=True)
    assert found is not None
    assert abs(basis[found.support, 0] @ found.loadings) < 1e-12
    assert in_no_time < 5 < len(tried)


def test_raw_data_of_unequal_variances_are_proved() -> None:
    """The variances of wines go from 0.015 to 99,167, and A is formed of them."""
    from sklearn.datasets import load_wine

    cov = bs.Covariance.from_data(load_wine().data)
    found = bs.solve_components(cov, 2, 4, scheme="residual")
    assert set(found.statuses[:3]) == {bs.Status.OPTIMAL}
    assert max(found.gaps) < 1e-8
    assert all(check.complete for check in found.verify(cov))


def test_features_of_sizes_far_apart_are_solved() -> None:
    """Standard deviations from 1e-49 to 1e50: the squares of some are no numbers."""
    sizes = 10.0 ** np.array([-17, 39, -13, 50, -49, -49])
    X = np.random.default_rng(0).normal(size=(6, 6)) * sizes
    X[:, 5] = X[:, 4] / 2
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 4, 2, scheme="residual")
    assert found.joint_total <= found.joint_upper_bound < np.inf
    assert all(check.complete for check in found.verify(cov))
