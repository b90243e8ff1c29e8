"""The gene data sets of Tables 1 and 2: as columns, or in the layout of the UCI repository (class, name, sequence)."""

from pathlib import Path

import numpy as np

from leafwise.data.encoding import read
from leafwise.data.table import Table, Variable, code_type

CLASS = "class"


def read_sequences(path: Path) -> Table:
    """The table of a file in either layout; a ValueError if it has no column `class`."""
    first = path.read_text(encoding="utf-8", errors="replace").lstrip().partition("\n")[0].split(",")
    if len(first) != 3:
        table = read(path)
        table.index(CLASS)
        return table
    table = read(path, header=False, delimiter=",", states="*")
    label, _, sequence = table.variables
    texts = ["".join(text.split()) for text in sequence.labels]
    if len({len(text) for text in texts}) != 1:
        raise ValueError(f"{path}: the sequences differ in length, where each line has class, name, sequence: check it")
    letters = np.array([list(text) for text in texts])[table.codes[2]]
    return _letters_table(label, table.codes[0], letters)


def _letters_table(label: Variable, classes: np.ndarray, letters: np.ndarray) -> Table:
    variables, codes = [Variable(CLASS, label.labels)], [classes]
    for position in range(letters.shape[1]):
        states, column = np.unique(letters[:, position], return_inverse=True)
        variables.append(Variable(f"p{position + 1}", tuple(states.tolist())))
        codes.append(column)
    return Table(tuple(variables), np.stack(codes).astype(code_type(tuple(variables))))
