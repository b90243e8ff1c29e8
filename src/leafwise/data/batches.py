"""Files read in batches: cells are packed into bytes as they are read, so that no file is in memory as a whole.

A column is packed as indices into the distinct values seen so far. In the end only these values are interpreted, like
those of any column (`columns`), so the result is the same as that of reading at once. A column with too many values
for a byte is kept in Arrow's dictionary encoding. Knows Arrow, files, and how columns are made.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.columns import (
    PARQUET_ENDINGS,
    Column,
    Kept,
    Source,
    cells_of,
    column_of,
    encoded,
    file_parts,
    n_rows_in,
    other_columns,
    paths_of,
    without_labels,
)
from leafwise.data.table import Table, Variable, brief
from leafwise.data.text_files import Format
from leafwise.errors import AdvisedError
from leafwise.machine import n_cores

if TYPE_CHECKING:
    import pyarrow as pa

Bytes = NDArray[np.uint8]
_MOST = 127  # distinct values of a column in bytes
_MISSING = 255
_MOST_THREADS = 4  # that pack columns of a file
_FEW = 8  # up to this number, values are counted one by one
_SAME = bytearray(range(256))
_BLOCK = 1 << 16  # bytes that are recoded at a time, to fit into the processor's cache

_listeners: list[Callable[[int], None]] = []
_limits = [_MOST_THREADS]  # a stack: the last limit on threads applies


@contextmanager
def rows_told(tell: Callable[[int], None]) -> Iterator[None]:
    """Call `tell` with the number of rows read so far after each batch, within this context."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


@contextmanager
def at_most_threads(n: int) -> Iterator[None]:
    """Limit the number of threads that read files, including Arrow's own, within this context."""
    import pyarrow as pa

    before = pa.cpu_count()
    pa.set_cpu_count(min(n, before))
    _limits.append(n)
    try:
        yield
    finally:
        _limits.pop()
        pa.set_cpu_count(before)


def is_path(source: object) -> bool:
    """Return whether a source is a path (of a file, a folder, or a pattern), or a list of paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(one, str | os.PathLike) for one in source)
    return isinstance(source, str | os.PathLike)


def files_of(source: Any) -> list[Path]:
    """Return the files that such a source denotes."""
    sources = source if isinstance(source, list | tuple) else [source]
    return [path for one in sources for path in paths_of(os.fsdecode(one))]


@dataclass(frozen=True, eq=False)
class PackedSource(Source):
    """An opened source packed into bytes: row i of `block` belongs to column i, and holds its codes if they fit.

    Encoding may overwrite these by states, to make a table in the same memory.
    """

    block: Bytes = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    columns: tuple[Column, ...] = ()

    def column(self, index: int) -> Column:
        """Return column `index` as codes and labels."""
        return self.columns[index]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.block.shape[1])


def read_batches(source: Any, how: Format, kept: Kept) -> PackedSource:
    """Read files in batches, only the columns that `kept` selects.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = (Path(folder) / name).write_text("rain,sky\\nno,blue\\nyes,grey\\n")
    ...     read = read_batches(folder, Format(), lambda source: source)
    >>> read.n_rows, read.column(0).codes.tolist(), list(read.column(0).labels)
    (4, [0, 1, 0, 1], ['no', 'yes'])
    """
    paths = files_of(source)
    return packed(paths, how, kept).finished(how)


def packed(paths: Sequence[Path], how: Format, kept: Kept) -> "Packing":
    """Pack files in batches: another thread reads text ahead, and several threads read the columns of Parquet files."""
    packing: Packing | None = None
    n_threads = min(_limits[-1], _MOST_THREADS, n_cores())
    for pieces in _ahead(pieces for path in paths for pieces in file_parts(path, how, kept, n_threads)):
        part = next(pieces[0], None)
        if part is None:
            continue
        if packing is None:
            packing = Packing(part, paths, _room(part, paths, how))
        packing.add_side_by_side(part, pieces)
        del part
    if packing is None:
        raise ValueError(f"{_title(paths)} has no rows, where at least one is needed: check where it comes from")
    return packing


def _ahead(pieces: Iterator[list[Iterator[Source]]]) -> Iterator[list[Iterator[Source]]]:
    with ThreadPoolExecutor(1, "leafwise-reading") as thread:
        coming = thread.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = thread.submit(next, pieces, None)
            yield piece
            del piece


class Packing:
    """Columns that are being packed; `paths` are their files, if any."""

    def __init__(self, first: Source, paths: Sequence[Path] = (), room: int = 0) -> None:
        self._names = first.every or first.names
        self._first, self._paths = replace(first, names=self._names, every=(), cells=()), paths
        self._places = {name: place for place, name in enumerate(self._names)}
        self._values = [_Values() for _ in self._names]
        self._n_read = [0] * len(self._names)  # rows by column, since parts of a file may have only some columns
        self._block = np.empty((len(self._names), max(room, first.n_rows, 1)), np.uint8)
        self._told: dict[str, None] = {}
        self._types: dict[str, tuple[str, str]] = {}
        self._last_types: dict[str, pa.DataType] = {}
        self._telling = Lock()

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return min(self._n_read)

    def add(self, part: Source) -> None:
        """Pack a batch."""
        import pyarrow as pa

        self._check(part)
        n = part.n_rows
        for name, chunks in zip(part.names, part.cells, strict=True):
            place = self._places[name]
            at = self._n_read[place]
            self._make_room(at + n)
            for chunk in chunks:
                try:
                    self._values[place].add(chunk, self._block[place, : at + len(chunk)], at)
                except pa.ArrowNotImplementedError as error:
                    raise without_labels(name, chunk.type, error) from None
                at += len(chunk)
            self._n_read[place] = at
        if _listeners:
            with self._telling:
                for tell in _listeners:
                    tell(sum(self._n_read) // len(self._n_read))

    def add_side_by_side(self, begun: Source, pieces: Sequence[Iterator[Source]]) -> None:
        """Pack the first part of a file, then those of each iterator by a thread; iterators have different columns."""
        if len(pieces) > 1:
            self._make_room(self.n_rows + begun.n_in_file)  # before other threads start
        self.add(begun)
        over = Event()

        def add_all(parts: Iterator[Source]) -> None:
            for part in parts:
                if over.is_set():
                    return
                self.add(part)

        first, *others = pieces
        if not others:
            add_all(first)
            return
        with ThreadPoolExecutor(len(others), "leafwise-packing") as threads:
            try:
                waiting = [threads.submit(add_all, parts) for parts in others]
                add_all(first)
                for one in waiting:
                    one.result()
            finally:  # also after an interrupt
                over.set()

    def _check(self, part: Source) -> None:
        """Refuse a part whose columns, types or decimal sign differ from those before it."""
        first, names = self._first, part.every or part.names
        if set(names) != set(first.names):
            raise ValueError(other_columns(part.title, names, first.title, first.names))
        for name, chunks in zip(part.names, part.cells, strict=True):
            for chunk in () if part.tokens else chunks:  # text files have no types
                if chunk.type != self._last_types.get(name):
                    self._check_type(name, chunk.type, part.title)
        if part.decimal != first.decimal:
            raise AdvisedError(
                f"{first.title} and {part.title} have different decimal signs: read them one by one, or pass ",
                ("decimal", ","),
            )
        if part.told:
            self._told[part.told] = None

    def _check_type(self, name: str, data_type: "pa.DataType", title: str) -> None:
        kind = _type(data_type)
        known, where = self._types.setdefault(name, (kind, title)) if kind else (kind, title)
        if known != kind:
            raise ValueError(
                f"column {brief(name)} is a {known} in {where} and a {kind} in {title}: give files with the same types"
            )
        self._last_types[name] = data_type

    def _make_room(self, n: int) -> None:
        room = self._block.shape[1]
        if n <= room:
            return
        block = np.empty((len(self._block), max(n, 2 * room)), np.uint8)  # unused memory is not touched
        for new, old, n_read in zip(block, self._block, self._n_read, strict=True):
            new[:n_read] = old[:n_read]
        self._block = block

    def surveyed(self) -> tuple[Source, list[NDArray[np.int64]]]:
        """Return the values seen, as a source with each of them once (padded by nulls), and their counts.

        Entry 255 is the count of missing cells. A column with too many values for a byte is refused.
        """
        import pyarrow as pa

        seen: list[pa.Array] = []
        for name, values in zip(self._names, self._values, strict=True):
            if values.seen is None:
                raise AdvisedError(
                    f"column {brief(name)} has more than {_MOST} values in {self._first.title}, and shards agree on "
                    "columns of fewer: cut it into bins, or leave it out with ",
                    ("ignore", [name]),
                )
            seen.append(values.seen)
        n = max([1, *map(len, seen)])
        cells = tuple((one, pa.nulls(n - len(one), one.type)) for one in seen)
        known = replace(self._first, cells=cells, told="; ".join(self._told), n_in_file=0)
        return known, [one.counts for one in self._values]

    def table(self, variables: tuple[Variable, ...], codes: Sequence[Bytes]) -> Table:
        """Return a table, whose codes replace each byte (the index of a value, or 255); no batch may follow."""
        block = _tight(self._block, self.n_rows)
        for row, own in zip(block, codes, strict=True):
            recode(row, own)
        return Table(variables, block)

    def finished(self, how: Format) -> PackedSource:
        """Return all that was read, as a source."""
        first, n = self._first, self.n_rows
        block = _tight(self._block, n)
        title = first.title if len(self._paths) <= 1 else _title(self._paths)
        known = PackedSource(
            title, first.names, (), first.named, "; ".join(self._told), first.tokens, how.na, first.decimal,
            first.declared, block=block,
        )  # fmt: skip
        columns = [
            values.column(known, name, row) for values, name, row in zip(self._values, first.names, block, strict=True)
        ]
        return replace(known, columns=tuple(columns))


def _title(paths: Sequence[Path]) -> str:
    return f"'{paths[0]}'" if len(paths) == 1 else f"the {len(paths)} files"


def _room(first: Source, paths: Sequence[Path], how: Format) -> int:
    """Estimate the total number of rows, so that memory need not be reallocated."""
    if len(paths) <= 1:
        return first.n_in_file
    if all(path.suffix.lower() in PARQUET_ENDINGS and path.exists() for path in paths):
        return sum(n_rows_in(path, how) for path in paths)
    sizes = [path.stat().st_size for path in paths if path.exists()]  # rows per byte are as in the first, plus 10 %
    return int(1.1 * first.n_in_file * sum(sizes) / max(1, sizes[0])) + 1 if sizes else 1


def _tight(block: Bytes, n: int) -> Bytes:
    """Make the first `n` bytes of each row contiguous, in the same memory."""
    if block.shape[1] == n:
        return block
    n_rows, room = block.shape
    flat = block.reshape(-1)
    for row in range(1, n_rows):
        flat[row * n : (row + 1) * n] = flat[row * room : row * room + n]
    return flat[: n_rows * n].reshape(n_rows, n)


def recode(row: Bytes, codes: Bytes) -> None:
    """Replace each byte by its entry in `codes`, which has 256, in place.

    >>> row = np.array([0, 1, 1], np.uint8)
    >>> recode(row, np.arange(255, -1, -1, dtype=np.uint8))
    >>> row
    array([255, 254, 254], dtype=uint8)
    """
    table = codes.tobytes()
    for begin in range(0, len(row), _BLOCK):
        block = row[begin : begin + _BLOCK]
        block[:] = np.frombuffer(block.tobytes().translate(table), np.uint8)


def _recode_few(cells: Bytes, codes: bytearray) -> None:
    """Recode cells that are below len(codes), or 255, which stays: by XOR with masks, in half the time of `recode`."""
    flips = np.zeros(0, np.uint8)
    for place, code in enumerate(codes):
        if place != code:
            own = (cells == place).view(np.uint8)
            own *= np.uint8(place ^ code)
            flips = np.bitwise_xor(flips, own, out=flips) if len(flips) else own
    if len(flips):
        cells ^= flips


def _tally(cells: Bytes, n: int, has_missing: bool) -> list[int]:
    """Count each byte below `n`, and last 255; there are no others."""
    if n > _FEW:
        counts = np.bincount(cells, minlength=256).tolist()
        return [*counts[:n], counts[_MISSING]]
    counts = [int(np.count_nonzero(cells == value)) for value in range(n - (not has_missing))]
    rest = len(cells) - sum(counts)
    return [*counts, rest] if has_missing else [*counts, rest, 0]


def _type(kind: "pa.DataType") -> str:
    """Return the kind of an Arrow type, for messages; "" for a column of nulls only."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return ""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "truth value"
    return "date or time" if types.is_temporal(kind) else "text"


def _as_numbers(values: "pa.Array") -> "pa.Array":
    """Return dates and times as the numbers that Arrow stores, since Python's have limits; other values as they are."""
    import pyarrow as pa

    if not pa.types.is_temporal(values.type) or values.type.bit_width > 64:
        return values
    return values.view(pa.int64() if values.type.bit_width == 64 else pa.int32())


def _whole_numbers(numbers: NDArray[np.int64]) -> "pa.Array":
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


class _Values:
    """The distinct values of one column seen so far, and their counts."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._pieces: list[pa.Array] = []  # the values, in the order of their codes
        self.counts = np.zeros(256, np.int64)
        self._wide: list[pa.Array] | None = None  # all cells, once there are too many values
        self._ordered = True

    @property
    def seen(self) -> "pa.Array | None":
        """The values, in the order of their codes, as categories if they are ordered; None if there are too many."""
        import pyarrow as pa

        if self._wide is not None:
            return None
        values = pa.concat_arrays(self._pieces) if self._pieces else pa.nulls(0)
        if not self._pieces or not self._ordered:
            return values
        return pa.DictionaryArray.from_arrays(_whole_numbers(np.arange(len(values))), values, ordered=True)

    def add(self, chunk: "pa.Array", row: Bytes, begin: int) -> None:
        """Pack cells into a row, from `begin` on."""
        import pyarrow as pa

        if not len(chunk):
            return
        if not pa.types.is_null(chunk.type):
            self._ordered &= pa.types.is_dictionary(chunk.type) and chunk.type.ordered
        if self._wide is None and pa.types.is_null(chunk.type):
            row[begin:] = _MISSING
            self.counts[_MISSING] += len(chunk)
        elif self._wide is not None or not (self._add_numbers(chunk, row[begin:]) or self._add(chunk, row[begin:])):
            if self._wide is None:
                self._widen(row[:begin])
                assert self._wide is not None
            self._wide.append(chunk if pa.types.is_null(chunk.type) else encoded(chunk))

    def _add_numbers(self, chunk: "pa.Array", out: Bytes) -> bool:
        """Pack integers in a small range, without Arrow's dictionary encoding; return whether they are."""
        import pyarrow as pa

        kind = chunk.type
        if not pa.types.is_integer(kind) or pa.types.is_uint64(kind) or chunk.null_count:
            return False
        if self._pieces and self._pieces[0].type != pa.int64():
            return False
        cells = np.frombuffer(chunk.buffers()[1], str(kind))[chunk.offset : chunk.offset + len(chunk)]
        least, most = 0, int(cells.view(f"u{cells.itemsize}").max())  # negative numbers become large
        if most >= _FEW:
            least, most = int(cells.min()), int(cells.max())
        n = most - least + 1
        if n > _MISSING:
            return False
        np.copyto(out, cells, casting="unsafe")
        if least:
            out -= np.uint8(least % 256)
        counts = _tally(out, n, has_missing=False)
        values = [least + place for place in range(n) if counts[place]]
        new = [value for value in values if value not in self._codes]
        if len(self._codes) + len(new) > _MOST:
            return False
        if new:
            self._pieces.append(_whole_numbers(np.array(new)))
            self._codes.update(zip(new, range(len(self._codes), _MOST), strict=False))
        table = bytearray(_SAME)
        for value in values:
            table[value - least] = self._codes[value]
        self._take(table, counts, out)
        return True

    def _add(self, chunk: "pa.Array", out: Bytes) -> bool:
        """Pack cells by Arrow's dictionary encoding; return False if there are too many values, or two types."""
        import pyarrow as pa

        cells, values = cells_of(chunk)
        if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
            values = values.cast(pa.int64())
        if len(values) > _MOST or (self._pieces and self._pieces[0].type != values.type):
            return False
        found, new = _as_numbers(values).to_pylist(), []
        keys = [value.hex() if isinstance(value, float) else value for value in found]  # 0.0 is not -0.0, NaN is NaN
        if self._ordered and not self._continues([key for key in keys if key is not None]):
            return False
        for place, key in enumerate(keys):
            if key is not None and key not in self._codes:
                self._codes[key] = 0
                new.append(place)
        if len(self._codes) > _MOST:
            for _ in new:  # remove them again
                self._codes.popitem()
            return False
        if new:
            if not self._ordered:  # sorted like their states, if possible
                new.sort(key=keys.__getitem__)
            self._pieces.append(values.take(_whole_numbers(np.array(new))))
            n = len(self._codes)
            self._codes.update(zip((keys[place] for place in new), range(n - len(new), n), strict=True))
        table = bytearray(_SAME)
        for place, key in enumerate(keys):
            table[place] = _MISSING if key is None else self._codes[key]
        np.copyto(out, cells, casting="unsafe")  # a missing cell, -1, is byte 255
        self._take(table, _tally(out, len(values), chunk.null_count > 0), out)
        return True

    def _continues(self, keys: list[Any]) -> bool:
        """Return whether ordered categories are in the order of their codes, with new ones after all that are known."""
        known = [self._codes[key] for key in keys if key in self._codes]
        has_new = len(known) < len(keys)
        if known != sorted(known) or any(key not in self._codes for key in keys[: len(known)]):
            return False
        return not has_new or not self._codes or (bool(known) and known[-1] == len(self._codes) - 1)

    def _take(self, table: bytearray, counts: list[int], out: Bytes) -> None:
        """Recode bytes by a table, and add their counts to those of its codes."""
        for code, count in zip(table, counts[:-1], strict=False):
            self.counts[code] += count
        self.counts[_MISSING] += counts[-1]
        if len(counts) <= _FEW:
            _recode_few(out, table[: len(counts) - 1])
        elif table != _SAME:
            recode(out, np.frombuffer(table, np.uint8))

    def _widen(self, packed: Bytes) -> None:
        """Switch to Arrow's dictionary encoding, also for the cells packed so far."""
        import pyarrow as pa

        self._wide = []
        if not len(packed):
            return
        if not self._pieces:
            self._wide.append(pa.nulls(len(packed)))
            return
        bits = np.packbits(packed != _MISSING, bitorder="little")
        buffers = [pa.py_buffer(bits), pa.py_buffer(packed.copy())]
        indices = pa.Array.from_buffers(pa.int8(), len(packed), buffers)
        values = pa.concat_arrays(self._pieces)
        self._wide.append(pa.DictionaryArray.from_arrays(indices, values, ordered=self._ordered))

    def column(self, source: Source, name: str, row: Bytes) -> Column:
        """Return the column, whose codes are in this row if they are bytes."""
        import pyarrow as pa

        if self._wide is not None:
            return column_of(source, name, tuple(self._wide))
        n = len(self._codes)
        values = pa.concat_arrays(self._pieces) if n else pa.nulls(1)
        found = column_of(source, name, (values,))  # each value once
        codes = np.full(256, _MISSING, np.uint8)
        codes[:n] = found.codes[:n].astype(np.uint8)
        counts = np.zeros(256, np.int64)
        np.add.at(counts, codes, self.counts)
        if (codes[:n] != np.arange(n)).any():
            recode(row, codes)
        counts = np.append(counts[: len(found.labels)], counts[_MISSING])
        return replace(found, codes=row.view(np.int8), counts=counts, ordered=self._ordered and n > 0)
