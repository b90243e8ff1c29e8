"""Networks as HUGIN's NET files.

    net { }
    node rain { states = ("no" "yes"); }
    potential ( wet | rain ) { data = ((0.9 0.1) (0.2 0.8)); }

Comments extend from % to the end of the line. In the data the first parent varies slowest, the variable itself fastest.
"""

import re

from leafwise.formats.bif_text import Cursor, brief, decoded
from leafwise.formats.tables import MOST_CELLS, Draft, Room, complete_rows, names_of_parents, numbers_of, rows_of_text
from leafwise.network import Network

_NAME = re.compile(r"[^\s{}()=;|\"%]++")
_UNQUOTABLE = re.compile(r'["\\\r\n]')


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The NET text of a network; a ValueError if a table would have more than `most_cells` cells.

    >>> from leafwise.examples import alarm
    >>> loads(dumps(alarm()).encode()).n_parameters
    509
    """
    for variable in network.variables:
        odd = [label for label in variable.labels if _UNQUOTABLE.search(label)]
        if odd or not _NAME.fullmatch(variable.name):
            raise ValueError(
                f"{brief(odd[0] if odd else variable.name)} holds a sign with a meaning of its own, and NET cannot "
                f"hold these names: rename it, or save the network as BIF."
            )
    lines = ["net { }"]
    for variable in network.variables:
        states = " ".join(f'"{label}"' for label in variable.labels)
        lines.append(f"node {variable.name} {{ states = ({states}); }}")
    for index, name in enumerate(network.names):
        rows = rows_of_text(complete_rows(network, index, most_cells))
        parents = " ".join(names_of_parents(network, index))
        lines += [f"potential ( {name}{' | ' * bool(parents)}{parents} ) {{ data = (", *rows, "); }"]
    return "\n".join([*lines, ""])


def loads(data: bytes, most_cells: int | None = None) -> Network:
    """The network of a file."""
    cursor, draft = _NetCursor(decoded(data)), Draft(Room(len(data), most_cells))
    _expect_word(cursor, "net")
    cursor.expect("{", "write net { }")
    _read_entries(cursor, "")
    while not cursor.at_end():
        kind = cursor.word("'node' or 'potential'")
        if kind in ("node", "discrete"):
            if kind == "discrete":
                _expect_word(cursor, "node")
            _read_node(cursor, draft)
        elif kind == "potential":
            _read_potential(cursor, draft)
        else:
            cursor.fail(f"{brief(kind)} came where 'node' or 'potential' is expected: leave it out.", cursor.began)
    return draft.network(cursor.fail_here)


class _NetCursor(Cursor):
    blanks = re.compile(r"(?:\s++|%[^\n]*+)*+")
    words = re.compile(r'"((?:[^"\\]++|\\.)*+)"|([^\s{}()=;|"%]++)', re.DOTALL)


def _expect_word(cursor: Cursor, due: str) -> None:
    word = cursor.word(f"the word {due!r}")
    if word != due:
        cursor.fail(f"{brief(word)} came where {due!r} is expected: write it there.", cursor.began)


def _read_entries(cursor: Cursor, wanted: str) -> list[str] | None:
    """Read KEY = VALUE; up to the closing brace; return the words in the wanted key's value, or None."""
    found: list[str] | None = None
    while not cursor.takes("}"):
        key = cursor.word("KEY = VALUE; or '}'")
        if key == wanted and found is not None:
            cursor.fail_here(f"{wanted!r} came a second time, and it comes once: leave one out.")
        cursor.expect("=", "write KEY = VALUE;")
        words = []
        while not cursor.takes(";"):
            if not (cursor.takes("(") or cursor.takes(")")):
                words.append(cursor.word("a value or ';'"))
        found = words if key == wanted else found
    return found


def _read_node(cursor: Cursor, draft: Draft) -> None:
    name, place = cursor.word("a variable's name"), cursor.began
    cursor.expect("{", 'write node NAME { states = ("a" "b"); }')
    labels = _read_entries(cursor, "states")
    cursor.began = place
    if labels is None:
        cursor.fail_here(f"{brief(name)} has no states, and each variable takes some: add states = (…);")
    draft.add_variable(name, labels, cursor.fail_here)


def _read_potential(cursor: Cursor, draft: Draft) -> None:
    cursor.expect("(", "write potential ( NAME | PARENT PARENT )")
    place = cursor.began
    index = draft.known(cursor.word("a variable"), cursor.fail_here)
    cursor.takes("|")
    parents = []
    while not cursor.takes(")"):
        parents.append(draft.known(cursor.word("a parent or ')'"), cursor.fail_here))
    cursor.expect("{", "write the data between { and }")
    words = _read_entries(cursor, "data")
    cursor.began = place
    if words is None:
        cursor.fail_here("this potential has no data, and it takes some: add data = (…);")
    due = draft.n_cells(index, parents, cursor.fail_here)
    draft.add_table(index, parents, numbers_of(" ".join(words), due, cursor.fail_here), cursor.fail_here)
