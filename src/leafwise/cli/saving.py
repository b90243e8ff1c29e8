"""A result that cannot be saved where it was wanted is kept elsewhere: it may have taken days."""

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
    """Save a network; where it is, if it could not be saved where it was wanted, which is said.

    If there is no room for it anywhere, it goes to standard output.
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
        except (OSError, RuntimeError):  # it is full, or deleted, or nobody knows where it is
            continue
        say(f"{problem} is kept in '{kept}'.")
        return kept
    say(f"{problem} follows on standard output, as there is no room for it elsewhere.")
    click.echo(dumped(network), nl=False)
    return Path("-")


def dumped(network: "Network | Mixture | DynamicNetwork") -> str:
    """The text of its file."""
    from leafwise.dynamic_network import DynamicNetwork
    from leafwise.formats import dynamic_json, json, mixture_json
    from leafwise.mixture import Mixture

    if isinstance(network, DynamicNetwork):
        return dynamic_json.dumps(network)
    return mixture_json.dumps(network) if isinstance(network, Mixture) else json.dumps(network)
