"""Networks as XMLBIF 0.3 files.

    <BIF VERSION="0.3"><NETWORK><NAME>unknown</NAME>
    <VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE> ...
    <DEFINITION><FOR>wet</FOR><GIVEN>rain</GIVEN><TABLE>0.9 0.1 0.2 0.8</TABLE></DEFINITION> ...
    </NETWORK></BIF>

In a table the first GIVEN varies slowest, and the variable itself fastest.
"""

from leafwise.formats.tables import MOST_CELLS, Draft, Room, complete_rows, names_of_parents, numbers_of, rows_of_text
from leafwise.formats.xml_elements import parsed, text_of
from leafwise.network import Network


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The XMLBIF text of a network; a ValueError if a table would have more than `most_cells` cells.

    >>> from leafwise.examples import alarm
    >>> loads(dumps(alarm()).encode()).n_parameters
    509
    """
    lines = ['<?xml version="1.0"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>unknown</NAME>"]
    for variable in network.variables:
        outcomes = "".join(f"<OUTCOME>{text_of(label)}</OUTCOME>" for label in variable.labels)
        lines.append(f'<VARIABLE TYPE="nature"><NAME>{text_of(variable.name)}</NAME>{outcomes}</VARIABLE>')
    for index, name in enumerate(network.names):
        table = complete_rows(network, index, most_cells)
        given = "".join(f"<GIVEN>{text_of(parent)}</GIVEN>" for parent in names_of_parents(network, index))
        lines += [f"<DEFINITION><FOR>{text_of(name)}</FOR>{given}<TABLE>", *rows_of_text(table)]
        lines.append("</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def loads(data: bytes, most_cells: int | None = None) -> Network:
    """The network of a file."""
    root = parsed(data, "BIF", "XMLBIF").one("NETWORK")
    draft = Draft(Room(len(data), most_cells))
    for entry in root.all("VARIABLE"):
        kind = entry.attributes.get("TYPE", "nature")
        if kind != "nature":
            entry.fail(f"a variable of the type {kind[:30]!r} came where 'nature' is expected: leave it out.")
        draft.add_variable(entry.one("NAME").text, [outcome.text for outcome in entry.all("OUTCOME")], entry.fail)
    for entry in root.all("DEFINITION"):
        index, *parents = (draft.known(name.text, name.fail) for name in [entry.one("FOR"), *entry.all("GIVEN")])
        due, table = draft.n_cells(index, parents, entry.fail), entry.one("TABLE")
        draft.add_table(index, parents, numbers_of(table.text, due, table.fail), table.fail)
    return draft.network(root.fail)
