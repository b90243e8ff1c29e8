"""Atomic replacement of files: complete or not at all, however the process ends. Knows nothing else."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

_HOST = re.sub(r"\W", "-", platform.node())[:40]  # other machines may use the same folder and process numbers
_numbers = count()  # several threads may write the same file
_under_way = set[str]()


@contextmanager
def replaced(path: str | os.PathLike[str], lasting: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file in the same folder that replaces `path` if no exception is raised.

    Temporary files left by killed processes of this machine are removed. `lasting`: sync the file to disk. Errors in
    writing name `path`. If that exists and is not a regular file but a device or a pipe, it is written directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(folder + "/a.txt") as file:
    ...         n = file.write(b"all of it")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = Path(path)
    if target.exists() and not target.is_file():  # opening a directory raises an error
        with _named(path, target), target.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # only of files: /dev/stdout may be a pipe, which has no path
    unfinished = target.with_name(f".{target.name}.{_HOST}.{os.getpid()}-{next(_numbers)}.part")
    _under_way.add(unfinished.name)
    try:
        with _named(path, unfinished):
            _remove_unfinished(target)
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            os.replace(unfinished, target)
            if lasting:
                _sync_folder(target.parent)
    finally:
        with suppress(OSError):  # the original error is more informative
            unfinished.unlink(missing_ok=True)
        _under_way.discard(unfinished.name)


@contextmanager
def _named(path: str | os.PathLike[str], written: Path) -> Iterator[None]:
    """Make errors in writing a file name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(written)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def _remove_unfinished(target: Path) -> None:
    """Remove the temporary files of processes that have ended, as far as the folder allows it."""
    with suppress(OSError):  # in removing another user's file, or in listing a folder, where writing tells the problem
        for name in os.listdir(target.parent):
            found = re.fullmatch(rf"\.{re.escape(target.name)}\.({_HOST}\.)?([0-9]{{1,9}})(-[0-9]+)?\.part", name)
            if found and name not in _under_way and not _is_alive(int(found[2])):
                target.with_name(name).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # where os.kill would terminate the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process != os.getpid()


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name survives a power failure, if the system supports that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
