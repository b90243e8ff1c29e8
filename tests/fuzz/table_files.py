"""Files, frames and arrays of cases."""

import csv
import gzip
import io
from bisect import bisect_right
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet

import leafwise
from fuzz.folders import folder
from fuzz.mutation import NUMBERS, mutated
from fuzz.refusals import check_refusal

WORDS = [
    b",",
    b";",
    b"\t",
    b'"',
    b'""',
    b"NA",
    b"?",
    b"nan",
    b"\r",
    b"\n",
    b"\r\n",
    b"\x00",
    b"#",
    b"true",
    b"2020-01-01",
]
THINGS = ["a", "", "NA", None, 1, -1, 0.5, float("nan"), float("inf"), True, 10**30, b"x", (1,), "\x00"]
ODD = [None, -1, 1, 10**9, "x", {}, {"zz": 3}, [], 2.5]
CELLS = [
    "a",
    "b",
    "yes",
    "no",
    "1",
    "2",
    "10",
    "1.5",
    "-3",
    "1e5",
    "x y",
    "a,b",
    'say "a"',
    "é",
    "\u202e",
    "c\nd",
    " e ",
]


@cache
def texts() -> list[bytes]:
    """Sound files."""
    random = Random(0)
    return [_text(random)[0] for _ in range(12)]


def _text(random: Random) -> tuple[bytes, list[str], list[list[str]]]:
    """A file as csv writes it, its names and its cells."""
    n_columns, n_rows = random.randrange(1, 5), random.randrange(1, 30)
    names = random.sample(["a", "b", "c d", "e,f", 'g"h', "é", "1"], n_columns)
    pools = [random.sample(CELLS, random.randrange(1, 5)) for _ in names]
    rows = [[random.choice(pool) for pool in pools] for _ in range(n_rows)]
    out = io.StringIO(newline="")
    quoting = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    ends = ["\n", "\r\n"] if any("\n" in cell for row in rows for cell in row) else ["\n", "\r\n", "\r"]
    csv.writer(out, lineterminator=random.choice(ends), quoting=quoting).writerows([names, *rows])
    return out.getvalue().encode(), names, rows


def _options(random: Random) -> dict[str, object]:
    options: dict[str, object] = {"missing": random.choice(["error", "state", "drop"])}
    if random.random() < 0.3:
        options["header"] = False
    if random.random() < 0.3:
        options["bins"] = random.choice([2, 3, {"a": 2}])
    return options


def _read(source: object, options: dict[str, object]) -> str:
    try:
        table = leafwise.read(source, **options)
    except (ValueError, TypeError) as error:
        check_refusal(error)
        return "refused"
    check_table(table, isinstance(source, Path))
    return "accepted"


def check_table(table: leafwise.Table, from_file: bool) -> None:
    """Codes are states; of a file, no state holds a byte that no text does."""
    assert table.codes.shape == (table.n_variables, table.n_cases)
    for variable, row in zip(table.variables, table.codes, strict=True):
        assert row.max(initial=0) < variable.n_states
        if from_file:
            assert "\x00" not in variable.name
            assert not any("\x00" in label for label in variable.labels)


def check_sound_text(random: Random) -> str:
    """A sound file is read cell by cell as csv reads it; blanks around a cell do not count."""
    data, names, rows = _text(random)
    path = folder() / random.choice(["cases.csv", "cases.csv.gz"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    table = leafwise.read(path, missing="state")
    assert list(table.names) == [name.strip() for name in names]
    assert table.n_cases == len(rows)
    for column, (variable, codes) in enumerate(zip(table.variables, table.codes, strict=True)):
        for code, row in zip(codes.tolist(), rows, strict=True):
            label, cell = variable.labels[code], row[column].strip()
            if variable.cuts:
                assert code == bisect_right(variable.cuts, float(cell)), (label, cell)
            else:
                assert label == cell or float(label) == float(cell), (label, cell)
    return "accepted"


def check_text(random: Random) -> str:
    """A file that was changed."""
    data = mutated(random.choice(texts()), random, WORDS, texts())
    path = folder() / random.choice(["cases.csv", "cases.csv", "cases.tsv", "cases.txt", "cases.csv.gz"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" and random.random() < 0.8 else data)
    return _read(path, _options(random))


def check_files(random: Random) -> str:
    """Several files read as one table, in batches and from a packed table kept beside them: the same, or refused."""
    place = folder() / "several"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    data, _, _ = _text(random)
    names = [f"{k}.csv" for k in range(random.randrange(1, 4))]
    for name in names:
        changed = random.random() < 0.3
        (place / name).write_bytes(mutated(data, random, WORDS, texts()) if changed else data)
    options = {**_options(random), "missing": random.choice(["state", "error"])}
    try:
        table = leafwise.read(place, **options)
    except ValueError as error:
        check_refusal(error)
        return "refused"
    check_table(table, True)
    for kept in ("written", "taken"):
        again = leafwise.read([place / name for name in names], cache=True, **options)
        assert again.variables == table.variables, kept
        assert np.array_equal(again.codes, table.codes), kept
    for packed in place.glob(".leafwise-*.cache"):
        packed.write_bytes(mutated(packed.read_bytes(), random, [b"null", b"[]", b"{}", b"0"], [b"x"]))
    again = leafwise.read([place / name for name in names], cache=True, **options)
    assert again.variables == table.variables
    assert np.array_equal(again.codes, table.codes)
    return "accepted"


@cache
def parquets() -> list[bytes]:
    """Columns of several types, with and without what pandas notes in the file."""
    frame = pandas.DataFrame(
        {"a": ["x", "y", None, "x"], "b": [1, 2, 3, 2], "c": [0.5, np.nan, 2.0, 1.0], "d": [True, False, True, True]}
    )
    frame["e"] = frame["a"].astype("category")
    out = []
    for table in (pyarrow.Table.from_pandas(frame), pyarrow.Table.from_pandas(frame).replace_schema_metadata(None)):
        sink = io.BytesIO()
        pyarrow.parquet.write_table(table, sink)
        out.append(sink.getvalue())
    return out


METADATA = [
    "{}",
    "[]",
    "null",
    "x",
    '{"index_columns": 3}',
    '{"columns": [1], "index_columns": [null]}',
    "\x00",
    "[" * 500,
]


def check_parquet(random: Random) -> str:
    """A Parquet file with other bytes, or with other notes of pandas."""
    data = random.choice(parquets())
    if random.random() < 0.4:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
        notes = {b"pandas": random.choice(METADATA).encode()}
        old = (table.schema.metadata or {}).get(b"pandas", b"{}")
        if random.random() < 0.5:
            notes = {b"pandas": mutated(old, random, [b"null", b"[]", b"{}", b"3"], [old])}
        sink = io.BytesIO()
        pyarrow.parquet.write_table(table.replace_schema_metadata(notes), sink)
        data = sink.getvalue()
    else:
        data = mutated(data, random, [b"PAR1", b"\x00\x00\x00\x00"], parquets())
    path = folder() / "cases.parquet"
    path.write_bytes(data)
    options = _options(random)
    options.pop("header", None)
    return _read(path, options)


def check_objects(random: Random) -> str:
    """Arrays and frames of anything."""
    n_rows, n_columns = random.choice([0, 1, 2, 5, 20]), random.choice([0, 1, 2, 4])
    pool = random.choices(THINGS, k=4)
    columns = [[random.choice(pool[: random.randrange(1, 5)]) for _ in range(n_rows)] for _ in range(n_columns)]
    kind = random.choice(["array", "numbers", "frame", "deep", "other"])
    if kind == "array":
        source: object = np.array(columns, dtype=object).reshape(n_columns, n_rows).T
    elif kind == "numbers":
        numbers = np.random.default_rng(random.randrange(2**32)).integers(-2, 3, (n_rows, n_columns))
        source = numbers.astype(random.choice(["i1", "u8", "f2", "f8", "c16", "M8[s]", "U2", "?", "O"]))
    elif kind == "frame":
        source = pandas.DataFrame(
            {random.choice(["a", "b", 1, "", "a\nb", k]): column for k, column in enumerate(columns)}
        )
    elif kind == "deep":
        source = np.zeros((2,) * random.randrange(0, 5))
    else:
        source = random.choice([None, 3, "none.csv", b"x", [], {}, [[1, 2]], object(), ""])
    options = _options(random)
    if random.random() < 0.2:
        name = random.choice(["missing", "bins", "header", "binning"])
        options[name] = random.choice(
            [None, -1, 1, 10**9, "x", {}, {"zz": 3}, [], 2.5, random.choice(NUMBERS).decode()]
        )
    try:
        return _read(source, options)
    except FileNotFoundError:
        return "refused"
