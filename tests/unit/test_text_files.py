"""Text files as people have them: what is found out, what is said, what is refused."""

import gzip
import io
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import leafwise
from leafwise.data.encoding import describe, read, write
from leafwise.data.table import Table, Variable
from leafwise.data.text_files import Format, check_names, parse_text
from leafwise.errors import AdvisedError

FROM_EXCEL = "Größe;Preis;Stadt\n1,5;1.234,50;Köln\n2,25;99,00;Bonn\n1,75;12,10;Köln\n"


def saved(folder: Path, data: str | bytes, name: str = "cases.csv") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def labels(table: Table) -> dict[str, tuple[str, ...]]:
    return {variable.name: variable.labels for variable in table.variables}


# What is found out


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_from_a_spreadsheet(tmp_path: Path, encoding: str, end: str) -> None:
    path = saved(tmp_path, FROM_EXCEL.replace("\n", end).encode(encoding))
    table = read(path, bins=None)
    assert labels(table) == {
        "Größe": ("1.5", "1.75", "2.25"),
        "Preis": ("12.10", "99.00", "1234.50"),
        "Stadt": ("Bonn", "Köln"),
    }
    assert describe(path).told.startswith("semicolons, decimal commas, ")


@pytest.mark.parametrize(("sign", "told"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.data"])
def test_delimiters_are_found_whatever_the_ending(tmp_path: Path, sign: str, told: str, name: str) -> None:
    path = saved(tmp_path, f"name{sign}size\n'a b' c{sign}1\nd{sign}2\n", name)
    assert labels(read(path)) == {"name": ("'a b' c", "d"), "size": ("1", "2")}
    assert describe(path).told == f"{told}, UTF-8"


CELL = st.one_of(
    st.from_regex(r"[A-Za-z][a-z ]{0,6}", fullmatch=True),
    st.integers(-999, 999).map(str),
    st.floats(-99, 99).map(lambda value: f"{value:.2f}"),
)


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=3, max_size=9), st.sampled_from(",;\t|"))
def test_law_the_sign_between_cells_is_found(rows: list[list[str]], sign: str) -> None:
    text = "".join(sign.join(row) + "\n" for row in [["a", "b", "c"], *rows])
    found = parse_text(text.encode(), "text", Format())
    assert [column.to_pylist() for column in found.cells] == [list(column) for column in zip(*rows, strict=True)]


def test_cells_may_be_long_and_have_many_lines(tmp_path: Path) -> None:
    long = "x\n" * 100_000
    path = saved(tmp_path, f'a,b\n1,"{long}"\n2,y\n')
    assert labels(read(path))["b"] == (long.strip(), "y")
    assert read(saved(tmp_path, f'"{long}",b\n1,2\n')).names == (long.strip(), "b")
    with pytest.raises(ValueError, match=r"line 100003 of .* has 3 cells, where the first has 2"):
        read(saved(tmp_path, f'a,b\n1,"{long}"\n2,y,z\n'))


@pytest.mark.parametrize("n_after", [3, 200_000, 6_000_000])  # the last is streamed
def test_a_quote_that_is_never_closed_is_named_by_its_line(tmp_path: Path, n_after: int) -> None:
    path = saved(tmp_path, "a,b\n1,2\n" + '"x,2\n' + "1,2\n" * n_after)
    with pytest.raises(ValueError, match=r"a quote in .* is never closed, .*: from line 3 on a cell runs over"):
        read(path)


def test_text_with_other_signs_in_it(tmp_path: Path) -> None:
    assert read(saved(tmp_path, "name;said\nx;yes, of course\ny;no\n")).names == ("name", "said")
    assert read(saved(tmp_path, 'name,said\nx,"a;b;c"\ny,"d;e"\n')).names == ("name", "said")
    assert read(saved(tmp_path, "1,5;2,5\n3,5;4,5\n"), header=False).n_variables == 2
    assert read(saved(tmp_path, "last, first\tage\nSmith, J\t5\nDoe, K\t6\n")).names == ("last, first", "age")


def test_thousands_and_decimal_points(tmp_path: Path) -> None:
    table = read(saved(tmp_path, 'a,b\n"1,234.5",x\n"12,000",y\n7,x\n'), bins=None)
    assert labels(table)["a"] == ("7", "1234.5", "12000")
    table = read(saved(tmp_path, 'a,b\n"1,234",x\n"12,000",y\n'))
    assert labels(table)["a"] == ("1234", "12000")  # three digits behind each comma are thousands
    table = read(saved(tmp_path, 'a,b\n"1,234",x\n"12,000",y\n'), decimal=",", bins=None)
    assert labels(table)["a"] == ("1.234", "12.000")
    assert labels(read(saved(tmp_path, 'a,b\n"1,2",x\n"1,2,3",y\n')))["a"] == ("1,2", "1,2,3")  # lists are names


def test_what_is_said_overrules(tmp_path: Path) -> None:
    path = saved(tmp_path, "a;b\n1;2\n")
    assert read(path, delimiter=",").names == ("a;b",)
    assert read(saved(tmp_path, "ä b\n1 2\n".encode("latin-1")), delimiter=" ", encoding="latin-1").names == ("ä", "b")
    assert labels(read(saved(tmp_path, "a;b\n1,5;2\n"), decimal="."))["a"] == ("1,5",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "::"}, "delimiter='::' is not one ASCII sign"),
        ({"delimiter": '"'}, "is not one ASCII sign"),
        ({"delimiter": "§"}, "delimiter='§' is not one ASCII sign between cells: use"),
        ({"delimiter": "\0"}, "is not one ASCII sign"),
        ({"decimal": ";"}, "decimal=';' is not known: use '.' or ','"),
        ({"delimiter": ",", "decimal": ","}, "for the delimiter and the decimal sign"),
        ({"encoding": "klingon"}, "encoding='klingon' is not known: use for example 'utf-8'"),
        ({"encoding": "utf-8"}, "is not in the encoding 'utf-8'"),
        ({"most_bytes": 0}, "most_bytes=0 leaves no room"),
        ({"columns": "z"}, "columns names 'z', but the columns are 'a', 'é'"),
        ({"ignore": "*"}, "none is left"),
        ({"states": "z"}, "states names 'z'"),
        ({"dates": "year"}, "dates='year' is not known: use 'error' or 'bins'"),
        ({"unseen": "missing"}, "needs the variables of a network"),
        ({"target": "q"}, "no variable is called 'q'"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(saved(tmp_path, "a,é\n1,2\n".encode("cp1252")), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": 5}, "the delimiter is 5 (int), and must be a sign between cells: use ','"),
        ({"encoding": 5}, "the encoding is 5 (int), and must be a name: use for example 'utf-16'"),
        ({"most_bytes": "2G"}, "most_bytes is '2G' (str), and must be a number of bytes: use for example"),
    ],
)
def test_options_of_other_types(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        read(saved(tmp_path, "a,b\n1,2\n"), **options)


# Which columns, and which words are missing


def test_columns_by_name_and_pattern(tmp_path: Path) -> None:
    path = saved(tmp_path, "id,x1,x2,y\n1,a,b,c\n2,b,a,c\n")
    assert read(path, columns=["y", "x*"]).names == ("x1", "x2", "y")
    assert read(path, columns="x*", ignore="x1").names == ("x2",)
    assert read(pd.read_csv(path), ignore=["id", "y"]).names == ("x1", "x2")


def test_words_for_missing_cells(tmp_path: Path) -> None:
    path = saved(tmp_path, 'a,b\nunknown,1\n"n.a.",2\n -,3\nx,?\n')
    table = read(path, na=["unknown", "n.a.", "-"], missing="state")
    assert labels(table) == {"a": ("x", "(missing)"), "b": ("1", "2", "3", "(missing)")}
    assert labels(read(pa.table({"a": ["-", "x"]}), na="-", missing="state")) == {"a": ("x", "(missing)")}


@pytest.mark.parametrize("word", ["-999", "-999.0", "inf"])
def test_words_for_missing_cells_may_spell_numbers(tmp_path: Path, word: str) -> None:
    numbers = [float(word), 1.5, 2.0] * 5
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["a,b", *(f"{number},x" for number in numbers)]))
    for source in (path, pa.table({"a": numbers}), np.array([numbers]).T):
        table = read(source, na=word, missing="state")
        assert table.variables[0].labels == ("1.5", "2", "(missing)")


@pytest.mark.parametrize("text", ["-999.00", "-9.99e2", "-999.", "-999,0", "-999"])
def test_such_a_number_counts_however_it_is_written(tmp_path: Path, text: str) -> None:
    path, sign = tmp_path / "numbers.csv", "," if "," in text else "."
    path.write_text("\n".join(["a;b;c", *(f"{a};{text};{c}" for a, c in [(text, text), (f"1{sign}5", "x")] * 5)]))
    found = labels(read(path, na="-999", missing="state"))
    mixed = (text, "x") if sign == "," else ("x", "(missing)")  # beside a word, what has a comma is no number
    assert found == {"a": ("1.5", "(missing)"), "b": ("(missing)",), "c": mixed}


def test_codes_are_no_numbers_that_stand_for_missing_cells(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["a,b", *(["007,7", "7,07", "1,1"] * 5)]))
    found = labels(read(path, na="7", missing="state"))
    assert found == {"a": ("1", "007", "(missing)"), "b": ("1", "07", "(missing)")}


def test_the_index_that_pandas_writes_is_offered_to_be_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": list("xyxyx"), "b": [1, 2, 2, 1, 1]})
    frame.to_csv(tmp_path / "a.csv")
    with pytest.raises(
        AdvisedError, match=r"'Unnamed: 0' .identifier: 5 values in 5 cells.*ignore=.'Unnamed: 0'."
    ) as caught:
        read(tmp_path / "a.csv")
    assert "--ignore 'Unnamed: 0'" in caught.value.advice.in_options()
    assert read(tmp_path / "a.csv", ignore="Unnamed: 0").names == ("a", "b")


# Several files, and none


def test_several_files_and_patterns(tmp_path: Path) -> None:
    saved(tmp_path, "a,b\n1,x\n", "1.csv")
    saved(tmp_path, "b;a\ny;2\n", "2.csv")
    parquet.write_table(pa.table({"a": [3], "b": ["x"]}), tmp_path / "3.parquet")
    table = read([tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "3.parquet"])
    assert labels(table) == {"a": ("1", "2", "3"), "b": ("x", "y")}
    assert table.codes.tolist() == [[0, 1, 2], [0, 1, 0]]
    assert read(str(tmp_path / "*.csv")).n_cases == 2
    assert describe(str(tmp_path / "*.csv")).head == "the 2 files: 2 rows, 2 columns; commas, UTF-8; semicolons, UTF-8"
    saved(tmp_path, "a,c\n1,x\n", "4.csv")
    with pytest.raises(ValueError, match=r"4.csv' lacks column 'b' of '.*1.csv': give files with the same columns"):
        read([tmp_path / "1.csv", tmp_path / "4.csv"])
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read(str(tmp_path / "*.tsv"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, pack: type[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(b"a;b\n1;2\n"))))
    assert read("-").names == ("a", "b")


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.json", "a.sav", "a.parquet.gz", "a.docx"])
def test_endings_that_are_no_tables_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        read(saved(tmp_path, "a\n1\n", name))
    table = Table((Variable("a", ("x",)),), np.zeros((1, 1), np.uint8))
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=name):
        write(table, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_begins_like_another_kind_of_file(tmp_path: Path) -> None:
    assert read(saved(tmp_path, "PAR1,PAR2\n0,1\n1,0\n")).names == ("PAR1", "PAR2")
    parquet.write_table(pa.table({"PAR1": [0, 1]}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    assert read(saved(tmp_path, data)).names == ("PAR1",)
    with pytest.raises(ValueError, match="is not a sound Parquet file"):
        read(saved(tmp_path, data[:-5]))


def test_a_workbook_under_another_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as file:
        file.writestr("sheet.xml", "x")
    with pytest.raises(ValueError, match="is a workbook or another zip file"):
        read(tmp_path / "a.csv")


# Limits


def test_a_gzip_bomb_is_refused_and_can_be_let_in(tmp_path: Path) -> None:
    path = saved(tmp_path, gzip.compress(b"a,b\n" + b"0,1\n" * 30_000_000), "a.csv.gz")
    with pytest.raises(
        AdvisedError, match=r"has [\d,]+ bytes and would take at least .* where the most are .*most_bytes="
    ):
        read(path)
    small = saved(tmp_path, gzip.compress(b"a,b\n" + b"0,1\n" * 1000), "b.csv.gz")
    with pytest.raises(AdvisedError, match="where the most are 1,000"):
        read(small, most_bytes=1000)
    assert read(small, most_bytes=5000).n_cases == 1000


def test_a_parquet_bomb_is_refused_and_can_be_let_in(tmp_path: Path) -> None:
    bomb, fair = tmp_path / "a.parquet", tmp_path / "b.parquet"
    parquet.write_table(pa.table({"a": pa.nulls(40_000_000, pa.int8())}), bomb)
    assert bomb.stat().st_size < 100_000
    with pytest.raises(AdvisedError, match="would take at least 160,000,000 in memory, where the most are"):
        read(bomb, missing="state")
    parquet.write_table(pa.table({"a": ["x" * 1000, "y"] * 5000}), fair)  # each text is held once
    with pytest.raises(AdvisedError, match="would take at least 40,000 in memory, where the most are 30,000"):
        read(fair, most_bytes=30_000)
    assert read(fair, most_bytes=50_000).n_cases == 10_000


@pytest.mark.parametrize(
    "notes",
    [
        b"[]",
        b"5",
        b"null",
        b"{",
        b'{"index_columns": 5}',
        b'{"index_columns": {"a": 1}}',
        b'{"index_columns": [5, {}]}',
    ],
)
def test_parquet_with_odd_notes_of_pandas(tmp_path: Path, notes: bytes) -> None:
    table = pa.table({"a": ["x", "y"]}).replace_schema_metadata({b"pandas": notes})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").names == ("a",)
    assert read(table).names == ("a",)


@given(st.binary(max_size=60))
def test_law_any_bytes_are_a_table_or_one_line(data: bytes) -> None:
    try:
        text = parse_text(data, "text", Format())
    except ValueError as caught:
        refusal = str(caught)
        assert "\n" not in refusal
    else:
        assert len({len(column) for column in text.cells}) == 1


class Counted(str):
    """A text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def test_names_and_labels_that_are_there_twice_are_found_in_one_pass() -> None:
    many = tuple(map(Counted, range(65_534)))
    twice = (*many, Counted("65533"))
    variables = tuple(Variable(name, ("x",)) for name in twice)
    for make in (
        lambda: Variable("a", twice),
        lambda: Table(variables, np.zeros((65_535, 0), np.uint8)),
        lambda: leafwise.Network(variables, (None,) * 65_535),
        lambda: check_names("the file", list(twice)),
    ):
        Counted.compared = 0
        with pytest.raises(ValueError, match="'65533'"):
            make()
        assert Counted.compared < 200_000  # not some 2,000,000,000
    with pytest.raises(ValueError, match="'65533'"):
        read(pa.table([[1]] * 65_535, names=list(map(str, twice))))
