"""Dynamic networks as one JSON file: the number of lags, and the network of a window as in network files.

{"format": "leafwise-dynamic-network", "version": 1, "lags": 2, "window": {"format": "leafwise-network", ...}}
"""

from typing import Any

from leafwise.data.table import brief
from leafwise.dynamic_network import DynamicNetwork
from leafwise.formats import json
from leafwise.formats.json_reading import member_of

FORMAT = "leafwise-dynamic-network"
VERSION = 1


def dumps(dynamic: DynamicNetwork) -> str:
    """The JSON text of a dynamic network."""
    head = json.text({"format": FORMAT, "version": VERSION, "lags": dynamic.lags})
    return f'{head[:-1]}, "window": {json.dumps(dynamic.window).rstrip()}}}\n'


def loads(text_of_file: str | bytes) -> DynamicNetwork:
    """The dynamic network of a JSON text."""
    return dynamic_of(json.parsed(text_of_file))


def dynamic_of(document: Any) -> DynamicNetwork:
    """The dynamic network in a parsed file."""
    if json.format_named(document) != FORMAT:
        raise ValueError(f'this is JSON but no dynamic network: such a file has "format": "{FORMAT}"; learn one.')
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f'the "version" of the dynamic network is {brief(version)}, and this leafwise reads {VERSION}: upgrade it.'
        )
    window = json.loads(json.text(member_of(document, "window", dict, "file")))
    return DynamicNetwork(window, member_of(document, "lags", int, "file"))
