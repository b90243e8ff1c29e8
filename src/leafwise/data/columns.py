"""Columns of files, frames and arrays: for each case the index of its label, or -1 if the cell is missing.

Knows Arrow, which reads every source: text files, Parquet, anything with the Arrow PyCapsule stream, NumPy arrays.
Nothing is decided here about states (see `kinds`). Arrow is imported when a source is opened.
"""

import glob
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from leafwise.data.binning import number_label
from leafwise.data.table import brief
from leafwise.data.text_files import (
    MISSING_TOKENS,
    Format,
    Text,
    check_names,
    is_long,
    limit_of,
    one_line,
    parse_text,
    stream_text,
    too_large,
    unpacked,
)
from leafwise.errors import AdvisedError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")
PARQUET_ENDINGS = (".parquet", ".pq")
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
_CELLS = 1 << 19  # of a batch of a Parquet file: more would not stay in the processor's cache until they are packed
_COLUMNS = 5  # of a batch, or more if the file has few rows
_BYTES_A_CELL = 4  # the least memory that Arrow takes per cell
# By decimal sign: the pattern of numbers that may have thousands separators, and this separator.
_GROUPED = {
    ",": (r"^[+-]?(\d{1,3}([.]\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?$", "."),
    ".": (r"^[+-]?(\d{1,3}(,\d{3})+|\d+)([.]\d+)?([eE][+-]?\d+)?$", ","),
}
_NUMBER = r"^[+-]?((0|[1-9]\d*)([.]\d*)?|[.]\d+)([eE][+-]?\d+)?$"


class Labels(Sequence[str]):
    """Distinct texts, made on first access: a column of a million numbers is binned without them."""

    def __init__(self, n: int, make: Callable[[], list[str]]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self._texts[place]


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `codes` index `labels`, which are distinct; -1 is a missing cell.

    If `ordered`, labels are in the order that the source gives them. If all labels spell finite numbers, these are in
    `numbers`. `declared`: the source declares them as categories or Booleans. `coded`: some number has a leading zero.
    """

    name: str
    codes: NDArray[np.signedinteger[Any]]
    labels: Sequence[str]
    ordered: bool = False
    declared: bool = False
    numbers: NDArray[np.float64] | None = None
    coded: bool = False
    counts: NDArray[np.int64] | None = None  # of each label, and last of missing cells, if known already

    def of_rows(self, rows: NDArray[Any]) -> "Column":
        """Select rows."""
        return replace(self, codes=self.codes[rows], counts=None)

    @property
    def n_missing(self) -> int:
        """The number of missing cells."""
        return int(np.count_nonzero(self.codes < 0) if self.counts is None else self.counts[-1])


@dataclass(frozen=True, eq=False)
class Source:
    """An opened source: its title for messages, its columns' names, and their cells as Arrow arrays."""

    title: str
    names: tuple[str, ...]
    cells: tuple[tuple["pa.Array", ...], ...]  # by column: chunks, which may differ in type
    named: bool = True  # False: names were generated, and columns are identified by position
    told: str = ""  # the detected format of its text
    tokens: frozenset[str] = frozenset()  # texts that mean missing if blanks around them were stripped
    words: frozenset[str] = frozenset()  # texts that always mean missing
    decimal: str = "."
    declared: frozenset[str] = frozenset()  # columns of categories and Booleans
    n_in_file: int = 0  # rows of the file of which this is a part, as far as known,
    every: tuple[str, ...] = ()  # ... and all its columns, if this has only some of them

    def column(self, index: int) -> Column:
        """Return column `index` as codes and labels."""
        return column_of(self, self.names[index], self.cells[index])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(map(len, self.cells[0]))

    def holds_numbers(self, index: int) -> bool:
        """Return whether the type of a column is numeric, as opposed to texts that may spell numbers."""
        import pyarrow as pa

        kinds = [chunk.type for chunk in self.cells[index]]
        return all(pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_decimal(k) for k in kinds)

    def only(self, kept: Sequence[int]) -> "Source":
        """Select columns."""
        names, cells = tuple(self.names[i] for i in kept), tuple(self.cells[i] for i in kept)
        return replace(self, names=names, cells=cells)

    def of_rows(self, rows: NDArray[np.int64]) -> "Source":
        """Select rows, given in ascending order, possibly repeated."""
        named = zip(self.names, self.cells, strict=True)
        return replace(self, cells=tuple(_of_rows(name, chunks, rows) for name, chunks in named))


def _of_rows(name: str, chunks: "tuple[pa.Array, ...]", rows: NDArray[np.int64]) -> "tuple[pa.Array, ...]":
    import pyarrow as pa

    begins = np.cumsum([0, *map(len, chunks)])
    places = np.searchsorted(rows, begins)
    try:
        return tuple(
            (encoded(chunk) if _is_view(chunk.type) else chunk).take(pa.array(rows[first:last] - begin))
            for chunk, begin, first, last in zip(chunks, begins, places, places[1:], strict=False)
        )
    except pa.ArrowNotImplementedError as error:
        raise without_labels(name, chunks[0].type, error) from None


Kept = Callable[[Source], Source]  # selects columns of a source, which may have no rows


def open_source(source: object, how: Format | None = None) -> Source:
    """Open a file, several files, a frame or an array.

    >>> opened = open_source(np.array([[0, 5], [1, 5]]))
    >>> opened.names, tuple(opened.column(0).labels)
    (('x1', 'x2'), ('0', '1'))
    """
    how = how or Format()
    if isinstance(source, str | os.PathLike):
        opened = _open_paths(paths_of(os.fsdecode(source)), how)
    elif isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source):
        opened = _open_paths([path for one in source for path in paths_of(os.fsdecode(one))], how)
    elif isinstance(source, np.ndarray):
        opened = _open_array(source)
    elif hasattr(source, "__arrow_c_stream__"):
        opened = open_frame(source)
    else:
        raise TypeError(
            f"data of type {type(source).__name__} cannot be read: pass a path or several, a pandas, polars or Arrow "
            "frame, or a 2-D NumPy array"
        )
    if not opened.names or not opened.n_rows:
        lacks = "rows" if opened.names else "columns"
        raise ValueError(f"{opened.title} has no {lacks}, where at least one is needed: check where it comes from")
    return replace(opened, words=how.na)


# Files


def paths_of(text: str) -> list[Path]:
    """Return the files that a path, a folder or a pattern such as data/*.csv denotes, sorted by name."""
    if text == "-":
        return [Path(text)]
    if os.path.isdir(text):
        return _in_folder(Path(text))
    if not glob.has_magic(text) or os.path.exists(text):
        return [Path(text)]
    found = [path for path in sorted(glob.glob(text, recursive=True)) if not os.path.isdir(path)]
    if not found:
        raise FileNotFoundError(f"no file matches '{text}': check the path")
    return [Path(path) for path in found]


def _in_folder(folder: Path) -> list[Path]:
    """Return the data files in a folder and its subfolders, except hidden ones: .name, or _name as Spark writes."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and _ending(path) in (*TEXT_ENDINGS, *PARQUET_ENDINGS)
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise ValueError(
            f"'{folder}' is a folder without data files: put some there, ending in {', '.join(TEXT_ENDINGS)}, each "
            "also .gz, or .parquet"
        )
    kinds = {path.suffix.lower() in PARQUET_ENDINGS: path for path in found}
    if len(kinds) == 2:
        raise ValueError(
            f"'{folder}' holds text files and Parquet files, such as '{kinds[False]}' and '{kinds[True]}': say which "
            "with a pattern such as 'folder/*.parquet'"
        )
    return found


def _ending(path: Path) -> str:
    """Return the extension that determines the kind of file, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def _open_paths(paths: list[Path], how: Format) -> Source:
    """Open one file, or several with the same columns, and concatenate their rows."""
    first, *others = [_open_file(path, how) for path in paths]
    if not others:
        return first
    cells = [list(column) for column in first.cells]
    for other in others:
        places = {name: place for place, name in enumerate(other.names)}
        if set(places) != set(first.names):
            raise ValueError(other_columns(other.title, other.names, first.title, first.names))
        for chunks, name in zip(cells, first.names, strict=True):
            chunks += other.cells[places[name]]
    told = "; ".join(dict.fromkeys(one.told for one in (first, *others) if one.told))
    decimals = {one.decimal for one in (first, *others)}
    if len(decimals) > 1:
        raise AdvisedError(
            f"of the {len(paths)} files some have decimal commas and some have not: read them one by one, or pass ",
            ("decimal", ","),
        )
    return replace(first, title=f"the {len(paths)} files", cells=tuple(map(tuple, cells)), told=told)


def other_columns(title: str, names: Sequence[str], first_title: str, first: Sequence[str]) -> str:
    """Return the message for a file whose columns differ from those of the first.

    >>> other_columns("'b.csv'", ["x"], "'a.csv'", ["x", "y"])
    "'b.csv' lacks column 'y' of 'a.csv': give files with the same columns"
    """
    both = ((first, names), (names, first))
    lacks, more = ([brief(name) for name in sorted({*one} - {*other}, key=one.index)] for one, other in both)
    what = f"lacks column {lacks[0]} of {first_title}" if lacks else f"has column {more[0]}, which {first_title} lacks"
    return f"{title} {what}: give files with the same columns"


def _open_file(path: Path, how: Format) -> Source:
    if str(path) == "-":
        return _open_bytes(sys.stdin.buffer.read(), "standard input", how)
    title = f"'{path}'"
    check_file(path)
    if path.suffix.lower() in PARQUET_ENDINGS:
        return _open_parquet(path, title, path.stat().st_size, how)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{title} cannot be read ({error.strerror}): check the file and its permissions") from None
    return _open_bytes(data, title, how, packed=path.suffix.lower() == ".gz")


def check_file(path: Path) -> None:
    """Refuse a file that does not exist, or whose extension is not supported."""
    if not path.exists():
        raise FileNotFoundError(f"no file '{path}': check the path")
    check_ending(path)


def file_parts(path: Path, how: Format, kept: Kept, n_threads: int) -> Iterator[list[Iterator[Source]]]:
    """Open a file piece by piece, with the columns that `kept` selects.

    A piece is a list of at most `n_threads` iterators over sources of some rows each. The iterators have different
    columns, and threads may consume them concurrently.
    """
    if str(path) != "-":
        check_file(path)
        title, size = f"'{path}'", path.stat().st_size
        if path.suffix.lower() in PARQUET_ENDINGS:
            yield _parquet_parts(path, title, size, how, kept, n_threads)
            return
        text = stream_text(path, title, how) if is_long(path, size) else None
        if text is not None:
            for part, n_in_file in text:
                yield [iter((kept(replace(_of_text(part, title, how), n_in_file=n_in_file)),))]
            return
    whole = kept(_open_file(path, how))
    yield [iter((replace(whole, n_in_file=whole.n_rows),))]


def check_ending(path: Path) -> None:
    """Refuse a file name with an extension that is not supported.

    >>> check_ending(Path("cases.xlsx"))
    Traceback (most recent call last):
        ...
    ValueError: 'cases.xlsx' is a workbook: use a .csv file instead, or read and write it with pandas, by way of a frame
    """
    bare = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    ending = bare.suffix.lower()
    if ending in ("", *TEXT_ENDINGS) or (bare is path and ending in PARQUET_ENDINGS):
        return
    if ending in _WORKBOOKS:
        raise ValueError(
            f"'{path}' is a workbook: use a .csv file instead, or read and write it with pandas, by way of a frame"
        )
    raise ValueError(
        f"'{path}' ends in {ending!r}, which is no kind of data file here: use {', '.join(TEXT_ENDINGS)}, each also as "
        ".gz, or .parquet"
    )


def _open_bytes(data: bytes, title: str, how: Format, *, packed: bool = False) -> Source:
    if packed or data.startswith(b"\x1f\x8b"):
        data = unpacked(data, title, how.most_bytes)
    if data.startswith(b"PAR1") and b"\0" in data:  # no text, whose first column may be called PAR1
        import pyarrow as pa

        return _open_parquet(pa.BufferReader(data), title, len(data), how)
    if data.startswith(b"PK\x03\x04"):
        raise ValueError(f"{title} is a workbook or another zip file, not text: save its table as .csv")
    text = parse_text(data, title, how)
    return _of_text(text, title, how)


def _of_text(text: Text, title: str, how: Format) -> Source:
    tokens = frozenset(MISSING_TOKENS)
    return Source(title, text.names, _chunks(text.cells), how.header, text.told, tokens, decimal=text.decimal)


def _open_parquet(place: Any, title: str, size: int, how: Format) -> Source:
    with _sound(title):
        file, _, declared = _parquet_file(place, title, size, how)
        with file:
            table = file.read(use_threads=False)
        _check_places(table.itercolumns())
    return replace(_from_arrow(table, title), declared=declared)


def _parquet_parts(
    path: Path, title: str, size: int, how: Format, kept: Kept, n_threads: int
) -> list[Iterator[Source]]:
    """Return an iterator for each thread over batches of its bands of columns, one band after the other."""
    import pyarrow as pa
    from pyarrow import parquet

    with _sound(title):
        file, texts, declared = _parquet_file(path, title, size, how)
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    nothing = pa.Table.from_batches([], schema=schema)  # schema.empty_table() imports pandas, half a second
    wanted = kept(replace(_from_arrow(nothing, title), declared=declared, n_in_file=n_rows))
    names = [name for name in schema.names if name.strip() in wanted.names]
    width = max(min(_COLUMNS, -(-len(names) // n_threads)), _CELLS // max(1, n_rows), 1)
    bands = [slice(first, first + width) for first in range(0, len(names), width)]
    n_threads = max(1, min(n_threads, len(bands)))

    def parts(number: int) -> Iterator[Source]:
        with _sound(title):
            own = file if number == 0 else parquet.ParquetFile(path, metadata=file.metadata, read_dictionary=texts)
        with own:
            for band in bands[number::n_threads]:
                some = replace(wanted, names=wanted.names[band], every=wanted.names)
                for batch in _batches(own, names[band], title):
                    yield replace(some, cells=tuple((batch.column(name),) for name in names[band]))

    return [parts(number) for number in range(n_threads)]


def _batches(file: "parquet.ParquetFile", names: list[str], title: str) -> "Iterator[pa.RecordBatch]":
    """Read some columns of a Parquet file, in batches that fit into the processor's cache."""
    n_rows, left = max(1, _CELLS // len(names)), file.metadata.num_rows
    batches = file.iter_batches(n_rows, columns=None if names == file.schema_arrow.names else names, use_threads=False)
    while True:
        with _sound(title):
            batch = next(batches, None)
            left -= 0 if batch is None else batch.num_rows
            if left < 0 or (batch is None and left):
                raise IndexError(f"column {names[0]!r} has not as many rows as the file")
            if batch is not None:
                _check_places(batch.itercolumns())
        if batch is None:
            return
        yield batch


def n_rows_in(path: Path, how: Format) -> int:
    """Return the number of rows of a Parquet file, from its metadata."""
    from pyarrow import parquet

    title = f"'{path}'"
    with _sound(title):
        metadata = parquet.read_metadata(path)
        _check_size(metadata, title, path.stat().st_size, how.most_bytes)
        return int(metadata.num_rows)


def _check_places(columns: "Iterable[pa.Array | pa.ChunkedArray]") -> None:
    """Refuse dictionary indices out of range, which Arrow reads from a damaged file without an error."""
    import pyarrow as pa

    for column in columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                if chunk.null_count or chunk.type.index_type != pa.int32():
                    chunk.validate(full=True)
                else:  # equivalent, in a tenth of the time
                    chunk.dictionary.validate(full=True)
                    places = _indices(chunk.indices).view(np.uint32)  # negative indices become large
                    if len(places) and places.max() >= len(chunk.dictionary):
                        raise IndexError("a cell has a value that is not there")


@contextmanager
def _sound(title: str) -> Iterator[None]:
    """Convert errors from a damaged Parquet file to a one-line ValueError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, TypeError, IndexError, KeyError, AttributeError) as error:
        problem = one_line(str(error))
        raise ValueError(f"{title} is not a sound Parquet file ({problem}): make or copy it again") from None


def _parquet_file(
    place: Any, title: str, size: int, how: Format
) -> "tuple[parquet.ParquetFile, list[str], frozenset[str]]":
    """Open a Parquet file with texts as Arrow dictionaries, so that repeated ones are stored once.

    Also return the names of these columns, and of those that the file declares as categories or Booleans.
    """
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(place) as file:
        _check_size(file.metadata, title, size, how.most_bytes)
        texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        declared = _declared(file.schema_arrow)
    return parquet.ParquetFile(place, read_dictionary=texts), texts, declared


def _check_size(metadata: Any, title: str, size: int, most_bytes: int | None) -> None:
    """Refuse a file whose rows, or pages, would take more memory than `most_bytes`, or far more than its size."""
    most = limit_of(size, most_bytes)
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    pages = sum(group.total_byte_size for group in groups)  # column metadata of a damaged file can crash the process
    least = max(pages, metadata.num_rows * metadata.num_columns * _BYTES_A_CELL)
    if least > most:
        raise too_large(title, size, least, most)


# Frames and arrays


def open_frame(frame: object) -> Source:
    """Open a frame, which may have no rows."""
    import pyarrow as pa

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The DataFrame has column names of mixed type")  # they become texts
            table = pa.RecordBatchReader.from_stream(frame).read_all()
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as error:
        problem = one_line("; ".join(str(part) for part in error.args))
        raise ValueError(
            f"the {type(frame).__name__} cannot be read ({problem}): pass a frame whose columns have names of their "
            "own and one plain type each, and a series as series.to_frame()"
        ) from None
    return _from_arrow(table, "the frame")


def _from_arrow(table: "pa.Table", title: str) -> Source:
    index = _index_columns((table.schema.metadata or {}).get(b"pandas", b"{}"))
    every = table.column_names
    kept = [i for i, name in enumerate(every) if name not in index]
    names = check_names(title, [every[i] for i in kept])
    return Source(title, names, _chunks(table.column(i) for i in kept), declared=_declared(table.schema))


def _chunks(columns: "Iterable[pa.ChunkedArray]") -> tuple[tuple["pa.Array", ...], ...]:
    return tuple(tuple(column.chunks) for column in columns)


def _declared(schema: "pa.Schema") -> frozenset[str]:
    """Return the columns whose types, Boolean or dictionary, declare that their values are states."""
    import pyarrow as pa

    return frozenset(
        field.name.strip() for field in schema if pa.types.is_boolean(field.type) or pa.types.is_dictionary(field.type)
    )


def _index_columns(notes: bytes) -> set[str]:
    """Return the columns that are the index of a pandas frame, by pandas' metadata; none if this is malformed."""
    try:
        said = json.loads(notes)
    except (ValueError, RecursionError):
        return set()
    columns = said.get("index_columns") if isinstance(said, dict) else None
    return {name for name in columns if isinstance(name, str)} if isinstance(columns, list) else set()


def _open_array(array: NDArray[Any]) -> Source:
    if array.ndim != 2:
        hint = "reshape(-1, 1) makes a vector one column" if array.ndim == 1 else "reshape it to (cases, variables)"
        raise ValueError(f"the array has {array.ndim} dimensions, not 2 (cases, variables): {hint}")
    if array.dtype.kind not in "biufUSOM":
        raise TypeError(
            f"an array of {array.dtype} cannot be read: pass integers, floats, booleans, strings, dates or objects"
        )
    names = tuple(f"x{i + 1}" for i in range(array.shape[1]))
    masks = np.ma.getmaskarray(array).T if isinstance(array, np.ma.MaskedArray) else [None] * len(names)
    plain = _plain(np.asarray(array))
    cells = tuple((_array_cells(np.ascontiguousarray(plain[:, i]), mask, names[i]),) for i, mask in enumerate(masks))
    return Source("the array", names, cells, named=False)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers to a type that Arrow supports: native byte order, no long doubles."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _array_cells(column: NDArray[Any], mask: NDArray[np.bool_] | None, name: str) -> "pa.Array":
    import pyarrow as pa

    try:
        try:
            return pa.array(column, mask=mask, from_pandas=True)
        except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):
            # Objects of mixed types, and large integers, have no Arrow type: each is converted to text.
            return pa.array([_object_text(cell) for cell in column.tolist()], mask=mask, type=pa.large_string())
    except (UnicodeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {name!r} of the array ({column.dtype}) cannot be read ({one_line(str(error))}): "
            "turn it into numbers or plain text"
        ) from None


def _object_text(cell: object) -> str | None:
    is_nan = isinstance(cell, float | np.generic | Decimal) and cell != cell  # or NaT
    if cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    return number_label(float(cell)) if isinstance(cell, float | np.floating) else str(cell)


# Arrow chunks to codes


def column_of(source: Source, name: str, cells: "tuple[pa.Array, ...]") -> Column:
    """Make a column of chunks: their distinct values, concatenated, are merged into one list of labels by Arrow."""
    import pyarrow as pa

    chunks = [chunk for chunk in cells if len(chunk)]
    try:
        pairs = [cells_of(chunk) for chunk in chunks]
        floats = all(pa.types.is_floating(values.type) for _, values in pairs)
        values = [_floats(values) if floats else _texts(values, source) for _, values in pairs]
        joined = pa.concat_arrays(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise without_labels(name, chunks[0].type, error) from None
    if not floats and source.tokens:
        joined = _with_points(joined, source.decimal)
    merged = _without_numbers(joined, source.words).dictionary_encode()
    distinct = merged.dictionary
    kind = np.min_scalar_type(-len(distinct) - 1)  # leaves room for code + 1
    places, begins = _indices(merged.indices), np.cumsum([0, *map(len, values)])
    order = _declared_order(
        chunks, [places[begin : begin + len(one)] for begin, one in zip(begins, values, strict=False)]
    )
    if order:
        places = np.append(np.argsort(order), -1)[places].astype(np.int32)
        distinct = distinct.take(pa.array(order))
    places = np.append(places, np.int32(-1)).astype(kind)  # the last entry is for index -1, a null
    parts = [
        places[np.where(indices < 0, -1, indices + begin)] for (indices, _), begin in zip(pairs, begins, strict=False)
    ]
    make = (lambda: _float_labels(distinct)) if floats else distinct.to_pylist
    labels, coded = Labels(len(distinct), make), not floats and _any_matches(distinct, "^[+-]?0[0-9]")
    declared = name in source.declared
    return Column(name, np.concatenate(parts), labels, bool(order), declared, _numbers(distinct), coded)


def _declared_order(chunks: "Sequence[pa.Array]", places: Sequence[NDArray[np.int32]]) -> list[int]:
    """Return the order of the values, given the places of each chunk's categories among them.

    It is that which ordered categoricals declare; empty if the chunks are none, or do not agree on a single order.
    """
    import pyarrow as pa

    own = [(chunk.type, found) for chunk, found in zip(chunks, places, strict=True) if not pa.types.is_null(chunk.type)]
    if not all(pa.types.is_dictionary(kind) and kind.ordered for kind, _ in own):
        return []
    sorter = TopologicalSorter[int]()
    for categories in {tuple(dict.fromkeys(found[found >= 0].tolist())) for _, found in own}:
        for category in categories[:1]:
            sorter.add(category)
        for before, after in pairwise(categories):
            sorter.add(after, before)
    order: list[int] = []
    try:
        sorter.prepare()
    except CycleError:
        return []
    while ready := sorter.get_ready():
        order += ready
        sorter.done(*ready)
        if len(ready) > 1:
            return []
    return order


def without_labels(name: str, kind: "pa.DataType", error: Exception) -> ValueError:
    """Return the refusal of a column of a type whose cells have no labels."""
    return ValueError(
        f"column {name!r} holds {kind} ({one_line(str(error))}), which has no labels: "
        "turn it into text or numbers, or drop it"
    )


def cells_of(chunk: "pa.Array") -> tuple[NDArray[np.int32], "pa.Array"]:
    """Return the index of each cell's value among the distinct values, -1 for nulls, and these values."""
    import pyarrow as pa

    if pa.types.is_null(chunk.type):
        return np.full(len(chunk), -1, np.int32), text_array([])
    chunk = encoded(chunk)
    distinct = chunk.dictionary
    if _are_intervals(distinct.type):
        distinct = _interval_texts(distinct)
    elif isinstance(distinct.type, pa.BaseExtensionType):  # such as pandas' periods, stored as numbers
        raise pa.ArrowNotImplementedError("only how its values are stored is known")
    elif _is_view(distinct.type):
        distinct = distinct.cast(pa.large_binary() if pa.types.is_binary_view(distinct.type) else pa.large_string())
    return _indices(chunk.indices.cast(pa.int32())), distinct


def encoded(chunk: "pa.Array") -> "pa.DictionaryArray":
    """Return cells in Arrow's dictionary encoding; pandas' intervals become texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(chunk.type):
        return chunk
    return (_interval_texts(chunk) if _are_intervals(chunk.type) else chunk).dictionary_encode()


def _is_view(kind: "pa.DataType") -> bool:
    """Return whether these are texts or bytes as polars hands them out, which Arrow cannot take by their places."""
    import pyarrow as pa

    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _are_intervals(kind: "pa.DataType") -> bool:
    """Return whether this is the type of pandas' intervals, such as `pandas.cut` makes."""
    return getattr(kind, "extension_name", "") == "pandas.interval"


def _interval_texts(intervals: "pa.Array") -> "pa.Array":
    """Format pandas' intervals as pandas does: (20, 30]."""
    import pyarrow as pa

    closed = intervals.type.closed
    opens, closes = "[" if closed in ("left", "both") else "(", "]" if closed in ("right", "both") else ")"
    ends = [intervals.storage.field(side).to_pylist() for side in ("left", "right")]
    texts = (f"{opens}{left}, {right}{closes}" for left, right in zip(*ends, strict=True))
    there = intervals.is_valid().to_pylist()
    return pa.array([text if own else None for text, own in zip(texts, there, strict=True)], pa.large_string())


def _indices(indices: "pa.Array") -> NDArray[np.int32]:
    """Return Arrow's int32 indices with -1 for nulls."""
    # From buffers: Arrow's own conversions import pandas if it is installed, which takes a third of a second.
    begin, end = indices.offset, indices.offset + len(indices)
    found = np.frombuffer(indices.buffers()[1], dtype=np.int32)[begin:end]
    if not indices.null_count:
        return found
    valid = indices.is_valid().cast("uint8")
    return np.where(np.frombuffer(valid.buffers()[1], dtype=np.uint8)[: len(valid)] > 0, found, np.int32(-1))


def text_array(texts: Sequence[str]) -> "pa.LargeStringArray":
    """Make an Arrow array of texts from buffers, since pyarrow.array imports pandas, in a third of a second."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    stops = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(stops), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def _floats(values: "pa.Array") -> "pa.Array":
    """Convert floats to doubles, NaN to null; narrow ones by their shortest text: 0.1, not 0.10000000149011612."""
    import pyarrow as pa
    from pyarrow import compute

    found = values.to_numpy(zero_copy_only=False)
    wide = (found if found.dtype == np.float64 else found.astype(str).astype(np.float64)) + 0.0  # no negative zero
    doubles = pa.Array.from_buffers(pa.float64(), len(wide), [None, pa.py_buffer(wide)])
    return compute.if_else(compute.is_nan(doubles), pa.nulls(1, pa.float64())[0], doubles)


def _without_numbers(values: "pa.Array", words: frozenset[str]) -> "pa.Array":
    """Make values null that are numbers which a word spells, however they are written; "007" is not a number."""
    import pyarrow as pa
    from pyarrow import compute

    numbers = _spelled(words)
    if not numbers:
        return values
    found = values
    if not pa.types.is_floating(values.type):
        found = compute.if_else(compute.match_substring_regex(values, _NUMBER), values, "nan").cast(pa.float64())
    is_word = np.isin(found.to_numpy(zero_copy_only=False), numbers)
    bits = pa.py_buffer(np.packbits(is_word, bitorder="little"))
    masks = pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])
    return compute.if_else(masks, pa.nulls(1, values.type)[0], values)


def _spelled(words: frozenset[str]) -> list[float]:
    """Return the numbers among words."""
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found


def _float_labels(values: "pa.Array") -> list[str]:
    return ["" if value is None else number_label(value) for value in values.to_pylist()]


def _texts(values: "pa.Array", source: Source) -> "pa.Array":
    """Convert distinct values to texts, stripped of blanks; null if missing."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(values.type):  # and chunks of other types
        values = text_array(_float_labels(_floats(values)))
    texts = values.cast(pa.large_string())
    bare = compute.utf8_trim_whitespace(texts)
    # A token without blanks was quoted in the file if it gets here, and is therefore a label.
    tokens = compute.is_in(bare, text_array(sorted(source.tokens)))
    is_token = compute.and_(tokens, compute.not_equal(bare, texts))
    is_word = compute.is_in(bare, text_array(sorted({"", *source.words})))
    return compute.if_else(compute.or_(is_token, is_word), pa.nulls(1, pa.large_string())[0], bare)


def _any_matches(texts: "pa.Array", pattern: str) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.match_substring_regex(texts, pattern)).as_py())


def _with_points(texts: "pa.Array", decimal: str) -> "pa.Array":
    """Normalize decimal commas and thousands separators, if all texts of the column are such numbers."""
    from pyarrow import compute

    if not _any_matches(texts, "[.,]" if decimal == "," else ","):
        return texts
    pattern, group = _GROUPED[decimal]
    if not compute.all(compute.match_substring_regex(texts, pattern)).as_py():
        return texts
    return compute.replace_substring(compute.replace_substring(texts, group, ""), ",", ".")


def _numbers(values: "pa.Array") -> NDArray[np.float64] | None:
    """Return the finite numbers that the texts spell, or None unless all do."""
    import pyarrow as pa

    if not len(values):
        return None
    try:
        found = values.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = np.frombuffer(found.buffers()[1], np.float64)[found.offset : found.offset + len(found)]
    return numbers if np.isfinite(numbers).all() else None
