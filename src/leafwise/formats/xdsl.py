"""Networks as XDSL files, the format of GeNIe and SMILE.

    <smile version="1.0" id="network"><nodes>
    <cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.8 0.2</probabilities></cpt>
    <cpt id="wet"><state id="no"/><state id="yes"/><parents>rain</parents>
    <probabilities>0.9 0.1 0.2 0.8</probabilities></cpt> ...
    </nodes></smile>

In the probabilities the first parent varies slowest, the variable itself fastest. Parents come before children.
"""

from leafwise.data.table import brief
from leafwise.formats.tables import MOST_CELLS, Draft, Room, complete_rows, names_of_parents, numbers_of, rows_of_text
from leafwise.formats.xml_elements import attribute_of, parsed, text_of
from leafwise.network import Network


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The XDSL text of a network; a ValueError if a table would have more than `most_cells` cells.

    >>> from leafwise.examples import alarm
    >>> loads(dumps(alarm()).encode()).n_parameters
    509
    """
    odd = next((name for name in network.names if len(name.split()) != 1), None)
    if odd is not None:
        raise ValueError(f"{brief(odd)} holds a blank, and XDSL cannot hold these names: rename it, or save it as BIF.")
    lines = ['<?xml version="1.0"?>', '<smile version="1.0" id="network">', "<nodes>"]
    for index in network.order():
        variable = network.variables[index]
        table = complete_rows(network, index, most_cells)
        parents = " ".join(map(text_of, names_of_parents(network, index)))
        lines.append(f"<cpt id={attribute_of(variable.name)}>")
        lines += [f"<state id={attribute_of(label)}/>" for label in variable.labels]
        lines += [f"<parents>{parents}</parents>"] if parents else []
        lines += [f"<probabilities>{' '.join(rows_of_text(table))}</probabilities>", "</cpt>"]
    return "\n".join([*lines, "</nodes>", "</smile>", ""])


def loads(data: bytes, most_cells: int | None = None) -> Network:
    """The network of a file."""
    root = parsed(data, "smile", "XDSL").one("nodes")
    draft = Draft(Room(len(data), most_cells))
    for entry in root.inside:
        if entry.tag != "cpt":
            entry.fail(f"<{entry.tag[:30]}> came where <cpt> is expected: make it a node with a table.")
        draft.add_variable(entry.attribute("id"), [state.attribute("id") for state in entry.all("state")], entry.fail)
    for index, entry in enumerate(root.inside):
        parents = [draft.known(name, given.fail) for given in entry.all("parents") for name in given.text.split()]
        due, table = draft.n_cells(index, parents, entry.fail), entry.one("probabilities")
        draft.add_table(index, parents, numbers_of(table.text, due, table.fail), table.fail)
    return draft.network(root.fail)
