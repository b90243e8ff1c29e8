"""One way to load and save networks, whatever the format: the end of a file's name says which.

Knows the other modules of this package, and imports the one that is needed.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from leafwise.formats.tables import MOST_CELLS

if TYPE_CHECKING:
    from leafwise.network import Network

_FORMATS = {
    ".json": "JSON",
    ".bif": "BIF",
    ".xmod": "XMOD",
    ".bn": "Libra BN",
    ".xmlbif": "XMLBIF",
    ".bifxml": "XMLBIF",
    ".xml": "XMLBIF",
    ".uai": "UAI",
    ".net": "NET",
    ".xdsl": "XDSL",
}
_PACKED = ("JSON", "BIF", "XMOD", "Libra BN")  # also as .gz


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the end of a file's name stands for. A name without an end is JSON.

    >>> format_of("alarm.bif.gz"), format_of("model")
    ('BIF', 'JSON')
    """
    name = Path(os.fsdecode(path)).name
    bare = name[:-3] if name.lower().endswith(".gz") else name
    suffix = Path(bare).suffix.lower()
    if suffix == "" and bare == name:
        return "JSON"
    if suffix not in _FORMATS or (bare != name and _FORMATS[suffix] not in _PACKED):
        known = ", ".join(_FORMATS)
        raise ValueError(
            f"the name {name!r} ends like no format of networks: use {known}, .json.gz, .bif.gz or .xmod.gz."
        )
    return _FORMATS[suffix]


def save(network: "Network", path: str | os.PathLike[str], most_cells: int = MOST_CELLS) -> None:
    """Write a network in the format of the file's name; the file appears complete or not at all.

    A decision graph becomes a tree in XMOD and Libra's BN, and a table in all others but JSON, of at most `most_cells`
    numbers.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.bif.gz")
    ...     load(folder + "/alarm.bif.gz").n_parameters
    509
    """
    kind = format_of(path)
    if kind == "JSON":
        from leafwise.formats import json

        json.save(network, path)
    elif kind == "BIF":
        from leafwise.formats import bif

        bif.save(network, path, most_cells)
    elif kind == "XMOD":
        from leafwise.formats import xmod

        xmod.save(network, path, most_cells)
    elif kind == "Libra BN":
        from leafwise.formats import libra

        libra.save(network, path, most_cells)
    else:
        from leafwise.formats import agrum

        agrum.save(network, path, kind, most_cells)


def load(path: str | os.PathLike[str]) -> "Network":
    """Read a network in the format of the file's name; a ValueError in one line when it cannot be read."""
    kind = format_of(path)
    if kind == "JSON":
        from leafwise.formats import json

        return json.load(path)
    if kind == "BIF":
        from leafwise.formats import bif

        return bif.load(path)
    if kind == "XMOD":
        from leafwise.formats import xmod

        return xmod.load(path)
    if kind == "Libra BN":
        from leafwise.formats import libra

        return libra.load(path)
    from leafwise.formats import agrum

    return agrum.load(path, kind)
