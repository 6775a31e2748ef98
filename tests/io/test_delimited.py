"""Text files as people have them: ends, separators, marks, encodings, comments."""

from __future__ import annotations

import gzip
import io
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from blockspca.io import ReadError, ReadNote, Table, read_table


def read(tmp_path: Path, text: str | bytes, name: str = "t.csv", **wanted) -> Table:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, **wanted)


def assert_read_silently(tmp_path: Path, text: str | bytes, **wanted) -> Table:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(tmp_path, text, **wanted)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,3,\n4,5,6,\n",  # rows alone
        "a,b,c,\n1,2,3,\n4,5,6,\n",  # the header, too
        "a,b,c,\n1,2,3\n4,5,6\n",  # the header alone
        "a;b;c\n1;2;3; \n4;5;6;\n",
    ],
)
def test_a_separator_at_the_end_is_nothing(tmp_path, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadNote)
        table = read(tmp_path, text)
    assert table.feature_names == ("a", "b", "c")
    assert table.sample_names is None
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 6]])


def test_a_separator_at_the_end_after_names_of_samples(tmp_path):
    """R's header, of one name fewer, must not be seen in rows that end with a comma."""
    text = "name,a,b\nx,1,2,\ny,3,4,\n"
    with pytest.warns(ReadNote, match="row ends with a separator"):
        table = read(tmp_path, text, index="name")
    assert table.feature_names == ("a", "b")
    assert table.sample_names == ("x", "y")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])
    with pytest.raises(ReadError, match="column 'name' holds text"):
        read(tmp_path, text)


def test_a_separator_at_the_end_without_a_header(tmp_path):
    with pytest.warns(ReadNote, match="row ends with a separator"):
        table = read(tmp_path, "1.5,2,\n4,5.5,\n")
    np.testing.assert_array_equal(table.values, [[1.5, 2], [4, 5.5]])
    with pytest.raises(ReadError, match=r"row 2 has '6' there; name all.*header=False"):
        read(tmp_path, "1.5,2,\n4,5.5,6\n")
    table = read(tmp_path, "1.5,2,\n4,5.5,6\n", header=False)
    np.testing.assert_array_equal(table.values, [[1.5, 2, np.nan], [4, 5.5, 6]])
    with pytest.raises(ReadError, match=r"row 1 ends with a separator, row 2 has '7'"):
        read(tmp_path, "a,b\n1,2,\n4,5,7\n")


@pytest.mark.parametrize("header", [",x,y", "x,y"], ids=["pandas", "R"])
def test_a_first_column_of_names_is_said(tmp_path, header):
    with pytest.warns(ReadNote, match="the first column, 's1', 's2', …, has no name"):
        table = read(tmp_path, header + "\ns1,1,2\ns2,3,4\n")
    assert table.sample_names == ("s1", "s2")
    assert_read_silently(tmp_path, "who,x,y\ns1,1,2\ns2,3,4\n", index="who")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,who\n" + "".join(f"{j * j},{j}\n" for j in range(9)), "column 'who' seems"),
        ("patient_id,x\n17,1\n3,2.5\n99,4\n", "column 'patient_id' seems"),
        ("ID,x,nr\n5,1,3\n6,2.5,1\n7,4,2\n", "columns 'ID', 'nr' seem to number"),
    ],
)
def test_columns_that_number_the_samples(tmp_path, text, said):
    with pytest.warns(ReadNote, match=said) as found:
        table = read(tmp_path, text)
    names = [argument.name for argument in found[0].message.arguments]
    assert names == ["drop", "index"]
    drop = found[0].message.arguments[0].value
    assert set(drop) < set(table.feature_names)
    assert_read_silently(tmp_path, text, drop=drop)


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2\n2,2.5\n3,4\n4,1\n",  # too few to be sure
        "id,y\n1,2\n1,3\n2,3\n",  # some twice
        "id,y\n1.5,2\n1,3\n2,3\n",
        "paid,y\n1,2\n7,3\n2,3\n",
    ],
)
def test_columns_that_do_not(tmp_path, text):
    assert_read_silently(tmp_path, text)


def test_standard_input(monkeypatch):
    for content in (b"a,b\n1,2.5\n3,4\n", gzip.compress(b"a,b\n1,2.5\n3,4\n")):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stdin)
        table = read_table("-")
        assert table.feature_names == ("a", "b")
        np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4]])
    with pytest.raises(ReadError, match=r"- has no rows"):
        read_table("-")
    monkeypatch.setattr(stdin, "isatty", lambda: True, raising=False)


def test_a_terminal_is_not_waited_for(monkeypatch):
    class Terminal:
        buffer = io.BytesIO()

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(ReadError, match="nothing is piped into it"):
        read_table("-")


def test_decimal_commas(tmp_path):
    for text in ("a;b\n1,5;2\n-3;4,25e1\n", "a\tb\n1,5\t2\n-3\t4,25e1\n"):
        table = assert_read_silently(tmp_path, text, decimal=",")
        np.testing.assert_array_equal(table.values, [[1.5, 2], [-3, 42.5]])
    table = assert_read_silently(tmp_path, "1,5;2,5\n3,5;4\n", decimal=",")
    assert table.feature_names is None
    with pytest.raises(
        ReadError, match="leave out the points, as the decimal mark is a"
    ):
        read(tmp_path, "a;b\n1.500;2\n2,5;3\n", decimal=",")
    with pytest.raises(ReadError, match=r"decimals with a point, or add decimal=','"):
        read(tmp_path, "a;b\n1,5;2\n2,5;3\n")
    with pytest.raises(ReadError, match="neither a point nor a comma"):
        read(tmp_path, "a;b\n1,5;2\n", decimal="x")


def test_encodings(tmp_path):
    text = "fée,b\n1,2.5\n3,4\n"
    for encoding in ("latin-1", "cp1252", "utf-16", "utf-8-sig"):
        named = None if encoding.startswith("utf") else encoding
        table = assert_read_silently(tmp_path, text.encode(encoding), encoding=named)
        assert table.feature_names == ("fée", "b")
    with pytest.raises(ReadError, match=r"not UTF-8 text.*encoding='latin-1'"):
        read(tmp_path, text.encode("latin-1"))
    with pytest.raises(ReadError, match="encoding='klingon' is not a known encoding"):
        read(tmp_path, text, encoding="klingon")


def test_lines_that_end_with_a_carriage_return(tmp_path):
    table = assert_read_silently(tmp_path, b"a,b\r1,2.5\r3,4\r")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4]])


@pytest.mark.parametrize(
    "text",
    [
        "a b  c\n1 2.5 3\n  4 5\t6 \n",
        "a|b|c\n1|2.5|3\n4|5|6\n",
        '"a" b c\n1 2.5 3\n4 5 6\n',
    ],
)
@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_white_space_and_bars(tmp_path, text, name):
    table = assert_read_silently(tmp_path, text, name=name)
    assert table.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, [[1, 2.5, 3], [4, 5, 6]])


def test_one_column_with_a_space_in_its_name(tmp_path):
    table = assert_read_silently(tmp_path, "first price\n1\n2.5\n")
    assert table.feature_names == ("first price",)


def test_comments(tmp_path):
    table = assert_read_silently(tmp_path, "# of 2020\n#\na,b\n1,2.5\n3,4\n")
    assert table.feature_names == ("a", "b")
    with pytest.warns(ReadNote, match="1 line.s. that begin with # were left out"):
        table = read(tmp_path, "a,b\n1,2.5\n# a note\n3,4\n")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4]])
    path = tmp_path / "numpy.txt"
    np.savetxt(path, [[1, 2.5], [3, 4]], header="x y")
    with pytest.warns(ReadNote, match="comment above the first row names the columns"):
        table = read_table(path)
    assert table.feature_names == ("x", "y")
    with pytest.raises(ReadError, match="has no rows"):
        read(tmp_path, "# nothing\n")


def test_true_and_false(tmp_path):
    table = assert_read_silently(tmp_path, "a,b\nTrue,2.5\nFALSE,4\n")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [0, 4]])
    assert assert_read_silently(tmp_path, "true,2.5\nfalse,4\n").feature_names is None


def test_marks_of_missing_values(tmp_path):
    text = "a,b\n-999,2.5\n3, missing\n?,1\n"
    table = assert_read_silently(tmp_path, text, na=["-999", "missing", "?"])
    expected = [[np.nan, 2.5], [3, np.nan], [np.nan, 1]]
    np.testing.assert_array_equal(table.values, expected)


def test_a_number_that_means_missing_may_be_written_otherwise(tmp_path):
    text = "a,b\n-99.0,2.5\n3,-99\n4,1\n"
    table = assert_read_silently(tmp_path, text, na=["-99"])
    np.testing.assert_array_equal(table.values, [[np.nan, 2.5], [3, np.nan], [4, 1]])


def test_numbers_that_seem_to_mean_missing(tmp_path):
    text = "a,b,c\n-99,2.5,97\n3,-99,99\n4,1,98\n5,3,99\n"
    words = r"-99 is 2 times a value, in column\(s\) 'a', 'b', and .*na=\['-99'\]"
    with pytest.warns(ReadNote, match=words) as told:
        read(tmp_path, text)
    assert len(told) == 1  # 99 is near to the others
    assert_read_silently(tmp_path, text, na=["-99"])
    assert_read_silently(tmp_path, "a,b\n-99,2.5\n-98,1\n-97,3\n-99,4\n")


def test_numbers_only(tmp_path):
    text = "a,kind,b,day\n1,red,2.5,2020-01-01\n3,blue,4,2020-01-02\n"
    with pytest.warns(ReadNote, match=r"left out: 'kind' \('red'\), 'day' \('2020"):
        table = read(tmp_path, text, numeric_only=True)
    assert table.feature_names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4]])
    with pytest.raises(ReadError, match="numeric_only=True"):
        read(tmp_path, text)
    with pytest.raises(ReadError, match="no column of numbers"):
        read(tmp_path, "a,b\nx,y\n", numeric_only=True)
    with pytest.warns(ReadNote, match="left out: '1'"):
        table = read(tmp_path, "1,red\n2.5,blue\n", numeric_only=True, header=False)
    assert table.feature_names == ("0",)


def test_numbers_only_of_a_parquet_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": [1.0, 2.5], "kind": ["x", "y"]}).to_parquet(path)
    with pytest.warns(ReadNote, match="hold no numbers were left out: kind"):
        table = read_table(path, numeric_only=True)
    assert table.feature_names == ("a",)


def test_what_does_not_apply(tmp_path):
    np.save(tmp_path / "t.npy", np.eye(3))
    for name, value in (("decimal", ","), ("encoding", "utf-8"), ("na", ["x"])):
        with pytest.raises(ReadError, match=rf"{name}=.* does not apply to \.npy"):
            read_table(tmp_path / "t.npy", **{name: value})
    with pytest.raises(TypeError, match="colour"):
        read_table(tmp_path / "t.npy", colour=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n2,?\n3,4\n4,1\n", "na=['?'] if it stands for missing values"),
        (
            "a,b\n1,x\n2,?\n3,4\n4,1\n",
            "na=['?', 'x'] if they stand for missing values",
        ),
        ("a,b\n1,x\n2,x\n3,x\n4,1\n", "index='b' if it names the samples"),
        ("s1,1.5,2\ns2,3,4.5\n", "put a line above it that names them"),
        ("country,1990,1991\nFR,1,2\nIT,2,3\n", "index='country' if it names"),
    ],
)
def test_text_among_numbers_is_told_from_names(tmp_path, text, said):
    file = tmp_path / "data.csv"
    file.write_text(text)
    with pytest.raises(ReadError) as refused:
        read_table(file)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "2001,2002,2003\n1,2,3\n4,5,1\n6,7,8\n",  # above all others
        "2001,2005,2006\n1,2,NA\n4,5,NA\n4,5,1\n",
        "1990,2000,2010\n1,900,3\n1995,5,1\n",  # equal steps
        "10,20\n1,2\n3,4\n",
    ],
)
def test_whole_numbers_above_whole_numbers_are_asked_about(tmp_path, text):
    """Years were read as a sample, which had nearly all the variance."""
    file = tmp_path / "years.csv"
    file.write_text(text)
    with pytest.raises(ReadError, match="may be names or a sample"):
        read_table(file)
    assert read_table(file, header=True).feature_names == tuple(
        text.splitlines()[0].split(",")
    )


@pytest.mark.parametrize(
    "text",
    ["1,2,3\n1,2,3\n4,5,1\n", "1,3,8\n4,1,2\n", "3,2,1\n9,0,0\n4,4,4\n", "1,2\n3,4\n"],
)
def test_whole_numbers_like_the_others_are_a_sample(tmp_path, text):
    assert assert_read_silently(tmp_path, text).feature_names is None


@pytest.mark.parametrize("gap", ["NA", "", ".", "?"])
def test_a_first_row_with_a_gap_is_a_sample(tmp_path, gap):
    """It was taken for names, and the sample was lost without a word."""
    text = f"1.5,{gap},2.5\n2.5,1,3.5\n"
    table = assert_read_silently(tmp_path, text, na=["?"])
    assert table.feature_names is None
    np.testing.assert_array_equal(table.values, [[1.5, np.nan, 2.5], [2.5, 1, 3.5]])
    with pytest.raises(ReadError, match="its first row, 1, NA, 3, may be names or"):
        read(tmp_path, "1,NA,3\n2,4,5\n")
    named = read(tmp_path, "1,NA,3\n2,4,5\n", header=True)
    assert named.feature_names == ("1", "NA", "3")
    with pytest.warns(ReadNote, match="names of the samples"):
        pandas_writes = read(tmp_path, ",0,1\na,2,4\nb,3,5\n")
    assert pandas_writes.feature_names == ("0", "1")


@pytest.mark.parametrize("decimal", [".", ","])
def test_an_underscore_is_no_part_of_a_number(tmp_path, decimal):
    """As it is in Python: sample 1_2 was the number 12."""
    text = "plate;x\n1_1;2\n1_2;3\n"
    with pytest.raises(ReadError, match="column 'plate' holds text, '1_1' in row 1"):
        read(tmp_path, text, decimal=decimal)
    table = read(tmp_path, text, decimal=decimal, index="plate")
    assert table.sample_names == ("1_1", "1_2")
    if decimal == ".":
        with pytest.raises(ReadError, match="leave thousands separators out"):
            read(tmp_path, "a,b\n1_000,2\n3,4\n")


def test_of_two_columns_of_one_name_the_text_is_left_out(tmp_path):
    with pytest.warns(ReadNote, match=r"left out: 'a' \('x'\)"):
        table = read(tmp_path, "a,b,a\n1,2,x\n3,5,y\n", numeric_only=True)
    assert table.feature_names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 5]])
