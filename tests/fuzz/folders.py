"""Where inputs are written: one folder for all of a process, in memory, since making one takes longer than most
checks.
"""

import tempfile
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")


@cache
def folder() -> Path:
    """It goes when the process ends in peace."""
    made = tempfile.TemporaryDirectory(prefix="leafwise-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None)
    _kept.append(made)
    return Path(made.name)


_kept: list["tempfile.TemporaryDirectory[str]"] = []
