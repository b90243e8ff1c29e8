"""Networks as files of the UAI competitions.

There are no names. A file contains the number of variables and the number of states of each; then for each table the
number of its variables, and these, parents first; then for each table the number of its numbers, and these. Its first
variable varies slowest, and the last, whose distribution it is, fastest.

    BAYES
    2
    2 2
    2
    1 0
    2 0 1

    2
    0.8 0.2
    4
    0.9 0.1 0.2 0.8
"""

import re

from leafwise.formats.bif_text import Cursor, brief, decoded
from leafwise.formats.tables import MOST_CELLS, Draft, Room, complete_rows, numbers_of, rows_of_text
from leafwise.network import Network


class _UaiCursor(Cursor):
    blanks = re.compile(r"(?:\s++|#[^\n]*+)*+")
    words = re.compile(r"()(?!)|([^\s#]++)")  # nothing is quoted


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The UAI text of a network; a ValueError if a table would have more than `most_cells` cells.

    >>> from leafwise.examples import alarm
    >>> loads(dumps(alarm()).encode()).n_parameters
    509
    """
    n = len(network.variables)
    tables = [complete_rows(network, index, most_cells) for index in range(n)]
    lines = ["BAYES", str(n), " ".join(str(variable.n_states) for variable in network.variables), str(n)]
    for index, node in enumerate(network.nodes):
        scope = [*(node.parents if node else ()), index]
        lines.append(" ".join(map(str, [len(scope), *scope])))
    for table in tables:
        lines += ["", str(table.size), *rows_of_text(table)]
    return "\n".join([*lines, ""])


def loads(data: bytes, most_cells: int | None = None) -> Network:
    """The network of a file. Variables are named 0, 1, …, and so are their states."""
    cursor, draft = _UaiCursor(decoded(data)), Draft(Room(len(data), most_cells))
    kind = cursor.word("BAYES")
    if kind != "BAYES":
        cursor.fail(f"{brief(kind)} came where 'BAYES' is expected: give a Bayesian network.", cursor.began)
    for index in range(cursor.whole_number("the number of variables")):
        n_states = cursor.whole_number("the number of states of a variable")
        draft.room.take(n_states, cursor.fail_here)
        draft.add_variable(str(index), list(map(str, range(n_states))), cursor.fail_here)
    scopes: list[list[int]] = []
    for _ in range(cursor.whole_number("the number of tables")):
        scope = [
            draft.known(str(cursor.whole_number("a variable")), cursor.fail_here)
            for _ in range(cursor.whole_number("the number of variables of a table"))
        ]
        if not scope:
            cursor.fail("a table came about no variables where one at least is expected: leave it out.", cursor.began)
        scopes.append(scope)
    for *parents, index in scopes:
        due = draft.n_cells(index, parents, cursor.fail_here)
        if cursor.whole_number("the number of numbers of a table") != due or due > len(cursor.text):
            cursor.fail(f"the table of variable {index} needs {brief(str(due))} numbers: correct one.", cursor.began)
        values = [numbers_of(cursor.word("a number"), 1, cursor.fail_here)[0] for _ in range(due)]
        draft.add_table(index, parents, values, cursor.fail_here)
    if not cursor.at_end():
        cursor.fail("more came where the end of the file is expected: take it out.")
    return draft.network(cursor.fail_here)
