"""Networks as BIF files, the Interchange Format that most programs read.

It contains names, states, parents and complete tables: decision graphs are expanded, and counts, priors, cut points and
the record of learning are lost. Numbers are written so that they can be read back to the last bit.

    network unknown {
    }
    variable rain {
      type discrete [ 2 ] { no, yes };
    }
    probability ( wet | rain ) {
      (no) 0.9, 0.1;
      (yes) 0.2, 0.8;
    }
"""

import os
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable
from leafwise.formats.bif_reading import read_network
from leafwise.formats.bif_text import decoded, quoted
from leafwise.formats.tables import MOST_CELLS, Room, complete_rows
from leafwise.formats.whole_files import read_as, write_whole
from leafwise.network import Network


def save(network: Network, path: str | os.PathLike[str], most_cells: int = MOST_CELLS) -> None:
    """Write a network to a .bif or .bif.gz file, atomically.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.bif")
    ...     load(folder + "/alarm.bif").n_parameters
    509
    """
    write_whole(path, dumps(network, most_cells).encode())


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network from a .bif or .bif.gz file; a one-line ValueError with line and column if it is invalid."""
    return read_as(path, loads)


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The BIF text of a network; a ValueError if a table would have more than `most_cells` cells."""
    tables = [complete_rows(network, index, most_cells) for index in range(len(network.variables))]
    lines = ["network unknown {", "}"]
    for variable in network.variables:
        lines += _variable_lines(variable)
    for index, table in enumerate(tables):
        lines += _distribution_lines(network, index, table)
    return "\n".join([*lines, ""])


def loads(text: str | bytes, most_cells: int | None = None) -> Network:
    """The network of a BIF text."""
    return read_network(decoded(text) if isinstance(text, bytes) else text, Room(len(text), most_cells))


def _variable_lines(variable: Variable) -> list[str]:
    labels = ", ".join(map(quoted, variable.labels))
    return [f"variable {quoted(variable.name)} {{", f"  type discrete [ {variable.n_states} ] {{ {labels} }};", "}"]


def _distribution_lines(network: Network, index: int, table: NDArray[np.float64]) -> Iterator[str]:
    node = network.nodes[index]
    parents = [network.variables[parent] for parent in (node.parents if node else ())]
    given = " | " + ", ".join(quoted(parent.name) for parent in parents) if parents else ""
    yield f"probability ( {quoted(network.variables[index].name)}{given} ) {{"
    rows = [", ".join(map(repr, row)) for row in table.tolist()]
    if parents:
        labels = product(*(map(quoted, parent.labels) for parent in parents))
        yield from (f"  ({', '.join(states)}) {row};" for states, row in zip(labels, rows, strict=True))
    else:
        yield f"  table {rows[0]};"
    yield "}"
