"""The paper's data sets: found, checked, or absent with a message that helps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from blockspca.datasets import (
    PAPER_SETS,
    DataSetNotFound,
    PaperSet,
    data_folder,
    load_paper_set,
)
from blockspca.datasets.catalogue import array_sha256, is_present
from blockspca.io import ReadError

X = np.random.default_rng(0).normal(size=(7, 4))
SET = PaperSet("Small", "small.npz", (7, 4), "made up", array_sha256(X))


def test_there_are_eleven_with_the_paper_s_dimensions():
    sizes = [chosen.n_features for chosen in PAPER_SETS.values()]
    assert sizes == sorted(sizes)
    assert len(sizes) == 11
    assert sizes[0] == 500
    assert sizes[-1] == 100_000
    assert all(chosen.where for chosen in PAPER_SETS.values())


@pytest.mark.parametrize("name", PAPER_SETS)
def test_absent_says_where_to_get_it(name, tmp_path):
    with pytest.raises(DataSetNotFound, match="is not there") as error:
        load_paper_set(name, tmp_path)
    assert PAPER_SETS[name].where in str(error.value)
    assert str(tmp_path / PAPER_SETS[name].file) in str(error.value)


def test_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match="CovColonCov, LymphomaCov1"):
        load_paper_set("Iris")


def test_the_folder_is_the_argument_the_variable_or_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BLOCKSPCA_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("BLOCKSPCA_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "blockspca"


def test_data_become_the_covariance_of_numpy(tmp_path):
    np.savez(tmp_path / SET.file, X=X)
    assert is_present(SET, tmp_path)
    cov = load_paper_set(SET, tmp_path)
    np.testing.assert_allclose(cov.submatrix(np.arange(4)), np.cov(X.T))


def test_a_matrix_is_taken_as_it_is(tmp_path):
    A = np.cov(X.T)
    np.savez(tmp_path / SET.file, A=A)
    chosen = PaperSet("Small", SET.file, (4, 4), "made up", array_sha256(A))
    np.testing.assert_array_equal(load_paper_set(chosen, tmp_path).rows([1]), A[[1]])


def test_other_numbers_are_a_warning(tmp_path):
    np.savez(tmp_path / SET.file, X=X + 1e-6)
    with pytest.warns(UserWarning, match="other numbers"):
        load_paper_set(SET, tmp_path)


def test_another_shape_is_an_error(tmp_path):
    np.savez(tmp_path / SET.file, X=X[:5])
    with pytest.raises(ReadError, match="5 × 4; Small is 7 × 4"):
        load_paper_set(SET, tmp_path)
    untried = PaperSet("Small", SET.file, (7, 4), "made up")
    assert load_paper_set(untried, tmp_path).n_samples == 5


def test_the_fingerprint_does_not_depend_on_how_numbers_are_stored():
    counts = np.array([[0, 3], [1, 0]])
    assert array_sha256(counts) == array_sha256(np.asfortranarray(counts, dtype=float))
    assert array_sha256(sp.csr_matrix(counts)) == array_sha256(
        sp.csc_matrix(counts * 1.0)
    )


@pytest.mark.data
@pytest.mark.parametrize("name", PAPER_SETS)
def test_the_files_hold_the_numbers_they_were_tried_with(name, data_dir, recwarn):
    chosen = PAPER_SETS[name]
    if not is_present(chosen, data_dir):
        pytest.skip(f"{chosen.file} is not in {data_dir}")
    cov = load_paper_set(name, data_dir)
    assert cov.n_features == chosen.n_features
    assert not recwarn.list
