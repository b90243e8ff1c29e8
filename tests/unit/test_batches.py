"""Files read in batches give what reading them at once gives: the same variables, codes, description and network."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from strategies import examples, generators

import leafwise
from leafwise.data import batches, columns, encoding, text_files
from leafwise.data.columns import open_source
from leafwise.data.encoding import read, read_and_describe


def at_once(source, **reading):
    """The slow way: all of Arrow's cells in memory."""
    options = encoding.options_of(reading, reading.pop("target", None))
    return encoding._read_opened(encoding.chosen(open_source(source, options.how), options), options)


def same(source, **reading):
    """The outcome of both ways, after seeing that it is the same, refusals included."""
    outcomes = []
    for way in (read_and_describe, at_once):
        try:
            table, described = way(source, **reading)
            outcomes.append((table.variables, [v.ordered for v in table.variables], table.codes.tolist(), described))
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def any_column(random, n):
    """A column such as files have: few or many texts, numbers, truths, with holes or without."""
    kind = random.choice(
        ["text", "many", "whole", "few", "far", "float", "bool", "none", "category", "ranked", "small"]
    )
    hole = random.random(n) < random.choice([0.0, 0.0, 0.2])
    values = {
        "text": lambda: random.choice(["a", " a", "b ", "", "NA", "1,5", "true", "False"], n),
        "many": lambda: [f"w{k}" for k in random.integers(0, 300, n)],
        "whole": lambda: random.integers(-3, 4, n),
        "few": lambda: random.integers(0, 4, n),
        "far": lambda: random.choice([0, 5000, 2**40], n),
        "float": lambda: random.choice([0.0, -0.0, 1.0, 0.1, np.nan, 2.5], n),
        "bool": lambda: random.random(n) < 0.5,
        "none": lambda: [None] * n,
        "category": lambda: random.choice(["low", "high", "mid"], n),
        "ranked": lambda: random.integers(0, 3, n),
        "small": lambda: random.integers(0, 200, n).astype(np.int16),
    }[str(kind)]()
    values = [None if gone else value for value, gone in zip(np.asarray(values, object).tolist(), hole, strict=True)]
    types = {"small": pa.int16(), "float": random.choice([pa.float32(), pa.float64()]), "none": pa.null()}
    array = pa.array(values, types.get(str(kind)))
    if kind == "ranked":
        return pa.DictionaryArray.from_arrays(array, ["low", "mid", "high"], ordered=True)
    return array.dictionary_encode() if kind == "category" else array


@examples(60)
@given(random=generators(), missing=st.sampled_from(["error", "state", "drop"]))
def test_parquet_in_batches_is_parquet_at_once(random, missing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    sizes = random.integers(1, 60, random.integers(1, 4)).tolist()
    whole = {f"x{k}": any_column(random, sum(sizes)) for k in range(random.integers(1, 9))}
    begin = 0
    for number, size in enumerate(sizes):
        part = pa.table({name: column.slice(begin, size) for name, column in whole.items()})
        parquet.write_table(part, folder / f"part-{number}.parquet", row_group_size=int(random.integers(1, 40)))
        begin += size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_CELLS", int(random.integers(1, 50)))
        patch.setattr(columns, "_COLUMNS", int(random.integers(1, 5)))
        patch.setattr(batches, "n_cores", lambda: int(random.integers(1, 5)))
        same([str(path) for path in sorted(folder.iterdir())], missing=missing)


@examples(40)
@given(random=generators(), packed=st.booleans())
def test_long_text_in_blocks_is_text_at_once(random, packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    words = ["a", "b", "NA", '"NA"', " 7", "1,5", '"x, y"', "é", "3", "3.0", "03", '"two\nlines"']
    n, sign = int(random.integers(1, 200)), str(random.choice([",", ";", "\t"]))
    bare = [word for word in words if sign not in word or word.startswith('"')]
    rows = [sign.join(random.choice(bare, 3)) for _ in range(n)]
    encoding_ = str(random.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    data = "\n".join([sign.join(["u", "v", "w"]), *rows, ""]).encode(encoding_)
    path = folder / ("cases.csv.gz" if packed else "cases.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_LONG_BYTES", 0)
        same(str(path), missing="state", states="*")


def test_blocks_of_text(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_LONG_BYTES", 0)
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 12)
    path = tmp_path / "cases.csv"
    lines = [f"{'yes' if k % 3 else 'no'},{k % 7}" for k in range(5000)]
    path.write_text("\n".join(["rain,n", *lines, ""]))
    told = []
    with batches.rows_told(told.append):
        assert same(str(path))[2][1][:8] == [0, 1, 2, 3, 4, 5, 6, 0]
    assert told == sorted(told)
    assert len(told) > 5
    assert told[-1] == 5000
    path.write_text("\n".join(["rain,n", *lines, "no", *lines]))
    with pytest.raises(ValueError, match=r"line 5002 of .* has 1 cell, where the first has 2"):
        read(path)
    path.write_text("\n".join(["rain,n", *lines, 'no,"3', *lines]))
    with pytest.raises(ValueError, match=r"from line 5002 on a cell|cannot be read as a table"):
        read(path)
    path.write_bytes("\n".join(["rain,n", *lines, "n\0,1"]).encode())
    with pytest.raises(ValueError, match=r"line 5002 of .* holds a NUL byte"):
        read(path)
    path.write_bytes("\n".join(["rain,n", *lines, "é,1", ""]).encode("cp1252"))
    assert "Windows-1252" in read_and_describe(path)[1].told
    with pytest.raises(ValueError, match="not in the encoding 'ascii': say which it is"):
        read(path, encoding="ascii")


@pytest.mark.parametrize("encoding_", ["utf-8", "utf-16", "utf-32", "latin-1"])
def test_problems_in_blocks_of_text_have_their_line_in_every_encoding(encoding_, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_LONG_BYTES", 10)
    path, rows = tmp_path / "cases.csv", ["é,1"] * 3
    path.write_bytes("\n".join(["a,b", *rows, 'é,"1', *rows]).encode(encoding_))
    with pytest.raises(ValueError, match=r"a quote in .* is never closed, .* from line 5 on a cell"):
        read(path, encoding=encoding_)
    path.write_bytes("\n".join(["a,b", *rows, 'é,"1\n2"', *rows, "é,1,2"]).encode(encoding_))
    with pytest.raises(ValueError, match=r"line 10 of .* has 3 cells, where the first has 2"):
        read(path, encoding=encoding_)


@pytest.mark.parametrize(
    ("saved", "given_"),
    [
        ("utf-8-sig", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16", "utf-16-le"),
        ("utf-32", "utf-32-le"),
        ("cp1252", "cp1252"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_name_if_the_encoding_is_given(saved, given_, tmp_path, monkeypatch):
    path = tmp_path / "cases.csv"
    path.write_bytes("é,b\nx,1\ny,2\n".encode(saved))
    for limit in (text_files._LONG_BYTES, 0):
        monkeypatch.setattr(text_files, "_LONG_BYTES", limit)
        assert read(path, encoding=given_).names == ("é", "b")


def parts(folder: Path, *tables: dict) -> list[str]:
    for number, table in enumerate(tables):
        parquet.write_table(pa.table(table), folder / f"part-{number}.parquet")
    return [str(folder / f"part-{number}.parquet") for number in range(len(tables))]


def test_threads_are_limited(tmp_path, monkeypatch):
    given, file_parts = [], batches.file_parts
    monkeypatch.setattr(batches, "n_cores", lambda: 3)
    monkeypatch.setattr(batches, "file_parts", lambda *how: given.append((how[-1], pa.cpu_count())) or file_parts(*how))
    files, usual = parts(tmp_path, {"x": ["a", "b"] * 10}, {"x": ["b", "a"] * 10}), pa.cpu_count()
    read(files)
    with batches.at_most_threads(1):
        read(files)
    read(files)
    assert given == [(3, usual)] * 2 + [(1, 1)] * 2 + [(3, usual)] * 2


def test_columns_are_packed_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_CELLS", 200)
    monkeypatch.setattr(batches, "n_cores", lambda: 3)
    random = np.random.default_rng(1)
    tables = [{f"x{k}": random.choice(["a", "b", "c"], 999) for k in range(17)} for _ in range(3)]
    tables[1] = dict(reversed(tables[1].items()))
    files, told = parts(tmp_path, *tables), []
    with batches.rows_told(told.append):
        table = read(files)
    assert table.codes.tolist() == at_once(files)[0].codes.tolist()
    assert told == sorted(told)
    assert told[-1] == 2997
    parquet.write_table(pa.table({f"x{k}": random.integers(0, 2, 99) for k in range(17)}), files[1])
    with pytest.raises(ValueError, match=r"column 'x\d+' is a text in .*part-0.* and a number in .*part-1"):
        read(files)


def test_a_damaged_file_may_say_that_it_has_more_rows(tmp_path, monkeypatch):
    files = parts(tmp_path, {"x": ["a", "b"] * 50})
    monkeypatch.setattr(columns, "_parquet_file", lambda *given, real=columns._parquet_file: _longer(*real(*given)))
    with pytest.raises(ValueError, match=r"is not a sound Parquet file .column 'x' has not as many rows"):
        read(files)


def _longer(file, *others):
    """A file whose footer says that it has one more row than it has."""

    class Longer:
        metadata = type("Metadata", (), {"num_rows": 101})
        schema_arrow, iter_batches = file.schema_arrow, file.iter_batches

        def __enter__(self):
            return self

        def __exit__(self, *error):
            file.close()

    return Longer(), *others


def test_a_folder_a_pattern_and_a_list_are_the_same(tmp_path):
    random = np.random.default_rng(3)
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    tables = [{f"x{k}": random.integers(0, 2, 300) for k in range(5)} for _ in range(3)]
    files = parts(folder, *tables)
    os.rename(files[2], folder / "more" / "part-2.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").touch()
    (folder / "README.md").touch()
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    usual = leafwise.learn(pa.table(whole))
    for source in (folder, f"{folder}/", f"{folder}/**/*.parquet", [*files[:2], folder / "more"]):
        found = leafwise.learn(source)
        order = sorted(Path(folder).rglob("*.parquet")) if source in (folder, f"{folder}/") else None
        assert found.learned["cases"] == 900, order
        assert found == usual


def test_files_that_do_not_go_together_are_both_named(tmp_path):
    files = parts(tmp_path, {"a": [1, 0], "b": [1, 1]}, {"a": [1, 0], "c": [1, 1]})
    with pytest.raises(ValueError, match=r"part-1.parquet' lacks column 'b' of '.*part-0.parquet'"):
        read(files)
    files = parts(tmp_path, {"a": [1, 0], "b": [1, 1]}, {"a": [1, 0], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=r"'b' is a number in '.*part-0.parquet' and a text in '.*part-1.parquet'"):
        read(tmp_path)
    parts(tmp_path, {"a": [1, 0], "b": [None, None]}, {"a": [1.0, 0.0], "b": ["x", "y"]})
    assert read(tmp_path, missing="state").n_cases == 4
    (tmp_path / "more.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"text files and Parquet files, such as '.*more.csv' and"):
        read(tmp_path)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1], [2], None]),
        pa.array([[1], [2], None], pa.list_(pa.int64(), 1)),
        pa.array([{"a": 1}, {"a": 2}, None]),
    ],
)
def test_columns_of_lists_and_structs_are_refused_in_one_line(cells, tmp_path):
    (file,) = parts(tmp_path, {"x": cells, "y": ["a", "b", "a"]})
    refusal = same(file)
    assert refusal.startswith("column 'x' holds ")
    assert refusal.endswith("), which has no labels: turn it into text or numbers, or drop it")
    assert read(file, ignore="x").names == ("y",)


@pytest.mark.parametrize("n", [3, 300])
def test_few_and_many_intervals_of_pandas_are_states(n, tmp_path):
    cuts = pd.arrays.IntervalArray.from_breaks(range(n + 1))
    pd.DataFrame({"x": cuts.repeat(2)}).to_parquet(tmp_path / "a.parquet")
    assert len(same(str(tmp_path / "a.parquet"), states="x")[0][0].labels) == n


@pytest.mark.parametrize("n", [3, 300])
def test_views_of_texts_are_texts(n, tmp_path):
    texts = [f"w{k}" for k in range(n)] * 4
    kinds = (pa.string(), pa.string_view(), pa.binary_view())
    plain, *views = (same(file)[:3] for file in parts(tmp_path, *({"x": pa.array(texts, kind)} for kind in kinds)))
    assert views == [plain, plain]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([2**62, 0, -(2**62), None], pa.timestamp("us")),
        pa.array([5, 0, 5, None], pa.timestamp("us", "Europe/Berlin")),
        pa.array([2**30, 0, -(2**30), None], pa.date32()),
        pa.array([1, 2, 1, None], pa.time64("ns")),
        pa.array([1000, 2000, 1000, None], pa.time32("ms")),
    ],
)
def test_dates_and_times_that_python_does_not_have_are_states(cells, tmp_path):
    (file,) = parts(tmp_path, {"x": cells})
    (variable,) = same(file, states="x", missing="state")[0]
    assert variable.n_states == 1 + len(set(cells.drop_null().view(f"int{cells.type.bit_width}").to_pylist()))


MANY = [f"w{k:03}" for k in range(200)][::-1]


def ranks(*categories):
    """An ordered categorical, with each of its categories once."""
    return pa.DictionaryArray.from_arrays(np.arange(len(categories)), pa.array(categories, pa.string()), ordered=True)


@pytest.mark.parametrize(
    ("orders", "wanted"),
    [
        ([["lo", "mid", "hi"], ["lo", "hi"], ["hi"]], ["lo", "mid", "hi"]),
        ([["lo", "hi"], ["lo", "mid", "hi"]], ["lo", "mid", "hi"]),
        ([["mid", "hi"], ["lo", "mid"]], ["lo", "mid", "hi"]),
        ([["lo", "mid"], ["mid", "hi"]], ["lo", "mid", "hi"]),
        ([MANY[:100], MANY], MANY),
        ([MANY[50:], MANY[:100]], MANY),
        ([["lo", "hi"], ["hi", "lo"]], None),
        ([["lo", "hi"], ["mid", "hi"]], None),  # which of two orders?
        ([["lo"], ["hi"]], None),
    ],
)
def test_ordered_categories_of_several_files_have_the_order_on_which_they_agree(orders, wanted, tmp_path):
    files = parts(tmp_path, *({"x": ranks(*order)} for order in orders))
    (variable,), (ordered,), *_ = same(files, states="x")
    assert ordered == (wanted is not None)
    assert variable.labels == tuple(wanted or sorted({label for order in orders for label in order}))
    shown = pa.chunked_array([ranks(*order) for order in orders])
    assert read(pa.table({"x": shown}), states="x").variables == (variable,)


def test_a_file_without_a_cell_of_a_column_does_not_change_its_order(tmp_path):
    files = parts(tmp_path, {"x": pa.nulls(2)}, {"x": ranks("lo", "mid", "hi")}, {"x": pa.nulls(2)})
    (variable,), (ordered,), *_ = same(files, missing="state")
    assert ordered
    assert variable.labels[:3] == ("lo", "mid", "hi")


def test_only_columns_that_are_wanted_are_read(tmp_path):
    files = parts(tmp_path, {"id": list(range(50)), "a": [0, 1] * 25, "b.c": [1, 0] * 25, "n": np.arange(50) / 7})
    assert same(files[0], ignore="id")[0][1].name == "b.c"
    assert same(files, columns=["n", "a"])[0][0].name == "a"
    assert "'id' (identifier" in same(files)


def test_a_damaged_file_is_named(tmp_path):
    (file,) = parts(tmp_path, {"a": [1, 0] * 500})
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[:40] + b"\xff" * 30 + data[70:])
    with pytest.raises(ValueError, match="is not a sound Parquet file"):
        read(tmp_path)


def test_a_packed_table_is_kept_beside_its_files(tmp_path, monkeypatch):
    parts(
        tmp_path,
        {"a": [0, 1, 2] * 100, "b": ["x", None, "y"] * 100},
        {"a": [1, 1, 0] * 100, "b": ["y", "x", "x"] * 100},
    )
    given = {"missing": "state", "cache": True}
    first = read_and_describe(tmp_path, **given)
    (file,) = tmp_path.glob(".leafwise-*.cache")
    whole = file.read_bytes()

    def is_taken():
        with monkeypatch.context() as patch:
            patch.setattr(encoding, "_opened", lambda *_: pytest.fail("read again"))
            table, described = read_and_describe(tmp_path, **given)
        assert (table.variables, table.codes.tolist(), described) == (
            first[0].variables, first[0].codes.tolist(), first[1],
        )  # fmt: skip
        assert [v.ordered for v in table.variables] == [v.ordered for v in first[0].variables]
        return True

    assert is_taken()
    for damaged in (
        b"",
        whole[:-1],
        whole + b"x",
        whole[:-1] + b"\7",
        b"{}\n",
        b"[" * 9999,
        whole.replace(b"600", b"599"),
        whole.replace(b'"cases": 600', b'"cases": 1e999'),
    ):
        file.write_bytes(damaged)
        assert read(tmp_path, **given).codes.tolist() == first[0].codes.tolist()  # made anew
        assert file.read_bytes() == whole
    os.utime(tmp_path / "part-1.parquet", ns=(5, 5))
    assert read(tmp_path, **given).n_cases == 600
    assert file.read_bytes() != whole
    assert is_taken()
    read(tmp_path, **given, bins=None)
    read(tmp_path, cache=True, missing="state", na=["p", "q", "r"])
    assert len(list(tmp_path.glob(".leafwise-*"))) == 3
    with pytest.raises(FileNotFoundError, match="no file"):
        read(tmp_path / "no.csv", cache=True)
    with pytest.raises(ValueError, match="of files, and these are none"):
        read(np.zeros((3, 2)), cache=True)
    learn = leafwise.learn
    for call in (
        leafwise.describe,
        lambda *a, **g: learn(*a, weights="a", **g),
        lambda *a, **g: learn(*a, lags=1, **g),
    ):
        with pytest.raises(ValueError, match="leave"):
            call(tmp_path, **given)


def test_nothing_is_left_where_reading_fails(tmp_path):
    parts(tmp_path, {"a": [None, 1]})
    with pytest.raises(ValueError, match="missing cells"):
        read(tmp_path, cache=True)
    assert not list(tmp_path.glob(".leafwise*"))


def test_a_packed_table_needs_no_installation(tmp_path, monkeypatch):
    from importlib import metadata

    def not_there(name):
        raise metadata.PackageNotFoundError(name)

    parts(tmp_path, {"a": [0, 1, 0]})
    monkeypatch.setattr(metadata, "version", not_there)
    assert read(tmp_path, cache=True).codes.tolist() == read(tmp_path, cache=True).codes.tolist()
    assert len(list(tmp_path.glob(".leafwise-*"))) == 1


@pytest.mark.parametrize("places", [[0, 1], [0, 0, 2]])
def test_cells_that_point_behind_their_values_are_refused(places):
    """As in a damaged Parquet file: Arrow takes them as they are."""
    damaged = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(["x"]), safe=False)
    with pytest.raises(ValueError, match=r"'f' is not a sound Parquet file .*out of bounds"), columns._sound("'f'"):
        columns._check_places([damaged])
