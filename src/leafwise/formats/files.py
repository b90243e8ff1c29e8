"""Loading and saving networks in any format, chosen by the file name's extension.

Only the module of that format is imported.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leafwise.formats.tables import MOST_CELLS, Room
from leafwise.formats.whole_files import read_as, write_whole

if TYPE_CHECKING:
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.mixture import Mixture
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
_MODULES = {"Libra BN": "libra"}  # the other modules are named like their formats


def format_of(path: str | os.PathLike[str]) -> str:
    """The format for a file name's extension; JSON without one.

    >>> format_of("alarm.bif.gz"), format_of("model")
    ('BIF', 'JSON')
    """
    name = Path(os.fsdecode(path)).name
    bare = name[:-3] if name.lower().endswith(".gz") else name
    suffix = Path(bare).suffix.lower()
    if suffix == "" and bare == name:
        return "JSON"
    if suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise ValueError(
            f"the name {name!r} ends like no format of networks: use {known}, or one of these with .gz after it."
        )
    return _FORMATS[suffix]


def save(network: "Network", path: str | os.PathLike[str], most_cells: int | None = None) -> None:
    """Write a network in the format of the file name's extension, atomically.

    Decision graphs become trees in XMOD and Libra's BN, and tables in all others but JSON, of at most `most_cells`
    numbers, by default a million.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.bif.gz")
    ...     load(folder + "/alarm.bif.gz").n_parameters
    509
    """
    module = _module(path)
    most = MOST_CELLS if most_cells is None else most_cells
    text = module.dumps(network) if module.__name__.endswith(".json") else module.dumps(network, most)
    write_whole(path, text.encode())


def load(path: str | os.PathLike[str], *, most_cells: int | None = None, most_bytes: int | None = None) -> "Network":
    """Read a network in the format of the file name's extension; a one-line ValueError if it cannot be read.

    By default a file may contain a million numbers, or as many as it has bytes, unless `most_cells` allows more; a
    packed file may unpack to 64 MiB and 200 times its size, unless `most_bytes` allows more.
    """
    module = _module(path)

    def loads(data: bytes) -> "Network":
        network: Network = module.loads(data, most_cells)
        return network

    return read_as(path, loads, most_bytes)


def load_model(path: str | os.PathLike[str], *, most_bytes: int | None = None) -> "Network | Mixture":
    """Read a network, or a mixture of networks, which only JSON supports."""
    if format_of(path) != "JSON":
        return load(path, most_bytes=most_bytes)
    return read_as(path, model_of, most_bytes)


def model_of(data: bytes) -> "Network | Mixture":
    """The network, or the mixture of networks, of a JSON text."""
    from leafwise.formats import json

    return _network_or_mixture(json.parsed(data), Room(len(data), None))


def _network_or_mixture(document: Any, room: Room) -> "Network | Mixture":
    from leafwise.formats import json, mixture_json

    if json.format_named(document) != mixture_json.FORMAT:
        return json.network_of(document, room)
    try:
        return mixture_json.read_mixture(document, room)
    except RecursionError:
        raise ValueError("something in it is nested too deeply for a mixture: save the mixture again.") from None


def save_mixture(mixture: "Mixture", path: str | os.PathLike[str]) -> None:
    """Write a mixture to a file, atomically."""
    from leafwise.formats import mixture_json

    if format_of(path) != "JSON":
        raise ValueError(f"cannot write '{path}': a mixture is saved as .json or .json.gz: use such a name.")
    write_whole(path, mixture_json.dumps(mixture).encode())


def save_dynamic(dynamic: "DynamicNetwork", path: str | os.PathLike[str]) -> None:
    """Write a dynamic network to a file, atomically."""
    from leafwise.formats import dynamic_json

    if format_of(path) != "JSON":
        raise ValueError(f"cannot write '{path}': a dynamic network is saved as .json or .json.gz: use such a name.")
    write_whole(path, dynamic_json.dumps(dynamic).encode())


def load_dynamic(path: str | os.PathLike[str], *, most_bytes: int | None = None) -> "DynamicNetwork":
    """Read a dynamic network, which only JSON supports."""
    from leafwise.formats import dynamic_json

    return read_as(path, dynamic_json.loads, most_bytes)


def any_model_of(data: bytes) -> "Network | Mixture | DynamicNetwork":
    """The model of any kind in a JSON text."""
    from leafwise.formats import dynamic_json, json

    document = json.parsed(data)
    if json.format_named(document) == dynamic_json.FORMAT:
        return dynamic_json.dynamic_of(document)
    return _network_or_mixture(document, Room(len(data), None))


def _module(path: str | os.PathLike[str]) -> Any:
    kind = format_of(path)
    return import_module(f"leafwise.formats.{_MODULES.get(kind, kind.lower())}")
