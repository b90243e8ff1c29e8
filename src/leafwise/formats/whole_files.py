"""Reading and writing of whole files, plain or .gz; writing is atomic."""

import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from leafwise.data.text_files import begin_of_packed
from leafwise.errors import AdvisedError, advice_of
from leafwise.replacing import replaced

T = TypeVar("T")
_SPARE_BYTES, _MOST_TIMES = 64 << 20, 200  # limits of unpacking: bytes, and times the file's size


def read_whole(path: str | os.PathLike[str], most_bytes: int | None = None) -> bytes:
    """The bytes of a file; one with the extension .gz is unpacked, up to 64 MiB and 200 times its size."""
    data = Path(path).read_bytes()
    if not _packed(path):
        return data
    most = _SPARE_BYTES + _MOST_TIMES * len(data) if most_bytes is None else most_bytes
    try:
        unpacked = begin_of_packed(data, most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"this is not a sound gzip file ({error}): make or copy it again.") from None
    if len(unpacked) > most:
        raise AdvisedError(
            f"it unpacks to more than {most:,} bytes, the limit for its {len(data):,}: unpack it, or raise ",
            ("most_bytes",),
            ".",
        )
    return unpacked


def read_as(path: str | os.PathLike[str], loads: Callable[[bytes], T], most_bytes: int | None = None) -> T:
    """The result of `loads` for a file's bytes; its ValueErrors name the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(folder + "/a.txt", b"12")
    ...     read_as(folder + "/a.txt", int)
    12
    """
    try:
        return loads(read_whole(path, most_bytes))
    except ValueError as error:
        raise AdvisedError(f"{os.fspath(path)}: ", advice_of(error)) from None


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically; it is on disk when this returns.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(folder + "/a.txt.gz", b"all of it")
    ...     read_whole(folder + "/a.txt.gz")
    b'all of it'
    """
    if _packed(path):
        data = gzip.compress(data, mtime=0)  # no time stamp: the same network gives the same bytes
    with replaced(path) as file:
        file.write(data)


def _packed(path: str | os.PathLike[str]) -> bool:
    return os.fsdecode(path).lower().endswith(".gz")
