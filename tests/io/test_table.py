"""Files in: every format gives the same table, and names come along."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import blockspca as bs
from blockspca import Covariance
from blockspca.io import FORMATS, ReadError, Table, read_table

X = np.random.default_rng(0).normal(size=(6, 3))
NAMES = ("a", "b,c", "<script>")


def as_text(delimiter: str, header: bool = True) -> str:
    quoted = [f'"{name}"' for name in NAMES]
    rows = [delimiter.join(map(repr, row)) for row in X.tolist()]
    return "\n".join([delimiter.join(quoted), *rows] if header else rows)


def assert_reads(table: Table, names: tuple[str, ...] | None = NAMES) -> None:
    values = table.values
    values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    np.testing.assert_array_equal(values, X)
    assert table.feature_names == names


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("t.csv", ","), ("t.tsv", "\t"), ("t.txt", ";"), ("T.CSV", ";")],
)
def test_delimited_text(tmp_path, name, delimiter):
    path = tmp_path / name
    path.write_text(as_text(delimiter), encoding="utf-8-sig")
    assert_reads(read_table(path))


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_compressed_text(tmp_path, ending):
    path = tmp_path / f"t.{ending}.gz"
    path.write_bytes(gzip.compress(as_text("\t" if ending == "tsv" else ",").encode()))
    assert_reads(read_table(path))


def test_text_without_a_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_text(",", header=False))
    assert_reads(read_table(path), None)


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n0.5,1,7\n2,3,4\n",
        "1990,2000,2005\n0.5,1,7\n2,,4\n",
        "7,3\n0.5,1\n2,3\n",
        "1,2,3\n5,1,7\n0,0,2\n",  # counts
    ],
)
def test_a_header_of_numbers_is_asked_about(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ReadError, match="may be names or a sample; add header=True"):
        read_table(path)
    table = read_table(path, header=True)
    assert table.feature_names == tuple(text.split()[0].split(","))
    assert len(table.values) == 2
    table = read_table(path, header=False)
    assert table.feature_names is None
    assert len(table.values) == 3


@pytest.mark.parametrize(
    "text",
    [
        "2,1,0\n1,2,0.1\n0,0.1,2.5\n",  # a symmetric matrix
        "1,2,3\n2,3,4\n9,1,7\n",  # counts up, as another row does
        "3,1,2\n0,1,5\n",
        "3,3,1\n0.5,1,5\n",
        "3,nan,1\n0.5,1,5\n",
        "3.5,1,2\n0.5,1,5\n",
        "1,2,3\n",
    ],
)
def test_a_first_row_of_numbers_is_a_sample(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert len(read_table(path).values) == text.count("\n")


@pytest.mark.parametrize("header", [",x,y", "x,y"], ids=["pandas", "R"])
def test_names_of_samples_in_the_first_column(tmp_path, header):
    path = tmp_path / "t.csv"
    path.write_text(header + "\ns1,1,2\ns2,3,4\n")
    table = read_table(path)
    assert table.sample_names == ("s1", "s2")
    assert table.feature_names == ("x", "y")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_index_and_drop(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,who,kind,y\n1,ann,red,2\n3,bob,blue,4\n")
    table = read_table(path, index="who", drop=["kind"])
    assert table.sample_names == ("ann", "bob")
    assert table.feature_names == ("x", "y")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_gaps_are_nan(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1,NA,\nnan,null,4\n")
    np.testing.assert_array_equal(
        read_table(path).values, [[1, np.nan, np.nan], [np.nan, np.nan, 4]]
    )


def test_arrays(tmp_path):
    np.save(tmp_path / "t.npy", X)
    assert_reads(read_table(tmp_path / "t.npy"), None)
    np.savez(tmp_path / "t.npz", X=X, feature_names=NAMES)
    assert_reads(read_table(tmp_path / "t.npz"))
    np.savez_compressed(tmp_path / "u.npz", first=X, second=X)
    assert_reads(read_table(tmp_path / "u.npz", key="second"), None)
    np.savez(tmp_path / "A.npz", A=X.T @ X)
    assert read_table(tmp_path / "A.npz").is_matrix
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.csr_matrix(X))
    table = read_table(tmp_path / "s.npz")
    assert scipy.sparse.issparse(table.values)
    assert_reads(table, None)
    scipy.io.mmwrite(tmp_path / "t.mtx", scipy.sparse.coo_array(X), precision=17)
    table = read_table(tmp_path / "t.mtx")
    assert scipy.sparse.issparse(table.values)
    assert_reads(table, None)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.parquet"
    frame = pandas.DataFrame(X, columns=list(NAMES), index=[f"s{i}" for i in range(6)])
    frame.to_parquet(path)
    table = read_table(path)
    assert_reads(table)
    assert table.sample_names == ("s0", "s1", "s2", "s3", "s4", "s5")
    frame["kind"] = "red"
    frame.to_parquet(path)
    with pytest.raises(ReadError, match=r"column 'kind' holds .*, not numbers"):
        read_table(path)
    assert_reads(read_table(path, drop=["kind"]))


@pytest.mark.parametrize("sparse", [False, True])
def test_h5ad(tmp_path, sparse):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5ad"
    with h5py.File(path, "w") as file:
        if sparse:
            rows = scipy.sparse.csr_array(X)
            group = file.create_group("X")
            group.attrs["encoding-type"] = "csr_matrix"
            group.attrs["shape"] = rows.shape
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(rows, part)
        else:
            file["X"] = X
        var = file.create_group("var")
        var.attrs["_index"] = "gene"
        var["gene"] = np.array(NAMES, dtype=h5py.string_dtype())
    assert_reads(read_table(path))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_large_table_stays_in_its_file(tmp_path, monkeypatch, kind, sparse):
    anndata = pytest.importorskip("anndata")
    monkeypatch.setattr("blockspca.covariance.input_kinds.MAP_FROM", 0)
    adata = anndata.AnnData(scipy.sparse.csc_matrix(X) if sparse else X)
    adata.var_names, adata.layers["half"] = list(NAMES), X / 2
    path = tmp_path / f"t.{kind}"
    getattr(adata, f"write_{kind}")(path)
    table = read_table(path)
    assert hasattr(table.values, "columns_of")
    assert table.feature_names == tuple(NAMES)
    here = Covariance.from_data(X)
    np.testing.assert_allclose(
        table.covariance().submatrix(slice(None)), here.submatrix(slice(None))
    )
    loadings = np.eye(len(NAMES))[1:3]
    np.testing.assert_allclose(
        table.scores(loadings), (X - X.mean(axis=0)) @ loadings.T, atol=1e-12
    )
    fewer = table.without(NAMES[:1])
    assert_same = np.testing.assert_array_equal
    assert_same(as_dense(fewer.values), X[:, 1:])
    assert_same(as_dense(table.transposed().values), X.T)
    assert_same(as_dense(read_table(path, key="half").values.to_memory()), X / 2)
    with pytest.raises(ReadError, match=r"its layers, for key=\.\.\., are: half"):
        read_table(path, key="none")


def as_dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def test_every_format_has_a_reader():
    from importlib import import_module

    from blockspca.io.table import _READERS

    for ending in FORMATS:
        module, name = _READERS[ending].split(":")
        assert callable(getattr(import_module(f"blockspca.io.{module}"), name))


def test_no_pickle_is_ever_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    np.save(tmp_path / "evil.npy", np.array([[Evil()]], dtype=object))
    np.savez(tmp_path / "evil.npz", X=np.array([[Evil()]], dtype=object))
    for name in ("evil.npy", "evil.npz"):
        with pytest.raises(ReadError, match="not loaded"):
            read_table(tmp_path / name)
    assert not (tmp_path / "touched").exists()


def test_progress_reaches_the_size_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,2\n" * 500)
    seen: list[tuple[int, int]] = []
    read_table(path, tick=lambda done, total: seen.append((done, total)))
    assert len(seen) > 5
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_transposed_and_named():
    table = Table(values=X, sample_names=tuple("123456"))
    assert table.transposed().feature_names == tuple("123456")
    assert table.named(["x", "y", "z"]).feature_names == ("x", "y", "z")
    with pytest.raises(ReadError, match="2 names for 3 features"):
        table.named(["x", "y"])


def test_scores_of_gaps_and_of_sparse_data():
    loadings = np.array([[0.6, 0.8, 0.0]])
    centred = X - X.mean(axis=0)
    for values in (X, scipy.sparse.csr_array(X)):
        scores = Table(values=values).scores(loadings)
        np.testing.assert_allclose(scores, centred @ loadings.T)
    scaled = Table(values=X).scores(loadings, scale=True)
    np.testing.assert_allclose(scaled, centred / X.std(axis=0, ddof=1) @ loadings.T)
    gaps = X.copy()
    gaps[0, :2] = np.nan
    assert Table(values=gaps).scores(loadings)[0, 0] == 0
    assert Table(values=X.T @ X, is_matrix=True).scores(loadings) is None


def test_an_error_names_the_arguments_of_a_call(tmp_path):
    """Its text is for Python; who has other words for an argument finds them apart."""
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,red\n2,blue\n")
    with pytest.raises(ReadError, match=r"index='y' if .* drop=\['y'\], or") as found:
        read_table(path)
    named = [(argument.name, argument.value) for argument in found.value.arguments]
    columns = [("drop", ["y"]), ("index", "y"), ("label", "y")]
    assert named == [*columns, ("numeric_only", True)]
    with pytest.raises(ReadError, match=r"key='A' does not apply to \.csv files"):
        read_table(path, key="A")


def test_the_library_does_not_speak_of_options():
    source = Path(bs.__file__).parent
    spoken = [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        if path.relative_to(source).parts[0] not in ("checker", "cli", "reproduction")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"(?<![-#\w])--[a-z]", line)
    ]
    assert not spoken, "\n".join(spoken)


@pytest.mark.parametrize("header", [",kind,x,y", "kind,x,y"], ids=["pandas", "R"])
def test_labels_are_a_column_and_no_feature(tmp_path, header):
    path = tmp_path / "t.csv"
    path.write_text(header + "\ns1,red,1,2\ns2,,3,4\n")
    table = read_table(path, label="kind")
    assert table.labels == ("red", "")
    assert table.sample_names == ("s1", "s2")
    assert table.feature_names == ("x", "y")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_a_label_may_be_a_number_or_the_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,who,grade,y\n1,ann,3,2\n3,bob,4,4\n")
    assert read_table(path, label="grade", drop=["who"]).labels == ("3", "4")
    table = read_table(path, label="who", index="who")
    assert table.labels == table.sample_names == ("ann", "bob")
    assert table.feature_names == ("x", "grade", "y")
    with pytest.raises(ReadError, match="no column 'kind' for label="):
        read_table(path, label="kind")


def test_labels_of_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"x": [1.0, 2.0], "kind": ["red", None], "y": [3.0, 5.0]})
    frame.to_parquet(path)
    table = read_table(path, label="kind")
    assert table.labels == ("red", "")
    assert table.feature_names == ("x", "y")
    with pytest.raises(ReadError, match=r"no column 'kin' .*did you mean 'kind'\?"):
        read_table(path, label="kin")
    with pytest.raises(ReadError, match="no column 'k' for label="):
        read_table(path, label="k")


def test_labels_of_h5ad_are_in_obs(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    path = tmp_path / "t.h5ad"
    kinds = pd.Categorical(["red", None, "blue"], categories=["blue", "red"])
    obs = pd.DataFrame({"kind": kinds, "n": [1, 2, 3]}, index=["a", "b", "c"])
    var = pd.DataFrame(index=["kind", "gene"])  # a feature of the same name is kept
    anndata.AnnData(np.arange(6.0).reshape(3, 2), obs=obs, var=var).write_h5ad(path)
    table = read_table(path, label="kind")
    assert table.labels == ("red", "", "blue")
    assert table.feature_names == ("kind", "gene")
    assert read_table(path, label="n").labels == ("1", "2", "3")
    with pytest.raises(
        ReadError, match=r"no obs column 'x' for label=.*names are 'kind', 'n'"
    ):
        read_table(path, label="x")


@pytest.mark.parametrize("sparse", [False, True])
def test_files_of_older_anndata(tmp_path, sparse):
    """Before 0.7, obs and var were tables, and categories were in uns."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5ad"
    X = np.array([[1.0, 0.0], [0.0, 4.0], [5.0, 6.0]], dtype=np.float32)
    obs = [(b"a", 1, 7), (b"b", -1, 8), (b"c", 0, 9)]
    var = [(b"CD3D", True), (b"NKG7", False)]
    with h5py.File(path, "w") as file:
        file["obs"] = np.array(obs, dtype=[("index", "S1"), ("kind", "i1"), ("n", int)])
        file["var"] = np.array(var, dtype=[("index", "S4"), ("highly_variable", "?")])
        file["uns/kind_categories"] = np.array([b"blue", b"red"])
        if sparse:
            matrix = scipy.sparse.csr_array(X)
            for name in ("data", "indices", "indptr"):
                file[f"X/{name}"] = getattr(matrix, name)
            file["X"].attrs["h5sparse_format"] = "csr"
            file["X"].attrs["h5sparse_shape"] = X.shape
        else:
            file["X"] = X
    table = read_table(path, label="kind", mask_var="highly_variable")
    assert table.labels == ("red", "", "blue")
    assert table.sample_names == ("a", "b", "c")
    assert table.feature_names == ("CD3D",)
    values = table.values.toarray() if sparse else table.values
    np.testing.assert_array_equal(values, X[:, :1])
    with pytest.raises(ReadError, match="did you mean 'kind'"):
        read_table(path, label="kinds")


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_of_two_genes_of_one_name_one_may_be_marked(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    path = tmp_path / "t.h5ad"
    X = np.arange(12.0).reshape(4, 3)
    var = pd.DataFrame({"used": [True, False, True]}, index=["a", "a", "c"])
    anndata.AnnData(X, var=var).write_h5ad(path)
    table = read_table(path, mask_var="used")
    assert table.feature_names == ("a", "c")
    np.testing.assert_array_equal(table.values, X[:, ::2])
    anndata.AnnData(X, var=var & False).write_h5ad(path)
    with pytest.raises(ReadError, match="mask_var='used' marks no feature"):
        read_table(path, mask_var="used")


def test_all_of_the_index_of_a_parquet_file_names_samples(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(
        {"id": [7, 8], "year": [2001, 2005], "x": [1.0, 2], "y": [3, 5]}
    )
    frame.set_index(["id", "year"]).to_parquet(path)
    with pytest.warns(UserWarning, match="'year' of its index is not a feature"):
        table = read_table(path)
    assert table.feature_names == ("x", "y")
    assert table.sample_names == ("7", "8")
    assert read_table(path, drop=["year"]).feature_names == ("x", "y")


def test_parquet_with_whole_numbers_that_are_no_float64(tmp_path):
    """They are the nearest, as in any array; it was a traceback."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [2**53 + 1, 3], "b": [1.0, 2.0]}), path)
    assert read_table(path).values.tolist() == [[2.0**53, 1.0], [3.0, 2.0]]
    columns = [pa.array([1.0, 2.0]), pa.array([2.0, 3.0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["a", "a"]), path)
    with pytest.raises(ReadError, match="two columns 'a'"):
        read_table(path)


def test_genes_that_var_marks(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    path = tmp_path / "t.h5ad"
    marks = {"highly_variable": [True, False, True], "mean": [1.0, 2.0, 3.0]}
    var = pd.DataFrame(marks, index=["a", "b", "c"])
    anndata.AnnData(np.arange(12.0).reshape(4, 3), var=var).write_h5ad(path)
    table = read_table(path, mask_var="highly_variable")
    assert table.feature_names == ("a", "c")
    np.testing.assert_array_equal(table.values, np.arange(12.0).reshape(4, 3)[:, ::2])
    with pytest.warns(UserWarning, match="marks 2 of 3 genes as highly variable"):
        assert read_table(path).feature_names == ("a", "b", "c")
    with pytest.raises(ReadError, match="mask_var='mean' is not a column of booleans"):
        read_table(path, mask_var="mean")
    with pytest.raises(
        ReadError, match=r"no var column 'x' for mask_var=.*the names.*'mean'"
    ):
        read_table(path, mask_var="x")
    np.save(tmp_path / "t.npy", np.eye(3))
    with pytest.raises(ReadError, match=r"mask_var='x' does not apply to \.npy"):
        read_table(tmp_path / "t.npy", mask_var="x")


def test_labels_need_columns_with_names(tmp_path):
    np.save(tmp_path / "t.npy", np.eye(3))
    with pytest.raises(ReadError, match=r"label='x' does not apply to \.npy"):
        read_table(tmp_path / "t.npy", label="x")


def test_a_keyword_that_is_none_is_named(tmp_path):
    with pytest.raises(TypeError, match="no argument 'hedaer'; did you mean 'header'"):
        read_table(tmp_path / "x.csv", hedaer=True)
