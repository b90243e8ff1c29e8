"""Networks included in the package."""

from importlib import resources

from leafwise.formats import json
from leafwise.network import Network


def alarm() -> Network:
    """The ALARM network for monitoring patients in intensive care (Beinlich et al. 1989), as complete tables.

    >>> network = alarm()
    >>> len(network.variables), len(network.arcs), network.n_parameters
    (37, 46, 509)
    """
    return json.loads(resources.files(__package__).joinpath("alarm.json").read_bytes())
