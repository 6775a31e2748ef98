"""The whole way of a user: data, components, verification, proof, checker, command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

import blockspca as bs

SOURCE = str(Path(bs.__file__).parents[1])


def python(*arguments):
    """Run a module of the package as a user would."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def model(wine):
    return bs.SparsePCA(n_components=2, k=3, scale=True).fit(wine)


def test_fit_is_proved_and_verified(model, wine):
    assert [r.status for r in model.solution_.results] == [bs.Status.OPTIMAL] * 2
    assert "flavanoids" in model.solution_.results[0].features
    cov = bs.Covariance.from_data(wine, scale=True)
    assert all(check.holds for check in model.solution_.verify(cov))
    assert all(check.holds for check in model.solution_.verify(wine))


def test_a_dictionary_pairs_features_and_loadings(model, wine):
    result = model.solution_.results[0]
    content = result.to_dict()
    assert dict(zip(content["features"], content["loadings"], strict=True)) == (
        result.loadings
    )
    assert content["features"] == wine.columns[content["support"]].tolist()


def test_scores_have_the_variance_that_is_told(model, wine):
    scores = model.transform(wine)
    told = model.solution_.explained_variance
    assert scores.var(axis=0, ddof=1) == pytest.approx(told)
    assert np.linalg.det(np.cov(scores.T)) == pytest.approx(
        model.explained_variance_.prod()
    )


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
@pytest.mark.parametrize("how", ["--explain", "--exact"])
def test_a_proof_is_checked_without_the_library(model, wine, tmp_path, suffix, how):
    data, proof = tmp_path / f"wine{suffix}", tmp_path / "wine.proof"
    if suffix == ".npy":
        np.save(data, wine.to_numpy())
    else:
        wine.to_csv(data, index=False)
    model.solution_.write_proof(proof, wine)
    verdict = python("blockspca.checker", proof, data, how)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert verdict.stdout.count("ACCEPTED: ") == 2
    assert verdict.stdout.count(" after 1 vector (gap") == 1

    forged = json.loads(proof.read_text())
    lower = float.fromhex(forged["proofs"][1]["claims"][0]["objective"]) * 0.999
    for name in ("objective", "upper"):
        forged["proofs"][1]["claims"][0][name] = lower.hex()
    forged["proofs"][1]["records"][-1]["upper"] = lower.hex()
    proof.write_text(json.dumps(forged))
    verdict = python("blockspca.checker", proof, data, how)
    assert verdict.returncode == 1
    assert verdict.stdout.startswith("NOT ACCEPTED: ")


def test_a_command_does_all_of_it(wine, tmp_path):
    data, proof = tmp_path / "wine.csv", tmp_path / "wine.proof"
    wine.to_csv(data, index=False)
    fit = python("blockspca", "fit", data, "-k", 3, "--scale", "--proof", proof)
    assert fit.returncode == 0, fit.stderr
    assert fit.stdout.count("optimal") == 2
    assert "flavanoids" in fit.stdout
    assert python("blockspca.checker", proof, data).returncode == 0


def test_the_command_names_what_is_wrong(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    fit = python("blockspca", "fit", tmp_path / "empty.txt")
    assert fit.returncode == 2
    assert fit.stderr.startswith("blockspca: ")
    assert "must be a .csv or .npy file" in fit.stderr


def test_a_residual_without_variance_is_told(tmp_path):
    X = np.outer(np.arange(1.0, 5.0), [1.0, 2.0, 3.0])
    with pytest.warns(
        UserWarning, match=r"no variance is left for components \[2, 3\]"
    ) as w:
        model = bs.SparsePCA(3, 2).fit(X)
    assert not any("limits" in str(each.message) for each in w)
    first, second, _ = model.solution_.results
    assert (first.message, second.message) == ("", "no variance is left")
    assert 0 <= second.objective <= second.upper_bound <= 1e-9 * first.objective
    assert "no variance is left" in str(second)
    assert all(check.holds for check in model.solution_.verify(X))
    np.save(tmp_path / "X.npy", X)
    model.solution_.write_proof(tmp_path / "proof", X)
    for how in ([], ["--exact"]):
        verdict = python(
            "blockspca.checker", tmp_path / "proof", tmp_path / "X.npy", *how
        )
        assert verdict.returncode == 0, verdict.stdout


def test_the_estimator_refuses_what_is_no_table(wine):
    anndata = pytest.importorskip("anndata")
    for X, words in [
        (bs.Covariance.from_data(wine), "is of type Covariance.*solve_components"),
        (anndata.AnnData(wine.to_numpy()), "is of type AnnData.*use adata.X"),
    ]:
        with pytest.raises(TypeError, match=words):
            bs.SparsePCA(2, 3).fit(X)


def test_options_of_other_functions_are_named_with_their_place(wine):
    X = wine.to_numpy().copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"from_data\(..., missing='pairwise'\)"):
        bs.solve(X, 2)
    X[:, 0] = 1.0
    with pytest.warns(UserWarning, match=r"from_data\(..., scale=True, constant="):
        bs.SparsePCA(2, 3, scale=True).fit(X)
    result = bs.solve(wine, 2, constraints=bs.Constraints(nonnegative=True))
    with pytest.raises(ValueError, match="does not support nonnegative"):
        result.write_proof("never", wine)


def test_the_command_never_replaces_its_data(wine, tmp_path):
    data = tmp_path / "wine.csv"
    wine.to_csv(data, index=False)
    before = data.read_bytes()
    (tmp_path / "link").symlink_to(data)
    for proof, words in [
        (data, "cannot be the file of the data"),
        (tmp_path / "link", "cannot be the file of the data"),
        (tmp_path / "none" / "wine.proof", "a folder that exists"),
    ]:
        fit = python("blockspca", "fit", data, "--proof", proof)
        assert fit.returncode == 2
        assert words in fit.stderr
        assert fit.stdout == ""
    assert data.read_bytes() == before


def test_the_command_refuses_more_features_than_there_are(wine, tmp_path):
    data = tmp_path / "wine.csv"
    wine.iloc[:, :3].to_csv(data, index=False)
    fit = python("blockspca", "fit", data, "-k", 1000)
    assert fit.returncode == 2
    assert "k = 1000 must be from 1 to 3" in fit.stderr
    assert "k = 3 of 3" in python("blockspca", "fit", data).stdout


@pytest.mark.parametrize(
    ("header", "sentence"),
    [("1.5,2.5", "names in its first line"), (",a", "a column without a name")],
)
def test_a_table_with_a_doubtful_header_is_refused(tmp_path, header, sentence):
    (tmp_path / "data.csv").write_text(f"{header}\n1,2\n3,5\n4,1\n")
    fit = python("blockspca", "fit", tmp_path / "data.csv")
    assert fit.returncode == 2
    assert sentence in fit.stderr


@parametrize_with_checks([bs.SparsePCA()])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
