import gzip
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from leafwise.data.binning import cut_points, interval_labels
from leafwise.data.encoding import read, write
from leafwise.data.table import MISSING, Table, Variable
from leafwise.data.writing import write_columns


def rows(table: Table) -> list[tuple[str, ...]]:
    """The cases as labels."""
    cells = [[v.labels[code] for code in codes] for v, codes in zip(table.variables, table.codes, strict=True)]
    return list(zip(*cells, strict=True))


def labels(table: Table) -> dict[str, tuple[str, ...]]:
    return {variable.name: variable.labels for variable in table.variables}


def saved(folder: Path, text: str | bytes, name: str = "cases.csv") -> Path:
    data = text if isinstance(text, bytes) else text.encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


# Text files


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV", "a.data", "a", "a.txt", "a.txt.gz"])
def test_comma_files(tmp_path: Path, name: str) -> None:
    table = read(saved(tmp_path, "rain,sun\nno,yes\nyes,no\nno,no\n", name))
    assert labels(table) == {"rain": ("no", "yes"), "sun": ("no", "yes")}
    assert rows(table) == [("no", "yes"), ("yes", "no"), ("no", "no")]
    assert table.codes.dtype == np.uint8
    assert table.codes.flags.c_contiguous


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.txt", "a.txt.gz"])
def test_tab_files(tmp_path: Path, name: str) -> None:
    table = read(saved(tmp_path, "rain\tsun\nno, never\tyes\nyes\tno\n", name))
    assert labels(table) == {"rain": ("no, never", "yes"), "sun": ("no", "yes")}


def test_a_path_may_be_text(tmp_path: Path) -> None:
    assert read(str(saved(tmp_path, "a\n1\n"))).names == ("a",)


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "0,1\n1,1\n"), header=False)
    assert table.names == ("x1", "x2")
    assert rows(table) == [("0", "1"), ("1", "1")]


def test_quoted_cells_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    table = read(saved(tmp_path, '"a, b","c\nd"\n"x,1","say ""hi"""\ny,"two\nlines"\n'))
    assert table.names == ("a, b", "c\nd")
    assert rows(table) == [("x,1", 'say "hi"'), ("y", "two\nlines")]


@pytest.mark.parametrize("header", [True, False])
def test_a_byte_order_mark_is_no_text(tmp_path: Path, header: bool) -> None:
    table = read(saved(tmp_path, b"\xef\xbb\xbfa,b\na,2\n"), header=header)
    assert table.names == (("a", "b") if header else ("x1", "x2"))
    assert table.variables[0].labels == ("a",)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_blank_lines(tmp_path: Path, end: str) -> None:
    table = read(saved(tmp_path, end.join(["", "a,b", "", "1,2", "", "3,4", "", ""])))
    assert rows(table) == [("1", "2"), ("3", "4")]


def test_blanks_around_names_and_cells_are_dropped(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "a , b\n x,1\nx , 2\ny, ?\n"), missing="state")
    assert labels(table) == {"a": ("x", "y"), "b": ("1", "2", MISSING)}


def test_many_chunks_agree_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a,b\n" + "".join(f"{i * 7 % 50},{'uvw'[i % 3]}\n" for i in range(2000))
    whole = read(saved(tmp_path, text))
    monkeypatch.setattr("leafwise.data.text_files.BLOCK_BYTES", 100)
    parts = read(saved(tmp_path, text))
    assert parts.variables == whole.variables
    assert (parts.codes == whole.codes).all()


def test_a_wide_file_of_bits(tmp_path: Path) -> None:
    bits = np.random.default_rng(1).integers(0, 2, (33_000, 190), dtype=np.uint8)
    lines = np.full((33_000, 380), ord(","), dtype=np.uint8)
    lines[:, ::2] = bits + ord("0")
    lines[:, -1] = ord("\n")
    path = tmp_path / "bits.csv.gz"
    path.write_bytes(gzip.compress(lines.tobytes(), 1))
    table = read(path, header=False)
    assert (table.codes == bits.T).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'.*cases.csv' is empty"),
        ("\n\n", "'.*cases.csv' is empty"),
        ("a,b\n", "has a header and no cases"),
        ("a,b\n\n\n", "has a header and no cases"),
        ("a,b\n1,2\n\n3\n", r"line 4 of '.*' has 1 cell, where the first has 2"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 of '.*' has 3 cells, where the first has 2"),
        ("a,b,a\n1,2,3\n", "2 columns of '.*' are called 'a', .*: rename them, or if the first .* pass header=False$"),
        ("a,,c\n1,2,3\n", "column 2 of '.*' has an empty name"),
        ("a, \n1,2\n", "column 2 of '.*' has an empty name"),
        (b"a,b\n\x81,2\n", r"is neither UTF-8, UTF-16 nor Windows-1252: say which it is with encoding='latin-1'"),
        ("a,b\n1,\0\n", "line 2 of '.*' holds a NUL byte"),
        ('a,b\r1,"2\r3,4\r5,6\r', "a quote in '.*' is never closed.*from line 2 on"),
        ('a,b\n1,"2\n3,4\n5,"6\n7,8\n', "a quote in '.*' is never closed"),
        ('a,b\n1,"2\n3,4\n5,6\n', "a quote in '.*' is never closed"),
    ],
)
def test_a_bad_text_file_is_one_clear_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(saved(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_bad_bytes_far_down_the_file(tmp_path: Path) -> None:
    data = b"a,b\n" + b"1,2\n" * 50_000
    assert labels(read(saved(tmp_path, data + b"\xe9,2\n")))["a"] == ("1", "é")
    with pytest.raises(ValueError, match="neither UTF-8"):
        read(saved(tmp_path, data + b"\x81,2\n"))


def test_a_header_whose_quote_never_ends(tmp_path: Path) -> None:
    for n in (2, 50_000):
        with pytest.raises(ValueError, match=r"a quote in '.*' is never closed, .* from line 1 on a cell runs over"):
            read(saved(tmp_path, '"a,b\n' + "1,2\n" * n))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = saved(tmp_path, "a\n1\n")
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(ValueError, match=r"cannot be read \(Permission denied\)"):
        read(path)


def test_an_empty_file_without_header(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is empty"):
        read(saved(tmp_path, ""), header=False)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_no_such_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"^no file '.*{name}': check the path$"):
        read(tmp_path / name)


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder without data files: put some there"):
        read(tmp_path)


@pytest.mark.parametrize("data", [b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 99)[:-9], b""])
def test_a_broken_gzip_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"is not a sound gzip file|is empty") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"a,b\n1,2\n"])
def test_a_broken_parquet_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match="is not a sound Parquet file") as caught:
        read(saved(tmp_path, data, "a.parquet"))
    assert type(caught.value) is ValueError


# Missing cells


@pytest.mark.parametrize("token", ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", " ?", '""'])
def test_tokens_for_missing_in_text_files(tmp_path: Path, token: str) -> None:
    path = saved(tmp_path, f"a,b\n1,x\n{token},y\n")
    with pytest.raises(
        ValueError, match=r"missing cells in column 'a' \(1\): pass missing='infer'.*missing='state'.*missing='drop'"
    ):
        read(path)
    table = read(path, missing="state")
    assert table.variables == (Variable("a", ("1", MISSING), missing=True), Variable("b", ("x", "y")))
    assert table.codes.tolist() == [[0, 1], [0, 1]]
    dropped = read(path, missing="drop")
    assert labels(dropped) == {"a": ("1",), "b": ("x",)}  # states are those of the rows that stay
    assert dropped.n_cases == 1


def test_a_quoted_token_is_a_label(tmp_path: Path) -> None:
    assert labels(read(saved(tmp_path, 'a,b\n"NA",1\n"?",2\n')))["a"] == ("?", "NA")


def test_the_error_names_five_columns_and_counts_the_others(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b,c,d,e,f,g,h\n" + ",,,,,,,1\n" * 2 + "1,,,,,,,1\n")
    with pytest.raises(ValueError, match=r"columns 'a' \(2\), 'b' \(3\), .*'e' \(3\) and 2 more columns: pass"):
        read(path)


def test_dropping_every_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every row has a missing cell"):
        read(saved(tmp_path, "a,b\n1,\n,2\n"), missing="drop")


def test_a_column_of_missing_cells_has_one_state(tmp_path: Path) -> None:
    assert labels(read(saved(tmp_path, "a,b\n1,\n2,\n"), missing="state"))["b"] == (MISSING,)


def test_blank_lines_in_a_single_column(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "a\n1\n\n2\n\n\n"), missing="state")
    assert rows(table) == [("1",), (MISSING,), ("2",)]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"f": [1.0, np.nan, 2.5], "s": ["u", "v", None], "i": pd.array([1, None, 3], dtype="Int64")}),
        pl.DataFrame({"f": [1.0, float("nan"), 2.5], "s": ["u", "v", None], "i": [1, None, 3]}),
        pa.table({"f": [1.0, None, 2.5], "s": ["u", "v", None], "i": [1, None, 3]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_nulls_and_nan_in_frames(frame: Any) -> None:
    with pytest.raises(ValueError, match=r"columns 'f' \(1\), 's' \(1\), 'i' \(1\)"):
        read(frame)
    table = read(frame, missing="state", bins=None)
    assert rows(table) == [("1", "u", "1"), (MISSING, "v", MISSING), ("2.5", MISSING, "3")]


def test_a_label_that_looks_like_the_missing_state() -> None:
    frame = pa.table({"a": [MISSING, None]})
    with pytest.raises(ValueError, match=r"has missing cells and the label '\(missing\)'"):
        read(frame, missing="state")
    assert labels(read(frame, missing="drop")) == {"a": (MISSING,)}


# Labels and their order


def test_numbers_are_ordered_as_numbers_and_names_by_name(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "n,s,m,e\n10,b10,10,1e3\n9,b9,x,-2\n-1.5,a,9,0.5\n"), bins=None)
    assert labels(table) == {
        "n": ("-1.5", "9", "10"),
        "s": ("a", "b10", "b9"),
        "m": ("10", "9", "x"),
        "e": ("-2", "0.5", "1e3"),
    }


def test_infinite_words_and_grouped_digits_are_names(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "a,b\n10,10\n9,9\ninf,1_0\n"))
    assert labels(table) == {"a": ("10", "9", "inf"), "b": ("10", "1_0", "9")}


def test_long_whole_numbers_keep_their_order(tmp_path: Path) -> None:
    big = ["100000000000000000", "99999999999999999", "100000000000000001"]
    table = read(saved(tmp_path, "a\n" + "\n".join(big) + "\n"))
    assert table.variables[0].labels == (big[1], big[0], big[2])


def test_labels_are_kept_as_written_unless_they_are_whole_floats(tmp_path: Path) -> None:
    table = read(saved(tmp_path, "zip,f,v\n007,1.0,1.0\n012,2.50,x\n1,1,y\n"), bins=None)
    assert labels(table) == {"zip": ("1", "007", "012"), "f": ("1", "2.50"), "v": ("1.0", "x", "y")}


def test_a_frame_and_its_file_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "whole": [1.0, 2.0, 10.0, 2.0],
            "gaps": [1.0, np.nan, 3.0, 1e16],
            "float": [0.1, 1e-7, 2.5, 0.1],
            "int": [3, 20, 100, 3],
            "text": ["b", "a", "B", "b"],
        }
    )
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    wanted = read(frame, missing="state")
    assert labels(wanted)["whole"] == ("1", "2", "10")
    assert labels(wanted)["gaps"][:2] == ("1", "3")
    for other in (tmp_path / "f.csv", tmp_path / "f.parquet", pl.from_pandas(frame), pa.table(frame)):
        table = read(other, missing="state")
        assert table.codes.tolist() == wanted.codes.tolist()
        if not isinstance(other, Path) or other.suffix == ".parquet":
            assert table.variables == wanted.variables


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_booleans_are_false_and_true(frame: Any) -> None:
    assert rows(read(frame({"a": [True, False]}))) == [("true",), ("false",)]
    assert labels(read(frame({"a": [True, False]}))) == {"a": ("false", "true")}


def test_narrow_floats_have_short_labels() -> None:
    assert labels(read(pa.table({"f": pa.array([0.1, 3.0], pa.float32())}), bins=None)) == {"f": ("0.1", "3")}


def test_dates_can_be_states_by_their_text() -> None:
    table = read(pa.table({"d": pa.array([19_000, 18_000], pa.date32())}), states="d")
    assert labels(table) == {"d": ("2019-04-14", "2022-01-08")}


def test_categoricals_have_their_observed_values_and_keep_an_order_of_their_own() -> None:
    sizes = ["small", "medium", "large", "huge"]
    cells = ["large", "small", "large", "medium"]
    frame = pd.DataFrame(
        {
            "ordered": pd.Categorical(cells, categories=sizes, ordered=True),
            "plain": pd.Categorical(cells, categories=sizes),
            "numbers": pd.Categorical([10, 9, 10, 9], categories=[10, 9, 8]),
        }
    )
    assert labels(read(frame)) == {
        "ordered": ("small", "medium", "large"),
        "plain": ("large", "medium", "small"),
        "numbers": ("9", "10"),
    }
    assert [row[:2] for row in rows(read(frame))] == [(cell, cell) for cell in cells]
    enum = pl.DataFrame({"a": pl.Series(cells, dtype=pl.Enum(sizes)), "b": pl.Series(cells, dtype=pl.Categorical)})
    assert labels(read(enum)) == {"a": ("small", "medium", "large"), "b": ("large", "medium", "small")}


def test_chunks_with_dictionaries_of_their_own() -> None:
    cells = pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()])
    assert rows(read(pa.table({"a": cells}))) == [("b",), ("a",), ("c",), ("b",)]


def test_the_index_of_a_pandas_frame_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0, 1, 0]})
    frame[frame.a > 1].to_parquet(tmp_path / "a.parquet")
    for source in (frame[frame.a > 1], frame.set_index("b"), tmp_path / "a.parquet"):
        assert "__index_level_0__" not in read(source).names
    assert read(frame.set_index("b")).names == ("a",)


def test_a_stream_that_is_no_known_frame() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"a": ["x", "y"]}).__arrow_c_stream__(requested_schema)

    assert rows(read(Stream())) == [("x",), ("y",)]


@pytest.mark.parametrize("n_states", [256, 257, 65_535])
def test_up_to_65535_states(n_states: int) -> None:
    table = read(np.arange(n_states)[::-1].reshape(-1, 1), states="x1")
    assert table.codes.dtype == (np.uint8 if n_states == 256 else np.uint16)
    assert table.codes[0].tolist() == list(range(n_states))[::-1]


def test_too_many_states() -> None:
    numbers, words = pa.array(range(70_000)), pa.array([f"w{i}" for i in range(70_000)])
    message = "column 'age' has 70000 distinct values, more than the limit of 65535: bin it with bins={'age': 8}"
    with pytest.raises(ValueError, match=message):
        read(pa.table({"age": numbers}), states="age")
    with pytest.raises(ValueError, match=r"column 'w' has 70000 distinct values.*group its labels, or drop it"):
        read(pa.table({"w": words}), states="w")
    with pytest.raises(ValueError, match="65535 distinct"):
        read(pa.table({"age": [*range(65_535), None]}), missing="state", bins=None)
    assert read(pa.table({"age": numbers}), bins={"age": 8}).variables[0].n_states == 8


# Frames and arrays


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": []}), "the frame has no rows"),
        (pl.DataFrame({"a": []}), "the frame has no rows"),
        (pd.DataFrame(), "the frame has no columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "(?i)duplicate|are called 'a'"),
        (
            pd.DataFrame({"a": pd.Categorical(pd.period_range("2024-01", periods=2, freq="M"))}),
            "column 'a' holds dictionary.*period.*, which has no labels: turn it into text",
        ),
        (pa.table([[1], [2]], names=["a", "a"]), "2 columns of the frame are called 'a', .*: rename them$"),
        (pa.table([[1], [2]], names=["a", ""]), "column 2 of the frame has an empty name"),
        (pd.DataFrame({"a": [1, "x"]}), "DataFrame cannot be read .*column a.*pass a frame .* one plain type each"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names.*names of their own"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "Sparse.*one plain type each"),
        (pd.Series([0, 1]), r"Series cannot be read.*series.to_frame\(\)"),
        (pa.table({"a": [[1]]}), "column 'a' holds list.*turn it into text or numbers"),
        (pa.table({"a": [b"\xff"]}), "column 'a' holds binary"),
        (pl.Series([1, 2]), "Series cannot be read"),
    ],
)
def test_a_bad_frame_is_one_clear_line(frame: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(frame)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([[10, 0], [9, 0]]), [("10", "0"), ("9", "0")]),
        (np.array([[10, 0], [9, 0]], np.uint8), [("10", "0"), ("9", "0")]),
        (np.array([[10, 0], [9, 0]], ">i4"), [("10", "0"), ("9", "0")]),
        (np.asfortranarray(np.array([[10, 0], [9, 0]])), [("10", "0"), ("9", "0")]),
        (np.array([[1.0, 0.5], [2.0, np.nan]]), [("1", "0.5"), ("2", MISSING)]),
        (np.array([[1.0, 0.5], [2.0, np.nan]], np.longdouble), [("1", "0.5"), ("2", MISSING)]),
        (np.array([[True, False], [False, False]]), [("true", "false"), ("false", "false")]),
        (np.array([["b", "x"], ["a", ""]]), [("b", "x"), ("a", MISSING)]),
        (np.array([[b"b", b"x"], [b"a", b"y"]]), [("b", "x"), ("a", "y")]),
        (np.array([[1, "x"], [None, "y"]], object), [("1", "x"), (MISSING, "y")]),
        (np.array([[1, None], ["x", True], [2.0, 2.5]], object), [("1", MISSING), ("x", "true"), ("2", "2.5")]),
        (np.array([["u", np.nan], [3, pd.NA]], object), [("u", MISSING), ("3", MISSING)]),
        (np.array([["u", pd.NaT], [3, 1], [pd.NaT, "v"]], object), [("u", MISSING), ("3", "1"), (MISSING, "v")]),
        (np.array([["u"], [np.datetime64("NaT")], [np.timedelta64("NaT")]], object), [("u",), (MISSING,), (MISSING,)]),
        (np.array([["u", pd.NaT], [3, np.datetime64("NaT")]], object).T, [("u", "3"), (MISSING, MISSING)]),
        (np.array([["u"], [3], [Decimal("NaN")]], object), [("u",), ("3",), (MISSING,)]),
        (np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]]), [("1", MISSING), ("3", "4")]),
        (np.array([["2020-01-02"], ["2020-01-01"]], "datetime64[D]"), [("2020-01-02",), ("2020-01-01",)]),
    ],
)
def test_arrays(array: np.ndarray, wanted: list[tuple[str, ...]]) -> None:
    table = read(array, missing="state", states="*")
    assert rows(table) == wanted
    assert table.names == ("x1", "x2")[: table.n_variables]


def test_integers_in_an_array_are_ordered_as_numbers() -> None:
    assert read(np.array([[10], [-3], [9]])).variables[0].labels == ("-3", "9", "10")


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (np.arange(3), ValueError, r"1 dimensions, not 2 .*reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), ValueError, "3 dimensions, not 2"),
        (np.zeros((0, 3)), ValueError, "the array has no rows"),
        (np.zeros((3, 0)), ValueError, "the array has no columns"),
        (np.zeros((2, 2), complex), TypeError, "array of complex128 cannot be read: pass integers"),
        (np.array([["2020-01-01T05"]], "datetime64[h]"), ValueError, r"column 'x1' of the array \(datetime64\[h\]\)"),
        (np.array([["\ud800"]]), ValueError, "column 'x1' of the array .* plain text"),
        (np.array([["\ud800"]], object), ValueError, "column 'x1' of the array .* plain text"),
        (
            [[1, 2]],
            TypeError,
            "data of type list cannot be read: pass a path or several, a pandas, polars or Arrow frame",
        ),
        (None, TypeError, "data of type NoneType"),
    ],
)
def test_what_is_no_table(source: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(source)


@pytest.mark.parametrize("text", ["a\n1\n", "a,b\n1,2\n", "a\nx\nx\n"])
def test_one_column_one_row_and_constant_columns(tmp_path: Path, text: str) -> None:
    table = read(saved(tmp_path, text))
    assert all(variable.n_states == 1 for variable in table.variables)
    assert not table.codes.any()


def test_a_table_is_returned_as_it_is() -> None:
    table = read(np.array([[0, 1], [1, 1]]))
    assert read(table) is table
    assert read(table, missing="drop") is table
    assert read(table, variables=table.variables) is table
    with pytest.raises(ValueError, match="a Table is encoded already"):
        read(table, bins=2)


# Bins


def test_quantile_bins(tmp_path: Path) -> None:
    table = read(np.arange(1, 13).reshape(-1, 1), bins=3)
    variable = table.variables[0]
    assert variable.cuts == (5.0, 9.0)
    assert variable.labels == ("< 5", "5 to 9", ">= 9")
    assert table.codes[0].tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_uniform_bins() -> None:
    table = read(np.array([[0.0], [1.0], [2.5], [10.0]]), bins=4, binning="uniform")  # 4 values: no need
    assert table.variables[0].cuts == ()
    table = read(np.array([[0.0], [1.0], [2.5], [10.0]]), bins={"x1": 4}, binning="uniform")
    assert table.variables[0].cuts == (2.5, 5.0, 7.5)
    assert table.variables[0].labels == ("< 2.5", "2.5 to 5", "5 to 7.5", ">= 7.5")
    assert table.codes[0].tolist() == [0, 0, 1, 3]


def test_a_count_of_bins_is_for_numeric_columns_with_more_values() -> None:
    frame = pa.table({"few": [1, 2, 3] * 4, "many": list(range(12)), "word": [f"w{i}" for i in range(12)]})
    table = read(frame, bins=3, states="word")
    assert [variable.n_states for variable in table.variables] == [3, 3, 12]
    assert [len(variable.cuts) for variable in table.variables] == [0, 2, 0]


def test_a_mapping_bins_what_it_names_and_leaves_the_others_to_auto(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b,c\n" + "".join(f"{i % 7}.5,{i},{i * 7 % 11}\n" for i in range(11)))
    assert [v.n_states for v in read(path, bins={"b": 4, "c": None}).variables] == [2, 4, 11]


def test_heavy_ties_give_fewer_bins_and_none_is_empty() -> None:
    table = read(np.array([0] * 92 + [5, 6, 7, 8] * 2).reshape(-1, 1), bins={"x1": 4})
    assert table.variables[0].labels == ("< 5", ">= 5")
    assert np.bincount(table.codes[0]).tolist() == [92, 8]
    table = read(np.array([1, 2, 2, 2, 2, 2, 2, 2, 2, 3]).reshape(-1, 1), bins={"x1": 5})
    assert table.variables[0].n_states == 3


@pytest.mark.parametrize("binning", ["quantile", "uniform"])
def test_a_constant_column_ends_with_one_state(binning: str) -> None:
    variable = read(np.full((5, 1), 7.0), bins={"x1": 4}, binning=binning).variables[0]
    assert variable == Variable("x1", ("7",))


def test_missing_cells_of_a_binned_column_are_the_last_state() -> None:
    table = read(np.array([[1.0], [2.0], [np.nan], [4.0]]), bins={"x1": 2}, missing="state")
    assert table.variables[0] == Variable("x1", ("< 2", ">= 2", MISSING), cuts=(2.0,), missing=True)
    assert table.codes[0].tolist() == [0, 1, 2, 1]


def test_dropped_rows_do_not_move_the_cuts() -> None:
    frame = pa.table({"a": [1, 2, 3, 4, 100, 200], "b": ["x"] * 4 + [None, None]})
    assert read(frame, bins={"a": 2}, missing="drop").variables[0].cuts == (3.0,)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40),
    st.integers(2, 9),
    st.sampled_from(["quantile", "uniform"]),
)
def test_law_of_bins(values: list[float], n_bins: int, binning: str) -> None:
    distinct, counts = np.unique(np.array(values), return_counts=True)
    cuts = cut_points(distinct, counts, n_bins, binning)
    assert len(cuts) < n_bins
    assert all(np.isfinite(cuts))
    assert all(low < high for low, high in pairwise(cuts))
    assert bool(cuts) or len(distinct) == 1 or binning == "uniform"
    if binning == "quantile":
        assert len(set(np.searchsorted(cuts, distinct, side="right").tolist())) == len(cuts) + 1
    if cuts:
        names = interval_labels(cuts)
        assert len(set(names)) == len(names) == len(cuts) + 1


def test_no_uniform_bin_begins_at_the_smallest_value() -> None:
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert cut_points(values, np.array([1, 1]), 4, "uniform") == (values[1],)


def test_cuts_that_differ_little_have_labels_that_differ() -> None:
    cuts = (0.1, float(np.nextafter(0.1, 1)), 0.2)
    assert len(set(interval_labels(cuts))) == 4
    assert interval_labels((10 / 3, 20 / 3)) == ("< 3.33333", "3.33333 to 6.66667", ">= 6.66667")
    assert interval_labels((0.12345671, 0.12345682))[1] == "0.1234567 to 0.1234568"
    assert interval_labels((1234567.0,)) == ("< 1234567", ">= 1234567")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bins": 1}, ValueError, "fewer than 2 bins"),
        ({"bins": {"a": 1}}, ValueError, "fewer than 2 bins"),
        ({"bins": True}, TypeError, "is not a count of bins"),
        ({"bins": 2.5}, TypeError, "is not a count of bins"),
        ({"bins": {"z": 3}}, ValueError, r"bins name 'z', but the columns are 'a', 'w'"),
        ({"bins": {"w": 3}}, ValueError, r"column 'w' is not numeric \(it has 'u', 'v'\)"),
        ({"binning": "kmeans"}, ValueError, "binning='kmeans' is not known: use 'bayes', 'quantile' or 'uniform'"),
        ({"missing": "ignore"}, ValueError, "missing='ignore' is not known: use 'error', 'state', 'drop', 'infer' or"),
        ({"bins": 2, "variables": (Variable("a", ("1",)),)}, ValueError, "bins and variables were both given"),
        ({"variables": ()}, ValueError, "variables is empty"),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(pa.table({"a": [1, 2, 3], "w": ["u", "v", "1"]}), **options)


# New data and known variables

KNOWN = (
    Variable("colour", ("blue", "red", "green")),
    Variable("age", ("< 30", "30 to 50", ">= 50"), cuts=(30.0, 50.0)),
    Variable("n", ("1", "2", "10", MISSING), missing=True),
)


def test_new_data_take_the_known_states(tmp_path: Path) -> None:
    path = saved(tmp_path, "n,extra,age,colour\n10,q,29.9,red\n1.0,,30,blue\n,q,-5,red\n?,q,1e9,green\n")
    table = read(path, variables=KNOWN)
    assert table.variables == KNOWN
    assert table.codes.tolist() == [[1, 0, 1, 2], [0, 1, 0, 2], [2, 0, 3, 3]]


@pytest.mark.parametrize(
    ("written", "cells", "codes"),
    [
        (["0.50", "1.00", "1.50"], [0.5, 1.0, 1.5], [0, 1, 2]),
        (["0.50", "1.00", "1.50"], ["1.5", "1", ".5"], [2, 1, 0]),
        (["-1", "+1"], [1, -1], [1, 0]),
        (["1e3", "20"], [20, 1000], [0, 1]),  # in numeric order
        (["007", "12"], ["12.0", "007"], [1, 0]),
    ],
)
def test_a_number_is_a_state_however_it_is_written(
    tmp_path: Path, written: list[str], cells: list[Any], codes: list[int]
) -> None:
    known = read(saved(tmp_path, "\n".join(["a", *(label for label in written * 4)]))).variables
    assert read(pa.table({"a": cells}), variables=known).codes.tolist() == [codes]


@pytest.mark.parametrize(
    ("states", "cell"),
    [
        ([2**60, 2**60 + 2], 2**60 + 1),  # alike as doubles
        (["007", "12"], 7),  # a code is no number
        (["1.00", "1.000"], 1),  # of which both might be meant
    ],
)
def test_a_number_is_no_state_that_may_be_another(states: list[Any], cell: int) -> None:
    known = (Variable("a", tuple(map(str, states))),)
    with pytest.raises(ValueError, match=f"1 cell with unseen labels .'{cell}'"):
        read(pa.table({"a": [cell]}), variables=known)


def test_new_data_without_names_go_by_position(tmp_path: Path) -> None:
    cells = [["red", "29", "2"], ["green", "50", "10"]]
    wanted = [[1, 2], [0, 2], [1, 2]]
    path = saved(tmp_path, "\n".join(",".join(row) for row in cells))
    assert read(path, header=False, variables=KNOWN).codes.tolist() == wanted
    assert read(np.array(cells), variables=KNOWN).codes.tolist() == wanted
    with pytest.raises(ValueError, match="the array has 2 columns without names, where 3 variables are known"):
        read(np.array(cells)[:, :2], variables=KNOWN)


def test_columns_that_are_needed_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"lacks columns 'colour', 'n', which the variables need \(it has 'age', 'x'\)"
    ):
        read(saved(tmp_path, "age,x\n1,2\n"), variables=KNOWN)
    with pytest.raises(ValueError, match=r": add them, or if it has no header pass header=False$"):
        read(saved(tmp_path, "age,x\n1,2\n"), variables=KNOWN)
    with pytest.raises(ValueError, match=r": add them$"):
        read(pa.table({"age": [1], "x": [2]}), variables=KNOWN)


def test_unseen_labels_are_named_and_counted() -> None:
    frame = pa.table({"colour": ["red", "pink", "gold", "pink", "grey", "teal"], "age": [1] * 6, "n": [1] * 6})
    message = (
        r"column 'colour' has 5 cells with unseen labels \('pink', 'gold', 'grey' and 1 more\); "
        r"its states are 'blue', 'red', 'green'"
    )
    with pytest.raises(ValueError, match=message):
        read(frame, variables=KNOWN)


def test_long_labels_are_cut_short_in_messages() -> None:
    with pytest.raises(ValueError, match=f"unseen labels .'{'z' * 37}[.][.][.]'"):
        read(pa.table({"a": ["z" * 1000]}), variables=(Variable("a", ("y",)),))


def test_many_known_states_are_not_all_listed() -> None:
    variable = Variable("a", tuple(map(str, range(100))))
    with pytest.raises(
        ValueError, match=r"1 cell with unseen labels \('100'\); .* '0', '1', '2', '3', '4' and 95 more"
    ):
        read(pa.table({"a": [100, 5]}), variables=(variable,))


def test_unseen_labels_in_dropped_rows_do_no_harm() -> None:
    frame = pa.table({"colour": ["red", "pink"], "age": [1, None], "n": [1, 1]})
    assert read(frame, variables=KNOWN, missing="drop").n_cases == 1


def test_a_binned_variable_wants_numbers() -> None:
    frame = pa.table({"colour": ["red"] * 3, "age": ["31", "old", "inf"], "n": [1] * 3})
    with pytest.raises(ValueError, match=r"column 'age' is binned and has 2 cells other than numbers \('old', 'inf'\)"):
        read(frame, variables=KNOWN)


def test_missing_cells_where_the_variable_has_no_such_state() -> None:
    frame = pa.table({"colour": ["red", None, "blue"], "age": [1, 2, 3], "n": [None, 1, 2]})
    with pytest.raises(ValueError, match=r"missing cells in column 'colour' \(1\): pass missing='unknown'"):
        read(frame, variables=KNOWN)
    with pytest.raises(ValueError, match=r"'colour' \(1\), whose variables have no missing state"):
        read(frame, variables=KNOWN, missing="state")
    table = read(frame, variables=KNOWN, missing="drop")
    assert table.codes.tolist() == [[1, 0], [0, 0], [3, 1]]  # the missing n stays: it has a state
    table = read(frame, variables=KNOWN, missing="unknown")
    assert table.variables == (KNOWN[0].with_missing, *KNOWN[1:])
    assert table.codes[0].tolist() == [1, KNOWN[0].n_states, 0]


def test_a_binned_variable_with_a_missing_state() -> None:
    known = Variable("a", ("< 2", ">= 2", MISSING), cuts=(2.0,), missing=True)
    assert read(np.array([[1.0], [np.nan], [2.0]]), variables=(known,)).codes.tolist() == [[0, 2, 1]]


def test_cuts_learned_from_one_file_hold_for_another(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(200, 1))
    learned = read(values[:100], bins=5)
    again = read(values[:100], variables=learned.variables)
    assert (again.codes == learned.codes).all()
    new = read(values[100:], variables=learned.variables)
    assert (new.codes[0] == np.searchsorted(learned.variables[0].cuts, values[100:, 0], side="right")).all()


def test_codes_stay_wide_when_new_data_are_few() -> None:
    variable = Variable("a", tuple(map(str, range(300))))
    table = read(pa.table({"a": [299]}), variables=(variable,))
    assert table.codes.dtype == np.uint16
    assert table.codes.tolist() == [[299]]


def test_a_table_meets_known_variables() -> None:
    frame = pa.table({"n": [2, None], "colour": ["green", "red"], "age": [60, 20]})
    table = read(read(frame, missing="state"), variables=KNOWN)
    assert table.codes.tolist() == [[2, 1], [2, 0], [1, 3]]
    binned = read(table, variables=KNOWN[1:])  # intervals are known by their labels too
    assert binned.codes.tolist() == [[2, 0], [1, 3]]


# Tables to files


def nasty() -> Table:
    frame = pa.table(
        {
            "a, b": ["x,1", 'say "hi"', "two\nlines", "NA", "?"],
            "number": [10, 9, None, 0.5, 9],
            "tab\there": ["u\tv", "é ü", "'", "null", "#"],
            "bin": [1, 2, 3, 4, None],
        }
    )
    return read(frame, missing="state", bins={"bin": 2})


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.txt", "a.parquet", "a"])
def test_written_labels_are_read_back(tmp_path: Path, name: str) -> None:
    table = nasty()
    write(table, tmp_path / name)
    again = read(tmp_path / name, missing="state")
    assert again.names == table.names
    assert rows(again) == rows(table)
    known = read(tmp_path / name, variables=table.variables)
    assert (known.codes == table.codes).all()
    assert [path.name for path in tmp_path.iterdir()] == [name]


CELLS = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["NA", "?", "1.0", "1", "a,b", '"', " x ", "\r\n"]))


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.sampled_from(["a.csv", "a.tsv.gz", "a.parquet"]))
def test_law_any_labels_are_read_back(cells: list[tuple[str | None, str | None]], name: str) -> None:
    columns = [pa.array(column, pa.string()) for column in zip(*cells, strict=True)]
    for width in (1, 2):
        table = read(pa.table(columns[:width], names=["a", "b"][:width]), missing="state")
        with TemporaryDirectory() as folder:
            write(table, Path(folder) / name)
            again = read(Path(folder) / name, missing="state")
        assert rows(again) == rows(table)
        assert labels(again) == labels(table)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt.gz"])
@pytest.mark.parametrize("names", [("a;b",), ("a|b",), ("a;b", "c|d"), ("a;b", "c,d"), ("b c;", "e")])
def test_names_with_other_signs_are_read_back(tmp_path: Path, names: tuple[str, ...], name: str) -> None:
    table = read(pa.table([pa.array(["x;y", "z|w"])] * len(names), names=names))
    write(table, tmp_path / name)
    again = read(tmp_path / name)
    assert (again.names, rows(again)) == (names, rows(table))
    write_columns({name: ["x;y", "z|w"] for name in names}, tmp_path / name)
    assert read(tmp_path / name).names == names


def test_parquet_keeps_the_order_of_states(tmp_path: Path) -> None:
    table = read(np.arange(12).reshape(-1, 1), bins=3)
    assert sorted(table.variables[0].labels) != list(table.variables[0].labels)
    write(table, tmp_path / "a.parquet")
    assert labels(read(tmp_path / "a.parquet")) == labels(table)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.parquet"])
def test_a_single_column_with_missing_cells_is_read_back(tmp_path: Path, name: str) -> None:
    table = read(pa.table({"a": ["x", None, "y", None]}), missing="state")
    write(table, tmp_path / name)
    assert rows(read(tmp_path / name, missing="state")) == [("x",), (MISSING,), ("y",), (MISSING,)]


def test_what_is_written(tmp_path: Path) -> None:
    table = read(pa.table({"a": [1, 2, None], "b": ["x y", "x,y", "NA"]}), missing="state", bins={"a": 2})
    write(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b'a,b\n< 2,x y\n>= 2,"x,y"\n,"NA"\n'
    write(table, tmp_path / "a.csv.gz")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes()[3:8] == bytes(5)  # no name, no time: equal tables, equal files


def test_rows_are_written_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = read(np.random.default_rng(3).integers(0, 300, (100, 3)))
    write(table, tmp_path / "a.csv")
    monkeypatch.setattr("leafwise.data.writing.ROWS_A_WRITE", 7)
    write(table, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert rows(read(tmp_path / "b.csv")) == rows(table)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    (tmp_path / name).write_text("old")
    monkeypatch.setattr("leafwise.data.writing._quoted", broken)
    monkeypatch.setattr(Table, "to_arrow", broken)
    with pytest.raises(OSError, match="disk full"):
        write(nasty(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    table = nasty()
    with pytest.raises(ValueError, match="is a directory: give the path of a file"):
        write(table, tmp_path)
    with pytest.raises(ValueError, match="is in a directory that does not exist"):
        write(table, tmp_path / "no" / "a.csv")


def test_pandas_and_polars_read_what_is_written(tmp_path: Path) -> None:
    table = nasty()
    write(table, tmp_path / "a.csv")
    assert list(pd.read_csv(tmp_path / "a.csv").columns) == list(table.names)
    assert pl.read_csv(tmp_path / "a.csv").height == table.n_cases
    write(table, tmp_path / "a.parquet")
    assert parquet.read_table(tmp_path / "a.parquet").column_names == list(table.names)


def test_heavy_libraries_are_imported_only_when_asked_for(tmp_path: Path) -> None:
    path, file = saved(tmp_path, "a,b\n1,x\n,y\n"), tmp_path / "c.parquet"
    parquet.write_table(pa.table({"c": ["x", "y"], "d": [0, 1]}), file)
    check = (
        "import sys; from leafwise.data.encoding import read, write; assert 'pyarrow' not in sys.modules; "
        f"write(read({str(path)!r}, missing='state'), {str(tmp_path / 'b.csv')!r}); "
        f"read({str(file)!r}); "
        "assert not {'pandas', 'polars', 'narwhals', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
    assert (tmp_path / "b.csv").read_text() == path.read_text()


def test_numbers_bins_and_ordered_categories_have_an_order() -> None:
    frame = pd.DataFrame(
        {
            "count": [0, 1, 2, 5],
            "flag": [0, 1, 1, 0],
            "size": pd.Categorical(["s", "l", "m", "s"], ["s", "m", "l"], ordered=True),
            "colour": ["red", "blue", "red", "green"],
            "age": [20.5, 31.0, 44.0, 58.0],
        }
    )
    table = read(frame, bins={"age": 3})
    assert [variable.ordered for variable in table.variables] == [True, False, True, False, True]
    again = read(frame, variables=table.variables)
    assert [variable.ordered for variable in again.variables] == [variable.ordered for variable in table.variables]


def test_intervals_of_pandas_are_states_in_their_order() -> None:
    numbers = pd.Series([0.5, 1.5, 2.5, 3.5, None] * 8)
    frame = pd.DataFrame({"cut": pd.cut(numbers, [0, 1, 2.25, 3, 4]), "y": ["a", "b"] * 20})
    frame["left"] = pd.cut(numbers.fillna(0.5), 2, right=False)
    frame["plain"] = pd.arrays.IntervalArray(frame["left"])
    table = read(frame, missing="state")
    cut, _, left, plain = table.variables
    assert list(cut.labels) == [*map(str, frame["cut"].cat.categories), "(missing)"]
    assert table.codes[0, :5].tolist() == [0, 1, 2, 3, 4]
    assert list(left.labels) == list(map(str, frame["left"].cat.categories))
    assert sorted(plain.labels) == sorted(left.labels)
    assert (cut.ordered, left.ordered, plain.ordered) == (True, True, False)
