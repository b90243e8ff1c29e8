"""Saving of results: one that cannot be saved in the given file is saved elsewhere, since it may have taken days."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leafwise.cli.options import say

if TYPE_CHECKING:
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.mixture import Mixture
    from leafwise.network import Network


def saved(network: "Network | Mixture | DynamicNetwork", wanted: Path) -> Path:
    """Save a network, and return where; if it cannot be saved in the given file, report it and save it elsewhere.

    If there is no space for it anywhere, it is printed to standard output.
    """
    try:
        network.save(wanted)
    except OSError as error:
        problem = f"leafwise: cannot write '{wanted}' ({error.strerror or error}): the network"
    else:
        return wanted
    endings = "".join(wanted.suffixes[-2:])
    for folder in (Path.cwd, Path.home, tempfile.gettempdir):
        try:
            kept = Path(folder()) / f"{wanted.name.removesuffix(endings)}-kept{endings}"
            network.save(kept)
        except (OSError, RuntimeError):  # it is full, deleted, or unknown
            continue
        say(f"{problem} is kept in '{kept}'.")
        return kept
    say(f"{problem} follows on standard output, as there is no room for it elsewhere.")
    click.echo(dumped(network), nl=False)
    return Path("-")


def dumped(network: "Network | Mixture | DynamicNetwork") -> str:
    """The text of a network's JSON file."""
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.formats import dynamic_json, json, mixture_json
    from leafwise.mixture import Mixture

    if isinstance(network, DynamicNetwork):
        return dynamic_json.dumps(network)
    return mixture_json.dumps(network) if isinstance(network, Mixture) else json.dumps(network)
