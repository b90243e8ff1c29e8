"""Parsing of text files: detection of encoding, delimiter and decimal sign, and their cells.

What the user does not specify is detected from the bytes, and reported (`Text.told`). Knows Arrow, which parses, and
refusals, but nothing of states.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, cast

from leafwise.data.table import first_repeated
from leafwise.errors import Advice, AdvisedError, check_type

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_TOKENS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
_LONG_BYTES = 64 << 20  # files above this size are read block by block
BLOCK_BYTES = 16 << 20  # one Arrow chunk of a text file; no row may be longer
UNNAMED = "Unnamed: 0"  # pandas' name for its index, which it writes as a first column without a name
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_PREFERRED = "\t;|,"  # order of preference among equals: those that are rarest inside cells first
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 200
_SPARE_BYTES, _MOST_TIMES = 64 << 20, 200  # what a file may unpack to: bytes, plus a multiple of its size
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?[\d,]*\d\.\d+\s*")


Data = bytes | Callable[[], IO[bytes]]  # a text in UTF-8, or a function that opens one


@dataclass(frozen=True)
class Format:
    """The format of a text file, as specified by the user; None is detected."""

    header: bool = True
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: frozenset[str] = frozenset()  # tokens for missing cells, besides the usual ones
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        sign = self.delimiter
        check_type(sign, (str, NoneType), "the delimiter", "a sign between cells: use ',', ';', '|' or a tab")
        check_type(self.encoding, (str, NoneType), "the encoding", "a name: use for example 'utf-16' or 'cp1252'")
        check_type(self.most_bytes, (Real, NoneType), "most_bytes", "a number of bytes: use for example 2 * 10**9")
        if sign is not None and (len(sign) != 1 or not sign.isascii() or sign in '"\r\n\0'):
            raise ValueError(f"delimiter={sign!r} is not one ASCII sign between cells: use ',', ';', '|' or a tab")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r} is not known: use '.' or ','")
        if sign is not None and sign == self.decimal:
            raise ValueError(f"{sign!r} was given for the delimiter and the decimal sign: change one of them")
        if self.most_bytes is not None and self.most_bytes < 1:
            raise ValueError(f"most_bytes={self.most_bytes!r} leaves no room: give the most bytes that data may take")
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, ValueError):
                raise ValueError(
                    f"encoding={self.encoding!r} is not known: use for example 'utf-8', 'utf-16' or 'cp1252'"
                ) from None


@dataclass(frozen=True, eq=False)
class Text:
    """The cells of a text file, by column, and its format."""

    names: tuple[str, ...]
    cells: tuple["pa.ChunkedArray", ...]
    decimal: str
    told: str


def limit_of(size: int, most_bytes: int | None) -> int:
    """The most bytes that a file of this size may unpack to."""
    return _SPARE_BYTES + _MOST_TIMES * size if most_bytes is None else most_bytes


def too_large(title: str, size: int, least: float, most: int) -> AdvisedError:
    """The refusal of a file that would take too much memory."""
    return AdvisedError(
        f"{title} has {size:,} bytes and would take at least {least:,.0f} in memory, where the most are {most:,}: if "
        "you trust it, allow more with ",
        ("most_bytes", int(4 * least)),
    )


def unpacked(data: bytes, title: str, most_bytes: int | None) -> bytes:
    """The content of a gzip file."""
    most = limit_of(len(data), most_bytes)
    try:
        text = begin_of_packed(data, most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{title} is not a sound gzip file ({error}): make or copy it again") from None
    if len(text) > most:
        raise too_large(title, len(data), len(text), most)
    return text


def begin_of_packed(data: bytes, most: int) -> bytes:
    """Up to `most` bytes from the beginning of a gzip file's content; the memory taken depends on the content alone."""
    found = io.BytesIO()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while block := file.read(min(most - found.tell(), BLOCK_BYTES)):
            found.write(block)
    return found.getvalue()


def separator_of(path: Path) -> str:
    """The delimiter for writing: a tab in .tsv, .tab and .txt, elsewhere a comma.

    >>> separator_of(Path("cases.tsv.gz")), separator_of(Path("cases.csv"))
    ('\\t', ',')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return "\t" if suffixes and suffixes[-1] in (".tsv", ".tab", ".txt") else ","


def parse_text(data: bytes, title: str, how: Format) -> Text:
    """Parse a text file."""
    data, encoding = _in_utf8(data, title, how.encoding)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    sample = list(_sample(data))
    separator = how.delimiter or _find_separator(sample, whole=len(data) <= _SAMPLE_BYTES)
    decimal = how.decimal or _find_decimal(sample, separator)
    try:
        names, cells = _columns(data, title, separator, how)
    except csv.Error as error:
        raise ValueError(f"the first line of {title} cannot be read ({error}): check its quotes") from None
    told = [_SEPARATORS.get(separator, f"cells parted by {separator!r}")] if len(names) > 1 else ["a single column"]
    told += ["decimal commas"] if decimal == "," else []
    return Text(names, cells, decimal, ", ".join([*told, encoding]))


# Long files, block by block


def is_long(path: Path, size: int) -> bool:
    """Whether a file is too long to be read at once; the limit for compressed files is lower."""
    return size > (_LONG_BYTES // 8 if path.suffix.lower() == ".gz" else _LONG_BYTES)


def stream_text(path: Path, title: str, how: Format) -> Iterator[tuple[Text, int]] | None:
    """Parse a text file block by block; each block comes with an estimate of the number of rows of the file.

    None if it has to be read at once: a single column, lines that end in a carriage return alone, or not a text file.
    """
    try:
        with _opened(path) as file:
            head = file.read(BLOCK_BYTES)
        if head.startswith((b"\x1f\x8b", b"PAR1", b"PK\x03\x04")) or b"\n" not in head:
            return None
        encoding, mark = _scanned(path, title, how, head)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{title} is not a sound gzip file ({error}): make or copy it again") from None
    except OSError as error:
        raise ValueError(f"{title} cannot be read ({error.strerror}): check the file and its permissions") from None

    def begin() -> IO[bytes]:
        stream = _opened(path)
        stream.seek(len(mark))
        if encoding == "utf-8":
            return stream
        return cast(IO[bytes], _InUtf8(stream, encoding))

    with begin() as file:
        head = file.read(BLOCK_BYTES)
    sample = list(_sample(head))
    separator = how.delimiter or _find_separator(sample, whole=False)
    decimal = how.decimal or _find_decimal(sample, separator)
    try:
        rows = _rows(_lines(head), separator)
        first = next(row for row in rows if row)
    except csv.Error as error:
        raise ValueError(f"the first line of {title} cannot be read ({error}): check its quotes") from None
    if len(first) == 1:
        return None
    places = tuple(f"x{i + 1}" for i in range(len(first)))
    names = _header(title, first) if how.header else places
    told = [_SEPARATORS.get(separator, f"cells parted by {separator!r}")] + ["decimal commas"] * (decimal == ",")
    text = Text(names, (), decimal, ", ".join([*told, _name_of(encoding)]))
    return _blocks(begin, text, title, separator, places, rows.line_num if how.header else 0, path.stat().st_size)


def _blocks(
    begin: Callable[[], IO[bytes]],
    text: Text,
    title: str,
    separator: str,
    places: tuple[str, ...],
    skip: int,
    size: int,
) -> Iterator[tuple[Text, int]]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    may_run_over, n_in_file = False, 0
    with begin() as file:
        try:
            for batch in arrow_csv.open_csv(file, *_arrow_options(separator, places, skip)):
                table = pa.Table.from_batches([batch])
                may_run_over = may_run_over or _runs_over_lines(table)
                n_in_file = n_in_file or int(1.1 * table.num_rows * size / BLOCK_BYTES)
                yield replace(text, cells=tuple(table.columns)), n_in_file
        except pa.ArrowInvalid as error:
            raise ValueError(_problem(begin, title, separator, len(places), str(error))) from None
    if may_run_over:
        _check_quotes(begin, title, separator)


class _InUtf8(codecs.StreamRecoder):
    """A stream of bytes in an encoding, recoded to UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        own, utf8 = codecs.lookup(encoding), codecs.lookup("utf-8")
        super().__init__(stream, utf8.encode, utf8.decode, own.streamreader, own.streamwriter)

    def read1(self, size: int = -1) -> bytes:
        """Read as by `read`: the base class would delegate to the stream, whose bytes are not recoded."""
        return self.read(size)


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _scanned(path: Path, title: str, how: Format, head: bytes) -> tuple[str, bytes]:
    """The encoding of a long file and its byte order mark, detected and checked by decoding the whole file."""
    found, mark = _mark_of(head) if how.encoding is None else (how.encoding, _mark_in(head, how.encoding))
    try:
        _scan(path, title, how, found or "utf-8", len(mark))
    except UnicodeError:
        if found is None:
            _scan(path, title, how, "cp1252", 0)
            return "cp1252", b""
        raise _not_in(found, title, how.encoding is not None) from None
    return found or "utf-8", mark


def _scan(path: Path, title: str, how: Format, encoding: str, skip: int) -> None:
    most, n, n_lines = limit_of(path.stat().st_size, how.most_bytes), 0, 0
    decoder = codecs.getincrementaldecoder(encoding)()
    with _opened(path) as file:
        file.seek(skip)
        while block := file.read(BLOCK_BYTES):
            n += len(block)
            if n > most:
                raise too_large(title, path.stat().st_size, n, most)
            text = decoder.decode(block)
            if (place := text.find("\0")) >= 0:
                raise _has_nul(n_lines + text.count("\n", 0, place) + 1, title)
            n_lines += text.count("\n")
        decoder.decode(b"", True)


# Bytes to text


def _in_utf8(data: bytes, title: str, encoding: str | None) -> tuple[bytes, str]:
    """The text in UTF-8, without a byte order mark, and the name of its encoding."""
    found, mark = (encoding, b"") if encoding is not None else _find_encoding(data)
    data = data.removeprefix(mark)
    if encoding is not None or found != "utf-8":
        try:
            data = data.decode(found).encode()
        except (UnicodeError, ValueError):
            raise _not_in(found, title, encoding is not None) from None
        data = data.removeprefix(_MARKS[0][0])  # a mark, re-encoded
    if (place := data.find(b"\0")) >= 0:
        raise _has_nul(data.count(b"\n", 0, place) + 1, title)
    return data, _name_of(found)


def _not_in(encoding: str, title: str, was_given: bool) -> AdvisedError:
    return AdvisedError(
        f"{title} is not in the encoding {encoding!r}: say which it is with "
        if was_given
        else f"{title} is neither UTF-8, UTF-16 nor Windows-1252: say which it is with ",
        ("encoding", "latin-1"),
    )


def _has_nul(line: int, title: str) -> ValueError:
    return ValueError(f"line {line} of {title} holds a NUL byte, which no text has: check where it comes from")


def _name_of(encoding: str) -> str:
    return {"utf-8": "UTF-8", "cp1252": "Windows-1252"}.get(encoding, encoding.upper())


def _find_encoding(data: bytes) -> tuple[str, bytes]:
    """The encoding and its byte order mark: as the first bytes show, else UTF-8 if that is valid, or Windows-1252."""
    encoding, mark = _mark_of(data)
    if encoding is not None:
        return encoding, mark
    if data.isascii():
        return "utf-8", b""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252", b""
    return "utf-8", b""


def _mark_of(data: bytes) -> tuple[str | None, bytes]:
    """The encoding that the first bytes show, if any, and its byte order mark."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, mark
    even, odd = data[:_SAMPLE_BYTES:2].count(0), data[1:_SAMPLE_BYTES:2].count(0)
    half = min(len(data), _SAMPLE_BYTES) // 2
    if max(even, odd) > 0.4 * half and min(even, odd) < 0.05 * half:
        return ("utf-16-le" if odd > even else "utf-16-be"), b""
    return None, b""


def _mark_in(data: bytes, encoding: str) -> bytes:
    """The byte order mark at the beginning of a text in this encoding, or b""."""
    try:
        mark = "\ufeff".encode(encoding)
    except UnicodeError:  # an encoding without one
        return b""
    return mark if data.startswith(mark) else b""


# Delimiters and decimal signs


def _lines(data: Data) -> io.TextIOWrapper:
    stream = io.BytesIO(data) if isinstance(data, bytes) else data()
    return io.TextIOWrapper(stream, "utf-8", errors="replace", newline="")


def _rows(lines: Iterable[str], separator: str, *, strict: bool = False) -> Any:
    """The rows as csv reads them, with cells as long as Arrow's; csv has a single limit for the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), BLOCK_BYTES))
    return csv.reader(lines, delimiter=separator, strict=strict)


def _sample(data: bytes) -> Iterator[str]:
    yield from _lines(data[:_SAMPLE_BYTES])


def _sample_rows(sample: list[str], separator: str, *, whole: bool) -> list[list[str]]:
    """The first rows, except the last of a partial file, which may be cut off."""
    found = []
    try:
        for row in _rows(sample, separator):
            if row:
                found.append(row)
            if len(found) > _SAMPLE_ROWS:
                return found[:-1]
    except csv.Error:
        return []
    return found if whole else found[:-1]


def _find_separator(sample: list[str], *, whole: bool) -> str:
    """The delimiter by which most rows have as many cells as the first, and the fewest cells contain another one."""
    best, chosen = (0.0, 0.0, 0), ","
    for sign in _PREFERRED:
        rows = _sample_rows(sample, sign, whole=whole)
        width = len(rows[0]) if rows else 0
        if width > 1:
            even = sum(len(row) == width for row in rows) / len(rows)
            cells = [cell for row in rows for cell in row]
            clean = sum(not _has_other(cell, sign) for cell in cells) / len(cells)
            if (even, clean, width) > best:
                best, chosen = (even, clean, width), sign
    return chosen


def _has_other(cell: str, sign: str) -> bool:
    return any(other in cell for other in _SEPARATORS if other != sign) and not _COMMA_NUMBER.fullmatch(cell)


def _find_decimal(sample: list[str], separator: str) -> str:
    """A comma if numbers have one and none has a point; but commas before three digits may separate thousands."""
    cells = [cell for row in _sample_rows(sample, separator, whole=True) for cell in row]
    with_comma = [cell.strip() for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    if not with_comma or any(_POINT_NUMBER.fullmatch(cell) for cell in cells):
        return "."
    thousands = separator != ";" and all(len(cell.partition(",")[2]) == 3 for cell in with_comma)
    return "." if thousands else ","


# Cells


def _columns(
    data: bytes, title: str, separator: str, how: Format
) -> tuple[tuple[str, ...], tuple["pa.ChunkedArray", ...]]:
    rows = _rows(_lines(data), separator)
    first = next((row for row in rows if row), None)
    if first is None:
        raise ValueError(f"{title} is empty: check where it comes from")
    places = tuple(f"x{i + 1}" for i in range(len(first)))
    names = _header(title, first) if how.header else places
    if len(first) == 1:
        data = data.rstrip(b"\r\n")  # in a single column, a blank line is a missing cell, except at the end
    skip = rows.line_num if how.header else 0
    if how.header and not any(i >= skip and line.strip("\r\n") for i, line in enumerate(_lines(data))):
        _check_quotes(data, title, separator)
        raise AdvisedError(f"{title} has a header and no cases: add some, or pass ", ("header", False))
    table = _parsed(data, title, separator, places, skip)
    if b'"' in data and _runs_over_lines(table):
        _check_quotes(data, title, separator)
    return names, tuple(table.columns)


def _header(title: str, row: list[str]) -> tuple[str, ...]:
    """The names of columns; an empty first name is that of pandas' index."""
    if not row[0].strip() and len(row) > 1:
        row = [UNNAMED, *row[1:]]
    return check_names(title, row, Advice(", or if the first row is a case pass ", ("header", False)))


def check_names(title: str, names: list[str], advice: Advice | str = "") -> tuple[str, ...]:
    """The names without surrounding blanks; an error if one is empty or repeated."""
    stripped = tuple(name.strip() for name in names)
    if "" in stripped:
        raise ValueError(f"column {stripped.index('') + 1} of {title} has an empty name: name it, or leave it out")
    if len(set(stripped)) < len(stripped):
        twice = first_repeated(stripped)
        told = f"{stripped.count(twice)} columns of {title} are called {twice!r}, where names must differ: rename them"
        raise AdvisedError(told, advice)
    return stripped


def _parsed(data: bytes, title: str, separator: str, places: tuple[str, ...], skip: int) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        return arrow_csv.read_csv(pa.BufferReader(data), *_arrow_options(separator, places, skip))
    except pa.ArrowInvalid as error:
        raise ValueError(_problem(data, title, separator, len(places), str(error))) from None


def _arrow_options(separator: str, places: tuple[str, ...], skip: int) -> tuple[Any, Any, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # One thread: on a busy machine, Arrow's threads have returned only the first blocks of a file, without an error.
    text = pa.dictionary(pa.int32(), pa.string())
    return (
        arrow_csv.ReadOptions(column_names=places, skip_rows=skip, block_size=BLOCK_BYTES, use_threads=False),
        arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(places) > 1),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(places, text),
            null_values=MISSING_TOKENS,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _problem(data: Data, title: str, separator: str, n_columns: int, message: str) -> str:
    """The problem of a text file that Arrow rejects, with its line if that can be determined."""
    with _lines(data) as lines:
        rows, begin = _rows(lines, separator), 1
        try:
            for row in rows:
                if row and len(row) != n_columns:
                    if rows.line_num > begin:  # the quote of a cell of several lines may be the problem
                        _check_quotes(data, title, separator)
                    return (
                        f"line {rows.line_num} of {title} has {len(row)} cell{'s' * (len(row) > 1)}, where the first "
                        f"has {n_columns}: correct it, or quote cells that hold the delimiter"
                    )
                begin = rows.line_num + 1
        except csv.Error as error:
            _check_quotes(data, title, separator)
            message = f"line {rows.line_num}: {error}"
    return f"{title} cannot be read as a table of {n_columns} columns ({one_line(message)}): check the file"


def one_line(message: str) -> str:
    """The first 200 characters of a message, on one line."""
    return " ".join(message.split())[:200]


def _runs_over_lines(table: "pa.Table") -> bool:
    """Whether some cell contains a line break."""
    from pyarrow import compute

    chunks = (chunk for column in table.columns for chunk in column.chunks)
    return any(compute.any(compute.match_substring_regex(chunk.dictionary, "[\r\n]")).as_py() for chunk in chunks)


def _check_quotes(data: Data, title: str, separator: str) -> None:
    """Raise an error for quotes that are not closed, which turn rows into parts of a cell."""
    with _lines(data) as lines:
        rows, begin = _rows(lines, separator, strict=True), 1
        try:
            for _ in rows:
                begin = rows.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"a quote in {title} is never closed, or closed in the middle of a cell: from line {begin} on a cell "
                f"runs over several lines ({one_line(str(error))}); close it, or double quotes inside of cells"
            ) from None
