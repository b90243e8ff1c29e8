"""Files read in batches: every cell becomes a byte as soon as it is read, so that no file is ever in memory whole.

A column is packed as places among the values seen so far. When all is read, these values, and not millions of cells,
are looked at as any column's are (`columns`), so what comes out is what reading at once gives. A column with more
values than a byte has room for is kept as Arrow encodes it. Knows Arrow, files, and how columns are made.
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

from leafwise.columns import (
    PARQUET_ENDINGS,
    Column,
    Kept,
    Source,
    cells_of,
    column_of,
    file_parts,
    n_rows_in,
    other_columns,
    paths_of,
)
from leafwise.errors import AdvisedError
from leafwise.machine import n_cores
from leafwise.table import Table, Variable, brief
from leafwise.text_files import Format

if TYPE_CHECKING:
    import pyarrow as pa

Bytes = NDArray[np.uint8]
_MOST = 127  # values of a column that is kept in bytes
_MISSING = 255
_MOST_THREADS = 4  # that pack columns of a file
_FEW = 8  # values that are counted one by one
_SAME = bytearray(range(256))
_BLOCK = 1 << 16  # bytes that are recoded at a time: they stay in the processor's cache

_listeners: list[Callable[[int], None]] = []
_limits = [_MOST_THREADS]  # of threads, the last of which holds


@contextmanager
def rows_told(tell: Callable[[int], None]) -> Iterator[None]:
    """While this lasts, `tell` is called with the number of rows read so far, batch by batch."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


@contextmanager
def at_most_threads(n: int) -> Iterator[None]:
    """While this lasts, files are read with at most so many threads, Arrow's own among them."""
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
    """Whether a source is a file, a folder, a pattern, or several of these."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(one, str | os.PathLike) for one in source)
    return isinstance(source, str | os.PathLike)


def files_of(source: Any) -> list[Path]:
    """The files that such a source stands for."""
    sources = source if isinstance(source, list | tuple) else [source]
    return [path for one in sources for path in paths_of(os.fsdecode(one))]


@dataclass(frozen=True, eq=False)
class PackedSource(Source):
    """An opened source whose cells are bytes: row i of `block` belongs to column i, and is its codes where these are.

    Encoding may write states over them, to make a table in the same memory.
    """

    block: Bytes = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    columns: tuple[Column, ...] = ()

    def column(self, index: int) -> Column:
        """Column number `index` as codes and labels."""
        return self.columns[index]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.block.shape[1])


def read_batches(source: Any, how: Format, kept: Kept) -> PackedSource:
    """Read files, batch by batch: those columns that `kept` leaves of a source.

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
    """Files packed batch by batch: text is read ahead by another thread, columns of Parquet by several."""
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
    """Columns being read; `paths` are the files, if they are read from some."""

    def __init__(self, first: Source, paths: Sequence[Path] = (), room: int = 0) -> None:
        self._names = first.every or first.names
        self._first, self._paths = replace(first, names=self._names, every=(), cells=()), paths
        self._places = {name: place for place, name in enumerate(self._names)}
        self._values = [_Values() for _ in self._names]
        self._n_read = [0] * len(self._names)  # rows of each column: parts of a file may have some columns only
        self._block = np.empty((len(self._names), max(room, first.n_rows, 1)), np.uint8)
        self._told: dict[str, None] = {}
        self._types: dict[str, tuple[str, str]] = {}
        self._last_types: dict[str, pa.DataType] = {}
        self._telling = Lock()

    @property
    def n_rows(self) -> int:
        """How many rows there are so far."""
        return min(self._n_read)

    def add(self, part: Source) -> None:
        """Pack one more batch."""
        self._check(part)
        n = part.n_rows
        for name, chunks in zip(part.names, part.cells, strict=True):
            place = self._places[name]
            at = self._n_read[place]
            self._make_room(at + n)
            for chunk in chunks:
                self._values[place].add(chunk, self._block[place, : at + len(chunk)], at)
                at += len(chunk)
            self._n_read[place] = at
        if _listeners:
            with self._telling:
                for tell in _listeners:
                    tell(sum(self._n_read) // len(self._n_read))

    def add_side_by_side(self, begun: Source, pieces: Sequence[Iterator[Source]]) -> None:
        """Pack the first part of a file, and then, each by a thread, iterators over others: with different columns."""
        if len(pieces) > 1:
            self._make_room(self.n_rows + begun.n_in_file)  # while there is one thread
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
        """Refuse a file that has other columns, or other types, than those before it."""
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
        block = np.empty((len(self._block), max(n, 2 * room)), np.uint8)  # memory is not touched before it is used
        for new, old, n_read in zip(block, self._block, self._n_read, strict=True):
            new[:n_read] = old[:n_read]
        self._block = block

    def surveyed(self) -> tuple[Source, list[NDArray[np.int64]]]:
        """The values seen, as a source with each of them once (and nulls behind them), and how often each occurs.

        Count 255 is that of missing cells.
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
        """The table in which each byte, such as a value's place or 255, is another one; there are no more batches."""
        block = _tight(self._block, self.n_rows)
        for row, own in zip(block, codes, strict=True):
            recode(row, own)
        return Table(variables, block)

    def finished(self, how: Format) -> PackedSource:
        """All that was read."""
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
    """How many rows there may be in all, so that nothing has to be copied to where there is more room."""
    if len(paths) <= 1:
        return first.n_in_file
    if all(path.suffix.lower() in PARQUET_ENDINGS and path.exists() for path in paths):
        return sum(n_rows_in(path, how) for path in paths)
    sizes = [path.stat().st_size for path in paths if path.exists()]  # as many a byte as in the first, and some more
    return int(1.1 * first.n_in_file * sum(sizes) / max(1, sizes[0])) + 1 if sizes else 1


def _tight(block: Bytes, n: int) -> Bytes:
    """The first n bytes of each row, one row behind the other, in the same memory."""
    if block.shape[1] == n:
        return block
    n_rows, room = block.shape
    flat = block.reshape(-1)
    for row in range(1, n_rows):
        flat[row * n : (row + 1) * n] = flat[row * room : row * room + n]
    return flat[: n_rows * n].reshape(n_rows, n)


def recode(row: Bytes, codes: Bytes) -> None:
    """Put another code in the place of each, all 256 of which are given.

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
    """The same for cells below len(codes), or 255, which stays: in half the time, as bits that differ are flipped."""
    flips = np.zeros(0, np.uint8)
    for place, code in enumerate(codes):
        if place != code:
            own = (cells == place).view(np.uint8)
            own *= np.uint8(place ^ code)
            flips = np.bitwise_xor(flips, own, out=flips) if len(flips) else own
    if len(flips):
        cells ^= flips


def _tally(cells: Bytes, n: int, has_missing: bool) -> list[int]:
    """How often each byte below n occurs, and then 255; there are no others."""
    if n > _FEW:
        counts = np.bincount(cells, minlength=256).tolist()
        return [*counts[:n], counts[_MISSING]]
    counts = [int(np.count_nonzero(cells == value)) for value in range(n - (not has_missing))]
    rest = len(cells) - sum(counts)
    return [*counts, rest] if has_missing else [*counts, rest, 0]


def _type(kind: "pa.DataType") -> str:
    """What sort of type this is; "" where a column has nothing but missing cells."""
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


def _whole_numbers(numbers: NDArray[np.int64]) -> "pa.Array":
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


class _Values:
    """The values of one column, as far as they are seen, and how often each occurs."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._pieces: list[pa.Array] = []  # the same values, in this order
        self.counts = np.zeros(256, np.int64)
        self._wide: list[pa.Array] | None = None  # all cells, once there are too many values
        self._ordered = True

    @property
    def seen(self) -> "pa.Array | None":
        """The values by their codes; None where there are too many."""
        import pyarrow as pa

        if self._wide is not None:
            return None
        return pa.concat_arrays(self._pieces) if self._pieces else pa.nulls(0)

    def add(self, chunk: "pa.Array", row: Bytes, begin: int) -> None:
        """Pack cells, from `begin` on."""
        import pyarrow as pa

        if not len(chunk):
            return
        self._ordered &= pa.types.is_dictionary(chunk.type) and chunk.type.ordered
        if self._wide is None and pa.types.is_null(chunk.type):
            row[begin:] = _MISSING
            self.counts[_MISSING] += len(chunk)
        elif self._wide is not None or not (self._add_numbers(chunk, row[begin:]) or self._add(chunk, row[begin:])):
            if self._wide is None:
                self._widen(row[:begin])
                assert self._wide is not None
            is_encoded = pa.types.is_dictionary(chunk.type) or pa.types.is_null(chunk.type)
            self._wide.append(chunk if is_encoded else chunk.dictionary_encode())

    def _add_numbers(self, chunk: "pa.Array", out: Bytes) -> bool:
        """Pack whole numbers that are near each other, if they are; without asking Arrow for a dictionary."""
        import pyarrow as pa

        kind = chunk.type
        if not pa.types.is_integer(kind) or pa.types.is_uint64(kind) or chunk.null_count:
            return False
        if self._pieces and self._pieces[0].type != pa.int64():
            return False
        cells = np.frombuffer(chunk.buffers()[1], str(kind))[chunk.offset : chunk.offset + len(chunk)]
        least, most = 0, int(cells.view(f"u{cells.itemsize}").max())  # a negative one is a large one there
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
        """Pack cells of any type by way of Arrow's dictionary of them; False where there are too many values."""
        import pyarrow as pa

        cells, values = cells_of(chunk)
        if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
            values = values.cast(pa.int64())
        if len(values) > _MOST or (self._pieces and self._pieces[0].type != values.type):
            return False
        found, new = values.to_pylist(), []
        keys = [value.hex() if isinstance(value, float) else value for value in found]  # zeros apart, NaN known again
        for place, key in enumerate(keys):
            if key is not None and key not in self._codes:
                self._codes[key] = 0
                new.append(place)
        if len(self._codes) > _MOST:
            for _ in new:  # as if they had not come
                self._codes.popitem()
            return False
        if new:
            if not self._ordered:  # as their states will be
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

    def _take(self, table: bytearray, counts: list[int], out: Bytes) -> None:
        """Give bytes that are counted the codes of the table."""
        for code, count in zip(table, counts[:-1], strict=False):
            self.counts[code] += count
        self.counts[_MISSING] += counts[-1]
        if len(counts) <= _FEW:
            _recode_few(out, table[: len(counts) - 1])
        elif table != _SAME:
            recode(out, np.frombuffer(table, np.uint8))

    def _widen(self, packed: Bytes) -> None:
        """Keep cells as Arrow does from now on."""
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
        self._wide.append(pa.DictionaryArray.from_arrays(indices, pa.concat_arrays(self._pieces)))

    def column(self, source: Source, name: str, row: Bytes) -> Column:
        """The column, whose codes are this row if they are bytes."""
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
        return replace(found, codes=row.view(np.int8), counts=counts, ordered=self._ordered)
