"""Where inputs are written: one folder for all of a process, since making one takes longer than most checks."""

import tempfile
from functools import cache
from pathlib import Path


@cache
def folder() -> Path:
    """It goes when the process ends in peace."""
    made = tempfile.TemporaryDirectory(prefix="leafwise-fuzz-")
    _kept.append(made)
    return Path(made.name)


_kept: list["tempfile.TemporaryDirectory[str]"] = []
