"""Files that take the place of others: complete or not at all, whatever ends the process. Knows nothing else."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

_HOST = re.sub(r"\W", "-", platform.node())[:40]  # others may write to the same folder, and have the same numbers
_numbers = count()  # several threads may write the same file
_under_way = set[str]()


@contextmanager
def replaced(path: str | os.PathLike[str], lasting: bool = True) -> Iterator[IO[bytes]]:
    """A file under a temporary name beside its place, which it takes if all goes well.

    What a process of this machine that was killed has left half-written there is removed. `lasting`: it is on the disk
    at the end. Errors of the system name the file that was to be written. What is there and no file, a device or a
    pipe, is written to as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(folder + "/a.txt") as file:
    ...         n = file.write(b"all of it")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a directory says so itself
        with target.open("wb") as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name}.{_HOST}.{os.getpid()}-{next(_numbers)}.part")
    _under_way.add(unfinished.name)
    try:
        _remove_unfinished(target)
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(unfinished, target)
        if lasting:
            _sync_folder(target.parent)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(unfinished)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        with suppress(OSError):  # the error that there was says more
            unfinished.unlink(missing_ok=True)
        _under_way.discard(unfinished.name)


def _remove_unfinished(target: Path) -> None:
    """Remove what processes that are no more were about to write there."""
    with suppress(PermissionError):  # to list the folder, or to remove another's file
        for name in os.listdir(target.parent):
            found = re.fullmatch(rf"\.{re.escape(target.name)}\.({_HOST}\.)?([0-9]{{1,9}})(-[0-9]+)?\.part", name)
            if found and name not in _under_way and not _is_alive(int(found[2])):
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
