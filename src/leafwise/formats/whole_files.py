"""Bytes from and to files, plain or .gz; a written file appears complete or not at all. Knows nothing else."""

import gzip
import io
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from leafwise.errors import AdvisedError, advice_of

T = TypeVar("T")
_SPARE_BYTES, _MOST_TIMES = 64 << 20, 200  # what a packed file may unpack to: so much, and so many times its size


def read_whole(path: str | os.PathLike[str], most_bytes: int | None = None) -> bytes:
    """The bytes of a file; those of a name that ends in .gz unpacked, up to 64 MiB and 200 times its size."""
    data = Path(path).read_bytes()
    if not _packed(path):
        return data
    most = _SPARE_BYTES + _MOST_TIMES * len(data) if most_bytes is None else most_bytes
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(most + 1)
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
    """What `loads` makes of a file's bytes; its ValueErrors name the file.

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
    """Write a file under a temporary name beside its place, then rename it; it is on the disk when this returns.

    What a process that was killed has left half-written there is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(folder + "/a.txt.gz", b"all of it")
    ...     read_whole(folder + "/a.txt.gz")
    b'all of it'
    """
    if _packed(path):
        data = gzip.compress(data, mtime=0)  # no time inside: the same network gives the same bytes
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a device or a pipe cannot be replaced; a directory says so itself
        target.write_bytes(data)
        return
    _remove_unfinished(target)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
        _sync_folder(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _remove_unfinished(target: Path) -> None:
    """Remove what processes that are no more were about to write there."""
    with suppress(PermissionError):  # to list the folder, or to remove another's file
        for name in os.listdir(target.parent):
            found = re.fullmatch(rf"\.{re.escape(target.name)}\.([0-9]{{1,9}})\.part", name)
            if found and not _is_alive(int(found[1])):
                target.with_name(name).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process != os.getpid()


def _sync_folder(folder: Path) -> None:
    """See to it that the new name outlives a power cut, where the system has a way to: the file is there anyway."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _packed(path: str | os.PathLike[str]) -> bool:
    return os.fsdecode(path).lower().endswith(".gz")
