"""Writing of tables to text or Parquet files, atomically.

Knows tables, and the endings and missing cells of files that can be read. Arrow is imported when a table is written.
"""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.columns import PARQUET_ENDINGS, check_ending, text_array
from leafwise.data.frames import Categories, Columns, arrow_table
from leafwise.data.table import Table, Variable
from leafwise.data.text_files import MISSING_TOKENS, separator_of
from leafwise.replacing import replaced

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_WRITE = 65_536


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table's labels to a file with a header.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cases.csv"
    ...     write_table(Table((Variable("rain", ("no", "yes")),), np.array([[0, 1]], dtype=np.uint8)), path)
    ...     path.read_text()
    'rain\\nno\\nyes\\n'
    """
    target = Path(os.fsdecode(path))
    check_ending(target)
    with _opened(target) as file:
        if target.suffix.lower() in PARQUET_ENDINGS:
            _write_parquet(table, file)
        elif target.suffix.lower() == ".gz":
            # Without a time and a name, the same table gives the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                _write_text(table, packed, separator_of(target))
        else:
            _write_text(table, file, separator_of(target))


def write_columns(columns: Columns, place: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write columns of labels and numbers like a table, to a file or to a stream; in text, NaN is an empty cell."""
    if not isinstance(place, str | os.PathLike):
        _write_rows(columns, place, ",")
        return
    target = Path(os.fsdecode(place))
    check_ending(target)
    with _opened(target) as file:
        if target.suffix.lower() in PARQUET_ENDINGS:
            from pyarrow import parquet

            parquet.write_table(arrow_table(columns), file)
        elif target.suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                _write_rows(columns, packed, separator_of(target))
        else:
            _write_rows(columns, file, separator_of(target))


def _write_rows(columns: Columns, file: "IO[bytes] | gzip.GzipFile", separator: str) -> None:
    texts = []
    for column in columns.values():
        if isinstance(column, Categories):
            labels = [_quoted(label) for label in column.labels]
            texts.append([labels[code] for code in column.codes.tolist()])
        elif isinstance(column, np.ndarray):
            texts.append(["" if value != value else repr(value) for value in column.tolist()])
        else:
            texts.append([_quoted(text) for text in column])
    lines = [separator.join(map(_quoted_name, columns)), *map(separator.join, zip(*texts, strict=True)), ""]
    file.write("\n".join(lines).encode())


@contextmanager
def _opened(target: Path) -> Iterator[IO[bytes]]:
    """Open the file to be replaced; an error if the path is a directory, or in one that does not exist."""
    if target.is_dir() or not target.parent.is_dir():
        problem = "is a directory" if target.is_dir() else "is in a directory that does not exist"
        raise ValueError(f"'{target}' {problem}: give the path of a file to write")
    with replaced(target) as file:
        yield file


def _write_text(table: Table, file: "IO[bytes] | gzip.GzipFile", separator: str) -> None:
    from pyarrow import compute

    file.write((separator.join(map(_quoted_name, table.names)) + "\n").encode())
    nothing = text_array([""])[0]
    ends = [separator] * (table.n_variables - 1) + ["\n"]
    cells = [
        text_array([text + end for text in _cell_texts(variable, alone=table.n_variables == 1)])
        for variable, end in zip(table.variables, ends, strict=True)
    ]
    for start in range(0, table.n_cases, ROWS_A_WRITE):
        codes = table.codes[:, start : start + ROWS_A_WRITE]
        taken = [texts.take(_code_array(row)) for texts, row in zip(cells, codes, strict=True)]
        _, stops, text = compute.binary_join_element_wise(*taken, nothing).buffers()
        file.write(text[: int(np.frombuffer(stops, dtype=np.int64)[codes.shape[1]])])  # rows are contiguous


def _code_array(codes: NDArray[Any]) -> "pa.Int32Array":
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes.astype(np.int32))])


def _cell_texts(variable: Variable, *, alone: bool) -> list[str]:
    texts = [_quoted(label) for label in variable.labels]
    if variable.missing:
        texts[-1] = '""' if alone else ""  # alone in its row, an empty cell would be a blank line
    return texts


def _quoted(text: str) -> str:
    special = text in MISSING_TOKENS or text != text.strip() or any(mark in text for mark in ',\t"\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def _quoted_name(name: str) -> str:
    """Quote a name also if it holds a sign that would be found to be the delimiter, which the first row decides."""
    return f'"{name}"' if _quoted(name) == name and any(mark in name for mark in ";|") else _quoted(name)


def _write_parquet(table: Table, file: IO[bytes]) -> None:
    from pyarrow import parquet

    parquet.write_table(table.to_arrow(), file)
