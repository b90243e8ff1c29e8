"""Files, frames and arrays as columns: for each case the index of its text, -1 where the cell is missing.

Knows Arrow, which reads every source: text files, Parquet, anything with the Arrow PyCapsule stream, NumPy arrays.
Nothing is decided here about states; that is `encoding`'s business. Arrow is imported when a source is opened.
"""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.binning import number_label

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_TOKENS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
BLOCK_BYTES = 16 << 20  # one Arrow chunk of a text file; no row may be longer


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `codes` index `labels`, which are distinct; -1 is a missing cell.

    Labels come in order of appearance, or, when `ordered`, in the order their source gave them.
    """

    name: str
    codes: NDArray[np.signedinteger[Any]]
    labels: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class Source:
    """An opened source: what to call it in messages, its columns' names, and their cells as Arrow chunks."""

    title: str
    names: tuple[str, ...]
    cells: tuple["pa.ChunkedArray", ...]
    named: bool = True  # False: names were made up, and columns are known by position
    tokens: frozenset[str] = frozenset()  # texts that mean missing once blanks around them are gone

    def column(self, index: int) -> Column:
        """Column number `index` as codes and labels."""
        return _column(self.names[index], self.cells[index], self.tokens)

    def n_numbers(self, index: int) -> int | None:
        """How many distinct numbers a column holds; None where it holds anything else, be it texts that spell them."""
        import pyarrow as pa

        kind = self.cells[index].type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return None
        return len(self.cells[index].unique().drop_null())


def open_source(source: object, *, header: bool = True) -> Source:
    """Open a file, a frame or an array.

    >>> opened = open_source(np.array([[0, 5], [1, 5]]))
    >>> opened.names, opened.column(0).labels
    (('x1', 'x2'), ('0', '1'))
    """
    if isinstance(source, str | os.PathLike):
        opened = _open_file(Path(os.fsdecode(source)), header)
    elif isinstance(source, np.ndarray):
        opened = _open_array(source)
    elif hasattr(source, "__arrow_c_stream__"):
        opened = _open_frame(source)
    else:
        raise TypeError(
            f"data of type {type(source).__name__} cannot be read: pass a path, a pandas, polars or Arrow frame, "
            "or a 2-D NumPy array"
        )
    if not opened.names or not len(opened.cells[0]):
        lacks = "rows" if opened.names else "columns"
        raise ValueError(f"{opened.title} has no {lacks}, where at least one is needed: check where it comes from")
    return opened


def _check_names(title: str, names: Iterable[str]) -> tuple[str, ...]:
    stripped = tuple(name.strip() for name in names)
    if "" in stripped:
        raise ValueError(f"column {stripped.index('') + 1} of {title} has an empty name: name it, or leave it out")
    if len(set(stripped)) < len(stripped):
        twice = next(name for i, name in enumerate(stripped) if name in stripped[:i])
        count = stripped.count(twice)
        raise ValueError(f"{count} columns of {title} are called {twice!r}, where names must differ: rename them")
    return stripped


# Files


def _open_file(path: Path, header: bool) -> Source:
    title = f"'{path}'"
    if path.is_dir():
        raise ValueError(f"{title} is a directory: pass one data file (.csv, .tsv, .txt, each also .gz, or .parquet)")
    if not path.exists():
        raise FileNotFoundError(f"no file {title}: check the path")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _open_parquet(path, title)
    data = _file_bytes(path, title)
    try:
        return _open_text(data, title, delimiter(path, data), header)
    except UnicodeDecodeError:
        raise ValueError(f"{title} has bytes that are not UTF-8: save it as UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"the first line of {title} cannot be read ({error}): check its quotes") from None


def _file_bytes(path: Path, title: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{title} cannot be read ({error.strerror}): check the file and its permissions") from None
    if path.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{title} is not a sound gzip file ({error}): make or copy it again") from None
    return data.removeprefix(b"\xef\xbb\xbf")


def delimiter(path: Path, data: bytes | None = None) -> str:
    """What stands between cells: a tab in .tsv, in .txt a tab if the first line has one, elsewhere a comma.

    >>> delimiter(Path("cases.tsv.gz")), delimiter(Path("cases.csv")), delimiter(Path("cases.txt"), b"a,b")
    ('\\t', ',', ',')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last == ".txt":
        return "\t" if data is None or b"\t" in data.partition(b"\n")[0] else ","
    return "\t" if last == ".tsv" else ","


def _open_text(data: bytes, title: str, separator: str, header: bool) -> Source:
    first, n_lines = _first_row(data, separator)
    if first is None:
        raise ValueError(f"{title} is empty: check where it comes from")
    places = tuple(f"x{i + 1}" for i in range(len(first)))
    names = _check_names(title, first) if header else places
    if len(first) == 1:
        data = data.rstrip(b"\r\n")  # a blank line inside a single column is a missing cell, after it nothing
    skip = n_lines if header else 0
    if header and not _has_cases(data, skip):
        raise ValueError(f"{title} has a header and no cases: add some, or pass header=False if it has no header")
    table = _parsed(data, title, separator, places, skip)
    if data.count(b'"') % 2 and "\n" in (table.column(-1)[-1].as_py() or ""):
        raise ValueError(f"a quote in {title} is never closed: its last cell runs over several lines; close it")
    return Source(title, names, tuple(table.columns), named=header, tokens=frozenset(MISSING_TOKENS))


def _lines(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")


def _first_row(data: bytes, separator: str) -> tuple[list[str] | None, int]:
    """The first row that is not blank, and the lines read up to its end."""
    rows = csv.reader(_lines(data), delimiter=separator)
    return next((row for row in rows if row), None), rows.line_num


def _has_cases(data: bytes, n_lines: int) -> bool:
    return any(i >= n_lines and line.strip("\r\n") for i, line in enumerate(_lines(data)))


def _parsed(data: bytes, title: str, separator: str, places: tuple[str, ...], skip: int) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # One thread: on a busy machine, Arrow's threads have been seen to return the first blocks of a file, and no error.
    text = pa.dictionary(pa.int32(), pa.string())
    options = arrow_csv.ReadOptions(column_names=places, skip_rows=skip, block_size=BLOCK_BYTES, use_threads=False)
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            options,
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(places) > 1),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, text),
                null_values=MISSING_TOKENS,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(_text_problem(data, title, separator, len(places), str(error))) from None


def _text_problem(data: bytes, title: str, separator: str, n_columns: int, message: str) -> str:
    """What is wrong with a text file that Arrow refused, with the line where it can be told."""
    if "UTF8" in message:
        return f"{title} has bytes that are not UTF-8: save it as UTF-8 text"
    rows = csv.reader(_lines(data), delimiter=separator)
    for row in rows:
        if row and len(row) != n_columns:
            return (
                f"line {rows.line_num} of {title} has {len(row)} cell{'s' * (len(row) > 1)}, where the first has "
                f"{n_columns}: correct it, or quote cells that hold the delimiter"
            )
    return f"{title} cannot be read as a table of {n_columns} columns ({_one_line(message)}): check the file"


def _one_line(message: str) -> str:
    return " ".join(message.split())[:200]


def _open_parquet(path: Path, title: str) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        problem = _one_line(str(error))
        raise ValueError(f"{title} is not a sound Parquet file ({problem}): make or copy it again") from None
    return _from_arrow(table, title)


# Frames and arrays


def _open_frame(frame: object) -> Source:
    import pyarrow as pa

    try:
        table = pa.RecordBatchReader.from_stream(frame).read_all()
    except (ValueError, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:  # ArrowInvalid is a ValueError
        problem = _one_line("; ".join(str(part) for part in error.args))
        raise ValueError(
            f"the {type(frame).__name__} cannot be read ({problem}): pass a frame with one type a column"
        ) from None
    return _from_arrow(table, "the frame")


def _from_arrow(table: "pa.Table", title: str) -> Source:
    # pandas sends its index along as columns, and says which they are.
    notes = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = {name for name in notes.get("index_columns", []) if isinstance(name, str)}
    kept = [i for i, name in enumerate(table.column_names) if name not in index]
    names = _check_names(title, (table.column_names[i] for i in kept))
    return Source(title, names, tuple(table.column(i) for i in kept))


def _open_array(array: NDArray[Any]) -> Source:
    import pyarrow as pa

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
    cells = [
        pa.chunked_array([_array_cells(np.ascontiguousarray(plain[:, i]), mask, names[i])])
        for i, mask in enumerate(masks)
    ]
    return Source("the array", names, tuple(cells), named=False)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that Arrow knows: native byte order, no long doubles."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _array_cells(column: NDArray[Any], mask: NDArray[np.bool_] | None, name: str) -> "pa.Array":
    import pyarrow as pa

    try:
        try:
            return pa.array(column, mask=mask, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # Objects of several types have no Arrow type: each goes by its own text.
            return pa.array([_object_text(cell) for cell in column.tolist()], mask=mask, type=pa.large_string())
    except (UnicodeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {name!r} of the array ({column.dtype}) cannot be read ({_one_line(str(error))}): "
            "turn it into numbers or plain text"
        ) from None


def _object_text(cell: object) -> str | None:
    if cell is None or type(cell).__name__ == "NAType":
        return None
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float | np.floating):
        return None if np.isnan(cell) else number_label(float(cell))
    return str(cell)


# Arrow chunks to codes


def _column(name: str, cells: "pa.ChunkedArray", tokens: frozenset[str]) -> Column:
    import pyarrow as pa

    position: dict[str, int] = {}
    parts: list[NDArray[np.signedinteger[Any]]] = []
    try:
        for chunk in cells.chunks:
            parts.append(_chunk_codes(chunk, position, tokens))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {name!r} holds {cells.type} ({_one_line(str(error))}), which has no labels: "
            "turn it into text or numbers, or drop it"
        ) from None
    ordered = bool(pa.types.is_dictionary(cells.type) and cells.type.ordered)
    return Column(name, np.concatenate(parts), tuple(position), ordered)


def _chunk_codes(chunk: "pa.Array", position: dict[str, int], tokens: frozenset[str]) -> NDArray[np.signedinteger[Any]]:
    """Codes of one chunk; texts not met before are added to `position`."""
    import pyarrow as pa

    if pa.types.is_null(chunk.type):
        return np.full(len(chunk), -1, dtype=np.int8)
    encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    found = [
        -1 if text is None or text == "" else position.setdefault(text, len(position))
        for text in _texts(encoded.dictionary, tokens)
    ]
    # The extra last entry is where index -1, a null, finds its -1. The type leaves room for code + 1.
    codes: NDArray[np.signedinteger[Any]] = np.array([*found, -1], dtype=np.min_scalar_type(-len(position) - 1))
    return codes[_indices(encoded.indices.cast(pa.int32()))]


def _indices(indices: "pa.Array") -> NDArray[np.int32]:
    """Arrow's int32 indices with -1 for nulls."""
    # By way of buffers: Arrow's own conversions import pandas wherever it is installed, a third of a second.
    begin, end = indices.offset, indices.offset + len(indices)
    found = np.frombuffer(indices.buffers()[1], dtype=np.int32)[begin:end]
    if not indices.null_count:
        return found
    valid = indices.is_valid().cast("uint8")
    return np.where(np.frombuffer(valid.buffers()[1], dtype=np.uint8)[: len(valid)] > 0, found, np.int32(-1))


def _texts(values: "pa.Array", tokens: frozenset[str]) -> list[str | None]:
    """One text a distinct value, None for a missing one."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return _float_texts(values.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(values.type):
        return [None if value is None else str(value).lower() for value in values.to_pylist()]
    texts: list[str | None] = values.cast(pa.large_string()).to_pylist()
    return [None if text is None else _stripped(text, tokens) for text in texts]


def _stripped(text: str, tokens: frozenset[str]) -> str | None:
    # A token without blanks that comes here was quoted in its file, and so is a label.
    bare = text.strip()
    return None if bare != text and bare in tokens else bare


def _float_texts(values: NDArray[np.floating[Any]]) -> list[str | None]:
    # Narrow floats are spelled by their own shortest text: 0.1, not 0.10000000149011612.
    pairs = zip(values.tolist(), values.astype(str).tolist(), strict=True)
    return [None if value != value else _float_text(value, text) for value, text in pairs]


def _float_text(value: float, text: str) -> str:
    return number_label(value) if value.is_integer() else text
