"""Wrong calls and wrong files: one clear line each, and the documented exit code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blockspca.cli.main import run

X = np.random.default_rng(0).normal(size=(20, 4))


#: Names that arguments of the library have, too.
ODD = "k_max,limits.time,n_components,include"


def table(path: Path, rows, header: str = "a,b,c,d") -> None:
    lines = [header] if header else []
    lines += [",".join(str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def with_cell(row: int, column: int, text: str) -> list[list[object]]:
    rows = X.tolist()
    rows[row][column] = text
    return rows


def with_column(column: int, text: str) -> list[list[object]]:
    return [[*row[:column], text, *row[column + 1 :]] for row in X.tolist()]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with one good file and many bad ones."""
    monkeypatch.chdir(tmp_path)
    table(Path("ok.csv"), X.tolist())
    table(Path("text.csv"), with_column(1, "red"))
    table(Path("nancol.csv"), with_column(1, ""))
    odd = with_cell(3, 2, "NA")
    table(Path("names.csv"), [["red", *row[1:]] for row in odd], ODD)
    table(Path("gap.csv"), with_cell(3, 2, "NA"))
    table(Path("inf.csv"), with_cell(3, 2, "inf"))
    table(Path("onesample.csv"), X[:1].tolist())
    table(Path("constant.csv"), np.ones((5, 4)).tolist())
    table(Path("still.csv"), with_column(1, "7"))
    table(Path("ragged.csv"), [*X.tolist(), [1, 2, 3]])
    table(Path("duplicates.csv"), X.tolist(), "a,b,a,d")
    Path("empty.csv").write_text("")
    Path("blank.csv").write_text("\n\n")
    Path("header.csv").write_text("a,b\n")
    Path("commas.csv").write_text("a;b\n1,5;2,5\n3,5;4,5\n")
    Path("thousands.csv").write_text('a,b\n"1,000",2\n"2,500.5",4\n')
    Path("percent.csv").write_text("a,b\n12.5%,2\n13%,4\n")
    Path("money.csv").write_text("a,b\n$1,2\n$3,4\n")
    Path("date.csv").write_text("a,b\n2020-01-01,2\n2020-01-02,4\n")
    Path("title.csv").write_text("My table\na,b\n1,2\n3,4\n")
    Path("quote.csv").write_text('a,b\n"1,2\n3,4\n')
    Path("wide.csv").write_text("a,b\n1e200,2\n-3e200,4\n5,7\n")
    table(Path("numbered.csv"), X.tolist(), "0,1,2,3")
    Path("ones.csv").write_text("a,b\n1,1\n1,1\n")
    Path("asymmetric.csv").write_text("1,0.5\n0.1,1\n")
    np.save("empty.npy", np.empty((0, 3)))
    np.savez("nothing.npz")
    np.savez("names.npz", X=X, feature_names=["a", "b"])
    Path("plain.txt").write_text("1 2 3\n1.5 2 4\n4 5 6\n")
    Path("commas.tsv").write_text("a,b\n1,2.5\n3,4\n")
    Path("latin.csv").write_bytes("fée,b\n1,2\n3,4\n".encode("latin-1"))
    Path("noending").write_text("1,2\n3,4\n")
    Path("letter.docx").write_text("hello")
    Path("bad.csv.gz").write_bytes(b"not gzip")
    Path("bad.npy").write_bytes(b"garbage")
    Path("bad.npz").write_bytes(b"PK garbage")
    Path("bad.mtx").write_text("garbage\n")
    np.save("objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.savez("objects.npz", X=np.array([[{}, 1]], dtype=object))
    np.save("vector.npy", np.ones(3))
    np.save("complex.npy", np.ones((3, 3)) * 1j)
    np.save("square.npy", X[:4])
    np.savez("two.npz", U=X, V=X)
    Path("folder.csv").mkdir()
    Path("full").mkdir()
    Path("full/summary.json").write_text("{}")
    Path("names.txt").write_text("a\nb\n")
    Path("certificate.json").write_text("{}")
    return tmp_path


BROKEN = {
    "fit ok.csv -k 0": "k = 0 is outside 1..4",
    "fit ok.csv -k -1": "k = -1 is outside",
    "fit ok.csv -k two": "-k two is not a number of features",
    "fit ok.csv -k 2.5": "-k 2.5 is not a number of features",
    "fit": "Missing argument",
    "fit ok.csv -k 2,3,1": "3 values for --n-components 2",
    "fit ok.csv -k 2 -n 0": "Invalid value for '--n-components' / '-n': 0 is less than",
    "fit ok.csv -k 2 -n 1.5": "'-n': 1.5 is not a whole number",
    "fit ok.csv -k 2 --nodes 0": "Invalid value for '--nodes': 0 is less than 1",
    "fit ok.csv -k 2 --time -1": "Invalid value for '--time': -1 is less than 0",
    "fit ok.csv -k 2 --time nan": "Invalid value for '--time': nan is not a number",
    "path ok.csv --k-max 0": "Invalid value for '--k-max': 0 is less than 1",
    "blocks ok.csv --max-block-size 0": "'--max-block-size': 0 is less than 1",
    "verify full ok.csv --max-nodes 0": "'--max-nodes': 0 is less than 1",
    "demo --seed -1": "Invalid value for '--seed': -1 is less than 0",
    "reproduce all --time-limit 0": "'--time-limit': 0 is less than 0.1",
    "fit missing.csv -k 2": "does not exist",
    "fit limits.csv -k 2": "limits.csv does not exist",
    "fit n_jobs.csv -k 2": "n_jobs.csv does not exist",
    "fit names.csv -k 2": "column 'k_max' holds text, 'red' in row 1; use --index",
    "fit names.csv -k 2 --drop k_max --missing raise": "in feature(s) 'n_components';",
    "fit ok.csv -k 2 --include a,b,c": "--include has 3 features for k = 2",
    "fit ok.csv -k 2 -n 2 --scheme predictive --include a": "add --scheme residual",
    "fit folder.csv -k 2": "is a directory",
    "fit noending -k 1": "has no ending",
    "fit letter.docx -k 1": "ends with '.docx'",
    "fit empty.csv -k 1": "is empty",
    "fit blank.csv -k 1": "has no rows",
    "fit header.csv -k 1": "header but no rows",
    "fit text.csv -k 2": "column 'b' holds text, 'red' in row 1",
    "fit ok.csv -k 2 --drop z": "no column 'z'",
    "fit ok.csv -k 2 --index z": "no column 'z'",
    "fit text.csv -k 2 --drop B": "did you mean 'b'?",
    "fit text.csv -k 2 --label B": "did you mean 'b'?",
    "fit nancol.csv -k 2": "column 'b' has no values",
    "fit nancol.csv -k 2 --missing pairwise": "column 'b' has no values",
    "fit gap.csv -k 2": "1 missing value(s), in feature(s) 'c'",
    "fit gap.csv -k 2 --missing maybe": "'maybe' is not one of",
    "fit inf.csv -k 2": "1 infinite value(s), in feature(s) 'c'",
    "fit onesample.csv -k 2": "has 1 sample",
    "fit constant.csv -k 2": "constant.csv has no variance: every feature is",
    "fit constant.csv -k 2 --scale": "constant.csv has no variance: every feature is",
    "fit still.csv -k 2 --scale --constant raise": "add --constant ignore to give",
    "fit still.csv -k 2 --scale --constant maybe": "'maybe' is not one of",
    "fit ragged.csv -k 2": "row 21 has 3 cells where the header has 4",
    "fit duplicates.csv -k 2": "repeat ['a']",
    "fit commas.csv -k 1": "write decimals with a point, or add --decimal ,",
    "fit thousands.csv -k 1": "writes '1,000' in row 1; leave thousands separators out",
    "fit percent.csv -k 1": "writes '12.5%' in row 1; write the number without",
    "fit money.csv -k 1": "writes '$1' in row 1; write the number without the sign",
    "fit date.csv -k 1": "holds text, '2020-01-01' in row 1; use --index",
    "fit title.csv -k 1": "remove lines above the header",
    "fit quote.csv -k 1": "row 1 has a quotation mark that is not closed",
    "fit wide.csv -k 1": "'a' is too large for float64; rescale it",
    "fit asymmetric.csv -k 1 --covariance": "leave --covariance out if its rows are",
    "fit ok.csv -k 2 --time inf": "--time = inf; leave it out for no limit",
    "fit ok.csv -k 2 -j 0": "--jobs = 0 means nothing; pass 1",
    "fit ok.csv -k 2 --key X": "--key X does not apply to .csv files; leave it out",
    "fit square.npy -k 2 --header": "--header does not apply to .npy files",
    "fit square.npy -k 2 --no-header": "--no-header does not apply to .npy files",
    "fit numbered.csv -k 2": "add --header if it names the columns, or --no-header if",
    "fit square.npy -k 2 --index a": "--index a does not apply to .npy files",
    "fit square.npy -k 2 --covariance --missing pairwise": "--missing does not apply",
    "fit square.npy -k 2 --covariance --no-center": "--no-center does not apply",
    "fit empty.npy -k 1": "has 0 samples; give at least two",
    "fit nothing.npz -k 1": "nothing.npz holds nothing; choose",
    "fit names.npz -k 1": "2 names for 4 features in names.npz; give one name for each",
    "fit ones.csv -k 1": "ones.csv has no variance",
    "fit plain.txt -k 1": "its first row, 1, 2, 3, may be names or a sample",
    "fit commas.tsv -k 1": "holds 2 numbers, '1,2.5'; separate them by tabs, or give",
    "fit ok.csv -k 2 --gap 1%": "'1%' is not a fraction below 1; 0.01 is 1 %",
    "fit ok.csv -k 2 --gap 5": "'5' is not a fraction below 1; 0.01 is 1 %",
    "fit ok.csv -k 2 --gap=-0.1": "'-0.1' is not a fraction",
    "fit two.npz -k 1 --key c": "has no array 'c' for --key; it holds U, V.",
    "fit latin.csv -k 1 --encoding klingon": "--encoding klingon is not a known",
    "fit commas.csv -k 1 --decimal x": "--decimal x is neither a point nor a comma",
    "fit two.npz --key U -k 1 --na 7": "--na 7 does not apply to .npz files",
    "fit latin.csv -k 1": "such as --encoding latin-1",
    "fit bad.csv.gz -k 1": "Not a gzipped file",
    "fit bad.npy -k 1": "not an NPY file",
    "fit bad.npz -k 1": "not an NPZ file",
    "fit bad.mtx -k 1": "not a readable Matrix Market file",
    "fit objects.npy -k 1": "holds Python objects, which are not loaded",
    "fit objects.npz -k 1": "holds Python objects, which are not loaded",
    "fit vector.npy -k 1": "shape (3,)",
    "fit complex.npy -k 1": "complex128",
    "fit two.npz -k 2": "choose an array with --key",
    "fit square.npy -k 2 --covariance": "not symmetric",
    "fit ok.csv -k 2 --covariance": "not a square matrix",
    "fit ok.csv -k 2 --names names.txt": "2 names for 4 features",
    "fit ok.csv -k 2 --names nowhere.txt": "No such file",
    "fit ok.csv -k 2 --bogus": "No such option: --bogus",
    "fit ok.csv -k 2 --scheme foo": "'foo' is not one of",
    "fit ok.csv -k 2 --gap -1": "Invalid value for '--gap'",
    "fit ok.csv -k 2 --time x": "Invalid value for '--time': x is not a number",
    "fit ok.csv -k 2 --output full": "exists; add --force",
    "fit ok.csv -k 2 --output names.txt": "is a file",
    "fit ok.csv -k 2 --output names.txt/sub": "is a file",
    "report ok.csv -k 2": "Missing option '--output'",
    "report ok.csv -k 2 -o page.txt": "must end with .html",
    "verify certificate.json ok.csv": "certificate.format is missing",
    "verify nowhere.json ok.csv": "does not exist",
    "verify full ok.csv": "not a summary",
    "verify . ok.csv": "no summary.json",
    "path ok.csv --k-max 9": "--k-max = 9",
    "path ok.csv -o path.xls": "must end with .csv or .json",
    "path ok.csv --plot path.doc": "must end with .png",
    "blocks ok.csv -e 1 --max-block-size 2": "not both",
    "blocks ok.csv -e -1": "Invalid value for '--epsilon' / '-e': -1 is less than 0",
    "blocks ok.csv -o blocks.csv": "needs --epsilon",
    "datasets nothing": "is not a data set",
    "datasets wine": "--output wine.csv",
    "bogus": "No such command 'bogus'",
    "--bogus": "No such option",
}


@pytest.mark.parametrize("command", BROKEN)
def test_one_clear_line_and_exit_code_2(here, capsys, command):
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    code = run(command.split())
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("blockspca: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert BROKEN[command] in err
    assert {p: p.stat().st_mtime_ns for p in here.rglob("*")} == before


@pytest.mark.parametrize("words", [["", "-k", "2"], ["ok.csv", "-k", "2", "-o", ""]])
def test_an_empty_argument_is_not_the_folder_one_is_in(here, capsys, words):
    before = sorted(here.iterdir())
    assert run(["fit", *words]) == 2
    assert "an argument is empty; is a variable not set?" in capsys.readouterr().err
    assert sorted(here.iterdir()) == before


def test_a_column_without_a_name_can_be_dropped(here):
    Path("trailing.csv").write_text("a,b,\n1,2,\n3,5,\n")
    assert run(["fit", "trailing.csv", "-k", "1"]) == 0
    assert run(["fit", "trailing.csv", "-k", "1", "--drop", ""]) == 0


def test_corrupt_parquet(here, capsys):
    pytest.importorskip("pyarrow")
    Path("bad.parquet").write_bytes(b"PAR1garbagePAR1")
    assert run(["fit", "bad.parquet", "-k", "1"]) == 2
    assert "not a readable Parquet file" in capsys.readouterr().err


def test_corrupt_h5ad(here, capsys):
    pytest.importorskip("h5py")
    Path("bad.h5ad").write_text("garbage")
    assert run(["fit", "bad.h5ad", "-k", "1"]) == 2
    assert "not a readable h5ad file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["--debug fit nowhere.csv -k 1"])
def test_a_traceback_only_with_debug(here, capsys, command):
    assert run(command.split()) == 2
    assert "Traceback" in capsys.readouterr().err
    assert run([*command.split()[1:], "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_error_of_ours_is_code_1(here, capsys, monkeypatch):
    def fail(*_args, **_options):
        raise KeyError("inside")

    monkeypatch.setattr("blockspca.io.read_table", fail)
    assert run(["fit", "ok.csv", "-k", "1"]) == 1
    err = capsys.readouterr().err
    assert "KeyError" in err
    assert "--debug" in err
    assert err.count("\n") == 1


def test_ctrl_c_while_reading_is_code_130(here, capsys, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockspca.io.read_table", interrupt)
    assert run(["fit", "ok.csv", "-k", "1"]) == 130
    assert capsys.readouterr().err == "blockspca: interrupted.\n"


def test_one_feature_and_columns_left_out_work(here, capsys):
    table(Path("one.csv"), X[:, :1].tolist(), "a")
    assert run(["fit", "one.csv", "-k", "1"]) == 0
    assert run(["fit", "text.csv", "-k", "2", "--drop", "b"]) == 0
    assert run(["fit", "text.csv", "-k", "2", "--index", "b"]) == 0
    assert run(["fit", "gap.csv", "-k", "2", "--missing", "pairwise"]) == 0
    assert "proved optimal" in capsys.readouterr().out


def test_a_memory_limit_says_what_to_pass(here, capsys, monkeypatch):
    from blockspca import io
    from blockspca._validation import MemoryLimitError

    def too_small(*args, **kwargs):
        raise MemoryLimitError("memory_limit = 8 bytes is too small; raise it.")

    monkeypatch.setattr(io, "read_table", too_small)
    assert run(["fit", "ok.csv", "-k", "2"]) == 2
    said = capsys.readouterr().err
    assert said == "blockspca: memory_limit = 8 bytes is too small; raise it.\n"


def test_only_what_an_error_names_becomes_an_option():
    """Who calls a column `k_max` or `scale=True` is to find it in the message."""
    from blockspca._arguments import Argument, Subject, value_error
    from blockspca.cli.errors import in_options

    k_max = "k_max = 3 and limits.time, n_jobs=2, scale=True, missing='pairwise'"
    assert in_options(ValueError(k_max)) == k_max
    n, off = Subject("n_components"), Argument("scale", False)
    said = value_error(f"{n} = 2 of 'n_components': pass {off}.", n, off)
    assert (
        in_options(said) == "--n-components = 2 of 'n_components': leave --scale out."
    )
