"""A set that dominates components found in turn: when it is taken, and what it says."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import blockspca as bs
from blockspca._kernels import loading
from blockspca._messages import gap_in_percent
from blockspca.cli.main import run
from blockspca.components import in_turn as one_by_one
from blockspca.components import prediction_search, undominated
from blockspca.components.scheme_names import IN_TURN, as_scheme
from blockspca.components.shown import proof_of
from blockspca.explore.state import State
from component_problems import overlapping_factors
from zoo import brute_force


def dominated_data() -> np.ndarray:
    """Data whose components in turn are dominated: a set has 5 % more R²."""
    rng = np.random.default_rng(38)
    factors = rng.normal(size=(40, 3))
    noise = 0.6 * rng.normal(size=(40, 14))
    return noise + factors @ rng.normal(size=(3, 14))


@pytest.fixture(scope="module")
def cov() -> bs.Covariance:
    return bs.Covariance.from_data(dominated_data())


def test_a_set_that_dominates_is_taken(cov):
    found = bs.solve_components(cov, 3, 2, scheme="auto")
    in_turn = bs.solve_components(cov, 3, 2, scheme="residual")
    assert found.r2 > 1.02 * in_turn.r2
    total = in_turn.adjusted_explained_variance.sum()
    assert found.adjusted_explained_variance.sum() >= total * (1 - 1e-12)
    assert all(1 <= len(support) <= 3 for support in found.supports)
    assert found.joint_upper_bound >= found.joint_total
    assert found.scheme == as_scheme("auto")
    # What was proved in turn is still there, and is what "residual" finds.
    kept = found.in_turn
    assert kept is not None
    assert kept.scheme == bs.ResidualDeflation()
    assert kept.statuses == (bs.Status.OPTIMAL, bs.Status.OPTIMAL)
    np.testing.assert_array_equal(kept.components, in_turn.components)
    assert kept.r2 == in_turn.r2
    assert f"predict {in_turn.r2:.2%} instead of {found.r2:.2%}" in str(found)
    assert "chosen together" in found._repr_html_()
    assert "chosen together" not in str(in_turn)


def test_what_is_claimed_of_it_holds(cov):
    found = bs.solve_components(cov, 3, 2, scheme="auto")
    for j, result in enumerate(found.results):
        A = found.problem(j, cov).submatrix(np.arange(14))
        optimum = brute_force(A, 3)
        assert result.objective <= optimum * (1 + 1e-12)
        assert result.upper_bound >= optimum * (1 - 1e-12)
        reached = result.objective >= optimum * (1 - 1e-9)
        assert (result.status is bs.Status.OPTIMAL) == reached
    again = pickle.loads(pickle.dumps(found))
    for components in (found, again, found.in_turn):
        assert all(check.complete for check in components.verify(cov))
    with pytest.raises(bs.VerificationError):
        replace(found, r2=found.r2 + 1e-6).verify(cov)


def test_the_joint_bound_of_components_in_turn_rests_on_their_own():
    """It was that of the other set, whose first component has another bound."""
    rng = np.random.default_rng(264)
    d, m, k = (int(rng.integers(*pair)) for pair in ((25, 60), (2, 4), (2, 6)))
    rng.choice([0.05, 0.1, 0.3])
    factors = rng.normal(size=(60, 6))
    A = np.cov((factors @ rng.normal(size=(6, d)) + rng.normal(size=(60, d))).T)
    scheme = bs.ResidualDeflation(unless_dominated=0.0)
    found = bs.solve_components(A, k, m, scheme=scheme, limits=bs.Limits(nodes=5))
    assert found.in_turn is not None
    assert found.in_turn.joint_upper_bound >= found.in_turn.joint_total
    found.in_turn.verify(A)
    found.verify(A)


def test_a_set_that_does_not_dominate_clearly_is_not_taken(cov):
    in_turn = bs.solve_components(cov, 3, 2, scheme="residual")
    scheme = bs.ResidualDeflation(unless_dominated=0.06)  # it has 5.2 % more
    found = bs.solve_components(cov, 3, 2, scheme=scheme)
    assert found.in_turn is None
    assert found.scheme == bs.ResidualDeflation()
    np.testing.assert_array_equal(found.components, in_turn.components)
    assert found[1].certificate.scheme == in_turn[1].certificate.scheme
    assert found.statuses == in_turn.statuses


@pytest.mark.parametrize(
    "options",
    [
        {"sweeps": 1},
        {"constraints": bs.Constraints(exclude=[0])},
    ],
    ids=["sweeps", "constraints"],
)
def test_where_no_other_set_is_looked_for(cov, options):
    in_turn = bs.solve_components(cov, 3, 2, scheme="residual", **options)
    found = bs.solve_components(cov, 3, 2, scheme="auto", **options)
    assert found.in_turn is None
    assert found.scheme == bs.ResidualDeflation()
    np.testing.assert_array_equal(found.components, in_turn.components)


def test_a_gap_changes_no_component(cov):
    """Who accepted a gap, as a warning advised, was given another set."""
    found = bs.solve_components(cov, 3, 2, scheme="auto")
    limits = bs.Limits(gap=1e-6)
    near = bs.solve_components(cov, 3, 2, scheme="auto", limits=limits)
    assert near.in_turn is not None
    np.testing.assert_array_equal(near.supports, found.supports)


def test_that_no_set_was_looked_for_is_said(cov):
    """Nothing was said where the time was up before the look."""
    with pytest.warns(UserWarning, match="No set that predicts more was looked for"):
        found = bs.solve_components(
            cov, 3, 2, scheme="auto", limits=bs.Limits(time=0.0)
        )
    assert "the time was up" in found[-1].message
    assert found[-1].message in str(found)
    assert found.in_turn is None
    assert found.scheme == bs.ResidualDeflation()


def test_a_limit_leaves_a_part_for_the_look(cov, monkeypatch):
    """A component that is hard to prove took all of it."""
    solve, nodes = one_by_one.solve, []

    def recorded(problem, k, **options):
        nodes.append(options["limits"].nodes)
        return solve(problem, k, **options)

    monkeypatch.setattr(one_by_one, "solve", recorded)
    limits = bs.Limits(nodes=900)
    bs.solve_components(cov, 3, 2, scheme="residual", limits=limits)
    assert nodes[0] == 450
    bs.solve_components(cov, 3, 2, scheme="auto", limits=limits)
    assert nodes[2] == 300


def test_compilation_that_leaves_no_time_to_look_is_said(cov, monkeypatch):
    """All components are proved, so that no other warning speaks of compilation."""

    def slow(*names: str, seconds: float | None = None) -> bool:
        loading._cut_short.append(names)
        return False

    monkeypatch.setattr(prediction_search, "load", slow)
    with pytest.warns(UserWarning, match="kernels were compiled first"):
        found = bs.solve_components(
            cov, 3, 2, scheme="auto", limits=bs.Limits(time=60.0)
        )
    assert found.statuses == (bs.Status.OPTIMAL, bs.Status.OPTIMAL)
    assert "kernels were compiled first" in found[-1].message


def test_sets_too_large_to_look_at_are_said(cov, monkeypatch):
    monkeypatch.setattr(prediction_search.Prediction, "enclose", lambda *_: [])
    with pytest.warns(UserWarning, match="too many for the memory"):
        bs.solve_components(cov, 3, 2, scheme="auto")


@pytest.mark.parametrize(
    "options",
    [
        {"sweeps": 1},
        {"constraints": bs.Constraints(exclude=[0])},
        {"scheme": "residual", "limits": bs.Limits(time=0.0)},
    ],
    ids=["sweeps", "constraints", "not asked for"],
)
def test_nothing_is_said_where_no_look_was_due(cov, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bs.solve_components(cov, 3, 2, **{"scheme": "auto", **options})
    assert all("looked for" not in result.message for result in found.results)


def test_the_log_sums_up_what_is_returned(cov, capsys):
    """It summed up the problems in turn, "2 of 2 proved", of a set that is not."""
    found = bs.solve_components(cov, 3, 2, scheme="auto", progress=True)
    assert found.in_turn is not None
    proved = sum(status is bs.Status.OPTIMAL for status in found.statuses)
    assert proved < 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    widest = gap_in_percent(found.gaps.max())
    assert last.startswith(f"{proved} of 2 proved optimal, widest gap {widest},")


def test_what_is_proved_of_components_chosen_together(cov):
    """They were "not proved optimal: the search has finished", as if it had failed."""
    found = bs.solve_components(cov, 3, 2, scheme="auto")
    said = [proof_of(found, j) for j in range(2)]
    for result, words in zip(found.results, said, strict=True):
        if result.status is bs.Status.FEASIBLE:
            assert words.startswith("chosen together with the others: given the ones")
            assert words.endswith("% better")
        else:
            assert words == "proved optimal"
    assert any("chosen together" in words for words in said)
    assert all("finished" not in words for words in said)
    page = found._repr_html_()
    assert all(words in page for words in said)
    assert proof_of(found.in_turn, 1) == "proved optimal"


def test_one_component_is_that_of_residual_deflation(cov):
    found = bs.solve_components(cov, 3, 1, scheme="auto")
    assert found.in_turn is None
    assert found.statuses == (bs.Status.OPTIMAL,)


def test_a_contrast_has_no_share_to_compare(cov):
    contrast = bs.contrastive(cov, np.eye(14), weight=0.1)
    found = bs.solve_components(contrast, 3, 2, scheme="auto")
    assert found.in_turn is None


@pytest.mark.parametrize("where", ["dominating", "bounded"])
def test_ctrl_c_keeps_what_was_found_in_turn(cov, monkeypatch, where):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(undominated, where, interrupted)
    in_turn = bs.solve_components(cov, 3, 2, scheme="residual")
    with pytest.warns(UserWarning, match="was interrupted"):
        found = bs.solve_components(cov, 3, 2, scheme="auto")
    assert found.in_turn is None
    # What is proved stays proved; the last one says that there was no time to look.
    assert found.statuses == (bs.Status.OPTIMAL, bs.Status.INTERRUPTED)
    np.testing.assert_array_equal(found.components, in_turn.components)
    np.testing.assert_array_equal(found.upper_bounds, in_turn.upper_bounds)


@pytest.mark.parametrize("seed", range(8))
def test_disjoint_supports_stay_disjoint(seed):
    A = np.cov(overlapping_factors(seed=seed).T)
    scheme = bs.ResidualDeflation(disjoint=True, unless_dominated=0.0)
    in_turn = bs.solve_components(A, 3, 3, scheme="residual-disjoint")
    found = bs.solve_components(A, 3, 3, scheme=scheme)
    assert len(np.concatenate(found.supports)) == len(
        np.unique(np.concatenate(found.supports))
    )
    gained = found.adjusted_explained_variance.sum()
    assert gained >= in_turn.adjusted_explained_variance.sum() * (1 - 1e-12)
    assert found.r2 >= in_turn.r2
    assert (found.in_turn is not None) == (found.r2 > in_turn.r2)


def test_without_proofs(cov):
    found = bs.solve_components(cov, 3, 2, scheme="auto", certify=False)
    assert found.in_turn is not None
    assert found.r2 > 1.02 * found.in_turn.r2
    total = found.in_turn.adjusted_explained_variance.sum()
    assert found.adjusted_explained_variance.sum() >= total * (1 - 1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unless_dominated": -0.1}, "unless_dominated = -0.1"),
        ({"unless_dominated": "yes"}, "unless_dominated"),
        ({"unless_dominated": 0.1, "prediction": 1.0}, "pass one of the two"),
    ],
)
def test_shares_that_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bs.ResidualDeflation(**options)


def test_the_estimator_takes_it_and_says_so_once(cov):
    with pytest.warns(ConvergenceWarning) as said:
        model = bs.SparsePCA(2, k=3, scheme="auto").fit(dominated_data())
    assert len(said) == 1
    assert "chosen together" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bs.SparsePCA(2, k=3).fit(dominated_data())
    assert model.solution_.in_turn is not None
    assert model.r2_ == pytest.approx(
        bs.solve_components(cov, 3, 2, scheme="auto").r2, rel=1e-9
    )


def test_what_was_not_proved_is_not_called_proved() -> None:
    limits = bs.Limits(nodes=1)
    found = bs.solve_components(
        bs.Covariance.from_data(load_breast_cancer().data, scale=True),
        5,
        3,
        scheme="auto",
        limits=limits,
    )
    assert found.in_turn is not None
    assert bs.Status.OPTIMAL not in found.in_turn.statuses[1:]
    assert "gives the components one after the other, which explain" in str(found)
    # Shares that are the same in two digits are shown with more.
    near = replace(found.in_turn, r2=found.r2 - 1e-5)
    text = str(replace(found, in_turn=near))
    less, more = re.findall(r"predict ([\d.]+)% instead of ([\d.]+)%", text)[0]
    assert float(less) < float(more)


def test_the_command_line_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", dominated_data(), delimiter=",", fmt="%.17g")
    auto = ["-n", "2", "--scheme", "auto"]
    assert run(["fit", "data.csv", "-k", "3", *auto, "-o", "out"]) == 0
    out, err = capsys.readouterr()
    assert "2 components, --scheme auto" in out
    assert "were chosen together" in out
    assert "--scheme residual gives the proved components one after" in out
    assert "proofs ended" not in err
    content = json.loads(Path("out/summary.json").read_text())
    in_turn = content["in_turn"]
    assert content["scheme"] == "auto"
    assert content["r2"] > 1.02 * in_turn["r2"]
    share = in_turn["explained_variance_ratio"]
    assert content["explained_variance_ratio"] >= share * (1 - 1e-12)
    assert run(["verify", "out", "data.csv"]) == 0
    assert run(["report", "data.csv", "-k", "3", *auto, "-o", "out.html"]) == 0
    assert "were chosen together" in Path("out.html").read_text()
    # One whose components stay is that of "residual", and says so.
    np.savetxt("other.csv", overlapping_factors(), delimiter=",", fmt="%.17g")
    assert run(["fit", "other.csv", "-k", "3", *auto, "-o", "other"]) == 0
    assert "--scheme residual" in capsys.readouterr().out
    content = json.loads(Path("other/summary.json").read_text())
    assert content["scheme"] == "residual"
    assert content["in_turn"] is None


def test_the_command_line_compiles_what_the_look_needs(tmp_path, monkeypatch):
    """Compilation took the time that --time gave to the look."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", dominated_data(), delimiter=",", fmt="%.17g")
    loaded: list[tuple[str, ...]] = []
    monkeypatch.setattr(loading, "load", lambda *names, **_: loaded.append(names))
    words = ["fit", "data.csv", "-k", "3", "--time", "20", "--scheme", "auto"]
    assert run([*words, "-n", "2"]) == 0
    assert set(prediction_search.KERNELS) <= set(loaded[0])
    loaded.clear()
    assert run([*words, "-n", "1"]) == 0
    assert not set(prediction_search.KERNELS) & set(loaded[0])


@pytest.mark.parametrize("name", ["auto", "predictive"])
def test_the_explorer_offers_what_is_found_in_turn(name):
    assert name not in IN_TURN
    with pytest.raises(ValueError, match=f"scheme = {name!r} is not one of"):
        State.checked({"k": 3, "scheme": name}, 14)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["LymphomaCov1", "srbct_khan", "Leukemia", "Lymphoma2", "Prostate_GE"]
)
def test_real_data_where_components_in_turn_are_dominated(load, name):
    """Disjoint supports predict more than residual deflation on three of these."""
    values = load(name)
    make = bs.Covariance.from_data
    cov = bs.Covariance.from_matrix(values) if name == "LymphomaCov1" else make(values)
    limits = bs.Limits(nodes=20_000)
    found = bs.solve_components(cov, 10, 5, scheme="auto", limits=limits)
    disjoint = bs.solve_components(cov, 10, 5, scheme="disjoint", limits=limits)
    assert found.in_turn is not None
    assert set(found.in_turn.statuses) == {bs.Status.OPTIMAL}
    assert found.r2 > max(disjoint.r2, 1.02 * found.in_turn.r2)
    added = found.adjusted_explained_variance.sum()
    assert added >= found.in_turn.adjusted_explained_variance.sum() * (1 - 1e-12)
    assert added >= disjoint.adjusted_explained_variance.sum()
